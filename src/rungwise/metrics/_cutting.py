"""Measures of where relevance ends: how well a method cuts a ranking, and whether its expected degrees are right.

They read S, R and the judgement of each query by a method (:class:`rungwise.metrics.Ends`): how many of the best
hits it shows, its belief that anything is relevant, and the degree that it expects of each candidate. A candidate is
relevant from a degree of ``t``, which depends on the source of the degrees.

Where people judged some pairs only, R is NaN elsewhere. Pairs without a degree are left out: a hit that nobody judged
is neither right nor wrong (condensed lists; Sakai 2007). A query without any judged candidate has no value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.metrics._graded import GradedMeasure
from rungwise.metrics._measures import FRACTION
from rungwise.metrics._rankings import Rankings, Scores

BINS = 10
"""Number of equally wide bins of the expected calibration error."""

_UNJUDGED = "not judged, left out"
_BOUND = 1e-6
"""Tolerance at the ends of a scale of degrees: sums in single precision round."""


class EndMeasure(GradedMeasure):
    """A measure of a method's judgement of where relevance ends."""

    reads_ends: ClassVar[bool] = True
    takes_gaps: ClassVar[bool] = True

    @property
    def depth(self) -> int:
        """Length of the lists that are read: K, or 0, since whole rows are read in any case."""
        return getattr(self, "k", None) or 0


@dataclass(frozen=True)
class _Cut:
    """Counts of hits and relevant candidates at a cut, query by query.

    Attributes:
        right: (queries,) number of relevant hits before the cut.
        shown: (queries,) number of hits before the cut that have a degree.
        relevant: (queries,) number of relevant candidates.
        known: (queries,) number of candidates that have a degree.
    """

    right: NDArray[np.int64]
    shown: NDArray[np.int64]
    relevant: NDArray[np.int64]
    known: NDArray[np.int64]

    @classmethod
    def of(cls, rankings: Rankings, t: float) -> _Cut:
        """Count; a degree of NaN is never relevant."""
        relevant = (rankings.relevance >= t).sum(axis=1)
        known = (~np.isnan(rankings.relevance)).sum(axis=1)
        if (which := rankings.judged.shown) is not None:
            right = ((rankings.relevance >= t) & which).sum(axis=1)
            return cls(right, (~np.isnan(rankings.relevance) & which).sum(axis=1), relevant, known)
        cuts = rankings.judged.cuts
        degrees = rankings.degrees_of_top(int(cuts.max(initial=0)))
        before = np.arange(degrees.shape[1]) < cuts[:, None]
        return cls(((degrees >= t) & before).sum(axis=1), (~np.isnan(degrees) & before).sum(axis=1), relevant, known)

    @cached_property
    def unjudged(self) -> NDArray[np.bool_]:
        """(queries,) whether no candidate has a degree."""
        return np.asarray(self.known == 0)

    def share(self, part: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.float64]:
        """(queries,) shares in percent; 100 where the whole is empty, NaN where nothing was judged."""
        values = 100.0 * np.divide(part, whole, out=np.ones(len(part)), where=whole > 0)
        return np.where(self.unjudged, np.nan, values)

    def remarks(self, ruling: str, ruled: NDArray[np.bool_]) -> dict[str, int]:
        """Numbers of queries without a value, and of those whose value is set by a convention."""
        reasons = {_UNJUDGED: self.unjudged, ruling: ruled & ~self.unjudged}
        return {reason: int(which.sum()) for reason, which in reasons.items() if which.any()}


@dataclass(frozen=True)
class CutF1(EndMeasure):
    """``CutF1(t)``: 100 x 2 ``|top k with R >= t| / (k + |R >= t|)``, where a method shows the k best hits of a query.

    The harmonic mean of :class:`CutPrecision` and :class:`CutRecall` of each query, averaged over queries; 100 where
    nothing is relevant and nothing is shown. The best k for every query is the limit of all methods on the same scores.

    >>> from rungwise.metrics._rankings import JudgedQueries
    >>> from rungwise.metrics._rankings import rank_all
    >>> shown = JudgedQueries(cuts=np.array([2]), beliefs=np.array([0.9]))
    >>> rankings = rank_all([[0.9, 0.8, 0.1]], [[0]], relevance=[[1.0, 0.2, 0.7]], judged=shown)
    >>> CutF1(t=0.5).per_query(rankings), str(CutF1(0.5))
    (array([50.]), 'CutF1(t=0.5)')
    """

    t: float
    name: ClassVar[str] = "CutF1"
    meaning: ClassVar[str] = (
        "Harmonic mean of precision and recall of the candidates that are shown before the cut; "
        "those with a degree of t or more are relevant."
    )

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        cut = _Cut.of(rankings, self.t)
        return cut.share(2 * cut.right, cut.shown + cut.relevant)

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Numbers of queries without a judged candidate, and of those where rightly nothing is shown."""
        cut = _Cut.of(rankings, self.t)
        return cut.remarks("nothing relevant and nothing shown, counted 100", cut.shown + cut.relevant == 0)


@dataclass(frozen=True)
class CutPrecision(EndMeasure):
    """CutPrecision(t): 100 x the share of the hits before the cut that are relevant; 100 where none is shown.

    >>> from rungwise.metrics._rankings import JudgedQueries
    >>> from rungwise.metrics._rankings import rank_all
    >>> shown = JudgedQueries(cuts=np.array([2]), beliefs=np.array([0.9]))
    >>> CutPrecision(0.5).per_query(rank_all([[0.9, 0.8, 0.1]], [[0]], relevance=[[1.0, 0.2, 0.7]], judged=shown))
    array([50.])
    """

    t: float
    name: ClassVar[str] = "CutPrecision"
    meaning: ClassVar[str] = "Percentage of the candidates shown before the cut that have a degree of t or more."

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        cut = _Cut.of(rankings, self.t)
        return cut.share(cut.right, cut.shown)

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Numbers of queries without a judged candidate, and of those where nothing is shown."""
        cut = _Cut.of(rankings, self.t)
        return cut.remarks("nothing shown, counted 100", cut.shown == 0)


@dataclass(frozen=True)
class CutRecall(EndMeasure):
    """CutRecall(t): 100 x the share of the relevant candidates that stand before the cut; 100 where none is relevant.

    >>> from rungwise.metrics._rankings import JudgedQueries
    >>> from rungwise.metrics._rankings import rank_all
    >>> shown = JudgedQueries(cuts=np.array([2]), beliefs=np.array([0.9]))
    >>> CutRecall(0.5).per_query(rank_all([[0.9, 0.8, 0.1]], [[0]], relevance=[[1.0, 0.2, 0.7]], judged=shown))
    array([50.])
    """

    t: float
    name: ClassVar[str] = "CutRecall"
    meaning: ClassVar[str] = "Percentage of the candidates with a degree of t or more that are shown before the cut."

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        cut = _Cut.of(rankings, self.t)
        return cut.share(cut.right, cut.relevant)

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Numbers of queries without a judged candidate, and of those to which nothing is relevant."""
        cut = _Cut.of(rankings, self.t)
        return cut.remarks("nothing relevant, counted 100", cut.relevant == 0)


@dataclass(frozen=True)
class NoneAUROC(EndMeasure):
    """NoneAUROC(t): how well a method's belief tells queries that have a relevant candidate from those that have none.

    The area under the ROC curve, 0 to 1: the probability that a query with a candidate of degree ``t`` or more is
    believed more than a query without one; ties count half. It has no value unless there are queries of both kinds. A
    query's value is a row of two: the belief, and 1 or 0 for whether it has a relevant candidate.

    >>> from rungwise.metrics._rankings import JudgedQueries
    >>> from rungwise.metrics._rankings import rank_all
    >>> said = JudgedQueries(cuts=np.array([1, 0]), beliefs=np.array([0.9, 0.2]))
    >>> rankings = rank_all([[0.9, 0.8], [0.3, 0.1]], [[0], []], relevance=[[1.0, 0.2], [0.1, 0.3]], judged=said)
    >>> NoneAUROC(t=0.5).aggregate(NoneAUROC(t=0.5).per_query(rankings))
    1.0
    """

    t: float = 0.5
    name: ClassVar[str] = "NoneAUROC"
    meaning: ClassVar[str] = (
        "Area under the ROC curve of telling queries with a candidate of degree t or more from "
        "those without; 0.5 is chance."
    )
    unit: ClassVar[str] = FRACTION
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    parts: ClassVar[int] = 2

    @property
    def value_bounds(self) -> tuple[float, float]:
        """No bounds: beliefs of some methods are similarities, and only their order counts."""
        return -np.inf, np.inf

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries, 2) belief, and 1 or 0 for whether a candidate is relevant."""
        something = (rankings.relevance >= self.t).any(axis=1).astype(np.float64)
        rows = np.stack([rankings.judged.beliefs, something], axis=1)
        rows[np.isnan(rankings.relevance).all(axis=1)] = np.nan
        return rows

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Numbers of queries without a judged candidate, and of those to which nothing is relevant."""
        unjudged = np.isnan(rankings.relevance).all(axis=1)
        none = ~(rankings.relevance >= self.t).any(axis=1) & ~unjudged
        reasons = {_UNJUDGED: unjudged, "have nothing relevant": none}
        return {reason: int(which.sum()) for reason, which in reasons.items() if which.any()}

    def of_query(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(queries,) share of the queries of the other kind that are ordered rightly with this one.

        The mean over the queries of either kind is the area (DeLong et al. 1988).
        """
        shares = np.full(len(values), np.nan)
        something, nothing = values[:, 1] == 1, values[:, 1] == 0
        if something.any() and nothing.any():
            shares[something] = _below(values[something, 0], values[nothing, 0])
            shares[nothing] = 1 - _below(values[nothing, 0], values[something, 0])
        return shares

    def aggregate(self, values: NDArray[np.float64]) -> float:
        """Area under the ROC curve; NaN without queries of both kinds."""
        return float(self.aggregate_draws(values, np.ones((1, len(values))))[0])

    def aggregate_draws(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """(draws,) areas, where each query counts as often as it was drawn."""
        known = ~np.isnan(values[:, 0])
        values, weights = values[known], weights[:, known]
        nothing_at_all = np.full(len(weights), np.nan)
        if not len(values):
            return nothing_at_all
        order = np.argsort(values[:, 0], kind="stable")
        beliefs, something = values[order, 0], values[order, 1]
        starts = np.flatnonzero(np.concatenate([[True], beliefs[1:] != beliefs[:-1]]))
        weights = weights[:, order]
        # (draws, different beliefs): how many queries of each kind have each belief.
        with_one = np.add.reduceat(weights * something, starts, axis=1)
        without = np.add.reduceat(weights * (1 - something), starts, axis=1)
        below = np.cumsum(without, axis=1) - without
        pairs = with_one.sum(axis=1) * without.sum(axis=1)
        areas = (with_one * (below + without / 2)).sum(axis=1)
        return np.asarray(np.divide(areas, pairs, out=nothing_at_all, where=pairs > 0))


def _below(values: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """(values,) share of the others that is lower; equal ones count half."""
    others = np.sort(others)
    both = np.searchsorted(others, values, "left") + np.searchsorted(others, values, "right")
    return np.asarray(both / (2 * len(others)))


class ExpectedDegrees(EndMeasure):
    """A measure of the degrees that a method expects, compared with those of the source.

    Attributes:
        k: Number of best hits to read; None reads every candidate.
        scale: The highest degree, of which errors are shares; None stands for 1.
    """

    k: int | None
    scale: float | None
    unit: ClassVar[str] = FRACTION
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale is not None and self.scale <= 0:
            raise UserError(f"{self}: scale must be above 0, got {self.scale:g}; give the highest degree there can be")

    def _both(self, rankings: Rankings) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(queries, candidates or K) expected and true degrees as shares of the scale; NaN where nobody judged."""
        expected: Scores | None = rankings.judged.degrees
        if expected is None:
            raise UserError(
                f"{self} needs the degrees that a method expects, and this one only cuts; give a Calibration as ends,"
                " or leave it out"
            )
        actual = rankings.relevance if self.k is None else rankings.degrees_of_top(self.k)
        if self.k is not None:
            expected = np.take_along_axis(expected, rankings.top(self.k), axis=1)
        top = self.scale or 1.0
        highest = max(float(np.nanmax(values, initial=-np.inf)) for values in (actual, expected))
        if highest > top * (1 + _BOUND):
            raise UserError(
                f"{self}: a degree is {highest:.4g}, beyond its scale of {top:g}; give the highest degree that there"
                f" can be, such as {self.name}(scale={np.ceil(highest):g})"
            )
        return np.asarray(expected, dtype=np.float64) / top, np.asarray(actual, dtype=np.float64) / top

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Number of queries without a judged hit."""
        actual = rankings.relevance if self.k is None else rankings.degrees_of_top(self.k)
        unjudged = int(np.isnan(actual).all(axis=1).sum())
        return {_UNJUDGED: unjudged} if unjudged else {}


@dataclass(frozen=True)
class ECE(ExpectedDegrees):
    """ECE, expected calibration error: how far expected degrees are from the true ones, on average over ten bins.

    Pairs are put into ten equal bins by expected degree. The differences between mean expected and mean true degree
    are added, weighted by the share of pairs in each bin (Guo et al. 2017, Eq. 3, with degrees in place of right and
    wrong). Every query weighs the same. 0 is best, 1 worst. ``ECE@10`` reads the ten best hits of each query alone,
    which people look at: over all candidates the many irrelevant ones decide. A query's value is a row of ten: in each
    bin, the sum of expected minus true degree, over the number of its pairs. ``ECE(scale=10)`` is for degrees from 0 to
    10.

    >>> from rungwise.metrics._rankings import JudgedQueries
    >>> from rungwise.metrics._rankings import rank_all
    >>> said = JudgedQueries(np.array([1]), np.array([0.9]), degrees=np.array([[0.95, 0.05]]))
    >>> measure, rankings = ECE(), rank_all([[0.9, 0.8]], [[0]], relevance=[[1.0, 0.0]], judged=said)
    >>> measure.per_query(rankings).shape, round(measure.aggregate(measure.per_query(rankings)), 3)
    ((1, 10), 0.05)
    """

    k: int | None = None
    scale: float | None = None
    name: ClassVar[str] = "ECE"
    meaning: ClassVar[str] = (
        "Expected calibration error: how far expected degrees are from true ones, on average "
        "over ten bins; @K reads the first K."
    )
    parts: ClassVar[int] = BINS

    @property
    def value_bounds(self) -> tuple[float, float]:
        """Bounds of signed differences; degrees that are cosines may lie a little below 0."""
        return -2.0, 2.0

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries, 10) sums of differences in each bin over the number of pairs."""
        expected, actual = self._both(rankings)
        known = ~np.isnan(actual)
        bins = np.clip((expected * BINS).astype(np.int64), 0, BINS - 1)
        bins += BINS * np.arange(len(bins))[:, None]
        difference = np.where(known, expected - actual, 0)
        sums = np.bincount(bins.ravel(), weights=difference.ravel(), minlength=BINS * len(bins)).reshape(-1, BINS)
        pairs = known.sum(axis=1)[:, None]
        return np.asarray(np.divide(sums, pairs, out=np.full(sums.shape, np.nan), where=pairs > 0))

    def of_query(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(queries,) error of each query by itself."""
        return np.asarray(np.abs(values).sum(axis=1))

    def aggregate(self, values: NDArray[np.float64]) -> float:
        """Sum over bins of absolute mean differences; NaN without a judged query."""
        return float(self.aggregate_draws(values, np.ones((1, len(values))))[0])

    def aggregate_draws(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """(draws,) errors, where each query counts as often as it was drawn."""
        known = ~np.isnan(values[:, 0])
        values, weights = values[known], weights[:, known]
        counts = weights.sum(axis=1)
        nothing = np.full(len(weights), np.nan)
        return np.asarray(np.divide(np.abs(weights @ values).sum(axis=1), counts, out=nothing, where=counts > 0))


@dataclass(frozen=True)
class Brier(ExpectedDegrees):
    """Brier score of expected degrees: the mean square of expected minus true degree (Brier 1950). 0 is best.

    ``Brier@10`` reads the ten best hits of each query alone, and ``Brier(scale=10)`` is for degrees from 0 to 10.

    >>> from rungwise.metrics._rankings import JudgedQueries
    >>> from rungwise.metrics._rankings import rank_all
    >>> said = JudgedQueries(np.array([1]), np.array([0.9]), degrees=np.array([[0.8, 0.0]]))
    >>> Brier().per_query(rank_all([[0.9, 0.8]], [[0]], relevance=[[1.0, 0.0]], judged=said)).round(3)
    array([0.02])
    """

    k: int | None = None
    scale: float | None = None
    name: ClassVar[str] = "Brier"
    meaning: ClassVar[str] = (
        "Mean square of expected less true degree of relevance, 0 is best; @K reads the first K candidates."
    )

    @property
    def value_bounds(self) -> tuple[float, float]:
        """Bounds of squares; degrees that are cosines may lie a little below 0."""
        return 0.0, 4.0

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) mean squared errors."""
        expected, actual = self._both(rankings)
        known = ~np.isnan(actual)
        squares = np.where(known, (expected - actual) ** 2, 0).sum(axis=1)
        pairs = known.sum(axis=1)
        return np.asarray(np.divide(squares, pairs, out=np.full(len(squares), np.nan), where=pairs > 0))
