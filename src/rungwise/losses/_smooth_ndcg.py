"""Smooth NDCG: the graded measure itself, with ranks that have a gradient (after ApproxNDCG, Qin et al. 2010).

For a query with candidates k, gains g_k = max(0, R_k) and temperature T::

    rank_k = 1 + sum over j != k of ramp((s_j - s_k) / (4 T)),        ramp(x) = min(max(x + 1/2, 0), 1)
    l = 1 - ( sum over k of g_k / log2(1 + rank_k) ) / ( the same sum for the best order )

ApproxNDCG puts a logistic function where the ramp is. The ramp has the same slope at 0 and is piecewise linear, so that
sorting and prefix sums give all ranks of n candidates in O(n log n) rather than O(n^2).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from rungwise.core import Cancelled
from rungwise.losses._base import BlockLoss, Degrees, Reduction
from rungwise.losses._batch import Reads
from rungwise.losses._pairs import BlockSide, ExtraPositives

CHUNK = 1 << 20  # entries ranked at a time: bounds the float64 copies, and fits the cache


class _SmoothRank(torch.autograd.Function):
    """Smooth ranks of each row; ``reach`` is 2 T, the distance at which the ramp is 0 or 1.

    In a row sorted by similarity, the candidates less than ``reach`` away from one fill a window: a prefix sum gives
    the sum of their ramps, and in the gradient the sum of what arrives from those in whose windows a candidate lies.
    """

    @staticmethod
    def forward(ctx: Any, similarity: Tensor, present: Tensor, reach: float) -> Tensor:
        """(Q, C) ranks, 1 where not present, from (Q, C) similarity and (Q, C) bool present."""
        ordered, order = similarity.masked_fill(~present, -torch.inf).sort(dim=1)
        exact = ordered.double()
        start = torch.searchsorted(exact, exact - reach, right=True)
        end = torch.searchsorted(exact, exact + reach)
        known = present.gather(1, order)
        exact = exact.masked_fill(~known, 0)
        distance = _between(exact, start, end) - (end - start) * exact
        rank = 0.5 + (exact.shape[1] - end) + (end - start) / 2 + distance / (2 * reach)
        rank = rank.masked_fill(~known, 1)
        ctx.save_for_backward(order, start, end, known)
        ctx.reach = reach
        return torch.empty_like(ordered).scatter_(1, order, rank.to(ordered.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        """(Q, C) gradient, from (Q, C)."""
        order, start, end, known = ctx.saved_tensors
        arriving = upstream.gather(1, order).double() * known
        slope = (_between(arriving, start, end) - (end - start) * arriving) / (2 * ctx.reach)
        slope = slope.masked_fill(~known, 0)
        return torch.empty_like(upstream).scatter_(1, order, slope.to(upstream.dtype)), None, None


def _between(values: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Sum of each row's values from position ``start`` up to but without ``end``."""
    total = F.pad(values.cumsum(dim=1), (1, 0))
    return total.gather(1, end) - total.gather(1, start)


def smooth_rank(similarity: Tensor, present: Tensor, temperature: float) -> Tensor:
    """Rank of each candidate by falling similarity, from 1, with a gradient.

    Args:
        similarity: (Q, C).
        present: (Q, C) bool; the others are not ranked, and count in no rank.
        temperature: T; candidates 2 T or more apart count as ordered.

    Returns:
        (Q, C), 1 where not present. Time O(Q C log C), memory O(Q C); differentiable once.

    >>> s = torch.tensor([[0.9, 0.5, 0.5, 0.1]])
    >>> smooth_rank(s, torch.ones_like(s, dtype=torch.bool), temperature=0.1)
    tensor([[1.0000, 2.5000, 2.5000, 4.0000]])
    """
    step = max(1, CHUNK // similarity.shape[1])
    chunks = zip(torch.split(similarity.contiguous(), step), torch.split(present, step), strict=True)
    return torch.cat([_SmoothRank.apply(s, known, 2 * temperature) for s, known in chunks])  # type: ignore[no-untyped-call]


class SmoothNDCG(BlockLoss):
    """Both sides of 1 - smooth NDCG, added: orders all candidates of a query, its pair among them, by relevance.

    A candidate gets gradient from those less than 2 T away: start from a trained model, or from a large temperature.
    Negative relevance counts as 0, and a query whose relevance is 0 throughout has loss 0. A query counts once however
    many pairs it has.

    Args:
        temperature: Temperature T, in units of similarity.

    >>> s, r = torch.tensor([[0.2, 0.8], [0.1, 0.9]]), torch.tensor([[1.0, 0.5], [0.0, 1.0]])
    >>> SmoothNDCG(reduction="none")(s, r)
    (tensor([0.1403, 0.0000]), tensor([0.1452, 0.0898]))
    """

    needs_negatives: ClassVar[bool] = True

    def __init__(
        self,
        temperature: float = 0.1,
        *,
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__(reduction=reduction, extra_positives=extra_positives, mask_above=mask_above)
        if not temperature > 0:
            raise ValueError(f"temperature must be positive, got {temperature:g}")
        self.temperature = temperature

    @property
    def reads(self) -> Reads:
        """Relevance, besides the common reads."""
        return super().reads | Reads(relevance=True)

    def cancelled_by_degrees(self, place: str, own: Degrees, others: Degrees) -> Iterator[Cancelled]:
        """Degrees that are all 0, besides the common settings."""
        yield from super().cancelled_by_degrees(place, own, others)
        if not (others > 0).any() and not (own > 0).any():
            yield Cancelled(
                f"{place}.kind smooth_ndcg has nothing to order: all of {len(own) + len(others):,} sampled degrees of"
                " data.relevance are 0 or less; name another source"
            )

    def per_query(self, side: BlockSide) -> Tensor:
        """(Q,) 1 - smooth NDCG of each query."""
        gains = side.graded().to(side.similarity.dtype).clamp(min=0).masked_fill(side.masked, 0)
        ranks = smooth_rank(side.similarity, ~side.masked, self.temperature)
        places = torch.arange(1, gains.shape[1] + 1, device=gains.device, dtype=gains.dtype)
        best = (gains.sort(dim=1, descending=True).values / (1 + places).log2()).sum(dim=1)
        reached = (gains / (1 + ranks).log2()).sum(dim=1)
        graded = best != 0  # true of nan, which is to be seen
        return (1 - reached / best.where(graded, 1)).where(graded, 0)
