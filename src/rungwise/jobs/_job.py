"""A job: options that Python and the command line share, and the function of Python that they make."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from functools import cache
from inspect import cleandoc, signature
from pathlib import Path
from textwrap import dedent
from types import MappingProxyType
from typing import Annotated, Any, ParamSpec, TypeVar, cast, get_args, get_origin, get_type_hints

import tyro

from rungwise.core import UserError
from rungwise.jobs._terminal import quietly

P = ParamSpec("P")
O = TypeVar("O", bound="JobOptions")  # noqa: E741
R = TypeVar("R")
T = TypeVar("T")

PYTHON: MappingProxyType[str, Any] = MappingProxyType({"python": True})
"""``metadata`` of a field that Python alone can give: the command line does not show it."""

OnlyPython = Annotated[T, tyro.conf.Suppress, tyro.conf.Fixed]
"""Type of such a field."""

_FLAG = re.compile(r"(?<![\w-])--(no-)?([a-z]+(?:-[a-z]+)*)\b")


@dataclass
class JobOptions:
    """Base of the options of a job: one list of them, from which both front doors are made.

    The command line is generated from the dataclass, and :func:`function_of` makes the function of Python.

    Attributes:
        quiet: Print nothing; errors are raised all the same.
    """

    quiet: OnlyPython[bool] = field(default=False, metadata=PYTHON, kw_only=True)

    def __post_init__(self) -> None:
        """Make paths of texts, and tuples of lists, where a field is one."""
        for name, wanted in _plain_types(cast(Hashable, type(self))).items():
            setattr(self, name, _as(wanted, getattr(self, name)))


def function_of(name: str, options: Callable[P, O], work: Callable[[O], R], about: str) -> Callable[P, R]:
    """The function of Python that does a job, with the options of its command as parameters and the same defaults.

    Messages and progress are printed as by the command, unless ``quiet`` is true. Errors name parameters where those of
    the command name options.

    Args:
        name: Name of the function in the package.
        options: Dataclass of the options.
        work: What is done with them.
        about: End of the docstring: what is returned, and an example.
    """

    def call(*given: P.args, **named: P.kwargs) -> R:
        asked = options(*given, **named)
        with quietly() if asked.quiet else nullcontext(), in_terms_of_python():
            return work(asked)

    call.__name__ = call.__qualname__ = name
    returned = signature(work).return_annotation
    call.__signature__ = signature(options).replace(return_annotation=returned)  # type: ignore[attr-defined]
    own = cleandoc(options.__doc__ or "").replace("\nAttributes:\n", "\nArgs:\n", 1)
    call.__doc__ = f"{own}\n\n{dedent(about).strip()}\n"
    return call


class in_terms_of_python:  # noqa: N801 - a context that is written like a function
    """Context in which errors name parameters of Python in place of options of the command line.

    >>> with in_terms_of_python():
    ...     raise UserError("give --relevance-from 0.5, or leave --no-fold out")
    Traceback (most recent call last):
    rungwise.core.UserError: give relevance_from= 0.5, or leave fold= out
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, UserError) and error.args:
            error.args = (_FLAG.sub(lambda found: found[2].replace("-", "_") + "=", str(error.args[0])),)


@cache
def _plain_types(kind: Any) -> Mapping[str, Any]:
    """``Path`` or ``tuple`` by the names of fields of that type, so that either form of it may be given."""
    found: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for one in fields(kind):
        if not one.init or one.metadata.get("python"):
            continue
        options = [hints[one.name], *get_args(hints[one.name])]
        plain = {option for option in options if option in (Path, str)}
        pairs = [option for option in options if get_origin(option) is tuple]
        if pairs:
            found[one.name] = (tuple, get_args(pairs[0])[0])
        elif plain:
            found[one.name] = plain.pop()
    return found


def _as(wanted: Any, value: Any) -> Any:
    """A value in the form of its field, where it has another form of the same."""
    if wanted is Path and isinstance(value, str | os.PathLike):
        return Path(value)
    if wanted is str and isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(wanted, tuple):
        inner = wanted[1]
        if isinstance(value, str | os.PathLike):
            value = (value,)
        if isinstance(value, list | tuple):
            return tuple(_as(inner, one) for one in value)
    return value
