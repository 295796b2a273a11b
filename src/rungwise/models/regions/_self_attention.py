"""One vector of a set by self-attention (Diao et al. 2021, section 3.1; the program's VisualSA and TextSA).

For a set of regions or words x_1..x_k of width D and their mean m::

    l_i = dropout(tanh(N_l(W_l x_i + b_l)))
    g   = dropout(tanh(N_g(W_g m + b_g)))
    a   = softmax over i of  w'(l_i * g) + b
    y   = sum_i a_i x_i,  divided by its length

For pictures N_l is batch norm whose channels are the *regions*: the first region has statistics of its own over all
pictures of a batch and all D numbers, and so has each other. So the number of regions is part of the model. N_g is
batch norm over the D numbers. Texts have neither. CVSE (Wang et al. 2020) has the same, but for a text m has length 1.

The mean of one picture alone has no statistics: N_g takes those that were kept, and leaves them as they are [ours].
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.core import UserError
from rungwise.encoders import LinearHead
from rungwise.encoders.texts import inside
from rungwise.models.regions._batch_norm import BatchNorm
from rungwise.similarity import products, widened


class SelfAttention(nn.Module):
    """Pool a set into one vector.

    Products are computed in the precision of the sets, everything else in float32 at least.

    Args:
        width: Width D of the members.
        dropout: Share of the numbers of l and g that training sets to 0.
        regions: Number of members of every set, for batch norm; None for sets of any size, without batch norm.
        unit_mean: Whether m is brought to length 1.
    """

    def __init__(self, width: int, dropout: float, regions: int | None = None, unit_mean: bool = False) -> None:
        super().__init__()
        self.unit_mean = unit_mean
        self.regions = regions
        self.local = LinearHead().build(width, width)
        self.whole = LinearHead().build(width, width)
        self.local_norm = nn.Identity() if regions is None else BatchNorm(regions)
        self.whole_norm = nn.Identity() if regions is None else BatchNorm(width)
        self.common = LinearHead().build(width, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, sets: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(n, width) vectors of length 1, in float32 at least.

        Args:
            sets: (n, k, width).
            lengths: (n,) number of members of each set, at least 1, on any device; what follows them is not read. None
                where each set has k.

        Raises:
            UserError: If the sets have another number of regions than the model.
        """
        self.check(sets)
        held = None if lengths is None else inside(lengths, sets.shape[1], sets.device)
        with torch.autocast(sets.device.type, enabled=False):
            if held is not None:
                sets = sets.masked_fill(~held.unsqueeze(2), 0)
            exact = widened(sets)
            mean = exact.mean(dim=1) if held is None else exact.sum(dim=1) / held.sum(dim=1, keepdim=True)
            mean = F.normalize(mean, dim=1) if self.unit_mean else mean
            local = self.dropout(self.local_norm(linear(self.local, sets)).tanh())
            whole = self.dropout(self.whole_norm(linear(self.whole, mean.to(sets.dtype))).tanh())
            weights = linear(self.common, local * whole.unsqueeze(1)).squeeze(2)
            if held is not None:
                weights = weights.masked_fill(~held, float("-inf"))
            pooled = (weights.softmax(dim=1).unsqueeze(1) @ exact).squeeze(1)
            return F.normalize(pooled, dim=1)

    def check(self, sets: Tensor) -> None:
        """Refuse (n, k, width) sets of another size than the model was made for."""
        if self.regions is not None and sets.shape[1] != self.regions:
            raise UserError(
                f"the pictures have {sets.shape[1]} regions, but the model was made for {self.regions}, since its batch"
                " norm has statistics of each; give pictures with as many regions, or train a new model"
            )


def linear(layer: nn.Module, vectors: Tensor) -> Tensor:
    """(..., m) output of a linear layer for (..., n) vectors, computed as by :func:`affine`."""
    return affine(layer.get_parameter("weight"), layer.get_parameter("bias"), vectors)


def affine(weight: Tensor, bias: Tensor, vectors: Tensor) -> Tensor:
    """(..., m) affine map: the product in the precision of the vectors, the rest in float32 at least.

    Args:
        weight: (m, n).
        bias: (m,).
        vectors: (..., n), of any float type.
    """
    found = products(vectors.flatten(0, -2), weight.to(vectors.dtype))
    return found.add_(bias).view(*vectors.shape[:-1], -1)
