"""Typed dataclasses as the single source of configuration: YAML in, YAML out, one-line errors."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from rungwise.core.errors import UserError

T = TypeVar("T")

STRICT = ConfigDict(extra="forbid")
"""For ``__pydantic_config__`` of a config dataclass: a misspelt key is an error, not a silently ignored wish."""


def from_plain(kind: type[T], values: Any, where: str) -> T:
    """Build a config dataclass from plain values such as YAML gives.

    Args:
        kind: The dataclass.
        values: A mapping of its fields.
        where: What to name in an error, usually the file.

    Raises:
        UserError: Naming the first field that is unknown or of the wrong type.

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
        raise UserError(f"{where}: {place}: {first['msg']} (got {first['input']!r})") from None


def load_yaml(kind: type[T], path: Path) -> T:
    """Read a config dataclass from a YAML file.

    Raises:
        UserError: If the file is missing, is no YAML, or does not fit ``kind``.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such configuration file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise UserError(f"{path}{line}: not valid YAML; {getattr(error, 'problem', 'unreadable')}") from None
    return from_plain(kind, {} if values is None else values, str(path))


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
