"""Rankings that are no similarities of one model: lists from elsewhere, shortlists that were ranked anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rungwise.metrics.blocks import Positions
from rungwise.metrics.measures import Measure
from rungwise.metrics.rankings import DIRECTIONS, Direction, Positives, Scores


class RankOnly(ABC):
    """A source that says in which order candidates stand, each direction by itself.

    It is a :class:`~rungwise.metrics.sources.SimilaritySource` whose values are no similarities. A family gives
    :meth:`blocks`, :meth:`select` and :meth:`reads`.

    Attributes:
        shape: (images, captions).
        directions: Those that are ranked.
    """

    rank_only: ClassVar[bool] = True
    shape: tuple[int, int]
    directions: tuple[Direction, ...] = DIRECTIONS

    @abstractmethod
    def blocks(self, way: Direction, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Queries of a direction, at most ``chunk`` at a time, and (queries, all candidates) falling in their order."""

    @abstractmethod
    def select(self, images: Positions, captions: Positions) -> RankOnly:
        """The part with these images and captions, in this order."""

    @abstractmethod
    def reads(self, measure: Measure, positives: Mapping[Direction, Positives]) -> str | None:
        """Why a measure cannot be had of these rankings; None if it can."""

    def lengths(self, way: Direction) -> NDArray[np.int64]:
        """(queries,) how many candidates of each query have a known place; all, unless a family says otherwise."""
        queries, candidates = self.sizes(way)
        return np.full(queries, candidates, dtype=np.int64)

    def sizes(self, way: Direction) -> tuple[int, int]:
        """How many queries and candidates a direction has."""
        return self.shape if way == "i2t" else (self.shape[1], self.shape[0])

    def rows(self, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Images and (images, all captions), as sources of similarity answer."""
        yield from self.blocks("i2t", chunk)

    def columns(self, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Captions and (captions, all images)."""
        yield from self.blocks("t2i", chunk)

    def pairs(self, images: Positions, captions: Positions) -> Scores:
        """(pairs,) as in the rows."""
        found = np.empty(len(images))
        for which, block in self.rows(1):
            here = np.flatnonzero(images == which[0])
            found[here] = block[0, captions[here]]
        return found
