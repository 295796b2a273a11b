"""What came of a study, and the forms that it prints and turns into."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core.output import InTables, TextTable, cut, format_duration, frame_of, one_line
from rungwise.jobs._terminal import shortest
from rungwise.runs.study import ChosenTrial, JudgedClaim, claim_table

if TYPE_CHECKING:
    import pandas

    from rungwise.evaluation.tables import ResultTable

_WIDTH = 120
_MOST_LINES = 10


@dataclass(frozen=True)
class StudiedRun:
    """A run of a study, and how far it is.

    Attributes:
        name: Name of the run: its system, and its seed or trial.
        folder: Its folder; None where its settings wait for a search.
        state: done, begun, missing, failed, or waiting for the search.
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
        if self.state == "begun":
            return f"begun, epoch {self.epoch} of {self.epochs}"
        if self.state == "failed" and self.epochs:
            return f"failed after {self.epoch} of {self.epochs} epochs"
        return self.state


@dataclass(frozen=True)
class StudyOutcome(InTables, os.PathLike[str]):
    """A study as it stands in its folder, for which it stands wherever a folder may be given.

    Attributes:
        folder: Folder of the study.
        runs: All runs, trials first.
        table: The numbers of the systems over their seeds; None where nothing was measured.
        split: Split that these numbers are of; empty where there are none.
        primary: The measure that a claim rests on.
        chosen: Trials of each arm that was searched, with the chosen one.
        winner: System with the best mean on validation, where the study asks for one; else empty.
        failed: Reasons by the names of runs that failed.
        notes: Remarks that belong below the table.
        stopped: Whether somebody stopped it; the same call goes on.
        seconds_left: Seconds that the missing runs take one after the other, as far as that is known.
        untimed: Number of missing runs of which no time is known.
        claims: The claims of the study with their verdicts, where their systems were measured on the test split.
    """

    folder: Path
    runs: tuple[StudiedRun, ...]
    table: ResultTable | None = field(default=None, hash=False)
    split: str = ""
    primary: str = "rsum"
    chosen: Mapping[str, ChosenTrial] = field(default_factory=dict, hash=False)
    winner: str = ""
    failed: Mapping[str, str] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()
    stopped: bool = False
    seconds_left: float = 0.0
    untimed: int = 0
    claims: tuple[JudgedClaim, ...] = ()

    def __fspath__(self) -> str:
        return shortest(self.folder)

    def __repr__(self) -> str:
        """A few lines: where it stands, how far it is, and the table of systems."""
        lines = self.lines()
        shown = [*lines[:_MOST_LINES], *([f"... and {len(lines) - _MOST_LINES} more"] if lines[_MOST_LINES:] else [])]
        return "\n".join(cut(line, _WIDTH) for line in (self._title(), *(f"  {line}" for line in shown)))

    def to_frame(self) -> pandas.DataFrame:
        """A row for each number, by its system; without numbers a row for each run and its state.

        Raises:
            UserError: If pandas is not installed.
        """
        if self.table is not None:
            return self.table.to_frame()
        columns: dict[str, list[Any]] = {
            "run": [one.name for one in self.runs],
            "state": [one.state for one in self.runs],
            "epoch": [one.epoch for one in self.runs],
        }
        return frame_of(columns, "run")

    def lines(self) -> list[str]:
        """The table, or the runs and their states, as lines of a terminal."""
        if self.table is not None:
            return self.table.to_text().splitlines()
        width = max((len(one.name) for one in self.runs), default=0)
        return [f"{one.name.ljust(width)}  {one.text}" for one in self.runs]

    def counted(self) -> str:
        """How many runs are in which state, in words."""
        words = [one.state for one in self.runs]
        parts = (f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        return f"{len(words)} run{'s' * (len(words) != 1)}: {', '.join(parts)}"

    def time_left(self) -> str:
        """What is known of the time that the missing runs take; empty where nothing is missing."""
        known = f"about {format_duration(self.seconds_left)} one after the other" if self.seconds_left else ""
        runs = "1 run" if self.untimed == 1 else f"{self.untimed} runs"
        other = f"{'and ' if known else ''}{runs} of a kind that is not timed yet" if self.untimed else ""
        return "; ".join(filter(None, (known, other)))

    def _title(self) -> str:
        state = ", stopped" if self.stopped else ""
        return f"study {one_line(shortest(self.folder), 60)}: {self.counted()}{state}"

    def _tables(self) -> list[TextTable]:
        if self.table is not None:
            return [*self.table.in_tables(), *([claim_table(self.claims)] if self.claims else [])]
        rows = [[one.name, one.text] for one in self.runs]
        return [TextTable(["run", "state"], rows, frozenset({"run", "state"}))]

    def _below(self) -> list[str]:
        own = self.notes if self.table is None else self.table.below()
        return [*own, *(f"{name} failed: {reason}" for name, reason in self.failed.items())]
