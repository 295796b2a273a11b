"""The number of hits to show so that the expected F1 is highest.

The best cut by F1 depends on all probabilities at once (Lewis 1995, "Evaluating and optimizing autonomous text
classification systems"; Ye, Chai, Lee and Chieu 2012, "Optimizing F-measures"). If hit i is relevant with probability
p_i independently of the others, and M counts the relevant ones among all candidates,

    E[F1 of the first k] = sum over i <= k of 2 p_i E[1 / (k + 1 + M without i)].

With E[u^M] = prod(1 - p_i + p_i u) and 1 / (c + M) = integral of u^(c + M - 1) over 0..1, this is one integral per k,
taken at the points of a Gauss-Legendre rule for all k at once.

The hits of one query are not independent. Its scores do not tell whether it has two relevant candidates or two hundred:
if the tenth hit is relevant, so probably is the twentieth. Therefore the log-odds of all hits of a query are shifted
together by a normally distributed amount, and the expectation is taken over it; without that, too much is shown to a
query with few relevant candidates. The standard deviation of the shift is learnt
(:mod:`rungwise.calibration.learning._shift`).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from rungwise.calibration._judgement import Values
from rungwise.calibration._logistic import sigmoid

_EXACT = 64
"""Number of hits whose part is integrated; behind them k is so large that two terms of a series are enough."""

_POINTS, _HITS_PER_POINT = 20, 40
"""Points of the integration rule, and hits per additional point: enough for an error below 1e-5."""

_SHIFTS = 5
"""Number of points of the Gauss-Hermite rule over the shift."""

_LEAST, _MOST = 1e-12, 1 - 1e-6
"""Bounds of the probabilities that are shifted, so that their odds are finite."""

_SURE = 0.9
"""Belief from which something is shown, even if little of it is expected to be right."""


def expected_f1(probabilities: Values, beyond: float = 0.0, shift: float = 0.0) -> Values:
    """Expected F1 of showing the first k hits, for every k, if anything is relevant.

    Args:
        probabilities: (hits,) probability that each hit is relevant, in falling order of score.
        beyond: Expected number of relevant candidates that are not among these hits.
        shift: Standard deviation of the common shift of the query's log-odds.

    Returns:
        (hits + 1,) values in 0..1 for k = 0, 1, 2, ...

    >>> expected_f1(np.array([1.0, 1.0, 0.0])).round(3)
    array([0.   , 0.667, 1.   , 0.8  ])
    >>> expected_f1(np.full(3, 0.5), shift=3.0).round(2)  # all or nothing, more or less
    array([0.  , 0.31, 0.47, 0.56])
    """
    if not shift or not len(probabilities):
        return np.asarray(_independent(probabilities[None], np.array([beyond]))[0])
    kept = np.clip(probabilities, _LEAST, _MOST)
    # Logits of those whose mean over the shift is what was given (MacKay 1992, "The evidence framework applied to
    # classification networks", solved for the logit).
    logits = np.log(kept / (1 - kept)) * math.sqrt(1 + math.pi * shift**2 / 8)
    at, weights = _shifts()
    factors = np.exp(shift * at)
    shifted = sigmoid(logits + shift * at[:, None])
    return np.asarray(weights @ _independent(shifted, beyond * factors / (weights @ factors)))


def best_cut(probabilities: Values, beyond: float = 0.0, belief: float = 1.0, shift: float = 0.0) -> int:
    """Number of hits to show: the one of the highest expected F1, or none.

    Where nothing is relevant, showing nothing has an F1 of 1 and showing anything one of 0. None are shown if that is
    expected to be more, and the belief that anything is relevant is below .9.

    Args:
        probabilities: (hits,) probability that each hit is relevant if anything is, in falling order of score.
        beyond: Expected number of relevant candidates that are not among these hits.
        belief: Probability that anything is relevant.
        shift: Standard deviation of the common shift of the query's log-odds.

    Returns:
        The smallest of equally good numbers.

    >>> best_cut(np.array([0.9, 0.8, 0.05, 0.05]))
    2
    >>> best_cut(np.array([0.9, 0.8, 0.05, 0.05]), belief=0.3)
    0
    """
    values = expected_f1(probabilities, beyond, shift)
    best = int(np.argmax(values))
    return 0 if belief < _SURE and 1 - belief >= belief * values[best] else best


def _independent(probabilities: Values, beyond: Values) -> Values:
    """(cases, hits + 1) expected F1 of every k for (cases, hits) independent probabilities."""
    first, rest = probabilities[:, :_EXACT], probabilities[:, _EXACT:]
    values = np.zeros((len(probabilities), probabilities.shape[1] + 1))
    points, weighted_powers = _rule(first.shape[1])
    missing = 1 - points
    # (cases, points, hits): the generating function of one hit; of those after them, the beginning of its logarithm.
    one = 1 - missing[:, None] * first[:, None]
    others = missing * (beyond + rest.sum(axis=1))[:, None] + missing**2 / 2 * (rest**2).sum(axis=1)[:, None]
    together = np.prod(one, axis=2) * np.exp(-others)
    shares = np.cumsum(first[:, None] / one, axis=2)
    shares *= weighted_powers
    values[:, 1 : 1 + first.shape[1]] = 2 * np.einsum("cp,cph->ch", together, shares)
    if rest.shape[1]:
        values[:, 1 + _EXACT :] = _of_large(probabilities, beyond)[:, _EXACT:]
    return values


def _of_large(probabilities: Values, beyond: Values) -> Values:
    """(cases, hits) expected F1 of every k from 1, by the series of a ratio about its means up to second moments."""
    k = np.arange(1, probabilities.shape[1] + 1)
    shown, varied = np.cumsum(probabilities, axis=1), np.cumsum(probabilities * (1 - probabilities), axis=1)
    both = k + (shown[:, -1] + beyond)[:, None]
    variance = (varied[:, -1] + beyond)[:, None]
    return np.asarray(2 * (shown / both - varied / both**2 + shown * variance / both**3))


@lru_cache(maxsize=1)
def _shifts() -> tuple[Values, Values]:
    """Points and weights for a standard normal distribution."""
    at, weights = np.polynomial.hermite_e.hermegauss(_SHIFTS)
    return at, weights / weights.sum()


@lru_cache(maxsize=8)
def _rule(hits: int) -> tuple[Values, Values]:
    """(points,) points on 0..1, and (points, hits) their weights times the powers 1, 2, ... of each point.

    The points are those of Gauss and Legendre for t in x = 1 - (1 - t)^2, which packs them towards 1, where high powers
    live.
    """
    at, weights = np.polynomial.legendre.leggauss(_POINTS + hits // _HITS_PER_POINT)
    left = (1 - at) / 2
    points = 1 - left**2
    return points, (weights * left)[:, None] * np.cumprod(np.broadcast_to(points[:, None], (len(points), hits)), axis=1)
