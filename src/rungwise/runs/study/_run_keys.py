"""What a run depends on, and the hash of it, by which a study knows its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rungwise.core import digest_of_json, is_regular, to_plain
from rungwise.core.disk import digest_of
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions
from rungwise.models import load
from rungwise.relevance import load as load_degrees
from rungwise.relevance.config import names_source
from rungwise.runs._systems import SAME_NUMBERS, take_out
from rungwise.training.config import TrainConfig
from rungwise.training.engine import differing, started_from

NUMBERS = 1
"""Number of what trainings compute; a change of rungwise that gives other weights for the same run raises it."""

_LATER = {"model.text.counted_pieces": 0}
"""Settings that are younger than runs which are kept, with the value by which they change no number.

With this value they are no part of what a run depends on, so that older runs stay known.
"""

_OF_FILES = ("start", "data.relevance", "data.judgements", "snapshot.relevance")
"""Settings that may name files, whose content counts and not their place."""


@dataclass(frozen=True)
class RunIdentity:
    """All that the numbers of a run depend on.

    Attributes:
        settings: Settings that change numbers, with the seed; names of files are empty where their content is known.
        data_hash: Hash of the collection with its splits.
        files: Hashes of the model that the run starts from and of other files, by the setting that names them.
        numbers: :data:`NUMBERS`.
    """

    settings: Mapping[str, Any]
    data_hash: str
    files: Mapping[str, str]
    numbers: int = NUMBERS

    __repr__ = short_repr

    @property
    def key(self) -> str:
        """Hash of all of it, whatever the order of settings."""
        return digest_of_json([self.settings, self.data_hash, self.files, self.numbers])

    @property
    def system(self) -> str:
        """Hash of all but the seed: runs of one system differ in their seed alone."""
        settings = {name: value for name, value in self.settings.items() if name != "seed"}
        return digest_of_json([settings, self.data_hash, self.files, self.numbers])


def identity_of_run(config: TrainConfig, data_hash: str) -> RunIdentity:
    """What a run of a configuration depends on.

    Args:
        config: The configuration, with its seed.
        data_hash: Hash of the collection with its splits (:func:`data_hash_of`).

    Raises:
        UserError: If a model or file that it names cannot be read.
    """
    settings = to_plain(config)
    for name in SAME_NUMBERS:
        if name != "seed":
            take_out(settings, name)
    for name, without_effect in _LATER.items():
        if _value_at(settings, name) == without_effect:
            take_out(settings, name)
    files = {}
    for name in _OF_FILES:
        if (digest := _digest_of(name, _value(settings, name))) is not None:
            files[name] = digest
            _set(settings, name, "")
    return RunIdentity(settings, data_hash, files)


def data_hash_of(data: ImageCaptions) -> str:
    """Hash of a collection, and of the split of each picture."""
    return digest_of_json([data.content_hash(), list(data.splits)])


def changes(then: RunIdentity, now: RunIdentity) -> list[str]:
    """What differs between two runs, as lines such as ``loss.margin: 0.2 then, 0.3 now``."""
    lines = differing(dict(then.settings), dict(now.settings))
    for name in sorted({*then.files, *now.files}):
        if then.files.get(name) != now.files.get(name):
            lines.append(f"{name}: another content now")
    if then.data_hash != now.data_hash:
        lines.append("data: other pictures, captions or splits now")
    if then.numbers != now.numbers:
        lines.append("rungwise: a version with other numbers now")
    return lines


def _digest_of(name: str, value: str) -> str | None:
    """Hash of what a setting names; None where it names no file."""
    if not value:
        return None
    if name == "start":
        return load(started_from(value), "cpu").fingerprint
    if name == "data.judgements":
        return digest_of(Path(value)) if is_regular(Path(value)) else None
    return None if names_source(value) else load_degrees(Path(value)).content_hash()


def _value(settings: Mapping[str, Any], name: str) -> str:
    found = _value_at(settings, name)
    return found if isinstance(found, str) else ""


def _value_at(settings: Mapping[str, Any], name: str) -> Any:
    found: Any = settings
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _set(settings: dict[str, Any], name: str, value: Any) -> None:
    *groups, last = name.split(".")
    for part in groups:
        settings = settings[part]
    settings[last] = value
