"""Local group based consistent feature learning (Kang et al. 2015), in a reading of our own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core import STRICT, Positive, Size
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
    sums_of,
    with_ridge_solved,
)


@dataclass(frozen=True)
class LGCFLConfig(RegressionConfig):
    """Settings of LGCFL; see :class:`~rungwise.models.subspace.methods._regression.RegressionConfig`.

    Attributes:
        kind: Name of the method.
        image_block: Number of neighbouring image features that are kept or left out together, such as those of a cell
            of GIST.
        text_block: Number of neighbouring text features that are kept or left out together.
        guidance: How strongly the common representation is held to the labels.
    """

    __pydantic_config__ = STRICT

    kind: Literal["lgcfl"] = "lgcfl"
    image_block: Size = 16
    text_block: Size = 1
    guidance: Positive = 1.0


class LGCFL(Subspace):
    """Both views are regressed on one representation that labels guide, by few blocks of neighbouring features.

    The paper's own objective could not be verified. This is the closest reading that its description supports:

    min over U, V, F:  1/2 (||X U - F||^2 + ||Z V - F||^2) + g/2 ||F - Y||^2 + l (sum_b ||U_b||_F + sum_b ||V_b||_F)

    with F the consistent representation of both views, Y the centred 0/1 labels, g ``guidance``, l ``sparsity``, and
    U_b the rows of U of block b of the features. F = (X U + Z V + g Y) / (2 + g) is put in, and U and V are found in
    turn by iteratively reweighted least squares on the smoothed norms; the objective never rises.

    Attributes:
        objective: Values of the objective at the start and after each round of the last fit.

    >>> images = np.array([[0.0, 1.0], [0.1, 2.0], [1.0, 1.0], [1.1, 2.0]])
    >>> model = LGCFL(sparsity=0.01, image_block=1).fit(images, 3 * images, ["cat", "cat", "dog", "dog"])
    >>> model.block(images[:1], 3 * images).round().tolist(), model.objective[-1] < model.objective[0]
    ([[1.0, 1.0, -1.0, -1.0]], True)
    """

    kind: ClassVar[str] = "lgcfl"
    config_type: ClassVar[type[ModelConfig]] = LGCFLConfig
    objective: Sequence[float] = ()

    def solve(self, views: Views) -> Directions:
        """Directions by iteratively reweighted least squares."""
        sums, config = sums_of(views), self.config
        groups = (
            FeatureBlocks.of(len(sums.image), config.image_block),
            FeatureBlocks.of(len(sums.text), config.text_block),
        )

        def value(image: Matrix, text: Matrix) -> float:
            return objective(sums, image, text, groups, config.sparsity, config.guidance)

        def step(image: Matrix, text: Matrix) -> tuple[Matrix, Matrix]:
            return _step(sums, image, text, groups, config.sparsity, config.guidance)

        found, self.objective = fall(sums.start(), step, value, config)
        return rotated(sums, found, config.dimension)


@dataclass(frozen=True)
class FeatureBlocks:
    """Neighbouring features in blocks of one size; the last may be shorter.

    Attributes:
        of_feature: (D,) block number of each feature.
    """

    of_feature: NDArray[np.int64]

    @classmethod
    def of(cls, features: int, size: int) -> FeatureBlocks:
        """Blocks of ``size`` features."""
        return cls(np.arange(features) // size)

    def norms(self, rows: Matrix) -> NDArray[np.float64]:
        """(blocks,) smoothed norm of each block of rows."""
        return np.asarray(np.sqrt(np.bincount(self.of_feature, weights=np.square(rows).sum(axis=1)) + SMOOTH))

    def weights(self, rows: Matrix) -> NDArray[np.float64]:
        """(D,) weights of the squared rows in the bound of the norm, times two."""
        return np.asarray(1 / self.norms(rows)[self.of_feature])


def objective(
    sums: Sums,
    image: Matrix,
    text: Matrix,
    groups: tuple[FeatureBlocks, FeatureBlocks],
    sparsity: float,
    guidance: float,
) -> float:
    """The smoothed objective, with the best F for U and V.

    Args:
        sums: Sums over the items.
        image: (D_i, C) U.
        text: (D_t, C) V.
        groups: Blocks of both sides' features.
        sparsity: l.
        guidance: g.
    """
    first, second = np.vdot(image, sums.image @ image), np.vdot(text, sums.text @ text)
    between = np.vdot(image, sums.cross @ text)
    labelled = np.vdot(image, sums.image_labels) + np.vdot(text, sums.text_labels)
    parts = first + second + guidance * sums.labels
    mixed = first + second + 2 * between + 2 * guidance * labelled + guidance**2 * sums.labels
    norms = groups[0].norms(image).sum() + groups[1].norms(text).sum()
    return float((parts - mixed / (2 + guidance)) / 2 + sparsity * norms)


def _step(
    sums: Sums,
    image: Matrix,
    text: Matrix,
    groups: tuple[FeatureBlocks, FeatureBlocks],
    sparsity: float,
    guidance: float,
) -> tuple[Matrix, Matrix]:
    """U and then V at the minimum of the bound that touches the objective at the present point."""
    kept = (1 + guidance) / (2 + guidance)

    def solved(products: Matrix, wanted: Matrix, ridge: NDArray[np.float64]) -> Matrix:
        return with_ridge_solved(kept * products, sparsity * ridge, wanted / (2 + guidance))

    image = solved(sums.image, sums.cross @ text + guidance * sums.image_labels, groups[0].weights(image))
    text = solved(sums.text, sums.cross.T @ image + guidance * sums.text_labels, groups[1].weights(text))
    return image, text
