"""Belief that anything is relevant to a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rungwise.calibration._logistic import Logistic, Scale, fields_of, names_of


@dataclass(frozen=True)
class Belief:
    """Logistic model of whether anything is relevant to a query, from a few features of it.

    >>> draw = np.random.default_rng(0)
    >>> best = draw.normal(size=(500, 1))
    >>> belief = Belief.fit(best, best[:, 0] > 0, names=("best",))
    >>> belief.predict(np.array([[3.0]])) > 0.9, belief.predict(np.array([[-3.0]])) < 0.1
    (True, True)
    """

    names: tuple[str, ...]
    _scale: Scale
    _model: Logistic

    @classmethod
    def fit(
        cls, features: ArrayLike, something: ArrayLike, names: tuple[str, ...], rising: tuple[str, ...] = ()
    ) -> Belief:
        """Fit to queries for which the answer is known.

        Args:
            features: (queries, G) values; NaN stands for unknown.
            something: (queries,) whether anything is relevant.
            names: (G,) names of the columns.
            rising: Names of columns in which the belief may not fall; names that are no columns are ignored.
        """
        table = np.asarray(features, np.float64)
        scale = Scale.fit(table)
        up = [names.index(name) for name in rising if name in names]
        wanted = np.asarray(something, np.float64)
        return cls(names, scale, Logistic.fit_rising(scale.of(table), wanted, 1.0, up))

    def predict(self, features: ArrayLike) -> float:
        """Belief in 0..1 from one query's (1, G) or (G,) features."""
        return float(self._model.predict(self._scale.of(np.atleast_2d(np.asarray(features, np.float64))))[0])

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"names": list(self.names), "scale": self._scale.to_json(), "weights": self._model.to_json()}

    @classmethod
    def from_json(cls, value: object, where: str = "calibration: belief") -> Belief:
        """Read values of :meth:`to_json`; UserError if anything in them is not what a fit gives."""
        parts = fields_of(value, ("names", "scale", "weights"), where)
        names = names_of(parts["names"], f"{where}.names")
        scale = Scale.from_json(parts["scale"], len(names), f"{where}.scale")
        return cls(names, scale, Logistic.from_json(parts["weights"], len(names), f"{where}.weights"))
