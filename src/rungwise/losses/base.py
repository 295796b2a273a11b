"""What all losses of a block share: two sides, added, and a reduction."""

from __future__ import annotations

from typing import Literal, get_args

from torch import Tensor, nn

from rungwise.losses.pairs import ExtraPositives, Side, two_sides

Reduction = Literal["sum", "mean", "none"]
LossValue = Tensor | tuple[Tensor, Tensor]


def require(name: str, value: str, allowed: object) -> None:
    """Refuse an option that is not one of a Literal's values.

    >>> require("reduction", "avg", Reduction)
    Traceback (most recent call last):
    ValueError: reduction must be one of sum, mean, none; got 'avg'
    """
    if value not in get_args(allowed):
        raise ValueError(f"{name} must be one of {', '.join(get_args(allowed))}; got {value!r}")


class BlockLoss(nn.Module):
    """A loss of a block of similarities: what one side's queries lose, both sides added.

    A family overrides :meth:`per_query`. Blocks in half precision are computed in float32; hinges have gradient 0
    at their kink; among tied candidates the first takes the gradient. Relevance should be finite: a degree that is nan
    counts as irrelevant where degrees are compared with a bound (``mask_above``, :class:`~rungwise.losses.Ladder`,
    :class:`~rungwise.losses.AdaptiveListwise`) and makes the loss nan where they are computed with.

    Args:
        reduction: ``"sum"`` over the queries of both sides; ``"mean"``, the same sum divided by the number of pairs;
            ``"none"``, the per-query vectors ``(i2t, t2i)`` of lengths (images,) and (captions,).
        extra_positives: what becomes of a square block's positives off the diagonal, see
            :func:`rungwise.losses.pairs.two_sides`.
        mask_above: mask negatives whose relevance is this value or more; None masks nothing by relevance.

    >>> import torch
    >>> class Attraction(BlockLoss):
    ...     def per_query(self, side):
    ...         return side.sum_per_query(1 - side.of_pairs(side.similarity))
    >>> Attraction(reduction="none")(torch.tensor([[0.5, 0.0], [0.0, 1.0]]))
    (tensor([0.5000, 0.0000]), tensor([0.5000, 0.0000]))
    """

    def __init__(
        self,
        *,
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__()
        require("reduction", reduction, Reduction)
        require("extra_positives", extra_positives, ExtraPositives)
        self.reduction: Reduction = reduction
        self.extra_positives: ExtraPositives = extra_positives
        self.mask_above = mask_above

    def per_query(self, side: Side) -> Tensor:
        """(Q,): what each query of one side loses."""
        raise NotImplementedError

    def forward(
        self, similarity: Tensor, relevance: Tensor | None = None, positives: Tensor | None = None
    ) -> LossValue:
        """The loss of a block.

        Args:
            similarity: (images, captions), any float type.
            relevance: (images, captions) degrees, for graded losses and ``mask_above``.
            positives: (images, captions) bool; needed where the block is not square.

        Returns:
            A scalar, or ``(i2t, t2i)`` of (images,) and (captions,) with ``reduction="none"``.

        Raises:
            ValueError: shapes differ or something that is needed was not passed.
        """
        i2t, t2i = two_sides(similarity, relevance, positives, self.extra_positives, self.mask_above)
        return self.reduce(self.per_query(i2t), self.per_query(t2i), len(i2t.query))

    def reduce(self, i2t: Tensor, t2i: Tensor, pairs: int) -> LossValue:
        """Per-query values of both sides to what ``reduction`` asks for; ``pairs`` is the number of pairs."""
        if self.reduction == "none":
            return i2t, t2i
        total = i2t.sum() + t2i.sum()
        return total / max(pairs, 1) if self.reduction == "mean" else total

    def extra_repr(self) -> str:
        """What the class adds to a printed module."""
        return f"reduction={self.reduction!r}, extra_positives={self.extra_positives!r}"
