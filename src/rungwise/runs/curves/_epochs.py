"""Loss, learning rate and validation measures by epoch, from the histories of runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rungwise.core import UserError, parse_json, read_text
from rungwise.core.text import near_names
from rungwise.runs._systems import RunWithResults, SystemRuns
from rungwise.runs.curves._measured import labels_of
from rungwise.runs.curves._panels import Panel, PlotCurve, PlotPart, band_notes, is_wide, spread
from rungwise.training import HISTORY
from rungwise.training.config import TrainConfig

_NOT_DRAWN = frozenset({"epoch", "stage"})
_LABELS: Mapping[str, str] = {
    "loss": "mean loss of a pair",
    "learning_rate": "learning rate",
    "pairs_per_second": "pairs a second",
    "seconds": "seconds of steps",
    "data_seconds": "seconds of waiting for data",
    "validation_seconds": "seconds of validation",
    "peak_memory_gb": "peak memory (GB)",
}
"""Labels of columns that are no validation measures."""


@dataclass(frozen=True)
class _Seed:
    """History of one run, with what is marked in it.

    Attributes:
        rows: Numbers of each epoch.
        kept: Number of the epoch that was kept, from 1 over all stages; 0 if that is not known.
        ends: Ends of warm-ups and stages, between two epochs, with their names.
    """

    rows: tuple[Mapping[str, Any], ...]
    kept: int
    ends: tuple[tuple[float, str], ...]


def epoch_part(systems: Sequence[SystemRuns], measures: Sequence[str] = ()) -> tuple[PlotPart | None, list[str]]:
    """Panels of a column of the histories each, and a line for each run that is left out.

    Args:
        systems: Systems, of which each is a curve.
        measures: Columns of the histories, such as ``loss``, ``rsum``, ``i2t/R@1`` and ``learning_rate``. By default
            the loss and the measures that chose the epochs.

    Raises:
        UserError: If no history has a column of a name.
    """
    read: list[tuple[SystemRuns, list[_Seed]]] = []
    left_out: list[str] = []
    for system in systems:
        seeds = []
        for run in system.runs:
            try:
                seeds.append(_history(run))
            except UserError as error:
                left_out.append(f"epochs: {error}")
        if seeds:
            read.append((system, seeds))
    if not read:
        return None, left_out
    asked = list(measures) or _by_default([system for system, _ in read])
    columns = dict.fromkeys(name for _, seeds in read for seed in seeds for row in seed.rows for name in row)
    for name in asked:
        if name not in columns or name in _NOT_DRAWN:
            known = [one for one in columns if one not in _NOT_DRAWN]
            near = near_names(name, known, 1)
            raise UserError(
                f"--measures {name}: no history has this column{f'; did you mean {near[0]}?' if near else ''}; there"
                f" are {', '.join(known)}"
            )
    panels = []
    for name in asked:
        curves = []
        for system, seeds in read:
            curve = _curve(system.name, seeds, name)
            if curve.has_values:
                curves.append(curve)
            else:
                left_out.append(f"epochs: {system.name}: its history has no {name}")
        if curves:
            panels.append(_panel(name, curves))
    notes = [*band_notes(panels), *_length_notes(read), *_warm_up_notes(read, asked)]
    split = {split for system, _ in read for split in [system.config.data.validation]}
    on = f", measures on the split {min(split)}" if len(split) == 1 else ""
    return PlotPart("epochs", f"Training by epoch{on}", tuple(panels), tuple(notes)), left_out


def _history(run: RunWithResults) -> _Seed:
    path = run.folder / HISTORY
    if not isinstance(run.config, TrainConfig):
        raise UserError(f"{run.folder}: is a fit in closed form, which has no epochs")
    if run.epochs is not None:
        return _Seed(run.epochs, _kept(run.epochs, run.config), tuple(_ends(run.epochs, run.config)))
    if not path.exists():
        raise UserError(f"{run.folder}: has no {HISTORY}")
    rows = []
    for number, line in enumerate(read_text(path, "text_bytes").splitlines(), 1):
        row = parse_json(line, path, finite=False)
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number}: no numbers of an epoch; copy the file of the run again")
        rows.append(row)
    if not rows:
        raise UserError(f"{path}: holds no epoch yet")
    return _Seed(tuple(rows), _kept(rows, run.config), tuple(_ends(rows, run.config)))


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan


def _kept(rows: Sequence[Mapping[str, Any]], config: TrainConfig) -> int:
    """Number of the epoch that was kept: the best one, of the last stage where there are stages."""
    snapshot = (config.stage_configs()[-1][1] if config.stages else config).snapshot
    last, best, kept = rows[-1].get("stage"), None, 0
    for number, row in enumerate(rows, 1):
        value = _number(row.get(snapshot.name))
        if row.get("stage") == last and not math.isnan(value) and snapshot.chosen.better(value, best):
            best, kept = value, number
    return kept


def _ends(rows: Sequence[Mapping[str, Any]], config: TrainConfig) -> Iterator[tuple[float, str]]:
    """Ends of warm-ups and of stages, half an epoch after the last one of each."""
    stages = dict(config.stage_configs()) if config.stages else {"": config}
    before = 0
    for name, stage in stages.items():
        own = sum(row.get("stage", "") == name for row in rows)
        if 0 < stage.warm_up_epochs < own:
            yield before + stage.warm_up_epochs + 0.5, "end of warm-up"
        before += own
        if name and own and before < len(rows):
            yield before + 0.5, f"end of stage {name}"


def _by_default(systems: Sequence[SystemRuns]) -> list[str]:
    chosen = []
    for system in systems:
        config = system.config
        if isinstance(config, TrainConfig):
            chosen.append((config.stage_configs()[-1][1] if config.stages else config).snapshot.name)
    return list(dict.fromkeys(["loss", *chosen]))


def _curve(name: str, seeds: Sequence[_Seed], column: str) -> PlotCurve:
    epochs = min(len(seed.rows) for seed in seeds)
    rows = [[_number(row.get(column)) for row in seed.rows[:epochs]] for seed in seeds]
    curve = spread(rows)
    kept = tuple(float(seed.kept) for seed in seeds if 0 < seed.kept <= epochs)
    return replace(curve, name=name, x=tuple(float(one) for one in range(1, epochs + 1)), kept=kept, ends=seeds[0].ends)


def _panel(name: str, curves: Sequence[PlotCurve]) -> Panel:
    log = name == "learning_rate" or name == "loss"
    values = [one for curve in curves for one in (*curve.y, *curve.low)]
    title, label = (name.replace("_", " "), _LABELS[name]) if name in _LABELS else labels_of(name)
    return Panel(title, "epoch", label, tuple(curves), log_y=log and is_wide(values), whole_x=True)


def _length_notes(read: Sequence[tuple[SystemRuns, list[_Seed]]]) -> Iterator[str]:
    for system, seeds in read:
        lengths = [len(seed.rows) for seed in seeds]
        if min(lengths) < max(lengths):
            yield (
                f"{system.name}: drawn up to epoch {min(lengths)}, which all {len(seeds)} seeds reached; the longest"
                f" has {max(lengths)}"
            )


def _warm_up_notes(read: Sequence[tuple[SystemRuns, list[_Seed]]], asked: Sequence[str]) -> Iterator[str]:
    if "loss" in asked and any("warm-up" in name for _, seeds in read for seed in seeds for _, name in seed.ends):
        yield "during the warm-up the loss is the sum of hinges, whose values compare with no other loss"
