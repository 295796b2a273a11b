"""What a search answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Hit:
    """A picture that was found: its position in the index, the user's id, and how alike it is.

    >>> Hit(position=4, id="dog-7", score=0.5)
    Hit(position=4, id='dog-7', score=0.5)
    """

    position: int
    id: str
    score: float


@dataclass(frozen=True)
class CaptionHit:
    """A caption that was found, and the positions of the pictures that have it.

    >>> CaptionHit("a dog", score=0.5, positions=(4, 9)).positions
    (4, 9)
    """

    text: str
    score: float
    positions: tuple[int, ...]


@dataclass(frozen=True)
class Hits:
    """What several queries found; ``hits[n]`` is the list of query n, best first.

    Attributes:
        positions: (queries, k) int64.
        scores: (queries, k) float32, falling.
        ids: (queries, k) the user's ids.

    >>> hits = Hits(np.array([[4]]), np.array([[0.5]], np.float32), (("dog-7",),))
    >>> hits[0]
    [Hit(position=4, id='dog-7', score=0.5)]
    """

    positions: NDArray[np.int64]
    scores: NDArray[np.float32]
    ids: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.ids)

    def __getitem__(self, query: int) -> list[Hit]:
        """The hits of one query, best first."""
        row = zip(self.positions[query].tolist(), self.ids[query], self.scores[query].tolist(), strict=True)
        return [Hit(*hit) for hit in row]

    def __iter__(self) -> Iterator[list[Hit]]:
        """Query by query."""
        return (self[query] for query in range(len(self)))
