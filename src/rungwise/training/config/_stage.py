"""Configuration of a stage: the settings that differ from the run's own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator
from tyro.constructors import PrimitiveConstructorSpec

from rungwise.core import STRICT, UserError, from_plain, parse_yaml, yaml_line

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")
_OF_THE_RUN = ("preset", "stages", "data.path", "data.key", "data.layout", "data.join_restval")
"""Settings that all stages of a run share."""

_OF_THE_ENCODERS = (
    "image.frozen", "image.crops", "image.mirrored", "image.batch_norm", "text.frozen",
)  # fmt: skip
"""Settings of a model that change none of its weights: how encoders are trained, and how a picture is seen."""


@dataclass(frozen=True)
class Stage:
    """One stage of a run.

    Attributes:
        name: Name of the stage, and of its folder.
        settings: Settings of the run that differ in this stage, as plain values; see :func:`merged`.
    """

    __pydantic_config__ = STRICT

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UserError(
                f"stages: {self.name[:80]!r} names no folder; take up to 60 letters, digits, -, _ and ., a letter or"
                " digit first"
            )
        for name in _OF_THE_RUN:
            if _has(self.settings, name):
                raise UserError(
                    f"stage {self.name}: {name}: all stages of a run have the same; set it for the run, or leave it out"
                )

    def says(self, name: str) -> bool:
        """Whether a setting is given in this stage."""
        return _has(self.settings, name)


def check_names(stages: Sequence[Stage]) -> None:
    """Refuse two stages of one name, also names that differ in case only."""
    for name, count in Counter(one.name.lower() for one in stages).items():
        if count > 1:
            raise UserError(f"stages: {count} are named {name!r}; give each a name of its own")


def check_model_kept(stage: Stage, run: Mapping[str, Any], before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse a stage with ``tune: whole`` that changes the model of the stage ``before``.

    The models of the run, of the stage before and of this stage (``now``) are given as plain values.
    """
    for name in _differing(before, now):
        if name not in _OF_THE_ENCODERS and name in _differing(run, now):
            raise UserError(
                f"stage {stage.name}: model.{name}: tune: whole goes on with the model of the stage before, and only"
                f" {', '.join(_OF_THE_ENCODERS)} may change; tune: weights makes it anew, with the weights that fit"
            )


def _differing(one: Any, other: Any, name: str = "") -> list[str]:
    """Names of the values that differ, such as ``image.crops``."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        inner = ((key, f"{name}.{key}".lstrip(".")) for key in {**one, **other})
        return [found for key, place in inner for found in _differing(one.get(key), other.get(key), place)]
    return [] if one == other else [name]


def _has(settings: Any, name: str) -> bool:
    for part in name.split("."):
        if not isinstance(settings, Mapping) or part not in settings:
            return False
        settings = settings[part]
    return True


def merged(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Plain settings with changes: mappings are merged deeply; lists and single values are replaced.

    A mapping with another ``kind`` replaces the former one, and so does a ``kind`` alone, as text: it stands for that
    kind with all its defaults.

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
    """A stage in the form of YAML, where the settings stand beside the name."""
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
        str_from_instance=lambda value: [yaml_line([{"name": one.name, **one.settings} for one in value])],
    ),
]
"""Type of a field that holds stages, each a mapping of its name and of the settings that differ in it."""
