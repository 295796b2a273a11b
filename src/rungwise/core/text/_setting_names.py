"""The settings of a configuration at a place, for those who misspell one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, get_args, get_type_hints

from rungwise.core.text._linear import near_names


def near_setting(kind: type, place: Sequence[object]) -> str:
    """The setting that was probably meant by an unknown name; empty where no name is near.

    Args:
        kind: The dataclass of the whole configuration.
        place: Names from the outermost setting to the misspelt one; kinds of unions and numbers of lists may stand
            between them, as pydantic gives them.
    """
    classes = [kind]
    for part in place[:-1]:
        inner = [one for owner in classes for one in _dataclasses_in(_types(owner).get(str(part)))]
        chosen = [one for one in classes if _kind_of(one) == part]
        classes = inner or chosen or classes
    known = dict.fromkeys(name for owner in classes for name in _types(owner))
    return next(iter(near_names(str(place[-1]), known)), "")


def _types(owner: type) -> dict[str, Any]:
    try:
        hints = get_type_hints(owner)
    except NameError:  # an annotation of which the name is known to type checkers alone
        hints = {}
    return {field.name: hints.get(field.name) for field in dataclasses.fields(owner)}


def _dataclasses_in(annotation: Any) -> Iterable[type]:
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        yield annotation
        for derived in annotation.__subclasses__():  # a field may be declared as what several kinds have in common
            yield from _dataclasses_in(derived)
    for inner in get_args(annotation):
        yield from _dataclasses_in(inner)


def _kind_of(owner: type) -> object:
    return next((field.default for field in dataclasses.fields(owner) if field.name == "kind"), None)
