"""Ladder loss (CVSE++, Zhou et al. 2020): relevant before somewhat relevant before irrelevant.

Thresholds t_1 > ... > t_{L-1} on relevance cut the candidates of a query that are not its pair p into levels
N_1 (R >= t_1), ..., N_L (R < t_{L-1}). With margins a and weights b (Eq. 6 to 8)::

    L(q) = b_1 * sum over j in N_1:L                    of [a_1 - S(q, p) + S(q, j)]+
         + b_l * sum over i in N_{l-1}, j in N_l:L      of [a_l - S(q, i) + S(q, j)]+        l = 2..L

Hard contrastive sampling (Eq. 8) keeps one term of each sum, or several: the farthest i and the closest j.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rungwise.core import Cancelled
from rungwise.losses._base import BlockFacts, BlockLoss, Degrees, Reduction, require
from rungwise.losses._batch import Reads
from rungwise.losses._hinge import hardest, margin_cancelled, max_of_hinges, sum_of_hinges
from rungwise.losses._pairs import BlockSide, ExtraPositives

Sampling = Literal["sum", "hard_contrastive"]
Levels = Literal["single", "cumulative"]
Masking = Literal["exclude", "product"]

CHUNK = 1 << 20  # entries sorted at a time: bounds the float64 copies, and fits the cache


def levels_of(relevance: Tensor, thresholds: Sequence[float]) -> Tensor:
    """Level of each candidate, from 1 (R >= t_1) to L; a value equal to a threshold belongs to the upper level.

    Args:
        relevance: Degrees of any shape.
        thresholds: Falling values on the scale of the relevance.

    Returns:
        int8 of the same shape; L where relevance is nan.

    >>> levels_of(torch.tensor([0.9, 0.63, 0.6, 0.1]), (0.63, 0.56))
    tensor([1, 1, 2, 3], dtype=torch.int8)
    """
    level = torch.ones_like(relevance, dtype=torch.int8)
    for threshold in thresholds:
        level += ~(relevance >= threshold)
    return level


class _RungSum(torch.autograd.Function):
    """Sum over i in upper, j in lower of [margin - S_i + S_j]+ for each row, in O(C log C) a row.

    In a row sorted by similarity, the i that contribute with a given j are those before one position, so that a prefix
    count and a prefix sum (in float64) replace the sum over i. The gradient of S_j is that count; the gradient of S_i
    is minus the number of j whose position lies behind i, a suffix sum of the positions' histogram.
    """

    @staticmethod
    def forward(ctx: Any, similarity: Tensor, upper: Tensor, lower: Tensor, margin: float) -> Tensor:
        """(P,) sums, from (P, C) similarity and (P, C) bool upper and lower."""
        step = max(1, CHUNK // similarity.shape[1])
        chunks = zip(*(torch.split(block, step) for block in (similarity, upper, lower)), strict=True)
        parts = [_rung_sum_of_rows(s, u, w, margin) for s, u, w in chunks]
        ctx.save_for_backward(torch.cat([slope for _, slope in parts]))
        return torch.cat([value for value, _ in parts])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None]:
        """(P, C) gradient, from (P,)."""
        (slope,) = ctx.saved_tensors
        return upstream.unsqueeze(1) * slope, None, None, None


def _rung_sum_of_rows(similarity: Tensor, upper: Tensor, lower: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """Values (rows,) and slopes (rows, C) of :class:`_RungSum`."""
    ordered, order = similarity.contiguous().sort(dim=1)
    exact = ordered.double()
    above, below = upper.gather(1, order), lower.gather(1, order)
    count = torch.nn.functional.pad(above.cumsum(dim=1), (1, 0))
    total = torch.nn.functional.pad((exact * above).cumsum(dim=1), (1, 0))
    reach = torch.searchsorted(exact, exact + margin)  # of j: how many entries are below S_j + margin
    active = count.gather(1, reach)
    value = ((active * (exact + margin) - total.gather(1, reach)) * below).sum(dim=1)
    ends = torch.zeros_like(count).scatter_add_(1, reach, below.to(count.dtype))
    behind = ends.sum(dim=1, keepdim=True) - ends.cumsum(dim=1)[:, :-1]
    slope = active * below - behind * above
    unsorted = torch.zeros_like(similarity).scatter_(1, order, slope.to(similarity.dtype))
    return value.to(similarity.dtype), unsorted


def rung_sum(similarity: Tensor, upper: Tensor, lower: Tensor, margin: float) -> Tensor:
    """Sum of [margin - S_i + S_j]+ over all i in ``upper`` and j in ``lower`` of each row, without forming the pairs.

    Args:
        similarity: (P, C).
        upper: (P, C) bool, the candidates that should come first.
        lower: (P, C) bool, the candidates that should come after them.
        margin: Margin a.

    Returns:
        (P,); 0 where either set is empty. Time O(P C log C), memory O(P C); differentiable once.

    >>> s = torch.tensor([[0.9, 0.5, 0.6, 0.1]])
    >>> rung_sum(s, torch.tensor([[True, True, False, False]]), torch.tensor([[False, False, True, True]]), 0.2)
    tensor([0.3000])
    """
    value: Tensor = _RungSum.apply(similarity, upper, lower, margin)  # type: ignore[no-untyped-call]
    return value


def rung_hardest(similarity: Tensor, upper: Tensor, lower: Tensor, margin: float) -> Tensor:
    """The largest single term of :func:`rung_sum`: the farthest of ``upper`` against the closest of ``lower``."""
    negated, some_upper = hardest(-similarity, upper)
    closest, some_lower = hardest(similarity, lower)
    return (margin + negated + closest).relu().where(some_upper & some_lower, 0)


def rung_hardest_pairs(similarity: Tensor, upper: Tensor, lower: Tensor, margin: float, pairs: int) -> Tensor:
    """Sum of ``pairs`` terms of :func:`rung_sum`: the k-th farthest of ``upper`` against the k-th closest of ``lower``.

    Where a set has fewer candidates, there are as many pairs as it has. Of tied candidates the first come first. Time
    O(P C log C), memory O(P C).

    >>> s = torch.tensor([[0.9, 0.5, 0.6, 0.1]])
    >>> upper, lower = torch.tensor([[True, True, False, False]]), torch.tensor([[False, False, True, True]])
    >>> rung_hardest_pairs(s, upper, lower, 1.0, pairs=2)
    tensor([1.3000])
    """
    with torch.no_grad():
        farthest = similarity.masked_fill(~upper, torch.inf).sort(dim=1, stable=True).indices[:, :pairs]
        closest = (
            similarity.masked_fill(~lower, -torch.inf).sort(dim=1, descending=True, stable=True).indices[:, :pairs]
        )
        exist = upper.gather(1, farthest) & lower.gather(1, closest)
    hinges = (margin - similarity.gather(1, farthest) + similarity.gather(1, closest)).relu()
    return hinges.where(exist, 0).sum(dim=1)


def rung_by_product(similarity: Tensor, upper: Tensor, lower: Tensor, margin: float) -> Tensor:
    """:func:`rung_hardest` as masked in the authors' program: by filling the row instead of leaving entries out.

    Outside ``lower`` a similarity counts as 0 in the search for the closest, and outside ``upper`` as 1 in the search
    for the farthest. So a query whose closest candidate of ``lower`` has a negative similarity compares with 0, without
    a gradient there, and an empty level does not end the rung.

    >>> s = torch.tensor([[0.9, 0.5, -0.6, -0.1]])
    >>> rung_by_product(s, torch.tensor([[True, True, False, False]]), torch.tensor([[False, False, True, True]]), 0.7)
    tensor([0.2000])
    """
    with torch.no_grad():
        farthest = similarity.masked_fill(~upper, 1).argmin(dim=1, keepdim=True)
        closest = similarity.masked_fill(~lower, 0).argmax(dim=1, keepdim=True)
    # Reading two entries a row, rather than the filled copies, keeps those out of the graph.
    first = similarity.gather(1, farthest).where(upper.gather(1, farthest), 1)
    second = similarity.gather(1, closest).where(lower.gather(1, closest), 0)
    return (margin - first + second).relu().squeeze(1)


class Ladder(BlockLoss):
    """Both sides of the ladder loss, added; any number of rungs.

    A threshold belongs to its relevance source: 0.63 is that of BERT (the paper) or of averaged word vectors (the
    authors' program). A rung whose upper or lower level is empty adds 0. With all weights after the first 0 it equals
    :class:`~rungwise.losses.SumOfHinges` or, with hard contrastive sampling, :class:`~rungwise.losses.MaxOfHinges`.

    Hard contrastive sampling takes "one or several pairs" of each rung, the closest of the lower levels with the
    farthest of the upper one; the paper writes the equation of one pair (Eq. 8). Several pairs are read as follows
    [ours]. On every rung from the second on, the k-th farthest candidate stands against the k-th closest, for k = 1 to
    ``pairs``, and the hinges are added as in Eq. 7. Of all choices of so many pairs in which no candidate stands twice
    on the same side, this has the largest loss. The first rung keeps the hardest negative.

    Args:
        thresholds: Thresholds t_1 > ... > t_{L-1} on the scale of the relevance source.
        margins: Margins a_1..a_L of the rungs, in units of similarity.
        weights: Weights b_1..b_L of the rungs.
        sampling: Terms of each rung: ``"hard_contrastive"``, the hardest pair or pairs, or ``"sum"``, all pairs in
            O(L B^2 log B).
        pairs: Number of pairs that hard contrastive sampling takes of each rung from the second on; a rung with fewer
            candidates takes those that it has.
        levels: Upper set of rung l: ``"single"``, N_{l-1} alone (the paper), or ``"cumulative"``, all levels above the
            threshold (the authors' program).
        pair_in_top_level: Count the paired item into N_1 (the authors' program), whatever its own relevance is.
        masking: How hard contrastive sampling leaves entries out from the second rung on: ``"exclude"`` (the paper), or
            ``"product"`` (the authors' program), where they count as similarity 0 among the closest and as 1 among the
            farthest.

    Raises:
        ValueError: If thresholds do not fall, the numbers of margins, weights and thresholds do not fit, masking by
            product is combined with the sum, or several pairs are combined with either.

    >>> s = torch.tensor([[0.9, 0.3, 0.4], [0.2, 0.8, 0.1], [0.0, 0.1, 0.7]])
    >>> r = torch.tensor([[1.0, 0.7, 0.1], [0.7, 1.0, 0.2], [0.1, 0.2, 1.0]])
    >>> Ladder()(s, r)
    tensor(0.0275)
    """

    needs_negatives: ClassVar[bool] = True

    def __init__(
        self,
        thresholds: Sequence[float] = (0.63,),
        margins: Sequence[float] = (0.2, 0.01),
        weights: Sequence[float] = (1.0, 0.25),
        *,
        sampling: Sampling = "hard_contrastive",
        pairs: int = 1,
        levels: Levels = "single",
        pair_in_top_level: bool = False,
        masking: Masking = "exclude",
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__(reduction=reduction, extra_positives=extra_positives, mask_above=mask_above)
        require("sampling", sampling, Sampling)
        require("levels", levels, Levels)
        require("masking", masking, Masking)
        if masking == "product" and sampling == "sum":
            raise ValueError("masking 'product' belongs to sampling 'hard_contrastive'; 'sum' takes no maximum")
        if pairs < 1:
            raise ValueError(f"pairs must be at least 1, got {pairs}")
        if pairs > 1 and sampling == "sum":
            raise ValueError(f"pairs {pairs} belongs to sampling 'hard_contrastive'; 'sum' takes all pairs of a rung")
        if pairs > 1 and masking == "product":
            raise ValueError(f"pairs {pairs} belongs to masking 'exclude'; 'product' takes one pair of a rung")
        if any(upper <= lower for upper, lower in pairwise(thresholds)):
            raise ValueError(f"thresholds must fall from rung to rung, got {tuple(thresholds)}")
        if not len(margins) == len(weights) == len(thresholds) + 1:
            raise ValueError(
                f"{len(thresholds)} thresholds make {len(thresholds) + 1} rungs, each with a margin and a weight; "
                f"got {len(margins)} margins and {len(weights)} weights"
            )
        self.thresholds = tuple(thresholds)
        self.margins = tuple(margins)
        self.weights = tuple(weights)
        self.sampling: Sampling = sampling
        self.pairs = pairs
        self.levels: Levels = levels
        self.pair_in_top_level = pair_in_top_level
        self.masking: Masking = masking

    @property
    def reads(self) -> Reads:
        """Relevance, besides the common reads."""
        return super().reads | Reads(relevance=True)

    @property
    def first_margin(self) -> float:
        """Margin of the first rung."""
        return self.margins[0]

    def cancelled(self, place: str, facts: BlockFacts) -> Iterator[Cancelled]:
        """Weights of 0, margins out of reach, and more pairs than a batch has, besides the common settings."""
        yield from super().cancelled(place, facts)
        if not any(self.weights):
            told = ", ".join(f"{weight:g}" for weight in self.weights)
            yield Cancelled(f"{place}.weights {told} leave no loss; set one above 0", refused=True)
            return
        for rung, (margin, weight) in enumerate(zip(self.margins, self.weights, strict=True), start=1):
            if weight:
                reached = margin_cancelled(f"{place}.margins ({rung})", margin, facts)
                # A rung may have no distance of its own, and one of several may be out of reach.
                yield from (Cancelled(one.line) for one in reached if margin or rung == 1)
            else:
                cut = "its threshold and " if rung > 1 else ""
                yield Cancelled(
                    f"{place}.weights ({rung}) 0 leaves rung {rung} out, with {cut}margin {margin:g}; give it a weight,"
                    " or take a rung less"
                )
        if self.pairs > 1 and self.pairs >= facts.pairs:
            yield Cancelled(
                f"{place}.pairs {self.pairs} is more than a query has candidates with batch_size {facts.pairs}; set it"
                f" below {facts.pairs}"
            )

    def cancelled_by_degrees(self, place: str, own: Degrees, others: Degrees) -> Iterator[Cancelled]:
        """Thresholds beyond all degrees, besides the common settings."""
        yield from super().cancelled_by_degrees(place, own, others)
        for at, (higher, cut) in enumerate(zip((np.inf, *self.thresholds), self.thresholds, strict=False), start=1):
            said = f"{place}.thresholds ({at}) {cut:g} leaves rung {at + 1} of the loss"
            if not ((others >= cut) & (others < higher)).any():
                yield Cancelled(
                    f"{said} without its upper side: none of {len(others):,} sampled degrees of data.relevance lies"
                    f" there, in {others.min():.4g}..{others.max():.4g}; lower it, or give shares"
                )
            elif (others >= cut).all():
                yield Cancelled(
                    f"{said} without its lower side: the lowest of {len(others):,} sampled degrees of data.relevance is"
                    f" {others.min():.4g}; raise it, or give shares"
                )

    def per_query(self, side: BlockSide) -> Tensor:
        """(Q,) ladder loss over each query's pairs."""
        first, rung = (sum_of_hinges, rung_sum) if self.sampling == "sum" else (max_of_hinges, rung_hardest)
        if self.masking == "product":
            rung = rung_by_product
        elif self.pairs > 1:
            rung = partial(rung_hardest_pairs, pairs=self.pairs)
        rows, excluded = side.rows(side.similarity), side.rows(side.excluded)
        level = levels_of(side.rows(side.graded()), self.thresholds).masked_fill(excluded, 0)
        if self.pair_in_top_level:
            level = level.scatter(1, side.column.unsqueeze(1), 1)
        loss = self.weights[0] * first(rows, side.of_pairs(side.similarity), excluded, self.margins[0])
        for top, (margin, weight) in enumerate(zip(self.margins[1:], self.weights[1:], strict=True), start=1):
            upper = level == top if self.levels == "single" else (level >= 1) & (level <= top)
            loss = loss + weight * rung(rows, upper, level > top, margin)
        return side.sum_per_query(loss)
