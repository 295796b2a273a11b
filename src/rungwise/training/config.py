"""Everything a training run depends on, as typed data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rungwise.core.configuration import STRICT
from rungwise.core.errors import UserError
from rungwise.losses import MaxOfHinges
from rungwise.models.config import ModelConfig
from rungwise.training.loss_config import AnyLoss, config_of


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
    loss: AnyLoss = field(default_factory=config_of(MaxOfHinges))
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
        self.loss.check_batch(self.batch_size)

    @property
    def needs_relevance(self) -> bool:
        """Whether the loss asks for relevance degrees."""
        return self.loss.needs_relevance

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
