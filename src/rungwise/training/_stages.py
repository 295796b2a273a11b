"""Runs of several stages, one after the other, each a run of its own, and their common result.

The whole run has no state of its own. A stage has a folder as soon as it starts, and it starts when the one before has
written its model, so the folders tell which stage was interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rungwise.core import UserError, parse_json, read_text, to_plain
from rungwise.core.disk import read_seal
from rungwise.core.disk.locks import alone
from rungwise.core.disk.staging import is_draft
from rungwise.data import ImageCaptions
from rungwise.models import SavedModel
from rungwise.models.io import WEIGHTS
from rungwise.relevance import Relevance
from rungwise.training._run_folder import (
    CHECKPOINT,
    CONFIG,
    HISTORY,
    MODEL,
    STAGES,
    WRITER,
    stage_folder,
    sweep_run,
    write_config,
    write_history,
)
from rungwise.training.config import TrainConfig, accepted, config_of_settings
from rungwise.training.distributed import LOST_AFTER, is_first, joined, resuming
from rungwise.training.engine import (
    TrainResult,
    missing,
    other_settings,
    read_state,
    refuse_others,
    started_from,
    train,
    with_measured,
)
from rungwise.training.tracking import AllOf, EpochReport, StageReport, Watcher, watchers_of


def run(
    config: TrainConfig,
    data: ImageCaptions,
    out: Path,
    *,
    relevance: Relevance | None = None,
    cache: Path | None = None,
    resume: bool = False,
    device: str | None = None,
    watcher: Watcher | Sequence[Watcher] | None = None,
    lost_after: float = LOST_AFTER,
) -> TrainResult:
    """Run a configuration with stages, or without, as ``train`` does.

    Each stage starts from the best model of the one before, unless it gives ``start``, and is a run in a folder of its
    own, ``out/stages/1-NAME``. ``out`` gets ``config.yaml``, ``history.jsonl`` of all stages and, in the end, the best
    model of the last one.

    Args:
        config: Configuration of the run.
        data: Collection for all stages.
        out: Folder of the run.
        relevance: Degrees by positions in ``data``, for all stages; None takes those that each stage names.
        cache: Folder of the feature cache; the default one if None.
        resume: Whether to go on with the interrupted stage; finished ones are not run again.
        device: Device of the training; None takes ``cuda`` where there is one.
        watcher: One or several watchers, which receive progress.
        lost_after: Under ``torchrun``, seconds without a sign of life after which another process counts as lost.

    Returns:
        Result of the last stage, or of the one in which the run was stopped; its history is that of all stages, each
        line with the name of its ``stage``.

    Raises:
        UserError: As :func:`~rungwise.training.engine.train`; or if the folder holds stages of another run.
    """
    if not config.stages:
        return train(
            config,
            data,
            out,
            relevance=relevance,
            cache=cache,
            resume=resume,
            device=device,
            watcher=watcher,
            lost_after=lost_after,
        )
    accepted(config)  # before the first stage begins; each says its own lines
    whole = _Whole(config, out, AllOf(watchers_of(watcher)))
    with ExitStack() as held:
        if is_first() and out.exists():
            whole.lock(held)
        whole.check(data)
        position = whole.interrupted(data) if resume else whole.at_the_beginning()
        processes, _ = held.enter_context(
            joined(device, lost_after=lost_after, go_on=partial(resuming, out / CONFIG, out))
        )
        processes.wait()  # until all have looked, before the first one writes
        if processes.first:
            whole.announce(position)
        while True:
            stage = whole.stages[position]
            result = train(
                stage.config,
                data,
                stage.folder,
                relevance=relevance,
                cache=cache,
                resume=resume and (stage.folder / CHECKPOINT).exists(),
                device=device,
                watcher=_OfStage(whole, stage, held),
            )
            processes.wait()  # the next stage reads what the first process has written
            resume = False
            position += 1
            if not result.finished or position == len(whole.stages):
                break
        history = whole.write_history() if processes.first else []
        if result.finished and processes.first:
            whole.keep(result.model_folder)
    model = out / MODEL if result.finished else result.model_folder
    return replace(result, model_folder=model, history=history)


@dataclass(frozen=True)
class _Stage:
    """A stage with its number from 1, its folder, and its settings with the model that it starts from."""

    number: int
    name: str
    config: TrainConfig
    folder: Path


class _Whole:
    """The stages of a run, and their common folder."""

    def __init__(self, config: TrainConfig, out: Path, watcher: AllOf) -> None:
        self.config = config
        self.out = out
        self.watcher = watcher
        self.stages = tuple(_placed(config, out))
        self.locked = False

    def lock(self, held: ExitStack) -> None:
        """Lock the folder against other processes."""
        if not self.locked:
            held.enter_context(alone(self.out, WRITER))
        self.locked = True

    def check(self, data: ImageCaptions) -> None:
        """Refuse now what would stop a later stage, where that can be known."""
        for stage in self.stages:
            try:
                data.split(*stage.config.data.train, stage.config.data.validation)
                if stage.number == 1 or self.config.stages[stage.number - 1].says("start"):
                    started_from(stage.config.start)
            except UserError as error:
                raise UserError(f"stage {stage.name}: {error}") from None

    def at_the_beginning(self) -> int:
        """Position of the first stage, in a folder without a run."""
        refuse_others(self.out, resume=False)
        return 0

    def interrupted(self, data: ImageCaptions) -> int:
        """Position of the stage to go on with."""
        if not (self.out / STAGES).is_dir():
            if (self.out / CHECKPOINT).exists():
                raise UserError(f"{self.out}: holds a run without stages; resume it with its own {CONFIG}")
            raise missing(self.out / CHECKPOINT)
        known = {stage.folder.name for stage in self.stages}
        others = sorted(one.name for one in (self.out / STAGES).iterdir() if one.is_dir() and not is_draft(one.name))
        if strangers := [name for name in others if name not in known]:
            raise UserError(
                f"{self.out / STAGES / strangers[0]}: of no stage of this configuration; resume with the run's own"
                f" {self.out / CONFIG}, or start anew in another folder"
            )
        last = max((at for at, stage in enumerate(self.stages) if stage.folder.exists()), default=0)
        for stage in self.stages[: last + 1]:
            if stage.number <= last or (stage.folder / CHECKPOINT).exists():
                self._refuse_other(stage, data, finished=stage.number <= last)
        return last

    def _refuse_other(self, stage: _Stage, data: ImageCaptions, finished: bool) -> None:
        """Refuse the checkpoint of another stage, or a finished stage with other settings."""
        path = stage.folder / CHECKPOINT
        state = read_state(path)
        then = to_plain(config_of_settings(state.settings, path))

        def lines(config: TrainConfig) -> list[str]:
            now = with_measured(to_plain(config), then)  # a finished stage does not measure again
            epochs = [] if then["epochs"] == now["epochs"] else [f"epochs: {then['epochs']} then, {now['epochs']} now"]
            return other_settings(then, now, same_start=bool(state.start_hash)) + epochs

        if lines(stage.config) and (other := next((one for one in self.stages if not lines(one.config)), None)):
            raise UserError(
                f"{path}: the checkpoint of stage {other.number}, {other.name}, in the place of stage {stage.number},"
                f" {stage.name}; put that of {stage.name} back, or start anew in another folder"
            )
        if finished and (state.data_hash != data.content_hash() or lines(stage.config)):
            what = "; ".join(lines(stage.config)) or "other data"
            raise UserError(
                f"{path}: stage {stage.name} is finished, and was run with other settings: {what}; a later stage has"
                " begun from it: resume with the same, or start anew in another folder"
            )

    def announce(self, position: int) -> None:
        """Tell which stages there are."""
        own = [one.name for one in self.config.stages if one.says("epochs")]
        listed = ", ".join(f"{one.name} {'+'.join(map(str, one.config.epochs))}" for one in self.stages)
        total = sum(one.config.total_epochs for one in self.stages)
        said = f"{len(self.stages)} stages, {total} epochs: {listed}"
        self.watcher.say(f"{said}; {', '.join(own)} by settings of the stage" if own else said)
        for stage in self.stages[:position]:
            self.watcher.say(f"stage {stage.number} of {len(self.stages)}, {stage.name}, is finished")

    def begin(self, held: ExitStack) -> None:
        """Write the configuration, once the first stage is accepted."""
        self.lock(held)
        for folder in (self.out, *(stage.folder for stage in self.stages)):  # finished stages are not run again
            sweep_run(folder)
        write_config(self.out, self.config)

    def write_history(self) -> list[dict[str, Any]]:
        """Write and return the combined history of the stages."""
        lines = list(histories(self.out, self.config))
        write_history(self.out, lines)
        return lines

    def keep(self, model: Path) -> None:
        """Copy the last stage's model to the run's folder, unless the same one is there."""
        if not _same_weights(model, self.out / MODEL):
            SavedModel.from_pretrained(model, "cpu").save_pretrained(self.out / MODEL)


def histories(out: Path, config: TrainConfig) -> Iterator[dict[str, Any]]:
    """The lines of the stages' histories, each with the name of its ``stage``."""
    for stage in _placed(config, out):
        path = stage.folder / HISTORY
        if path.exists():
            for line in read_text(path, "text_bytes").splitlines():
                yield {"stage": stage.name, **parse_json(line, path)}


def _placed(config: TrainConfig, out: Path) -> Iterator[_Stage]:
    """The stages of a run with their folders."""
    model = ""
    for at, (name, settings) in enumerate(config.stage_configs()):
        if at and not config.stages[at].says("start"):
            settings = replace(settings, start=model)
        stage = _Stage(at + 1, name, settings, stage_folder(out, at + 1, name))
        yield stage
        model = str(stage.folder / MODEL)


def _same_weights(one: Path, other: Path) -> bool:
    try:
        return read_seal(one)[WEIGHTS] == read_seal(other)[WEIGHTS]
    except (UserError, KeyError):
        return False


class _OfStage(AllOf):
    """Watcher that forwards a stage's reports, and updates the files of the whole run."""

    def __init__(self, whole: _Whole, stage: _Stage, held: ExitStack) -> None:
        super().__init__(whole.watcher.watchers)
        self.whole = whole
        self.stage = stage
        self.held = held

    def begin(self, report: StageReport) -> None:
        """Write the configuration, and report the stage with its number."""
        self.whole.begin(self.held)
        super().begin(replace(report, name=self.stage.name, number=self.stage.number, of=len(self.whole.stages)))

    def epoch(self, report: EpochReport) -> None:
        """Forward the report, and extend the history of the whole run."""
        self.whole.write_history()
        super().epoch(report)
