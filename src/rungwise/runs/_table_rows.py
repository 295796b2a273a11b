"""Runs beside printed tables: the printed rows that runs reproduce, and how they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rungwise.core import UserError, to_plain
from rungwise.evaluation import Result, ResultQuestion
from rungwise.evaluation.tables import Ours, PublishedRow, matching, table_named
from rungwise.runs._systems import SAME_NUMBERS, RunWithResults, by_question
from rungwise.training.config import AnyRunConfig, Preset, load_preset

_LONGEST = 60
"""Largest number of characters of a value in a note."""


def ours_for(paper: str, table: str, runs: Sequence[RunWithResults]) -> tuple[tuple[Ours, ...], tuple[str, ...]]:
    """Our lines for a printed table, and the runs that have none, each with the reason.

    Runs that differ only in their seed make one line.
    """
    named = table_named(paper, table)
    lines: dict[tuple[str, tuple[str, ...], ResultQuestion], _Seeds] = {}
    left_out: list[str] = []
    for run in runs:
        try:
            preset = _preset(run)
            rows = _rows(preset, paper, named)
        except UserError as error:
            left_out.append(f"{run.folder}: {error}")
            continue
        if not run.results:
            protocols = dict.fromkeys(row.protocol for row in rows)
            how = " or ".join(f"--protocol {protocol}" for protocol in protocols)
            left_out.append(f"{run.folder}: has no results yet; rungwise evaluate {run.folder} DATA {how}")
            continue
        notes = differences(preset.config, run.config)
        for result in by_question(run.results):
            key = preset.name, notes, ResultQuestion.of(result)
            lines.setdefault(key, _Seeds(rows)).add(run, result)
    ours = tuple(seeds.line(name, notes) for (name, notes, _), seeds in lines.items())
    return ours, tuple(left_out)


class _Seeds:
    """Runs that differ only in their seed, with a result each."""

    def __init__(self, rows: tuple[PublishedRow, ...]) -> None:
        self.rows = rows
        self.runs: list[RunWithResults] = []
        self.results: list[Result] = []

    def add(self, run: RunWithResults, result: Result) -> None:
        """Add a run."""
        self.runs.append(run)
        self.results.append(result)

    def line(self, preset: str, notes: tuple[str, ...]) -> Ours:
        """One line for all runs."""
        seeds = ", ".join(str(run.config.seed) for run in self.runs)
        where = f"{len(self.runs)} runs, seeds {seeds}" if len(self.runs) > 1 else str(self.runs[0].folder)
        note = f"{preset}: {'; '.join(notes) or 'with the settings of the preset'}"
        return Ours(f"{preset}, {where}", tuple(self.results), self.rows, (note,))


def differences(preset: AnyRunConfig, run: AnyRunConfig) -> tuple[str, ...]:
    """Differences of a run's settings from its preset's, such as ``epochs [2] instead of [15, 15]``.

    >>> from dataclasses import replace
    >>> from rungwise.training.config import TrainConfig
    >>> differences(TrainConfig(), replace(TrainConfig(), seed=3, batch_size=64))
    ('batch_size 64 instead of 128',)
    """
    return tuple(_differing(to_plain(preset), to_plain(run), ""))


def _differing(theirs: Any, ours: Any, name: str) -> Iterable[str]:
    if name in SAME_NUMBERS or theirs == ours:
        return
    if isinstance(theirs, Mapping) and isinstance(ours, Mapping) and theirs.get("kind") == ours.get("kind"):
        for one in dict.fromkeys([*theirs, *ours]):
            yield from _differing(theirs.get(one), ours.get(one), f"{name}.{one}" if name else one)
        return
    yield f"{name} {_short(ours)} instead of {_short(theirs)}"


def _short(value: Any) -> str:
    text = "none" if value in (None, "", []) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _preset(run: RunWithResults) -> Preset:
    if not run.config.preset:
        raise UserError("its settings are of no preset, so that it stands for no printed row")
    return load_preset(run.config.preset)


def _rows(preset: Preset, paper: str, table: str) -> tuple[PublishedRow, ...]:
    """Rows of a table that a preset reproduces."""
    if not preset.reproduces:
        raise UserError(f"no paper printed a row of {preset.name}")
    rows = [row for reference in preset.reproduces for row in matching(reference)]
    own = tuple(row for row in rows if (row.paper, row.table) == (paper, table))
    if not own:
        places = dict.fromkeys(f"{row.paper}:{row.table.removeprefix('Table ')}" for row in rows)
        raise UserError(f"{preset.name} reproduces rows of {', '.join(places)}, none of this table")
    return own
