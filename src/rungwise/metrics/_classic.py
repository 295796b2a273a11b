"""Measures of right and wrong candidates: they read the ranks of a query's positives.

A query without a positive has NaN and is left out of the mean; the number of such queries is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.metrics._measures import RANK, Measure, Total
from rungwise.metrics._rankings import Rankings


@dataclass(frozen=True)
class PositiveMeasure(Measure):
    """A measure of the positives' ranks."""

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Number of queries without a positive, which have no value."""
        none = int((rankings.positives.counts == 0).sum())
        return {"no positive, left out": none} if none else {}


@dataclass(frozen=True)
class R(PositiveMeasure):
    """R@K, the field's any-hit recall: 100 where a positive stands in the top K, else 0.

    With several positives a query this is *not* the share of positives found (that is :class:`Recall`). VSE++ and its
    successors print this one for both directions, and SAM calls it R^V (Biten et al. 2022, section 3.1).

    >>> from rungwise.metrics._rankings import rank_all
    >>> R(k=1).per_query(rank_all([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]], [[0, 1], [2]]))
    array([100.,   0.])
    """

    k: int
    name: ClassVar[str] = "R"
    meaning: ClassVar[str] = "Percentage of queries with at least one right candidate among the first K."

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) 0 or 100 for each query."""
        best = rankings.best_rank
        return np.where(np.isnan(best), np.nan, 100.0 * (best <= self.k))


@dataclass(frozen=True)
class Recall(PositiveMeasure):
    """Recall@K, the true fraction: 100 x positives in the top K / positives (Biten et al. 2022, Eq. 1).

    With five captions an image it cannot pass 20 at K = 1 for image queries.

    >>> from rungwise.metrics._rankings import rank_all
    >>> Recall(k=1).per_query(rank_all([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]], [[0, 1], [2]]))
    array([50.,  0.])
    """

    k: int
    name: ClassVar[str] = "Recall"
    meaning: ClassVar[str] = (
        "Percentage of a query's right candidates that stand among the first K, averaged over queries."
    )

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        hits = rankings.positives.sum_per_query(rankings.positive_ranks <= self.k)
        return 100.0 * rankings.positives.divide_by_counts(hits)


@dataclass(frozen=True)
class MeanR(PositiveMeasure):
    """Mean rank of the best positive, counted from 1.

    >>> from rungwise.metrics._rankings import rank_all
    >>> MeanR().per_query(rank_all([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]], [[0, 1], [2]]))
    array([1., 3.])
    """

    name: ClassVar[str] = "MeanR"
    meaning: ClassVar[str] = "Mean rank of each query's best right candidate, counted from 1."
    unit: ClassVar[str] = RANK
    bounds: ClassVar[tuple[float, float]] = (1.0, float("inf"))
    higher_is_better: ClassVar[bool] = False

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) ranks from 1."""
        return rankings.best_rank


@dataclass(frozen=True)
class MedR(MeanR):
    """Median rank of the best positive as the VSE++ program takes it: floor(median of ranks from 0) + 1.

    >>> MedR().aggregate(np.array([1.0, 2.0, 5.0, 9.0]))
    3.0
    """

    name: ClassVar[str] = "MedR"
    meaning: ClassVar[str] = "Median rank of each query's best right candidate, counted from 1 and rounded down."

    def aggregate(self, values: NDArray[np.float64]) -> float:
        """Floored median over the queries that have a value."""
        known = values[~np.isnan(values)]
        return float(np.floor(np.median(known - 1)) + 1) if known.size else float("nan")

    def aggregate_draws(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """(draws,) floored medians."""
        order = np.argsort(values, kind="stable")[: int((~np.isnan(values)).sum())]  # NaN sorts last
        if not order.size:
            return np.full(len(weights), np.nan)
        ranks, up_to = values[order], np.cumsum(weights[:, order], axis=1)
        total = up_to[:, -1:]
        lower, upper = (ranks[(up_to <= np.floor(middle)).argmin(axis=1)] for middle in ((total - 1) / 2, total / 2))
        return np.where(total[:, 0] > 0, np.floor((lower + upper) / 2 - 1) + 1, np.nan)


@dataclass(frozen=True)
class MRR(PositiveMeasure):
    """Mean reciprocal rank of the best positive, times 100.

    >>> from rungwise.metrics._rankings import rank_all
    >>> MRR().per_query(rank_all([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]], [[1], [1]]))
    array([50., 50.])
    """

    name: ClassVar[str] = "MRR"
    meaning: ClassVar[str] = "Mean reciprocal rank: the mean over queries of 100 / rank of the best right candidate."

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        return 100.0 / rankings.best_rank


@dataclass(frozen=True)
class P(PositiveMeasure):
    """P@K, precision: 100 x positives in the top K / K.

    A gallery of fewer than K candidates is divided by K all the same, as trec_eval does: places that no candidate can
    take count as wrong.

    >>> from rungwise.metrics._rankings import rank_all
    >>> rankings = rank_all([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]], [[0, 1], [2]])
    >>> P(k=2).per_query(rankings), P(k=4).per_query(rankings)
    (array([100.,   0.]), array([50., 25.]))
    """

    k: int
    name: ClassVar[str] = "P"
    meaning: ClassVar[str] = "Percentage of the first K candidates that are right (precision), averaged over queries."

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        positives = rankings.positives
        hits = positives.sum_per_query(rankings.positive_ranks <= self.k)
        return np.where(positives.counts > 0, 100.0 * hits / self.k, np.nan)


@dataclass(frozen=True)
class MAP(PositiveMeasure):
    """Mean average precision over the full list: mean over positives of the precision at each one's rank, times 100.

    MAP@K, such as ``MAP@50``, reads the first K ranks: (1/T) x sum over ranks r <= K of the precision at each hit,
    times 100, where T is the number of positives among the first K; 0 where there is none. So do papers on class labels
    of images and texts (Wang et al. 2013, LCFS, after Rasiwasia et al. 2010) and torchmetrics.

    Others give the same name to other numbers. Here, a query with a single hit has 100 if that is at rank 1, however
    many positives were missed. ``MAP@50(of_possible)`` divides by min(K, positives), the hits of a perfect ranking, as
    competitions do. trec_eval divides by all positives, so that a perfect ranking has less than 100 where these are
    more than K. If K is the size of the gallery or more, all three are MAP.

    >>> from rungwise.metrics._rankings import rank_all
    >>> rankings = rank_all([[0.9, 0.8, 0.1, 0.0]], [[0, 2]])
    >>> MAP().per_query(rankings).round(2), MAP(k=2).per_query(rankings), MAP(2, of_possible=True).per_query(rankings)
    (array([83.33]), array([100.]), array([50.]))
    >>> str(MAP(50)), str(MAP(50, of_possible=True))
    ('MAP@50', 'MAP@50(of_possible)')
    """

    k: int | None = None
    of_possible: bool = False
    name: ClassVar[str] = "MAP"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.of_possible and self.k is None:
            raise UserError("MAP(of_possible) is MAP: the full list holds every positive; write MAP, or such as MAP@50")

    @property
    def definition(self) -> str:
        """One sentence, by the divisor that the options choose."""
        if self.k is None:
            return "Mean average precision: precision at each right candidate's rank, averaged over these and queries."
        over = "the smaller of K and all right ones" if self.of_possible else "the number of right ones there"
        return f"Precision at each right one of the first K candidates, added up, over {over}, averaged over queries."

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        positives = rankings.positives
        precision = positives.place_in_query / rankings.positive_ranks
        if self.k is None:
            return 100.0 * positives.divide_by_counts(positives.sum_per_query(precision))
        inside = rankings.positive_ranks <= self.k
        sums = positives.sum_per_query(np.where(inside, precision, 0.0))
        terms = np.minimum(positives.counts, self.k) if self.of_possible else positives.sum_per_query(inside)
        values = np.divide(sums, terms, out=np.zeros(len(sums)), where=terms > 0)
        return np.where(positives.counts > 0, 100.0 * values, np.nan)

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Numbers of queries without a positive, and of those with none among the first K, whose formula is 0 / 0."""
        found = super().remarks(rankings)
        if self.k is not None and not self.of_possible:
            nothing = int((rankings.best_rank > self.k).sum())
            found |= {f"nothing right in the first {self.k}, counted 0": nothing} if nothing else {}
        return found


LEVELS = 11
"""Levels of recall of :class:`AP11`: 0, 0.1, ..., 1."""


@dataclass(frozen=True)
class AP11(PositiveMeasure):
    """AP11: mean of the interpolated precision at recall 0, 0.1, ..., 1, in percent (Salton and McGill 1983).

    The interpolated precision at a level is the largest precision at any rank whose recall reaches the level. A query's
    value is a row of eleven, one a level, so that their means over queries are the 11-point precision-recall curve. A
    level that falls on a positive is reached with it: 3 of 10 positives are a recall of 0.3. It is no approximation of
    :class:`MAP`, which counts each positive alike: few positives reach several levels at once.

    >>> from rungwise.metrics._rankings import rank_all
    >>> rows = AP11().per_query(rank_all([[0.9, 0.8, 0.7, 0.1]], [[0, 2]]))
    >>> rows.round(1).tolist()
    [[100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 66.7, 66.7, 66.7, 66.7, 66.7]]
    >>> round(AP11().aggregate(rows), 2)
    84.85
    """

    name: ClassVar[str] = "AP11"
    meaning: ClassVar[str] = (
        "The best precision at recall 0, 0.1, ..., 1 or above, averaged over these eleven levels "
        "and over queries, in percent."
    )
    parts: ClassVar[int] = LEVELS

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries, 11) percentages, one for each level."""
        positives = rankings.positives
        values = np.full((len(positives.counts), LEVELS), np.nan)
        known = positives.counts > 0
        if known.any():
            precision = positives.place_in_query / rankings.positive_ranks
            # Whole numbers: the positive that reaches level j of 10 is number ceil(j x positives / 10), at least 1.
            steps = LEVELS - 1
            reaches = np.maximum(1, -(-np.arange(LEVELS) * positives.counts[known, None] // steps))
            first = positives.starts[:-1][known, None] + reaches - 1
            between = np.maximum.reduceat(precision, first.ravel()).reshape(-1, LEVELS)
            values[known] = 100.0 * np.maximum.accumulate(between[:, ::-1], axis=1)[:, ::-1]
        return values

    def of_query(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(queries,) means over the levels."""
        return np.asarray(values.mean(axis=1))

    def aggregate(self, values: NDArray[np.float64]) -> float:
        """Mean over the queries that have a value."""
        return super().aggregate(self.of_query(values))

    def aggregate_draws(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """(draws,) means, where each query counts as often as it was drawn."""
        return super().aggregate_draws(self.of_query(values), weights)


@dataclass(frozen=True)
class MAPAtR(PositiveMeasure):
    """MAP@R: (1/R) x sum over the first R ranks of the precision at each hit, R = positives of the query, times 100.

    Musgrave et al. 2020; ECCV Caption (Chun et al. 2022) reports it.

    >>> from rungwise.metrics._rankings import rank_all
    >>> MAPAtR().per_query(rank_all([[0.9, 0.8, 0.1, 0.0]], [[0, 2]]))
    array([50.])
    """

    name: ClassVar[str] = "MAP@R"
    meaning: ClassVar[str] = (
        "Precision at each right one of the first R candidates, added up, over R, times 100; R "
        "is the query's number of right candidates."
    )

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        positives = rankings.positives
        inside = rankings.positive_ranks <= positives.counts[positives.query]
        precision = np.where(inside, positives.place_in_query / rankings.positive_ranks, 0.0)
        return 100.0 * positives.divide_by_counts(positives.sum_per_query(precision))


@dataclass(frozen=True)
class RPrecision(PositiveMeasure):
    """Share of positives among the first R ranks, R = positives of the query, times 100.

    >>> from rungwise.metrics._rankings import rank_all
    >>> RPrecision().per_query(rank_all([[0.9, 0.8, 0.1, 0.0]], [[0, 2]]))
    array([50.])
    """

    name: ClassVar[str] = "RPrecision"
    meaning: ClassVar[str] = (
        "Percentage of the first R candidates that are right, where R is the query's number of right candidates."
    )

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        positives = rankings.positives
        inside = rankings.positive_ranks <= positives.counts[positives.query]
        return 100.0 * positives.divide_by_counts(positives.sum_per_query(inside))


RSUM = Total("rsum", (R(1), R(5), R(10)))
"""R@1 + R@5 + R@10 of both directions; 600 at most."""
