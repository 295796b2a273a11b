"""Learning coupled feature spaces (Wang et al. 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rungwise.core import STRICT, NotNegative
from rungwise.models.io import ModelConfig
from rungwise.models.subspace._base import Subspace
from rungwise.models.subspace._eigenproblems import Matrix
from rungwise.models.subspace._views import Directions, Views
from rungwise.models.subspace.methods._regression import (
    SMOOTH,
    RegressionConfig,
    Sums,
    fall,
    rotated,
    row_weights,
    rows_norm,
    sums_of,
    with_ridge_solved,
)

_COARSE = 1.1
"""Ratio of the numbers to which eigenvalues are rounded up."""


@dataclass(frozen=True)
class LCFSConfig(RegressionConfig):
    """Settings of LCFS; see :class:`~rungwise.models.subspace.methods._regression.RegressionConfig`.

    Attributes:
        kind: Name of the method.
        low_rank: Weight of the trace norm of both views' projections side by side.
    """

    __pydantic_config__ = STRICT

    kind: Literal["lcfs"] = "lcfs"
    low_rank: NotNegative = 0.1


class LCFS(Subspace):
    """Both views are regressed on class labels, by few features and with projections of low rank.

    min over U, V:  1/2 (||X U - Y||^2 + ||Z V - Y||^2) + l1 (||U||_21 + ||V||_21) + l2 ||[X U, Z V]||_*

    with l1 ``sparsity`` and l2 ``low_rank``, X, Z and Y centred. Solved by iteratively reweighted least squares: each
    norm is bounded from above by a quadratic form at the present U and V, and the sum of these is minimised over U,
    then over V. The trace norm is bounded from the side of the 2 C columns and not of the n rows, which is the same
    norm, so that no matrix is n x n. Norms are smoothed, sqrt(s^2 + eps), and the objective never rises.

    Attributes:
        objective: Values of the objective at the start and after each round of the last fit.

    >>> images = np.array([[0.0, 1.0], [0.1, 2.0], [1.0, 1.0], [1.1, 2.0]])
    >>> model = LCFS(sparsity=0.01).fit(images, 3 * images, ["cat", "cat", "dog", "dog"])
    >>> model.block(images[:1], 3 * images).round().tolist(), model.objective[-1] < model.objective[0]
    ([[1.0, 1.0, -1.0, -1.0]], True)
    """

    kind: ClassVar[str] = "lcfs"
    config_type: ClassVar[type[ModelConfig]] = LCFSConfig
    objective: Sequence[float] = ()

    def solve(self, views: Views) -> Directions:
        """Directions by iteratively reweighted least squares."""
        sums, config = sums_of(views), self.config

        def value(image: Matrix, text: Matrix) -> float:
            return objective(sums, image, text, config.sparsity, config.low_rank)

        def step(image: Matrix, text: Matrix) -> tuple[Matrix, Matrix]:
            return _step(sums, image, text, config.sparsity, config.low_rank)

        found, self.objective = fall(sums.start(), step, value, config)
        return rotated(sums, found, config.dimension)


def objective(sums: Sums, image: Matrix, text: Matrix, sparsity: float, low_rank: float) -> float:
    """The smoothed objective of LCFS.

    Args:
        sums: Sums over the items.
        image: (D_i, C) U.
        text: (D_t, C) V.
        sparsity: l1.
        low_rank: l2.
    """
    singular = np.sqrt(np.maximum(linalg.eigvalsh(_projected(sums, image, text)), 0) + SMOOTH)
    fits = sums.misfit(image, text)
    return float(fits + sparsity * (rows_norm(image) + rows_norm(text)) + low_rank * singular.sum())


def _projected(sums: Sums, image: Matrix, text: Matrix) -> Matrix:
    """(2 C, 2 C) products of the columns of [X U, Z V]."""
    across = image.T @ sums.cross @ text
    return np.block([[image.T @ sums.image @ image, across], [across.T, text.T @ sums.text @ text]])


def _step(sums: Sums, image: Matrix, text: Matrix, sparsity: float, low_rank: float) -> tuple[Matrix, Matrix]:
    """U and then V at the minimum of the bound that touches the objective at the present point."""
    values, vectors = linalg.eigh(_projected(sums, image, text))
    weight = low_rank * (vectors / np.sqrt(np.maximum(values, 0) + SMOOTH)) @ vectors.T
    classes = image.shape[1]
    first, across, second = weight[:classes, :classes], weight[:classes, classes:], weight[classes:, classes:]
    image = _side(
        sums.image, sums.image_labels - sums.cross @ text @ across.T, first, sparsity * row_weights(image), image
    )
    text = _side(
        sums.text, sums.text_labels - sums.cross.T @ image @ across, second, sparsity * row_weights(text), text
    )
    return image, text


def _side(products: Matrix, wanted: Matrix, weight: Matrix, ridge: NDArray[np.float64], before: Matrix) -> Matrix:
    """One step of U towards  P U (I + W) + diag(ridge) U = wanted, whose fixed point solves it.

    Each eigenvalue of I + W would need a linear system of its own. They are rounded up to a few values, which still
    bounds the objective from above, so that one system serves many classes.
    """
    values, vectors = linalg.eigh(weight)
    turned, here = wanted @ vectors, before @ vectors
    bounds = _COARSE ** np.ceil(np.log1p(np.maximum(values, 0)) / np.log(_COARSE))
    found = np.empty_like(turned)
    for bound in np.unique(bounds):
        some = bounds == bound
        kept = products @ (here[:, some] * (bound - 1 - values[some]))
        found[:, some] = with_ridge_solved(bound * products, ridge, turned[:, some] + kept)
    return np.asarray(found @ vectors.T)
