"""Semantic adaptive margin (SAM, Biten et al. 2022, Eq. 6 and 7): the less a negative fits, the larger its margin.

With M[i, c] how well caption c describes image i (CIDEr on the x10 scale), temperature tau, an anchor pair p, a
negative caption m of its image, and a negative image l, with caption c_l, of its caption::

    a_i2t = (M[p, p] - M[p, m]) / tau              a_t2i = (M[p, p] - M[p, c_l]) / tau
    L = [a_i2t + S(p, m) - S(p, p)]+ + [a_t2i + S(l, p) - S(p, p)]+

Both margins read the row of the pair's image: M is not transposed for caption queries. (Eq. 7 prints c_l and c_m the
wrong way round: the margin of a direction is about that direction's own negative.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from rungwise.core import Cancelled
from rungwise.losses._base import BlockFacts, BlockLoss, Degrees, Reduction, require
from rungwise.losses._batch import Reads
from rungwise.losses._draws import pair_keys
from rungwise.losses._hinge import margin_cancelled, max_of_hinges
from rungwise.losses._pairs import BlockSide, ExtraPositives

Negatives = Literal["random", "hardest", "softest"]
_USUAL_MARGIN = 0.2
_NO_MARGIN = 0.01
"""Largest margin that counts as none: a hundredth of the range of a similarity of 0..1."""


class SemanticAdaptiveMargin(BlockLoss):
    """Both sides of SAM, added; one negative for each anchor. Negative margins are not clipped.

    Where an image has several captions in the block, M[p, c_l] is the mean over those of l; an image without a caption
    in the block has no c_l and is no negative.

    Args:
        temperature: Temperature tau, on the scale of the relevance source; the paper tries 3, 5 and 10.
        negatives: Which negative is taken: ``"random"`` (RS), ``"hardest"`` (HN, most similar to the anchor) or
            ``"softest"`` (SN, least similar, which the paper prefers).
        with_triplet: Add max of hinges, the paper's "triplet" check mark.
        margin: Margin of that max of hinges.
        generator: Random generator of random negatives.

    >>> s, cider = torch.tensor([[0.9, 0.8], [0.1, 0.5]]), torch.tensor([[9.0, 1.0], [2.0, 8.0]])
    >>> SemanticAdaptiveMargin(temperature=10.0, negatives="hardest")(s, cider)
    tensor(1.8000)
    """

    needs_negatives: ClassVar[bool] = True

    def __init__(
        self,
        temperature: float = 10.0,
        *,
        negatives: Negatives = "softest",
        with_triplet: bool = False,
        margin: float = _USUAL_MARGIN,
        generator: torch.Generator | None = None,
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__(reduction=reduction, extra_positives=extra_positives, mask_above=mask_above)
        require("negatives", negatives, Negatives)
        if not temperature > 0:
            raise ValueError(f"temperature must be positive, got {temperature:g}")
        self.temperature = temperature
        self.negatives: Negatives = negatives
        self.with_triplet = with_triplet
        self.margin = margin
        self.generator = generator

    @property
    def reads(self) -> Reads:
        """M, also of the captions of candidate images; places of the items where negatives are drawn."""
        drawn = self.negatives == "random"
        return super().reads | Reads(relevance=True, candidate_captions=True, draws=drawn)

    def cancelled(self, place: str, facts: BlockFacts) -> Iterator[Cancelled]:
        """The margin of a triplet loss that is left out, or that cannot act, besides the common settings."""
        yield from super().cancelled(place, facts)
        if self.with_triplet:
            # SAM itself remains, whatever the margin beside it.
            yield from (Cancelled(one.line) for one in margin_cancelled(f"{place}.margin", self.margin, facts))
        elif self.margin != _USUAL_MARGIN:
            yield Cancelled(
                f"{place}.margin {self.margin:g} changes nothing: {place}.with_triplet is false, and margins come from"
                f" degrees; set {place}.with_triplet to true, or leave the margin out"
            )

    def cancelled_by_degrees(self, place: str, own: Degrees, others: Degrees) -> Iterator[Cancelled]:
        """A temperature by which all margins vanish, besides the common settings."""
        yield from super().cancelled_by_degrees(place, own, others)
        largest = float(own.max(initial=-np.inf) - others.min()) / self.temperature
        if largest < _NO_MARGIN:
            yield Cancelled(
                f"{place}.temperature {self.temperature:g} leaves no margin above {max(largest, 0):.2g}: degrees of"
                f" data.relevance lie in {min(others.min(), own.min(initial=np.inf)):.4g}.."
                f"{max(others.max(), own.max(initial=-np.inf)):.4g}; lower the temperature to about their range"
            )

    def per_query(self, side: BlockSide) -> Tensor:
        """(Q,) SAM over each query's pairs; the captions' side needs its ``image_degrees``."""
        kind = side.similarity.dtype
        degrees = side.rows(side.graded()) if side.image_degrees is None else side.image_degrees
        margins = (side.of_pairs(side.graded()).to(kind).unsqueeze(1) - degrees.to(kind)) / self.temperature
        rows, pair = side.rows(side.similarity), side.of_pairs(side.similarity)
        eligible = side.rows(~side.excluded) & ~margins.isposinf()
        negative = self._choice(side, rows.detach(), eligible)
        hinges = (margins.gather(1, negative) + rows.gather(1, negative)).squeeze(1) - pair
        loss = hinges.relu().where(eligible.any(dim=1), 0)
        if self.with_triplet:
            loss = loss + max_of_hinges(rows, pair, side.rows(side.excluded), self.margin)
        return side.sum_per_query(loss)

    def _choice(self, side: BlockSide, rows: Tensor, eligible: Tensor) -> Tensor:
        """(P, 1) column of each pair's negative; any column where none is eligible."""
        if self.negatives == "hardest":
            return rows.masked_fill(~eligible, -torch.inf).argmax(dim=1, keepdim=True)
        if self.negatives == "softest":
            return rows.masked_fill(~eligible, torch.inf).argmin(dim=1, keepdim=True)
        return pair_keys(side, self.generator).masked_fill(~eligible, -1).argmax(dim=1, keepdim=True)
