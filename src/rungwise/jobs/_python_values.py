"""Values that Python gives to the options of a job: their forms, and one line for what is of another type."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, fields
from enum import Enum, auto
from functools import cache
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from rungwise.core import UserError
from rungwise.core.output import one_line

GIVEN = "given"
"""Key of the ``metadata`` of a field that Python may give more than the command line; the job checks it."""


class Form(Enum):
    """What stands in the type of a field beside what the command line can give."""

    PATH = auto()
    """A path alone."""
    DATA = auto()
    """Whatever :func:`rungwise.data.read` takes, too."""
    LIST = auto()
    """A list of the named type alone."""
    LIST_OF_ANY = auto()
    """A list, of which the job knows the members."""


class _Wanted(NamedTuple):
    """Types of a field, its form, whether these types are all that it takes, and its default."""

    types: tuple[Any, ...]
    form: Form | None
    strict: bool
    default: Any


_NAMES: Mapping[Any, str] = MappingProxyType(
    {bool: "True or False", int: "a whole number", float: "a number", str: "a text", Path: "a path"}
)
_PLURALS: Mapping[Any, str] = MappingProxyType({int: "whole numbers", float: "numbers", str: "texts", Path: "paths"})


def taken(kind: type[Any], name: str, value: Any) -> Any:
    """A value in the form of its field: a path of a text, a tuple of a list, a collection of what holds one.

    Args:
        kind: Dataclass of the options.
        name: Name of a field.
        value: What Python gave.

    Raises:
        UserError: If the field takes no such value.
    """
    wanted = _fields_of(cast(Hashable, kind)).get(name)
    if wanted is None or value is wanted.default:
        return value
    if wanted.form is Form.DATA and not _is_place(value) and (value is not None or NoneType not in wanted.types):
        return as_collection(value, name)
    given, value = value, _as(wanted.types, value)
    if wanted.form in (Form.LIST, Form.LIST_OF_ANY):
        inner = _inner(wanted.types)
        if not isinstance(value, tuple) or (wanted.form is Form.LIST and not all(_is(inner, one) for one in value)):
            raise refused(name, given, f"a list of {_PLURALS[inner] if wanted.form is Form.LIST else 'them'}")
    elif (wanted.form is Form.PATH or wanted.strict) and not any(_is(one, value) for one in wanted.types):
        raise refused(name, given, " or ".join(_said(one) for one in wanted.types if one is not NoneType))
    return value


def as_collection(value: Any, name: str) -> Any:
    """A collection of whatever :func:`rungwise.data.read` takes; a path stays one.

    Args:
        value: What Python gave.
        name: Parameter that it was given as, for errors.

    Raises:
        UserError: If it is none of these.
    """
    from rungwise.data import ImageCaptions, read

    if isinstance(value, ImageCaptions) or _is_place(value):
        return value
    try:
        return read(value)
    except UserError as error:
        error.args = (str(error).replace("path=", f"{name}="),)
        raise


def _is_place(value: object) -> bool:
    return isinstance(value, str | os.PathLike)


def refused(name: str, value: Any, wanted: str) -> UserError:
    """The refusal of a value that a parameter does not take, with what it takes."""
    return UserError(f"{name}={one_line(repr(value), 60)}: give {wanted}")


@cache
def _fields_of(kind: Any) -> Mapping[str, _Wanted]:
    hints, whole = get_type_hints(kind), get_type_hints(kind, include_extras=True)
    found = {}
    for one in fields(kind):
        if one.init and not one.metadata.get("python"):
            extras = getattr(whole[one.name], "__metadata__", ())
            form = next((extra for extra in extras if isinstance(extra, Form)), None)
            hint = hints[one.name]
            types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
            strict = not one.metadata.get(GIVEN) and all(_is_plain(part) for part in types)
            found[one.name] = _Wanted(types, form, strict, MISSING if one.default is MISSING else one.default)
    return found


def _is_plain(part: Any) -> bool:
    return part in (bool, int, float, str, Path, NoneType) or get_origin(part) is Literal


def _is(wanted: Any, value: Any) -> bool:
    """Whether a value is of a plain type; a whole number is a number, and True is none."""
    if get_origin(wanted) is Literal:
        return type(value) in {type(one) for one in get_args(wanted)} and value in get_args(wanted)
    if wanted in (int, float):
        from numbers import Integral, Real

        return isinstance(value, Integral if wanted is int else Real) and not isinstance(value, bool)
    return isinstance(value, wanted)


def _said(wanted: Any) -> str:
    if get_origin(wanted) is Literal:
        return ", ".join(repr(one) for one in get_args(wanted))
    return _NAMES[wanted]


def _inner(types: tuple[Any, ...]) -> Any:
    return next((get_args(one)[0] for one in types if get_origin(one) is tuple), None)


def _as(types: tuple[Any, ...], value: Any) -> Any:
    """A value in the form of one of these types, where it has another form of the same."""
    if (inner := _inner(types)) is not None or {bool, int, float} & set(types):
        value = plain_value(value)
    if inner is not None:
        if _is_place(value):
            value = (value,)
        return tuple(_as((inner,), one) for one in value) if isinstance(value, list | tuple) else value
    if Path in types and _is_place(value):
        return Path(value)
    if str in types and isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


def plain_value(value: Any) -> Any:
    """A number or list of numpy as Python's own, also within lists and mappings: JSON knows no others.

    >>> import numpy as np
    >>> plain_value({"seeds": (np.int64(3), 4), "rates": np.array([0.5])})
    {'seeds': [3, 4], 'rates': [0.5]}
    """
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain_value(one) for one in value]
    return {name: plain_value(one) for name, one in value.items()} if isinstance(value, dict) else value
