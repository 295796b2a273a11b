"""Reader of the folder of a run, as far as it can be read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.core import UserError, from_plain, is_regular, parse_json, parse_yaml, read_text
from rungwise.parts import recorded, recorded_in
from rungwise.training import CHECKPOINT, CONFIG, HISTORY, MODEL, STAGES, STEPS

if TYPE_CHECKING:
    from torch import Tensor

    from rungwise.training.config import TrainConfig
    from rungwise.training.engine import RunState

_SEED = "seed-"


@dataclass(frozen=True)
class RunFiles:
    """Content of a run, or of one stage of it.

    Attributes:
        folder: Folder of the run.
        config: Configuration; None if it cannot be read.
        history: Numbers by name, for each finished epoch.
        steps: Numbers by name, for some steps, where the run wrote them.
        state: State of the run; None without a checkpoint.
        tensors: Tensors of the checkpoint.
        left_out: Reasons why parts could not be read, one line each.
        foreign: Settings whose parts are of a module that is not imported; the configuration has the defaults there.
        losses: Name of the loss that each finished epoch trained with, by its number, where the history says so.
    """

    folder: Path
    config: TrainConfig | None
    history: tuple[Mapping[str, float], ...]
    steps: tuple[Mapping[str, float], ...]
    state: RunState | None
    tensors: Mapping[str, Tensor] = field(repr=False)
    left_out: tuple[str, ...] = ()
    foreign: frozenset[str] = frozenset()
    losses: Mapping[int, str] = field(default_factory=dict)

    @property
    def model(self) -> Path:
        """Folder of the best model."""
        return self.folder / MODEL

    @property
    def own_loss(self) -> list[tuple[int, float]]:
        """(epoch, loss per pair) of the epochs with the run's own loss, after those that warm up with another.

        An unfinished epoch counts with the steps that were taken.
        """
        warm_up = self.warm_up_epochs
        known = {int(row["epoch"]): float(row["loss"]) for row in self.history if _has_epoch(row) and "loss" in row}
        last = max(known, default=0)
        whole = [row for row in self.steps if _has_epoch(row) and row.get("loss") is not None]
        later = {int(row["epoch"]): float(row["loss"]) for row in whole}
        known |= {epoch: loss for epoch, loss in later.items() if epoch > last}
        return [(epoch, loss) for epoch, loss in sorted(known.items()) if epoch > warm_up]

    @property
    def warm_up_epochs(self) -> int:
        """Number of epochs that train with the loss of the warm-up; 0 where the configuration cannot be read."""
        return self.config.warm_up_epochs if self.config is not None else 0

    def series(self, name: str) -> list[tuple[int, float]]:
        """(epoch, number) of the finished epochs that have this number."""
        return [(int(row["epoch"]), float(row[name])) for row in self.history if name in row and _has_epoch(row)]


def _has_epoch(row: Mapping[str, float]) -> bool:
    """Whether a row of numbers, which somebody may have edited, has a valid epoch."""
    epoch = row.get("epoch")
    return epoch is not None and math.isfinite(epoch)


def is_run(folder: Path) -> bool:
    """Whether a folder holds a run, with stages or several seeds, or one that ended before its first checkpoint."""
    return any(is_regular(folder / name) for name in (CONFIG, CHECKPOINT, HISTORY)) or len(parts_of(folder)) > 1


def parts_of(folder: Path) -> list[Path]:
    """Folders of a run's seeds and stages in their order; the run itself where it has none."""
    inner = [folder / STAGES / one for one in _folders(folder / STAGES)]
    inner += [folder / one for one in _folders(folder) if one.startswith(_SEED)]
    found = sorted((one for one in inner if is_run(one)), key=lambda one: (_number(one.name), one.name))
    return [part for one in found for part in parts_of(one)] or [folder]


def _folders(folder: Path) -> list[str]:
    try:
        return [one.name for one in folder.iterdir() if one.is_dir()]
    except OSError:  # there is none, or it may not be read
        return []


def _number(name: str) -> int:
    digits = name.removeprefix(_SEED).partition("-")[0]
    return int(digits) if digits.isdecimal() and len(digits) < 9 else 0


def read_run(folder: Path) -> RunFiles:
    """Read the parts that are there; ``left_out`` names those that cannot be read."""
    from rungwise.training.engine import load_checkpoint  # torch, which no run needs that is not there

    left_out: list[str] = []
    config, state = None, None
    foreign: Mapping[str, str] = {}
    tensors: Mapping[str, Tensor] = {}
    try:
        config, foreign = _config(folder / CONFIG)
    except UserError as error:
        left_out.append(str(error))
    left_out += dict.fromkeys(foreign.values())
    if is_regular(folder / CHECKPOINT):
        try:
            state, tensors = load_checkpoint(folder / CHECKPOINT)
        except UserError as error:
            left_out.append(str(error))
    rows: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for name in (HISTORY, STEPS):
        try:
            rows[name] = tuple(_lines(folder / name)) if is_regular(folder / name) else ()
        except UserError as error:
            left_out.append(str(error))
    epochs = rows.get(HISTORY) or tuple(state.history if state is not None else ())
    history, steps = (tuple(map(_numbers, some)) for some in (epochs, rows.get(STEPS, ())))
    losses = {
        int(now["epoch"]): str(row["loss_in_force"])
        for row, now in zip(epochs, history, strict=True)
        if _has_epoch(now) and "loss_in_force" in row
    }
    return RunFiles(folder, config, history, steps, state, tensors, tuple(left_out), frozenset(foreign), losses)


def _config(path: Path) -> tuple[TrainConfig, Mapping[str, str]]:
    """The configuration, and a line for each setting that it lacks because its part cannot be found here.

    Raises:
        UserError: If it cannot be read without these settings either.
    """
    from rungwise.training.config import TrainConfig

    values = parse_yaml(read_text(path, "settings_bytes"), path)
    settings = dict(values) if isinstance(values, Mapping) else values
    with recorded(recorded_in(values)):
        try:
            return from_plain(TrainConfig, settings, str(path)), {}
        except UserError as error:
            refused = error
        if isinstance(settings, dict):
            for left_out in (("loss",), ("model",), ("loss", "model")):
                rest = {name: value for name, value in settings.items() if name not in left_out}
                with suppress(UserError):
                    return from_plain(TrainConfig, rest, str(path)), dict.fromkeys(left_out, str(refused))
    raise refused


def _lines(path: Path) -> Iterator[Mapping[str, Any]]:
    """Rows of values by name; a last line that was cut off is left out."""
    lines = read_text(path, "text_bytes").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            row: Any = parse_json(line, f"{path}, line {number}", finite=False)
        except UserError:
            if number == len(lines):
                return
            raise
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number}: no mapping of numbers; resume the run to write it anew")
        yield row


def _numbers(row: Mapping[str, Any]) -> Mapping[str, float]:
    """The numbers of a row; other values are left out."""
    return {name: float(value) for name, value in row.items() if _is_number(value)}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
