"""Adaptive listwise loss (CMAL2R, Eq. 7 to 12): harder irrelevant items get larger margins.

For a list of a relevant item + and irrelevant items, n in all, with similarities s and sharpness beta::

    l = log sum over k in list of exp((s_k + m_k) / beta) - s_+ / beta
    m_+ = 0,   m_k = 3/4 - (rank_k - 2) / (2 (n - 2)),   rank 2..n by falling similarity
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from torch import Tensor

from rungwise.core import Cancelled
from rungwise.losses._base import BlockFacts, BlockLoss, Degrees, LossValue, Reduction, require
from rungwise.losses._batch import Reads
from rungwise.losses._draws import draw, pair_keys
from rungwise.losses._pairs import HALF, BlockSide, ExtraPositives

Irrelevant = Literal["no_shared_label", "other_item"]


def adaptive_margins(similarity: Tensor, irrelevant: Tensor, margins: tuple[float, float] = (0.75, 0.25)) -> Tensor:
    """(P, C) margin m of each irrelevant candidate, falling evenly with its rank, without a gradient.

    A single one gets the first of ``margins``. Values outside ``irrelevant`` are meaningless. Of tied candidates the
    first ranks higher.

    Args:
        similarity: (P, C).
        irrelevant: (P, C) bool.
        margins: Margins of the most and of the least similar candidate.

    >>> adaptive_margins(torch.tensor([[0.1, 0.9, 0.5]]), torch.tensor([[True, True, True]]))
    tensor([[0.2500, 0.7500, 0.5000]])
    """
    with torch.no_grad():
        order = similarity.masked_fill(~irrelevant, -torch.inf).argsort(dim=1, descending=True, stable=True)
        places = torch.arange(similarity.shape[1], device=similarity.device).expand_as(order)
        place = torch.empty_like(order).scatter_(1, order, places)
        steps = (irrelevant.sum(dim=1, keepdim=True) - 1).clamp(min=1)
        return margins[0] - (margins[0] - margins[1]) * place.to(similarity.dtype) / steps


def adaptive_listwise(
    similarity: Tensor,
    pair: Tensor,
    irrelevant: Tensor,
    sharpness: float,
    margins: tuple[float, float] = (0.75, 0.25),
) -> Tensor:
    """(P,) loss l of each list; 0 for a list without irrelevant items.

    Args:
        similarity: (P, C).
        pair: (P,) similarity of the relevant item.
        irrelevant: (P, C) bool, candidates that are in the list.
        sharpness: beta, by which similarities are divided.
        margins: Margins of the most and of the least similar irrelevant candidate.

    >>> s = torch.tensor([[0.9, 0.8, 0.6]])
    >>> adaptive_listwise(s, s[:, 0], torch.tensor([[False, True, True]]), sharpness=0.5)
    tensor([1.7181])
    """
    raised = similarity + adaptive_margins(similarity, irrelevant, margins)
    logits = torch.cat([pair.unsqueeze(1), raised.masked_fill(~irrelevant, -torch.inf)], dim=1) / sharpness
    return logits.logsumexp(dim=1) - pair / sharpness


class AdaptiveListwise(BlockLoss):
    """alpha * L_i2t + (1 - alpha) * L_t2i over a block with label relevance, or over lists that were sampled before.

    Similarities are taken unchanged: the paper's are :func:`rungwise.similarity.shifted_cosine`. Its penalty lambda / 2
    * sum ||W||^2 is the optimizer's weight decay on the weight matrices. ``i2t_weight=1`` is the uni-directional
    variant.

    Args:
        sharpness: beta, by which similarities are divided.
        i2t_weight: alpha, the weight of the images' side, 0..1.
        sampled: Number K of irrelevant items drawn for each query; None takes all of the block.
        irrelevant: Which candidates are irrelevant: ``"no_shared_label"``, those of relevance 0 or less (no class label
            shared with the query); or ``"other_item"``, all that are no positives (Eq. 3), for which no relevance is
            needed.
        margins: Margins of the most and of the least similar irrelevant item; ``(0, 0)`` leaves softmax cross-entropy.
        generator: Random generator of the draws.

    >>> s, shared_label = torch.tensor([[0.9, 0.8], [0.1, 0.5]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> AdaptiveListwise()(s, shared_label)
    tensor(2.7736)
    """

    paper_similarity = "shifted_cosine"
    reads_lists = True
    needs_negatives: ClassVar[bool] = True

    def __init__(
        self,
        sharpness: float = 0.5,
        i2t_weight: float = 0.4,
        *,
        sampled: int | None = None,
        irrelevant: Irrelevant = "no_shared_label",
        margins: tuple[float, float] = (0.75, 0.25),
        generator: torch.Generator | None = None,
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__(reduction=reduction, extra_positives=extra_positives, mask_above=mask_above)
        require("irrelevant", irrelevant, Irrelevant)
        if not sharpness > 0:
            raise ValueError(f"sharpness must be positive, got {sharpness:g}")
        if not 0 <= i2t_weight <= 1:
            raise ValueError(f"i2t_weight must be between 0 and 1, got {i2t_weight:g}")
        if sampled is not None and sampled < 1:
            raise ValueError(f"sampled must be at least 1, got {sampled}")
        if len(margins) != 2:
            raise ValueError(f"margins must be two, of the most and of the least similar item; got {margins}")
        self.sharpness = sharpness
        self.i2t_weight = i2t_weight
        self.sampled = sampled
        self.irrelevant: Irrelevant = irrelevant
        self.margins = margins
        self.generator = generator

    @property
    def reads(self) -> Reads:
        """Relevance where it decides what is irrelevant; places of the items where lists are drawn."""
        labelled = self.irrelevant == "no_shared_label"
        return super().reads | Reads(relevance=labelled, draws=self.sampled is not None)

    def cancelled(self, place: str, facts: BlockFacts) -> Iterator[Cancelled]:
        """What lists decide by themselves, and a draw of the whole batch, besides the common settings."""
        yield from super().cancelled(place, facts)
        if facts.lists:
            if self.sampled is not None:
                yield Cancelled(
                    f"{place}.sampled {self.sampled} changes nothing with sampler label_lists, whose"
                    " sampler.irrelevant says how many are drawn; leave it out"
                )
            if self.irrelevant == "no_shared_label":
                yield Cancelled(
                    f"{place}.irrelevant no_shared_label changes nothing with sampler label_lists, which draws by"
                    f" labels itself, and asks for degrees of relevance; set {place}.irrelevant to other_item"
                )
        elif self.sampled is not None and self.sampled >= facts.pairs - 1:
            yield Cancelled(
                f"{place}.sampled {self.sampled} changes nothing: batch_size {facts.pairs} gives each query at most"
                f" {facts.pairs - 1} irrelevant items, which are all taken; leave it out, or set it lower"
            )

    def cancelled_by_degrees(self, place: str, own: Degrees, others: Degrees) -> Iterator[Cancelled]:
        """Degrees of which none is irrelevant, besides the common settings."""
        yield from super().cancelled_by_degrees(place, own, others)
        if self.irrelevant == "no_shared_label" and (others > 0).all():
            yield Cancelled(
                f"{place}.irrelevant no_shared_label finds nothing irrelevant: all of {len(others):,} sampled degrees"
                f" of data.relevance are above 0; set {place}.irrelevant to other_item, or name a source of labels"
            )

    def per_query(self, side: BlockSide) -> Tensor:
        """(Q,) l over each query's pairs, before alpha."""
        irrelevant = side.rows(~side.excluded)
        if self.irrelevant == "no_shared_label":
            irrelevant = irrelevant & ~(side.rows(side.graded()) > 0)
        if self.sampled is not None:
            irrelevant = draw(irrelevant, pair_keys(side, self.generator), self.sampled)
        rows, pair = side.rows(side.similarity), side.of_pairs(side.similarity)
        return side.sum_per_query(adaptive_listwise(rows, pair, irrelevant, self.sharpness, self.margins))

    def of_lists(self, i2t: Tensor, t2i: Tensor | None = None) -> LossValue:
        """The loss of T lists a side that were sampled before, the relevant item first.

        Args:
            i2t: (T, K + 1) similarities of image queries with their captions.
            t2i: (T, K + 1) similarities of caption queries with their images; None counts as 0.

        Returns:
            As in :meth:`BlockLoss.forward <rungwise.losses.BlockLoss.forward>`, with a list as a pair.

        Raises:
            ValueError: If the lists have no relevant item, or the two sides' shapes differ.

        >>> lists = torch.tensor([[0.9, 0.8, 0.6]])
        >>> AdaptiveListwise(i2t_weight=1.0).of_lists(lists)
        tensor(1.7181)
        """
        if i2t.ndim != 2 or i2t.shape[1] == 0:
            raise ValueError(f"lists must be (T, K + 1) with the relevant item first; got {tuple(i2t.shape)}")
        if t2i is not None and t2i.shape != i2t.shape:
            raise ValueError(f"t2i is {tuple(t2i.shape)} but i2t is {tuple(i2t.shape)}: pass equal shapes")
        values = [self._of_list(s) for s in (i2t, t2i) if s is not None]
        return self.reduce(values[0], values[1] if len(values) == 2 else torch.zeros_like(values[0]), len(i2t))

    def _of_list(self, similarity: Tensor) -> Tensor:
        exact = similarity.float() if similarity.dtype in HALF else similarity
        others = exact[:, 1:]
        every = torch.ones_like(others, dtype=torch.bool)
        return adaptive_listwise(others, exact[:, 0], every, self.sharpness, self.margins)

    def reduce(self, i2t: Tensor, t2i: Tensor, pairs: int) -> LossValue:
        """Weight the sides by alpha and 1 - alpha, then reduce."""
        return super().reduce(self.i2t_weight * i2t, (1 - self.i2t_weight) * t2i, pairs)
