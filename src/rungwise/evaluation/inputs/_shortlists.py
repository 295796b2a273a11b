"""Reranking: one similarity ranks everything, another model reorders the first K candidates of every query.

For a query q, with S of the first stage and T of the second::

    shortlist(q) = the K candidates with the highest S(q, .), ties to the lower position
    ranking(q)   = shortlist(q) by falling T(q, .), where that is equal by falling S(q, .);
                   behind it all others, by falling S(q, .)

A caption's shortlist holds images and an image's holds captions, so a pair may stand in only one of the two: no single
matrix of scores gives both rankings. T is asked once for each pair that stands in a shortlist of either direction.

In the values of this source, candidates outside the shortlist keep S, and those on it stand above them at equal steps.
Two candidates have the same value only where neither model tells them apart. So measures of order, Kendall's tau-b in
CS@K among them, are those of this ranking; measures that read the scores of one model are refused.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.compute import taken, top_columns
from rungwise.evaluation.inputs._rank_only import RankOnly
from rungwise.metrics import (
    DIRECTIONS,
    Direction,
    MatrixSource,
    Measure,
    Positions,
    Positives,
    Scores,
    SimilaritySource,
    as_floats,
)

TOP = 50
"""Number of candidates of each query that are reranked by default."""

_BLOCK_VALUES = 1 << 22


class ScoresPairs(Protocol):
    """A second stage that scores single pairs, such as :class:`rungwise.models.PairScores`."""

    def pairs(self, images: Positions, captions: Positions) -> Any:
        """(pairs,) scores of single pairs, by positions."""
        ...


class Reranked(RankOnly):
    """Rankings of one similarity whose first K candidates another model reorders.

    Give it to :func:`rungwise.evaluate` as ``similarity``. Under a protocol of several galleries, shortlists are made
    within each gallery. Nothing is computed before it is read, and no pair is scored twice.

    Args:
        first: Source that ranks everything, from :func:`~rungwise.evaluation.similarity_source`, or an (images,
            captions) matrix.
        second: Scorer of pairs of the same images and captions, as ``model.on(data)`` returns it, or a matrix.
        top: Size K of a shortlist; a smaller gallery is reranked as a whole.
        second_hash: Hash of the second model, stored in the result.

    Raises:
        UserError: If K is less than 1, sizes differ, or the first stage has no similarities.

    >>> first = np.array([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]])
    >>> second = np.array([[0.0, 0.5, 0.9], [0.2, 0.1, 0.3]])
    >>> both = Reranked(first, second, top=2)
    >>> [np.argsort(-rows, axis=1).tolist() for _, rows in both.rows(2)]
    [[[1, 0, 2], [0, 1, 2]]]
    >>> both.pairs_scored
    6
    """

    def __init__(self, first: Any, second: Any, top: int = TOP, *, second_hash: str = "") -> None:
        if top < 1:
            raise UserError(f"top must be at least 1, got {top}; it is how many candidates of a query are ranked anew")
        self.first: SimilaritySource = first if hasattr(first, "columns") else MatrixSource(np.asarray(first))
        if self.first.rank_only:
            raise UserError("ranked lists have no similarities from which shortlists are made; give those of a model")
        self._second = second if isinstance(second, _OnceEach) else _OnceEach.of(second, self.first.shape)
        self.shape = self.first.shape
        self.top = top
        self.second_hash = second_hash

    @property
    def seconds(self) -> float:
        """Seconds that the second stage has taken so far, over all parts of the data."""
        return self._second.memory.seconds

    @property
    def pairs_scored(self) -> int:
        """Number of different pairs in the shortlists of both directions."""
        pairs = [
            np.ravel_multi_index(_as_pairs(way, own.candidates), self.shape) for way, own in self._shortlists.items()
        ]
        return len(np.unique(np.concatenate(pairs)))

    def select(self, images: Positions, captions: Positions) -> Reranked:
        """The source restricted to these images and captions; shortlists are made anew, and pair scores are reused."""
        second = self._second.select(images, captions)
        return Reranked(self.first.select(images, captions), second, self.top, second_hash=self.second_hash)

    def reads(self, measure: Measure, positives: Mapping[Direction, Positives]) -> str | None:
        """The reason why a measure cannot be taken of two stages; None if it can."""
        if not measure.reads_ends:
            return None
        return f"{measure} reads the scores of one model, and these rankings are of two; ask for other measures"

    def blocks(self, way: Direction, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Queries and (queries, all candidates) values that fall in the order of both stages."""
        shortlists = self._shortlists[way]
        for queries, scores in self.first.rows(chunk) if way == "i2t" else self.first.columns(chunk):
            block = np.array(scores, dtype=np.float64)
            best = block.max(axis=1, keepdims=True)
            with np.errstate(over="ignore"):
                above = best + np.maximum(1, np.abs(best)) * shortlists.steps[queries]
            if not np.isfinite(above).all():
                raise UserError("the similarities of the first stage are too large to stand others above; scale them")
            np.put_along_axis(block, shortlists.candidates[queries], above, axis=1)
            yield queries, block

    @cached_property
    def _shortlists(self) -> dict[Direction, _Shortlists]:
        """Shortlists of both directions; all their pairs are scored together."""
        found = {way: self._best_by_first(way) for way in DIRECTIONS}
        pairs = [_as_pairs(way, candidates) for way, (candidates, _) in found.items()]
        images, captions = (np.concatenate(side) for side in zip(*pairs, strict=True))
        scores = np.split(self._second.pairs(images, captions), np.cumsum([len(one) for one, _ in pairs])[:-1])
        return {
            way: _Shortlists(candidates, steps_of(own.reshape(candidates.shape), first))
            for (way, (candidates, first)), own in zip(found.items(), scores, strict=True)
        }

    def _best_by_first(self, way: Direction) -> tuple[NDArray[np.int64], Scores]:
        """(queries, K) the best candidates of the first stage, best first, and their similarities."""
        queries, gallery = self.sizes(way)
        candidates = np.empty((queries, min(self.top, gallery)), dtype=np.int64)
        values = np.empty(candidates.shape)
        chunk = max(1, _BLOCK_VALUES // max(1, gallery))
        for which, scores in self.first.rows(chunk) if way == "i2t" else self.first.columns(chunk):
            best = top_columns(scores, candidates.shape[1])
            candidates[which], values[which] = best, taken(scores, best)
        return candidates, values


@dataclass(frozen=True)
class _Shortlists:
    """Shortlists of the queries of one direction.

    Attributes:
        candidates: (queries, K) positions by the first stage, best first.
        steps: (queries, K) number of steps by which each candidate stands above those outside the shortlist.
    """

    candidates: NDArray[np.int64]
    steps: NDArray[np.int64]


def steps_of(second: Scores, first: Scores) -> NDArray[np.int64]:
    """(queries, K) places on a shortlist, counted from its end; equal only where both models score equally.

    >>> steps_of(np.array([[0.1, 0.7, 0.7, 0.7]]), np.array([[0.9, 0.8, 0.5, 0.5]]))
    array([[1, 3, 2, 2]])

    Args:
        second: (queries, K) scores that decide the order.
        first: (queries, K) falling scores that break ties.
    """
    order = np.argsort(-second, axis=1, kind="stable")
    sorted_second, sorted_first = (np.take_along_axis(scores, order, axis=1) for scores in (second, first))
    falls = (np.diff(sorted_second) != 0) | (np.diff(sorted_first) != 0)
    from_end = np.cumsum(falls[:, ::-1], axis=1)[:, ::-1] + 1
    steps = np.ones(order.shape, dtype=np.int64)
    np.put_along_axis(steps, order[:, :-1], from_end, axis=1)
    return steps


def _as_pairs(way: Direction, candidates: NDArray[np.int64]) -> tuple[Positions, Positions]:
    queries = np.repeat(np.arange(len(candidates)), candidates.shape[1])
    return (queries, candidates.ravel()) if way == "i2t" else (candidates.ravel(), queries)


class _Memory:
    """Scores of pairs by number (image x captions + caption), ascending; and the seconds spent on them."""

    def __init__(self, scorer: ScoresPairs, shape: tuple[int, int]) -> None:
        self.scorer = scorer
        self.shape = shape
        self.seconds = 0.0
        self._pairs: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._scores: NDArray[np.float64] = np.empty(0)

    def scores(self, images: Positions, captions: Positions) -> NDArray[np.float64]:
        asked = np.ravel_multi_index((images, captions), self.shape)
        if len(new := np.setdiff1d(asked, self._pairs)):
            self._score(new)
        return self._scores[np.searchsorted(self._pairs, asked)]

    def _score(self, new: NDArray[np.int64]) -> None:
        images, captions = np.unravel_index(new, self.shape)
        begun = time.perf_counter()
        scores = as_floats(self.scorer.pairs(images, captions))
        self.seconds += time.perf_counter() - begun
        if scores.shape != new.shape:
            raise UserError(
                f"second stage: asked for {len(new)} pairs, got shape {scores.shape}; answer one score each"
            )
        if not (finite := np.isfinite(scores)).all():
            odd = int(np.argmin(finite))
            raise UserError(
                f"second stage: image {images[odd]} with caption {captions[odd]} scores {scores[odd]}; every score must"
                " be a finite number"
            )
        pairs = np.concatenate([self._pairs, new])
        order = np.argsort(pairs, kind="stable")
        self._pairs, self._scores = pairs[order], np.concatenate([self._scores, scores])[order]


@dataclass(frozen=True)
class _OnceEach:
    """The second stage restricted to a part of the data.

    Attributes:
        memory: Scores of pairs, shared by all parts.
        images: Positions of the part's images in the whole data.
        captions: Positions of the part's captions in the whole data.
    """

    memory: _Memory
    images: Positions
    captions: Positions

    @classmethod
    def of(cls, second: Any, shape: tuple[int, int]) -> _OnceEach:
        """The second stage for all of the data."""
        scorer = second if hasattr(second, "pairs") else MatrixSource(np.asarray(second))
        own = tuple(getattr(scorer, "shape", shape))
        if own != shape:
            raise UserError(
                f"the second stage scores {own} images x captions and the first {shape}; give both the same data"
            )
        return cls(_Memory(scorer, shape), np.arange(shape[0]), np.arange(shape[1]))

    def pairs(self, images: Positions, captions: Positions) -> NDArray[np.float64]:
        return self.memory.scores(self.images[images], self.captions[captions])

    def select(self, images: Positions, captions: Positions) -> _OnceEach:
        return _OnceEach(self.memory, self.images[images], self.captions[captions])
