"""Measures that correlate the order by S with the order by R, and Kendall's correlation of many lists at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rungwise.core import spearman
from rungwise.core.compute import SORTING, in_threads, taken, top_columns
from rungwise.metrics._graded import GradedMeasure
from rungwise.metrics._measures import CORRELATION
from rungwise.metrics._rankings import Rankings, Scores


def tau_b(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Kendall's tau-b of each row in O(K log K); 0 where x or y is constant.

    Lists that already fall in x, as retrieved ones do, are not sorted again.

    Args:
        x: (rows, K) finite values.
        y: (rows, K) finite values.

    Returns:
        (rows,) correlations in -1..1, the values of ``scipy.stats.kendalltau`` where that is not NaN.

    >>> tau_b(np.array([[1, 2, 3], [1, 1, 1]]), np.array([[1, 3, 2], [1, 2, 3]])).round(4)
    array([0.3333, 0.    ])
    """
    from rungwise.metrics import _kernels as kernels  # numba takes a while to load

    rows, length = x.shape
    if (x[:, 1:] > x[:, :-1]).any():
        order = top_columns(x, length)
        x, y = taken(x, order), taken(y, order)
    else:
        y = np.array(y, order="C")
    tied, tau = np.empty((rows, 2), dtype=np.int64), np.empty(rows)
    in_threads(partial(kernels.untie_in_rows, np.ascontiguousarray(x), y, tied), rows, x.size)
    order = top_columns(-y, length)
    in_threads(partial(kernels.tau_in_rows, y, order, tied, tau), rows, SORTING * x.size)
    return tau


@dataclass(frozen=True)
class CorrelationMeasure(GradedMeasure):
    """Agreement of the order by S with the order by R among the first candidates; constant S or R counts 0."""

    unit: ClassVar[str] = CORRELATION
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def _lists(self, rankings: Rankings) -> tuple[Scores, Scores]:
        return rankings.scores_of_top(self.depth), rankings.degrees_of_top(self.depth)

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Number of queries whose S or R is constant over the list, so that there is no order to agree with."""
        constant = np.logical_or(*((values == values[:, :1]).all(axis=1) for values in self._lists(rankings)))
        return {"constant S or R, counted 0": int(constant.sum())} if constant.any() else {}


@dataclass(frozen=True)
class CS(CorrelationMeasure):
    """CS@K, coherent score: Kendall's tau-b between S and R over the K candidates that S ranks first.

    Values are compared, not ranks, and the expected order is that of the *same* K candidates by relevance, as the
    authors' program computes it (Zhou et al. 2020, Coherent Score). Under the protocol ``full`` every caption is a
    query and a candidate; the published tables are those of ``one-caption-per-image``.

    >>> from rungwise.metrics._rankings import rank_all
    >>> CS(k=3).per_query(rank_all([[0.9, 0.8, 0.7, 0.1]], [[0]], relevance=[[1.0, 0.2, 0.3, 0.9]])).round(4)
    array([0.3333])
    """

    k: int
    name: ClassVar[str] = "CS"
    meaning: ClassVar[str] = (
        "Coherent score: rank correlation (Kendall's tau-b) of similarity and degree among the K "
        "candidates that stand first, -1 to 1."
    )

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) correlations."""
        return tau_b(*self._lists(rankings))


@dataclass(frozen=True)
class Kendall(CorrelationMeasure):
    """Kendall's tau-b between S and R over the whole gallery.

    >>> from rungwise.metrics._rankings import rank_all
    >>> Kendall().per_query(rank_all([[0.9, 0.8, 0.7]], [[0]], relevance=[[1.0, 0.5, 0.2]]))
    array([1.])
    """

    name: ClassVar[str] = "Kendall"
    meaning: ClassVar[str] = (
        "Rank correlation (Kendall's tau-b) of similarity and degree over the whole gallery, -1 to 1."
    )

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) correlations."""
        return tau_b(*self._lists(rankings))


@dataclass(frozen=True)
class Spearman(CorrelationMeasure):
    """Spearman's rank correlation between S and R over the whole gallery; ties share their mean rank.

    >>> from rungwise.metrics._rankings import rank_all
    >>> Spearman().per_query(rank_all([[0.9, 0.8, 0.7]], [[0]], relevance=[[1.0, 0.2, 0.5]]))
    array([0.5])
    """

    name: ClassVar[str] = "Spearman"
    meaning: ClassVar[str] = "Rank correlation (Spearman's) of similarity and degree over the whole gallery, -1 to 1."

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) correlations."""
        return np.nan_to_num(spearman(*self._lists(rankings)))  # 0 where there is no correlation, as of tau-b
