"""How well numbers agree with people's: correlations, rank correlations and preferences, with bootstrap intervals.

Kendall's tau comes in two kinds where grades are tied. Tau-b divides by the pairs that are tied in neither, and reaches
1 only where both have the same ties. Tau-c (Stuart) divides by what the coarser of both could reach at most, so that a
source of fine degrees can reach 1 against four grades. The captioning literature uses both, each for certain data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, pearson_and_spearman
from rungwise.relevance._base import Positions
from rungwise.relevance.human import Ratings

Numbers = NDArray[np.float64]

CORRELATIONS = ("Pearson", "Spearman", "Kendall tau-b", "Kendall tau-c")
"""Names of the numbers that :func:`correlations` gives, in its order."""

LEVEL = 0.95
"""Confidence level of the intervals."""

FEWEST = 10
"""Fewest items with an interval; draws from fewer are mostly the same few again."""


@dataclass(frozen=True)
class Estimate:
    """A number, and the interval of 95 % of its bootstrap draws.

    Attributes:
        value: The number; NaN where it is not defined.
        low: Lower end of the interval; NaN without draws.
        high: Upper end of the interval; NaN without draws.

    >>> print(Estimate(0.7123, 0.701, 0.7251))
    0.712 [0.701, 0.725]
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "-"
        return f"{self.value:.3f}" + ("" if np.isnan(self.low) else f" [{self.low:.3f}, {self.high:.3f}]")


def correlations(degrees: Numbers, grades: Numbers) -> Numbers:
    """(4,) Pearson, Spearman, tau-b and tau-c of two finite (n,) lists; NaN where one of them is constant.

    >>> correlations(np.array([0.1, 0.4, 0.3, 0.9]), np.array([1.0, 2.0, 2.0, 4.0])).round(3)
    array([0.992, 0.949, 0.913, 0.938])
    """
    if len(degrees) < 2 or np.ptp(degrees) == 0 or np.ptp(grades) == 0:
        return np.full(len(CORRELATIONS), np.nan)
    return np.array([*pearson_and_spearman(degrees, grades), *_taus(degrees, grades)])


def _taus(x: Numbers, y: Numbers) -> tuple[float, float]:
    """Tau-b by scipy, and tau-c from the same count of pairs, which is the costly part of both."""
    from scipy.stats import kendalltau

    tau_b = float(kendalltau(x, y, variant="b").statistic)
    n = len(x)
    pairs = n * (n - 1) / 2
    values = [np.unique(side, return_counts=True)[1].astype(np.float64) for side in (x, y)]
    untied = [pairs - float((counts * (counts - 1)).sum()) / 2 for counts in values]
    concordant = tau_b * float(np.sqrt(untied[0]) * np.sqrt(untied[1]))
    fewest = min(map(len, values))
    return tau_b, 2 * concordant / (n**2 * (fewest - 1) / fewest)


def flattened(degrees: Numbers, ratings: Ratings) -> tuple[Numbers, Numbers]:
    """Every single rating beside the degree of its item: the lists that tau of single ratings compares.

    Args:
        degrees: (items,) finite.
        ratings: (items, raters), NaN for none.
    """
    given = ~np.isnan(ratings)
    return np.repeat(degrees, given.sum(axis=1)), ratings[given]


def of_each_rater(degrees: Numbers, ratings: Ratings) -> Numbers:
    """(4,) :func:`correlations` with each rater's grades, averaged over raters; NaN where none is defined.

    Args:
        degrees: (items,) finite.
        ratings: (items, raters), a column for each rater; NaN for none.
    """
    single = [correlations(degrees[given], column[given]) for column in ratings.T if (given := ~np.isnan(column)).any()]
    table = np.array(single).reshape(-1, len(CORRELATIONS))
    known = ~np.isnan(table)
    counts = known.sum(axis=0)
    sums = np.where(known, table, 0).sum(axis=0)
    return np.asarray(np.divide(sums, counts, out=np.full(len(CORRELATIONS), np.nan), where=counts > 0), np.float64)


def accuracy(first: Numbers, second: Numbers, preferred: Numbers) -> float:
    """How often the candidate that people prefer has the higher degree; NaN without pairs.

    Equal degrees count half, and so do equal votes: programs that toss a coin there come to the same on average.

    Args:
        first: (pairs,) degrees of the first candidate.
        second: (pairs,) degrees of the second candidate.
        preferred: (pairs,) 1 for the first, -1 for the second, 0 for neither.

    >>> accuracy(np.array([0.9, 0.2, 0.5]), np.array([0.1, 0.3, 0.5]), np.array([1.0, 1.0, -1.0]))
    0.5
    """
    if not len(preferred):
        return float("nan")
    return float((1 + np.sign(first - second) * preferred).mean() / 2)


def estimates(statistic: Callable[[Positions], Numbers], items: int, draws: int, seed: int) -> list[Estimate]:
    """Statistics of all items, each with the interval of bootstrap draws of the items, with replacement.

    Args:
        statistic: Computes the numbers of the items at given positions.
        items: Number of items.
        draws: Number of draws; with 0, or with fewer than 10 items, there are no intervals.
        seed: Seed of the draws.

    >>> values = np.arange(100.0)
    >>> [print(one) for one in estimates(lambda at: np.array([values[at].mean()]), 100, 1000, seed=0)]
    49.500 [43.819, 54.951]
    [None]
    """
    if draws < 0:
        raise UserError(f"draws must be 0 or more, got {draws}")
    whole = statistic(np.arange(items))
    if not draws or items < FEWEST:
        return [Estimate(float(value), float("nan"), float("nan")) for value in whole]
    generator = np.random.default_rng(seed)
    drawn = np.array([statistic(generator.integers(0, items, items)) for _ in range(draws)])
    return [_estimate(value, drawn[:, at]) for at, value in enumerate(whole)]


def _estimate(value: float, draws: Numbers) -> Estimate:
    known = draws[~np.isnan(draws)]
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]) if known.size else (np.nan, np.nan)
    return Estimate(float(value), float(low), float(high))
