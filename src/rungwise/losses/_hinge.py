"""Sum of hinges and max of hinges.

For a query q with its pair p, its negatives N and margin a::

    SH(q) = sum over n in N of [a + S(q, n) - S(q, p)]+          (UVS, Kiros et al. 2014; VSE0)
    MH(q) = [a + max over n in N of S(q, n) - S(q, p)]+          (VSE++; Faghri et al. 2018, Eq. 6)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from rungwise.core import Cancelled
from rungwise.losses._base import BlockFacts, BlockLoss, Loss, Reduction
from rungwise.losses._batch import Reads
from rungwise.losses._draws import draw, pair_keys
from rungwise.losses._pairs import BlockSide, ExtraPositives


def hardest(similarity: Tensor, eligible: Tensor) -> tuple[Tensor, Tensor]:
    """The most similar eligible candidate of each row of (P, C); the first of tied ones takes the gradient.

    Returns:
        (P,) its similarity, and (P,) bool: whether the row has an eligible candidate.

    >>> hardest(torch.tensor([[0.9, 0.8, 0.3]]), torch.tensor([[False, True, True]]))
    (tensor([0.8000]), tensor([True]))
    """
    with torch.no_grad():
        index = similarity.masked_fill(~eligible, -torch.inf).argmax(dim=1, keepdim=True)
    # Reading the entry, rather than the masked copy's maximum, keeps that copy out of the graph.
    return similarity.gather(1, index).squeeze(1), eligible.any(dim=1)


def sum_of_hinges(similarity: Tensor, pair: Tensor, excluded: Tensor, margin: float) -> Tensor:
    """(P,) SH of each pair.

    Args:
        similarity: (P, C) row of each pair's query.
        pair: (P,) similarity of each pair.
        excluded: (P, C) bool, candidates that are no negatives.
        margin: Margin a.

    >>> s = torch.tensor([[0.9, 0.8], [0.4, 0.5]])
    >>> sum_of_hinges(s, s.diagonal(), torch.eye(2, dtype=torch.bool), margin=0.2)
    tensor([0.1000, 0.1000])
    """
    hinges = (similarity - (pair - margin).unsqueeze(1)).relu()
    return hinges.masked_fill(excluded, 0).sum(dim=1)


def hardest_violation(similarity: Tensor, pair: Tensor, excluded: Tensor, margin: float) -> Tensor:
    """(P,) a + max over n of S(q, n) - S(q, p), which is negative where the pair comes first by more than the margin.

    The arguments are those of :func:`sum_of_hinges`; a pair without negatives has 0.

    >>> s = torch.tensor([[0.9, 0.8], [0.1, 0.5]])
    >>> hardest_violation(s, s.diagonal(), torch.eye(2, dtype=torch.bool), margin=0.2)
    tensor([ 0.1000, -0.2000])
    """
    negative, exists = hardest(similarity, ~excluded)
    return (margin + negative - pair).where(exists, 0)


def max_of_hinges(similarity: Tensor, pair: Tensor, excluded: Tensor, margin: float) -> Tensor:
    """(P,) MH of each pair, with the arguments of :func:`sum_of_hinges`; 0 for a pair without negatives.

    >>> s = torch.tensor([[0.9, 0.8], [0.1, 0.5]])
    >>> max_of_hinges(s, s.diagonal(), torch.eye(2, dtype=torch.bool), margin=0.2)
    tensor([0.1000, 0.0000])
    """
    return hardest_violation(similarity, pair, excluded, margin).relu()


def margin_cancelled(place: str, margin: float, facts: BlockFacts) -> Iterator[Cancelled]:
    """A margin that no pair can miss, or that none can reach, with the similarity of the run.

    >>> cosine = BlockFacts("cosine", -1.0, 1.0, pairs=128)
    >>> [one.refused for margin in (-2.0, 0.0, 0.2, 2.0) for one in margin_cancelled("loss.margin", margin, cosine)]
    [True, False, False]
    """
    between = f"model.similarity {facts.similarity} lies in {facts.lowest:g}..{facts.highest:g}"
    if margin <= -facts.span:
        yield Cancelled(
            f"{place} {margin:g} leaves no loss: {between}, so that no negative is {-margin:g} above its pair; set"
            f" {place} above 0, such as 0.2",
            refused=True,
        )
    elif margin <= 0:
        yield Cancelled(
            f"{place} {margin:g} asks for no distance: nothing is lost once all vectors are alike; set {place} above"
            " 0, such as 0.2, unless that is meant"
        )
    elif margin >= facts.span:
        yield Cancelled(
            f"{place} {margin:g} is never reached: {between}, so that every negative is always pushed, and a larger"
            f" margin changes nothing; set {place} below {facts.span:g}, such as 0.2"
        )


class SumOfHinges(BlockLoss):
    """Both sides of SH, added: every negative within the margin is pushed.

    UVS takes inner products (:func:`rungwise.similarity.inner`): it normalises the caption vectors and not the image
    vectors (VSE++ section 3). VSE0 has the same formulation.

    Args:
        margin: Margin a, in units of similarity.

    >>> SumOfHinges()(torch.tensor([[0.9, 0.8], [0.1, 0.5]]))
    tensor(0.6000)
    """

    needs_negatives: ClassVar[bool] = True

    def __init__(
        self,
        margin: float = 0.2,
        *,
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__(reduction=reduction, extra_positives=extra_positives, mask_above=mask_above)
        self.margin = margin

    @property
    def first_margin(self) -> float:
        """Its own margin."""
        return self.margin

    def cancelled(self, place: str, facts: BlockFacts) -> Iterator[Cancelled]:
        """Its margin, besides the common settings."""
        yield from super().cancelled(place, facts)
        yield from margin_cancelled(f"{place}.margin", self.margin, facts)

    def per_query(self, side: BlockSide) -> Tensor:
        """(Q,) SH over each query's pairs."""
        rows, pair = side.rows(side.similarity), side.of_pairs(side.similarity)
        return side.sum_per_query(sum_of_hinges(rows, pair, side.rows(side.excluded), self.margin))


class MaxOfHinges(BlockLoss):
    """Both sides of MH, added: only the hardest negative of each query is pushed.

    Early in training few pairs carry gradient, and the loss can rest at 2 x margin a pair for several epochs: warm
    up with :class:`SumOfHinges` (VSE++ section 3.5).

    A negative set of n pairs above the mini-batch's B (section 3.6) needs n encoded pairs: pass their n x n block with
    ``queries=B``, and only the first B pairs are queries. Training encodes the further pairs by itself.

    Args:
        margin: Margin a, in units of similarity.
        negative_set: Number of random negatives drawn for each query, of which the hardest is taken (VSE++ section
            3.6); None takes all of the block, and so does a number beyond its negatives. Training encodes this many
            pairs where it is larger than the batch.
        generator: Random generator of the draws.

    >>> MaxOfHinges(reduction="mean")(torch.tensor([[0.9, 0.8], [0.1, 0.5]]))
    tensor(0.3000)
    """

    needs_negatives: ClassVar[bool] = True

    def __init__(
        self,
        margin: float = 0.2,
        *,
        negative_set: int | None = None,
        generator: torch.Generator | None = None,
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__(reduction=reduction, extra_positives=extra_positives, mask_above=mask_above)
        if negative_set is not None and negative_set < 1:
            raise ValueError(f"negative_set must be at least 1, got {negative_set}")
        self.margin = margin
        self.negative_set = negative_set
        self.generator = generator

    @property
    def first_margin(self) -> float:
        """Its own margin."""
        return self.margin

    def cancelled(self, place: str, facts: BlockFacts) -> Iterator[Cancelled]:
        """Its margin, and a negative set that is the batch, besides the common settings."""
        yield from super().cancelled(place, facts)
        yield from margin_cancelled(f"{place}.margin", self.margin, facts)
        if self.negative_set is not None and facts.pairs - 1 <= self.negative_set <= facts.pairs:
            yield Cancelled(
                f"{place}.negative_set {self.negative_set} changes nothing: batch_size {facts.pairs} gives each query"
                f" {facts.pairs - 1} negatives, which are all taken; leave it out, or set it below {facts.pairs - 1} or"
                f" above {facts.pairs}"
            )

    @property
    def rests_at(self) -> float:
        """2 x margin, the loss while every negative is as similar as the pair."""
        return 2 * self.margin

    @property
    def reads(self) -> Reads:
        """Places of the items where negatives are drawn."""
        return super().reads | Reads(draws=self.negative_set is not None)

    def pairs_to_encode(self, batch_size: int) -> int:
        """The negative set, if it is larger than the batch."""
        return max(batch_size, self.negative_set or 0)

    def per_query(self, side: BlockSide) -> Tensor:
        """(Q,) MH over each query's pairs."""
        rows, pair, excluded = side.rows(side.similarity), side.of_pairs(side.similarity), side.rows(side.excluded)
        if self.negative_set is not None:
            excluded = ~draw(~excluded, pair_keys(side, self.generator), self.negative_set)
        return side.sum_per_query(max_of_hinges(rows, pair, excluded, self.margin))


def warm_up(loss: Loss) -> SumOfHinges:
    """The sum of hinges that may precede a loss which starts slowly, with the loss's first margin and options."""
    return SumOfHinges(loss.first_margin, **loss.shared)
