"""Where parts come from: what a folder records of it, and what a message says when such a part is missing.

A folder of a run, a model or an index names the modules and packages of its parts. These names are printed, and nothing
is imported because of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from shlex import quote
from typing import Any

from rungwise.core import UncheckedError, UserError
from rungwise.core.output import printable, short_repr
from rungwise.parts._entry_points import package_of
from rungwise.parts._named_modules import is_imported, is_on_path, module_name, named_modules

_PACKAGE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_LONGEST = 300
_MOST = 20
_OURS = "rungwise"
_NO_MODULE = "__main__"
"""Module of what a script or notebook defines, which nobody can import by name."""


@dataclass(frozen=True)
class Origins:
    """Modules to name, and packages to install, before the parts of something can be found.

    Attributes:
        modules: Names of modules.
        packages: Names of packages whose entry points gave parts.
    """

    modules: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()

    __repr__ = short_repr

    def __or__(self, other: Origins) -> Origins:
        """The origins of both, each once."""
        modules, packages = (dict.fromkeys(a + b) for a, b in zip(_both(self), _both(other), strict=True))
        files = {module_name(one) for one in modules if module_name(one) != one}  # which say more than the names alone
        return Origins(tuple(one for one in modules if one not in files), tuple(packages))

    def to_plain(self) -> dict[str, list[str]]:
        """As JSON keeps it; empty where there is nothing to name."""
        return {name: list(own) for name, own in zip(("modules", "packages"), _both(self), strict=True) if own}

    @property
    def missing(self) -> str:
        """What is missing of these in this process, with the remedy; empty where nothing is.

        >>> Origins(("mylosses",)).missing
        'it was made with the module mylosses, and what a folder names is not imported; if you trust it, give ...'
        """
        modules = [one for one in self.modules if not is_imported(one)]
        if modules:
            which, them = ("modules", "them") if len(modules) > 1 else ("module", "it")
            return (
                f"it was made with the {which} {', '.join(modules)}, and what a folder names is not imported; if you"
                f" trust {them}, give {_to_give(modules)}, or import {them} in Python"
            )
        if self.packages:
            which = "packages" if len(self.packages) > 1 else "package"
            names = " ".join(self.packages)
            return f"it was made with the {which} {', '.join(self.packages)}; install it: pip install {names}"
        return ""


def _to_give(modules: Iterable[str]) -> str:
    """The options that name modules; one without a dot that is not on the import path was a file somewhere."""
    by_name: list[str] = []
    by_file: list[str] = []
    for one in modules:
        (by_name if "." in one or is_on_path(one) else by_file).append(one)
    said = [" ".join(f"--module {quote(one)}" for one in by_name)] if by_name else []
    if by_file:
        given = " ".join(f"--module {quote(one + '.py')}" for one in by_file)
        said.append(f"{'its file' if len(by_file) == 1 else 'their files'}, such as {given}")
    return " and ".join(said)


def _both(origins: Origins) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return origins.modules, origins.packages


def origins_of(*parts: Any) -> Origins:
    """Origins of classes, of configurations with all that stands in them, and of other objects; ours have none.

    >>> origins_of(Origins, Origins())
    Origins(modules=(), packages=())
    """
    found = Origins()
    for part in parts:
        for one in _classes(part):
            found |= _of_module(one.__module__)
    return found


def _classes(part: Any) -> Iterator[type]:
    if isinstance(part, type):
        yield part
    elif isinstance(part, list | tuple):
        for one in part:
            yield from _classes(one)
    elif is_dataclass(part):
        yield type(part)
        for field in fields(part):
            yield from _classes(getattr(part, field.name))
    elif part is not None and type(part).__module__ != "builtins":
        yield type(part)


def _of_module(module: str) -> Origins:
    root = module.partition(".")[0]
    if root in (_OURS, _NO_MODULE, *_standard()):
        return Origins()
    if package := package_of(module):
        return Origins(packages=(package,))
    named = (module_name(one) for one in named_modules())
    return Origins((next((one for one in named if module == one or module.startswith(f"{one}.")), module),))


def _standard() -> frozenset[str]:
    """Modules of Python itself and of the libraries whose values stand in configurations."""
    return sys.stdlib_module_names | {"numpy", "torch"}


def recorded_in(values: Any) -> Origins:
    """What a folder says of the origins of its parts; names that could be no names are left out.

    >>> recorded_in({"modules": ["mylosses", "; rm -rf x"], "packages": 3})
    Origins(modules=('mylosses',), packages=())
    """
    if not isinstance(values, Mapping):
        return Origins()
    modules, packages = (_texts(values.get(name)) for name in ("modules", "packages"))
    return Origins(tuple(filter(_is_module, modules)), tuple(filter(_PACKAGE.fullmatch, packages)))


def _texts(value: Any) -> list[str]:
    listed: Iterable[Any] = value[:_MOST] if isinstance(value, list | tuple) else ()
    return [one for one in listed if isinstance(one, str) and len(one) <= _LONGEST and printable(one) == one]


def _is_module(text: str) -> bool:
    """Whether a text may name a module: a dotted name, or the path of a file of Python."""
    return bool(_PACKAGE.fullmatch(text)) or (text.endswith(".py") and "\n" not in text)


_NOTHING = Origins()
_record: ContextVar[Origins] = ContextVar("record", default=_NOTHING)


@contextmanager
def recorded(origins: Origins) -> Iterator[None]:
    """Within the block, messages on parts that are missing say what a folder records of their origins.

    Raises:
        UncheckedError: In place of an error that says it: what is missing here says nothing of whether a folder is
            whole.
    """
    before = _record.set(origins)
    try:
        yield
    except UncheckedError:
        raise
    except UserError as error:
        if (lacking := origins.missing) and lacking in str(error):
            raise UncheckedError(str(error), parameters=error.parameters) from error
        raise
    finally:
        _record.reset(before)


def remedy() -> str:
    """What the folder that is being read says of a missing part; empty where none is read, or it says nothing."""
    return _record.get().missing
