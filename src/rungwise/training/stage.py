"""A stage of a run, as a configuration says it: what differs from the run's own settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator
from tyro.constructors import PrimitiveConstructorSpec

from rungwise.core.configuration import STRICT, from_plain, parse_yaml
from rungwise.core.errors import UserError


@dataclass(frozen=True)
class Stage:
    """One stage of a run.

    Attributes:
        name: Of the stage; its folder is named after it.
        settings: Settings of the run that differ in this stage, as plain values.
    """

    __pydantic_config__ = STRICT

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def merged(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Plain settings with some of them changed: mappings deeply, anything else as a whole.

    A mapping that names another ``kind`` takes the place of the former one.

    >>> merged({"loss": {"kind": "ladder", "margins": [0.2]}, "seed": 0}, {"loss": {"margins": [0.3]}})
    {'loss': {'kind': 'ladder', 'margins': [0.3]}, 'seed': 0}
    """
    found = dict(settings)
    for name, value in changes.items():
        before = found.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping) and _of_one_kind(before, value):
            found[name] = merged(before, value)
        else:
            found[name] = value
    return found


def _of_one_kind(before: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    return bool(value.get("kind", before.get("kind")) == before.get("kind"))


def _flat(value: Any) -> Any:
    """A stage as YAML says it, where the settings stand beside the name."""
    if not isinstance(value, Mapping) or "settings" in value:
        return value
    return {"name": value.get("name"), "settings": {key: one for key, one in value.items() if key != "name"}}


@dataclass(frozen=True)
class _Stages:
    stages: tuple[Annotated[Stage, BeforeValidator(_flat)], ...] = ()


def _read(words: list[str]) -> tuple[Stage, ...]:
    try:
        return from_plain(_Stages, {"stages": parse_yaml(words[0], "the value")}, "stages").stages
    except UserError as error:
        raise ValueError(str(error)) from None


AnyStages = Annotated[
    tuple[Annotated[Stage, BeforeValidator(_flat)], ...],
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="[{name: NAME, SETTING: VALUE, ...}, ...]",
        instance_from_str=_read,
        is_instance=lambda value: isinstance(value, tuple) and all(isinstance(one, Stage) for one in value),
        str_from_instance=lambda value: [
            yaml.safe_dump(
                [{"name": one.name, **one.settings} for one in value], default_flow_style=True, sort_keys=False
            ).strip()
        ],
    ),
]
"""A field of a configuration: stages, each a mapping of its name and of the settings that differ in it."""
