"""The learnt part of a calibration: degrees and probabilities of hits, and whether a query has any relevant hit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from rungwise.calibration._judgement import Known, Values
from rungwise.calibration._logistic import numbers_of
from rungwise.calibration._null_distribution import Null
from rungwise.calibration.learning._belief import Belief
from rungwise.calibration.learning._features import NAMES, QUERY_NAMES, QUERY_VIEWS, hit_features
from rungwise.calibration.learning._rate import RelevantShare
from rungwise.calibration.learning._regression import Regression
from rungwise.calibration.learning._shift import MOST as MOST_SHIFT
from rungwise.core import UserError

_MOST_ODDS = 1e9
_MOST_KNOTS = 10_000
_LAST = 10
"""Number of best hits by which later ones are bounded."""


@dataclass(frozen=True)
class PositionCurve:
    """Degree and probability of a candidate by its position alone, for those beyond the best hits.

    Attributes:
        positions: (knots,) rising positions.
        degrees: (knots,) expected degrees, never falling.
        probabilities: (knots,) probabilities of being relevant, never falling.
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

    def relevant_after(self, hits: int, last: float, null: Null) -> float:
        """Expected number of relevant candidates after ``hits`` hits, the last of which has the score ``last``."""
        if hits >= null.total:
            return 0.0
        return self.relevant_below(float(null.positions(np.array([last]))[0])) * null.total

    @cached_property
    def _cumulated(self) -> tuple[Values, Values]:
        grid = np.linspace(-6, 6, 241)
        density = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi) * (grid[1] - grid[0])
        return grid, np.cumsum(density * self.probabilities_at(grid))


@dataclass(frozen=True)
class Supervised:
    """Everything that a calibration learns from judged pairs.

    Attributes:
        regression: Regression for the best hits.
        beliefs: Models of belief for different knowledge of a query, the richest first.
        odds: Prior odds that a query has nothing relevant, relative to the odds among the examples of ``beliefs``.
        curve: Curve for the candidates after the best hits.
        shift: Standard deviation of the common shift of a query's log-odds
            (:mod:`rungwise.calibration.learning._shift`).
        rate: Model of the share of relevant candidates by the query's vector; None if no vectors were known.
    """

    regression: Regression
    beliefs: tuple[Belief, ...]
    odds: float
    curve: PositionCurve
    shift: float
    rate: RelevantShare | None = None

    def judged(self, falling: Values, null: Null, known: Known | None) -> tuple[Values, Values, float, float]:
        """Judge the hits of one query.

        Returns:
            (hits,) degrees, (hits,) probabilities if anything is relevant, the expected number of relevant candidates
            after these hits, and the belief that anything is relevant.
        """
        log_rate = np.nan
        if self.rate is not None and known is not None and known.vector is not None:
            log_rate = self.rate.predict(known.vector)
        features, of_query = hit_features(falling, null, known, log_rate)
        predicted = self.regression.predict(features)
        degrees, probabilities = predicted.degree, predicted.probability
        if known is None or known.caption_scores is None:
            degrees, probabilities = _falling(degrees), _falling(probabilities)
        positions = null.positions(falling[len(features) :])
        if len(positions):
            # Captions are known of the first hits only, and may make one of them less likely than those that follow.
            degrees = np.concatenate([degrees, np.minimum(self.curve.degrees_at(positions), _last(degrees))])
            after = np.minimum(self.curve.probabilities_at(positions), _last(probabilities))
            probabilities = np.concatenate([probabilities, after])
        beyond = self.curve.relevant_after(len(falling), float(falling[-1]), null)
        something = self._belief(of_query)
        return degrees, probabilities, beyond, something / (something + self.odds * (1 - something))

    def _belief(self, of_query: Values) -> float:
        for belief in self.beliefs:
            columns = [QUERY_NAMES.index(name) for name in belief.names]
            if belief is self.beliefs[-1] or not np.isnan(of_query[columns]).any():
                return belief.predict(of_query[None, columns])
        raise AssertionError("a calibration has at least one belief")

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        curve = self.curve
        return {
            "regression": self.regression.to_json(),
            "beliefs": [belief.to_json() for belief in self.beliefs],
            "odds": self.odds,
            "shift": self.shift,
            "curve": {
                "positions": list(curve.positions),
                "degrees": list(curve.degrees),
                "probabilities": list(curve.probabilities),
            },
            "rate": None if self.rate is None else self.rate.to_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Supervised:
        """Read values of :meth:`to_json`; UserError, without the file's name, for others."""
        regression = Regression.from_json(value.get("regression"), "'regression'")
        if regression.names != NAMES:
            raise UserError("'regression' reads features that this version does not make")
        beliefs = value.get("beliefs")
        if not isinstance(beliefs, list) or not 0 < len(beliefs) <= len(QUERY_VIEWS):
            raise UserError(f"'beliefs' is no list of 1 to {len(QUERY_VIEWS)}")
        read = tuple(Belief.from_json(belief, "'beliefs'") for belief in beliefs)
        if not all(belief.names in QUERY_VIEWS for belief in read) or read[-1].names != QUERY_VIEWS[-1]:
            raise UserError("'beliefs' read features that this version does not make")
        odds, shift = (float(numbers_of([value.get(name)], f"'{name}'")[0]) for name in ("odds", "shift"))
        if not 0 <= odds <= _MOST_ODDS:
            raise UserError("'odds' is out of range")
        if not 0 <= shift <= MOST_SHIFT:
            raise UserError("'shift' is out of range")
        rate = value.get("rate")
        return cls(
            regression,
            read,
            odds,
            _curve_of(value.get("curve")),
            shift,
            None if rate is None else RelevantShare.from_json(rate, "'rate'"),
        )


def _curve_of(value: object) -> PositionCurve:
    if not isinstance(value, dict):
        raise UserError("'curve' is missing")
    columns = [numbers_of(value.get(name), f"'{name}'") for name in ("positions", "degrees", "probabilities")]
    positions, degrees, probabilities = (tuple(column.tolist()) for column in columns)
    if not 0 < len(positions) == len(degrees) == len(probabilities) <= _MOST_KNOTS:
        raise UserError("'curve' has columns of different lengths")
    if any(later <= earlier for earlier, later in pairwise(positions)):
        raise UserError("'curve' does not rise")
    if not all(0 <= each <= 1 for each in probabilities):
        raise UserError("'curve' has a probability outside 0..1")
    return PositionCurve(positions, degrees, probabilities)


def _last(values: Values) -> float:
    return float(values[-_LAST:].mean())


def _falling(values: Values) -> Values:
    """The nearest values that never rise with the rank."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, increasing=False).x)
