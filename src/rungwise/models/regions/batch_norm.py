"""Batch norm of the models of regions."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that takes the statistics so far where a batch has one value of each feature.

    One value has no variance: torch refuses it, and so would the last batch of an epoch if it held one picture.

    >>> import torch
    >>> BatchNorm(2).train()(torch.ones(1, 2)).shape
    torch.Size([1, 2])
    """

    def forward(self, values: Tensor) -> Tensor:
        """(n, D) or (n, D, R), likewise."""
        if self.training and values.numel() == values.shape[1]:
            return F.batch_norm(values, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        return super().forward(values)
