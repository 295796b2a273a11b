"""Canonical correlation analysis (Hotelling 1936; of images and texts, Rasiwasia et al. 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from rungwise.core import STRICT
from rungwise.models.io import ModelConfig
from rungwise.models.subspace._base import Subspace
from rungwise.models.subspace._eigenproblems import leading_pairs, whitening
from rungwise.models.subspace._settings import RidgeConfig
from rungwise.models.subspace._views import Directions, Views


@dataclass(frozen=True)
class CCAConfig(RidgeConfig):
    """Settings of canonical correlation analysis: those of :class:`RidgeConfig`; both covariances are inverted.

    Attributes:
        kind: Name of the method.
    """

    __pydantic_config__ = STRICT

    kind: Literal["cca"] = "cca"


class CCA(Subspace):
    """Directions in which images and their texts correlate most; labels are not read.

    The vectors w of the images solve C_xz C_zz^-1 C_zx w = r^2 C_xx w, those of the texts the same with both sides
    exchanged, by a singular value decomposition of C_xx^-1/2 C_xz C_zz^-1/2, whose values are the correlations r.
    There are at most min(D_i, D_t) directions. With ``kernel: gaussian`` it is kernel CCA (Hardoon et al. 2004).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> shared = rng.normal(size=(50, 1))
    >>> images, texts = (np.hstack([shared, rng.normal(size=(50, width))]) for width in (3, 2))
    >>> model = CCA(dimension=1).fit(images, texts)
    >>> vectors = model.encode_image(images).vectors[:, 0], model.encode_text(texts)[:, 0]
    >>> float((np.sign(vectors[0]) == np.sign(vectors[1])).mean())
    1.0
    """

    kind: ClassVar[str] = "cca"
    config_type: ClassVar[type[ModelConfig]] = CCAConfig
    reads_labels: ClassVar[bool] = False
    needs_labels: ClassVar[bool] = False

    def solve(self, views: Views) -> Directions:
        """Canonical directions."""
        return correlated(views, self.config.dimension, self.config.regularisation)


def correlated(views: Views, dimension: int, regularisation: float) -> Directions:
    """Canonical directions of two views, at most ``dimension``.

    ``regularisation`` is the ridge as a share of each covariance's mean diagonal.
    """
    moments = views.moments
    image, text = (whitening(one, regularisation) for one in (moments.image, moments.text))
    return Directions(*leading_pairs(moments.cross, image, text, dimension)[:2])
