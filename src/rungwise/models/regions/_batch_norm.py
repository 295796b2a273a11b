"""Batch norm of the models of regions."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that uses the running statistics for a batch with one value of each feature.

    One value has no variance: torch refuses it, for example in an epoch's last batch of one picture.
    """

    def forward(self, values: Tensor) -> Tensor:
        """Normalise (n, D) or (n, D, R)."""
        if self.training and values.numel() == values.shape[1]:
            return F.batch_norm(values, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(values)
