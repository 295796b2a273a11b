"""From features of hits to expected degrees and probabilities, learnt from judged hits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration.judgement import Values
from rungwise.core.errors import UserError


@dataclass(frozen=True)
class Predicted:
    """What a regression says of hits.

    Attributes:
        degree: (hits,) expected.
        probability: (hits,) that the degree is at least that of the relevant.
    """

    degree: Values
    probability: Values


@dataclass(frozen=True)
class Regression:
    """Degrees that rise with one feature, by isotonic regression (pool adjacent violators)."""

    column: int
    at: tuple[float, ...]
    degrees: tuple[float, ...]
    probabilities: tuple[float, ...]

    @classmethod
    def fit(
        cls,
        features: Values,
        degrees: Values,
        groups: NDArray[np.int64],
        *,
        relevant_from: float,
        names: tuple[str, ...],
        rising: tuple[str, ...],
    ) -> Regression:
        """Learn from judged hits."""
        from scipy.optimize import isotonic_regression

        column = names.index(rising[0])
        order = np.argsort(features[:, column], kind="stable")
        values, degrees = features[order, column], degrees[order]
        size = max(1, len(values) // 200)
        starts = np.arange(0, len(values), size)
        counts = np.diff(np.append(starts, len(values)))
        means = [np.add.reduceat(each, starts) / counts for each in (values, degrees, degrees >= relevant_from)]
        rising_means = [isotonic_regression(mean, weights=counts).x for mean in means[1:]]
        return cls(column, *(tuple(each.tolist()) for each in (means[0], *rising_means)))

    def predict(self, features: Values) -> Predicted:
        """Judge hits by their (hits, features)."""
        values = features[:, self.column]
        return Predicted(np.interp(values, self.at, self.degrees), np.interp(values, self.at, self.probabilities))

    def to_json(self) -> dict[str, Any]:
        """Numbers and lists."""
        return {"column": self.column, "at": self.at, "degrees": self.degrees, "probabilities": self.probabilities}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Regression:
        """What :meth:`to_json` gave."""
        try:
            lists = [tuple(float(x) for x in value[name]) for name in ("at", "degrees", "probabilities")]
            return cls(int(value["column"]), *lists)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError("regression: not one") from error


@dataclass(frozen=True)
class Belief:
    """Logistic regression: is there anything relevant?"""

    weights: tuple[float, ...]
    bias: float
    means: tuple[float, ...]
    spreads: tuple[float, ...]

    @classmethod
    def fit(cls, features: Values, something: NDArray[np.bool_], names: tuple[str, ...]) -> Belief:
        """Learn from queries with and without anything relevant."""
        from scipy.optimize import minimize

        known = np.ma.masked_invalid(features)
        means, spreads = np.ma.filled(known.mean(axis=0), 0.0), np.ma.filled(known.std(axis=0), 0.0)
        spreads[spreads < 1e-12] = 1.0
        x = np.nan_to_num((features - means) / spreads)
        y = np.where(something, 1.0, -1.0)

        def loss(w: Values) -> float:
            return float(
                np.logaddexp(0, -y * (x @ w[:-1] + w[-1])).sum() + 0.5 * (w[:-1] ** 2).sum() + 0.01 * w[-1] ** 2
            )

        best = minimize(loss, np.zeros(x.shape[1] + 1)).x
        return cls(tuple(best[:-1].tolist()), float(best[-1]), tuple(means.tolist()), tuple(spreads.tolist()))

    def predict(self, features: Values) -> float:
        """Of one query, its (1, features)."""
        x = np.nan_to_num((features[0] - self.means) / np.asarray(self.spreads))
        return float(1 / (1 + np.exp(-(x @ self.weights + self.bias))))

    def to_json(self) -> dict[str, Any]:
        """Numbers and lists."""
        return {"weights": self.weights, "bias": self.bias, "means": self.means, "spreads": self.spreads}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Belief:
        """What :meth:`to_json` gave."""
        try:
            lists = {name: tuple(float(x) for x in value[name]) for name in ("weights", "means", "spreads")}
            return cls(bias=float(value["bias"]), **lists)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError("belief: not one") from error
