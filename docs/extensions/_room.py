"""Directive ``room``: the public names of a module as a table with links, then what each of them is.

A page has the whole module::

    ```{room} rungwise.doctor
    ```

or, where that is too much for a page, the names in the body of the directive; with ``:part:`` the page is one of
several, and its table has these names only. What a module passes on from another public module is described there,
and linked.
"""

from __future__ import annotations

import ast
import enum
import inspect
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

_OF_PYDANTIC = ("langchain", "llama_index", "haystack", "lancedb", "mcp._mcp_server")
"""Adapters to libraries whose classes are pydantic's."""

KINDS = {
    "class": "Classes",
    "function": "Functions",
    "exception": "Exceptions",
    "type": "Types",
    "constant": "Constants",
}
"""Kinds of names, each with the heading under which a page describes them, in the order of the page."""

LONGEST_VALUE = 160
"""Characters of the longest value of a constant that is shown."""


@dataclass(frozen=True)
class Entry:
    """One public name of a module."""

    name: str
    described: str
    """Dotted name under which the reference describes it."""
    written: str
    """The module in which it is written."""
    original: str
    """Its name there."""
    kind: str
    line: str
    """The first line of its docstring."""
    text: str
    """All of the docstring of a constant or type; empty for what autodoc reads."""


@cache
def _source(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ValueError(f"there is no module {module}")
    return Path(spec.origin)


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """Every name that a module imports, with the module from which it does and the name there."""
    path = _source(module)
    stub = path.with_suffix(".pyi")
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(ast.parse((stub if stub.is_file() else path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            place = f"{module}.{node.module}" if node.level else str(node.module)
            found.update({alias.asname or alias.name: (place, alias.name) for alias in node.names})
    return found


def _described(module: str, name: str) -> str:
    """Where the reference describes a name: the first public module on the way to where it is written."""
    place, there = _imports(module).get(name, (module, name))
    owner = place.partition("._")[0]
    if place == module or owner == module or not owner.startswith("rungwise."):
        return f"{module}.{name}"
    if place == owner:
        return _described(place, there)
    return f"{module}.{name}"


def _written(module: str, name: str) -> tuple[str, str]:
    """The module in which a name is written, and its name there."""
    place, there = _imports(module).get(name, (module, name))
    return (module, name) if place == module or not place.startswith("rungwise") else _written(place, there)


@cache
def _attributes(module: str) -> dict[tuple[str, str], list[str]]:
    return ModuleAnalyzer.for_module(module).find_attr_docs()


def _kind(member: Any) -> str:
    if isinstance(member, type) and not hasattr(member, "__origin__"):
        return "exception" if issubclass(member, BaseException) else "class"
    if inspect.isroutine(member) or hasattr(member, "__wrapped__"):
        return "function"
    typing_like = type(member).__module__ in ("typing", "types", "_frozen_importlib") or hasattr(member, "__origin__")
    return "type" if typing_like and not isinstance(member, ModuleType) else "constant"


def _first_line(text: str) -> str:
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


def entries(module: str) -> list[Entry]:
    """All public names of a module, by kind and then by name."""
    room = import_module(module)
    found = []
    for name in getattr(room, "__all__", ()):
        member = getattr(room, name)
        written, original = _written(module, name)
        kind = _kind(member)
        lines = _attributes(written).get(("", original), [])
        text = "\n".join(lines).strip() if kind in ("type", "constant") else ""
        said = text or (_own_text(member) if kind not in ("type", "constant") else "")
        found.append(Entry(name, _described(module, name), written, original, kind, _first_line(said), text))
    order = list(KINDS)
    return sorted(found, key=lambda one: (order.index(one.kind), one.name.lower(), one.name))


def _own_text(member: Any) -> str:
    text = member.__dict__.get("__doc__") if isinstance(member, type) else member.__doc__
    written = not (isinstance(member, type) and (text or "").startswith(f"{member.__name__}("))
    return text if text and written and not (isinstance(member, enum.EnumMeta) and text.startswith("An enum")) else ""


@cache
def inner_modules(module: str) -> list[str]:
    """Public modules inside a module that export names, sorted."""
    path = _source(module)
    if path.name != "__init__.py":
        return []
    found = []
    for one in sorted(path.parent.rglob("*.py")):
        parts = one.relative_to(path.parent).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts and not any(part.startswith("_") for part in parts):
            name = ".".join((module, *parts))
            if "__all__" in one.read_text(encoding="utf-8") and getattr(import_module(name), "__all__", ()):
                found.append(name)
    return sorted(found)


def _docstring(module: str) -> str:
    return ast.get_docstring(ast.parse(_source(module).read_text(encoding="utf-8"))) or ""


def _value(entry: Entry) -> tuple[str, str]:
    """The type and the value of a constant or type as the source writes them; empty where they are long or missing."""
    for node in ast.parse(_source(entry.written).read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(one, ast.Name) and one.id == entry.original for one in targets):
            annotation = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
            written = getattr(node, "value", None)
            value = ast.unparse(written) if written is not None else ""
            short = len(value) <= LONGEST_VALUE and "\n" not in value and not value.startswith("_")
            return annotation, value if short else ""
    return "", ""


def _literal(entry: Entry) -> str:
    """The value of a name without a docstring, for its row of the table."""
    value = _value(entry)[1] if entry.kind in ("type", "constant") else ""
    return f"``{value}``" if value and "`" not in value else ""


def _indented(text: str) -> str:
    return "\n".join(f"   {line}".rstrip() for line in text.splitlines())


def _described_here(module: str, entry: Entry) -> str:
    full = f"{module}.{entry.name}"
    if entry.kind in ("class", "exception"):
        return f".. auto{entry.kind}:: {full}\n   :members:\n"
    if entry.kind == "function":
        return f".. autofunction:: {full}\n"
    annotation, value = _value(entry)
    lines = [f".. py:data:: {entry.name}"]
    lines += [f"   :type: {annotation}"] if annotation else []
    lines += [f"   :value: {value}"] if value else []
    return "\n".join(lines) + "\n\n" + _indented(entry.text) + "\n"


def _table(head: list[str], rows: list[list[str]], widths: str) -> str:
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", "   :class: names", ""]
    for row in [head, *rows]:
        lines += [f"   {'*' if number == 0 else ' '} - {cell}".rstrip() for number, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


class Room(SphinxDirective):
    """Table of a module's public names, table of the modules inside, and what each name is."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"part": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Make the text of the page and parse it."""
        module = self.arguments[0]
        self.env.note_dependency(_source(module))
        every = entries(module)
        chosen = " ".join(self.content).split()
        if unknown := set(chosen) - {one.name for one in every}:
            raise self.error(f"{module} does not export {', '.join(sorted(unknown))}")
        own = [one for one in every if one.described == f"{module}.{one.name}"]
        here = [one for one in own if one.name in chosen] if chosen else own
        part = "part" in self.options
        current = f".. py:{'currentmodule' if part else 'module'}:: {module}"
        further = "" if part else _docstring(module).partition("\n\n")[2]
        found = self._parsed(f"{current}\n\n{self._names(here if part else every)}\n\n{further}")
        if inner := "" if part else self._inner(module):
            found.append(self._section("Modules inside", inner))
        for kind, heading in KINDS.items():
            if said := [_described_here(module, one) for one in here if one.kind == kind]:
                text = f".. py:currentmodule:: {module}\n\n" + "\n".join(said)
                found.append(self._section(heading, text))
        return found

    def _parsed(self, text: str) -> list[nodes.Node]:
        return self.parse_text_to_nodes(f"``````{{eval-rst}}\n{text}\n``````\n")

    def _section(self, heading: str, text: str) -> nodes.section:
        # Made by hand: a heading in the text would be put on the page before the nodes that are returned.
        section = nodes.section(names=[nodes.fully_normalize_name(heading)])
        self.state.document.note_implicit_target(section, section)
        section += nodes.title(heading, heading)
        section += self._parsed(text)
        return section

    def _names(self, shown: list[Entry]) -> str:
        rows = [[f":py:obj:`{one.name} <{one.described}>`", one.kind, one.line or _literal(one)] for one in shown]
        return _table(["name", "kind", "what it is"], rows, "30 10 60")

    def _inner(self, module: str) -> str:
        if module.count(".") != 1:
            return ""
        rows = [[f":doc:`{one}`", _first_line(_docstring(one))] for one in inner_modules(module)]
        return _table(["module", "what it is for"], rows, "40 60") if rows else ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive.

    Adapters to libraries of pydantic classes are imported first: autodoc imports what it meets a second time with
    TYPE_CHECKING set, after which pydantic no longer knows its own base class, and these libraries fail.
    """
    for adapter in _OF_PYDANTIC:
        import_module(f"rungwise.integrations.{adapter}")
    app.add_directive("room", Room)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
