"""A standard for indexes without judgements: the heights that queries reach which fit nothing.

The scores of one query alone hardly tell whether its best hits are right: they rise smoothly out of the bulk, whether
the query means something in the index or not. What tells is how high they rise, compared with queries that fit nothing.
The texts here are about things that pictures seldom show. Their scores with the same candidates give the height of each
one's best hit over its centre (the median). A hit of a query stands out as far as it is higher than those best hits,
which are taken to be normally distributed.

With more candidates, the best is higher. Heights of single hits are taken to be normal in the tail, so the best of n is
near the quantile 1 - 1 / (2 n): it grows by their spread times the difference of these quantiles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rungwise.calibration._judgement import Values
from rungwise.core import UserError

_FEWEST = 10
"""Smallest number of texts that make a standard."""

_SHOWN = 0.9
"""Share of unrelated queries whose best hit must be lower than a hit that is shown."""

SHARE_OF_BEST = 2 / 3
"""Share of the best hit's height that a hit must have to be shown."""

UNJUDGED_BOUNDARIES = (1 / 3, 1 / 5)
"""Smallest degrees of the rungs 1 and 2. Hardly any unrelated query reaches them
(``benchmarks/absolute_degrees.py``)."""

_TAIL = (0.01, 0.001)
"""Shares of all heights between which the spread of the tail is measured."""


@dataclass(frozen=True)
class Standard:
    """Heights of the best hits of unrelated queries over the query's centre, in units of the scores.

    Attributes:
        best: Mean height of these best hits.
        deviation: Standard deviation of these heights.
        spread: Spread of the heights of single hits in the upper tail.
        total: Number of candidates that the best hits were taken from.

    >>> scores = np.random.default_rng(0).normal(0.1, 0.05, (50, 2000))
    >>> standard = Standard.of(scores)
    >>> standard.standing_out(np.array([0.1, 0.3]), total=2000).round(2)
    array([0., 1.])
    """

    best: float
    deviation: float
    spread: float
    total: int

    @classmethod
    def of(cls, scores: ArrayLike) -> Standard:
        """Measure the standard by (texts, candidates) scores of unrelated texts with all candidates or a sample.

        Raises:
            UserError: If there are fewer than 10 texts or two candidates, or scores are constant or not finite.
        """
        values = checked_unrelated(scores)
        heights = values - np.median(values, axis=1, keepdims=True)
        best = heights.max(axis=1)
        if not best.any():
            raise UserError("unrelated: all scores of each text are the same; the model tells no candidates apart")
        nearer, farther = np.quantile(heights, [1 - _TAIL[0], 1 - _TAIL[1]])
        spread = (farther - nearer) / (_quantile(_TAIL[1]) - _quantile(_TAIL[0]))
        return cls(
            float(best.mean()), max(float(best.std()), 1e-3 * float(best.mean())), float(spread), values.shape[1]
        )

    def standing_out(self, heights: Values, total: int) -> Values:
        """Share of unrelated queries whose best of ``total`` candidates is lower than each of (hits,) heights."""
        from scipy.special import ndtr

        return np.asarray(ndtr((heights - self.best_of(total)) / self.deviation))

    def best_of(self, total: int) -> float:
        """Mean height of the best of ``total`` candidates for an unrelated query."""
        return self.best + self.spread * (_quantile(0.5 / total) - _quantile(0.5 / self.total))

    def degrees(self, heights: Values, total: int) -> Values:
        """(hits,) degrees in 0..1: the share of each height above that of the best hit of unrelated queries.

        A degree is max(0, 1 - b / h) for a hit of height h, where b is the mean height that unrelated queries reach
        with their best of ``total`` candidates. So it has no unit, does not depend on the query's other hits, and means
        the same for every query.
        """
        above = np.maximum(heights, 0.0)
        reached = max(self.best_of(total), 0.0)
        return np.asarray(np.clip(above - reached, 0.0, None) / np.maximum(above, np.finfo(np.float64).tiny))

    def cut(self, heights: Values, total: int) -> int:
        """Number of hits to show, from (hits,) falling heights and the number of candidates."""
        high = (self.standing_out(heights, total) >= _SHOWN) & (heights >= SHARE_OF_BEST * heights[0])
        return int(np.count_nonzero(high))


def checked_unrelated(scores: ArrayLike) -> Values:
    """(texts, candidates) scores of texts that fit nothing, if a standard can be made of them.

    Raises:
        UserError: If there are fewer than 10 texts or two candidates, or a score is not finite.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 2 or len(values) < _FEWEST or values.shape[1] < 2:
        raise UserError(f"unrelated: shape {values.shape}; give scores of {_FEWEST} or more texts with two or more")
    if not np.isfinite(values).all():
        raise UserError("unrelated: a score is not finite; the model, or a vector of the index, is damaged")
    return values


def _quantile(share: float) -> float:
    """Quantile of the standard normal distribution beyond which this share lies."""
    from scipy.special import ndtri

    return float(-ndtri(share))
