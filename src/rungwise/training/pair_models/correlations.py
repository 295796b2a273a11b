"""How well scores of pairs agree with those of people."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core.correlation import pearson_and_spearman


@dataclass(frozen=True)
class Correlations:
    """How alike two scores of the same pairs are.

    Attributes:
        pearson: Correlation of scores; NaN where one of them is constant.
        spearman: Correlation of ranks; likewise.
        pairs: How many were compared.
    """

    pearson: float
    spearman: float
    pairs: int

    @property
    def together(self) -> float:
        """The sum of both, by which the best epoch is chosen; minus infinity where there is none."""
        both = self.pearson + self.spearman
        return both if np.isfinite(both) else -np.inf

    @property
    def numbers(self) -> str:
        """Both correlations in words, without the number of pairs.

        >>> Correlations(float("nan"), float("nan"), 6).numbers
        'no correlation, for scores are all equal or too few'
        """
        if not np.isfinite(self.together):
            return "no correlation, for scores are all equal or too few"
        return f"Pearson {self.pearson:.4f}, Spearman {self.spearman:.4f}"

    def __str__(self) -> str:
        return f"{self.numbers} ({self.pairs:,} pair{'s' * (self.pairs != 1)})"


def correlations(scores: ArrayLike, wanted: ArrayLike) -> Correlations:
    """Compare scores with those that are right.

    Args:
        scores: (pairs,) of a model.
        wanted: (pairs,) of people, on any scale.

    >>> print(correlations([0.1, 0.2, 0.9], [1, 2, 5]))
    Pearson 0.9919, Spearman 1.0000 (3 pairs)
    """
    return Correlations(*pearson_and_spearman(scores, wanted), len(np.asarray(wanted)))
