"""What the source says of itself: its modules, what they import, and which names they define."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import rungwise

PACKAGE = Path(rungwise.__file__).parent


@cache
def modules() -> dict[str, Path]:
    """Dotted name of every module and package to its file."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


@cache
def exports_of(package: str) -> dict[str, str]:
    """What a room exports: each name with the module, or inner room, from which the room has it."""
    path = modules()[package]
    stub = path.with_suffix(".pyi")
    found = {}
    for node in ast.parse((stub if stub.is_file() else path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            place = f"{package}.{node.module}" if node.level else str(node.module)
            found.update({alias.asname or alias.name: place for alias in node.names})
    return {
        name: place for name, place in found.items() if place.startswith("rungwise.") and place != "rungwise._exports"
    }


def module_of(place: str, name: str) -> str:
    """The module in which a name is written that is imported from a module or a room."""
    if f"{place}.{name}" in modules():
        return f"{place}.{name}"
    further = exports_of(place).get(name) if place in modules() and modules()[place].stem == "__init__" else None
    return place if further is None else module_of(further, name)


@cache
def imports_of(module: str) -> dict[str, int]:
    """Modules of the package that a module names in an import, whether at its top, inside a function or for types.

    Returns:
        Name to the line where it comes first. ``from rungwise.a import b`` names ``rungwise.a.b`` if that is a module,
        else the module from which ``rungwise.a`` has what it exports as ``b``.
    """
    found: dict[str, int] = {}
    for node in ast.walk(tree_of(module)):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}, line {node.lineno}: a relative import; name the whole module"
            names = [module_of(str(node.module), alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name in modules():
                found.setdefault(name, node.lineno)
    return found


def room_of(module: str) -> str:
    """The folder below the package, or the module itself where it stands beside the folders; empty for the package."""
    return module.partition(".")[2].partition(".")[0]


@cache
def definitions_in(module: str) -> frozenset[str]:
    """Names of a module's classes, functions and methods, and of what is assigned at the top of it or of a class."""
    found = set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        if isinstance(node, (ast.Module, ast.ClassDef)):
            for inner in node.body:
                targets = inner.targets if isinstance(inner, ast.Assign) else [getattr(inner, "target", None)]
                found.update(target.id for target in targets if isinstance(target, ast.Name))
    return frozenset(found - {"__all__"})


@cache
def definitions() -> frozenset[str]:
    """Those of all modules."""
    return frozenset().union(*(definitions_in(module) for module in modules()))
