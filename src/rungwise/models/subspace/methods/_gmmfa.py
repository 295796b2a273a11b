"""GMMFA: generalised multiview analysis with the graphs of marginal Fisher analysis (Sharma et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rungwise.core import STRICT, AtLeastOne, UserError
from rungwise.models.io import ModelConfig
from rungwise.models.subspace._base import Subspace
from rungwise.models.subspace._classes import Classes
from rungwise.models.subspace._eigenproblems import Matrix, best_directions
from rungwise.models.subspace._views import BLOCK_VALUES, Directions, Views, several
from rungwise.models.subspace.methods._gma import GMAConfig, joint_whitening, split_views

Edges = NDArray[np.int64]
"""(edges, 2) pairs of items, the smaller position first, each once."""


@dataclass(frozen=True)
class GMMFAConfig(GMAConfig):
    """Settings of GMMFA; see :class:`~rungwise.models.subspace.methods._gma.GMAConfig`.

    Attributes:
        kind: Name of the method.
        same_class: Number of nearest items of its class that an item is kept near to.
        other_class: Number of nearest pairs across the border of each class that are spread apart.
        neighbour_components: Largest number of principal components in which nearest items are searched. Every item is
            compared with every other one, so this bounds the time where rows are wide.
    """

    __pydantic_config__ = STRICT

    kind: Literal["gmmfa"] = "gmmfa"
    same_class: AtLeastOne = 5
    other_class: AtLeastOne = 50
    neighbour_components: AtLeastOne = 256


class GMMFA(Subspace):
    """A spreads neighbours of different classes, B keeps neighbours of one class together.

    B averages (x_i - x_j)(x_i - x_j)' over the pairs of an item with its ``same_class`` nearest items of its class, A
    over the ``other_class`` nearest pairs across the border of each class (Yan et al. 2007); each view has graphs of
    its own. See :mod:`rungwise.models.subspace.methods._gma` for the rest. Rows behind the principal components are
    held in memory. Neighbours are scikit-learn's, found block by block in the leading ``neighbour_components``.

    >>> images = np.array([[0.0, 1.0], [0.1, 2.0], [1.0, 1.0], [1.1, 2.0]])
    >>> model = GMMFA(dimension=1).fit(images, 3 * images, ["cat", "cat", "dog", "dog"])
    >>> model.block(images[:1], 3 * images).round().tolist()
    [[1.0, 1.0, -1.0, -1.0]]
    """

    kind: ClassVar[str] = "gmmfa"
    config_type: ClassVar[type[ModelConfig]] = GMMFAConfig

    def solve(self, views: Views) -> Directions:
        """Directions from the graphs of both views."""
        config, classes = self.config, several(views.classes)
        spread, kept = [], []
        for rows, leading in zip(_rows(views), views.leading(config.neighbour_components), strict=True):
            compared = rows @ leading.astype(np.float32) if leading.shape[1] < rows.shape[1] else rows
            near = neighbours(compared, classes, config.same_class)
            if not len(near):
                raise UserError("gmmfa: every class has one item, so that nothing is kept together; give more of each")
            kept.append(graph_scatter(rows, near))
            spread.append(graph_scatter(rows, border_pairs(compared, classes, config.other_class)))
        image, text = (one.means for one in views.scatter)
        cross = config.alpha * image @ text.T
        numerator = np.block([[spread[0], cross], [cross.T, config.mu * spread[1]]])
        whitened = joint_whitening(kept, views.moments, config.regularisation)
        found, _ = best_directions(numerator, whitened, config.dimension)
        return split_views(found, len(image))


def neighbours(rows: NDArray[np.float32], classes: Classes, count: int) -> Edges:
    """Pairs of every item with its ``count`` nearest ones in each of its classes."""
    found: list[Edges] = []
    for members in classes.members.T:
        own = np.flatnonzero(members)
        if len(own) < 2:
            continue
        finder = _finder(rows[own])
        near = finder.kneighbors(n_neighbors=min(count, len(own) - 1), return_distance=False)
        found.append(np.stack([np.repeat(own, near.shape[1]), own[near].reshape(-1)], axis=1))
    return _each_once(found)


def border_pairs(rows: NDArray[np.float32], classes: Classes, count: int) -> Edges:
    """The ``count`` nearest pairs of an item inside and one outside, for every class.

    >>> border_pairs(np.array([[0.0], [1.0], [5.0], [1.1]], np.float32), Classes.of(["a", "a", "a", "b"]), 1).tolist()
    [[1, 3]]
    """
    found: list[Edges] = []
    for members in classes.members.T:
        own, others = np.flatnonzero(members), np.flatnonzero(~members)
        if not len(others):
            continue
        distances, near = _finder(rows[others]).kneighbors(rows[own], n_neighbors=min(count, len(others)))
        nearest = np.argsort(distances, axis=None, kind="stable")[:count]
        found.append(np.stack([np.repeat(own, near.shape[1])[nearest], others[near].reshape(-1)[nearest]], axis=1))
    return _each_once(found)


def graph_scatter(rows: NDArray[np.float32], edges: Edges) -> Matrix:
    """(D, D) average of (x_i - x_j)(x_i - x_j)' over at least one pair, by the graph's Laplacian.

    >>> graph_scatter(np.array([[0.0], [1.0], [5.0]], np.float32), np.array([[0, 1], [1, 2]])).tolist()
    [[8.5]]
    """
    ends = np.concatenate([edges, edges[:, ::-1]])
    adjacency = sparse.csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(rows), len(rows)))
    degrees = adjacency.sum(axis=1)
    total = np.zeros((rows.shape[1], rows.shape[1]))
    step = max(16, BLOCK_VALUES // rows.shape[1])
    for begin in range(0, len(rows), step):
        some = slice(begin, begin + step)
        joined = adjacency[some]
        others = np.unique(joined.indices)
        own = rows[some].astype(np.float64)
        total += own.T @ (own * degrees[some, None] - joined[:, others] @ rows[others].astype(np.float64))
    return total / len(edges)


def _rows(views: Views) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Both views' rows in memory."""
    image, text = (np.empty((len(views), width), np.float32) for width in views.widths)
    for some, first, second in views.blocks():
        image[some], text[some] = first, second
    return image, text


def _finder(rows: NDArray[np.float32]) -> Any:
    from sklearn.neighbors import NearestNeighbors  # takes a second, which only fitting needs

    return NearestNeighbors(algorithm="brute").fit(rows)


def _each_once(found: list[Edges]) -> Edges:
    return np.unique(np.sort(np.concatenate([np.empty((0, 2), np.int64), *found]), axis=1), axis=0)
