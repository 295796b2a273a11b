"""Multi-view discriminant analysis (Kan et al. 2012, 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rungwise.core import STRICT, SomeShare
from rungwise.models.io import ModelConfig
from rungwise.models.subspace._base import Subspace
from rungwise.models.subspace._eigenproblems import best_directions_of_factors, side_by_side, whitening
from rungwise.models.subspace._settings import RidgeConfig
from rungwise.models.subspace._views import Directions, Views
from rungwise.models.subspace.methods._gma import split_views


@dataclass(frozen=True)
class MvDAConfig(RidgeConfig):
    """Settings of multi-view discriminant analysis.

    Attributes:
        kind: Name of the method.
        pca: Share of each side's variance that principal components keep before the method.
    """

    __pydantic_config__ = STRICT

    kind: Literal["mvda"] = "mvda"
    pca: SomeShare = 0.95


class MvDA(Subspace):
    """One discriminant analysis of the projected samples of both views together.

    Directions W_i, W_t maximise the scatter between classes over the scatter within classes of the pooled samples
    W_i' x and W_t' z. With n_c items and means mu_ic, mu_tc of class c, the scatter within classes has the blocks
    sum over samples of x x' less sum_c (n_c / 2) mu_ic mu_ic' on the diagonal, and less sum_c (n_c / 2) mu_ic mu_tc'
    beside it; each item stands once in each view. The scatter between classes is that of the pooled class means, of
    rank C - 1 at most. Views are centred each by itself. The ridge is a share of each view's own mean diagonal
    of the scatter within classes.

    >>> images = np.array([[0.0, 1.0], [0.1, 2.0], [1.0, 1.0], [1.1, 2.0]])
    >>> model = MvDA(dimension=1).fit(images, 3 * images, ["cat", "cat", "dog", "dog"])
    >>> model.block(images[:1], 3 * images).round().tolist()
    [[1.0, 1.0, -1.0, -1.0]]
    """

    kind: ClassVar[str] = "mvda"
    config_type: ClassVar[type[ModelConfig]] = MvDAConfig

    def solve(self, views: Views) -> Directions:
        """Directions from the scatter of the pooled samples."""
        image, text = views.scatter
        means = np.vstack([image.means, text.means]) / 2
        spread = side_by_side([one.within + one.means @ one.means.T for one in (image, text)]) / 2
        # Of the pooled samples, all of the spread that is not between the classes is within them.
        within = spread - means @ means.T
        own = np.diag(within)[: len(image.within)], np.diag(within)[len(image.within) :]
        scale = 1 / np.sqrt(np.concatenate([np.full(len(one), one.mean()) for one in own]))
        whitened = scale[:, None] * whitening(within * scale[:, None] * scale, self.config.regularisation)
        found, _ = best_directions_of_factors(means, np.eye(means.shape[1]), whitened, self.config.dimension)
        return split_views(found, len(image.within))
