"""Local false discovery rates: which hits stand out of a query's null distribution, without a single label.

The local false discovery rate of a hit (Efron 2004) is the probability that it is irrelevant: the density of irrelevant
scores over that of all scores. In tail probabilities, the first is flat and the second falls, and its best falling
estimate is that of Grenander (as in Strimmer 2008, "fdrtool"). Between two neighbouring hits lies one hit; if the null
expects e irrelevant ones there, e is the rate. Pooling such e until they rise with the rank is Grenander's estimate:
blocks of n hits where E irrelevant ones are expected, with a rate of E / n.

The estimate picks the densest blocks, and pure noise has dense ones, too. So a block counts only as far as n hits are
unlikely under the null, by the likelihood ratio of two Poisson distributions with means n and E.
"""

from __future__ import annotations

import numpy as np

from rungwise.calibration._judgement import Values

_DOUBT = 2.0
"""Logarithm of the prior odds against a block; tests/calibration shows its effect on pure noise."""


def false_discovery_rates(expected_false: Values) -> Values:
    """Probability that each hit is irrelevant.

    Args:
        expected_false: (hits,) number of irrelevant candidates expected at each hit's score or higher, hits in falling
            order of score.

    Returns:
        (hits,) probabilities, never falling.

    >>> false_discovery_rates(np.array([1e-6, 2e-6, 1.5, 2.5])).round(2)
    array([0., 0., 1., 1.])
    """
    if not len(expected_false):
        return np.zeros(0)
    from scipy.optimize import isotonic_regression

    pooled = isotonic_regression(np.diff(expected_false, prepend=0.0))
    sizes = np.diff(pooled.blocks)
    rates = np.clip(pooled.x[pooled.blocks[:-1]], 1e-300, 1.0)
    ratio = sizes * (rates - 1 - np.log(rates))
    standing_out = (1 - rates) / (1 + np.exp(np.minimum(_DOUBT - ratio, 700.0)))
    # A large block may stand out more clearly than a small one before it.
    return np.asarray(1 - np.repeat(np.maximum.accumulate(standing_out[::-1])[::-1], sizes))


def chance_of_noise(expected_false: Values) -> float:
    """Probability that noise alone has hits that stand out as much, by the test of Simes (1986).

    It is the smallest ``expected_false[k - 1] / k``; under pure noise, a share p of all queries falls below p.

    >>> chance_of_noise(np.array([0.5, 0.6, 0.9]))
    0.3
    """
    if not len(expected_false):
        return 1.0
    return float(min(1.0, np.min(expected_false / np.arange(1, len(expected_false) + 1))))


def belief_from(chance: float) -> float:
    """Belief that something stands out, from the chance of noise.

    With even prior odds, this bounds it from above (Sellke, Bayarri and Berger 2001, "Calibration of p values"): 1 / (1
    - e p ln p) for p < 1/e; from there it falls to 0 at p = 1.

    >>> round(belief_from(0.001), 2), round(belief_from(0.05), 2), belief_from(1.0)
    (0.98, 0.71, 0.0)
    """
    if chance <= 0:
        return 1.0
    if chance < 1 / np.e:
        return float(1 / (1 - np.e * chance * np.log(chance)))
    return float(0.5 * (1 - chance) / (1 - 1 / np.e))
