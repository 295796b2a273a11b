"""Contrastive loss with soft targets: the softmax of similarities should equal the softmax of relevance degrees.

For a query q with its pair p, its negatives N, temperatures T (of S) and U (of R), over k in {p} + N::

    l(q) = - sum over k of  softmax(R(q, .) / U)_k * log softmax(S(q, .) / T)_k
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from rungwise.core import Cancelled
from rungwise.losses._base import BlockLoss, Degrees, Reduction
from rungwise.losses._batch import Reads
from rungwise.losses._pairs import BlockSide, ExtraPositives
from rungwise.losses._temperature import Temperature

_ALIKE = 0.01
"""Largest ratio of targets, as a difference of logarithms, that counts as none."""


def soft_contrastive(
    similarity: Tensor, relevance: Tensor, left_out: Tensor, temperature: float | Tensor, target_temperature: float
) -> Tensor:
    """(P,) cross-entropy of each row's two softmaxes.

    It is least, and equal to the entropy of the targets, where S / T and R / U differ by a constant.

    Args:
        similarity: (P, C).
        relevance: (P, C).
        left_out: (P, C) bool, candidates that are left out.
        temperature: Temperature T.
        target_temperature: Temperature U.

    >>> s, r = torch.tensor([[0.9, 0.8]]), torch.tensor([[1.0, 0.0]])
    >>> soft_contrastive(s, r, torch.tensor([[False, False]]), 0.1, 0.1)
    tensor([0.3133])
    """
    predicted = (similarity / temperature).masked_fill(left_out, -torch.inf).log_softmax(dim=1)
    target = (relevance.to(similarity.dtype) / target_temperature).masked_fill(left_out, -torch.inf).softmax(dim=1)
    return -(target * predicted.masked_fill(left_out, 0)).sum(dim=1)


class SoftContrastive(BlockLoss):
    """Both sides of the soft-target contrastive loss, added.

    As the target temperature falls to 0 it becomes :class:`~rungwise.losses.ContrastiveSum`, provided that the pair is
    the most relevant candidate.

    Args:
        temperature: Temperature T of the similarities.
        target_temperature: Temperature U, on the scale of the relevance source.
        learnable: Learn T.

    >>> SoftContrastive()(torch.tensor([[0.9, 0.8], [0.1, 0.5]]), torch.tensor([[1.0, 0.9], [0.9, 1.0]]))
    tensor(6.0697)
    """

    needs_negatives: ClassVar[bool] = True

    def __init__(
        self,
        temperature: float = 0.1,
        target_temperature: float = 0.1,
        *,
        learnable: bool = False,
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__(reduction=reduction, extra_positives=extra_positives, mask_above=mask_above)
        if not target_temperature > 0:
            raise ValueError(f"target_temperature must be positive, got {target_temperature:g}")
        self.temperature = Temperature(temperature, learnable)
        self.learnable = learnable
        self.target_temperature = target_temperature

    @property
    def reads(self) -> Reads:
        """Relevance, besides the common reads."""
        return super().reads | Reads(relevance=True)

    def cancelled_by_degrees(self, place: str, own: Degrees, others: Degrees) -> Iterator[Cancelled]:
        """A temperature by which all targets are alike, besides the common settings."""
        yield from super().cancelled_by_degrees(place, own, others)
        every = np.concatenate([own, others])
        if np.ptp(every) / self.target_temperature < _ALIKE:
            yield Cancelled(
                f"{place}.target_temperature {self.target_temperature:g} makes all targets alike: degrees of"
                f" data.relevance lie in {every.min():.4g}..{every.max():.4g}; lower it to a tenth of their range"
            )

    def per_query(self, side: BlockSide) -> Tensor:
        """(Q,) cross-entropy over each query's pairs."""
        rows, degrees = side.rows(side.similarity), side.rows(side.graded())
        loss = soft_contrastive(rows, degrees, side.left_out, self.temperature(), self.target_temperature)
        return side.sum_per_query(loss)
