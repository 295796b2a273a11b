"""Rising curves through graded points: isotonic regression, without its stairs.

The regression is a staircase. A curve runs straight between the middles of its steps, so that degrees that differ stay
different wherever the grades rise, and is level beyond them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """Straight lines between knots, level beyond them.

    Attributes:
        knots: Rising degrees.
        values: Values at the knots, not falling.

    Raises:
        UserError: If knots and values differ in number, one is not finite, or they fall.

    >>> Curve((0.0, 2.0), (1.0, 5.0)).at([-1, 1, 9])
    array([1., 3., 5.])
    """

    knots: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        knots, values = np.array(self.knots, np.float64), np.array(self.values, np.float64)
        if knots.shape != values.shape or not len(knots):
            raise UserError(f"calibration: {len(knots)} knots and {len(values)} values; give one each, at least one")
        if not (np.isfinite(knots).all() and np.isfinite(values).all()):
            raise UserError("calibration: a knot or a value is not a number; leave it out")
        if (np.diff(knots) <= 0).any() or (np.diff(values) < 0).any():
            raise UserError("calibration: knots must rise and values must not fall")

    def at(self, degrees: ArrayLike) -> Values:
        """Values of the curve at degrees of any shape; NaN stays NaN."""
        return np.asarray(np.interp(np.asarray(degrees, np.float64), self.knots, self.values))


def rising_curve(degrees: ArrayLike, grades: ArrayLike, *, blocks: int | None = None) -> Curve:
    """The curve with the least squared error among those that do not fall.

    Args:
        degrees: (n,) finite, at least one.
        grades: (n,) finite.
        blocks: Number of equal shares of the pairs, in order of their degrees, that are averaged first, so that no end
            of the curve stands on a single grade; None takes every pair by itself.

    >>> rising_curve([0, 1, 2, 3, 4], [0, 3, 1, 4, 5])
    Curve(knots=(0.0, 1.5, 3.0, 4.0), values=(0.0, 2.0, 4.0, 5.0))
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(np.asarray(degrees, np.float64), kind="stable")
    places, wanted = np.asarray(degrees, np.float64)[order], np.asarray(grades, np.float64)[order]
    if blocks is None or blocks >= len(places):
        counts = np.ones(len(places))
    else:
        firsts = np.linspace(0, len(places), blocks, endpoint=False).astype(np.int64)
        counts = np.diff(firsts, append=len(places)).astype(np.float64)
        places, wanted = (np.add.reduceat(side, firsts) / counts for side in (places, wanted))
    distinct, of = np.unique(places, return_inverse=True)
    sizes = np.bincount(of, counts)
    fitted = isotonic_regression(np.bincount(of, counts * wanted) / sizes, weights=sizes)
    firsts = fitted.blocks[:-1]
    middles = np.add.reduceat(sizes * distinct, firsts) / np.add.reduceat(sizes, firsts)
    return Curve(tuple(middles.tolist()), tuple(fitted.x[firsts].tolist()))
