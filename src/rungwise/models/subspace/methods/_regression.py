"""Regression of both views on class labels by iteratively reweighted least squares, the base of LCFS and LGCFL."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from rungwise.core import STRICT, AtLeastOne, NotNegative, Positive, UserError
from rungwise.models.subspace._eigenproblems import Matrix
from rungwise.models.subspace._settings import SubspaceConfig
from rungwise.models.subspace._views import Directions, Views, several

SMOOTH = 1e-8
"""eps of the smoothed norms sqrt(s^2 + eps)."""

_RISES = 1e-9
"""Share of the objective by which rounding may raise it in a round."""

Pair = tuple[Matrix, Matrix]


@dataclass(frozen=True)
class RegressionConfig(SubspaceConfig):
    """Settings of LCFS and LGCFL.

    Attributes:
        sparsity: Weight of the norm that leaves features out.
        rounds: Largest number of rounds of the iteration.
        tolerance: The iteration ends when a round lowers the objective by less than this share.
    """

    __pydantic_config__ = STRICT

    sparsity: Positive = 0.1
    rounds: AtLeastOne = 100
    tolerance: NotNegative = 1e-6


@dataclass(frozen=True)
class Sums:
    """Sums over items of products of centred features and centred 0/1 labels.

    Attributes:
        image: (D_i, D_i) X'X.
        text: (D_t, D_t) Z'Z.
        cross: (D_i, D_t) X'Z.
        image_labels: (D_i, C) X'Y.
        text_labels: (D_t, C) Z'Y.
        labels: ||Y||^2.
    """

    image: Matrix
    text: Matrix
    cross: Matrix
    image_labels: Matrix
    text_labels: Matrix
    labels: float

    def start(self) -> Pair:
        """The start of the iteration: least squares with a small ridge."""
        return (
            _ridged(self.image, self.image_labels),
            _ridged(self.text, self.text_labels),
        )

    def misfit(self, image: Matrix, text: Matrix) -> float:
        """1/2 (||X U - Y||^2 + ||Z V - Y||^2)."""
        own = np.vdot(image, self.image @ image) + np.vdot(text, self.text @ text)
        wanted = np.vdot(image, self.image_labels) + np.vdot(text, self.text_labels)
        return float(own / 2 - wanted + self.labels)


def sums_of(views: Views) -> Sums:
    """Sums over views whose items all have labels."""
    members, moments, items = several(views.classes).members, views.moments, len(views)
    image, text = views.sums(members)  # rows are centred, so that labels need not be
    centred = members - members.mean(axis=0)
    return Sums(
        moments.image * items, moments.text * items, moments.cross * items, image, text, float(np.square(centred).sum())
    )


def row_weights(rows: Matrix) -> NDArray[np.float64]:
    """(D,) weights 1 / ||u_i|| of the squared rows in the bound of ||U||_21 at U, times two."""
    return np.asarray(1 / np.sqrt(np.square(rows).sum(axis=1) + SMOOTH))


def rows_norm(rows: Matrix) -> float:
    """||U||_21, smoothed."""
    return float(np.sqrt(np.square(rows).sum(axis=1) + SMOOTH).sum())


def with_ridge_solved(products: Matrix, ridge: NDArray[np.float64], wanted: Matrix) -> Matrix:
    """Solve (P + diag(ridge)) X = wanted for X.

    Args:
        products: (D, D) P, symmetric and positive semi-definite.
        ridge: (D,) above 0.
        wanted: (D, m).

    Raises:
        UserError: If the ridge is too small beside a singular P.
    """
    units = 1 / np.sqrt(ridge)[:, None]  # in which the ridge is 1, however unlike its numbers are
    system = units * products * units.T + np.eye(len(products))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", linalg.LinAlgWarning)
            return np.asarray(units * linalg.solve(system, units * wanted, assume_a="pos"))
    except (linalg.LinAlgError, linalg.LinAlgWarning):
        raise UserError(
            "some features follow from others, and sparsity is too small to choose among them; raise sparsity"
        ) from None


def fall(
    start: Pair,
    step: Callable[[Matrix, Matrix], Pair],
    value: Callable[[Matrix, Matrix], float],
    config: RegressionConfig,
) -> tuple[Pair, Sequence[float]]:
    """Iterate ``step`` from ``start`` (U and V) until a round gains too little of the objective ``value``.

    Returns:
        U and V, and the objective at the start and after each round.

    Raises:
        ArithmeticError: If the objective rises, which only a fault of the method can cause.
    """
    found, values = start, [value(*start)]
    for _ in range(config.rounds):
        found = step(*found)
        values.append(value(*found))
        gained = values[-2] - values[-1]
        if gained < -_RISES * abs(values[-2]):
            raise ArithmeticError(f"the objective rose from {values[-2]!r} to {values[-1]!r}")
        if gained <= config.tolerance * abs(values[-2]):
            break
    return found, tuple(values)


def rotated(sums: Sums, found: Pair, dimension: int) -> Directions:
    """Directions U and V, at most ``dimension``.

    Where there are more classes than that, the directions are those in which both projections vary most.
    """
    image, text = found
    if dimension >= image.shape[1]:
        return Directions(image, text)
    together = image.T @ sums.image @ image + text.T @ sums.text @ text
    _, vectors = linalg.eigh(together)
    most = vectors[:, ::-1][:, :dimension]
    return Directions(image @ most, text @ most)


def _ridged(products: Matrix, wanted: Matrix) -> Matrix:
    size = max(float(np.trace(products)) / len(products), np.finfo(np.float64).tiny)
    return np.asarray(linalg.solve(products + 1e-3 * size * np.eye(len(products)), wanted, assume_a="pos"))
