"""How many hits to show, so that the expected F1 is highest.

A list that is cut by a threshold on F1 depends on all probabilities at once (Lewis 1995, "Evaluating and optimizing
autonomous text classification systems"; Ye, Chai, Lee and Chieu 2012, "Optimizing F-measures"). If hit i is relevant
with probability p_i independently of the others, and M counts the relevant ones among all candidates,

    E[F1 of the first k] = sum over i <= k of 2 p_i E[1 / (k + 1 + M without i)].

With E[u^M] = prod(1 - p_i + p_i u) and 1 / (c + M) = integral of u^(c + M - 1) over 0..1, this is one integral per k,
taken at the points of a Gauss-Legendre rule for all k at once.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from rungwise.calibration.judgement import Values

_POINTS, _HITS_PER_POINT = 20, 40
"""Of the rule, and one more for so many hits: enough for an error below 1e-5."""


def expected_f1(probabilities: Values, beyond: float = 0.0, belief: float = 1.0) -> Values:
    """Expected F1 of showing the first k hits, for every k.

    Args:
        probabilities: (hits,) that each hit is relevant, in falling order of score.
        beyond: How many more are expected to be relevant among the candidates that are no hits here.
        belief: That there is anything relevant. If there is not, showing nothing has an F1 of 1 and showing anything 0.

    Returns:
        (hits + 1,) in 0..1, of k = 0, 1, 2, ...

    >>> expected_f1(np.array([1.0, 1.0, 0.0])).round(3)
    array([0.   , 0.667, 1.   , 0.8  ])
    >>> expected_f1(np.array([0.3]), belief=0.3).round(3)
    array([0.7, 0.3])
    """
    values = np.empty(len(probabilities) + 1)
    values[0] = 1 - belief
    if belief <= 0:
        values[1:] = 0.0
        return values
    given = np.minimum(probabilities / belief, 1.0)
    points, weighted_powers = _rule(len(given))
    # (points, hits): the generating function of one hit.
    one = 1 - np.multiply.outer(1 - points, given)
    together = np.prod(one, axis=1) * np.exp((points - 1) * (beyond / belief))
    shares = np.cumsum(given / one, axis=1)
    values[1:] = 2 * belief * (together @ (weighted_powers * shares))
    return values


def best_cut(probabilities: Values, beyond: float = 0.0, belief: float = 1.0) -> int:
    """The number of hits of the highest expected F1, the smallest of equal ones; see :func:`expected_f1`.

    >>> best_cut(np.array([0.9, 0.8, 0.05, 0.05]))
    2
    >>> best_cut(np.array([0.1, 0.05]), belief=0.12)
    0
    """
    return int(np.argmax(expected_f1(probabilities, beyond, belief)))


@lru_cache(maxsize=8)
def _rule(hits: int) -> tuple[Values, Values]:
    """(points,) on 0..1, and (points, hits) their weights times the powers 1, 2, ... of each point.

    The points are those of Gauss and Legendre for t in x = 1 - (1 - t)^2, which packs them towards 1, where high powers
    live.
    """
    at, weights = np.polynomial.legendre.leggauss(_POINTS + hits // _HITS_PER_POINT)
    left = (1 - at) / 2
    points = 1 - left**2
    return points, (weights * left)[:, None] * np.cumprod(np.broadcast_to(points[:, None], (len(points), hits)), axis=1)
