"""Contrastive losses of one modality against the other.

For a query q with its pair p, its negatives N, temperature T and margin a::

    CSN(q) = -log exp(S(q, p) / T) / sum over k in {p} + N of exp(S(q, k) / T)      (ConVSE, Eq. 6 to 8)
    CMN(q) = [max over n in N of S(q, n) + a - S(q, p)]+ / T                        (ConVSE++, Eq. 12 to 14)

The paper passes from the first to the second by a loss without hinge and margin (Eq. 9 to 11), where n* is the negative
with the largest S(q, n)::

    -log exp(S(q, p) / T) / exp(S(q, n*) / T) = (S(q, n*) - S(q, p)) / T
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor

from rungwise.core import Cancelled
from rungwise.losses._base import BlockFacts, BlockLoss, Reduction
from rungwise.losses._hinge import hardest_violation, margin_cancelled
from rungwise.losses._pairs import BlockSide, ExtraPositives
from rungwise.losses._temperature import Temperature


def contrastive_sum(similarity: Tensor, pair: Tensor, left_out: Tensor, temperature: float | Tensor) -> Tensor:
    """(P,) CSN of each pair.

    Args:
        similarity: (P, C) row of each pair's query.
        pair: (P,) similarity of each pair.
        left_out: (P, C) bool, candidates that are left out; the pair itself is not.
        temperature: Temperature T.

    >>> s = torch.tensor([[0.9, 0.8]])
    >>> contrastive_sum(s, s[:, 0], torch.tensor([[False, False]]), temperature=0.1)
    tensor([0.3133])
    """
    logits = (similarity / temperature).masked_fill(left_out, -torch.inf)
    return logits.logsumexp(dim=1) - pair / temperature


class ContrastiveSum(BlockLoss):
    """Both sides of CSN, *added*: twice CLIP's mean of the two.

    Args:
        temperature: Temperature T of the softmax.
        learnable: Learn the temperature.

    >>> ContrastiveSum()(torch.tensor([[0.9, 0.8], [0.1, 0.5]]))
    tensor(3.3803)
    """

    needs_negatives: ClassVar[bool] = True

    def __init__(
        self,
        temperature: float = 0.1,
        *,
        learnable: bool = False,
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__(reduction=reduction, extra_positives=extra_positives, mask_above=mask_above)
        self.temperature = Temperature(temperature, learnable)
        self.learnable = learnable

    def per_query(self, side: BlockSide) -> Tensor:
        """(Q,) CSN over each query's pairs."""
        rows, pair = side.rows(side.similarity), side.of_pairs(side.similarity)
        return side.sum_per_query(contrastive_sum(rows, pair, side.left_out, self.temperature()))


class ContrastiveMax(BlockLoss):
    """Both sides of CMN, added.

    It equals :class:`~rungwise.losses.MaxOfHinges` divided by the temperature, so that the two train alike, except for
    gradient clipping and Adam's epsilon. The temperature is not learnable, since it only scales the loss.

    With ``hinge=False`` a query loses minus the log ratio of its pair to its hardest negative (ConVSE, Eq. 9 to 11).
    This is negative where the pair comes first, so that the network is updated although the retrieval is correct. The
    paper calls that undesirable, and adds hinge and margin against it. A query without negatives loses 0.

    Args:
        temperature: Temperature T, by which the hinge is divided.
        margin: Margin a, in units of similarity; 0 without a hinge.
        hinge: Whether the loss of a query is at least 0 (Eq. 12 to 14); without a hinge (Eq. 9 to 11), correct
            retrievals update the network too.

    Raises:
        ValueError: If a margin other than 0 is given without a hinge.

    >>> s = torch.tensor([[0.9, 0.8], [0.1, 0.5]])
    >>> ContrastiveMax()(s)
    tensor(6.)
    >>> ContrastiveMax(hinge=False, margin=0.0, reduction="none")(s)
    (tensor([-1.0000, -4.0000]), tensor([-8.0000,  3.0000]))
    """

    needs_negatives: ClassVar[bool] = True

    def __init__(
        self,
        temperature: float = 0.1,
        margin: float = 0.2,
        *,
        hinge: bool = True,
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__(reduction=reduction, extra_positives=extra_positives, mask_above=mask_above)
        if not hinge and margin:
            raise ValueError(
                f"margin {margin} with hinge False adds a constant and changes no gradient: set margin to 0, or hinge"
                " to True"
            )
        self.temperature = Temperature(temperature)
        self.margin = margin
        self.hinge = hinge

    @property
    def first_margin(self) -> float:
        """Its own margin; that of a loss without a margin where there is no hinge."""
        return self.margin if self.hinge else super().first_margin

    def cancelled(self, place: str, facts: BlockFacts) -> Iterator[Cancelled]:
        """Its margin where there is a hinge, besides the common settings."""
        yield from super().cancelled(place, facts)
        if self.hinge:
            yield from margin_cancelled(f"{place}.margin", self.margin, facts)

    def per_query(self, side: BlockSide) -> Tensor:
        """(Q,) CMN over each query's pairs."""
        rows, pair = side.rows(side.similarity), side.of_pairs(side.similarity)
        violation = hardest_violation(rows, pair, side.rows(side.excluded), self.margin)
        return side.sum_per_query((violation.relu() if self.hinge else violation) / self.temperature())
