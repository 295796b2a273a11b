"""The expected degrees from which a hit is called "exactly" or "close".

A hit is truly exact if its degree lies in the upper half of the scale above ``relevant_from`` (``(relevant_from +
highest) / 2``, which is ``relevant_from`` itself where that is the highest degree), and truly close if it counts as
relevant. "Exactly" begins at the smallest expected degree with which :data:`EXACT` of the hits called so are truly
exact, and "close" at the smallest with which half of the hits called so are truly close. Both are read off hits that
were shown to queries which the fit did not see. An expected degree below half of the highest is never called "exactly",
nor one below a quarter "close". If a name is never right so often, no hit gets it; everything else that is shown is
"loosely related".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration._judgement import Values

EXACT, CLOSE = 0.8, 0.5
"""Shares of the hits with a name for which it is right."""
_LEAST_EXACT, _LEAST_CLOSE = 0.5, 0.25
"""Shares of the highest degree below which no expected degree gets a name."""
_FEWEST = 10
"""Smallest number of hits by which a name is given."""


def names_from(expected: Values, true: Values, relevant_from: float, highest: float) -> tuple[float, float]:
    """The smallest expected degrees of "exactly" and of "close".

    Args:
        expected: (hits,) degrees that a calibration expects of judged hits that it shows.
        true: (hits,) true degrees.
        relevant_from: The smallest degree that counts as relevant.
        highest: The highest degree of the scale.

    Returns:
        Two numbers, the first not below the second; above ``highest`` where a name is never given.

    >>> expected = np.repeat([0.1, 0.2, 0.4, 0.5, 0.7, 0.8], 10)
    >>> names_from(expected, np.repeat([0.0, 0.1, 0.6, 0.5, 0.6, 1.0], 10), relevant_from=0.5, highest=1.0)
    (0.8, 0.25)
    """
    exactly = _boundary(expected, true >= (relevant_from + highest) / 2, EXACT, highest)
    exactly = max(exactly, _LEAST_EXACT * highest)
    rest = expected < exactly
    close = _boundary(expected[rest], true[rest] >= relevant_from, CLOSE, highest)
    return exactly, min(exactly, max(close, _LEAST_CLOSE * highest))


def _boundary(expected: Values, right: NDArray[np.bool_], share: float, highest: float) -> float:
    """The smallest expected degree from which on this share of the hits is right."""
    order = np.argsort(-expected, kind="stable")
    falling = expected[order]
    shares = np.cumsum(right[order]) / np.arange(1, len(falling) + 1)
    # Equal degrees get the same name.
    ends = np.append(falling[1:] < falling[:-1], True) if len(falling) else np.zeros(0, bool)
    often = np.flatnonzero(ends & (shares >= share) & (np.arange(1, len(falling) + 1) >= _FEWEST))
    return float(falling[often[-1]]) if len(often) else float(np.nextafter(highest, np.inf))
