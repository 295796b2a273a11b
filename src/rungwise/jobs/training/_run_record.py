"""What is known of a run, and the forms that it prints and turns into."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from rungwise.core import digest_of_json, from_plain, parse_json, read_text, to_plain
from rungwise.core.formats import IN_FILE, AlteredError, JsonForm, as_json, read_as
from rungwise.core.output import InTables, TextTable, cut, frame_of, notebook_html, one_line
from rungwise.jobs._terminal import shortest
from rungwise.parts import recorded, recorded_in
from rungwise.training import HISTORY

if TYPE_CHECKING:
    import pandas

    from rungwise.data import ImageCaptions
    from rungwise.training.config import AnyRunConfig

_OF_THE_MACHINE = frozenset({"seconds", "data_seconds", "validation_seconds", "pairs_per_second", "peak_memory_gb"})
"""Columns of a history that tables for people leave out."""
_MOST_ROWS = 12
"""Number of epochs that a notebook shows."""
_WIDTH = 120


@dataclass(frozen=True)
class RunRecord(InTables, JsonForm, os.PathLike[str]):
    """A training or a fit, as it stands in its folder, for which it stands wherever a folder may be given.

    Attributes:
        folder: Folder of the run. Of several seeds, that of the median run by rsum.
        config: What was run.
        measure: Measure that chose the model on the validation split; empty where that is not known.
        best_value: Value of this measure; None where there is no model yet.
        best_epoch: Epoch of the model, from 1; 0 for a fit.
        finished: Whether the run came to its end; one that was stopped can be resumed.
        seeds: Runs by their seeds, where several were trained; else empty.
        data: What it was trained on, where that was given as a value.
    """

    format: ClassVar[str] = "rungwise-run/1"

    folder: Path
    config: AnyRunConfig = field(repr=False, hash=False)
    measure: str = ""
    best_value: float | None = None
    best_epoch: int = 0
    finished: bool = True
    seeds: Mapping[int, Self] = field(default_factory=dict, hash=False)
    data: ImageCaptions | None = field(default=None, repr=False, compare=False)
    _history: tuple[dict[str, Any], ...] | None = field(default=None, repr=False, compare=False)

    def __fspath__(self) -> str:
        return shortest(self.folder)

    def __repr__(self) -> str:
        """A few lines: where it stands, what it is, how good it was on validation."""
        return "\n".join(cut(line, _WIDTH) for line in (self._title(), *(f"  {line}" for line in self._below())))

    def _repr_html_(self) -> str:
        history = self.history
        rows = history[-_MOST_ROWS:]
        left = len(history) - len(rows)
        more = [f"{left:,} earlier rows are not shown; to_frame() and to_markdown() have all"] if left else []
        return notebook_html(self._title(), _table(rows).html() if rows else "", [*self._below(), *more])

    @property
    def history(self) -> list[dict[str, Any]]:
        """Measured numbers of each epoch, or of each combination of a grid: those of the text for a run from JSON."""
        if self._history is not None:
            return [dict(row) for row in self._history]
        path = self.folder / HISTORY
        return [parse_json(line, path, finite=False) for line in read_text(path, "text_bytes").splitlines()]

    def to_frame(self) -> pandas.DataFrame:
        """A row for each epoch, or for each combination of a grid, with all numbers of the history.

        Raises:
            UserError: If pandas is not installed.
        """
        history = self.history
        columns = {name: [row.get(name, math.nan) for row in history] for name in _names(history)}
        index = "epoch" if "epoch" in columns else "row"
        return frame_of({"row": list(range(1, len(history) + 1))} | columns if index == "row" else columns, index)

    def _title(self) -> str:
        state = "finished" if self.finished else f"stopped after epoch {len(self.history)}; resume() goes on"
        return f"run {one_line(shortest(self.folder), 60)}: {self.config.model.kind}, {state}"

    def _tables(self) -> list[TextTable]:
        return [_table(self.history)]

    def _below(self) -> list[str]:
        given = "unknown" if self.data is None else self.data.name
        lines = [f"data: {one_line(self.config.data.path or given, 80)}"]
        if self.measure:
            value = "none" if self.best_value is None else f"{self.best_value:.4g}"
            epoch = f" in epoch {self.best_epoch}" if self.best_epoch else ""
            lines.append(f"validation {self.measure} {value}{epoch}")
        if self.seeds:
            lines.append(f"the median of the seeds {', '.join(map(str, self.seeds))}")
        return lines

    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "folder": str(self.folder),
            "config": to_plain(self.config),
            **{name: getattr(self, name) for name in ("measure", "best_value", "best_epoch", "finished")},
            "seeds": {str(seed): run._content() for seed, run in self.seeds.items()},
            "history": self.history,
        }
        content = as_json(content)
        return content | {"checksum": digest_of_json(content)}

    @classmethod
    def _of_content(cls, content: dict[str, Any]) -> Self:
        from rungwise.training.config import config_type

        checked_by = content.pop("checksum", None)
        if checked_by != digest_of_json(content):
            raise AlteredError
        read = read_as(_RunText, content)
        with recorded(recorded_in(read.config)):
            config = from_plain(config_type(read.config), read.config, "config")
        return cls(
            Path(read.folder),
            config,
            read.measure,
            read.best_value,
            read.best_epoch,
            read.finished,
            {int(seed): cls._of_content(own) for seed, own in read.seeds.items()},
            _history=tuple(
                {name: math.nan if value is None else value for name, value in row.items()} for row in read.history
            ),
        )


@dataclass(frozen=True)
class _RunText:
    """The parts of a run's JSON."""

    __pydantic_config__ = IN_FILE

    folder: str
    config: dict[str, Any]
    measure: str
    best_value: float | None
    best_epoch: int
    finished: bool
    seeds: dict[str, dict[str, Any]]
    history: list[dict[str, float | str | None]]


def _names(history: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in history for name in row))


def _table(history: Sequence[Mapping[str, Any]]) -> TextTable:
    """The history as people read it, without what is about the machine."""
    head = [name for name in _names(history) if name not in _OF_THE_MACHINE]
    return TextTable(head, [[_cell(row.get(name)) for name in head] for row in history])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, int | float) else one_line(str(value), 60)
