"""Entry points of installed packages, by which a package offers parts under names of their own.

Their names are read from the packages' metadata, which runs no code of them.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Literal, get_args

from rungwise.core import UserError

Group = Literal["losses", "measures", "relevance", "encoders", "readers", "stores"]
GROUPS: tuple[Group, ...] = get_args(Group)
"""Groups of entry points, each below ``rungwise.``, such as ``rungwise.losses``."""

_packages: dict[str, str] = {}
"""Packages by the modules that were loaded of their entry points."""


def offered(group: Group) -> dict[str, tuple[EntryPoint, ...]]:
    """Entry points of a group by name; nothing of them is loaded."""
    found: dict[str, tuple[EntryPoint, ...]] = {}
    for one in entry_points(group=f"rungwise.{group}"):
        found[one.name] = (*found.get(one.name, ()), one)
    return found


def load_offered(group: Group, name: str) -> str | None:
    """Load the entry point of a name; gives the package that it is of, None where no package has one.

    Raises:
        UserError: In one line, if two packages offer the name, or the code of the package fails.
    """
    found = offered(group).get(name, ())
    if not found:
        return None
    packages = sorted({_package(one) for one in found})
    if len(packages) > 1:
        raise UserError(
            f"{name!r} is offered by several packages under rungwise.{group}: {', '.join(packages)}; uninstall all but"
            " one"
        )
    try:
        found[0].load()
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())[:200] or "no reason given"
        raise UserError(
            f"the package {packages[0]} offers {name!r} under rungwise.{group}, but {found[0].value} cannot be loaded"
            f" ({type(error).__name__}: {said}); mend or uninstall it"
        ) from error
    _packages[found[0].module] = packages[0]
    return packages[0]


def package_of(module: str) -> str | None:
    """The package by whose entry point a module, or one that it is a part of, was loaded."""
    return next((name for loaded, name in _packages.items() if _is_part(module, loaded)), None)


def _is_part(module: str, loaded: str) -> bool:
    """Whether a module lies in the same package of modules as one that was loaded."""
    return module.partition(".")[0] == loaded.partition(".")[0]


def _package(one: EntryPoint) -> str:
    return one.dist.name if one.dist is not None else one.module
