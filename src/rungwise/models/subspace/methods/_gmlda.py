"""GMLDA: generalised multiview analysis with the scatters of linear discriminant analysis (Sharma et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rungwise.core import STRICT
from rungwise.models.io import ModelConfig
from rungwise.models.subspace._base import Subspace
from rungwise.models.subspace._eigenproblems import best_directions_of_factors, side_by_side
from rungwise.models.subspace._views import Directions, Views
from rungwise.models.subspace.methods._gma import GMAConfig, joint_whitening, split_views


@dataclass(frozen=True)
class GMLDAConfig(GMAConfig):
    """Settings of GMLDA; see :class:`~rungwise.models.subspace.methods._gma.GMAConfig`.

    Attributes:
        kind: Name of the method.
    """

    __pydantic_config__ = STRICT

    kind: Literal["gmlda"] = "gmlda"


class GMLDA(Subspace):
    """A is the scatter between classes, B the scatter within classes; see :mod:`rungwise.models.subspace.methods._gma`.

    The scatter between C classes is M M', so the problem is solved at the size of 2 C and has at most 2 C - 2
    directions; above alpha = sqrt(mu) it has C - 1, as many as linear discriminant analysis.

    >>> images = np.array([[0.0, 1.0], [0.1, 2.0], [1.0, 1.0], [1.1, 2.0]])
    >>> model = GMLDA(dimension=1).fit(images, 3 * images, ["cat", "cat", "dog", "dog"])
    >>> model.block(images[:1], 3 * images).round().tolist()
    [[1.0, 1.0, -1.0, -1.0]]
    """

    kind: ClassVar[str] = "gmlda"
    config_type: ClassVar[type[ModelConfig]] = GMLDAConfig

    def solve(self, views: Views) -> Directions:
        """Directions from the scatter between and within classes."""
        config, (image, text) = self.config, views.scatter
        classes = np.eye(image.means.shape[1])
        middle = np.block([[classes, config.alpha * classes], [config.alpha * classes, config.mu * classes]])
        found, _ = best_directions_of_factors(
            side_by_side([image.means, text.means]),
            middle,
            joint_whitening((image.within, text.within), views.moments, config.regularisation),
            config.dimension,
        )
        return split_views(found, len(image.within))
