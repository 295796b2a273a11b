"""Collapse watch: warns once when the max of hinges has pushed all embeddings onto one point.

Where all vectors are alike, every similarity is the same, so each query loses exactly its margin: the loss rests at 2 x
margin a pair. That alone is no alarm. A healthy run with the max of hinges from the start rests there for several
epochs as well, but its images keep apart from each other, and it leaves. In a collapse the embeddings are close
together too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from rungwise.training.tracking import StepReport, Watcher

LEAST_SPREAD = 1e-3
STEPS = 500


@dataclass
class CollapseMemory:
    """State of the watch that a resumed run needs.

    Attributes:
        flat_since: Step of the first of the consecutive observations that look like a collapse; -1 for none.
        told: Whether the user has been warned.
    """

    flat_since: Annotated[int, Field(ge=-1)] = -1
    told: bool = False


def spread(image_vectors: Tensor, text_vectors: Tensor) -> Tensor:
    """Scalar spread of (n, D) image and (m, D) text vectors: the larger of the two sides' variances of directions.

    A side's variance is 1 - ||mean of its normalised vectors||^2: 0 where all point the same way, near 1 where they
    point everywhere. It has no gradient.
    """
    with torch.no_grad():
        means = [F.normalize(vectors.float(), dim=1).mean(dim=0) for vectors in (image_vectors, text_vectors)]
        return torch.stack([(1 - mean.square().sum()).clamp(min=0) for mean in means]).amax()


class CollapseWatch(Watcher):
    """Warns once, with the remedy, when a max-of-hinges run has collapsed.

    It warns when at every observation over ``steps`` steps the loss was within 1 % of 2 x margin a pair *and* the
    spread of the embeddings was below ``least_spread``.

    Args:
        rests_at: Loss of a pair while all vectors are alike, see :attr:`rungwise.losses.Loss.rests_at`.
        tell: Called with the warning.
        least_spread: Bound on :func:`spread`.
        steps: Number of steps for which the signs must last.
        memory: State of the run so far; changed in place.

    >>> watch = CollapseWatch(0.4, print, steps=20)
    >>> for step in range(0, 40, 10):
    ...     watch.observe(step, loss=0.4, spread=1e-5)
    the embeddings have collapsed: over 20 steps the loss stayed at 0.4 a pair, ...
    """

    def __init__(
        self,
        rests_at: float,
        tell: Callable[[str], None],
        *,
        least_spread: float = LEAST_SPREAD,
        steps: int = STEPS,
        memory: CollapseMemory | None = None,
    ) -> None:
        self.flat = rests_at
        self.tell = tell
        self.least_spread = least_spread
        self.steps = steps
        self.memory = memory or CollapseMemory()

    def step(self, report: StepReport) -> None:
        """Observe the last batch of a report."""
        self.observe(report.total_step, report.batch_loss, report.spread)

    def observe(self, step: int, loss: float, spread: float) -> None:
        """Observe one batch, by its loss per pair (nan if it was not measured) and the spread of its embeddings."""
        memory = self.memory
        if math.isnan(loss):
            return
        if not (abs(loss - self.flat) <= 0.01 * self.flat and spread < self.least_spread):
            memory.flat_since = -1
            return
        if memory.flat_since < 0:
            memory.flat_since = step
        if step - memory.flat_since >= self.steps and not memory.told:
            memory.told = True
            self.tell(
                f"the embeddings have collapsed: over {self.steps} steps the loss stayed at {self.flat:g} a pair,"
                f" 2 x margin, and all vectors point the same way (spread {spread:.0e});"
                " start anew with a warm-up by the sum of hinges (warm_up_epochs), a larger batch, or reduction mean"
            )
