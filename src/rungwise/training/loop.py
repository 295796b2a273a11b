"""The training loop: pairs in, the best snapshot out, resumable to the bit.

The loop knows no encoder. A model reads pairs and cuts batches, a step turns a batch into gradients, and a sampler says
which pairs meet.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rungwise.core.configuration import dump_yaml, load_yaml, to_plain
from rungwise.core.errors import UserError
from rungwise.core.files import replacing
from rungwise.data.collection import ImageCaptions
from rungwise.evaluation import evaluate
from rungwise.losses import Loss, warm_up
from rungwise.models import DualEncoder, Pairs, TrainableScorer, family
from rungwise.models.pairs import captions_of
from rungwise.relevance.base import Relevance
from rungwise.relevance.config import Building
from rungwise.training.batch_degrees import BatchDegrees
from rungwise.training.checkpoint import RunState, Trained, differing, load_checkpoint, save_checkpoint
from rungwise.training.collapse import CollapseWatch, spread
from rungwise.training.config import TrainConfig
from rungwise.training.degrees import training_degrees, with_training_thresholds
from rungwise.training.processes import Processes, joined
from rungwise.training.reports import EpochReport, StepReport, TensorBoardWatcher, Watcher
from rungwise.training.sampling import Drawn, Epoch
from rungwise.training.steps import Work

REPORT_STEPS = 10
CONFIG, CHECKPOINT, HISTORY, SKIPPED = "config.yaml", "checkpoint.safetensors", "history.jsonl", "skipped.txt"


@dataclass(frozen=True)
class TrainResult:
    """What a run leaves behind.

    Attributes:
        model_folder: The best snapshot, for :func:`rungwise.models.load`.
        best_epoch: It was taken after this epoch, from 1.
        best_rsum: Its validation rsum.
        history: One mapping of numbers an epoch.
        finished: False when the run was asked to stop; it can be resumed.
    """

    model_folder: Path
    best_epoch: int
    best_rsum: float
    history: list[dict[str, float]]
    finished: bool


def train(
    config: TrainConfig,
    data: ImageCaptions,
    out: Path,
    *,
    relevance: Relevance | None = None,
    cache: Path | None = None,
    resume: bool = False,
    device: str | None = None,
    watcher: Watcher | None = None,
) -> TrainResult:
    """Train a model and keep the snapshot with the best validation rsum.

    Writes into ``out``: ``config.yaml``, ``model/`` (the snapshot), ``checkpoint.safetensors``, ``history.jsonl``,
    ``tensorboard/`` and, where images had to be left out, ``skipped.txt``. Nothing is written before the run is
    accepted. Ctrl-C ends the present step, writes a checkpoint and returns. Under ``torchrun`` all processes call it;
    the first one writes.

    Args:
        config: The run.
        data: The collection; its splits are named by ``config.data``.
        out: Folder of the run.
        relevance: Degrees by positions in ``data``, for losses that read them; None takes those that the configuration
            names, or those that the data bring along.
        cache: Folder of the feature cache; the default one if None.
        resume: Go on from ``out``'s checkpoint, to the same final weights as if nothing had happened. The configuration
            must be that of the run; ``epochs`` alone may be made longer.
        device: Where to compute; None takes ``cuda`` where there is one.
        watcher: Told of progress.

    Raises:
        UserError: If the data do not suit, the disk is full, the loss is no longer finite, or a checkpoint does not
            belong to this run.
    """
    if (out / CHECKPOINT).exists() and not resume:
        raise UserError(f"{out}: holds a run already; go on with it (resume), or name another folder")
    _refuse_strangers(out)
    with joined(device) as (processes, place):
        run = _Run(config, data, out, processes, place, watcher)
        run.prepare(relevance, cache)
        run.accept(resume)
        return run.go()


class _Run:
    """One run's state and its steps."""

    def __init__(
        self,
        config: TrainConfig,
        data: ImageCaptions,
        out: Path,
        processes: Processes,
        device: torch.device,
        watcher: Watcher | None,
    ) -> None:
        self.config = config
        self.data = data
        self.out = out
        self.processes = processes
        self.device = device
        self.watchers = [watcher] if watcher and processes.first else []
        self.state = RunState()
        self.last: tuple[Tensor, Tensor] | None = None  # of the last full batch: loss per pair, spread

    def prepare(self, relevance: Relevance | None, cache: Path | None) -> None:
        """Make the model and everything that it reads; refuse what does not fit together."""
        data, config = self.data, self.config
        images = {name: self._images(name, splits) for name, splits in self._splits().items()}
        if not data.has_pictures:
            raise UserError(f"{data.name}: the collection has neither picture files nor features to train on")
        self.relevance = self._relevance(relevance)
        config = self.config
        degrees = None if self.relevance is None else BatchDegrees(self.relevance, config.data.reference == "batch")
        self.loss: Loss = config.loss.build().to(self.device)
        torch.manual_seed(config.seed)
        captions = [data.captions[caption] for caption in captions_of(data, images["train"])]
        kind: Any = family(config.model.kind)
        if not issubclass(kind, TrainableScorer):
            raise UserError(f"model.kind: models of kind {config.model.kind!r} are not trained; choose another family")
        self.model: TrainableScorer = kind.create(config.model, captions, data.features).to(self.device)
        if data.features is not None:
            self._say(f"the data are rows of features, {data.features.shape[1:]} each; they stand in for a backbone")
        published = self.loss.paper_similarity
        if isinstance(self.model, DualEncoder) and published not in ("cosine", self.model.similarity.kind):
            self._say(
                f"the loss {config.loss.kind} is published with the similarity {published}, and the model's is"
                f" {self.model.similarity.kind}; model.similarity sets it"
            )
        config.step.check(self.model, self.loss, self.processes, config.sampler.draws_lists)
        with self.processes.first_before_others():
            self.pairs = {name: self._read(name, chosen, cache) for name, chosen in images.items()}
        self.warm_up = warm_up(self.loss)
        self.issues = tuple(issue for pairs in self.pairs.values() for issue in pairs.rows.issues)
        self.optimizer = self._optimizer()
        self.trained = Trained(self.model, self.loss, self.optimizer)
        self.work = Work(self.model, self.pairs["train"], degrees, self._autocast, self.processes, self.parameters)
        self.batches_of = self._sampled(degrees)
        for watcher in self.watchers:
            watcher.skipped(self.issues)

    def accept(self, resume: bool) -> None:
        """Find the run's state, and write down what is run; up to here nothing of a run that stands was touched."""
        settings, data_hash = to_plain(self.config), self.data.content_hash()
        if resume:
            self.state, tensors = load_checkpoint(self.out / CHECKPOINT)
            self._refuse_other_run(settings, data_hash)
            self.trained.restore(tensors)
            self._say(f"resumed after epoch {self.state.epoch}, step {self.state.step} of the next")
        self.state.settings, self.state.data_hash = settings, data_hash
        if not self.processes.first:
            return
        with replacing(self.out / CONFIG) as draft:
            draft.write_text(dump_yaml(self.config), encoding="utf-8")
        if self.issues:
            with replacing(self.out / SKIPPED) as draft:
                lines = (f"{issue.kind}\t{issue.where}\t{issue.detail}\n" for issue in self.issues)
                draft.write_text("".join(lines), encoding="utf-8")

    def go(self) -> TrainResult:
        """Train until the end or until asked to stop."""
        self._open_tensorboard()
        if self.loss.rests_at is not None:
            self.watchers.append(CollapseWatch(self.loss.rests_at, self._say, memory=self.state.collapse))
        finished = False
        try:
            with _stop_requests() as stop:
                while self.state.epoch < self.config.total_epochs and not self.processes.any(stop.is_set()):
                    if self._epoch(self.batches_of(self.state.epoch), stop):
                        self._validate()
                    self._save()
                finished = self.state.epoch == self.config.total_epochs
        finally:
            for watcher in self.watchers:
                watcher.close()
        state = self.state
        return TrainResult(self.out / "model", state.best_epoch, state.best_rsum, state.history, finished)

    def _epoch(self, batches: Sequence[Any], stop: threading.Event) -> bool:
        """The rest of the present epoch; False when asked to stop before its end."""
        state, config = self.state, self.config
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate(state.epoch)
        loss_function = self.warm_up if state.epoch < config.warm_up_epochs else self.loss
        losses = torch.zeros((), dtype=torch.float64, device=self.device)
        begun, seen, self.seconds, self.timed_pairs = time.perf_counter(), 0, 0.0, 0
        while state.step < len(batches):
            if self.processes.any(stop.is_set()):
                state.loss_sum += float(losses)
                return False
            batch = batches[state.step]
            losses += self._step(batch, loss_function)
            seen += len(batch)
            state.step += 1
            state.total_steps += 1
            state.pairs += len(batch)
            due = state.step % config.checkpoint_steps == 0
            if due or state.step % REPORT_STEPS == 0 or state.step == len(batches):
                state.loss_sum += float(losses)
                losses.zero_()
                self.seconds += time.perf_counter() - begun
                self.timed_pairs += seen
                self._report_step(len(batches))
                if due and state.step < len(batches):
                    self._save()
                begun, seen = time.perf_counter(), 0
        return True

    def _step(self, batch: Any, loss_function: Loss) -> Tensor:
        """One step of Adam; returns the batch's loss, summed over its pairs."""
        config = self.config
        self.optimizer.zero_grad(set_to_none=True)
        # Draws depend on the step alone, so that a resumed run repeats them without any state to save.
        seed = config.seed + 1_000_003 * (self.state.total_steps + 1)
        outcome = config.step.backward(self.work, loss_function, batch, seed)
        torch.nn.utils.clip_grad_norm_(self.parameters, config.clip_norm)
        self.optimizer.step()
        total = outcome.value * (len(batch) if loss_function.reduction == "mean" else 1)
        if outcome.vectors is not None and len(batch) >= min(config.batch_size, len(self.work.pairs)):
            self.last = total / len(batch), spread(*outcome.vectors)
        return total

    def _validate(self) -> None:
        """Close the epoch: measure on the validation split and keep the model if it is the best."""
        state = self.state
        if self.processes.first:
            self._measure()
        state.epoch, state.step, state.loss_sum, state.pairs = state.epoch + 1, 0, 0.0, 0
        self.processes.wait()

    def _measure(self) -> None:
        state, pairs = self.state, self.pairs["validation"]
        scores = self.model.scores_of(pairs, self._autocast)
        result = evaluate(**scores.for_evaluation(), image_of_caption=scores.data.image_of_caption)
        numbers = {
            "epoch": float(state.epoch + 1),
            "learning_rate": self.config.learning_rate(state.epoch),
            "loss": state.loss_sum / max(state.pairs, 1),
            "pairs_per_second": self.timed_pairs / max(self.seconds, 1e-9),
            "rsum": float(result["rsum"]),
            **{f"{side}/R@{k}": float(result[f"{side}/R@{k}"]) for side in ("i2t", "t2i") for k in (1, 5, 10)},
        }
        best = numbers["rsum"] > state.best_rsum
        state.history.append(numbers)
        if best:
            state.best_rsum, state.best_epoch = numbers["rsum"], state.epoch + 1
            provenance = {
                "data": self.data.name,
                "data_hash": self.data.content_hash(),
                "seed": self.config.seed,
                "validation": numbers,
            }
            self.model.save_pretrained(self.out / "model", provenance)
        with replacing(self.out / HISTORY) as draft:
            draft.write_text("".join(json.dumps(one) + "\n" for one in state.history), encoding="utf-8")
        for watcher in self.watchers:
            watcher.epoch(EpochReport(state.total_steps, state.epoch + 1, self.config.total_epochs, numbers, best))

    def _report_step(self, steps: int) -> None:
        state = self.state
        loss = state.loss_sum / max(state.pairs, 1)
        if not np.isfinite(loss):
            raise UserError(
                f"the loss is {loss} at epoch {state.epoch + 1}, step {state.step}; lower the learning rate or use"
                " precision float32, and resume from the last checkpoint or start anew"
            )
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
        )
        for watcher in self.watchers:
            watcher.step(report)

    def _say(self, message: str) -> None:
        for watcher in self.watchers:
            watcher.say(message)

    def _save(self) -> None:
        if self.processes.first:
            save_checkpoint(self.out / CHECKPOINT, self.trained, self.state)

    def _autocast(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16")

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        """Everything that is trained: of the model, and of the loss."""
        return [one for part in (self.model, self.loss) for one in part.parameters() if one.requires_grad]

    def _optimizer(self) -> torch.optim.Optimizer:
        config, rate = self.config, self.config.learning_rates[0]
        if not config.weight_decay:
            return torch.optim.Adam(self.parameters, lr=rate, fused=True)
        # lambda / 2 ||W||^2 of the weight matrices (CMAL2R, Eq. 12): Adam's weight decay adds its gradient, lambda W.
        matrices = [one for one in self.model.parameters() if one.requires_grad and one.ndim > 1]
        kept = {id(one) for one in matrices}
        others = [one for one in self.parameters if id(one) not in kept]
        groups: list[dict[str, Any]] = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": others}]
        return torch.optim.Adam(groups, lr=rate, fused=True)

    def _images(self, name: str, splits: tuple[str, ...]) -> NDArray[np.int64]:
        """Positions of the images of some splits."""
        position = {image: at for at, image in enumerate(self.data.image_ids)}
        images = np.array([position[one] for one in self.data.split(*splits).image_ids], dtype=np.int64)
        if not len(captions_of(self.data, images)):
            raise UserError(f"{self.data.name}: the {name} pictures have no captions; training needs some in both")
        return images

    def _relevance(self, given: Relevance | None) -> Relevance | None:
        """The degrees that loss and sampler read; shares in the configuration become thresholds."""
        if not self.config.needs_relevance:
            return None
        building = Building(train=self.config.data.train, say=self._say)
        found = given if given is not None else training_degrees(self.config.data, self.data, building)
        if found is None:
            config = self.config
            wants = f"loss {config.loss.kind}" if config.loss.needs_relevance else f"sampler {config.sampler.kind}"
            raise UserError(
                f"the {wants} needs relevance degrees as it is set, and there are none; name a source or a folder of"
                " saved degrees in data.relevance, or pass relevance="
            )
        self.config, thresholds = with_training_thresholds(self.config, self.data, found)
        if thresholds:
            self._say(f"thresholds for the shares: {', '.join(f'{cut:.4g}' for cut in thresholds)}")
        return found

    def _sampled(self, degrees: BatchDegrees | None) -> Epoch:
        """The batches of every epoch."""
        pairs, data = self.pairs["train"], self.data
        labels = [data.labels[image] for image in pairs.images.tolist()] if data.labels else []
        relevance = None if self.relevance is None else _OfPairs(self.relevance, pairs)
        config = self.config
        drawn = Drawn(pairs.lengths, pairs.image, labels, relevance, config.batch_size, config.seed)
        return config.sampler.epochs(drawn)

    def _read(self, name: str, images: NDArray[np.int64], cache: Path | None) -> Pairs:
        """What the model reads of some images and of their captions."""

        def progress(done: int) -> None:
            for watcher in self.watchers:
                watcher.work(f"{name} images", done, len(images))

        pairs = self.model.read(self.data, images, cache=cache, progress=progress)
        rows = pairs.rows
        speed = rows.computed / max(rows.seconds, 1e-9)
        how = f" in {rows.seconds:.1f} s ({speed:.0f} images/s)" if rows.computed else ""
        self._say(
            f"{name}: {len(images)} images, {len(images) - rows.computed - len(rows.issues)} at hand,"
            f" {rows.computed} computed{how}"
        )
        if not len(pairs):
            raise UserError(f"{self.data.name}: none of the {len(images)} {name} images could be read")
        return pairs

    def _refuse_other_run(self, settings: dict[str, Any], data_hash: str) -> None:
        """A run goes on with the settings and data it was started with; only its last phase may be made longer."""
        state, path = self.state, self.out / CHECKPOINT
        if state.data_hash != data_hash:
            raise UserError(
                f"{path}: the run was started with other data ({state.data_hash[:12]} then, {data_hash[:12]} now);"
                " resume with the same, or start anew in another folder"
            )
        then, now = dict(state.settings), dict(settings)
        # The same data may stand elsewhere by now; their hash was compared.
        then["data"], now["data"] = ({**one["data"], "path": ""} for one in (then, now))
        before, after = then.pop("epochs"), now.pop("epochs")
        lines = differing(then, now)
        begun = state.epoch + (state.step > 0)
        old = replace(self.config, epochs=tuple(before)) if len(before) == len(after) else None
        if old is None or any(old.learning_rate(at) != self.config.learning_rate(at) for at in range(begun)):
            lines.append(f"epochs: {before} then, {after} now, which changes epochs that are done")
        elif self.config.total_epochs < begun:
            lines.append(f"epochs: {before} then, {after} now, fewer than are done")
        if lines:
            raise UserError(
                f"{path}: the run was started with other settings: {'; '.join(lines)}; resume with the same (epochs may"
                " be made longer), or start anew in another folder"
            )

    def _splits(self) -> dict[str, tuple[str, ...]]:
        return {"train": self.config.data.train, "validation": (self.config.data.validation,)}

    def _open_tensorboard(self) -> None:
        if not self.processes.first:
            return
        try:
            self.watchers.append(TensorBoardWatcher(self.out / "tensorboard", self.state.total_steps + 1))
        except ImportError:
            self._say("no TensorBoard events: pip install 'rungwise[tensorboard]' to have them")


class _OfPairs:
    """Degrees by positions among the images and captions of some pairs."""

    def __init__(self, source: Relevance, pairs: Pairs) -> None:
        self.source = source
        self.pairs = pairs

    def block(self, images: Any, captions: Any) -> NDArray[np.float32]:
        """(len(images), len(captions)) degrees."""
        return self.source.block(self.pairs.images[np.asarray(images)], self.pairs.captions[np.asarray(captions)])

    def dense(self) -> NDArray[np.float32]:
        """All images with all captions."""
        return self.block(np.arange(len(self.pairs.images)), np.arange(len(self.pairs)))


def _refuse_strangers(out: Path) -> None:
    """A folder that holds a file of one of a run's names, and no run, is somebody else's.

    Raises:
        UserError: Naming the file.
    """
    config = out / CONFIG
    if (out / CHECKPOINT).exists() or not config.exists():
        return
    try:
        load_yaml(TrainConfig, config)
    except UserError:
        raise UserError(f"{config}: is no run's configuration, and would be overwritten; name another folder") from None


@contextmanager
def _stop_requests() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C (or a polite kill) sets; a second one interrupts as usual."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop  # signals reach the main thread only
        return

    def request(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
