"""Everything a training run depends on, as typed data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypedDict

from pydantic import Field

from rungwise.configuration import STRICT
from rungwise.errors import UserError
from rungwise.losses import Ladder, MaxOfHinges, SumOfHinges
from rungwise.models.config import ModelConfig

ExtraPositives = Literal["mask", "keep", "pair"]
Reduction = Literal["sum", "mean"]


class SharedOptions(TypedDict):
    """Keyword arguments that every loss of a block takes."""

    reduction: Reduction
    extra_positives: ExtraPositives
    mask_above: float | None


@dataclass(frozen=True)
class BlockLossConfig:
    """What every loss of a block can be told.

    Attributes:
        reduction: Sum over a batch, or the sum divided by its pairs.
        extra_positives: What other captions of the same picture are.
        mask_above: Neither pull nor push what has this relevance degree or more; needs a relevance source.
    """

    __pydantic_config__ = STRICT

    reduction: Reduction = "sum"
    extra_positives: ExtraPositives = "mask"
    mask_above: float | None = None

    def shared(self) -> SharedOptions:
        """As keyword arguments of a :class:`rungwise.losses.base.BlockLoss`."""
        return {
            "reduction": self.reduction,
            "extra_positives": self.extra_positives,
            "mask_above": self.mask_above,
        }


@dataclass(frozen=True)
class SumOfHingesConfig(BlockLossConfig):
    """Every negative counts (VSE0, UVS).

    Attributes:
        kind: Names the loss in YAML.
        margin: Of the hinge.
    """

    kind: Literal["sum_of_hinges"] = "sum_of_hinges"
    margin: float = 0.2

    def build(self) -> SumOfHinges:
        """The loss itself."""
        return SumOfHinges(self.margin, **self.shared())


@dataclass(frozen=True)
class MaxOfHingesConfig(BlockLossConfig):
    """Only the hardest negative counts (VSE++).

    Attributes:
        kind: Names the loss in YAML.
        margin: Of the hinge.
    """

    kind: Literal["max_of_hinges"] = "max_of_hinges"
    margin: float = 0.2

    def build(self) -> MaxOfHinges:
        """The loss itself."""
        return MaxOfHinges(self.margin, **self.shared())


@dataclass(frozen=True)
class LadderConfig(BlockLossConfig):
    """Rungs of relevance with hard contrastive sampling (CVSE++, Zhou et al. 2020).

    Attributes:
        kind: Names the loss in YAML.
        thresholds: Falling relevance values that separate the rungs, one fewer than margins. They belong to a
            relevance source.
        shares: Instead of thresholds, the share of candidates on each rung but the last; the source turns them into
            values (see :func:`rungwise.relevance.describe.thresholds`).
        margins: Of each rung.
        weights: Of each rung.
    """

    kind: Literal["ladder"] = "ladder"
    thresholds: tuple[float, ...] = (0.63,)
    shares: tuple[float, ...] = ()
    margins: tuple[float, ...] = (0.2, 0.01)
    weights: tuple[float, ...] = (1.0, 0.25)

    @property
    def margin(self) -> float:
        """Of the first rung, which a warm-up with the sum of hinges shares."""
        return self.margins[0]

    def build(self) -> Ladder:
        """The loss itself.

        Raises:
            UserError: If shares are set: a relevance source must turn them into thresholds first.
        """
        if self.shares:
            raise UserError("loss.shares must be turned into thresholds by a relevance source before training")
        return Ladder(
            thresholds=self.thresholds,
            margins=self.margins,
            weights=self.weights,
            sampling="hard_contrastive",
            **self.shared(),
        )


LossConfig = Annotated[SumOfHingesConfig | MaxOfHingesConfig | LadderConfig, Field(discriminator="kind")]


@dataclass(frozen=True)
class DataConfig:
    """Which pictures and captions.

    Attributes:
        path: Of the data, in any layout that ``rungwise inspect`` recognises.
        train: Splits to train on.
        validation: Split that chooses the snapshot.
        join_restval: Count COCO's ``restval`` pictures as training pictures.
        relevance: Folder of saved degrees (``rungwise relevance DATA --out FOLDER``) for losses that need them;
            generated scenes bring their own.
    """

    __pydantic_config__ = STRICT

    path: str = ""
    relevance: str = ""
    train: tuple[str, ...] = ("train",)
    validation: str = "val"
    join_restval: bool = False


@dataclass(frozen=True)
class TrainConfig:
    """A training run; defaults are VSE++ as published.

    Attributes:
        data: Pictures and captions.
        model: What is trained.
        loss: What it is trained with.
        warm_up_epochs: Epochs of the sum of hinges before the loss takes over; helps losses that push only the
            hardest negative off their early plateau.
        epochs: Length of each phase.
        learning_rates: Adam's rate in each phase.
        batch_size: Image-caption pairs a step.
        clip_norm: Bound on the norm of all gradients together.
        precision: ``"bfloat16"`` computes the encoders under autocast; weights and loss stay in float32.
        bucket_pool: Batches a pool of similar caption lengths is made of; 1 switches bucketing off.
        seed: Of weights, batches and draws.
        checkpoint_steps: Steps between checkpoints; what a killed run loses at most.
    """

    __pydantic_config__ = STRICT

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    loss: LossConfig = field(default_factory=MaxOfHingesConfig)
    warm_up_epochs: int = 0
    epochs: tuple[int, ...] = (15, 15)
    learning_rates: tuple[float, ...] = (2e-4, 2e-5)
    batch_size: int = 128
    clip_norm: float = 2.0
    precision: Literal["float32", "bfloat16"] = "float32"
    bucket_pool: int = 20
    seed: int = 0
    checkpoint_steps: int = 200

    def __post_init__(self) -> None:
        if len(self.epochs) != len(self.learning_rates) or not self.epochs:
            raise UserError(
                f"epochs has {len(self.epochs)} phases, learning_rates {len(self.learning_rates)}; give a rate for each"
            )
        if min(self.batch_size, self.bucket_pool, self.checkpoint_steps, *self.epochs) < 1 or self.clip_norm <= 0:
            raise UserError("epochs, batch_size, bucket_pool, checkpoint_steps and clip_norm must be positive")

    @property
    def needs_relevance(self) -> bool:
        """Whether the loss asks for relevance degrees."""
        return isinstance(self.loss, LadderConfig) or self.loss.mask_above is not None

    @property
    def total_epochs(self) -> int:
        """Of all phases."""
        return sum(self.epochs)

    def learning_rate(self, epoch: int) -> float:
        """Of an epoch counted from 0.

        >>> config = TrainConfig(epochs=(2, 1), learning_rates=(1e-3, 1e-4))
        >>> [config.learning_rate(epoch) for epoch in range(3)]
        [0.001, 0.001, 0.0001]
        """
        for length, rate in zip(self.epochs, self.learning_rates, strict=True):
            if epoch < length:
                return rate
            epoch -= length
        return self.learning_rates[-1]
