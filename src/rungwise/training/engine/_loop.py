"""The training loop, from pairs to the best snapshot, resumable to the bit.

The loop knows no encoder. A model reads pairs and cuts batches, a step turns a batch into gradients, and a sampler
chooses which pairs meet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from rungwise.core import UserError, digest_of_parts, to_plain
from rungwise.core.compute import freed_memory_kept, keep_compiled_products
from rungwise.core.disk.locks import alone
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions
from rungwise.losses import Loss
from rungwise.relevance import Relevance
from rungwise.training._run_folder import (
    CHECKPOINT,
    CONFIG,
    HISTORY,
    MODEL,
    WRITER,
    sweep_run,
    write_config,
    write_history,
    write_skipped,
)
from rungwise.training.config import TrainConfig, accepted, loss_in_force
from rungwise.training.distributed import LOST_AFTER, is_first, joined, resuming
from rungwise.training.engine._checkpoint import RunState, load_checkpoint, save_checkpoint
from rungwise.training.engine._collapse import CollapseWatch, spread
from rungwise.training.engine._out_of_memory import for_model, for_steps, memory_explained
from rungwise.training.engine._preparation import Prepared, prepare
from rungwise.training.engine._resumption import refuse_other_run, refuse_others
from rungwise.training.engine._snapshots import Snapshots, provenance
from rungwise.training.engine._stop_requests import stop_requests
from rungwise.training.steps import Spent, memory
from rungwise.training.tracking import (
    AllOf,
    EpochReport,
    StageReport,
    StepReport,
    Watcher,
    check_logs,
    open_watchers,
    watchers_of,
)

REPORT_STEPS = 10


@dataclass(frozen=True)
class TrainResult:
    """The result of a run.

    Attributes:
        model_folder: Folder of the best snapshot, for :func:`rungwise.models.load`.
        best_epoch: Epoch of the best snapshot, from 1; 0 if there is none yet.
        measure: Measure that chose the snapshot, as the history names it.
        best_value: Value of this measure on the validation split; None if there is no snapshot yet.
        best_rsum: rsum of the snapshot, whichever measure chose it; NaN if there is none yet.
        history: Measured numbers of each epoch.
        finished: Whether the run came to its end; one that was stopped can be resumed.
    """

    model_folder: Path
    best_epoch: int
    measure: str
    best_value: float | None
    best_rsum: float
    history: list[dict[str, Any]]
    finished: bool

    __repr__ = short_repr


def train(
    config: TrainConfig,
    data: ImageCaptions,
    out: Path,
    *,
    relevance: Relevance | ArrayLike | None = None,
    cache: Path | None = None,
    resume: bool = False,
    device: str | None = None,
    watcher: Watcher | Sequence[Watcher] | None = None,
    lost_after: float = LOST_AFTER,
) -> TrainResult:
    """Train a model and keep the snapshot that ``config.snapshot`` finds best on the validation split.

    Writes into ``out``: ``config.yaml``, ``model/`` (the snapshot), ``checkpoint.safetensors``, ``history.jsonl``, the
    files of ``config.logs`` and, where images had to be left out, ``skipped.txt``. Nothing is written before the run is
    accepted. Ctrl-C ends the present step, writes a checkpoint and returns. Under ``torchrun`` all processes call it;
    the first one writes.

    Args:
        config: Configuration of the run.
        data: The collection; its splits are named by ``config.data``.
        out: Folder of the run.
        relevance: Degrees by positions in ``data``, for losses, samplers and measures that read them: a source, saved
            degrees, an (images, captions) array, or an object with ``block``. None takes those that the configuration
            names, or those that the data bring along.
        cache: Folder of the feature cache; the default one if None.
        resume: Whether to go on from ``out``'s checkpoint, to the same final weights as an uninterrupted run. The
            configuration must be that of the run; only ``epochs`` may be longer.
        device: Device of the training; None takes ``cuda`` where there is one.
        watcher: One or several watchers, which receive progress.
        lost_after: Under ``torchrun``, seconds without a sign of life after which another process counts as lost. The
            others then end with one line; the last checkpoint is kept.

    Raises:
        UserError: If a setting leaves another one without effect and wastes the run, the data are unsuitable, the disk
            is full, the loss is no longer finite, a checkpoint does not belong to this run, or another training writes
            in ``out`` now. Earlier files stay unchanged.
        SystemExit: If another process is lost.
    """
    if config.stages:
        raise UserError("the configuration has stages; rungwise.training.run runs them one after the other")
    check_logs(config)
    without_effect = accepted(config)
    keep_compiled_products()
    with freed_memory_kept(), ExitStack() as lock:
        locked = is_first() and out.exists()
        if locked:
            lock.enter_context(alone(out, WRITER))
        refuse_others(out, resume)
        lost = partial(resuming, out / CONFIG, out)
        with joined(device, lost_after=lost_after, go_on=lost) as (processes, place):
            told = AllOf(watchers_of(watcher) if processes.first else [])
            for line in without_effect:
                told.say(line)
            with memory_explained(f"while model and data are read, on {place}", lambda: for_model(config)):
                prepared = prepare(
                    config, data, processes, place, relevance=relevance, cache=cache, say=told.say, progress=told.work
                )
            run = _Run(prepared, data, out, told)
            if processes.first and not locked:  # so that a refused run leaves no folder behind
                lock.enter_context(alone(out, WRITER))
                refuse_others(out, resume)
            run.accept(resume)
            told.begin(StageReport(config.total_epochs))
            with memory_explained(f"in training on {place}", lambda: for_steps(config)):
                return run.go()


class _Run:
    """The state of one run, and its steps."""

    def __init__(self, prepared: Prepared, data: ImageCaptions, out: Path, watcher: AllOf) -> None:
        self.prepared = prepared
        self.config, self.work, self.updates = prepared.config, prepared.work, prepared.updates
        self.validation = prepared.validation
        self.processes = prepared.work.processes
        self.data = data
        self.out = out
        self.watcher = watcher
        self.trained = prepared.trained
        self.snapshots = Snapshots(prepared.model, out / MODEL)
        self.state = RunState()
        self.last: tuple[Tensor, Tensor] | None = None  # of the last full batch: loss per pair, spread
        self.gradient_norm = torch.tensor(torch.nan)
        self.spent = Spent(prepared.work.data_time)

    def accept(self, resume: bool) -> None:
        """Start or resume the run's state, and write its configuration; an existing run is untouched before."""
        self.watcher.skipped(self.prepared.issues)
        settings, data_hash = to_plain(self.config), self.data.content_hash()
        if resume:
            self.state, tensors = load_checkpoint(self.out / CHECKPOINT)
            now = RunState(
                settings=settings,
                data_hash=data_hash,
                frozen_hash=self.snapshots.frozen_hash,
                start_hash=self.prepared.start_hash,
                files=self._files(),
            )
            refuse_other_run(self.out / CHECKPOINT, self.state, now, self.config)
            self.trained.restore(tensors, steps=self.state.total_steps)
            self.updates.restore(self.state.scaling)
            self.snapshots.pending = self.trained.best
            self.watcher.say(f"resumed after epoch {self.state.epoch}, step {self.state.step} of the next")
        self.state.settings, self.state.data_hash = settings, data_hash
        self.state.frozen_hash, self.state.start_hash = self.snapshots.frozen_hash, self.prepared.start_hash
        self.state.files = self._files()
        if not self.processes.first:
            return
        sweep_run(self.out)
        write_config(self.out, self.config)
        # A run that was cut off may have written an epoch that its checkpoint does not know.
        if self.state.history or (self.out / HISTORY).exists():
            write_history(self.out, self.state.history)
        write_skipped(self.out, self.prepared.issues)

    def _files(self) -> dict[str, str]:
        """Hashes of the model's text files, and of human judgements."""
        texts = self.prepared.model.files().items()
        hashes = {name: digest_of_parts([text]) for name, text in texts}
        called_right = self.work.called_right
        return hashes if called_right is None else {**hashes, "data.judgements": called_right.digest}

    def go(self) -> TrainResult:
        """Train until the end or a request to stop."""
        begun, first = time.perf_counter(), self.state.epoch
        if self.processes.first:
            self.watcher.watchers += open_watchers(self.config, self.out, self.state.total_steps + 1, self.watcher.say)
        if self.prepared.loss.rests_at is not None:
            watch = CollapseWatch(self.prepared.loss.rests_at, self.watcher.say, memory=self.state.collapse)
            self.watcher.watchers.append(watch)
        finished = False
        try:
            with stop_requests() as stop:
                while not (finished := self._is_over()) and not self.processes.any(stop.is_set()):
                    if self._epoch(self.prepared.batches_of(self.state.epoch), stop):
                        self._validate()
                    self._save()
        finally:
            self.watcher.close()
            if self.state.epoch > first:
                seconds = time.perf_counter() - begun
                self.watcher.say(self.spent.summary(self.state.epoch - first, seconds, self.work.device))
            if self.processes.first and self.state.best_epoch:
                self.snapshots.finish(self._provenance())
        state = self.state
        return TrainResult(
            model_folder=self.out / MODEL,
            best_epoch=state.best_epoch,
            measure=self.config.snapshot.name,
            best_value=state.best_value,
            best_rsum=float(state.history[state.best_epoch - 1]["rsum"]) if state.best_epoch else float("nan"),
            history=state.history,
            finished=finished,
        )

    def _is_over(self) -> bool:
        """Whether all epochs are done, or patience is exhausted; only the first process knows the best epoch."""
        over = self.config.is_over(self.state.epoch, self.state.best_epoch)
        return self.processes.any(over and self.processes.first)

    def _epoch(self, batches: Sequence[Any], stop: threading.Event) -> bool:
        """Train the rest of the present epoch; False if stopped before its end."""
        state, config = self.state, self.config
        self.work.model.train()
        loss_function = self.prepared.warm_up if state.epoch < config.warm_up_epochs else self.prepared.loss
        losses = torch.zeros((), dtype=torch.float64, device=self.work.device)
        begun, seen, self.seconds, self.timed_pairs = time.perf_counter(), 0, 0.0, 0
        self.data_before = self.spent.data.seconds
        while state.step < len(batches):
            if self.processes.any(stop.is_set()):
                state.loss_sum += float(losses)
                return False
            batch = batches[state.step]
            self.updates.begin(config.learning_rate(state.epoch, (state.step + 0.5) / len(batches)))
            losses += self._step(batch, loss_function)
            seen += len(batch)
            state.step += 1
            state.total_steps += 1
            state.pairs += len(batch)
            due = state.step % config.checkpoint_steps == 0
            if due or state.step % REPORT_STEPS == 0 or state.step == len(batches):
                state.loss_sum += float(losses)
                losses.zero_()
                passed = time.perf_counter() - begun
                self.seconds, self.spent.steps = self.seconds + passed, self.spent.steps + passed
                self.timed_pairs += seen
                self._report_step(len(batches))
                if due and state.step < len(batches):
                    self._save()
                begun, seen = time.perf_counter(), 0
        return True

    def _step(self, batch: Any, loss_function: Loss) -> Tensor:
        """One step of the optimizer; returns the batch's loss, summed over its pairs."""
        config = self.config
        # Draws depend on the step alone, so that a resumed run repeats them without any state to save.
        seed = config.seed + 1_000_003 * (self.state.total_steps + 1)
        outcome = config.step.backward(self.work, loss_function, batch, seed)
        self.gradient_norm = self.updates.finish(outcome.value, self.state.epoch + 1, self.state.step + 1)
        total = outcome.value * (len(batch) if loss_function.reduction == "mean" else 1)
        if outcome.vectors is not None and len(batch) >= min(config.batch_size, len(self.work.pairs)):
            self.last = total / len(batch), spread(*outcome.vectors)
        return total

    def _validate(self) -> None:
        """End the epoch: measure on the validation split, and keep the model if it is the best."""
        state = self.state
        if self.processes.first:
            with self.updates.averaged():
                self._measure()
        state.epoch, state.step, state.loss_sum, state.pairs = state.epoch + 1, 0, 0.0, 0
        self.processes.wait()

    def _measure(self) -> None:
        state, before = self.state, self.spent.validation.seconds
        with self.spent.validation:
            measured = self.validation.measure(self.work.model)
        numbers = {
            "epoch": float(state.epoch + 1),
            "learning_rate": self.config.learning_rate(state.epoch, 0.5),
            "loss": state.loss_sum / max(state.pairs, 1),
            "pairs_per_second": self.timed_pairs / max(self.seconds, 1e-9),
            **measured,
            "seconds": self.seconds,
            "data_seconds": self.spent.data.seconds - self.data_before,
            "validation_seconds": self.spent.validation.seconds - before,
            **memory(self.work.device),
        }
        measure = self.config.snapshot.name
        best = self.config.snapshot.chosen.better(numbers[measure], state.best_value)
        in_force = loss_in_force(self.config, state.epoch)
        state.history.append({**numbers, "loss_in_force": in_force})
        if best:
            state.best_value, state.best_epoch = numbers[measure], state.epoch + 1
            self.snapshots.keep(self._provenance())
        write_history(self.out, self.state.history)
        at, epochs = state.epoch + 1, self.config.total_epochs
        self.watcher.epoch(EpochReport(state.total_steps, at, epochs, numbers, best, measure, in_force))

    def _provenance(self) -> dict[str, Any]:
        """Facts for the card of the best model."""
        best = self.state.history[self.state.best_epoch - 1]
        return provenance(self.data, self.config.seed, self.config.snapshot, best)

    def _report_step(self, steps: int) -> None:
        self.updates.check()
        state = self.state
        loss = state.loss_sum / max(state.pairs, 1)
        batch_loss, vector_spread = self.last or (torch.tensor(torch.nan), torch.tensor(torch.nan))
        report = StepReport(
            total_step=state.total_steps,
            epoch=state.epoch + 1,
            step=state.step,
            steps=steps,
            loss=loss,
            pairs_per_second=self.timed_pairs / max(self.seconds, 1e-9),
            batch_loss=float(batch_loss),
            spread=float(vector_spread),
            epochs=self.config.total_epochs,
            gradient_norm=float(self.gradient_norm),
            learning_rate=self.updates.rate,
            seconds=self.seconds,
            data_seconds=self.spent.data.seconds - self.data_before,
        )
        self.watcher.step(report)

    def _save(self) -> None:
        self.state.scaling = self.updates.settled(self.state.scaling, self.watcher.say)
        if self.processes.first:
            self.watcher.saving()
            self.trained.best = self.snapshots.pending
            save_checkpoint(self.out / CHECKPOINT, self.trained, self.state)
