"""Settings of training pair models, and the observer of a training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from rungwise.core import AtLeastOne, BelowOne, Bounded, Natural, NotNegative, Positive, Size
from rungwise.language.sentence_models import Precision

PairLoss = Literal["bce", "mse"]


@dataclass(frozen=True)
class PairTraining(Bounded):
    """Settings of training a pair model.

    Attributes:
        epochs: Passes through the training pairs.
        batch_size: Number of pairs in a step; pairs of similar length are batched.
        learning_rate: Highest learning rate of AdamW.
        warm_up: Share of the steps on which the rate rises linearly; it then falls linearly to 0.
        weight_decay: Decay of weight matrices.
        loss: Binary cross-entropy of the score on 0..1, as sentence-transformers has it (``"bce"``), or the squared
            error after the sigmoid (``"mse"``).
        max_length: Tokens of a pair beyond which the longer text is cut.
        seed: Seed of the new output, the order, the dropout and the swapped pairs.
        precision: Precision of the network.
        clip_norm: Norm to which all gradients together are clipped.
    """

    epochs: AtLeastOne = 4
    batch_size: Size = 32
    learning_rate: Positive = 5e-5
    warm_up: BelowOne = 0.1
    weight_decay: NotNegative = 0.01
    loss: PairLoss = "bce"
    max_length: Annotated[int, Field(ge=8, le=1 << 20)] = 128
    seed: Natural = 0
    precision: Precision = "float32"
    clip_norm: Positive = 1.0

    def rate(self, place: float) -> float:
        """The learning rate at a place of the run, from 0 to 1.

        >>> [PairTraining(learning_rate=1.0, warm_up=0.2).rate(place) for place in (0.0, 0.1, 0.2, 0.6, 1.0)]
        [0.0, 0.5, 1.0, 0.5, 0.0]
        """
        factor = place / self.warm_up if place < self.warm_up else (1 - place) / (1 - self.warm_up)
        return self.learning_rate * factor


@contextmanager
def _unseen(_: str, __: int) -> Iterator[Callable[[int], None]]:
    yield lambda more: None


@dataclass(frozen=True)
class TrainingObserver:
    """Receives the progress of a training.

    Attributes:
        say: Called with lines for the user.
        bar: Opens a progress bar from a title and a total, and yields the function that advances it.
    """

    say: Callable[[str], None] = lambda line: None
    bar: Callable[[str, int], AbstractContextManager[Callable[[int], None]]] = _unseen
