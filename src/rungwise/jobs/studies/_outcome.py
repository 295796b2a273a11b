"""What came of a study, and the forms that it prints and turns into."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core.output import InTables, TextTable, cut, format_duration, frame_of, one_line
from rungwise.jobs._terminal import shortest
from rungwise.jobs.studies._arm_tables import arm_table, in_lines
from rungwise.runs import Spread
from rungwise.runs.study import ChosenTrial

if TYPE_CHECKING:
    import pandas

_WIDTH = 120
_MOST_LINES = 10


@dataclass(frozen=True)
class StudiedRun:
    """A run of a study, and how far it is.

    Attributes:
        name: Name of the run: its system, and its seed or trial.
        folder: Its folder; None where its settings wait for a search.
        state: done, begun, missing, or waiting for the search.
        epoch: Number of finished epochs.
        epochs: Number of all its epochs.
    """

    name: str
    folder: Path | None
    state: str
    epoch: int
    epochs: int

    @property
    def text(self) -> str:
        """The state in words."""
        return f"begun, epoch {self.epoch} of {self.epochs}" if self.state == "begun" else self.state


@dataclass(frozen=True)
class StudyOutcome(InTables, os.PathLike[str]):
    """A study as it stands in its folder, for which it stands wherever a folder may be given.

    Attributes:
        folder: Folder of the study.
        runs: All runs, trials first.
        spreads: Numbers of each system over its seeds, by their names.
        split: Split that these numbers are of; empty where there are none.
        primary: The measure that stands first.
        chosen: Trials of each arm that was searched, with the chosen one.
        winner: System with the best mean on validation, where the study asks for one; else empty.
        failed: Reasons by the names of runs that failed.
        notes: Remarks that belong below the table.
        stopped: Whether somebody stopped it; the same call goes on.
        seconds_left: Seconds that the missing runs take one after the other, as far as that is known.
        untimed: Number of missing runs of which no time is known.
    """

    folder: Path
    runs: tuple[StudiedRun, ...]
    spreads: Mapping[str, Mapping[str, Spread]] = field(default_factory=dict, hash=False)
    split: str = ""
    primary: str = "rsum"
    chosen: Mapping[str, ChosenTrial] = field(default_factory=dict, hash=False)
    winner: str = ""
    failed: Mapping[str, str] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()
    stopped: bool = False
    seconds_left: float = 0.0
    untimed: int = 0

    def __fspath__(self) -> str:
        return shortest(self.folder)

    def __repr__(self) -> str:
        """A few lines: where it stands, how far it is, and the table of systems."""
        lines = self.lines()
        shown = [*lines[:_MOST_LINES], *([f"... and {len(lines) - _MOST_LINES} more"] if lines[_MOST_LINES:] else [])]
        return "\n".join(cut(line, _WIDTH) for line in (self._title(), *(f"  {line}" for line in shown)))

    def to_frame(self) -> pandas.DataFrame:
        """A row for each system with means and deviations; without numbers a row for each run and its state.

        Raises:
            UserError: If pandas is not installed.
        """
        if not self.spreads:
            columns: dict[str, list[Any]] = {
                "run": [one.name for one in self.runs],
                "state": [one.state for one in self.runs],
                "epoch": [one.epoch for one in self.runs],
            }
            return frame_of(columns, "run")
        names = list(dict.fromkeys(name for own in self.spreads.values() for name in own))
        columns = {"system": list(self.spreads)}
        for name in names:
            found = [own.get(name) for own in self.spreads.values()]
            columns[name] = [math.nan if one is None else one.mean for one in found]
            columns[f"{name} deviation"] = [math.nan if one is None else one.deviation for one in found]
        return frame_of(columns, "system")

    def lines(self) -> list[str]:
        """The table as lines of a terminal."""
        return in_lines(self._tables()[0])

    def counted(self) -> str:
        """How many runs are done, begun and missing, in words."""
        words = [one.state for one in self.runs]
        parts = (f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        return f"{len(words)} runs: {', '.join(parts)}"

    def time_left(self) -> str:
        """What is known of the time that the missing runs take; empty where nothing is missing."""
        known = f"about {format_duration(self.seconds_left)} one after the other" if self.seconds_left else ""
        runs = "1 run" if self.untimed == 1 else f"{self.untimed} runs"
        other = f"{'and ' if known else ''}{runs} of a kind that is not timed yet" if self.untimed else ""
        return "; ".join(filter(None, (known, other)))

    def _title(self) -> str:
        state = f", {len(self.failed)} failed" if self.failed else ", stopped" if self.stopped else ""
        return f"study {one_line(shortest(self.folder), 60)}: {self.counted()}{state}"

    def _tables(self) -> list[TextTable]:
        if self.spreads:
            return [arm_table(self.spreads, self.primary, f"{self.split} split")]
        rows = [[one.name, one.text] for one in self.runs]
        return [TextTable(["run", "state"], rows, frozenset({"run", "state"}))]

    def _below(self) -> list[str]:
        return [*self.notes, *(f"{name} failed: {reason}" for name, reason in self.failed.items())]
