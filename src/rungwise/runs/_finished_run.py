"""A finished run as one file: its settings, its epochs and what was measured, without the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from rungwise.core import UserError, is_regular, opened_file
from rungwise.core.formats import IN_FILE, CheckedJson
from rungwise.core.output import short_repr
from rungwise.evaluation import Result, compact_result, of_compact
from rungwise.training.config import TrainConfig, config_of_settings

_HEAD = 200
"""Number of bytes of a file that tell whether it is a finished run."""


@dataclass(frozen=True)
class FinishedRun(CheckedJson):
    """A finished run without its model.

    Attributes:
        record: What a study keeps of the run: settings, hashes, machines.
        history: Numbers of each epoch.
        results: What was measured, by the hash of the question; values per query are rounded and packed.

    >>> FinishedRun.file_of(Path("runs/max/seed-0"))
    PosixPath('runs/max/seed-0.json')
    """

    __pydantic_config__ = IN_FILE
    format: ClassVar[str] = "rungwise-finished-run/1"
    remedy: ClassVar[str] = "remove the file, and the study makes the run again"

    record: Mapping[str, Any]
    history: tuple[Mapping[str, Any], ...]
    results: Mapping[str, Mapping[str, Any]]

    __repr__ = short_repr

    @classmethod
    def of(
        cls, record: Mapping[str, Any], history: tuple[Mapping[str, Any], ...], results: Mapping[str, Result]
    ) -> FinishedRun:
        """The file of a run and its results by their questions."""
        return cls(record, history, {asked: compact_result(one) for asked, one in results.items()})

    @staticmethod
    def file_of(folder: Path) -> Path:
        """The file that stands for the folder of a run, beside it."""
        return folder.with_name(f"{folder.name}.json")

    @classmethod
    def is_one(cls, path: Path) -> bool:
        """Whether a file says that it is a finished run."""
        if path.suffix != ".json" or not is_regular(path):
            return False
        try:
            with opened_file(path, None) as file:
                return f'"{cls.format}"'.encode() in file.read(_HEAD)
        except (OSError, UserError):
            return False

    @property
    def seconds(self) -> float:
        """Seconds that its epochs took, with their validation."""
        return seconds_of(self.history)

    @cached_property
    def measured(self) -> Mapping[str, Result]:
        """Results by the hash of their question."""
        return {asked: of_compact(one) for asked, one in self.results.items()}

    def config(self, where: Path) -> TrainConfig:
        """The configuration of the run, with the places of data and models empty.

        Raises:
            UserError: If a setting is not known here, such as a loss that is not imported; the file is named.
        """
        return config_of_settings(self.record["settings"], where)

    def _check_parts(self) -> None:
        if not isinstance(self.record.get("settings"), Mapping):
            raise ValueError("its record has no settings")
        self.measured  # noqa: B018, results that are damaged are refused at once


def seconds_of(history: Iterable[Mapping[str, Any]]) -> float:
    """Seconds that epochs took, with their validation."""
    return sum(float(one.get("seconds", 0.0)) + float(one.get("validation_seconds", 0.0)) for one in history)
