"""How models of pairs are trained, and who is told of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal

from rungwise.core.configuration import check_size
from rungwise.core.errors import UserError
from rungwise.language.sentence_models import Precision

PairLoss = Literal["bce", "mse"]

_SHORTEST = 8
"""Tokens of a pair, of which the signs between the texts take up to four."""


@dataclass(frozen=True)
class PairTraining:
    """How a model of pairs is trained.

    Attributes:
        epochs: Passes through the training pairs.
        batch_size: Pairs a step; pairs of like length go together.
        learning_rate: The highest, of AdamW.
        warm_up: Share of the steps on which the rate rises along a straight line; it then falls along one to 0.
        weight_decay: Of weight matrices.
        loss: Binary cross-entropy of the score on 0..1, as sentence-transformers has it (``"bce"``), or the squared
            error after the sigmoid (``"mse"``).
        max_length: Tokens of a pair beyond which the longer text is cut.
        seed: Of the new output, the order, the dropout and the turned pairs.
        precision: In which the network computes.
        clip_norm: The norm of all gradients together is cut to this.

    Raises:
        UserError: If a number means nothing.

    >>> PairTraining(epochs=0)
    Traceback (most recent call last):
    rungwise.core.errors.UserError: epochs must lie in 1..1048576, got 0
    """

    epochs: int = 4
    batch_size: int = 32
    learning_rate: float = 5e-5
    warm_up: float = 0.1
    weight_decay: float = 0.01
    loss: PairLoss = "bce"
    max_length: int = 128
    seed: int = 0
    precision: Precision = "float32"
    clip_norm: float = 1.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "max_length"):
            check_size(name, getattr(self, name))
        if self.max_length < _SHORTEST:
            raise UserError(f"max_length must be at least {_SHORTEST}, or no words are left, got {self.max_length}")
        for name in ("learning_rate", "clip_norm"):
            if not 0 < getattr(self, name) < math.inf:
                raise UserError(f"{name} must be positive, got {getattr(self, name):g}")
        if not 0 <= self.warm_up < 1:
            raise UserError(f"warm_up must lie in 0..1 and below 1, got {self.warm_up:g}")
        if not 0 <= self.weight_decay < math.inf:
            raise UserError(f"weight_decay must not be negative, got {self.weight_decay:g}")
        if self.seed < 0:
            raise UserError(f"seed must not be negative, got {self.seed}")
        if self.loss not in ("bce", "mse"):
            raise UserError(f"loss must be 'bce' or 'mse', got {self.loss!r}")

    def rate(self, place: float) -> float:
        """The learning rate at a place of the run, which goes from 0 to 1.

        >>> [PairTraining(learning_rate=1.0, warm_up=0.2).rate(place) for place in (0.0, 0.1, 0.2, 0.6, 1.0)]
        [0.0, 0.5, 1.0, 0.5, 0.0]
        """
        factor = place / self.warm_up if place < self.warm_up else (1 - place) / (1 - self.warm_up)
        return self.learning_rate * factor


@contextmanager
def _unseen(_: str, __: int) -> Iterator[Callable[[int], None]]:
    yield lambda more: None


@dataclass(frozen=True)
class Watching:
    """Who is told of a training.

    Attributes:
        say: Takes a line that the user should read.
        bar: Opens what shows how far a part is, from its title and its total, and yields what advances it.
    """

    say: Callable[[str], None] = lambda line: None
    bar: Callable[[str, int], AbstractContextManager[Callable[[int], None]]] = _unseen
