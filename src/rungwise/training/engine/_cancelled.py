"""Settings of a run that cannot act with its data, its model, its device or its processes.

What the configuration alone can tell is found in :mod:`rungwise.training.config`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch

from rungwise.core import Cancelled, UserError
from rungwise.core.output import short_repr
from rungwise.models import DualEncoder, Pairs, TrainableScorer
from rungwise.relevance import Degrees
from rungwise.relevance.description import describe
from rungwise.training.config import LossConfig, TrainConfig, describes_model, loss_cancelled
from rungwise.training.distributed import Processes
from rungwise.training.engine._run_degrees import by_one_caption
from rungwise.training.steps import CosineSchedule, OneCycleSchedule

SAMPLED = 20_000
"""Number of pairs, roughly, whose degrees are looked at."""


@dataclass(frozen=True)
class RunFacts:
    """What a run is going to work with.

    Attributes:
        model: The model.
        pairs: The training pairs.
        degrees: Degrees by positions in the collection, for loss and sampler; None where neither reads any.
        device: Device of the training.
        processes: Processes of the run.
        asked: The loss as it was configured, with shares where these have been measured since.
        given: Whether degrees were given as a value, and not named in the configuration.
    """

    model: TrainableScorer
    pairs: Pairs
    degrees: Degrees | None
    device: torch.device
    processes: Processes
    asked: LossConfig
    given: bool = False

    __repr__ = short_repr

    @property
    def trained(self) -> set[str]:
        """The parts of the model of which some weight is trained: image, text, heads."""
        named = self.model.named_parameters()
        return {self.model.part_of(name).side for name, one in named if one.requires_grad}

    def steps(self, config: TrainConfig) -> int:
        """Number of steps of an epoch, roughly; a sampler may cut more batches."""
        return max(math.ceil(len(self.pairs) / config.batch_size), 1)


def accepted_with_data(config: TrainConfig, facts: RunFacts) -> list[str]:
    """The lines on settings that cannot act.

    Raises:
        UserError: If a setting can only be a mistake that wastes the run.
    """
    found = [one for check in _CHECKS for one in check(config, facts)]
    for one in found:
        if one.refused:
            raise UserError(one.line)
    return [one.line for one in found]


def _rates(config: TrainConfig, facts: RunFacts) -> Iterator[Cancelled]:
    rates, trained = config.rates, facts.trained
    for side, factor in (("image", rates.image), ("text", rates.text)):
        if factor != 1 and side not in trained:
            yield Cancelled(
                f"rates.{side} {factor:g} changes nothing: no weight of the {side} encoder is trained; leave it out, or"
                f" set model.{side}.frozen to false"
            )
        elif not factor and side in trained:
            yield Cancelled(
                f"rates.{side} 0 keeps the {side} encoder as it begins, and computes its gradients all the same; set it"
                f" above 0, or model.{side}.frozen to true"
            )
    if rates.layer_decay != 1 and not trained & {"image", "text"}:
        yield Cancelled(
            f"rates.layer_decay {rates.layer_decay:g} changes nothing: no encoder is trained; leave it out, or set"
            " model.image.frozen or model.text.frozen to false"
        )


def _features(config: TrainConfig, facts: RunFacts) -> Iterator[Cancelled]:
    data = facts.pairs.data
    image = getattr(config.model, "image", None)
    rows = data.features is not None
    if rows and describes_model(config):
        for name in ("frozen", "crops", "mirrored", "batch_norm"):
            value = getattr(image, name, None)
            if value not in (None, True, getattr(type(image), name, None)) or (name, value) == ("mirrored", True):
                yield Cancelled(
                    f"model.image.{name} {_word(value)} changes nothing: the data are rows of features, of which no"
                    " picture is seen; leave it out, or give pictures"
                )
    if config.feature_precision != "float32" and (rows or "image" in facts.trained):
        why = "the data are rows of features" if rows else "the image encoder is trained (model.image.frozen false)"
        yield Cancelled(
            f"feature_precision {config.feature_precision} changes nothing: {why}, so that no features are computed"
            " beforehand; leave it out"
        )
    if config.resident != TrainConfig.resident and facts.device.type != "cuda":
        yield Cancelled(
            f"resident {config.resident:g} changes nothing on {facts.device.type}: it is of a GPU's memory; leave it"
            " out"
        )


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _step(config: TrainConfig, facts: RunFacts) -> Iterator[Cancelled]:
    if config.step.kind != "global_negatives":
        return
    world, chunk = facts.processes.world, getattr(config.step, "chunk", None)
    if world == 1:
        same = "plain" if chunk is None else f"cached_gradients with chunk {chunk}"
        yield Cancelled(f"step global_negatives is {same} in one process; start it with torchrun for several")
    elif chunk is not None and chunk < config.batch_size <= chunk * world:
        own = math.ceil(config.batch_size / world)
        yield Cancelled(
            f"step.chunk {chunk} is no less than the {own} pairs that each of {world} processes has of batch_size"
            f" {config.batch_size}: each is one chunk, encoded twice; set it below {own}, or leave it out"
        )


def _batches(config: TrainConfig, facts: RunFacts) -> Iterator[Cancelled]:
    pairs = facts.pairs
    pictures, captions = len(np.unique(pairs.image)), len(pairs)
    single = pictures == captions
    if config.sampler.kind == "one_caption_per_image":
        if single:
            yield Cancelled(
                "sampler one_caption_per_image is shuffled with these data: every training picture has one caption"
            )
        elif config.batch_size > pictures:
            yield Cancelled(
                f"batch_size {config.batch_size} is never reached: sampler one_caption_per_image takes one caption of"
                f" each of {pictures:,} training pictures; lower it, or take sampler shuffled"
            )
    if single and not config.data.judgements and config.sampler.kind != "one_caption_per_image":
        for place, loss in _acting(facts.asked, "loss"):
            if getattr(loss, "extra_positives", "mask") != "mask":
                yield Cancelled(
                    f"{place}.extra_positives {loss.extra_positives} changes nothing: every training picture has one"  # type: ignore[attr-defined]
                    " caption; leave it out"
                )
    for place, loss in _acting(facts.asked, "loss"):
        if (getattr(loss, "negative_set", None) or 0) > max(captions, config.batch_size):
            yield Cancelled(
                f"{place}.negative_set {loss.negative_set} is more than there are training pairs, {captions:,}: all are"  # type: ignore[attr-defined]
                " taken; lower it"
            )


def _lengths(config: TrainConfig, facts: RunFacts) -> Iterator[Cancelled]:
    """What is counted in steps, and comes to none."""
    steps = facts.steps(config)
    every = steps * config.total_epochs
    if config.checkpoint_steps != TrainConfig.checkpoint_steps and config.checkpoint_steps >= steps:
        lower = f"set it below {steps}, or leave it out" if steps > 1 else "leave it out"
        yield Cancelled(
            f"checkpoint_steps {config.checkpoint_steps} is never reached: an epoch has {steps:,}"
            f" step{'s' if steps > 1 else ''}, and each epoch ends with a checkpoint; {lower}"
        )
    reached = (1 + every) / (10 + every)
    if config.ema > reached:
        yield Cancelled(
            f"ema {config.ema:g} is never reached: of step t the average takes at most (1 + t) / (10 + t), and the run"
            f" has {every:,} steps, which comes to {reached:.4g}; train longer, or set ema lower"
        )
    schedule = config.schedule
    if isinstance(schedule, OneCycleSchedule | CosineSchedule):
        name = "rise" if isinstance(schedule, OneCycleSchedule) else "warm_up"
        rising = getattr(schedule, name)
        if rising and rising * every <= 0.5:  # the rate of a step is that of its middle
            yield Cancelled(
                f"schedule.{name} {rising:g} raises nothing: it is less than one of the run's {every:,} steps; raise"
                " it, or train longer"
            )


def _similarity(config: TrainConfig, facts: RunFacts) -> Iterator[Cancelled]:
    """Of the loss, with the similarity of a model that the configuration does not describe, and with few pairs."""
    if not describes_model(config) and isinstance(facts.model, DualEncoder):
        yield from loss_cancelled(config, facts.model.similarity)
    elif len(facts.pairs) == 1 < config.batch_size:
        alone = loss_cancelled(replace(config, batch_size=1), None)
        yield from (Cancelled(f"there is one training pair: {one.line}", True) for one in alone if one.refused)


def _degrees(config: TrainConfig, facts: RunFacts) -> Iterator[Cancelled]:
    """Bounds of relevance that no degree reaches, or all do, by a sample of the training pairs."""
    if facts.degrees is None:
        if facts.given and not config.snapshot.chosen.measure.graded:
            yield Cancelled(
                f"relevance= is not read: loss {config.loss.kind}, sampler {config.sampler.kind} and snapshot.measure"
                f" {config.snapshot.measure} read no degrees; leave it out, or take such as loss ladder"
            )
        return
    pairs = facts.pairs
    source = by_one_caption(facts.degrees, pairs.data) if config.data.reference == "batch" else facts.degrees
    seen = describe.sample(source, pairs=SAMPLED, images=pairs.images, captions=pairs.captions)
    own, others = seen.degrees[seen.own & ~np.isnan(seen.degrees)], seen.others
    if not len(others):
        return
    for place, loss in _acting(facts.asked, "loss"):
        if not getattr(loss, "shares", ()):  # what shares come to is said where they are measured
            yield from loss.build().cancelled_by_degrees(place, own, others)
    yield from config.sampler.cancelled_by_degrees("sampler", others)


def _acting(loss: LossConfig, place: str) -> Iterator[tuple[str, LossConfig]]:
    """A loss, or the losses that it adds up with a weight, with the settings that hold them."""
    members = loss.members()
    if not members:
        yield place, loss
        return
    weights = getattr(loss, "weights", (1.0,) * len(members))
    for at, (one, weight) in enumerate(zip(members, weights, strict=True), start=1):
        if weight:
            yield from _acting(one, f"{place}.losses ({at})")


_CHECKS: tuple[Callable[[TrainConfig, RunFacts], Iterator[Cancelled]], ...] = (
    _rates, _features, _step, _batches, _lengths, _similarity, _degrees,
)  # fmt: skip
