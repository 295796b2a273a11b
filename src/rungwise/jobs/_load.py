"""A model, by the place where it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rungwise.jobs._job import called_from_python
from rungwise.jobs._models import read_model
from rungwise.jobs._python_values import refused

if TYPE_CHECKING:
    from rungwise.jobs._options import AnyPath
    from rungwise.models import PairScorer


def load(model: AnyPath, *, device: str | None = None, altered_model: bool = False) -> PairScorer:
    """Load a model: the folder of one or of a run, or the name of a published one.

    Args:
        model: Folder, hub repository, or a published model (``hf:``, ``open_clip:`` or ``st:`` and a folder or a name,
            or ``mteb:`` and a name that mteb knows, whose files are on this machine).
        device: Where it computes, such as cpu or cuda; default cuda where there is one.
        altered_model: Take a model whose files are not as its SHA256SUMS says.

    Raises:
        UserError: If there is no such model, or it is damaged.

    >>> import rungwise
    >>> rungwise.load("nowhere/model")
    Traceback (most recent call last):
    rungwise.core.UserError: nowhere/model: ...
    """
    if not isinstance(model, str | os.PathLike):
        raise refused("model", model, "the folder or name of a model")
    with called_from_python(names=("device", "altered_model")):
        return read_model(os.fspath(model), device, altered=altered_model)
