"""Baselines: ways to end a result list that one number decides, and the best that any way can do.

Each baseline has a number that its ``fit`` chooses on validation queries: the one of the highest mean CutF1, among all
numbers that make a difference. Its belief that anything is relevant is the score of the best hit; that of the largest
gap is the gap.

    CutF1 = 200 |relevant among the shown| / (|shown| + |relevant|), 100 if both are 0; relevant: degree >= t
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.calibration._judgement import Values
from rungwise.calibration.learning import checked_pairs
from rungwise.core import UserError
from rungwise.metrics import Direction, JudgedQueries, Scores


@dataclass(frozen=True)
class FlatThreshold:
    """Show the hits whose score reaches a threshold.

    >>> similarity = np.tile([0.9, 0.5, 0.1], (20, 1))
    >>> method = FlatThreshold.fit(similarity, np.tile([1.0, 0.0, 0.0], (20, 1)), relevant_from=1)
    >>> method, method.judge(similarity[:1], "t2i", np.array([0])).cuts
    (FlatThreshold(0.7), array([1]))
    """

    least: float

    @classmethod
    def fit(cls, similarity: ArrayLike, relevance: ArrayLike, relevant_from: float) -> FlatThreshold:
        """Choose the threshold by (queries, candidates) arrays; errors are those of ``Calibration.fit``."""
        falling, values = _validation(similarity, relevance, relevant_from)
        return cls(_best_threshold(falling, values))

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> JudgedQueries:
        """Judge a block of queries, as :class:`rungwise.metrics.Ends` says."""
        return JudgedQueries((scores >= self.least).sum(axis=1), _best(scores))

    def __repr__(self) -> str:
        return f"FlatThreshold({self.least:.4g})"


@dataclass(frozen=True)
class ShareOfBest:
    """Show the hits whose score reaches a share of the best hit's; nothing where the best score is not above 0.

    >>> ShareOfBest(0.5).judge(np.array([[0.1, 0.8, 0.4]]), "t2i", np.array([0])).cuts
    array([2])
    """

    share: float

    @classmethod
    def fit(cls, similarity: ArrayLike, relevance: ArrayLike, relevant_from: float) -> ShareOfBest:
        """Choose the share, as :meth:`FlatThreshold.fit` chooses a threshold."""
        falling, values = _validation(similarity, relevance, relevant_from)
        return cls(_best_threshold(_shares(falling), values))

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> JudgedQueries:
        """Judge a block of queries, as :class:`rungwise.metrics.Ends` says."""
        return JudgedQueries((_shares(scores) >= self.share).sum(axis=1), _best(scores))

    def __repr__(self) -> str:
        return f"ShareOfBest({self.share:.4g})"


@dataclass(frozen=True)
class LargestGap:
    """End the list before the largest gap between neighbouring hits, among the first ``within`` gaps.

    >>> LargestGap(3).judge(np.array([[0.9, 0.8, 0.3, 0.2]]), "t2i", np.array([0])).cuts
    array([2])
    """

    within: int

    @classmethod
    def fit(cls, similarity: ArrayLike, relevance: ArrayLike, relevant_from: float) -> LargestGap:
        """Choose the number of gaps, as :meth:`FlatThreshold.fit` chooses a threshold."""
        falling, values = _validation(similarity, relevance, relevant_from)
        gaps = falling[:, :-1] - falling[:, 1:]
        so_far = np.maximum.accumulate(gaps, axis=1)
        # The first of equal gaps: a later one takes over only if it is larger.
        larger = np.diff(so_far, axis=1, prepend=-np.inf) > 0
        cuts = np.maximum.accumulate(np.where(larger, np.arange(1, gaps.shape[1] + 1), 0), axis=1)
        return cls(int(np.take_along_axis(values, cuts, axis=1).mean(axis=0).argmax()) + 1)

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> JudgedQueries:
        """Judge a block of queries, as :class:`rungwise.metrics.Ends` says."""
        falling = _falling(scores)[:, : self.within + 1].astype(np.float64)
        if falling.shape[1] < 2:
            return JudgedQueries(np.ones(len(falling), np.int64), np.zeros(len(falling)))
        gaps: Values = falling[:, :-1] - falling[:, 1:]
        return JudgedQueries(gaps.argmax(axis=1) + 1, np.asarray(gaps.max(axis=1), np.float64))

    def __repr__(self) -> str:
        return f"LargestGap({self.within})"


@dataclass(frozen=True)
class TopK:
    """Show the same number of hits for every query.

    >>> TopK(10).judge(np.array([[0.9, 0.8, 0.3]]), "t2i", np.array([0])).cuts
    array([3])
    """

    k: int

    @classmethod
    def fit(cls, similarity: ArrayLike, relevance: ArrayLike, relevant_from: float) -> TopK:
        """Choose the number of hits, as :meth:`FlatThreshold.fit` chooses a threshold."""
        _, values = _validation(similarity, relevance, relevant_from)
        return cls(int(values.mean(axis=0).argmax()))

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> JudgedQueries:
        """Judge a block of queries, as :class:`rungwise.metrics.Ends` says."""
        return JudgedQueries(np.full(len(scores), min(self.k, scores.shape[1])), _best(scores))

    def __repr__(self) -> str:
        return f"TopK({self.k})"


@dataclass(frozen=True)
class Oracle:
    """The best number of hits for each query by its true degrees: what no method can exceed with these scores.

    Attributes:
        relevance: (queries, candidates) degrees, NaN where nobody judged.
        relevant_from: The smallest degree that counts as relevant.

    >>> relevance = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    >>> Oracle(relevance, 1).judge(np.array([[0.9, 0.8, 0.3], [0.9, 0.8, 0.3]]), "t2i", np.array([0, 1])).cuts
    array([3, 0])
    """

    relevance: NDArray[np.floating] = field(repr=False)
    relevant_from: float

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> JudgedQueries:
        """Judge a block of queries; UserError if the degrees do not fit these queries and candidates."""
        if scores.shape[1] != self.relevance.shape[1] or (len(queries) and queries.max() >= len(self.relevance)):
            raise UserError(
                f"relevance: shape {self.relevance.shape}, but query {queries.max()} has {scores.shape[1]} candidates;"
                " give one row of degrees for each query"
            )
        degrees = self.relevance[queries]
        cuts = f1_of_cuts(scores, degrees, self.relevant_from).argmax(axis=1)
        return JudgedQueries(cuts, np.asarray((degrees >= self.relevant_from).any(axis=1), np.float64))

    def __repr__(self) -> str:
        return f"Oracle({self.relevant_from:g})"


def f1_of_cuts(scores: Scores, degrees: NDArray[np.floating], relevant_from: float) -> Values:
    """CutF1 of showing the first k hits, for every k.

    Args:
        scores: (queries, candidates) similarities.
        degrees: (queries, candidates) true degrees; hits with NaN are not counted as shown.
        relevant_from: The smallest degree that counts as relevant.

    Returns:
        (queries, candidates + 1) percentages for k = 0, 1, 2, ...

    >>> f1_of_cuts(np.array([[0.9, 0.8, 0.3]]), np.array([[1.0, np.nan, 0.0]]), 0.5).round(1)
    array([[  0. , 100. , 100. ,  66.7]])
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(degrees, order, axis=1)
    shown, right = (
        np.pad(np.cumsum(each, axis=1), ((0, 0), (1, 0))) for each in (~np.isnan(ranked), ranked >= relevant_from)
    )
    both = shown + right[:, -1:]
    return np.asarray(np.divide(200.0 * right, both, out=np.full(both.shape, 100.0), where=both > 0))


def _validation(similarity: ArrayLike, relevance: ArrayLike, relevant_from: float) -> tuple[Values, Values]:
    """(queries, candidates) falling scores, and (queries, candidates + 1) CutF1 of each number of hits."""
    scores, degrees = checked_pairs(similarity, relevance, relevant_from)
    judged = (~np.isnan(degrees)).any(axis=1)
    scores, degrees = scores[judged], degrees[judged]
    return _falling(scores).astype(np.float64), f1_of_cuts(scores, degrees, relevant_from)


def _best_threshold(numbers: Values, values: Values) -> float:
    """The threshold of the highest mean value, halfway between two numbers that lead to different cuts.

    Args:
        numbers: (queries, candidates) falling numbers; a threshold shows the hits whose number reaches it.
        values: (queries, candidates + 1) value of each cut.
    """
    order = np.argsort(-numbers, axis=None, kind="stable")
    ordered = numbers.ravel()[order]
    gained = np.cumsum(np.diff(values, axis=1).ravel()[order])
    # Equal numbers are shown together or not at all.
    ends = np.flatnonzero(np.append(ordered[:-1] != ordered[1:], True) & np.isfinite(ordered))
    if not len(ends) or gained[ends].max() <= 0:
        return float(np.nextafter(ordered[0], np.inf))
    best = ends[gained[ends].argmax()]
    after = ordered[best + 1] if best + 1 < len(ordered) else -np.inf
    return float((ordered[best] + after) / 2 if np.isfinite(after) else ordered[best])


def _falling(scores: Scores) -> Scores:
    return np.asarray(-np.sort(-scores, axis=1))


def _best(scores: Scores) -> Values:
    return np.asarray(scores.max(axis=1), np.float64)


def _shares(scores: Scores) -> Values:
    """Scores as shares of the best; minus infinity where that is not above 0."""
    best = _best(scores)[:, None]
    return np.asarray(np.divide(scores, best, out=np.full(scores.shape, -np.inf), where=best > 0))
