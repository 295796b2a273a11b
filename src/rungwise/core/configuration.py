"""Typed dataclasses as the single source of configuration: YAML in, YAML out, one-line errors."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from tyro.constructors import PrimitiveConstructorSpec

from rungwise.core.errors import UserError
from rungwise.core.reading import MissingFileError, read_text

T = TypeVar("T")

_MOST_VALUES = 100_000

STRICT = ConfigDict(extra="forbid")
"""For ``__pydantic_config__`` of a config dataclass: a misspelt key is an error, not a silently ignored wish."""


def from_plain(kind: type[T], values: Any, where: str) -> T:
    """Build a config dataclass from plain values such as YAML gives.

    Args:
        kind: The dataclass.
        values: A mapping of its fields.
        where: What to name in an error, usually the file.

    Raises:
        UserError: Naming the first field that is unknown or of the wrong type; or what the dataclass itself refuses.

    >>> @dataclasses.dataclass
    ... class Recipe:
    ...     margin: float = 0.2
    >>> from_plain(Recipe, {"margin": "wide"}, "recipe.yaml")
    Traceback (most recent call last):
    rungwise.core.errors.UserError: recipe.yaml: margin: Input should be a valid number... (got 'wide')
    """
    if not isinstance(values, dict):
        raise UserError(f"{where}: expected a mapping of settings, found {type(values).__name__}")
    try:
        return TypeAdapter(kind).validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{where}: {place}: {first['msg']} (got {_shortened(repr(first['input']))})") from None
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def check_size(name: str, value: int, most: int = 1 << 20) -> None:
    """Refuse a size, such as the length of a vector, that is not positive or that no memory holds.

    Raises:
        UserError: Naming the setting.

    >>> check_size("dimension", 0)
    Traceback (most recent call last):
    rungwise.core.errors.UserError: dimension must lie in 1..1048576, got 0
    """
    if not 1 <= value <= most:
        raise UserError(f"{name} must lie in 1..{most}, got {_shortened(repr(value))}")


by_name = BeforeValidator(lambda value: {"kind": value} if isinstance(value, str) else value)
"""For a field that is one of several configurations told apart by ``kind``: the bare kind means all its defaults."""


def on_command_line(kinds: Any) -> PrimitiveConstructorSpec[Any]:
    """For the same kind of field: one argument of a command, a name or a mapping as YAML writes it.

    Args:
        kinds: A union of dataclasses that each have a default ``kind``.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Plain:
    ...     kind: str = "plain"
    >>> @dataclasses.dataclass(frozen=True)
    ... class Chunked:
    ...     kind: str = "chunked"
    ...     chunk: int = 64
    >>> on_command_line(Plain | Chunked).instance_from_str(["{kind: chunked, chunk: 8}"])
    Chunked(kind='chunked', chunk=8)
    """
    classes = {kind: one for one in get_args(kinds) or (kinds,) for kind in (_kind_of(one),)}

    def read(words: list[str]) -> Any:
        try:
            values = parse_yaml(words[0], "the value")
        except UserError as error:
            raise ValueError(str(error)) from None
        values = {"kind": values} if isinstance(values, str) else values
        if not isinstance(values, dict) or values.get("kind") not in classes:
            raise ValueError(f"{words[0]!r} is none of {', '.join(classes)}, alone or as {{kind: NAME, option: value}}")
        try:
            return from_plain(classes[values["kind"]], values, values["kind"])
        except UserError as error:
            raise ValueError(str(error)) from None

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="{" + ",".join(classes) + "}",
        instance_from_str=read,
        is_instance=lambda value: isinstance(value, tuple(classes.values())),
        str_from_instance=lambda value: [short_text(value)],
    )


def short_text(config: Any) -> str:
    """A configuration with a ``kind`` as one line that :func:`on_command_line` reads back.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Chunked:
    ...     kind: str = "chunked"
    ...     chunk: int = 64
    >>> short_text(Chunked()), short_text(Chunked(chunk=8))
    ('chunked', '{kind: chunked, chunk: 8}')
    """
    values = changed(config)
    if not values:
        return str(config.kind)
    return yaml.safe_dump({"kind": config.kind} | values, default_flow_style=True, sort_keys=False, width=10**6).strip()


def changed(config: Any) -> dict[str, Any]:
    """The plain values of the fields that are not at their defaults.

    >>> @dataclasses.dataclass
    ... class Recipe:
    ...     margin: float = 0.2
    ...     rates: tuple[float, ...] = (2e-4,)
    >>> changed(Recipe(rates=(1e-3,)))
    {'rates': [0.001]}
    """
    values, usual = to_plain(config), _defaults(type(config))
    return {name: value for name, value in values.items() if name not in usual or value != usual[name]}


def _defaults(kind: Any) -> dict[str, Any]:
    usual = {}
    for field in dataclasses.fields(kind):
        if field.default is not dataclasses.MISSING:
            usual[field.name] = _plain(field.default)
        elif field.default_factory is not dataclasses.MISSING:
            made = field.default_factory()
            usual[field.name] = to_plain(made) if dataclasses.is_dataclass(made) else _plain(made)
    return usual


def _kind_of(one: type) -> str:
    return str(next(field.default for field in dataclasses.fields(one) if field.name == "kind"))


def load_yaml(kind: type[T], path: Path) -> T:
    """Read a config dataclass from a YAML file.

    Raises:
        UserError: If the file is missing, is no YAML, or does not fit ``kind``.
    """
    try:
        values = parse_yaml(read_text(path, "settings_bytes"), path)
    except MissingFileError:
        raise UserError(f"{path}: no such configuration file") from None
    return from_plain(kind, {} if values is None else values, str(path))


def parse_yaml(text: str, where: object) -> Any:
    """What YAML text says, in plain values.

    Args:
        text: To parse; tags that name Python objects are refused.
        where: What an error names, usually the file.

    Raises:
        UserError: If it is not YAML, is nested too deeply, or unfolds into more values than anybody writes.

    >>> parse_yaml("{margin: 0.2}", "recipe.yaml")
    {'margin': 0.2}
    >>> parse_yaml("a: *b", "recipe.yaml")
    Traceback (most recent call last):
    rungwise.core.errors.UserError: recipe.yaml, line 1: not valid YAML; found undefined alias 'b'
    """
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise UserError(f"{where}{line}: not valid YAML; {getattr(error, 'problem', 'unreadable')}") from None
    except (ValueError, TypeError, RecursionError) as error:  # a date that there is not, a list as a key, no end
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0]
        raise UserError(f"{where}: not valid YAML; {reason}") from None
    if _unfolded(values) > _MOST_VALUES:
        raise UserError(f"{where}: unfolds into more than {_MOST_VALUES:,} values; write out what its aliases mean")
    return values


def _unfolded(values: Any) -> int:
    """How many values there are when every alias is written out, counted up to a little more than the most."""
    count, left = 0, [values]
    while left and count <= _MOST_VALUES:
        one = left.pop()
        count += 1
        if isinstance(one, dict):
            left += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple, set)):
            left += one
    return count


def to_plain(config: Any) -> dict[str, Any]:
    """Fields as plain lists, mappings, numbers and strings, as YAML and JSON take them.

    >>> @dataclasses.dataclass
    ... class Recipe:
    ...     rates: tuple[float, ...] = (2e-4, 2e-5)
    >>> to_plain(Recipe())
    {'rates': [0.0002, 2e-05]}
    """
    return {key: _plain(value) for key, value in dataclasses.asdict(config).items()}


def dump_yaml(config: Any) -> str:
    """The configuration as YAML text, fields in their order of definition."""
    return yaml.safe_dump(to_plain(config), sort_keys=False, allow_unicode=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, Path):
        return value.as_posix()
    return value


def _shortened(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
