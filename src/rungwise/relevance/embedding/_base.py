"""The base of sources that give each caption a vector: the score of two captions is the cosine of their vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.compute import steady_products
from rungwise.relevance._base import Direction, Positions
from rungwise.relevance._caption_pairs import caption_positions
from rungwise.relevance._captions import CaptionPairSource

_QUERIES = 128


class VectorSource(CaptionPairSource):
    """Base of the sources that embed captions: give :attr:`vectors`, ``fingerprint`` and ``options``.

    Attributes:
        symmetric: The order of two captions does not matter.

    >>> from rungwise.similarity import unit_rows
    >>> class Length(VectorSource):
    ...     vectors = unit_rows(np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]], np.float32))
    ...     fingerprint = "length"
    >>> Length(["a dog", "dogs", ""], [0, 0, 1]).dense()
    array([[1., 1., 0.],
           [0., 0., 0.]], dtype=float32)
    """

    symmetric = True

    @property
    @abstractmethod
    def vectors(self) -> NDArray[np.float32]:
        """(captions, dimension) vectors of length 1, or 0 where a caption has none; computed when first asked for."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Hash of what decides a score besides the two texts, whatever the collection."""

    def choices(self) -> Mapping[str, Any]:
        """The options, with the fingerprint in place of the captions' own vectors."""
        own = dict(super().choices())
        return own | {"vectors": self.fingerprint} if "vectors" in own else own

    def pair_block(self, first: ArrayLike, second: ArrayLike) -> NDArray[np.float32]:
        """(len(first), len(second)) float32 cosines, -1..1; 0 where a caption has no vector."""
        references, captions = caption_positions(first, second, self.shape[1])
        return steady_products(_rows(self.vectors, references), _rows(self.vectors, captions))

    def run(self, direction: Direction) -> int:
        """Number of queries that are compared at a time: few, since shards hold a multiple of them."""
        return min(_QUERIES, super().run(direction))

    def pair_scores(self, first: Positions, second: Positions) -> NDArray[np.float32]:
        """(n,) float32 cosine of caption ``first[k]`` with caption ``second[k]``."""
        return np.asarray(np.einsum("nd,nd->n", self.vectors[first], self.vectors[second]))


def _rows(vectors: NDArray[np.float32], places: Positions) -> NDArray[np.float32]:
    """The vectors of some captions, as a view where the captions follow each other, as those of all images often do."""
    if len(places) and (np.diff(places) == 1).all():
        return vectors[places[0] : places[-1] + 1]
    return vectors[places]
