"""Settings of a training or a fit that cancel each other, as far as the configuration alone can tell.

A class of a configuration says by its method ``cancelled`` what its own fields leave without effect, and a loss says so
of the batches that it will get. Here stand the settings that cancel others elsewhere in the configuration; a check is
a function from a configuration to what it finds. What only the data can tell is found in
:mod:`rungwise.training.engine._cancelled`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from rungwise.core import Cancelled, UserError
from rungwise.losses import BlockFacts, MaxOfHinges, SumOfHinges, warm_up
from rungwise.models import VSEConfig
from rungwise.training.config._fine_tuning import NewHeads, WholeModel
from rungwise.training.config._fit import FitConfig
from rungwise.training.config._losses import LossConfig, with_thresholds
from rungwise.training.config._presets import is_preset_name, load_preset
from rungwise.training.config._run import TrainConfig
from rungwise.training.steps import PhaseSchedule


def cancelled(config: TrainConfig | FitConfig) -> list[Cancelled]:
    """Settings that cannot act, because of other settings, in the order in which a person may want to read them.

    Of a run with stages each line names its stage.

    >>> from rungwise.training.config import config_of
    >>> from rungwise.losses import MaxOfHinges
    >>> [one.refused for one in cancelled(TrainConfig(warm_up_epochs=3, epochs=2, learning_rates=1e-3))]
    [True]
    >>> cancelled(TrainConfig())
    []
    """
    if isinstance(config, FitConfig):
        return [*_own(config.model, "model"), *_of_a_fit(config)]
    if not config.stages:
        return list(_of_one(config))
    found = []
    for at, (name, stage) in enumerate(config.stage_configs()):
        goes_on = at > 0 and not config.stages[at].says("start")
        found += [Cancelled(f"stage {name}: {one.line}", one.refused) for one in _of_one(stage, goes_on=goes_on)]
    return found


def accepted(config: TrainConfig | FitConfig) -> list[str]:
    """The lines on settings that cannot act, but those that the configuration's preset cancels as it ships.

    Raises:
        UserError: If a setting can only be a mistake that wastes the run.

    >>> accepted(TrainConfig(learning_rates=(0.0, 1e-3)))
    ['learning_rates (1) 0 leaves all weights as they are in 15 of 30 epochs (epochs 15 15); set it above 0, or leave \
the phase out']
    """
    found = cancelled(config)
    for one in found:
        if one.refused:
            raise UserError(one.line)
    meant = cancelled(load_preset(config.preset).config) if found and is_preset_name(config.preset) else []
    return [one.line for one in found if one not in meant]


def loss_cancelled(config: TrainConfig, similarity: Any) -> Iterator[Cancelled]:
    """Settings of the loss that cannot act with this similarity of a model; None is one that is not known."""
    loss = with_thresholds(config.loss, lambda shares: tuple(-float(rung) for rung in range(len(shares)))).build()
    lowest, highest = similarity.bounds if similarity is not None else (-float("inf"), float("inf"))
    named = similarity.kind if similarity is not None else "unknown"
    yield from loss.cancelled("loss", BlockFacts(named, lowest, highest, config.batch_size, config.sampler.draws_lists))


def describes_model(config: TrainConfig) -> bool:
    """Whether the configuration says what the model is like, which a model to start from may say instead."""
    return not config.start or not isinstance(config.tune, WholeModel | NewHeads)


def loss_in_force(config: TrainConfig, epoch: int) -> str:
    """Name of the loss that an epoch, counted from 0, trains with.

    >>> config = TrainConfig(warm_up_epochs=1, epochs=2, learning_rates=1e-3)
    >>> [loss_in_force(config, epoch) for epoch in range(2)]
    ['sum_of_hinges', 'max_of_hinges']
    """
    return "sum_of_hinges" if epoch < config.warm_up_epochs else config.loss.kind


def _own(value: Any, place: str) -> Iterator[Cancelled]:
    """What the fields of a configuration, and of those within it, leave without effect among themselves."""
    if isinstance(value, tuple):
        for at, one in enumerate(value, start=1):
            yield from _own(one, f"{place} ({at})")
    elif is_dataclass(value) and not isinstance(value, LossConfig):
        told = getattr(value, "cancelled", None)
        if told is not None:
            yield from told(place)
        for one in fields(value):
            yield from _own(getattr(value, one.name), f"{place}.{one.name}" if place else one.name)


def _of_one(config: TrainConfig, goes_on: bool = False) -> Iterator[Cancelled]:
    """Of a run without stages, or of one stage; ``goes_on`` is of one that continues the stage before."""
    for check in _CHECKS:
        yield from check(config)
    if describes_model(config) and not goes_on:
        yield from loss_cancelled(config, getattr(config.model, "similarity", None))
        yield from _random_and_frozen(config)
    elif not goes_on:
        yield from _unread_model(config)
    else:
        yield from loss_cancelled(config, None)
    if not config.start and not goes_on:
        yield from _tune_without_start(config)
    for one in fields(config):
        if one.name != "stages":
            yield from _own(getattr(config, one.name), one.name)


def _warm_up(config: TrainConfig) -> Iterator[Cancelled]:
    epochs, total = config.warm_up_epochs, config.total_epochs
    if not epochs:
        return
    named = f"warm_up_epochs {epochs}"
    if config.sampler.draws_lists:
        yield Cancelled(
            f"{named} cannot be trained with sampler {config.sampler.kind}: the warm-up is a loss of blocks; set"
            " warm_up_epochs to 0, or take another sampler",
            refused=True,
        )
    elif _warms_up_with_itself(config.loss):
        yield Cancelled(f"{named} changes nothing: the loss is {config.loss.kind}, with which every warm-up trains")
    elif epochs >= total:
        fewer = f"set warm_up_epochs to {total - 1} or less" if total > 1 else "set warm_up_epochs to 0"
        yield Cancelled(
            f"{named} covers the whole run of {total} epoch{'s' if total > 1 else ''}, so that the loss"
            f" {config.loss.kind} never works; {fewer}, or epochs to {epochs + 1} or more in all",
            refused=True,
        )
    elif 0 < config.snapshot.patience <= epochs:
        yield Cancelled(
            f"snapshot.patience {config.snapshot.patience} may end the run within {named}, before the loss"
            f" {config.loss.kind} begins; set snapshot.patience above {epochs}"
        )


def _warms_up_with_itself(loss: LossConfig) -> bool:
    if loss.loss_class is not SumOfHinges:
        return False
    built = loss.build()
    return repr(warm_up(built)) == repr(built)


def _rates(config: TrainConfig) -> Iterator[Cancelled]:
    rates, factors = config.learning_rates, config.rates
    told = " ".join(f"{rate:g}" for rate in rates)
    if not any(rates):
        yield Cancelled(f"learning_rates {told} leave all weights as they begin, in every epoch; set a rate above 0")
        return
    if not any((factors.image, factors.text, factors.heads)):
        yield Cancelled(
            "rates.image 0, rates.text 0 and rates.heads 0 leave all weights as they are; set one above 0", refused=True
        )
        return
    for at, (length, rate) in enumerate(zip(config.epochs, rates, strict=True), start=1):
        if not rate:
            yield Cancelled(
                f"learning_rates ({at}) 0 leaves all weights as they are in {length} of {config.total_epochs} epochs"
                f" (epochs {' '.join(map(str, config.epochs))}); set it above 0, or leave the phase out"
            )
    if not factors.heads:
        learned = ", the loss's temperature among them" if getattr(config.loss, "learnable", False) else ""
        yield Cancelled(
            f"rates.heads 0 keeps the heads, and all that the loss learns, as they start{learned}; set it above 0"
        )


def _schedule(config: TrainConfig) -> Iterator[Cancelled]:
    schedule, total = config.schedule, config.total_epochs
    if isinstance(schedule, PhaseSchedule) and schedule.warm_up >= total:
        highest = max(config.learning_rates)
        yield Cancelled(
            f"schedule.warm_up {schedule.warm_up:g} is as long as the run of {total} epoch{'s' if total > 1 else ''}:"
            f" the rate never reaches learning_rates {highest:g}; set schedule.warm_up below {total}"
        )


def _patience(config: TrainConfig) -> Iterator[Cancelled]:
    patience, total = config.snapshot.patience, config.total_epochs
    # The first epoch is always the best so far.
    if patience and patience >= total - 1:
        shorter = f"set snapshot.patience to {total - 2} or less" if total > 2 else "leave it out"
        yield Cancelled(
            f"snapshot.patience {patience} never ends a run of {total} epoch{'s' if total > 1 else ''} early; {shorter}"
        )


def _relevance(config: TrainConfig) -> Iterator[Cancelled]:
    measured = config.snapshot.chosen.measure.graded
    readers = f"loss {config.loss.kind}, sampler {config.sampler.kind}"
    if config.data.relevance and not config.needs_relevance:
        if not measured:
            yield Cancelled(
                f"data.relevance {config.data.relevance} is not read: {readers} and snapshot.measure"
                f" {config.snapshot.measure} read no degrees; leave it out, or take such as loss ladder"
            )
        elif config.snapshot.relevance:
            yield Cancelled(
                f"data.relevance {config.data.relevance} is not read: snapshot.relevance {config.snapshot.relevance}"
                f" takes its place, and {readers} read no degrees; leave one of the two out"
            )
    if config.data.reference == "batch" and not config.loss.needs_relevance:
        yield Cancelled(
            f"data.reference batch changes nothing: the loss {config.loss.kind} reads no degrees; leave it out, or take"
            " such as loss ladder"
        )


def _judgements(config: TrainConfig) -> Iterator[Cancelled]:
    if config.data.judgements and all(one == "keep" for one in _extra_positives(config.loss)):
        yield Cancelled(
            f"data.judgements {config.data.judgements} changes nothing: loss.extra_positives keep takes what people"
            " called right as negatives, as without judgements; set loss.extra_positives to mask or pair",
            refused=True,
        )


def _extra_positives(loss: LossConfig) -> Iterator[str]:
    own = getattr(loss, "extra_positives", None)
    members = loss.members()
    if own is not None or not members:
        yield str(own)
    for one in members:
        yield from _extra_positives(one)


def _sampler(config: TrainConfig) -> Iterator[Cancelled]:
    group = getattr(config.sampler, "group", 1)
    if group > config.batch_size:
        yield Cancelled(
            f"sampler.group {group} is larger than batch_size {config.batch_size}, which holds no such group; set"
            f" sampler.group to {config.batch_size} or less",
            refused=True,
        )
    if config.sampler.kind == "one_caption_per_image" and not config.data.judgements:
        for one in dict.fromkeys(_extra_positives(config.loss)):
            if one in ("keep", "pair"):
                yield Cancelled(
                    f"loss.extra_positives {one} changes nothing: sampler one_caption_per_image never puts two captions"
                    " of a picture in a batch; leave one of the two out"
                )


def _step(config: TrainConfig) -> Iterator[Cancelled]:
    chunk = getattr(config.step, "chunk", None)
    drawn = _most_drawn(config.loss)
    if chunk is not None and chunk >= max(config.batch_size, drawn):
        larger = f" (with loss.negative_set {drawn})" if drawn > config.batch_size else ""
        yield Cancelled(
            f"step.chunk {chunk} is no less than batch_size {config.batch_size}{larger}: the batch is one chunk, which"
            f" is encoded twice and saves no memory; set step.chunk below {max(config.batch_size, drawn)}, or step to"
            f" {'plain' if config.step.kind == 'cached_gradients' else config.step.kind + ' without chunk'}"
        )


def _most_drawn(loss: LossConfig) -> int:
    own = getattr(loss, "negative_set", None) if loss.loss_class is MaxOfHinges else None
    return max([own or 0, *(_most_drawn(one) for one in loss.members())])


def _splits(config: TrainConfig) -> Iterator[Cancelled]:
    if config.data.validation in config.data.train:
        yield Cancelled(
            f"data.validation {config.data.validation} is among data.train {' '.join(config.data.train)}: the best"
            " epoch is chosen on pictures that are trained on; leave it out of data.train"
        )


_CHECKS: tuple[Callable[[TrainConfig], Iterator[Cancelled]], ...] = (
    _warm_up, _rates, _schedule, _patience, _relevance, _judgements, _sampler, _step, _splits,
)  # fmt: skip


def _tune_without_start(config: TrainConfig) -> Iterator[Cancelled]:
    tune = config.tune
    if isinstance(tune, WholeModel):
        for name, usual in (("image", True), ("text", True), ("configured", False)):
            if getattr(tune, name) != usual:
                yield Cancelled(
                    f"tune.{name} {str(getattr(tune, name)).lower()} changes nothing: start names no model to begin"
                    " from; give start, or leave it out"
                )


def _unread_model(config: TrainConfig) -> Iterator[Cancelled]:
    """Settings of the model beside a model to start from, which is used as it is."""
    tune = config.tune
    if isinstance(tune, WholeModel) and tune.configured:
        return
    usual = VSEConfig()
    if config.model == usual:
        return
    other = "kind"
    if isinstance(config.model, VSEConfig):
        other = next(one.name for one in fields(usual) if getattr(config.model, one.name) != getattr(usual, one.name))
    heads = "; new heads are set in tune" if isinstance(tune, NewHeads) else ""
    yield Cancelled(
        f"model.{other} changes nothing, as no setting of model does: start {config.start} is used as it is with tune"
        f" {tune.kind}{heads}; leave it out, or set tune to weights"
    )


def _random_and_frozen(config: TrainConfig) -> Iterator[Cancelled]:
    """An encoder that begins at random and is never trained."""
    if config.start:
        return
    for side in ("image", "text"):
        one = getattr(config.model, side, None)
        kind = getattr(one, "kind", "")
        if getattr(one, "frozen", False) and kind in ("gru", "convolutions"):
            yield Cancelled(
                f"model.{side}.frozen true keeps the random weights with which model.{side}.kind {kind} begins; set"
                f" model.{side}.frozen to false, or give start"
            )


def _of_a_fit(config: FitConfig) -> Iterator[Cancelled]:
    points = len(list(config.points()))
    for name, tried in config.grid.items():
        if len(tried) == 1:
            yield Cancelled(
                f"grid.{name} tries one value, {tried[0]}: nothing is chosen by it; set model.{name} to it, or give"
                " more values"
            )
        own, usual = getattr(config.model, name, None), getattr(type(config.model), name, None)
        if own != usual and own not in tried:
            yield Cancelled(
                f"model.{name} {own} is not tried: grid.{name} has {', '.join(map(str, tried))}; add it there, or leave"
                " it out"
            )
    if points == 1 and config.snapshot is not None:
        yield Cancelled(
            f"snapshot.measure {config.snapshot.measure} chooses nothing: grid has one combination; give grid several"
            " values, or leave snapshot out"
        )
    if config.data.validation in config.data.train:
        chosen = "the settings are chosen on what is fitted"
        said = "refit true fits to the same pictures again" if config.refit else chosen
        yield Cancelled(
            f"data.validation {config.data.validation} is among data.train {' '.join(config.data.train)}: {said}; leave"
            " it out of data.train"
        )
