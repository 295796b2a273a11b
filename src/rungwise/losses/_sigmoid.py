"""Sigmoid pairwise loss (SigLIP, Zhai et al. 2023): every entry of the block is a yes-or-no question of its own.

For a query q, temperature T, bias b, and z = 1 at pairs, -1 at negatives::

    l(q) = sum over candidates k that are not masked of log(1 + exp(-z(q, k) * (S(q, k) / T + b)))
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.losses._base import BlockLoss, Reduction
from rungwise.losses._pairs import BlockSide, ExtraPositives
from rungwise.losses._temperature import Temperature


class Sigmoid(BlockLoss):
    """Both sides of the sigmoid loss, added: each entry counts in its row and in its column, twice SigLIP's sum.

    An entry counts once a side however many pairs its query has.

    Args:
        temperature: Temperature T, by which similarities are divided.
        bias: Bias b, which is added; negative, since most entries are negatives.
        learnable: Learn the temperature and the bias.

    >>> Sigmoid(reduction="mean")(torch.tensor([[0.9, 0.8], [0.1, 0.5]]))
    tensor(6.4470)
    """

    def __init__(
        self,
        temperature: float = 0.1,
        bias: float = -10.0,
        *,
        learnable: bool = False,
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__(reduction=reduction, extra_positives=extra_positives, mask_above=mask_above)
        self.temperature = Temperature(temperature, learnable)
        self.learnable = learnable
        self.bias: float | Tensor = nn.Parameter(torch.tensor(float(bias))) if learnable else bias

    def per_query(self, side: BlockSide) -> Tensor:
        """(Q,) sum over each query's entries."""
        logits = side.similarity / self.temperature() + self.bias
        return F.softplus(torch.where(side.paired, -logits, logits)).masked_fill(side.masked, 0).sum(dim=1)
