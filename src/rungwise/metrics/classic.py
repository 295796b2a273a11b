"""Measures that know right answers from wrong ones only: they read the ranks of a query's positives.

A query without a positive gets NaN and is left out of the mean; how many were is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rungwise.metrics.measures import RANK, Measure, Total
from rungwise.metrics.rankings import Rankings


@dataclass(frozen=True)
class PositiveMeasure(Measure):
    """A measure of where the positives stand."""

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Queries without a positive, which have no value."""
        none = int((rankings.positives.counts == 0).sum())
        return {"no positive, left out": none} if none else {}


@dataclass(frozen=True)
class R(PositiveMeasure):
    """R@K, the field's any-hit recall: 100 where a positive stands in the top K, else 0.

    With several positives a query this is *not* the share of positives found (that is :class:`Recall`). VSE++ and its
    successors print this one for both directions, and SAM calls it R^V (Biten et al. 2022, section 3.1).

    >>> from rungwise.metrics.rankings import rank_all
    >>> R(k=1).per_query(rank_all([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]], [[0, 1], [2]]))
    array([100.,   0.])
    """

    k: int
    name: ClassVar[str] = "R"

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) 0 or 100."""
        best = rankings.best_rank
        return np.where(np.isnan(best), np.nan, 100.0 * (best <= self.k))


@dataclass(frozen=True)
class Recall(PositiveMeasure):
    """Recall@K, the true fraction: 100 x positives in the top K / positives (Biten et al. 2022, Eq. 1).

    With five captions an image it cannot pass 20 at K = 1 for image queries.

    >>> from rungwise.metrics.rankings import rank_all
    >>> Recall(k=1).per_query(rank_all([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]], [[0, 1], [2]]))
    array([50.,  0.])
    """

    k: int
    name: ClassVar[str] = "Recall"

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) 0..100."""
        hits = rankings.positives.sum_per_query(rankings.positive_ranks <= self.k)
        return 100.0 * rankings.positives.divide_by_counts(hits)


@dataclass(frozen=True)
class MeanR(PositiveMeasure):
    """Mean rank of the best positive, counted from 1.

    >>> from rungwise.metrics.rankings import rank_all
    >>> MeanR().per_query(rank_all([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]], [[0, 1], [2]]))
    array([1., 3.])
    """

    name: ClassVar[str] = "MeanR"
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

    def aggregate(self, values: NDArray[np.float64]) -> float:
        """The floored median over queries that have a value."""
        known = values[~np.isnan(values)]
        return float(np.floor(np.median(known - 1)) + 1) if known.size else float("nan")

    def aggregate_draws(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """The floored median of every draw."""
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

    >>> from rungwise.metrics.rankings import rank_all
    >>> MRR().per_query(rank_all([[0.9, 0.8, 0.1], [0.3, 0.2, 0.1]], [[1], [1]]))
    array([50., 50.])
    """

    name: ClassVar[str] = "MRR"

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) 0..100."""
        return 100.0 / rankings.best_rank


@dataclass(frozen=True)
class MAP(PositiveMeasure):
    """Mean average precision over the full list: mean over positives of the precision at each one's rank, times 100.

    >>> from rungwise.metrics.rankings import rank_all
    >>> MAP().per_query(rank_all([[0.9, 0.8, 0.1, 0.0]], [[0, 2]])).round(2)
    array([83.33])
    """

    name: ClassVar[str] = "MAP"

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) 0..100."""
        precision = rankings.positives.place_in_query / rankings.positive_ranks
        return 100.0 * rankings.positives.divide_by_counts(rankings.positives.sum_per_query(precision))


@dataclass(frozen=True)
class MAPAtR(PositiveMeasure):
    """MAP@R: (1/R) x sum over the first R ranks of the precision at each hit, R = positives of the query, times 100.

    Musgrave et al. 2020; ECCV Caption (Chun et al. 2022) reports it.

    >>> from rungwise.metrics.rankings import rank_all
    >>> MAPAtR().per_query(rank_all([[0.9, 0.8, 0.1, 0.0]], [[0, 2]]))
    array([50.])
    """

    name: ClassVar[str] = "MAP@R"

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) 0..100."""
        positives = rankings.positives
        inside = rankings.positive_ranks <= positives.counts[positives.query]
        precision = np.where(inside, positives.place_in_query / rankings.positive_ranks, 0.0)
        return 100.0 * positives.divide_by_counts(positives.sum_per_query(precision))


@dataclass(frozen=True)
class RPrecision(PositiveMeasure):
    """Share of positives among the first R ranks, R = positives of the query, times 100.

    >>> from rungwise.metrics.rankings import rank_all
    >>> RPrecision().per_query(rank_all([[0.9, 0.8, 0.1, 0.0]], [[0, 2]]))
    array([50.])
    """

    name: ClassVar[str] = "RPrecision"

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) 0..100."""
        positives = rankings.positives
        inside = rankings.positive_ranks <= positives.counts[positives.query]
        return 100.0 * positives.divide_by_counts(positives.sum_per_query(inside))


RSUM = Total("rsum", (R(1), R(5), R(10)))
"""R@1 + R@5 + R@10 of both directions; 600 at best."""
