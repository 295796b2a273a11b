"""Generalised multiview analysis (Sharma et al. 2012): the problem that GMLDA and GMMFA are cases of.

max  v1' A1 v1 + mu v2' A2 v2 + 2 alpha v1' M1 M2' v2   subject to   v1' B1 v1 + gamma v2' B2 v2 = 1,

where A is what a method spreads and B what it keeps together, M are the means of the classes, so that those of the same
class are brought together across the views, and gamma = tr B1 / tr B2. All three are averages over items here, each
class's mean counting by the square root of its share: so alpha means the same for any number of items, and on two equal
views GMLDA is linear discriminant analysis for mu = 1 and any alpha of at least 1. Below, there are directions as well
in which the views are opposed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rungwise.core import STRICT, NotNegative, SomeShare, UserError
from rungwise.models.subspace._eigenproblems import Matrix, side_by_side, whitening
from rungwise.models.subspace._settings import RidgeConfig
from rungwise.models.subspace._views import Directions, Moments

_NOTHING = 1e-12
"""Share of a view's variance below which a spread is rounding."""


@dataclass(frozen=True)
class GMAConfig(RidgeConfig):
    """Settings of GMLDA and GMMFA.

    Attributes:
        mu: Weight of the text view's own spread.
        alpha: Weight of the pairs of class means.
        pca: Share of each side's variance that principal components keep before the method; 0.95 as in the paper.
    """

    __pydantic_config__ = STRICT

    mu: NotNegative = 1.0
    alpha: NotNegative = 10.0
    pca: SomeShare = 0.95


def joint_whitening(kept: Sequence[Matrix], moments: Moments, regularisation: float) -> Matrix:
    """Whitening of the block matrix of B1 and gamma B2 (``kept``).

    ``regularisation`` is the ridge on each, as a share of its mean diagonal.
    """
    sizes = [float(np.trace(one)) for one in kept]
    for name, size, all_of_it in zip(("image", "text"), sizes, (moments.image, moments.text), strict=True):
        if not size > _NOTHING * np.trace(all_of_it):
            raise UserError(
                f"{name} features do not vary within classes, so that nothing is kept together; give several differing"
                " items of a class"
            )
    image, text = (whitening(one, regularisation) for one in kept)
    return side_by_side([image, text * math.sqrt(sizes[1] / sizes[0])])


def split_views(directions: Matrix, image: int) -> Directions:
    """Directions of both views from (D_i + D_t, d) stacked ones; the first D_i rows are the image view's."""
    return Directions(directions[:image], directions[image:])
