"""A block of queries with everything that measures read of it, each thing computed once and only when asked for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.errors import UserError
from rungwise.metrics.ranking import count_ranks, top_columns

Direction = Literal["i2t", "t2i"]
DIRECTIONS: tuple[Direction, Direction] = ("i2t", "t2i")

Scores = NDArray[Any]
"""Float32 or float64, whichever was given: a similarity is never rounded, since rounding makes ties."""


class Positives:
    """The right candidates of each query, any number of them.

    Attributes:
        starts: (queries + 1,) int64; the positives of query q are ``candidate[starts[q]:starts[q + 1]]``.
        candidate: (positives,) int64, ascending within a query.
        query: (positives,) int64, whose positive it is.
        counts: (queries,) int64.

    >>> positives = Positives(np.array([0, 2, 2, 3]), np.array([0, 1, 2]))
    >>> positives.query, positives.counts
    (array([0, 0, 2]), array([2, 0, 1]))
    >>> positives.sum_per_query(np.array([1.0, 2.0, 4.0]))
    array([3., 0., 4.])
    """

    def __init__(self, starts: NDArray[np.int64], candidate: NDArray[np.int64]) -> None:
        self.starts = starts
        self.candidate = candidate
        self.counts = np.diff(starts)
        self.query = np.repeat(np.arange(len(self.counts)), self.counts)

    def select(self, queries: NDArray[np.int64]) -> Positives:
        """The positives of these queries, in this order."""
        starts = np.concatenate([[0], np.cumsum(self.counts[queries])])
        own = np.repeat(self.starts[queries] - starts[:-1], self.counts[queries])
        return Positives(starts, self.candidate[own + np.arange(starts[-1])])

    @property
    def place_in_query(self) -> NDArray[np.int64]:
        """(positives,) 1, 2, ... within each query."""
        place: NDArray[np.int64] = np.arange(len(self.candidate)) - self.starts[self.query] + 1
        return place

    def sum_per_query(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """(queries,) sums of one value per positive."""
        sums: NDArray[np.float64] = np.bincount(self.query, weights=values, minlength=len(self.counts)).astype(float)
        return sums

    def divide_by_counts(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """(queries,) sums over counts; NaN where a query has no positive."""
        nothing = np.full(len(sums), np.nan)
        return np.asarray(np.divide(sums, self.counts, out=nothing, where=self.counts > 0))


def positives_of(image_of_caption: NDArray[np.int64], images: int) -> dict[Direction, Positives]:
    """The positives of both directions when a caption's only right image is its own.

    >>> positives_of(np.array([1, 0, 1]), 2)["i2t"].candidate
    array([1, 0, 2])
    """
    captions = len(image_of_caption)
    starts = np.concatenate([[0], np.cumsum(np.bincount(image_of_caption, minlength=images))])
    return {
        "i2t": Positives(starts, np.argsort(image_of_caption, kind="stable")),
        "t2i": Positives(np.arange(captions + 1), image_of_caption),
    }


class Rankings:
    """Queries against the whole gallery; ties in score go to the lower candidate index.

    Args:
        positives: Of these queries.
        scores: (queries, candidates) similarity; None when only ranks are known.
        relevance: (queries, candidates) degrees, or None.
        direction: Which way the queries run.
        depth: The longest list that will be asked for, so that it is made once.
        ranks: (positives,) ranks from 1, when a streaming pass has counted them already.

    >>> rankings = rank_all([[0.5, 0.9, 0.5]], [[2]], relevance=[[0.1, 0.2, 1.0]])
    >>> rankings.best_rank, rankings.top(2)
    (array([3.]), array([[1, 0]]))
    >>> rankings.relevance_of_top(3), rankings.ideal(2)
    (array([[0.2, 0.1, 1. ]]), array([[1. , 0.2]]))
    """

    def __init__(
        self,
        positives: Positives,
        scores: Scores | None = None,
        relevance: Scores | None = None,
        direction: Direction = "i2t",
        depth: int = 0,
        ranks: NDArray[np.int64] | None = None,
    ) -> None:
        self.positives = positives
        self.direction = direction
        self._scores = scores
        self._relevance = relevance
        self._ranks = ranks
        self._depth = depth
        self._most_relevant: dict[bool, tuple[NDArray[np.int64], NDArray[np.bool_]]] = {}
        self._top: NDArray[np.int64] = np.empty((len(positives.counts), 0), dtype=np.int64)

    @property
    def scores(self) -> Scores:
        """(queries, candidates) similarity."""
        if self._scores is None:
            raise TypeError("these rankings hold ranks only; lists need the scores")
        return self._scores

    @property
    def relevance(self) -> Scores:
        """(queries, candidates) degrees.

        Raises:
            UserError: If none were given.
        """
        if self._relevance is None:
            raise UserError("this measure needs relevance degrees; give relevance=")
        return self._relevance

    @property
    def gallery(self) -> int:
        """Number of candidates."""
        return int(self.scores.shape[1])

    @cached_property
    def best_rank(self) -> NDArray[np.float64]:
        """(queries,) rank of the best positive, from 1; NaN where there is none."""
        found = self.positives.counts > 0
        best = np.full(len(found), np.nan)
        if self._ranks is not None:
            np.fmin.at(best, self.positives.query, self._ranks)
            return best
        queries = np.flatnonzero(found)
        score = self.scores[self.positives.query, self.positives.candidate]
        order = np.lexsort((self.positives.candidate, -score, self.positives.query))
        column = self.positives.candidate[order[self.positives.starts[:-1][found]]]
        rows = self.scores if found.all() else self.scores[queries]
        best[queries] = count_ranks(rows, column)
        return best

    @cached_property
    def positive_ranks(self) -> NDArray[np.int64]:
        """(positives,) ranks from 1, ascending within each query."""
        if self._ranks is not None:
            ranks = self._ranks
        else:
            ranks = np.empty(len(self.positives.candidate), dtype=np.int64)
            place = self.positives.place_in_query
            for nth in range(1, int(place.max(initial=0)) + 1):
                which = np.flatnonzero(place == nth)
                queries = self.positives.query[which]
                rows = self.scores if len(queries) == len(self.scores) else self.scores[queries]
                ranks[which] = count_ranks(rows, self.positives.candidate[which])
        return ranks[np.lexsort((ranks, self.positives.query))]

    @cached_property
    def positive_mask(self) -> NDArray[np.bool_]:
        """(queries, candidates) where a candidate is a positive."""
        mask = np.zeros(self.scores.shape, dtype=np.bool_)
        mask[self.positives.query, self.positives.candidate] = True
        return mask

    def top(self, k: int | None) -> NDArray[np.int64]:
        """(queries, K) candidates by falling score; the whole gallery for None."""
        k = self.gallery if k is None else min(k, self.gallery)
        if self._top.shape[1] < k:
            self._top = top_columns(self.scores, min(max(k, self._depth), self.gallery))
        return self._top[:, :k]

    def top_without_positives(self, k: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(queries, <= K) candidates by falling score with the positives removed, and which of them exist.

        A query whose gallery holds fewer than K other candidates has a shorter list: the rest is marked False.
        """
        longest = int(self.positives.counts.max(initial=0))
        listed = self.top(k + longest)
        wrong = np.take_along_axis(self.positive_mask, listed, axis=1)
        order = np.argsort(wrong, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(listed, order, axis=1), ~np.take_along_axis(wrong, order, axis=1)

    def relevance_of_top(self, k: int | None, non_gt: bool = False) -> NDArray[np.float64]:
        """(queries, K) degrees of the retrieved candidates, in their order; 0 where a list is shorter."""
        if non_gt and k is not None:
            listed, exist = self.top_without_positives(k)
            return np.where(exist, np.take_along_axis(self.relevance, listed, axis=1), 0).astype(np.float64)
        return np.take_along_axis(self.relevance, self.top(k), axis=1).astype(np.float64)

    def ideal(self, k: int, non_gt: bool = False) -> NDArray[np.float64]:
        """(queries, K) the largest degrees, falling: what the best possible ranking would retrieve.

        Raises:
            UserError: If a degree is negative, since a sum of gains then has no ideal.
        """
        if self._lowest_degree < 0:
            raise UserError(
                f"a relevance degree of {self._lowest_degree:.3g} is negative, which gains cannot be;"
                " shift or clip the relevance to 0 and above"
            )
        listed, exist = self.most_relevant(k, non_gt)
        return np.where(exist, np.take_along_axis(self.relevance, listed, axis=1), 0).astype(np.float64)

    def most_relevant(self, m: int, non_gt: bool = False) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(queries, m) the most relevant candidates, ties to the lower index, and which of them exist."""
        m = min(m, self.gallery)
        made = self._most_relevant.get(non_gt)
        if made is None or made[0].shape[1] < m:
            degrees = np.where(self.positive_mask, -np.inf, self.relevance) if non_gt else self.relevance
            listed = top_columns(degrees, min(max(m, self._depth), self.gallery))
            removed = np.take_along_axis(self.positive_mask, listed, axis=1) if non_gt else np.False_
            made = self._most_relevant[non_gt] = listed, ~np.broadcast_to(removed, listed.shape)
        return made[0][:, :m], made[1][:, :m]

    @cached_property
    def _lowest_degree(self) -> float:
        return float(self.relevance.min(initial=0))


def rank_all(
    scores: ArrayLike,
    positives: Sequence[Sequence[int]],
    relevance: ArrayLike | None = None,
    direction: Direction = "i2t",
) -> Rankings:
    """Rankings of a small matrix in memory, for a look at a few queries.

    Args:
        scores: (queries, candidates).
        positives: The right candidates of each query.
        relevance: (queries, candidates) degrees.
        direction: Which way the queries run.

    >>> rank_all([[0.1, 0.7], [0.4, 0.2]], [[0], [0]]).best_rank
    array([2., 1.])
    """
    starts = np.cumsum([0, *(len(own) for own in positives)])
    flat = np.array([candidate for own in positives for candidate in sorted(own)], dtype=np.int64)
    degrees = None if relevance is None else np.asarray(relevance)
    return Rankings(Positives(starts, flat), np.asarray(scores), degrees, direction)
