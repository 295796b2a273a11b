"""Multi-label canonical correlation analysis (Ranjan et al. 2015)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rungwise.core import STRICT, Cancelled, Positive
from rungwise.models.io import ModelConfig
from rungwise.models.subspace._base import Subspace
from rungwise.models.subspace._eigenproblems import Matrix, leading_pairs, whitening
from rungwise.models.subspace._settings import RidgeConfig
from rungwise.models.subspace._views import Directions, Views, several

_BLOCK = 2048
"""Number of label sets that are compared with all others at a time."""


@dataclass(frozen=True)
class MLCCAConfig(RidgeConfig):
    """Settings of multi-label CCA.

    Attributes:
        kind: Name of the method.
        likeness: Likeness of two sets of labels: dot (how many they share), or exp, exp(-||y - z||^2 / sigma) of their
            0/1 vectors, which is above 0 for sets that share none.
        sigma: How fast exp falls.
    """

    __pydantic_config__ = STRICT

    kind: Literal["mlcca"] = "mlcca"
    likeness: Literal["dot", "exp"] = "dot"
    sigma: Positive = 1.0

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """Sigma of a likeness that is not taken."""
        if self.likeness == "dot" and self.sigma != MLCCAConfig.sigma:
            yield Cancelled(
                f"{place}.sigma {self.sigma:g} changes nothing: {place}.likeness is dot; leave it out, or set"
                f" {place}.likeness to exp"
            )


class MLCCA(Subspace):
    """CCA over all pairs of an image with a text, each pair weighted by how alike its labels are.

    With f the likeness of the labels of image i and text j, the covariances are C_xz = sum_ij f(y_i, z_j) x_i z_j',
    C_xx = sum_ij f(y_i, z_j) x_i x_i', and C_zz likewise, all by the sum of f. Sums go by set of labels and not by
    pair: dot products by class, exp by distinct set. Views are centred first, each pair counting once.

    >>> images = np.array([[0.0, 1.0], [0.1, 2.0], [1.0, 1.0], [1.1, 2.0]])
    >>> model = MLCCA(dimension=1).fit(images, 3 * images, ["cat", "cat", "dog", "dog"])
    >>> model.block(images[:1], 3 * images).round().tolist()
    [[1.0, 1.0, -1.0, -1.0]]
    """

    kind: ClassVar[str] = "mlcca"
    config_type: ClassVar[type[ModelConfig]] = MLCCAConfig

    def solve(self, views: Views) -> Directions:
        """Directions of CCA with weighted pairs."""
        several(views.classes)
        weights, cross = self._by_class(views) if self.config.likeness == "dot" else self._by_set(views)
        total = weights.sum()
        image, text = (whitening(one / total, self.config.regularisation) for one in views.weighted(weights))
        found = leading_pairs(cross / total, image, text, self.config.dimension)
        return Directions(*found[:2])

    def _by_class(self, views: Views) -> tuple[NDArray[np.float64], Matrix]:
        """(n,) sums of each item's likeness to all items, and C_xz."""
        members = views.classes.members.astype(np.float64)
        image, text = views.sums(members)
        return members @ members.sum(axis=0), image @ text.T

    def _by_set(self, views: Views) -> tuple[NDArray[np.float64], Matrix]:
        sets, owner = np.unique(views.classes.members, axis=0, return_inverse=True)
        owner = owner.reshape(-1)
        patterns, counts = sets.astype(np.float64), np.bincount(owner).astype(np.float64)
        image, text = _summed(views, owner, len(sets))
        sizes = patterns.sum(axis=1)
        weights, cross = np.empty(len(sets)), np.zeros((len(image), len(text)))
        for begin in range(0, len(sets), _BLOCK):
            some = slice(begin, begin + _BLOCK)
            differing = sizes[some, None] + sizes - 2 * patterns[some] @ patterns.T
            alike = np.exp(-differing / self.config.sigma)
            weights[some] = alike @ counts
            cross += image[:, some] @ (alike @ text.T)
        return weights[owner], cross


def _summed(views: Views, owner: NDArray[np.int64], groups: int) -> tuple[Matrix, Matrix]:
    """(D_i, groups) and (D_t, groups) sums of rows by group."""
    image, text = (np.zeros((groups, width)) for width in views.widths)
    for some, first, second in views.blocks():
        own = owner[some]
        belongs = sparse.csr_array((np.ones(len(own)), (own, np.arange(len(own)))), shape=(groups, len(own)))
        image += belongs @ first
        text += belongs @ second
    return image.T, text.T
