"""Standard deviation of the common shift of all log-odds of a query, about which nothing known of the query tells.

It is chosen by its purpose: the smallest standard deviation that gives the judged queries the highest mean F1
(:mod:`rungwise.calibration._f1_cut`), or one that is lower by no more than the standard error of the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration._f1_cut import best_cut
from rungwise.calibration._judgement import Values

_CHOICES = (0.0, 1.0, 2.0, 3.0)
MOST = _CHOICES[-1]
_USUAL, _FEWEST_QUERIES = 1.0, 50
"""Standard deviation that is taken with fewer queries than these, too few to choose by."""


@dataclass(frozen=True)
class JudgedHits:
    """The best hits of a judged query.

    Attributes:
        probabilities: (hits,) probability that each hit is relevant, falling.
        beyond: Expected number of relevant candidates that are not among these hits.
        relevant: (hits,) whether each hit is relevant, or the probability that it is; 0 where nobody judged.
        judged: (hits,) whether anybody judged each hit.
        total: Number of relevant candidates of the whole index.
    """

    probabilities: Values
    beyond: float
    relevant: Values
    judged: NDArray[np.bool_]
    total: float

    def cut(self, shift: float) -> int:
        """Number of hits that are shown with this shift."""
        return best_cut(self.probabilities, self.beyond, shift=shift)

    def f1(self, shift: float) -> float:
        """F1 of the hits that are shown with this shift."""
        cut = self.cut(shift)
        return 2 * float(self.relevant[:cut].sum()) / (int(self.judged[:cut].sum()) + self.total)


def best_shift(examples: Sequence[JudgedHits]) -> float:
    """Smallest standard deviation whose mean F1 is the highest, or lower by no more than one standard error.

    The ``examples`` have something relevant.

    >>> hits = 0.8 / np.sqrt(np.arange(1, 101))
    >>> def example(relevant):
    ...     return JudgedHits(hits, 0.0, (np.arange(100) < relevant) * 1.0, np.ones(100, bool), relevant)
    >>> best_shift([example(2)] * 60 + [example(60)] * 20)
    3.0
    """
    if len(examples) < _FEWEST_QUERIES:
        return _USUAL
    found = {shift: np.array([example.f1(shift) for example in examples]) for shift in _CHOICES}
    best = max(_CHOICES, key=lambda shift: float(found[shift].sum()))
    for shift in _CHOICES:
        worse = found[best] - found[shift]
        if worse.mean() <= worse.std() / np.sqrt(len(examples)):
            return shift
    return best
