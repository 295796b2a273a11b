"""Rankings of a block of queries: everything that measures read, each thing computed once and only on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError, row_sums
from rungwise.core.compute import taken, top_columns
from rungwise.core.output import short_repr
from rungwise.metrics._counting import count_ranks

Direction = Literal["i2t", "t2i"]
DIRECTIONS: tuple[Direction, Direction] = ("i2t", "t2i")

Scores = NDArray[Any]
"""Float32 or float64 as given: a similarity is never rounded, since rounding makes ties."""


_MANY_POSITIVES = 50
"""Number of positives of a query above which sorting the whole gallery costs less than counting single ranks."""


class Positives:
    """The right candidates of each query, any number of them.

    Attributes:
        starts: (queries + 1,) int64; the positives of query q are ``candidate[starts[q]:starts[q + 1]]``.
        candidate: (positives,) int64 positions, ascending within a query.
        query: (positives,) int64 position of the query of each positive.
        counts: (queries,) int64 number of positives.

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
        """Positives of these queries, in this order."""
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
        """(queries,) sums divided by the numbers of positives; NaN where a query has none."""
        nothing = np.full(len(sums), np.nan)
        return np.asarray(np.divide(sums, self.counts, out=nothing, where=self.counts > 0))


def positives_of(image_of_caption: NDArray[np.int64], images: int) -> dict[Direction, Positives]:
    """Positives of both directions where a caption's only right image is its own.

    >>> positives_of(np.array([1, 0, 1]), 2)["i2t"].candidate
    array([1, 0, 2])
    """
    captions = len(image_of_caption)
    starts = np.concatenate([[0], np.cumsum(np.bincount(image_of_caption, minlength=images))])
    return {
        "i2t": Positives(starts, np.argsort(image_of_caption, kind="stable")),
        "t2i": Positives(np.arange(captions + 1), image_of_caption),
    }


@dataclass(frozen=True)
class KeptLists:
    """What graded measures read of queries whose whole rows are not kept.

    Attributes:
        top: (queries, depth) positions of candidates by falling score.
        scores: (queries, depth) scores of these candidates.
        degrees: (queries, depth) degrees of relevance of these candidates.
        best: (queries, breadth) positions of the most relevant candidates, ties to the lower index.
        best_degrees: (queries, breadth) degrees of these candidates.
        lowest_degree: Smallest degree of any candidate of these queries.
        gallery: Number of candidates.
        degree_sums: (queries,) sums of the degrees of all candidates; None where they were not added up.
    """

    top: NDArray[np.int64]
    scores: Scores
    degrees: Scores
    best: NDArray[np.int64]
    best_degrees: Scores
    lowest_degree: float
    gallery: int
    degree_sums: NDArray[np.float64] | None = None

    __repr__ = short_repr


@dataclass(frozen=True)
class JudgedQueries:
    """Judgement of a block of queries by a method of where relevance ends.

    Attributes:
        cuts: (queries,) number of hits to show; 0 where nothing is taken to be relevant.
        beliefs: (queries,) belief that any candidate is relevant; higher is surer.
        degrees: (queries, candidates) expected degrees; None from a method that only cuts.
        shown: (queries, candidates) which candidates are shown; None where it is the best ones by score.
    """

    cuts: NDArray[np.int64]
    beliefs: NDArray[np.float64]
    degrees: Scores | None = None
    shown: NDArray[np.bool_] | None = None

    __repr__ = short_repr


class Rankings:
    """Rankings of the whole gallery by some queries; ties in score go to the lower candidate index.

    Args:
        positives: Positives of these queries.
        scores: (queries, candidates) similarities; None when only ranks or lists are known.
        relevance: (queries, candidates) degrees, or None.
        direction: Direction of the queries.
        depth: Length of the longest list that will be asked for, so that it is made once.
        ranks: (positives,) ranks from 1, where a streaming pass has already counted them.
        lists: Lists that a streaming pass has already kept; nothing beyond them can be asked.
        sets: Right candidates for single measures, from :meth:`rungwise.metrics.Measure.sets`.
        places: (queries,) positions of these queries among all, for messages.
        judged: Judgement by a method of where relevance ends, for measures that read it.

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
        lists: KeptLists | None = None,
        sets: Mapping[object, Positives] | None = None,
        places: NDArray[np.int64] | None = None,
        judged: JudgedQueries | None = None,
    ) -> None:
        self._judged = judged
        self.positives = positives
        self.sets = sets or {}
        self.direction = direction
        self._scores = scores
        self._relevance = relevance
        self._ranks = ranks
        self._depth = depth
        self._lists = lists
        self._places = places
        nothing: NDArray[np.int64] = np.empty((len(positives.counts), 0), dtype=np.int64)
        self._top = nothing if lists is None else lists.top
        self._best = nothing if lists is None else lists.best
        self._top_scores: Scores = nothing if lists is None else lists.scores
        self._top_degrees: Scores = nothing if lists is None else lists.degrees
        self._best_degrees: Scores = nothing if lists is None else lists.best_degrees

    @property
    def scores(self) -> Scores:
        """(queries, candidates) similarities."""
        if self._scores is None:
            raise TypeError("these rankings hold ranks or short lists only; longer lists need the scores")
        return self._scores

    @property
    def relevance(self) -> Scores:
        """(queries, candidates) degrees; UserError without any."""
        if self._relevance is None:
            raise UserError("this measure needs degrees of relevance; give them, or ask for other measures")
        return self._relevance

    @property
    def judged(self) -> JudgedQueries:
        """Judgement by a method of where relevance ends; UserError without a method."""
        if self._judged is None:
            raise UserError("this measure needs a method that says where relevance ends; give ends=")
        return self._judged

    @property
    def gallery(self) -> int:
        """Number of candidates."""
        return int(self.scores.shape[1]) if self._lists is None else self._lists.gallery

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
        elif self.positives.counts.max(initial=0) > _MANY_POSITIVES:
            order = top_columns(self.scores, self.gallery)
            places = np.empty_like(order)
            np.put_along_axis(places, order, np.broadcast_to(np.arange(1, self.gallery + 1), order.shape), axis=1)
            ranks = places[self.positives.query, self.positives.candidate]
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
        """(queries, candidates) whether a candidate is a positive."""
        mask = np.zeros(self.scores.shape, dtype=np.bool_)
        mask[self.positives.query, self.positives.candidate] = True
        return mask

    def top(self, k: int | None) -> NDArray[np.int64]:
        """(queries, K) positions of candidates by falling score; the whole gallery for None."""
        k = self.gallery if k is None else min(k, self.gallery)
        if self._top.shape[1] < k:
            self._top = top_columns(self.scores, min(max(k, self._depth), self.gallery))
        return self._top[:, :k]

    def scores_of_top(self, k: int | None) -> Scores:
        """(queries, K) falling scores of the first candidates."""
        listed = self.top(k)
        if self._top_scores.shape[1] < listed.shape[1]:
            self._top_scores = taken(self.scores, self._top)
        return self._top_scores[:, : listed.shape[1]]

    def top_without_positives(self, k: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(queries, <= K) candidates by falling score without the positives, and (queries, <= K) which of them exist.

        A query whose gallery holds fewer than K other candidates has a shorter list; the rest is marked False.
        """
        listed = self.top(k + self._most_positives)
        place, exist = self._others(listed, k)
        return np.take_along_axis(listed, place, axis=1), exist

    def relevance_of_top(self, k: int | None, non_gt: bool = False) -> NDArray[np.float64]:
        """(queries, K) degrees of the retrieved candidates, in their order; 0 where a list is shorter."""
        if non_gt and k is not None:
            place, exist = self._others(self.top(k + self._most_positives), k)
            degrees = np.take_along_axis(self.degrees_of_top(k + self._most_positives), place, axis=1)
            return np.where(exist, degrees, 0).astype(np.float64)
        return self.degrees_of_top(k).astype(np.float64)

    def degrees_of_top(self, k: int | None) -> Scores:
        """(queries, K) degrees of the retrieved candidates, in the given precision."""
        listed = self.top(k)
        if self._top_degrees.shape[1] < listed.shape[1]:
            self._top_degrees = taken(self.relevance, self._top)
        return self._top_degrees[:, : listed.shape[1]]

    def ideal(self, k: int, non_gt: bool = False) -> NDArray[np.float64]:
        """(queries, K) largest degrees, falling: those that the best possible ranking would retrieve.

        Raises:
            UserError: If a degree is negative, since a sum of gains then has no ideal.
        """
        if self._lowest_degree < 0:
            raise UserError(
                f"relevance{self._place_of_lowest()}: a degree of {self._lowest_degree:.3g} is negative, which gains"
                " cannot be; shift or clip the relevance to 0 and above"
            )
        listed = self._most_relevant(k + self._most_positives if non_gt else k)
        if self._best_degrees.shape[1] < listed.shape[1]:
            self._best_degrees = taken(self.relevance, self._best)
        degrees = self._best_degrees[:, : listed.shape[1]]
        if non_gt:
            place, exist = self._others(listed, k)
            degrees = np.where(exist, np.take_along_axis(degrees, place, axis=1), 0)
        return degrees.astype(np.float64)

    @cached_property
    def mean_degrees(self) -> NDArray[np.float64]:
        """(queries,) mean degree of all candidates, which a ranking at random reaches at every rank.

        Raises:
            TypeError: If lists were kept without the sums of all degrees.
        """
        if self._lists is None:
            sums = row_sums(self.relevance.astype(np.float64))
        elif self._lists.degree_sums is None:
            raise TypeError("these rankings hold short lists only; a mean over all candidates needs all degrees")
        else:
            sums = self._lists.degree_sums
        return sums / self.gallery

    def most_relevant(self, m: int, non_gt: bool = False) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(queries, m) most relevant candidates, ties to the lower index, and which of them exist."""
        if non_gt:
            listed = self._most_relevant(m + self._most_positives)
            place, exist = self._others(listed, m)
            return np.take_along_axis(listed, place, axis=1), exist
        listed = self._most_relevant(m)
        return listed, np.ones(listed.shape, dtype=np.bool_)

    def _most_relevant(self, m: int) -> NDArray[np.int64]:
        m = min(m, self.gallery)
        if self._best.shape[1] < m:
            self._best = top_columns(self.relevance, min(max(m, self._depth), self.gallery))
        return self._best[:, :m]

    def _others(self, listed: NDArray[np.int64], k: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """(queries, <= k) places in a list of the first candidates that are no positives, and which of them exist."""
        own = np.arange(len(listed))[:, None] * self.gallery
        wrong = is_among(own + listed, self.positives.query * self.gallery + self.positives.candidate)
        place = np.argsort(wrong, axis=1, kind="stable")[:, :k]
        return place, ~np.take_along_axis(wrong, place, axis=1)

    @cached_property
    def _most_positives(self) -> int:
        return int(self.positives.counts.max(initial=0))

    def _place_of_lowest(self) -> str:
        if self._places is None or self._lists is not None:
            return ""
        query = self._places[int(self.relevance.argmin()) // self.gallery]
        return f", {'row' if self.direction == 'i2t' else 'column'} {query}"

    @cached_property
    def _lowest_degree(self) -> float:
        return float(self.relevance.min(initial=0)) if self._lists is None else self._lists.lowest_degree


def is_among(numbers: NDArray[np.int64], ascending: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each number occurs in an ascending array.

    >>> is_among(np.array([[1, 5], [7, 8]]), np.array([5, 7]))
    array([[False,  True],
           [ True, False]])
    """
    if not len(ascending):
        return np.zeros(numbers.shape, dtype=np.bool_)
    place = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return np.asarray(ascending[place] == numbers)


def rank_all(
    scores: ArrayLike,
    positives: Sequence[Sequence[int]],
    relevance: ArrayLike | None = None,
    direction: Direction = "i2t",
    judged: JudgedQueries | None = None,
) -> Rankings:
    """Rankings of a small (queries, candidates) matrix in memory, for a look at a few queries.

    >>> rank_all([[0.1, 0.7], [0.4, 0.2]], [[0], [0]]).best_rank
    array([2., 1.])
    """
    starts = np.cumsum([0, *(len(own) for own in positives)])
    flat = np.array([candidate for own in positives for candidate in sorted(own)], dtype=np.int64)
    degrees = None if relevance is None else np.asarray(relevance)
    return Rankings(Positives(starts, flat), np.asarray(scores), degrees, direction, judged=judged)
