"""Directives of the reference: commands from their parsers, and settings from the types of configurations.

``{command} NAME`` writes what a command is for, its arguments and its options. ``relevance SOURCE`` names the options
that all sources have, and those of a single source are what it has beside them. ``{settings} CLASS`` writes the settings
of a configuration. Each option and each setting has an anchor, such as ``#option-search-k`` and
``#setting-train-config-epochs``.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from rungwise.cli import COMMANDS, main
from rungwise.cli.frame import CommandForm, Option, form_of
from rungwise.core import short_text, to_plain, yaml_line

SOURCE = "relevance SOURCE"
"""Name of what all sources of degrees have in common."""

_WORDS: dict[type, str] = {bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path"}
_BOUNDS = {"ge": "{} or more", "gt": "above {}", "le": "at most {}", "lt": "below {}"}


@dataclasses.dataclass(frozen=True)
class Setting:
    """A setting as the reference shows it."""

    name: str
    kind: str
    default: str
    meaning: str


@cache
def command_names() -> tuple[str, ...]:
    """Everything that can stand after ``rungwise``, with the words that have options of their own."""
    from rungwise.cli.index import _maintenance as maintenance
    from rungwise.cli.relevance._command import TASKS
    from rungwise.relevance.config import CONFIGS

    sources = (f"relevance {config.kind}" for config in CONFIGS)
    tasks = (f"relevance {word}" for word in TASKS)
    return (*COMMANDS, *(f"index {word}" for word in maintenance.COMMANDS), SOURCE, *sources, *tasks)


@cache
def command_form(name: str) -> CommandForm:
    """What a command asks; a source of degrees has what the other sources do not have."""
    if name == SOURCE:
        shared = _shared()
        about = "Degrees of relevance by a source: the arguments and options that every source has."
        return CommandForm(f"rungwise {SOURCE}", about, shared, ())
    form = form_of(lambda words: main([*name.split(), *words]))
    if form is None:
        return CommandForm(f"rungwise {name}", f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.", (), ())
    if name in _sources():
        return dataclasses.replace(form, options=tuple(one for one in form.options if one not in _shared()))
    return form


@cache
def _sources() -> tuple[str, ...]:
    from rungwise.relevance.config import CONFIGS

    return tuple(f"relevance {config.kind}" for config in CONFIGS)


@cache
def _shared() -> tuple[Option, ...]:
    """Options of all sources but that of people, which samples no pairs."""
    every = [
        form.options
        for name in _sources()
        if name != "relevance human" and (form := form_of(lambda words, name=name: main([*name.split(), *words])))
    ]
    return tuple(one for one in every[0] if all(one in other for other in every))


@cache
def configurations() -> tuple[type[Any], ...]:
    """The classes of all configurations that a person can write in YAML, by the types of their fields."""
    from rungwise.models.io import family
    from rungwise.models.io._families import _MODULES
    from rungwise.relevance.config import CONFIGS
    from rungwise.runs.study import StudyConfig
    from rungwise.training.config import FitConfig, TrainConfig
    from rungwise.training.config._losses import LOSSES, config_of

    for kind in _MODULES:
        family(kind)
    found: dict[type[Any], None] = {}
    losses = [config_of(LOSSES.named(name)) for name in LOSSES.names()]
    waiting: list[type[Any]] = [TrainConfig, FitConfig, StudyConfig, *losses, *CONFIGS]
    while waiting:
        one = waiting.pop(0)
        if one in found or not one.__module__.startswith("rungwise."):
            continue
        found[one] = None
        for hint in _hints(one).values():
            waiting += [below for owner in _dataclasses_in(hint) for below in (owner, *_below(owner))]
    return tuple(one for one in found if _is_written(one))


def _is_written(config: type[Any]) -> bool:
    """Whether a person writes this class: no common base of several, and no record of a fit."""
    named = {one.name: one.default for one in dataclasses.fields(config)}
    if config.__name__ == "Fitted" or config.__module__.startswith("rungwise.models.export"):
        return False
    return (
        bool(named)
        and not inspect.isabstract(config)
        and ("kind" not in named or isinstance(named["kind"], str))
        and (named.get("kind") != "")
    )


def configuration(name: str) -> type[Any]:
    """The configuration of a dotted name, also of a loss, whose configuration is made of its constructor."""
    module, _, last = name.rpartition(".")
    found: Any = getattr(import_module(module), last)
    if dataclasses.is_dataclass(found) and isinstance(found, type):
        return found
    from rungwise.training.config._losses import config_of

    return config_of(found)


def settings_of(config: type[Any], place: str = "") -> list[Setting]:
    """The settings of a configuration, in their order, without the kind that chooses it."""
    said, hints = _attributes(config), _hints(config)
    before = f"{place}." if place else ""
    return [
        Setting(f"{before}{one.name}", in_words(hints[one.name]), _default(one), said.get(one.name, ""))
        for one in dataclasses.fields(config)
        if one.name != "kind"
    ]


def purpose(config: type[Any]) -> str:
    """What a configuration is for: its docstring up to the list of its settings."""
    return _plain(re.split(r"\n\s*(?:Attributes|Args):\n", inspect.cleandoc(config.__doc__ or ""))[0])


def kind_of(config: type[Any]) -> str:
    """The name that chooses a configuration among others; empty where there are no others."""
    return next((str(one.default) for one in dataclasses.fields(config) if one.name == "kind"), "")


def in_words(hint: Any) -> str:
    """A type in plain words.

    >>> in_words(tuple[int, ...]), in_words(float | None), in_words(Literal["a", "b"])
    ('list of: whole number', 'number, or null', 'a or b')
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = [text for extra in inner[1:] for text in _bounds(extra)]
        return ", ".join([in_words(inner[0]), *bounds])
    if origin is Literal:
        words = [str(one).lower() if isinstance(one, bool) else str(one) for one in inner]
        return " or ".join([", ".join(words[:-1]), words[-1]]) if words[1:] else words[0]
    if origin in (Union, UnionType):
        if kinds := [kind_of(one) for one in inner if dataclasses.is_dataclass(one) and isinstance(one, type)]:
            return f"one of {', '.join(kinds)}" if all(kinds) else "a mapping of settings"
        words = list(dict.fromkeys(in_words(one) for one in inner if one is not NoneType))
        return f"{' or '.join(words)}{', or null' if NoneType in inner else ''}"
    if origin is tuple and inner[1:] == (...,):
        return f"list of: {in_words(inner[0])}"
    if origin is tuple:
        return f"list of {len(inner)}: {', '.join(dict.fromkeys(map(in_words, inner)))}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"list of: {in_words(inner[0])}"
    if isinstance(origin, type):
        return "mapping"
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        kinds = sorted({kind for one in (hint, *_below(hint)) if one in configurations() and (kind := kind_of(one))})
        return f"one of {', '.join(kinds)}" if kinds else "a mapping of settings"
    return _WORDS.get(hint, "any value") if isinstance(hint, type) else "any value"


def _bounds(extra: Any) -> Iterator[str]:
    for one in getattr(extra, "metadata", None) or []:
        for name, text in _BOUNDS.items():
            if getattr(one, name, None) is not None:
                yield text.format(getattr(one, name))


def _hints(config: type[Any]) -> dict[str, Any]:
    return get_type_hints(config, include_extras=True)


def _dataclasses_in(hint: Any) -> Iterator[type[Any]]:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        yield hint
    for inner in get_args(hint):
        yield from _dataclasses_in(inner)


def _below(config: type[Any]) -> Iterator[type[Any]]:
    for one in config.__subclasses__():
        yield one
        yield from _below(one)


def _attributes(config: type[Any]) -> dict[str, str]:
    """What docstrings say of each setting, also those of base classes."""
    said: dict[str, str] = {}
    for one in reversed(config.__mro__):
        section = inspect.cleandoc(one.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
        for entry in re.split(r"\n(?=\w+: )", textwrap.dedent(section)):
            name, _, text = entry.partition(":")
            said[name.strip()] = _plain(text)
    return said


def _plain(text: str) -> str:
    """Text without line breaks and roles; code stays in double backticks."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"``\1``", text)
    return " ".join(text.split())


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return "required"
    if dataclasses.is_dataclass(value):
        return short_text(value) if getattr(value, "kind", "") else "their own"
    return yaml_line(_as_yaml(value)).removesuffix("...").strip()


def _as_yaml(value: Any) -> Any:
    """A value as YAML holds it."""
    if isinstance(value, Mapping):
        return {str(name): _as_yaml(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_yaml(one) for one in value]
    return str(value) if isinstance(value, Path) else to_plain(value) if dataclasses.is_dataclass(value) else value


def _slug(name: str) -> str:
    """The part of an anchor that a name stands for."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name)
    return re.sub(r"[^a-z0-9]+", "-", apart.lower()).strip("-")


class _Reference(SphinxDirective):
    """What both directives share: paragraphs and tables whose rows have anchors."""

    required_arguments = 1
    final_argument_whitespace = True

    def _table(self, head: Sequence[str], rows: Iterable[tuple[str, Sequence[nodes.Node]]]) -> nodes.table:
        """A table; each row is its anchor and its cells."""
        group = nodes.tgroup(cols=len(head))
        group += [nodes.colspec(colwidth=1) for _ in head]
        top = nodes.row("", *(nodes.entry("", nodes.paragraph("", one)) for one in head))
        group += nodes.thead("", top)
        body = nodes.tbody()
        for anchor, cells in rows:
            entries = [nodes.entry("", nodes.paragraph("", "", *_inlines(cell))) for cell in cells]
            entries[0].children[0]["ids"].append(anchor)
            body += nodes.row("", *entries)
            self._note(anchor, cells[0].astext())
        group += body
        return nodes.table("", group, classes=["reference"])

    def _note(self, anchor: str, title: str) -> None:
        """Let pages link to an anchor by its name."""
        standard = self.env.domains.standard_domain
        standard.labels[anchor] = (self.env.docname, anchor, title)
        standard.anonlabels[anchor] = (self.env.docname, anchor)


def _inlines(cell: nodes.Node) -> list[nodes.Node]:
    return list(cell.children) if isinstance(cell, nodes.paragraph) else [cell]


def _text(text: str) -> nodes.paragraph:
    """A paragraph in which double backticks are code."""
    parts = re.split(r"``(.+?)``", text)
    return nodes.paragraph(
        "", "", *(nodes.literal("", one) if at % 2 else nodes.Text(one) for at, one in enumerate(parts) if one)
    )


class CommandDirective(_Reference):
    """``{command} NAME``."""

    def run(self) -> list[nodes.Node]:
        """The purpose, the arguments, the options and the examples."""
        name = self.arguments[0]
        form = command_form(name)
        arguments = [one for one in form.options if not one.flags]
        options = [one for one in form.options if one.flags]
        words = [f"rungwise {name}", *(one.label for one in arguments), *(["[OPTIONS]"] if options else [])]
        found: list[nodes.Node] = [_text(" ".join(one.split())) for one in form.about.split("\n\n")]
        found.append(nodes.literal_block("", "\n".join([" ".join(words), *form.examples]), language="text"))
        for head, rows in (("argument", arguments), ("option", options)):
            if rows:
                found.append(self._table((head, "default", "what it does"), (self._row(name, one) for one in rows)))
        return found

    def _row(self, name: str, option: Option) -> tuple[str, Sequence[nodes.Node]]:
        shown = option.flags[0] if option.flags else option.label
        default = option.default.strip().removeprefix("(").removesuffix(")")
        cells = (nodes.literal("", option.label), _text(f"``{default}``" if default else ""), _text(option.help))
        return f"option-{_slug(name)}-{_slug(shown)}", cells


class SettingsDirective(_Reference):
    """``{settings} CLASS``."""

    option_spec: ClassVar[dict[str, Any]] = {"place": directives.unchanged}  # type: ignore[misc]

    def run(self) -> list[nodes.Node]:
        """The purpose, the kind and the settings."""
        config = configuration(self.arguments[0])
        found: list[nodes.Node] = [_text(purpose(config))]
        rows = settings_of(config, self.options.get("place", ""))
        if rows:
            found.append(
                self._table(("setting", "value", "default", "meaning"), (self._row(config, one) for one in rows))
            )
        return found

    def _row(self, config: type[Any], setting: Setting) -> tuple[str, Sequence[nodes.Node]]:
        anchor = f"setting-{_slug(config.__name__)}-{_slug(setting.name.rpartition('.')[2])}"
        default = _text("required") if setting.default == "required" else nodes.literal("", setting.default)
        return anchor, (nodes.literal("", setting.name), _text(setting.kind), default, _text(setting.meaning))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register both directives."""
    app.add_directive("command", CommandDirective)
    app.add_directive("settings", SettingsDirective)
    return {"parallel_read_safe": True}
