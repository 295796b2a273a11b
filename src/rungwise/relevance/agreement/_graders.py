"""How well people agree with each other: Cohen's kappa of two graders, Krippendorff's alpha of any number.

Both are 1 where graders always agree and 0 where they agree as often as chance would have it; below 0 they disagree on
purpose. Where there is nothing to disagree on (no item that two graded, one grade throughout), neither is defined: NaN.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError

Level = Literal["nominal", "ordinal", "interval"]
"""Meaning of grades: names, an order, or distances."""


def cohen_kappa(first: ArrayLike, second: ArrayLike, weights: Literal["quadratic"] | None = None) -> float:
    """Agreement of two graders beyond chance (Cohen 1960; with weights, Cohen 1968).

    Chance is that of each grader's own frequencies. A quadratic weight is the squared difference of the two grades
    themselves, so that a grade that nobody gave still counts as a step.

    Args:
        first: (items,) grades, NaN for none.
        second: (items,) the other grader's grades, NaN for none. Items without either are left out.
        weights: ``None`` counts each disagreement alike, ``"quadratic"`` by the square of the distance.

    >>> cohen_kappa([1, 2, 3, 4], [1, 2, 3, 3])
    0.666...
    >>> round(cohen_kappa([1, 2, 3, 4], [1, 2, 3, 3], weights="quadratic"), 3)
    0.875
    """
    one, other = _grades(first), _grades(second)
    if one.ndim != 1 or one.shape != other.shape:
        raise UserError(f"graders: grades of shapes {one.shape} and {other.shape}; give one grade an item of each")
    if weights not in (None, "quadratic"):
        raise UserError(f"graders: weights must be None or 'quadratic', got {weights!r}")
    both = ~np.isnan(one) & ~np.isnan(other)
    one, other = one[both], other[both]
    if not len(one):
        return float("nan")
    if weights is None:
        values, codes = np.unique([one, other], return_inverse=True)
        shares = [np.bincount(side, minlength=len(values)) / len(one) for side in codes.reshape(2, -1)]
        observed, expected = float((one != other).mean()), float(1 - shares[0] @ shares[1])
    else:
        observed = float(((one - other) ** 2).mean())
        expected = float(one.var() + other.var() + (one.mean() - other.mean()) ** 2)
    return 1 - observed / expected if expected > 0 else float("nan")


def krippendorff_alpha(ratings: ArrayLike, level: Level = "ordinal") -> float:
    """Agreement of any number of graders beyond chance, who need not have graded every item (Krippendorff 2011).

    Chance is drawing two of all grades, whoever gave them. The squared distance of two grades is 1 where they differ
    (nominal), that of the grades (interval), or that of their ranks among all grades (ordinal): Krippendorff's sum of
    frequencies from one grade to the other, less half of both ends, is the difference of the two mean ranks.

    Args:
        ratings: (graders, items) grades, NaN for none. Items with fewer than two grades are left out.
        level: Meaning of the grades.

    >>> none = float("nan")
    >>> ratings = [[1, 2, 3, 3, none], [1, 2, 3, 4, 4], [none, 2, 3, 3, 4]]
    >>> [round(krippendorff_alpha(ratings, level), 3) for level in ("nominal", "ordinal", "interval")]
    [0.803, 0.912, 0.928]
    """
    table = _grades(ratings)
    if table.ndim != 2:
        raise UserError(f"graders: ratings have shape {table.shape}; give a table of (graders, items)")
    if level not in ("nominal", "ordinal", "interval"):
        raise UserError(f"graders: level must be 'nominal', 'ordinal' or 'interval', got {level!r}")
    given = ~np.isnan(table)
    given &= given.sum(axis=0) >= 2
    _, items = np.nonzero(given)
    values = table[given]
    if not len(values):
        return float("nan")
    _, items = np.unique(items, return_inverse=True)
    from scipy.stats import rankdata

    apart = _names_apart if level == "nominal" else _squares_apart
    grades = rankdata(values) if level == "ordinal" else values
    # Both sums run over ordered pairs of grades; an item's pairs weigh as much as it has grades.
    within = (apart(grades, items) / (np.bincount(items) - 1)).sum()
    among = apart(grades, np.zeros(len(items), np.int64))[0] / (len(grades) - 1)
    return float(1 - within / among) if among > 0 else float("nan")


def _grades(given: ArrayLike) -> NDArray[np.float64]:
    grades = np.asarray(given, np.float64)
    if np.isinf(grades).any():
        raise UserError("graders: a grade is infinite; write NaN where there is none")
    return grades


def _squares_apart(grades: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """(groups,) sum of squared differences over ordered pairs within each group."""
    counts = np.bincount(groups)
    away = grades - (np.bincount(groups, grades) / counts)[groups]
    return np.asarray(2 * counts * np.bincount(groups, away**2), np.float64)


def _names_apart(grades: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """(groups,) ordered pairs within each group that differ."""
    names, codes = np.unique(grades, return_inverse=True)
    kinds, alike = np.unique(groups * len(names) + codes, return_counts=True)
    pairs = np.bincount(groups).astype(np.float64) ** 2
    return np.asarray(pairs - np.bincount(kinds // len(names), alike.astype(np.float64) ** 2), np.float64)
