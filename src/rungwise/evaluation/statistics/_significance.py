"""Tests of differences: paired over pictures, paired over seeds, corrected for their number; intervals of shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from rungwise.core.formats import IN_FILE, Number
from rungwise.evaluation.statistics._intervals import (
    Interval,
    MeasureTerm,
    Numbers,
    PerQuery,
    check_level,
    interval_of,
    terms_of,
)
from rungwise.metrics import PERCENT

_MOST_SEEDS = 10_000
"""Largest number of seeds that :func:`seeds_to_show` answers."""


@dataclass(frozen=True)
class PairedTest:
    """A two-sided paired test of a difference between two systems.

    Attributes:
        over: What is drawn anew: ``"pictures"``, by the bootstrap of the mean over seeds; ``"seeds"``, by Student's t
            over the differences of the seeds that both systems have.
        count: Number of pictures, or of seeds.
        interval: Interval of the difference, in its own unit.
        p: P-value.
        at_most: Whether the p-value may be smaller: the number of draws bounds it.
        p_holm: P-value after Holm's correction for all systems that are compared by the same number.
    """

    __pydantic_config__ = IN_FILE

    over: Literal["pictures", "seeds"]
    count: int
    interval: Interval
    p: Number
    at_most: bool
    p_holm: Number

    def shows(self, level: float) -> bool:
        """Whether the test shows a difference: the interval leaves out 0, and so does the corrected p-value."""
        low, high = self.interval
        return (low > 0 or high < 0) and self.p_holm < 1 - level + 1e-12

    def p_text(self) -> str:
        """The corrected p-value as it prints; ``≤`` where the number of draws bounds it, or all four digits are 0.

        >>> PairedTest("pictures", 9, Interval(1.0, 2.0), 0.001, True, 0.002).p_text()
        '≤0.0020'
        >>> PairedTest("seeds", 5, Interval(1.0, 2.0), 2e-6, False, 4e-6).p_text()
        '≤0.0001'
        """
        p = f"{self.p_holm:.4f}"
        if not p.strip("0."):
            return "≤0.0001"
        return f"{'≤' if self.at_most else ''}{p}"


def holm(p: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979), in the given order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    scaled = np.array(p, dtype=np.float64)[order] * np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(scaled)) if len(order) else scaled
    return [float(value) for value in corrected]


def over_pictures(draws: Numbers, pictures: int, interval: Interval) -> PairedTest:
    """Test by the bootstrap draws of a difference: p is twice the smaller share of draws on one side of 0.

    An interval of percentiles of the same draws leaves out 0 where p is small. No p-value is smaller than
    2 / (draws + 1).

    >>> over_pictures(np.linspace(1.0, 2.0, 99), 50, Interval(1.0, 2.0)).p
    0.02
    """
    known = draws[~np.isnan(draws)]
    side = min(int((known <= 0).sum()), int((known >= 0).sum()))
    p = min(1.0, 2 * (1 + side) / (1 + known.size))
    return PairedTest("pictures", pictures, interval, p, side == 0 and p < 1, p)


def over_seeds(differences: Sequence[float], level: float) -> PairedTest | None:
    """Student's paired t test of the differences of seeds; None for one seed, and where all differences are equal.

    >>> found = over_seeds([1.0, 2.0, 3.0], 0.95)
    >>> [round(bound, 2) for bound in found.interval], round(found.p, 3)
    ([-0.48, 4.48], 0.074)
    """
    count = len(differences)
    if count < 2:
        return None
    mean, deviation = float(np.mean(differences)), float(np.std(differences, ddof=1))
    if deviation <= 1e-9 * max(1.0, abs(mean)):
        return None
    from scipy import stats  # takes half a second, which results of one seed do not need

    error = deviation / math.sqrt(count)
    half = float(stats.t.ppf(0.5 + level / 2, count - 1)) * error
    p = float(2 * stats.t.sf(abs(mean) / error, count - 1))
    return PairedTest("seeds", count, Interval(mean - half, mean + half), p, at_most=False, p_holm=p)


def seeds_to_show(difference: float, deviation: float, level: float = 0.95, power: float = 0.8) -> int | None:
    """Number of seeds with which a paired t test shows a difference of this size with this probability.

    Args:
        difference: Size of the difference.
        deviation: Standard deviation of the seeds' paired differences; an estimate from few seeds is rough.
        level: Confidence level of the test.
        power: Probability with which the difference is to be shown.

    Returns:
        The smallest number of seeds, at least 2; None where more than 10,000 are needed.

    >>> seeds_to_show(1.0, 1.0), seeds_to_show(1.0, 0.1)
    (10, 3)
    """
    from scipy import stats

    def shown(count: int) -> float:
        shift = abs(difference) * math.sqrt(count) / deviation
        bound = stats.t.ppf(0.5 + level / 2, count - 1)
        found = stats.nct.sf(bound, count - 1, shift)
        # The distribution of scipy gives nan far in its tail, where the difference is shown for certain.
        return 1.0 if math.isnan(found) else float(found)

    if deviation <= 0 or shown(2) >= power:
        return 2
    low, high = 2, 4
    while shown(high) < power:
        low, high = high, 2 * high
        if low >= _MOST_SEEDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shown(middle) >= power else (middle, high)
    return high


def wilson(share: float, count: int, level: float = 0.95) -> Interval:
    """Wilson's interval of a share (0..1) of a number of independent draws (Wilson 1927).

    >>> [round(100 * bound, 1) for bound in wilson(0.0, 100)]
    [0.0, 3.7]
    """
    z = NormalDist().inv_cdf(0.5 + level / 2)
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    # Rounding would leave the ends a little inside.
    return Interval(0.0 if share == 0 else middle - half, 1.0 if share == 1 else middle + half)


def interval_of_number(result: PerQuery, name: str, draws: Numbers, level: float = 0.95) -> Interval:
    """Interval of a number from its bootstrap draws; Wilson's where every query has the smallest or largest value.

    A number that is 0 of 100 for all queries is 0 in every draw, which says nothing about other pictures.

    Args:
        result: Result that the number is of.
        name: Name of the number.
        draws: Bootstrap draws of the number.
        level: Confidence level.

    >>> from rungwise.evaluation._evaluate import evaluate
    >>> result = evaluate(similarity=np.eye(100), image_of_caption=range(100), measures=["R@1"])
    >>> low, high = interval_of_number(result, "i2t/R@1", np.full(9, 100.0))
    >>> round(low, 1), high
    (96.3, 100.0)
    """
    check_level(level)
    ends = [_at_one_end(result, term) for term in terms_of(result, name)]
    shares = [wilson(*end, level) for end in ends if end is not None]
    if len(shares) < len(ends):
        return interval_of(draws, level)
    return Interval(100 * sum(one.low for one in shares), 100 * sum(one.high for one in shares))


def interval_of_difference(
    first: Sequence[PerQuery], second: Sequence[PerQuery], name: str, draws: Numbers, level: float = 0.95
) -> Interval:
    """Interval of a difference of means from its draws; Newcombe's where all numbers are as in Wilson's interval.

    Newcombe's interval is made from Wilson's interval of each (Newcombe 1998, method 10).

    Args:
        first: Results that the first mean is of.
        second: Results that the second mean is of.
        name: Name of the number.
        draws: Bootstrap draws of the difference.
        level: Confidence level.

    >>> from rungwise.evaluation._evaluate import evaluate
    >>> result = evaluate(similarity=np.eye(100), image_of_caption=range(100), measures=["R@1"])
    >>> [round(bound, 1) for bound in interval_of_difference([result], [result], "i2t/R@1", np.zeros(9))]
    [-3.7, 3.7]
    """
    low = high = 0.0
    for term in terms_of(first[0], name):
        mine, theirs = ({_at_one_end(one, term) for one in own} for own in (first, second))
        if len(mine) > 1 or len(theirs) > 1 or None in mine | theirs:
            return interval_of(draws, level)
        (x, n), (y, m) = (one for own in (mine, theirs) for one in own if one is not None)
        a, b = wilson(x, n, level), wilson(y, m, level)
        low += y - x - math.hypot(y - b.low, a.high - x)
        high += y - x + math.hypot(b.high - y, x - a.low)
    return Interval(100 * low, 100 * high)


def _at_one_end(result: PerQuery, term: MeasureTerm) -> tuple[float, int] | None:
    """The share, 0 or 1, that all queries have, and the number of their pictures; None where queries differ."""
    if term.measure.unit != PERCENT:
        return None
    values = term.measure.of_query(result.per_query(term.name))
    known = ~np.isnan(values)
    pictures = len(np.unique(result.image_of_query(term.direction)[known]))
    for share, bound in zip((0.0, 1.0), term.measure.bounds, strict=True):
        if pictures and (values[known] == bound).all():
            return share, pictures
    return None
