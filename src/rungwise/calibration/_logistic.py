"""Logistic regression of standardised features, and checks of its numbers in a calibration's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration._judgement import Values
from rungwise.core import UserError

_STEPS, _LEAST_SHARE = 25, 1e-3
_STRIDE, _SETTLED = 3.0, 1e-3
"""Largest change of a coefficient in a step, and the change at which a fit is done."""
_FLAT = 1e-9
"""Smallest spread that counts, and lower bound of a probability."""
_CLIP = 4.0
"""Standard deviations to which features are clipped, so that an unusual query is not extrapolated to."""
_FOLDS = 4
_LONGEST = 65_536
"""Largest number of entries in a list that is read."""


@dataclass(frozen=True)
class Scale:
    """Standardisation of columns: mean 0 and standard deviation 1 in the fit, unknown values at 0.

    Attributes:
        centre: (F,) means.
        spread: (F,) standard deviations.
    """

    centre: Values
    spread: Values

    @classmethod
    def fit(cls, features: Values) -> Scale:
        """Fit to (rows, F) features; NaN stands for unknown."""
        known = np.isfinite(features)
        count = np.maximum(known.sum(axis=0), 1)
        centre = np.where(known, features, 0.0).sum(axis=0) / count
        spread = np.sqrt((np.where(known, features - centre, 0.0) ** 2).sum(axis=0) / count)
        spread[spread < _FLAT] = 1.0
        return cls(centre, spread)

    def of(self, features: Values) -> Values:
        """(rows, F) standardised features, never NaN."""
        scaled = (features - self.centre) / self.spread
        scaled[~np.isfinite(features)] = 0.0
        return np.clip(scaled, -_CLIP, _CLIP, out=scaled)

    def to_json(self) -> dict[str, list[float]]:
        """Plain values for JSON."""
        return {"centre": self.centre.tolist(), "spread": self.spread.tolist()}

    @classmethod
    def from_json(cls, value: object, columns: int, where: str) -> Scale:
        """Read values of :meth:`to_json` for ``columns`` columns; UserError, which names ``where``, for others."""
        parts = fields_of(value, ("centre", "spread"), where)
        centre, spread = (numbers_of(parts[name], f"{where}.{name}") for name in ("centre", "spread"))
        if len(centre) != columns or len(spread) != columns or (spread < _FLAT).any():
            raise UserError(f"{where}: numbers for {columns} features do not fit together; calibrate again")
        return cls(centre, spread)


@dataclass(frozen=True)
class Logistic:
    """Logistic regression on scaled columns, with or without their products.

    Attributes:
        weights: (1 + F,) or (1 + F + F (F + 1) / 2,) coefficients.
        columns: Number F of columns.
    """

    weights: Values
    columns: int

    @classmethod
    def fit(
        cls,
        scaled: Values,
        target: Values,
        ridge: float,
        products: bool,
        start: Logistic | None = None,
    ) -> Logistic:
        """Fit by Newton's method; ``target`` in 0..1 may be fractional."""
        if start is None:
            weights = np.zeros(_width(scaled.shape[1], products))
            mean = float(np.clip(target.mean(), 1e-6, 1 - 1e-6))
            weights[0] = np.log(mean / (1 - mean))
        else:
            weights = start.weights
        penalty = np.full(len(weights), ridge)
        penalty[0] = 0.0
        fit = _Likelihood(_terms(scaled, products), target, penalty)
        reached = fit.of(weights)
        for _ in range(_STEPS):
            step = fit.newton(weights)
            # Where rows are almost parted by a column, a whole step overshoots, and all after it.
            share = min(1.0, _STRIDE / max(float(np.abs(step).max()), _FLAT))
            now = fit.of(weights + share * step)
            while now < reached and share > _LEAST_SHARE:
                share /= 2
                now = fit.of(weights + share * step)
            if now < reached:
                break
            weights, reached = weights + share * step, now
            if np.abs(step).max() < _SETTLED:
                break
        return cls(weights, scaled.shape[1])

    @classmethod
    def fit_rising(cls, scaled: Values, target: Values, ridge: float, rising: Sequence[int]) -> Logistic:
        """Fit without products; a column that must not fall and does is left out."""
        model = cls.fit(scaled, target, ridge, products=False)
        while falls := [one for one in rising if model.weights[1 + one] < 0]:
            scaled = scaled.copy()
            scaled[:, falls] = 0.0
            model = cls.fit(scaled, target, ridge, products=False)
        return model

    @cached_property
    def _form(self) -> Values:
        """(F, F) coefficients of products, above and on the diagonal."""
        form = np.zeros((self.columns, self.columns))
        if len(self.weights) > 1 + self.columns:
            form[np.triu_indices(self.columns)] = self.weights[1 + self.columns :]
        return form

    def predict(self, scaled: Values) -> Values:
        """(rows,) probabilities."""
        straight = scaled @ self.weights[1 : 1 + self.columns] + self.weights[0]
        return sigmoid(straight + np.einsum("ij,ij->i", scaled @ self._form, scaled))

    def to_json(self) -> list[float]:
        """Plain values for JSON."""
        return [float(one) for one in self.weights]

    @classmethod
    def from_json(cls, value: object, columns: int, where: str) -> Logistic:
        """Read values of :meth:`to_json` for ``columns`` columns; UserError, which names ``where``, for others."""
        weights = numbers_of(value, where)
        if len(weights) not in {_width(columns, products) for products in (False, True)}:
            raise UserError(f"{where}: {len(weights)} numbers do not fit {columns} features; calibrate again")
        return cls(weights, columns)


@dataclass(frozen=True)
class _Likelihood:
    """Penalised log-likelihood of a logistic regression, and Newton's steps towards its maximum."""

    table: Values
    target: Values
    penalty: Values

    def of(self, weights: Values) -> float:
        odds = self.table @ weights
        return float((self.target * odds - np.logaddexp(0.0, odds)).sum() - self.penalty @ weights**2 / 2)

    def newton(self, weights: Values) -> Values:
        expected = sigmoid(self.table @ weights)
        slope = self.table.T @ (self.target - expected) - self.penalty * weights
        curve = (self.table * (expected * (1 - expected))[:, None]).T @ self.table
        return np.asarray(np.linalg.solve(curve + np.diag(np.maximum(self.penalty, 1e-9)), slope))


def folds_of(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """(rows,) fold of each row, the same for rows of a group."""
    _, at = np.unique(groups, return_inverse=True)
    of_group = np.random.default_rng(0).permutation(int(at.max()) + 1) % _FOLDS
    return np.asarray(of_group[at])


def _terms(scaled: Values, products: bool) -> Values:
    """(rows, terms) a column of 1, the columns, and their products."""
    parts = [np.ones((len(scaled), 1)), scaled]
    if products:
        first, second = np.triu_indices(scaled.shape[1])
        parts.append(scaled[:, first] * scaled[:, second])
    return np.concatenate(parts, axis=1)


def sigmoid(x: Values) -> Values:
    """Probabilities of log-odds, without overflow.

    >>> sigmoid(np.array([-800.0, 0.0, 800.0]))
    array([0. , 0.5, 1. ])
    """
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


def _width(columns: int, products: bool) -> int:
    return 1 + columns + (columns * (columns + 1) // 2 if products else 0)


def fields_of(value: object, names: tuple[str, ...], where: str) -> dict[str, Any]:
    """Check that ``value`` is an object with exactly these fields; UserError, which names ``where``, otherwise."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise UserError(f"{where}: not the fields {', '.join(names)}; calibrate again")
    return value


def numbers_of(value: object, where: str) -> Values:
    """Array of a list of finite numbers; UserError, which names ``where``, for anything else."""
    if not isinstance(value, list) or not 0 < len(value) <= _LONGEST:
        raise UserError(f"{where}: no list of 1 to {_LONGEST} numbers; calibrate again")
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and abs(one) < 1e30 for one in value):
        raise UserError(f"{where}: holds what is no finite number; calibrate again")
    return np.array(value, np.float64)


def names_of(value: object, where: str) -> tuple[str, ...]:
    """Tuple of a list of at most 64 texts; UserError, which names ``where``, for anything else."""
    if not isinstance(value, list) or not 0 < len(value) <= 64 or not all(isinstance(one, str) for one in value):
        raise UserError(f"{where}: no list of 1 to 64 names; calibrate again")
    return tuple(value)
