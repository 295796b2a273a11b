"""The expected degrees from which a hit is called "exactly" or "close".

A name should be right at least half of the times that it is given. A hit is truly close if its degree counts as
relevant (``relevant_from``), and truly exact if its degree lies in the upper half of the rest of the scale
(``(relevant_from + highest) / 2``, which is ``relevant_from`` itself where that is the highest degree). Among the hits
that a calibration was fitted on, the share of truly exact ones rises with the expected degree (made to, by isotonic
regression); the boundary of "exactly" is where it reaches one half. If it never does, no hit is called so. "Close" is
bounded likewise, and everything else that is shown is "loosely related".
"""

from __future__ import annotations

import numpy as np

from rungwise.calibration._judgement import Values

_RIGHT = 0.5


def names_from(expected: Values, true: Values, relevant_from: float, highest: float) -> tuple[float, float]:
    """The smallest expected degrees of "exactly" and of "close".

    Args:
        expected: (hits,) degrees that a calibration expects of judged hits.
        true: (hits,) true degrees.
        relevant_from: The smallest degree that counts as relevant.
        highest: The highest degree of the scale.

    Returns:
        Two numbers, the first not below the second; above ``highest`` where a name is never given.

    >>> expected = np.array([0.1, 0.2, 0.4, 0.5, 0.7, 0.8])
    >>> names_from(expected, np.array([0.0, 0.1, 0.6, 0.5, 0.6, 1.0]), relevant_from=0.5, highest=1.0)
    (0.8, 0.4)
    """
    close = _boundary(expected, true >= relevant_from, highest)
    return max(close, _boundary(expected, true >= (relevant_from + highest) / 2, highest)), close


def _boundary(expected: Values, right: np.ndarray[tuple[int], np.dtype[np.bool_]], highest: float) -> float:
    from scipy.optimize import isotonic_regression

    levels, place = np.unique(expected, return_inverse=True)
    counts = np.bincount(place)
    shares = isotonic_regression(np.bincount(place, right) / counts, weights=counts).x
    often = np.flatnonzero(shares >= _RIGHT)
    return float(levels[often[0]]) if len(often) else float(np.nextafter(highest, np.inf))
