"""Configuration of a training run: everything it depends on, as typed data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import tyro
from pydantic import BeforeValidator, Field

from rungwise.core import (
    STRICT,
    AtLeastOne,
    BelowOne,
    Bounded,
    Natural,
    NotNegative,
    Share,
    SomeShare,
    UserError,
    from_plain,
    to_plain,
)
from rungwise.encoders import Precision
from rungwise.losses import MaxOfHinges
from rungwise.models import AnyModel, VSEConfig
from rungwise.parts import recorded, recorded_in
from rungwise.training.batches import AnySampler, Shuffled
from rungwise.training.config._data import CollectionConfig
from rungwise.training.config._fine_tuning import AnyTuning, NewHeads, WeightsThatFit, WholeModel
from rungwise.training.config._losses import AnyLoss, config_of
from rungwise.training.config._snapshots import BestEpoch, as_text
from rungwise.training.config._stage import AnyStages, Stage, check_model_kept, check_names, merged
from rungwise.training.steps import Adam, AnyOptimizer, AnySchedule, AnyStep, LearningRates, PhaseSchedule, Plain

Log = Literal["tensorboard", "jsonl", "wandb", "mlflow"]
"""Destinations of a run's numbers."""


def _listed(value: Any) -> Any:
    """One number as a list of it: a run of one phase has one number of epochs, and one learning rate."""
    return (value,) if isinstance(value, int | float) and not isinstance(value, bool) else value


@dataclass(frozen=True)
class DataConfig(Bounded, CollectionConfig):
    """Pictures and captions of a run, and their degrees of relevance.

    Attributes:
        path: Folder or file of the data, in any layout that rungwise inspect recognises.
        train: Splits to train on.
        validation: Split that chooses the snapshot.
        key: Members of tar archives go together by their names to the first dot, or (stem) to the last.
        layout: Read the data as this layout, whatever else lies there; empty recognises it.
        join_restval: Count COCO's restval pictures as training pictures.
        relevance: Degrees for losses that need them: a source by name (tfidf), a source with options
            ({kind: tfidf, tokenizer: unicode}), or a folder that "rungwise relevance" wrote. Generated scenes have
            their own. A source is built on the training split alone.
        reference: Which degree a caption has in a batch: that for the "image", as the source defines it, or that for
            the caption which comes with the image in the "batch" (the ladder paper's reading; for sources that compare
            captions with captions).
        share: Share of the training pictures that are trained on, drawn by the run's seed.
        judgements: Human judgements: a file that "rungwise grade" wrote, or the grades of an index. Captions that
            people called right for a picture (mean grade from 3 of 1 to 4) count in a batch like its own captions,
            which the loss masks unless its extra_positives says otherwise.
    """

    __pydantic_config__ = STRICT
    place: ClassVar[str] = "data"

    relevance: Annotated[str, BeforeValidator(as_text)] = ""
    reference: Literal["image", "batch"] = "image"
    share: SomeShare = 1.0
    judgements: str = ""


@dataclass(frozen=True)
class TrainConfig(Bounded):
    """A training run; the preset ``vsepp`` is VSE++ as published.

    Attributes:
        preset: Name of the preset that this was read from; empty without one. A file of one's own that names a preset
            takes from it what the file leaves out. In the folder of a run it decides nothing.
        modules: Modules of your own, which are imported when this configuration is given to a training. In the folder
            of a run they are a record, and are not imported.
        packages: Installed packages that offered parts of a run; a record, by which nothing is imported.
        stages: Stages that follow each other, each with its own settings; empty is one stage.
        data: Pictures, captions and relevance.
        model: The model to train.
        start: A model to start from: the folder of a model or of a finished run, or a name that rungwise index takes;
            empty starts anew.
        tune: How the model in start is used: whole, new_heads, weights.
        loss: The loss to train with.
        sampler: Which pairs meet in a batch: shuffled, by_length, one_caption_per_image, relevance_aware, label_lists.
        step: How gradients of a batch are computed: plain, cached_gradients, global_negatives.
        warm_up_epochs: Epochs with the sum of hinges before the loss takes over; losses that push the hardest negative
            alone leave their early plateau sooner.
        epochs: Number of epochs of each phase; one number for one phase.
        learning_rates: The optimizer's learning rate in each phase; one number for one phase.
        optimizer: The optimizer: adam, adamw, sgd.
        schedule: How the rate moves within the run: phases (constant within each), one_cycle, cosine.
        rates: Factors of the learning rate for the image encoder, the text encoder and the heads.
        batch_size: Image-caption pairs a step, of all processes together.
        clip_norm: Norm to which all gradients together are clipped.
        weight_decay: lambda, where lambda / 2 times the squared norm of all weight matrices is added to the loss; the
            decay of adamw is set in optimizer.
        gradient_checkpointing: Recompute the layers of trained encoders in the backward pass: less memory, more time.
        snapshot: The measure that chooses the best epoch, and how long a run goes on without a better one.
        ema: Decay of a moving average of the weights, which is then validated and kept; 0 keeps none.
        precision: bfloat16 and float16 compute the encoders under autocast; weights and loss stay in float32. float16
            scales its gradients. auto is bfloat16 where the device has instructions for it, and else float32: without
            them bfloat16 takes many times as long.
        compile: Compile the encoders: no, yes, or auto, which does it on a GPU where it pays.
        logs: Destinations of the run's numbers: tensorboard, jsonl, wandb, mlflow.
        feature_precision: Precision in which features of a frozen image encoder are computed where they are not cached:
            float32, bfloat16, or auto, which takes bfloat16 where that is faster and a probe shows that it stays close.
        resident: Share of a GPU's free memory for keeping features of the training pictures there; 0 leaves them on the
            host.
        seed: Seed of the weights, the batches and all draws.
        checkpoint_steps: Steps between checkpoints; a killed run loses no more than these.
    """

    __pydantic_config__ = STRICT

    preset: Annotated[str, tyro.conf.Fixed, tyro.conf.Suppress] = ""
    modules: Annotated[tuple[str, ...], tyro.conf.Fixed, tyro.conf.Suppress] = ()
    packages: Annotated[tuple[str, ...], tyro.conf.Fixed, tyro.conf.Suppress] = ()
    stages: AnyStages = ()
    data: DataConfig = field(default_factory=DataConfig)
    model: AnyModel = field(default_factory=VSEConfig)
    start: str = ""
    tune: AnyTuning = field(default_factory=WholeModel)
    loss: AnyLoss = field(default_factory=config_of(MaxOfHinges))
    sampler: AnySampler = field(default_factory=Shuffled)
    step: AnyStep = field(default_factory=Plain)
    warm_up_epochs: Natural = 0
    epochs: Annotated[tuple[AtLeastOne, ...], Field(min_length=1), BeforeValidator(_listed)] = (15, 15)
    learning_rates: Annotated[tuple[NotNegative, ...], BeforeValidator(_listed)] = (2e-4, 2e-5)
    optimizer: AnyOptimizer = field(default_factory=Adam)
    schedule: AnySchedule = field(default_factory=PhaseSchedule)
    rates: LearningRates = field(default_factory=LearningRates)
    batch_size: AtLeastOne = 128
    clip_norm: Annotated[float, Field(gt=0)] = 2.0
    weight_decay: NotNegative = 0.0
    gradient_checkpointing: bool = False
    snapshot: BestEpoch = field(default_factory=BestEpoch)
    ema: BelowOne = 0.0
    precision: Literal["float32", "bfloat16", "float16", "auto"] = "float32"
    compile: Literal["no", "yes", "auto"] = "auto"
    logs: tuple[Log, ...] = ("tensorboard", "jsonl")
    feature_precision: Precision = "float32"
    resident: Share = 0.25
    seed: Annotated[int, Field(ge=0, lt=1 << 32)] = 0
    checkpoint_steps: AtLeastOne = 200

    def __post_init__(self) -> None:
        for name in ("epochs", "learning_rates"):
            object.__setattr__(self, name, _listed(getattr(self, name)))
        super().__post_init__()
        if len(self.epochs) != len(self.learning_rates):
            raise _unequal_phases(self.epochs, self.learning_rates, self.warm_up_epochs)
        if self.weight_decay and self.optimizer.decay:
            raise UserError(
                f"weight_decay is a term of the loss and goes with optimizer adam; {self.optimizer.kind} takes its own,"
                " optimizer.weight_decay"
            )
        self.loss.check()
        self.stage_configs()

    @property
    def needs_relevance(self) -> bool:
        """Whether the loss or the sampler reads relevance degrees."""
        return self.loss.needs_relevance or self.sampler.needs_relevance

    @property
    def total_epochs(self) -> int:
        """Number of epochs of all phases."""
        return sum(self.epochs)

    def is_over(self, epoch: int, best_epoch: int) -> bool:
        """Whether a run ends after ``epoch`` epochs: all are done, or too many of them brought no better snapshot.

        ``best_epoch`` is that of the best snapshot, from 1; 0 if there is none yet.

        >>> config = TrainConfig(epochs=(9,), learning_rates=(1e-3,), snapshot=BestEpoch(patience=2))
        >>> config.is_over(4, best_epoch=3), config.is_over(5, best_epoch=3), config.is_over(9, best_epoch=9)
        (False, True, True)
        """
        tired = self.snapshot.patience and epoch - best_epoch >= self.snapshot.patience
        return bool(epoch >= self.total_epochs or tired)

    def stage_configs(self) -> tuple[tuple[str, TrainConfig], ...]:
        """Name and configuration of each stage in order; empty where the run has no stages.

        The settings of a stage are merged with those of the run, see :func:`rungwise.training.config.merged`. A
        stage that continues the one before has an empty ``start`` here: the caller knows the folder.

        Raises:
            UserError: Naming the stage and the setting that does not fit.
        """
        if not self.stages:
            return ()
        check_names(self.stages)
        own = to_plain(replace(self, stages=(), preset=""))
        found: list[tuple[str, TrainConfig]] = []
        described = False
        for stage in self.stages:
            config = from_plain(TrainConfig, merged(own, stage.settings), f"stage {stage.name}")
            if found and not stage.says("start"):
                config = self._going_on(stage, config, found[-1][1] if described else None)
            else:
                described = not config.start
            described = described or isinstance(config.tune, WeightsThatFit)
            found.append((stage.name, config))
        return tuple(found)

    def _going_on(self, stage: Stage, config: TrainConfig, before: TrainConfig | None) -> TrainConfig:
        """Configuration of a stage that continues with the model of the one before.

        ``before`` is that stage's configuration, if it describes its model; else None.
        """
        tune, where = config.tune, f"stage {stage.name}"
        if isinstance(tune, NewHeads) and not stage.says("tune"):
            raise UserError(
                f"{where}: tune: the run's new_heads would stand on the new heads of the stage before; say what becomes"
                " of its model, such as tune: whole"
            )
        if isinstance(tune, WholeModel) and before is not None:
            check_model_kept(stage, *(to_plain(one.model) for one in (self, before, config)))
            return replace(config, start="", tune=replace(tune, configured=True))
        if stage.says("model") and not isinstance(tune, WeightsThatFit):
            raise UserError(
                f"{where}: model: tune: {tune.kind} goes on with the model of the stage before, whatever the"
                " configuration says of it; leave model out, or say tune: weights"
            )
        return replace(config, start="")

    def learning_rate(self, epoch: int, share: float = 0.0) -> float:
        """Learning rate in an epoch counted from 0, after a share (0..1) of it.

        >>> config = TrainConfig(epochs=(2, 1), learning_rates=(1e-3, 1e-4))
        >>> [config.learning_rate(epoch) for epoch in range(3)]
        [0.001, 0.001, 0.0001]
        """
        return self._phase_rate(epoch) * self.schedule.factor(epoch + share, self.total_epochs)

    def _phase_rate(self, epoch: int) -> float:
        for length, rate in zip(self.epochs, self.learning_rates, strict=True):
            if epoch < length:
                return rate
            epoch -= length
        return self.learning_rates[-1]


def _unequal_phases(epochs: tuple[int, ...], rates: tuple[float, ...], warm_up: int = 0) -> UserError:
    """The refusal of so many epochs beside so many rates, with two ways that fit: the phases of either.

    A warm-up that would cover the run is left out by both, so that what they name is not refused in turn.

    >>> print(_unequal_phases((2,), (2e-4, 2e-5)))
    epochs 2 is one phase, learning_rates 0.0002 2e-05 are two; write --epochs 2 --learning-rates 0.0002, or \
--epochs 1 1 --learning-rates 0.0002 2e-05
    """
    total = sum(epochs)
    ways = [(epochs, (*rates, *rates[-1:] * len(epochs))[: len(epochs)])] if rates else []
    if 0 < len(rates) <= total:
        share, left = divmod(total, len(rates))
        ways.append((tuple(share + (at < left) for at in range(len(rates))), rates))
    without = " --warm-up-epochs 0" if warm_up >= total else ""
    remedies = [
        f"--epochs {_listed_words(one)} --learning-rates {_listed_words(other)}{without}" for one, other in ways
    ]
    counts = ["is one" if len(one) == 1 else f"are {_NUMBERS.get(len(one), len(one))}" for one in (epochs, rates)]
    return UserError(
        f"epochs {_listed_words(epochs)} {counts[0]} phase{'s' * (len(epochs) > 1)}, learning_rates"
        f" {_listed_words(rates)} {counts[1]}; write {', or '.join(remedies or ['a learning rate for each'])}"
    )


_NUMBERS = {0: "none", 2: "two", 3: "three", 4: "four"}


def _listed_words(values: tuple[float, ...]) -> str:
    """Numbers as the command line takes them; nothing for none."""
    return " ".join(f"{one:g}" for one in values) or "()"


def config_of_settings(settings: Mapping[str, Any], where: object) -> TrainConfig:
    """The configuration of a run from the settings in its checkpoint; missing ones have their defaults.

    ``where`` names the checkpoint in errors.
    """
    with recorded(recorded_in(settings)):
        return from_plain(TrainConfig, dict(settings), f"{where}: the settings in it")
