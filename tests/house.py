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
def imports_of(module: str) -> dict[str, int]:
    """Modules of the package that a module names in an import, whether at its top, inside a function or for types.

    Returns:
        Name to the line where it comes first. ``from rungwise.a import b`` names ``rungwise.a.b`` if that is a module,
        else ``rungwise.a``.
    """
    found: dict[str, int] = {}
    for node in ast.walk(tree_of(module)):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}, line {node.lineno}: a relative import; name the whole module"
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules() else str(node.module) for name in inside]
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
