"""Preparation of a run: from configuration and collection to everything that the loop needs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.core.disk import usable_cache
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, Issue, with_share
from rungwise.encoders import computed_in, trained_in
from rungwise.losses import Loss, warm_up
from rungwise.models import DualEncoder, Pairs, TrainableScorer, captions_of, resident, texts_at
from rungwise.relevance import Degrees, Relevance, as_degrees
from rungwise.relevance.config import Building
from rungwise.training.batches import (
    BatchDegrees,
    Drawn,
    Epoch,
    SplitDegrees,
    TrainingPositives,
    read_training_positives,
)
from rungwise.training.config import TrainConfig
from rungwise.training.distributed import Processes
from rungwise.training.engine._cancelled import RunFacts, accepted_with_data
from rungwise.training.engine._checkpoint import Trained
from rungwise.training.engine._compilation import compile_encoders
from rungwise.training.engine._initialisation import model_of
from rungwise.training.engine._run_degrees import training_degrees, validation_degrees, with_training_thresholds
from rungwise.training.engine._validation import Validation
from rungwise.training.steps import Group, OptimizerStep, StepContext, WeightAverage

Progress = Callable[[str, int, int], None]
"""Called with the name of a task, the number of items done since the last call, and their total."""


@dataclass(frozen=True)
class Prepared:
    """Everything that a run works with.

    Attributes:
        config: Configuration of the run, with thresholds in place of shares.
        model: The model, trained in place.
        loss: Loss after the warm-up.
        warm_up: Loss of the first epochs, if the configuration has a warm-up; otherwise the loss itself.
        validation: Measurement that chooses the snapshot.
        updates: Optimizer steps of model and loss.
        work: Context of every step.
        batches_of: Function from an epoch to its batches.
        issues: Images and judgements that are left out.
        start_hash: Fingerprint of the model that the run starts from; empty for a new one.
    """

    config: TrainConfig
    model: TrainableScorer
    loss: Loss
    warm_up: Loss
    validation: Validation
    updates: OptimizerStep
    work: StepContext
    batches_of: Epoch
    issues: tuple[Issue, ...]
    start_hash: str

    __repr__ = short_repr

    @property
    def trained(self) -> Trained:
        """The parts that a checkpoint keeps."""
        optimizer, average = self.updates.optimizer, self.updates.average
        return Trained(self.model, self.loss, optimizer, self.config.optimizer, average)


def prepare(
    config: TrainConfig,
    data: ImageCaptions,
    processes: Processes,
    device: torch.device,
    *,
    relevance: Relevance | ArrayLike | None = None,
    cache: Path | None = None,
    say: Callable[[str], None],
    progress: Progress,
) -> Prepared:
    """Make the model, and read everything for training and validation.

    Args:
        config: Configuration of the run.
        data: The collection.
        processes: Processes of the run.
        device: Device of the training.
        relevance: Degrees by positions in ``data``; None takes those that the configuration names.
        cache: Folder of the caches of features and of relevance; the default one if None.
        say: Called with sentences for a person.
        progress: Called as images are read.
    """
    asked = config.loss
    data = _shared(config, data, say)
    train, validation = (
        _images(data, name, splits)
        for name, splits in (("train", config.data.train), ("validation", (config.data.validation,)))
    )
    if not data.has_pictures:
        raise UserError(f"{data.name}: the collection has neither picture files nor features to train on")
    building = Building(train=config.data.train, say=say, work=progress, cache=usable_cache(cache) / "relevance")
    with processes.first_before_others():
        config, sources = _with_degrees(config, data, relevance, building)
    source = sources.training
    degrees = None if source is None else BatchDegrees(source, config.data.reference == "batch")
    loss = config.loss.build().to(device)
    model, start_hash = _model(config, data, train, say)
    model = model.to(device)
    _remark(config, data, len(captions_of(data, train)), model, loss, say)
    config.step.check(model, loss, processes, config.sampler.draws_lists)
    with processes.first_before_others(), computed_in(config.feature_precision, say=say):
        pairs, chosen = (
            _read(model, data, name, images, cache, say, progress)
            for name, images in (("train", train), ("validation", validation))
        )
    called_right = _called_right(config, data, pairs, say)
    found = RunFacts(model, pairs, source, device, processes, asked=asked, given=relevance is not None)
    for line in accepted_with_data(config, found):
        say(line)
    pairs = replace(pairs, rows=resident(pairs.rows, device, config.resident))
    autocast = partial(_autocast, device, _precision(config, device, say))
    compile_encoders(config, model, pairs, autocast, say)
    updates = _updates(config, model, loss)
    return Prepared(
        config,
        model,
        loss,
        warm_up(loss),
        Validation(config.snapshot, chosen, autocast, sources.validation),
        updates,
        StepContext(model, pairs, degrees, autocast, processes, updates.parameters, updates.scaled, called_right),
        _batches(config, data, pairs, source),
        pairs.rows.issues + chosen.rows.issues + (called_right.issues if called_right is not None else ()),
        start_hash,
    )


def _called_right(
    config: TrainConfig, data: ImageCaptions, pairs: Pairs, say: Callable[[str], None]
) -> TrainingPositives | None:
    """Human positives, if the configuration names judgements."""
    if not config.data.judgements:
        return None
    if config.sampler.draws_lists:
        raise UserError(
            "data.judgements changes nothing with a sampler of lists; leave it out, or choose another sampler"
        )
    found = read_training_positives(config.data.judgements, data)
    trained = found.among(pairs.images, pairs.captions)
    if not trained:
        raise UserError(
            f"data.judgements: none of the {len(found)} pairs that people called right in {config.data.judgements} is"
            " of training pictures, so it would change nothing; leave it out"
        )
    say(f"judgements: {trained:,} of {len(found):,} pairs that people called right are of training pictures")
    return found


def _shared(config: TrainConfig, data: ImageCaptions, say: Callable[[str], None]) -> ImageCaptions:
    """The collection with the configured share of its training pictures."""
    shared = with_share(data, config.data.train, config.data.share, config.seed)
    if shared is not data:
        seen, all_of_them = (sum(one in config.data.train for one in which.splits) for which in (shared, data))
        say(f"train: {seen:,} of {all_of_them:,} pictures (share {config.data.share:g}, seed {config.seed})")
    return shared


def _images(data: ImageCaptions, name: str, splits: tuple[str, ...]) -> NDArray[np.int64]:
    """Positions of the images of some splits."""
    position = {image: at for at, image in enumerate(data.image_ids)}
    images = np.array([position[one] for one in data.split(*splits).image_ids], dtype=np.int64)
    if not len(captions_of(data, images)):
        raise UserError(f"{data.name}: the {name} pictures have no captions; training needs some in both")
    return images


@dataclass(frozen=True)
class _Degrees:
    """Degrees for loss and sampler, and for the measure of validation; None where they read none."""

    training: Degrees | None
    validation: Degrees | None


def _with_degrees(
    config: TrainConfig,
    data: ImageCaptions,
    given: Relevance | ArrayLike | None,
    building: Building,
) -> tuple[TrainConfig, _Degrees]:
    """The degrees of loss, sampler and measure, and the configuration with thresholds in place of shares."""
    brought = None if given is None else as_degrees(given, data, "relevance=")
    validation = None
    if config.snapshot.chosen.measure.graded:
        validation = validation_degrees(config, data, brought, building)
    if not config.needs_relevance:
        return config, _Degrees(None, validation)
    found = brought or training_degrees(config.data, data, building)
    if found is None:
        wants = f"loss {config.loss.kind}" if config.loss.needs_relevance else f"sampler {config.sampler.kind}"
        raise UserError(
            f"the {wants} needs relevance degrees as it is set, and there are none; name a source or a folder of"
            " saved degrees in data.relevance, or pass relevance=",
            parameters={"relevance=": "data.relevance"},
        )
    config, thresholds = with_training_thresholds(config, data, found, building.say)
    if thresholds:
        building.say(f"thresholds for the shares: {', '.join(f'{cut:.4g}' for cut in thresholds)}")
    return config, _Degrees(found, validation)


def _model(
    config: TrainConfig, data: ImageCaptions, images: NDArray[np.int64], say: Callable[[str], None]
) -> tuple[TrainableScorer, str]:
    model, start_hash = model_of(config, texts_at(data, captions_of(data, images)), data.features, say)
    if config.gradient_checkpointing:
        model.recompute_layers()
    return model, start_hash


def _remark(
    config: TrainConfig,
    data: ImageCaptions,
    train: int,
    model: TrainableScorer,
    loss: Loss,
    say: Callable[[str], None],
) -> None:
    """Tell the user about settings that may be unintended, and facts that are not visible."""
    for line in model.remarks():
        say(line)
    if config.batch_size > train:
        share = f", with data.share {config.data.share:g}," if config.data.share < 1 else ""
        say(
            f"batch_size is {config.batch_size}, and{share} there are {train} training pairs: every step takes them all"
        )
    if data.features is not None:
        say(f"the data are rows of features, {data.features.shape[1:]} each; they stand in for a backbone")
    published = loss.paper_similarity
    if isinstance(model, DualEncoder) and published not in ("cosine", model.similarity.kind):
        say(
            f"the loss {config.loss.kind} is published with the similarity {published}, and the model's is"
            f" {model.similarity.kind}; model.similarity sets it"
        )


def _read(
    model: TrainableScorer,
    data: ImageCaptions,
    name: str,
    images: NDArray[np.int64],
    cache: Path | None,
    say: Callable[[str], None],
    progress: Progress,
) -> Pairs:
    """The model's input for some images and their captions."""
    titles, captions = (f"{name} captions", f"{name} images"), len(captions_of(data, images))
    texts = model.keep_texts(data, images, cache=cache, progress=lambda done: progress(titles[0], done, captions))
    if texts is not None:
        how = f" in {texts.seconds:.1f} s" if texts.computed else ""
        say(f"{name}: {captions} captions, {texts.computed} computed{how}")
    pairs = model.read(data, images, cache=cache, progress=lambda done: progress(titles[1], done, len(images)))
    rows = pairs.rows
    speed = rows.computed / max(rows.seconds, 1e-9)
    how = f" in {rows.seconds:.1f} s ({speed:.0f} images/s)" if rows.computed else ""
    say(
        f"{name}: {len(images)} images, {len(images) - rows.computed - len(rows.issues)} at hand,"
        f" {rows.computed} computed{how}"
    )
    if cut := len(model.too_long(texts_at(data, pairs.captions))):
        say(f"{name}: {cut} of {len(pairs)} captions are longer than the model reads; it reads their beginning")
    if not len(pairs):
        raise UserError(f"{data.name}: none of the {len(images)} {name} images could be read")
    return pairs


def _autocast(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    kind: torch.dtype = getattr(torch, precision)
    return torch.autocast(device.type, kind, enabled=kind != torch.float32)


def _precision(config: TrainConfig, device: torch.device, say: Callable[[str], None]) -> str:
    """Precision of the encoders on this device."""
    found = trained_in(config.precision, device)
    if config.precision == "auto" and found == "float32":
        say(f"training in float32: {device.type} has no instructions for bfloat16 here, so that it would take longer")
    return found


def _updates(config: TrainConfig, model: TrainableScorer, loss: Loss) -> OptimizerStep:
    named = [*model.named_parameters(), *loss.named_parameters(prefix="loss")]
    return OptimizerStep(
        _optimizer(config, model, loss),
        [(name, parameter) for name, parameter in named if parameter.requires_grad],
        config.clip_norm,
        scales=config.precision == "float16",
        average=WeightAverage(model, config.ema) if config.ema else None,
    )


def _optimizer(config: TrainConfig, model: TrainableScorer, loss: Loss) -> torch.optim.Optimizer:
    """The optimizer, with parameters grouped by factor of the rate and decay."""
    groups: dict[tuple[float, float], Group] = {}
    named = [(config.rates.factor(model.part_of(name)), one, one.ndim > 1) for name, one in model.named_parameters()]
    named += [(config.rates.heads, one, False) for one in loss.parameters()]
    for factor, parameter, decays in named:
        if parameter.requires_grad:
            # lambda / 2 ||W||^2 of the weight matrices (CMAL2R, Eq. 12): Adam's weight decay adds its gradient,
            # lambda W. That of AdamW shrinks them beside the gradient.
            decay = (config.weight_decay or config.optimizer.decay) if decays else 0.0
            group = groups.setdefault((factor, decay), {"params": [], "factor": factor, "weight_decay": decay})
            group["params"].append(parameter)
    if not groups:
        raise UserError("nothing is trained: every weight of the model is frozen; unfreeze a side or add heads")
    return config.optimizer.build(list(groups.values()), config.learning_rates[0])


def _batches(config: TrainConfig, data: ImageCaptions, pairs: Pairs, source: Relevance | None) -> Epoch:
    """Function from an epoch to its batches."""
    labels = [data.labels[image] for image in pairs.images.tolist()] if data.labels else []
    relevance = None if source is None else SplitDegrees(source, pairs)
    return config.sampler.epochs(Drawn(pairs.lengths, pairs.image, labels, relevance, config.batch_size, config.seed))
