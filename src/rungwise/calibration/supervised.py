"""What a calibration has learnt from judged pairs: degrees and probabilities of hits, and of a query that has none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from rungwise.calibration.features import NAMES, QUERY_NAMES, hit_features
from rungwise.calibration.judgement import Known, Values
from rungwise.calibration.null import Null
from rungwise.calibration.regression import Belief, Regression
from rungwise.core.errors import UserError


@dataclass(frozen=True)
class Curve:
    """Degree and probability of a candidate by its position alone, for those beyond the best hits.

    Attributes:
        positions: (knots,) rising.
        degrees: (knots,) expected degrees, never falling.
        probabilities: (knots,) that a degree is relevant, never falling.
    """

    positions: tuple[float, ...]
    degrees: tuple[float, ...]
    probabilities: tuple[float, ...]

    def degrees_at(self, positions: Values) -> Values:
        """Expected degrees at these positions."""
        return np.asarray(np.interp(positions, self.positions, self.degrees))

    def probabilities_at(self, positions: Values) -> Values:
        """Probabilities of being relevant at these positions."""
        return np.asarray(np.interp(positions, self.positions, self.probabilities))

    def relevant_below(self, position: float) -> float:
        """Share of all candidates that are relevant and stand below a position, if positions are normal."""
        return float(np.interp(position, *self._cumulated))

    @cached_property
    def _cumulated(self) -> tuple[Values, Values]:
        grid = np.linspace(-6, 6, 241)
        density = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi) * (grid[1] - grid[0])
        return grid, np.cumsum(density * self.probabilities_at(grid))


@dataclass(frozen=True)
class Supervised:
    """A calibration's learnt part.

    Attributes:
        regression: For the best hits.
        belief: For a query.
        odds: That a query has nothing relevant, before it is seen, over the same odds among the examples of ``belief``.
        curve: For the candidates after them.
    """

    regression: Regression
    belief: Belief
    odds: float
    curve: Curve

    def judged(self, falling: Values, null: Null, known: Known | None) -> tuple[Values, Values, float, float]:
        """Judge the hits of one query.

        Returns:
            (hits,) degrees, (hits,) probabilities if there is anything relevant, how many more are expected to be
            relevant after these hits, and the belief that anything is.
        """
        features, of_query = hit_features(falling, null, known)
        predicted = self.regression.predict(features)
        degrees, probabilities = predicted.degree, predicted.probability
        if known is None or (known.caption_scores is None and known.hubness is None):
            degrees, probabilities = _falling(degrees), _falling(probabilities)
        positions = null.positions(falling[len(features) :])
        if len(positions):
            degrees = np.concatenate([degrees, np.minimum(self.curve.degrees_at(positions), degrees.min())])
            after = np.minimum(self.curve.probabilities_at(positions), probabilities.min())
            probabilities = np.concatenate([probabilities, after])
        last = float(null.positions(falling[-1:])[0])
        beyond = self.curve.relevant_below(last) * null.total if len(falling) < null.total else 0.0
        something = self.belief.predict(of_query[None])
        return degrees, probabilities, beyond, something / (something + self.odds * (1 - something))

    def to_json(self) -> dict[str, Any]:
        """As plain numbers, lists and names."""
        curve = self.curve
        return {
            "features": list(NAMES),
            "query_features": list(QUERY_NAMES),
            "regression": self.regression.to_json(),
            "belief": self.belief.to_json(),
            "odds": self.odds,
            "curve": {
                "positions": list(curve.positions),
                "degrees": list(curve.degrees),
                "probabilities": list(curve.probabilities),
            },
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Supervised:
        """What :meth:`to_json` gave.

        Raises:
            UserError: If it is anything else, without the name of the file.
        """
        if value.get("features") != list(NAMES) or value.get("query_features") != list(QUERY_NAMES):
            raise UserError("it reads features that this version does not make")
        for name in ("regression", "belief", "curve"):
            if not isinstance(value.get(name), dict):
                raise UserError(f"{name!r} is missing")
        (odds,) = _numbers({"odds": [value.get("odds")]}, "odds")
        if not 0 <= odds <= 1e9:
            raise UserError("'odds' is out of range")
        return cls(
            Regression.from_json(value["regression"]),
            Belief.from_json(value["belief"]),
            odds,
            _curve_of(value["curve"]),
        )


def _curve_of(value: Mapping[str, Any]) -> Curve:
    columns = [_numbers(value, name) for name in ("positions", "degrees", "probabilities")]
    positions, degrees, probabilities = columns
    if not 0 < len(positions) == len(degrees) == len(probabilities) <= 10_000:
        raise UserError("'curve' has columns of different lengths")
    if any(later <= earlier for earlier, later in pairwise(positions)):
        raise UserError("'curve' does not rise")
    if not all(0 <= each <= 1 for each in probabilities):
        raise UserError("'curve' has a probability outside 0..1")
    return Curve(positions, degrees, probabilities)


def _numbers(value: Mapping[str, Any], name: str) -> tuple[float, ...]:
    numbers = value.get(name)
    if not isinstance(numbers, list) or not all(type(each) in (int, float) for each in numbers):
        raise UserError(f"{name!r} is no list of numbers")
    return tuple(float(each) for each in numbers)


def _falling(values: Values) -> Values:
    """The nearest values that never rise with the rank."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, increasing=False).x)
