"""Share of relevant candidates of a query, predicted from its text vector alone.

It is a ridge regression of log((relevant + 1/2) / candidates), with the ridge chosen by cross-validation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rungwise.calibration._judgement import Values
from rungwise.calibration._logistic import fields_of, folds_of, numbers_of
from rungwise.core import UserError

_RIDGES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class RelevantShare:
    """Linear model of the logarithm of the share of candidates that are relevant to a query.

    Attributes:
        weights: (D,) weights of the text vector.
        bias: Constant term.
        crossed: (queries,) predictions for the queries of the fit, each by a fit without its group, for models that are
            fitted on top; empty when the model was read from a file.

    >>> vectors = np.random.default_rng(0).normal(size=(200, 4))
    >>> rate = RelevantShare.fit(vectors, np.exp(3 + vectors[:, 0]), 1000, np.arange(200))
    >>> round(rate.predict(np.zeros(4)), 1), round(rate.predict(np.array([1.0, 0, 0, 0])), 1)
    (-3.9, -2.9)
    """

    weights: Values
    bias: float
    crossed: Values

    @classmethod
    def fit(
        cls, vectors: ArrayLike, relevant: ArrayLike, candidates: int | ArrayLike, groups: ArrayLike
    ) -> RelevantShare:
        """Fit with a ridge chosen by cross-validation.

        Args:
            vectors: (queries, D) text vectors.
            relevant: (queries,) number of relevant candidates.
            candidates: Number of candidates, or of judged ones, for all queries or (queries,).
            groups: (queries,) group of each query; queries of one group, such as the captions of a picture, are left
                out together.
        """
        given = np.asarray(vectors, np.float64)
        wanted = np.log((np.asarray(relevant, np.float64) + 0.5) / np.asarray(candidates, np.float64))
        fold = folds_of(np.asarray(groups, np.int64))
        crossed = np.empty((len(_RIDGES), len(wanted)))
        for one in np.unique(fold):
            out = fold == one
            for number, (weights, bias) in enumerate(_ridges(given[~out], wanted[~out])):
                crossed[number, out] = given[out] @ weights + bias
        best = int(((crossed - wanted) ** 2).mean(axis=1).argmin())
        weights, bias = _ridges(given, wanted)[best]
        return cls(weights, bias, crossed[best])

    def predict(self, vector: ArrayLike) -> float:
        """Expected log((relevant + 1/2) / candidates) of a query with this (D,) vector.

        Raises:
            UserError: If the vector has another length.
        """
        given = np.asarray(vector, np.float64)
        if given.shape != self.weights.shape:
            raise UserError(
                f"calibration: it was fitted to text vectors of length {len(self.weights)}, not of shape {given.shape};"
                " calibrate for this model"
            )
        return float(given @ self.weights + self.bias)

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"weights": self.weights.tolist(), "bias": self.bias}

    @classmethod
    def from_json(cls, value: object, where: str = "calibration: rate") -> RelevantShare:
        """Read values of :meth:`to_json`; UserError if anything in them is not what a fit gives."""
        parts = fields_of(value, ("weights", "bias"), where)
        weights, bias = numbers_of(parts["weights"], f"{where}.weights"), numbers_of([parts["bias"]], f"{where}.bias")
        return cls(weights, float(bias[0]), np.zeros(0))


def _ridges(vectors: Values, wanted: Values) -> list[tuple[Values, float]]:
    """Weights and bias for every ridge, by one eigendecomposition."""
    centre, mean = vectors.mean(axis=0), float(wanted.mean())
    moved = vectors - centre
    sizes, directions = np.linalg.eigh(moved.T @ moved)
    towards = directions.T @ (moved.T @ (wanted - mean))
    out = []
    for ridge in _RIDGES:
        weights = directions @ (towards / (np.maximum(sizes, 0.0) + ridge))
        out.append((weights, mean - float(centre @ weights)))
    return out
