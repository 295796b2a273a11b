"""A job: options that Python and the command line share, and the function of Python that they make."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields
from inspect import Parameter, Signature, cleandoc, signature
from textwrap import dedent
from types import MappingProxyType
from typing import Annotated, Any, ParamSpec, TypeVar, cast, get_type_hints

import tyro

from rungwise.core import UserError
from rungwise.core.text import near_names, refuse_idle
from rungwise.jobs._python_values import GIVEN, taken
from rungwise.jobs._terminal import flag, quietly

P = ParamSpec("P")
O = TypeVar("O", bound="JobOptions")  # noqa: E741
R = TypeVar("R")
T = TypeVar("T")

PYTHON: MappingProxyType[str, Any] = MappingProxyType({"python": True})
"""``metadata`` of a field that Python alone can give: the command line does not show it."""

OnlyPython = Annotated[T, tyro.conf.Suppress, tyro.conf.Fixed]
"""Type of such a field."""

_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*\w)"
_FLAG = re.compile(
    rf"(?<![\w-])--(?:no-)?(?P<name>[a-z]+(?:-[a-z]+)*)\b(?!\.\w)(?P<values>(?: {_NUMBER})*)(?P<more> (?=--))?"
)
"""An option, the numbers that follow it, and the blank before another option."""


@dataclass
class JobOptions:
    """Base of the options of a job: one list of them, from which both front doors are made.

    The command line is generated from the dataclass, and :func:`function_of` makes the function of Python.

    Attributes:
        quiet: Print nothing; errors are raised all the same.
    """

    quiet: OnlyPython[bool] = field(default=False, metadata=PYTHON, kw_only=True)

    def __post_init__(self) -> None:
        """Give each field its form, and refuse what is none of its type (:mod:`rungwise.jobs._python_values`)."""
        for one in fields(self):
            setattr(self, one.name, taken(type(self), one.name, getattr(self, one.name)))


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
    parameters = signature(options)

    def call(*given: P.args, **named: P.kwargs) -> R:
        _check_parameters(name, parameters, given, named)
        with called_from_python(bool(named.get("quiet")), parameters.parameters):
            asked = options(*given, **named)
            refuse_idle(asked, option=flag)
            return work(asked)

    call.__name__ = call.__qualname__ = name
    returned = signature(work).return_annotation
    call.__signature__ = _plain(options, parameters).replace(return_annotation=returned)  # type: ignore[attr-defined]
    own = cleandoc(options.__doc__ or "").replace("\nAttributes:\n", "\nArgs:\n", 1)
    call.__doc__ = f"{own}\n\n{dedent(about).strip()}\n"
    return call


@contextmanager
def called_from_python(quiet: bool = False, names: Container[str] | None = None) -> Iterator[None]:
    """Context in which errors name parameters in place of options of the command line.

    Args:
        quiet: Print nothing within.
        names: Parameters of the function; other options stay as they are, such as those of another program. None takes
            every option for a parameter.

    >>> with called_from_python():
    ...     raise UserError("give --relevance-from 0.5, or leave --no-fold out")
    Traceback (most recent call last):
    rungwise.core.UserError: give relevance_from=0.5, or leave fold= out
    >>> with called_from_python():
    ...     raise UserError("write --epochs 1 1 --learning-rates 0.001")
    Traceback (most recent call last):
    rungwise.core.UserError: write epochs=(1, 1), learning_rates=0.001
    """

    def named(found: re.Match[str]) -> str:
        name, values = found["name"].replace("-", "_"), ", ".join(found["values"].split())
        if names is not None and name not in names:
            return found[0]
        return f"{name}={f'({values})' if ',' in values else values}{', ' if found['more'] else ''}"

    try:
        with quietly() if quiet else nullcontext():
            yield
    except UserError as error:
        if error.args:
            error.args = (_FLAG.sub(named, str(error.args[0])),)
        raise


def _check_parameters(name: str, parameters: Signature, given: Sequence[object], named: Mapping[str, object]) -> None:
    """Refuse a parameter that a function does not have, and say which one is missing."""
    for one in named:
        if one not in parameters.parameters:
            near = near_names(one, parameters.parameters, 1)
            raise UserError(f"{name}() has no parameter {one}={f'; did you mean {near[0]}=?' if near else ''}")
    try:
        parameters.bind(*given, **named)
    except TypeError as error:
        raise UserError(f"{name}(): {error}") from None


def _plain(options: Callable[..., Any], parameters: Signature) -> Signature:
    """A signature as people read it: the types without what is for the command line; of what takes more, none."""
    hints, wide = get_type_hints(options), {one.name for one in fields(cast(Any, options)) if one.metadata.get(GIVEN)}
    return parameters.replace(
        parameters=[
            one.replace(annotation=Parameter.empty if name in wide else hints[name])
            for name, one in parameters.parameters.items()
        ]
    )
