"""A weighted sum of losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_
from typing import cast

import torch
from torch import Tensor, nn

from rungwise.core import Cancelled
from rungwise.losses._base import BlockFacts, Loss, LossValue, SharedOptions, kind_of
from rungwise.losses._batch import Batch, Reads


class Weighted(Loss):
    """A weighted sum of several losses of the same block.

    It has no options of its own: reduction, ``extra_positives`` and ``mask_above`` are set on the losses, which must
    agree in the first and may differ in the others.

    Args:
        losses: Losses of this package, all with the same reduction.
        weights: One weight for each loss.

    Raises:
        ValueError: If there are no losses, another number of weights, or different reductions.

    >>> from rungwise.losses._hinge import MaxOfHinges, SumOfHinges
    >>> block = torch.tensor([[0.9, 0.8], [0.1, 0.5]])
    >>> Weighted([MaxOfHinges(), SumOfHinges()], [1.0, 0.5])(block)
    tensor(0.9000)
    """

    def __init__(self, losses: Sequence[Loss], weights: Sequence[float]) -> None:
        super().__init__()
        if not losses or len(losses) != len(weights):
            raise ValueError(f"one weight for each loss: got {len(losses)} losses and {len(weights)} weights")
        reductions = sorted({loss.reduction for loss in losses})
        if len(reductions) > 1:
            raise ValueError(f"losses of different reductions cannot be added: {', '.join(reductions)}")
        self.losses = nn.ModuleList(losses)
        self.weights = tuple(weights)
        self.reduction = losses[0].reduction
        self.paper_similarity = losses[0].paper_similarity

    @property
    def members(self) -> tuple[Loss, ...]:
        """The losses, in the order of their weights."""
        return tuple(cast(Loss, loss) for loss in self.losses)

    @property
    def reads(self) -> Reads:
        """Everything that one of its losses reads."""
        return reduce(or_, (loss.reads for loss in self.members))

    @property
    def shared(self) -> SharedOptions:
        """Options of its first loss."""
        return self.members[0].shared

    @property
    def first_margin(self) -> float:
        """Margin of its first loss."""
        return self.members[0].first_margin

    def cancelled(self, place: str, facts: BlockFacts) -> Iterator[Cancelled]:
        """Weights of 0, and what is cancelled in the losses that have a weight."""
        if not any(self.weights):
            told = ", ".join(f"{weight:g}" for weight in self.weights)
            yield Cancelled(f"{place}.weights {told} leave no loss; set one other than 0", refused=True)
            return
        found = [list(one.cancelled(f"{place}.losses ({at})", facts)) for at, one in enumerate(self.members, start=1)]
        # One that works is enough for a run.
        none_works = all(any(one.refused for one in of) for of, w in zip(found, self.weights, strict=True) if w)
        for at, (loss, weight) in enumerate(zip(self.members, self.weights, strict=True), start=1):
            if weight:
                yield from (Cancelled(one.line, one.refused and none_works) for one in found[at - 1])
            else:
                yield Cancelled(
                    f"{place}.weights ({at}) 0 leaves {kind_of(type(loss))} out, whatever its settings say; give it a"
                    " weight, or leave the loss out"
                )

    def pairs_to_encode(self, batch_size: int) -> int:
        """The largest number that one of its losses wants; the others see these candidates too."""
        return max(loss.pairs_to_encode(batch_size) for loss in self.members)

    def value(self, batch: Batch) -> LossValue:
        """The weighted sum of the losses' values."""
        values = [loss.value(batch) for loss in self.members]
        if self.reduction == "none":
            return self._sum([i2t for i2t, _ in values]), self._sum([t2i for _, t2i in values])
        return self._sum([value for value in values if isinstance(value, Tensor)])

    def _sum(self, values: list[Tensor]) -> Tensor:
        return torch.stack([weight * value for weight, value in zip(self.weights, values, strict=True)]).sum(dim=0)
