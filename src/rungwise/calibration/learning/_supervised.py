"""The learnt part of a calibration: degrees and probabilities of hits, and whether a query has any relevant hit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from rungwise.calibration._judgement import Known, Values
from rungwise.calibration._logistic import fields_of, numbers_of
from rungwise.calibration._null_distribution import Null
from rungwise.calibration.learning._belief import Belief
from rungwise.calibration.learning._features import NAMES, QUERY_NAMES, QUERY_VIEWS, hit_features
from rungwise.calibration.learning._rate import RelevantShare
from rungwise.calibration.learning._regression import Regression
from rungwise.calibration.learning._shift import MOST as MOST_SHIFT
from rungwise.core import UserError
from rungwise.core.output import short_repr

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
class Rule:
    """What is done with the numbers of one view of a regression.

    Attributes:
        shift: Standard deviation of the common shift of a query's log-odds
            (:mod:`rungwise.calibration.learning._shift`).
        exactly: Smallest expected degree that is called "exactly" (:mod:`rungwise.calibration._rung_names`).
        close: Smallest expected degree that is called "close".
    """

    shift: float
    exactly: float
    close: float


@dataclass(frozen=True)
class JudgedScores:
    """What was learnt, said of the hits of one query.

    Attributes:
        degrees: (hits,) expected degrees.
        probabilities: (hits,) probability that each is relevant, if anything is.
        beyond: Expected number of relevant candidates after these hits.
        belief: Belief that anything is relevant.
        enough: Whether that is enough to show anything.
        rule: What is done with these numbers.
    """

    degrees: Values
    probabilities: Values
    beyond: float
    belief: float
    enough: bool
    rule: Rule


@dataclass(frozen=True)
class Supervised:
    """Everything that a calibration learns from judged pairs of queries of about one length.

    Attributes:
        regression: Regression for the best hits.
        rules: What is done with the numbers of each view of the regression.
        beliefs: Models of belief for different knowledge of a query, the richest first.
        floor: Least belief with which anything is shown.
        odds: Prior odds that a query has nothing relevant, relative to the odds among the examples of ``beliefs``.
        curve: Curve for the candidates after the best hits.
        rate: Model of the share of relevant candidates by the query's vector; None if no vectors were known.
    """

    regression: Regression
    rules: tuple[Rule, ...]
    beliefs: tuple[Belief, ...]
    floor: float
    odds: float
    curve: PositionCurve
    rate: RelevantShare | None = None

    __repr__ = short_repr

    def judged(self, falling: Values, null: Null, known: Known | None) -> JudgedScores:
        """Judge the hits of one query."""
        log_rate = np.nan
        if self.rate is not None and known is not None and known.vector is not None:
            log_rate = self.rate.predict(known.vector)
        featured, features, of_query = hit_features(falling, null, known, log_rate)
        predicted = self.regression.predict(features)
        assert predicted.view is not None
        degrees, probabilities = predicted.degree, predicted.probability
        if known is None or (known.caption_scores is None and known.stated is None):
            degrees, probabilities = _falling(degrees), _falling(probabilities)
        if len(featured) < len(falling):
            # Texts are known of the first hits, and may make one of them less likely than those that follow.
            positions = null.positions(falling)
            after = np.minimum(self.curve.degrees_at(positions), _last(degrees))
            likely = np.minimum(self.curve.probabilities_at(positions), _last(probabilities))
            after[featured], likely[featured] = degrees, probabilities
            degrees, probabilities = after, likely
        nearest = len(falling) if known is None or known.nearest is None else known.nearest
        # Hits that were found by their words are among those that come after the nearest.
        beyond = self.curve.relevant_after(nearest, float(falling[nearest - 1]), null)
        beyond = max(0.0, beyond - float(probabilities[nearest:].sum()))
        belief = belief_of(self.beliefs, of_query, self.odds)
        return JudgedScores(
            degrees, probabilities, beyond, belief, belief >= self.floor, self.rules[int(predicted.view.min())]
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        curve = self.curve
        return {
            "regression": self.regression.to_json(),
            "beliefs": [belief.to_json() for belief in self.beliefs],
            "floor": self.floor,
            "odds": self.odds,
            "rules": [asdict(rule) for rule in self.rules],
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
        if not all(set(belief.names) <= set(QUERY_NAMES) for belief in read) or read[-1].names != QUERY_VIEWS[-1]:
            raise UserError("'beliefs' read features that this version does not make")
        odds, floor = (float(numbers_of([value.get(name)], f"{name!r}")[0]) for name in ("odds", "floor"))
        if not (0 <= odds <= _MOST_ODDS and 0 <= floor <= 1):
            raise UserError("'odds' or 'floor' is out of range")
        rate = value.get("rate")
        return cls(
            regression,
            _rules_of(value.get("rules"), regression.views),
            read,
            floor,
            odds,
            _curve_of(value.get("curve")),
            None if rate is None else RelevantShare.from_json(rate, "'rate'"),
        )


def belief_of(beliefs: Sequence[Belief], of_query: Values, odds: float) -> float:
    """Belief that anything is relevant to a query, by the richest model whose features are known."""
    for belief in beliefs:
        columns = [QUERY_NAMES.index(name) for name in belief.names]
        if belief is beliefs[-1] or not np.isnan(of_query[columns]).any():
            something = belief.predict(of_query[None, columns])
            return something / (something + odds * (1 - something))
    raise AssertionError("a calibration has at least one belief")


def _rules_of(value: object, views: int) -> tuple[Rule, ...]:
    if not isinstance(value, list) or len(value) != views:
        raise UserError("'rules' are not one for each view")
    rules = []
    for each in value:
        parts = fields_of(each, ("shift", "exactly", "close"), "'rules'")
        rule = Rule(*(float(one) for one in numbers_of(list(parts.values()), "'rules'")))
        if not 0 <= rule.shift <= MOST_SHIFT or rule.exactly < rule.close:
            raise UserError("'rules' are out of range")
        rules.append(rule)
    return tuple(rules)


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
