"""The settings of an object as text: the call that makes it, with present values."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from rungwise.losses._temperature import Temperature


def settings_of(made: object) -> str:
    """The parameters of an object's constructor, each with the value of the attribute of its name.

    A constructor that passes further keyword arguments on has the parameters of the class above, too. One that is kept
    under no attribute of its name stands as ``name=...``.

    >>> class Hinges:
    ...     def __init__(self, margin=0.2, *, hidden=1):
    ...         self.margin = margin
    >>> settings_of(Hinges(0.3))
    'margin=0.3, hidden=...'
    """
    return ", ".join(f"{name}={_text(getattr(made, name, ...))}" for name in dict.fromkeys(_parameters(type(made))))


def _parameters(kind: type) -> Iterator[str]:
    for one in kind.__mro__:
        if "__init__" not in vars(one):
            continue
        said = list(inspect.signature(vars(one)["__init__"]).parameters.values())[1:]
        yield from (each.name for each in said if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD))
        if not any(each.kind is each.VAR_KEYWORD for each in said):
            return


def _text(value: object) -> str:
    if value is ...:
        return "..."
    if isinstance(value, Temperature):
        return _text(value.present)
    if isinstance(value, nn.ModuleList):
        return f"[{', '.join(map(repr, value))}]"
    if isinstance(value, Tensor):
        number = value.detach()
        if number.is_meta or number.numel() != 1:
            return f"<{tuple(number.shape)} on {number.device}>"
        # The shortest number that is the same in its own precision, as torch would not print it.
        return str(np.float32(number.item())) if number.dtype == torch.float32 else repr(number.item())
    if isinstance(value, torch.Generator):
        return f"<generator of seed {value.initial_seed()}>"
    return repr(value)
