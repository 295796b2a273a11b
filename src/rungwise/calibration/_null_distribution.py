"""The null distribution of a query: how the scores of candidates that do not fit it are spread.

Most candidates of an index are irrelevant to any one query, so the bulk of its scores shows what irrelevant ones score:
a normal distribution about the median, with a width given by the upper quartile. Only the upper half is modelled, where
relevant candidates compete; cosines of images and texts are often wider there than below the median. What exceeds the
normal share of the upper tail is taken for relevant and left out of a second fit (the empirical null of Efron 2004,
"Large-scale simultaneous hypothesis testing", fitted by quantiles instead of counts).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration._judgement import Background, Values

_QUARTILE = 0.6744897501960817
"""Upper quartile of the standard normal distribution."""

_TAIL = 2.0
"""Beginning, in standard deviations, of the tail that is searched for relevant candidates."""

_TAIL_SHARE = 0.022750131948179195
"""Share of a standard normal distribution in that tail."""

_MOST_SKEW = 1.5
"""Largest ratio of the spread above the centre to that below it, where nothing is relevant."""

_ERROR = 1.8
"""Standard error of a spread from a quartile, as a share of the spread, times the root of the number of scores."""

_FARTHEST = 12.0
"""Largest position; farther out, tail probabilities say nothing and sums of squares grow without need."""


@dataclass(frozen=True)
class Null:
    """Distribution of the scores of the candidates that are irrelevant to one query.

    Attributes:
        centre: Median of these scores.
        spread: Standard deviation above the centre, in units of the scores, plus its standard error; 0 if scores are
            constant.
        total: Number of candidates, relevant or not.
        irrelevant: Number of candidates taken to be irrelevant.
        low_spread: Standard deviation below the centre, like ``spread``.
        upper: Upper tenth of the scores of the fit, falling.
        sampled: Number of scores of the fit.

    >>> from rungwise.calibration._judgement import Background
    >>> noise = np.random.default_rng(0).normal(0.1, 0.05, 4000)
    >>> null = Null.of(Background(noise, total=100_000))
    >>> round(null.centre, 2), round(null.spread, 2)
    (0.1, 0.05)
    >>> null.positions(np.array([0.1, 0.3])).round(1)
    array([0. , 3.8])
    """

    centre: float
    spread: float
    total: int
    irrelevant: float
    low_spread: float
    upper: Values
    sampled: int

    @classmethod
    def of(cls, background: Background) -> Null:
        """Fit to scores of a query with a sample of all candidates, or with all of them."""
        scores = np.asarray(background.scores, np.float64)
        fitted = _fit(scores, 0.0)
        beyond = _beyond(scores, *fitted)
        # Three standard errors: fewer are what chance brings, and a fit that follows chance is worse.
        if beyond > 3 * np.sqrt(_TAIL_SHARE / len(scores)):
            fitted = _fit(scores, beyond)
            beyond = _beyond(scores, *fitted)
        else:
            beyond = 0.0
        centre, spread, low_spread = fitted
        # Too small a spread makes noise stand out; too large a one hides little.
        spread *= 1 + _ERROR / math.sqrt(len(scores))
        irrelevant = background.total * (1 - max(0.0, beyond))
        return cls(centre, spread, background.total, irrelevant, low_spread, _upper(scores), len(scores))

    def positions(self, scores: NDArray[np.floating]) -> Values:
        """Positions of scores of any shape: standard deviations above the centre, kept within -12..12."""
        above = np.asarray(scores, np.float64) - self.centre
        if not self.spread:
            return np.where(above > 0, _FARTHEST, 0.0)
        return np.clip(above / self.spread, -_FARTHEST, _FARTHEST)

    def low_positions(self, scores: NDArray[np.floating]) -> Values:
        """Positions like :meth:`positions`, in standard deviations of the scores below the centre."""
        above = np.asarray(scores, np.float64) - self.centre
        if not self.low_spread:
            return np.where(above > 0, _FARTHEST, 0.0)
        return np.clip(above / self.low_spread, -_FARTHEST, _FARTHEST)

    def log_tails(self, positions: Values) -> Values:
        """Natural logarithm of the probability that an irrelevant candidate reaches each position."""
        from scipy.special import log_ndtr  # a third of a second, which a command that fails early does not need

        return np.asarray(log_ndtr(-positions), np.float64)

    def expected_false(self, positions: Values) -> Values:
        """Expected number of irrelevant candidates of the whole index that reach each position."""
        return np.asarray(self.irrelevant * np.exp(self.log_tails(positions)))


def _upper(scores: Values) -> Values:
    """Upper tenth of the scores, at least one, falling."""
    count = max(1, len(scores) // 10)
    return np.sort(np.partition(scores, len(scores) - count)[-count:])[::-1]


def _beyond(scores: Values, centre: float, spread: float, low_spread: float) -> float:
    """Share of the scores in the upper tail, less the share of irrelevant ones there."""
    if not spread:
        return 0.0
    # Where many are relevant, the upper quartile is one of theirs; no null is that skewed.
    reach = min(spread, _MOST_SKEW * low_spread) if low_spread else spread
    return np.count_nonzero(scores > centre + _TAIL * reach) / len(scores) - _TAIL_SHARE


def _fit(scores: Values, relevant: float) -> tuple[float, float, float]:
    """Centre and spreads above and below it, if a share ``relevant`` of the scores stands above the rest."""
    last = (len(scores) - 1) * (1 - min(relevant, 0.5))
    places = np.array([0.25, 0.5, 0.75]) * last
    below = places.astype(np.int64)
    above = np.minimum(below + 1, len(scores) - 1)
    ordered = np.partition(scores, np.unique(np.concatenate([below, above])))
    low, centre, high = ordered[below] + (places - below) * (ordered[above] - ordered[below])
    over = scores - centre
    spreads = [_spread(float(high - centre), over), _spread(float(centre - low), -over)]
    return float(centre), spreads[0], spreads[1]


def _spread(quartile: float, over: Values) -> float:
    """Standard deviation from the distance of a quartile; where that is 0, from all scores farther out."""
    if quartile > 1e-12 * max(1.0, float(np.abs(over).max())):
        return quartile / _QUARTILE
    return float(np.sqrt(np.sum(np.maximum(over, 0.0) ** 2) / len(over)))
