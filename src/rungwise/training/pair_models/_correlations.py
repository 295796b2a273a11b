"""Agreement of pair scores with human scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core import pearson_and_spearman


@dataclass(frozen=True)
class Correlations:
    """Correlations between two scores of the same pairs.

    Attributes:
        pearson: Correlation of scores; NaN where one of them is constant.
        spearman: Correlation of ranks; NaN where one of them is constant.
        pairs: Number of compared pairs.
    """

    pearson: float
    spearman: float
    pairs: int

    @property
    def together(self) -> float:
        """The sum of both, by which the best epoch is chosen; minus infinity where one is NaN."""
        both = self.pearson + self.spearman
        return both if np.isfinite(both) else -np.inf

    @property
    def numbers(self) -> str:
        """Both correlations as text, without the number of pairs."""
        if not np.isfinite(self.together):
            return "no correlation, for scores are all equal or too few"
        return f"Pearson {self.pearson:.4f}, Spearman {self.spearman:.4f}"

    def __str__(self) -> str:
        return f"{self.numbers} ({self.pairs:,} pair{'s' * (self.pairs != 1)})"


def correlations(scores: ArrayLike, wanted: ArrayLike) -> Correlations:
    """Correlate (pairs,) scores of a model with (pairs,) human scores on any scale.

    >>> print(correlations([0.1, 0.2, 0.9], [1, 2, 5]))
    Pearson 0.9919, Spearman 1.0000 (3 pairs)
    """
    return Correlations(*pearson_and_spearman(scores, wanted), len(np.asarray(wanted)))
