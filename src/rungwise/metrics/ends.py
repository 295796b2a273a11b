"""Where relevance ends, as measures read it: how many hits a method shows, and how relevant it takes them to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.metrics.rankings import Direction, Scores


@dataclass(frozen=True)
class Judged:
    """What a method says of a block of queries.

    Attributes:
        cuts: (queries,) how many of the best hits it shows; 0 where it takes nothing to be relevant.
        beliefs: (queries,) its belief that a candidate is relevant at all; higher is surer.
        degrees: (queries, candidates) the degrees that it expects; None from a method that only cuts.

    >>> Judged(np.array([2]), np.array([0.9])).degrees is None
    True
    """

    cuts: NDArray[np.int64]
    beliefs: NDArray[np.float64]
    degrees: Scores | None = None


class Ends(Protocol):
    """A method that says where relevance ends; a :class:`rungwise.calibration.Calibration` is one."""

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> Judged:
        """Judge a block of queries by all of their scores.

        Args:
            scores: (queries, candidates) similarity.
            direction: Which way the queries run.
            queries: (queries,) where they stand among all, for a method that knows more of them than their scores.
        """
        ...
