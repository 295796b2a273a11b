"""A weighted sum of losses."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rungwise.losses.base import BlockLoss, LossValue, Reduction
from rungwise.losses.multimodal_nce import MultiModalNCE


class Weighted(nn.Module):
    """Several losses of the same block, each times its weight, added.

    It has no options of its own: reduction, ``extra_positives`` and ``mask_above`` are set on the losses, which must
    agree in the first and may differ in the others.

    Args:
        losses: of this package, all with the same reduction.
        weights: one number for each.

    Raises:
        ValueError: no losses, another number of weights, or different reductions.

    >>> from rungwise.losses import MaxOfHinges, SumOfHinges
    >>> block = torch.tensor([[0.9, 0.8], [0.1, 0.5]])
    >>> Weighted([MaxOfHinges(), SumOfHinges()], [1.0, 0.5])(block)
    tensor(0.9000)
    """

    def __init__(self, losses: Sequence[BlockLoss | Weighted], weights: Sequence[float]) -> None:
        super().__init__()
        if not losses or len(losses) != len(weights):
            raise ValueError(f"one weight for each loss: got {len(losses)} losses and {len(weights)} weights")
        reductions = sorted({loss.reduction for loss in losses})
        if len(reductions) > 1:
            raise ValueError(f"losses of different reductions cannot be added: {', '.join(reductions)}")
        self.losses = nn.ModuleList(losses)
        self.weights = tuple(weights)
        self.reduction: Reduction = losses[0].reduction

    def forward(
        self,
        similarity: Tensor,
        relevance: Tensor | None = None,
        positives: Tensor | None = None,
        *,
        image_similarity: Tensor | None = None,
        text_similarity: Tensor | None = None,
    ) -> LossValue:
        """The weighted sum.

        Args:
            similarity: (images, captions).
            relevance: (images, captions), where a loss is graded.
            positives: (images, captions) bool.
            image_similarity: (images, images), where one of the losses is :class:`~rungwise.losses.MultiModalNCE`.
            text_similarity: (captions, captions), likewise.

        Returns:
            A scalar, or ``(i2t, t2i)`` with ``reduction="none"``.
        """
        within = {"image_similarity": image_similarity, "text_similarity": text_similarity}
        values = [
            loss(similarity, relevance, positives, **(within if isinstance(loss, MultiModalNCE | Weighted) else {}))
            for loss in self.losses
        ]
        return self.combine(values)

    @property
    def members(self) -> list[BlockLoss | Weighted]:
        """The losses, in the order of their weights."""
        return [loss for loss in self.losses if isinstance(loss, BlockLoss | Weighted)]

    def combine(self, values: Sequence[LossValue]) -> LossValue:
        """The weighted sum of what the losses returned.

        Args:
            values: scalars, or with ``reduction="none"`` pairs of vectors, in the order of :attr:`members`.
        """
        if self.reduction == "none":
            return self._sum([i2t for i2t, _ in values]), self._sum([t2i for _, t2i in values])
        return self._sum([value for value in values if isinstance(value, Tensor)])

    def _sum(self, values: list[Tensor]) -> Tensor:
        return torch.stack([weight * value for weight, value in zip(self.weights, values, strict=True)]).sum(dim=0)
