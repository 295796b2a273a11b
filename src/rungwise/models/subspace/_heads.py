"""Heads that are fitted, not trained: maps from a side's features to the common space."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import linalg
from torch import Tensor, nn

from rungwise.models.subspace._settings import Gaussian

_NOTHING = 1e-6
"""Share of the largest eigenvalue below which a direction of the landmarks is left out as float32 rounding."""


class Roots(nn.Module):
    """Signed square roots of numbers: the usual map of counts and histograms.

    >>> Roots()(torch.tensor([[4.0, -9.0]])).tolist()
    [[2.0, -3.0]]
    """

    def forward(self, rows: Tensor) -> Tensor:
        """(n, D) signed roots of (n, D) numbers."""
        return rows.sign() * rows.abs().sqrt()


class KernelRows(nn.Module):
    """Coordinates of rows in the space that landmarks span under a Gaussian kernel (Williams and Seeger 2001).

    Args:
        landmarks: Number m of landmarks.
        width: Width D of a row.
    """

    def __init__(self, landmarks: int, width: int) -> None:
        super().__init__()
        self.landmarks = _fixed(torch.zeros(landmarks, width))
        self.basis = _fixed(torch.zeros(landmarks, landmarks))
        self.scale = _fixed(torch.ones(()))

    @classmethod
    def fitted(cls, rows: NDArray[np.float64], kernel: Gaussian) -> KernelRows:
        """The map k(x, landmarks) K^-1/2, with K the kernel of the (m, D) landmarks."""
        from sklearn.metrics.pairwise import rbf_kernel  # takes a second, which only fitting needs

        spread = rows.shape[1] * float(rows.var())
        gamma = kernel.gamma if kernel.gamma is not None else 1.0 / spread if spread > 0 else 1.0
        scaled = (rows - rows.mean(axis=0)) * math.sqrt(gamma)
        values, vectors = linalg.eigh(rbf_kernel(scaled, gamma=1.0))
        kept = values > _NOTHING * values[-1]
        basis = (vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T
        made = cls(*rows.shape)
        with torch.no_grad():
            made.landmarks.copy_(torch.from_numpy(rows))
            made.basis.copy_(torch.from_numpy(basis))
            made.scale.fill_(math.sqrt(gamma))
        return made

    def forward(self, rows: Tensor) -> Tensor:
        """(n, m) coordinates of (n, D) rows."""
        centre = self.landmarks.mean(dim=0)  # distances far from 0 would drown in rounding
        own, landmarks = (rows - centre) * self.scale, (self.landmarks - centre) * self.scale
        squares = own.square().sum(dim=1, keepdim=True) + landmarks.square().sum(dim=1)
        distances = (squares - 2 * own @ landmarks.T).clamp(min=0)
        return torch.exp(-distances) @ self.basis

    def extra_repr(self) -> str:
        """Number of landmarks and width of a row."""
        return "landmarks={}, width={}".format(*self.landmarks.shape)


class Centred(nn.Module):
    """Map of rows x to (x - mean) W, where W is (width, outputs).

    >>> Centred.fitted(np.array([1.0, 0.0]), np.array([[2.0], [1.0]]))(torch.tensor([[2.0, 3.0]])).tolist()
    [[5.0]]
    """

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.mean = _fixed(torch.zeros(width))
        self.directions = _fixed(torch.zeros(width, outputs))

    @classmethod
    def fitted(cls, mean: NDArray[np.float64], directions: NDArray[np.float64]) -> Centred:
        """Map with a (D,) mean and (D, d) directions W."""
        made = cls(*directions.shape)
        with torch.no_grad():
            made.mean.copy_(torch.from_numpy(mean))
            made.directions.copy_(torch.from_numpy(directions))
        return made

    def forward(self, rows: Tensor) -> Tensor:
        """(n, d) projections of (n, D) rows."""
        return (rows - self.mean) @ self.directions

    def extra_repr(self) -> str:
        """Widths of a row before and after."""
        return "width={}, outputs={}".format(*self.directions.shape)


class Posteriors(nn.Module):
    """Probabilities of classes by logistic regression, less their mean over the training items.

    Args:
        inputs: Width of a row.
        classes: Number of classes.
        exclusive: Whether an item has one class, so that probabilities add up to 1 (softmax); otherwise each class has
            a probability of its own (sigmoid).
    """

    def __init__(self, inputs: int, classes: int, exclusive: bool) -> None:
        super().__init__()
        self.exclusive = exclusive
        self.weight = _fixed(torch.zeros(inputs, classes))
        self.intercept = _fixed(torch.zeros(classes))
        self.mean = _fixed(torch.zeros(classes))

    def probabilities(self, rows: Tensor) -> Tensor:
        """(n, classes) probabilities of (n, inputs) rows."""
        scores = rows @ self.weight + self.intercept
        return scores.softmax(dim=1) if self.exclusive else scores.sigmoid()

    def forward(self, rows: Tensor) -> Tensor:
        """(n, classes) centred probabilities of (n, inputs) rows."""
        return self.probabilities(rows) - self.mean

    def extra_repr(self) -> str:
        """Width of a row, number of classes, and whether an item has one of them."""
        return "inputs={}, classes={}, exclusive={}".format(*self.weight.shape, self.exclusive)


def _fixed(numbers: Tensor) -> nn.Parameter:
    """Parameter that is saved with the model and not trained."""
    return nn.Parameter(numbers, requires_grad=False)
