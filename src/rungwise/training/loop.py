"""The training loop: pairs in, the best snapshot out, resumable to the bit."""

from __future__ import annotations

import hashlib
import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rungwise.core.configuration import dump_yaml, to_plain
from rungwise.core.errors import UserError
from rungwise.core.files import replacing
from rungwise.data.collection import ImageCaptions
from rungwise.encoders.cache import ImageRows, feature_rows, pixel_rows
from rungwise.encoders.text import pad, tokenise
from rungwise.evaluation import evaluate
from rungwise.losses import Loss, warm_up
from rungwise.models.joint import JointEmbedding
from rungwise.relevance.base import Relevance
from rungwise.training.batches import epoch_batches
from rungwise.training.checkpoint import RunState, load_checkpoint, save_checkpoint
from rungwise.training.collapse import CollapseWatch, spread
from rungwise.training.config import TrainConfig
from rungwise.training.reports import EpochReport, StepReport, TensorBoardWatcher, Watcher

REPORT_STEPS = 10


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


@dataclass(frozen=True)
class Pairs:
    """The readable pictures of some splits with their captions.

    Attributes:
        rows: What the model reads of each picture.
        images: (pictures,) positions in the collection.
        captions: (captions,) positions in the collection.
        picture: (captions,) position of each caption's picture in ``rows``.
        tokens: (captions,) token numbers.
    """

    rows: ImageRows
    images: NDArray[np.int64]
    captions: NDArray[np.int64]
    picture: NDArray[np.int64]
    tokens: list[list[int]]

    def __len__(self) -> int:
        return len(self.captions)


def train(
    config: TrainConfig,
    data: ImageCaptions,
    out: Path,
    *,
    relevance: Relevance | None = None,
    cache: Path | None = None,
    resume: bool = False,
    device: str = "cpu",
    watcher: Watcher | None = None,
) -> TrainResult:
    """Train a joint embedding and keep the snapshot with the best validation rsum.

    Writes into ``out``: ``config.yaml``, ``model/`` (the snapshot), ``checkpoint.safetensors``, ``history.jsonl``,
    ``tensorboard/`` and, where pictures had to be left out, ``skipped.txt``. Ctrl-C ends the present step, writes a
    checkpoint and returns.

    Args:
        config: The run.
        data: The collection; its splits are named by ``config.data``.
        out: Folder of the run.
        relevance: Degrees by positions in ``data``; graded losses need it.
        cache: Folder of the feature cache; the default one if None.
        resume: Go on from ``out``'s checkpoint, to the same final weights as if nothing had happened.
        device: Where to compute.
        watcher: Told of progress.

    Raises:
        UserError: If the data do not suit, the disk is full, the loss is no longer finite, or a checkpoint does not
            belong to this run.
    """
    if config.needs_relevance and relevance is None:
        raise UserError(
            f"the loss {config.loss.kind} needs relevance degrees as it is set, and none were given; pass relevance=,"
            " or use max_of_hinges without mask_above"
        )
    checkpoint = out / "checkpoint.safetensors"
    if checkpoint.exists() and not resume:
        raise UserError(f"{out}: holds a run already; give --resume to go on with it, or another --out")
    run = _Run(config, data, out, relevance, torch.device(device), watcher)
    with replacing(out / "config.yaml") as draft:
        draft.write_text(dump_yaml(config), encoding="utf-8")
    run.prepare(cache)
    return run.go(checkpoint, resume)


class _Run:
    """One run's state and its steps."""

    def __init__(
        self,
        config: TrainConfig,
        data: ImageCaptions,
        out: Path,
        relevance: Relevance | None,
        device: torch.device,
        watcher: Watcher | None,
    ) -> None:
        self.config = config
        self.data = data
        self.out = out
        self.relevance = relevance if config.needs_relevance else None
        self.device = device
        self.watchers = [watcher] if watcher else []
        self.state = RunState()
        self.last: tuple[Tensor, Tensor] | None = None  # of the last full batch: loss per pair, spread
        self.loss = config.loss.build()
        self.warm_up = warm_up(self.loss)
        identity = hashlib.sha256(json.dumps(to_plain(config), sort_keys=True).encode()).hexdigest()
        self.identity = {"configuration": identity, "data": data.content_hash()}

    def prepare(self, cache: Path | None) -> None:
        """Make the model and everything it reads."""
        config, data = self.config, self.data
        members = {name: data.split(*names).image_ids for name, names in self._splits().items()}
        position = {image: at for at, image in enumerate(data.image_ids)}
        images = {name: np.array([position[one] for one in ids], dtype=np.int64) for name, ids in members.items()}
        captions = {name: _captions_of(data, chosen) for name, chosen in images.items()}
        for name, chosen in captions.items():
            if not len(chosen):
                raise UserError(f"{data.name}: the {name} pictures have no captions; training needs some in both")
        if not data.paths:
            raise UserError(f"{data.name}: the collection has no picture files to train on")
        torch.manual_seed(config.seed)
        self.model = JointEmbedding.create(config.model, [data.captions[c] for c in captions["train"]])
        self.model.to(self.device)
        self.pairs = {name: self._read(name, images[name], captions[name], cache) for name in images}
        issues = tuple(issue for pairs in self.pairs.values() for issue in pairs.rows.issues)
        for watcher in self.watchers:
            watcher.skipped(issues)
        if issues:
            with replacing(self.out / "skipped.txt") as draft:
                lines = (f"{issue.kind}\t{issue.where}\t{issue.detail}\n" for issue in issues)
                draft.write_text("".join(lines), encoding="utf-8")
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.Adam(trained, lr=config.learning_rates[0], fused=True)

    def go(self, checkpoint: Path, resume: bool) -> TrainResult:
        """Train until the end or until asked to stop."""
        if resume:
            self.state = load_checkpoint(checkpoint, self.model, self.optimizer, self.identity)
            self._say(f"resumed after epoch {self.state.epoch}, step {self.state.step} of the next")
        self.state.identity = self.identity
        self._open_tensorboard()
        if self.loss.rests_at is not None:
            self.watchers.append(CollapseWatch(self.loss.rests_at / 2, self._say, memory=self.state.collapse))
        lengths = [len(tokens) for tokens in self.pairs["train"].tokens]
        finished = False
        try:
            with _stop_requests() as stop:
                while self.state.epoch < self.config.total_epochs and not stop.is_set():
                    batches = epoch_batches(
                        lengths,
                        self.config.batch_size,
                        seed=self.config.seed,
                        epoch=self.state.epoch,
                        pool=self.config.bucket_pool,
                    )
                    if self._epoch(batches, checkpoint, stop):
                        self._validate()
                    save_checkpoint(checkpoint, self.model, self.optimizer, self.state)
                finished = self.state.epoch == self.config.total_epochs
        finally:
            for watcher in self.watchers:
                watcher.close()
        state = self.state
        return TrainResult(self.out / "model", state.best_epoch, state.best_rsum, state.history, finished)

    def _epoch(self, batches: list[NDArray[np.int64]], checkpoint: Path, stop: threading.Event) -> bool:
        """The rest of the present epoch; False when asked to stop before its end."""
        state, config = self.state, self.config
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate(state.epoch)
        loss_function = self.warm_up if state.epoch < config.warm_up_epochs else self.loss
        losses = torch.zeros((), dtype=torch.float64, device=self.device)
        begun, seen, self.seconds, self.timed_pairs = time.perf_counter(), 0, 0.0, 0
        while state.step < len(batches):
            if stop.is_set():
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
                    save_checkpoint(checkpoint, self.model, self.optimizer, state)
                begun, seen = time.perf_counter(), 0
        return True

    def _step(self, batch: NDArray[np.int64], loss_function: Loss) -> Tensor:
        """One step of Adam; returns the batch's loss, summed over its pairs."""
        pairs, config = self.pairs["train"], self.config
        # Draws depend on the step alone, so that a resumed run repeats them without any state to save.
        torch.manual_seed(config.seed + 1_000_003 * (self.state.total_steps + 1))
        pictures = pairs.picture[batch]
        tokens, lengths = pad([pairs.tokens[caption] for caption in batch])
        rows = pairs.rows.take(pictures).to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=config.precision == "bfloat16"):
            image_vectors = self.model.embed_images(rows)
            text_vectors = self.model.embed_captions(tokens.to(self.device), lengths)
        similarity = image_vectors @ text_vectors.T
        relevance = None
        if self.relevance is not None:
            block = self.relevance.block(pairs.images[pictures], pairs.captions[batch])
            relevance = torch.from_numpy(block).to(self.device)
        positives = torch.from_numpy(pictures[:, None] == pictures[None, :]).to(self.device)
        within = {}
        if loss_function.reads.within:
            within["image_similarity"] = image_vectors @ image_vectors.T
            within["text_similarity"] = text_vectors @ text_vectors.T
        loss = loss_function(similarity, relevance, positives, **within)
        assert isinstance(loss, Tensor)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.optimizer.param_groups[0]["params"], config.clip_norm)
        self.optimizer.step()
        total = loss.detach() * (len(batch) if loss_function.reduction == "mean" else 1)
        if len(batch) >= min(config.batch_size, len(pairs)):
            self.last = total / len(batch), spread(image_vectors, text_vectors)
        return total

    def _validate(self) -> None:
        """Close the epoch: measure on the validation split and keep the model if it is the best."""
        state, pairs = self.state, self.pairs["validation"]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"):
            image_vectors = self.model.encode_rows(pairs.rows)
            text_vectors = self.model.encode_tokens(pairs.tokens)
        result = evaluate(image_embeddings=image_vectors, text_embeddings=text_vectors, image_of_caption=pairs.picture)
        numbers = {
            "epoch": float(state.epoch + 1),
            "learning_rate": self.config.learning_rate(state.epoch),
            "loss": state.loss_sum / max(state.pairs, 1),
            "pairs_per_second": self.timed_pairs / max(self.seconds, 1e-9),
            "rsum": float(result["rsum"]),
            **{f"{side}/R@{k}": float(result[f"{side}/R@{k}"]) for side in ("i2t", "t2i") for k in (1, 5, 10)},
        }
        best = numbers["rsum"] > state.best_rsum
        state.epoch, state.step, state.loss_sum, state.pairs = state.epoch + 1, 0, 0.0, 0
        state.history.append(numbers)
        if best:
            state.best_rsum, state.best_epoch = numbers["rsum"], state.epoch
            provenance = {
                "data": self.data.name,
                "data_hash": self.data.content_hash(),
                "seed": self.config.seed,
                "validation": numbers,
            }
            self.model.save_pretrained(self.out / "model", provenance)
        with replacing(self.out / "history.jsonl") as draft:
            draft.write_text("".join(json.dumps(one) + "\n" for one in state.history), encoding="utf-8")
        for watcher in self.watchers:
            watcher.epoch(EpochReport(state.total_steps, state.epoch, self.config.total_epochs, numbers, best))

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

    def _read(self, name: str, images: NDArray[np.int64], captions: NDArray[np.int64], cache: Path | None) -> Pairs:
        """Features or pixels of some pictures, and the tokens of their captions."""
        backbone, paths = self.model.backbone, [self.data.paths[image] for image in images]
        what = "features" if self.config.model.image.frozen else "pictures"

        def progress(done: int) -> None:
            for watcher in self.watchers:
                watcher.work(f"{name} {what}", done, len(paths))

        if self.config.model.image.frozen:
            rows = feature_rows(backbone, paths, cache, progress=progress)
        else:
            rows = pixel_rows(backbone.preprocessing, paths, cache, progress=progress)
        speed = rows.computed / max(rows.seconds, 1e-9)
        how = f" in {rows.seconds:.1f} s ({speed:.0f} images/s)" if rows.computed else ""
        self._say(
            f"{name}: {len(paths)} pictures, {len(paths) - rows.computed - len(rows.issues)} from the cache,"
            f" {rows.computed} computed{how}"
        )
        place = np.full(len(self.data), -1, dtype=np.int64)
        place[images[rows.kept]] = np.arange(len(rows.kept))
        readable = captions[place[self.data.image_of_caption[captions]] >= 0]
        if not len(readable):
            raise UserError(f"{self.data.name}: none of the {len(paths)} {name} pictures could be read")
        tokens = tokenise(self.model.tokenizer, [self.data.captions[caption] for caption in readable])
        return Pairs(rows, images[rows.kept], readable, place[self.data.image_of_caption[readable]], tokens)

    def _splits(self) -> dict[str, tuple[str, ...]]:
        return {"train": self.config.data.train, "validation": (self.config.data.validation,)}

    def _open_tensorboard(self) -> None:
        try:
            self.watchers.append(TensorBoardWatcher(self.out / "tensorboard", self.state.total_steps + 1))
        except ImportError:
            self._say("no TensorBoard events: pip install 'rungwise[tensorboard]' to have them")


def _captions_of(data: ImageCaptions, images: NDArray[np.int64]) -> NDArray[np.int64]:
    member = np.zeros(len(data), dtype=bool)
    member[images] = True
    return np.flatnonzero(member[data.image_of_caption])


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
