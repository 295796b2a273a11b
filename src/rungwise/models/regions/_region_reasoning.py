"""Reasoning over the regions of a picture (Li et al. 2019, sections 3.1 to 3.3).

Of a picture with N regions f_1..f_N in the order of the detector::

    v_i = W_f f_i + b_f                                     Eq. 1
    R   = theta(V) phi(V)^T / N                             Eq. 2, divided as the program does
    V'  = BN(W_r (R g(V)) + b_r) + V                        Eq. 3, K times, each with weights of its own
    m_i = GRU(v'_i, m_{i-1}),  m_0 = 0                      Eq. 4-7
    I   = m_N

theta, phi, g and W_r are linear layers of D x D with a bias. R has no softmax. The batch normalisation BN is over the
regions of all pictures, and its scale and shift begin at 0, so that each convolution begins as no change at all.

V is brought to length 1 before the first convolution and after the last one. The authors' program does this along the
wrong axis: it divides each of the D features by its length over the *regions* of the picture. The paper says nothing of
it; ``normalise`` offers both.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.encoders import LinearHead
from rungwise.models.regions._batch_norm import BatchNorm

Normalise = Literal["features", "regions"]

_AXES = {"features": 1, "regions": 2}


class GraphConvolution(nn.Module):
    """One residual graph convolution over regions of width ``dimension``, all connected (Li et al. 2019, Eq. 2-3)."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.theta = nn.Linear(dimension, dimension)
        self.phi = nn.Linear(dimension, dimension)
        self.g = nn.Linear(dimension, dimension)
        self.out = nn.Linear(dimension, dimension)
        self.norm = BatchNorm(dimension)
        nn.init.zeros_(self.norm.weight)

    def forward(self, regions: Tensor) -> Tensor:
        """(n, R, D) regions after the convolution, from (n, R, D)."""
        affinity = self.theta(regions) @ self.phi(regions).transpose(1, 2) / regions.shape[1]  # (n, R, R)
        message = self.out(affinity @ self.g(regions))
        return torch.as_tensor(self.norm(message.transpose(1, 2)).transpose(1, 2) + regions)


class RegionReasoning(nn.Module):
    """The image side of VSRN above its features (Li et al. 2019, Eq. 1-7).

    Args:
        inputs: Width of the feature of a region.
        dimension: Width D of everything after the first layer.
        layers: K, the number of graph convolutions.
        normalise: Whether each of the D features is normalised over the regions, as the program does, or each region's
            vector.
        normalise_first: Whether to normalise before the first convolution too.
        batch_norm: Whether the picture's vector is normalised by the statistics of its batch.
    """

    def __init__(
        self,
        inputs: int,
        dimension: int,
        *,
        layers: int = 4,
        normalise: Normalise = "features",
        normalise_first: bool = True,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        self.axis, self.normalise_first = _AXES[normalise], normalise_first
        self.projection = LinearHead().build(inputs, dimension)
        self.convolutions = nn.Sequential(*(GraphConvolution(dimension) for _ in range(layers)))
        self.recurrent = nn.GRU(dimension, dimension, batch_first=True)
        self.norm: nn.Module = BatchNorm(dimension) if batch_norm else nn.Identity()

    def related(self, features: Tensor) -> Tensor:
        """(n, R, D) normalised regions V' after the last convolution, from (n, R, inputs) features."""
        regions = self.projection(features)
        if self.normalise_first:
            regions = F.normalize(regions, dim=self.axis)
        return F.normalize(self.convolutions(regions), dim=self.axis)

    def gathered(self, related: Tensor) -> Tensor:
        """(n, D) vectors I from the (n, R, D) regions of :meth:`related`. The order of the regions counts."""
        _, last = self.recurrent(related)
        return torch.as_tensor(self.norm(last[0]))

    def forward(self, features: Tensor) -> Tensor:
        """(n, D) vectors of pictures, from (n, R, inputs) features of regions."""
        return self.gathered(self.related(features))
