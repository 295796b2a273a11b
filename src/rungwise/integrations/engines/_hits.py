"""What all engines give: ids and falling similarities, checked as they come from another program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import printable

Metric = Literal["cosine", "l2", "inner"]
Hits = tuple[tuple[str, ...], NDArray[np.float64]]
"""(hits,) ids and falling scores."""

_LONGEST = 200
"""Number of characters of another program's message that are shown."""


def hits(name: str, ids: Sequence[Any], scores: Sequence[Any]) -> Hits:
    """Check and order what an engine answered; of an id that comes twice, the first is kept.

    Raises:
        UserError: If an id is missing, or a score is no finite number.

    >>> hits("an engine", [7, "b"], [0.5, 0.75])
    (('b', '7'), array([0.75, 0.5 ]))
    """
    try:
        values = np.asarray(scores, np.float64)
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    if values.shape != (len(ids),) or not np.isfinite(values).all():
        raise UserError(f"{name}: a hit has a score that is no finite number; check the engine's vectors")
    if any(one is None for one in ids):
        raise UserError(f"{name}: a hit has no id in the field of the ids; name another with id=FIELD in the address")
    order = np.argsort(-values, kind="stable").tolist()
    first: dict[str, float] = {}
    for place in order:
        first.setdefault(str(ids[place]), float(values[place]))
    return tuple(first), np.fromiter(first.values(), np.float64, len(first))


@contextmanager
def asking(name: str) -> Iterator[None]:
    """Context in which an error of an engine's client becomes one line that names the engine.

    >>> with asking("qdrant"):
    ...     raise ValueError("Collection pets not found")
    Traceback (most recent call last):
    rungwise.core.UserError: qdrant: cannot be asked (Collection pets not found); check the address and its fields
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # clients raise errors of the libraries below them, which share no base
        reason = printable(" ".join(str(error).split())[:_LONGEST]) or type(error).__name__
        raise UserError(f"{name}: cannot be asked ({reason}); check the address and its fields") from error
