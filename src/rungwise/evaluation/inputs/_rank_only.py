"""Sources of rankings without similarities of one model: lists from elsewhere, reranked shortlists."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rungwise.metrics import DIRECTIONS, Direction, Measure, Positions, Positives, Scores


class RankOnly(ABC):
    """A source that gives the order of candidates, for each direction separately.

    A :class:`~rungwise.metrics.SimilaritySource` whose values are no similarities. Subclasses give
    :meth:`blocks`, :meth:`select` and :meth:`reads`.
    """

    rank_only: ClassVar[bool] = True
    shape: tuple[int, int]
    directions: tuple[Direction, ...] = DIRECTIONS

    def __repr__(self) -> str:
        images, captions = self.shape
        return f"{type(self).__name__}: {' and '.join(self.directions)}, {images:,} images x {captions:,} captions"

    @abstractmethod
    def blocks(self, way: Direction, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """At most ``chunk`` queries of a direction at a time, with (queries, candidates) values that fall by rank."""

    @abstractmethod
    def select(self, images: Positions, captions: Positions) -> RankOnly:
        """The source restricted to these images and captions, in this order."""

    @abstractmethod
    def reads(self, measure: Measure, positives: Mapping[Direction, Positives]) -> str | None:
        """The reason why a measure cannot be taken of these rankings; None if it can."""

    def lengths(self, way: Direction) -> NDArray[np.int64]:
        """(queries,) number of candidates of each query with a known place; by default all of them."""
        queries, candidates = self.sizes(way)
        return np.full(queries, candidates, dtype=np.int64)

    def counted_zero(self, way: Direction) -> Positions:
        """Positions of the queries whose values are 0 whatever a measure says; by default none."""
        return np.empty(0, dtype=np.int64)

    def sizes(self, way: Direction) -> tuple[int, int]:
        """Number of queries and of candidates in a direction."""
        return self.shape if way == "i2t" else (self.shape[1], self.shape[0])

    def rows(self, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Images and (images, all captions) values, as sources of similarity return them."""
        yield from self.blocks("i2t", chunk)

    def columns(self, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Captions and (captions, all images) values."""
        yield from self.blocks("t2i", chunk)

    def pairs(self, images: Positions, captions: Positions) -> Scores:
        """(pairs,) values of single pairs, as in :meth:`rows`."""
        found = np.empty(len(images))
        for which, block in self.rows(1):
            here = np.flatnonzero(images == which[0])
            found[here] = block[0, captions[here]]
        return found
