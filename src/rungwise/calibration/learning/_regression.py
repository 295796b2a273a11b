"""Regression of the degree and the probability of a hit, learnt from judged queries.

With x the standardised features of a hit (position in the query's null distribution, gap to the best, and
what is known of the query), the probability that its degree reaches ``relevant_from`` is ::

    P(R >= t | x) = c( sigmoid( b0 + sum_i b_i x_i + sum_(i <= j) b_ij x_i x_j ) )

The products let a feature of the query change what a feature of the hit means. Boosted trees on the same features do no
better (measured: docs/explanation/ends). b is fitted by Newton's method with a ridge penalty; with few queries there
are no products, and the ridge is chosen by cross-validation. c is an isotonic map, fitted to predictions for queries
that were left out, so that the numbers are true shares. The expected degree is fitted in the same way, to degrees
scaled to 0..1. It is kept between the two bounds that the probability gives: the degree reaches ``relevant_from`` with
this probability, and stays below it with the rest. The caller makes both non-increasing by rank within a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.calibration._judgement import Values
from rungwise.calibration._logistic import Logistic, Scale, fields_of, folds_of, names_of, numbers_of
from rungwise.core import UserError
from rungwise.core.text import evenly_spread

_ROWS = 20_000
"""Largest number of rows of a fit, drawn at random."""
_MANY, _SEVERAL, _SOME = 300, 100, 50
"""Numbers of queries from which products are always fitted, may be fitted, and from which the isotonic map is."""
_RIDGES = (1.0, 10.0, 100.0)
_KNOTS = 64
_LEAST = 1e-9
"""Lower bound of a probability."""


@dataclass(frozen=True)
class Predicted:
    """What a regression expects of hits.

    Attributes:
        degree: (hits,) expected degrees.
        probability: (hits,) probabilities that the degree is at least ``relevant_from``.
        view: (hits,) number of the view that each was predicted by; None where it is one for all.
    """

    degree: Values
    probability: Values
    view: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class _Fitted:
    """A logistic regression, and the isotonic map that turns its numbers into true shares."""

    model: Logistic
    given: Values
    meant: Values

    @classmethod
    def fit(
        cls,
        scaled: Values,
        target: Values,
        groups: NDArray[np.int64],
        rising: Sequence[int],
        some: NDArray[np.int64],
    ) -> tuple[_Fitted, Values]:
        """Fit to ``some`` of the rows; gives also the prediction for each row by a fit without its group.

        ``target`` is NaN where nobody judged.
        """
        fold = folds_of(groups)
        queries = len(np.unique(groups))
        choices = [(1.0, True)] if queries >= _MANY else [(ridge, False) for ridge in _RIDGES]
        if _SEVERAL <= queries < _MANY:
            choices += [(ridge, True) for ridge in _RIDGES[1:]]
        best: tuple[float, Logistic, Values] | None = None
        for ridge, products in choices:

            def fitted(
                rows: NDArray[np.int64], start: Logistic | None = None, ridge: float = ridge, products: bool = products
            ) -> Logistic:
                given = scaled[rows], target[rows], ridge
                return Logistic.fit(*given, products, start) if products else Logistic.fit_rising(*given, rising)

            model = fitted(some)
            apart = np.empty(len(target))
            for one in np.unique(fold):
                apart[fold == one] = fitted(some[fold[some] != one], model).predict(scaled[fold == one])
            sure = np.clip(apart, _LEAST, 1 - _LEAST)
            loss = -float(np.nanmean(target * np.log(sure) + (1 - target) * np.log(1 - sure)))
            if best is None or loss < best[0]:
                best = (loss, model, apart)
        assert best is not None
        _, model, apart = best
        same = np.array([0.0, 1.0])
        known = ~np.isnan(target)
        given, meant = isotonic(apart[known], target[known]) if queries >= _SOME else (same, same)
        return cls(model, given, meant), np.asarray(np.interp(apart, given, meant))

    def predict(self, scaled: Values) -> Values:
        return np.asarray(np.interp(self.model.predict(scaled), self.given, self.meant))

    def to_json(self) -> dict[str, Any]:
        return {"weights": self.model.to_json(), "given": self.given.tolist(), "meant": self.meant.tolist()}

    @classmethod
    def from_json(cls, value: object, columns: int, where: str) -> _Fitted:
        parts = fields_of(value, ("weights", "given", "meant"), where)
        given, meant = numbers_of(parts["given"], f"{where}.given"), numbers_of(parts["meant"], f"{where}.meant")
        rises = len(given) == len(meant) and (np.diff(given) > 0).all() and (np.diff(meant) >= 0).all()
        if not rises or min(given[0], meant[0]) < 0 or max(given[-1], meant[-1]) > 1:
            raise UserError(f"{where}: no rising map of 0..1 to 0..1; calibrate again")
        return cls(Logistic.from_json(parts["weights"], columns, f"{where}.weights"), given, meant)


@dataclass(frozen=True)
class _View:
    columns: NDArray[np.int64]
    scale: Scale
    degree: _Fitted
    probability: _Fitted


@dataclass(frozen=True)
class Regression:
    """Expected degree and probability of relevance of hits, from their features.

    What is unknown of some queries (their vector, captions of the hits) has columns of its own. Views are sets of
    columns, the richest first, each with its own regressions. A hit is judged by the first view all of whose columns
    are known.

    Attributes:
        names: (F,) names of the columns.
        lowest: Degree that stands for 0 in the fit.
        highest: Degree that stands for 1 in the fit.
        relevant_from: The degree from which a hit is relevant.

    >>> draw = np.random.default_rng(0)
    >>> position = draw.normal(size=(4000, 1))
    >>> degrees = (position[:, 0] + draw.normal(size=4000) > 1).astype(float)
    >>> fitted, _ = Regression.fit(position, degrees, np.arange(4000) // 10, relevant_from=1, names=("position",))
    >>> fitted.predict(np.array([[-1.0], [1.0], [3.0]])).probability.round(1)
    array([0. , 0.5, 1. ])
    """

    names: tuple[str, ...]
    lowest: float
    highest: float
    relevant_from: float
    _views: tuple[_View, ...]

    @classmethod
    def fit(
        cls,
        features: ArrayLike,
        degrees: ArrayLike,
        groups: ArrayLike,
        overlooked: ArrayLike | None = None,
        *,
        relevant_from: float,
        names: tuple[str, ...],
        rising: tuple[str, ...] = (),
        views: tuple[tuple[str, ...], ...] = (),
    ) -> tuple[Regression, tuple[Predicted, ...]]:
        """Fit to hits of judged queries.

        Gives also what each view predicts for every row by a fit without its group; NaN where the view knows too
        little.

        Args:
            features: (rows, F) features of hits; NaN stands for unknown.
            degrees: (rows,) degrees of relevance; NaN where nobody judged, where something is predicted all the same.
            groups: (rows,) query of each hit.
            overlooked: (rows,) probability that a hit is relevant and has the highest degree, whatever its degree says;
                0 for all if None.
            relevant_from: The degree from which a hit is relevant.
            names: (F,) names of the columns.
            rising: Names of columns in which no prediction may fall; with many queries, products bend this.
            views: Sets of columns, the richest first; empty stands for one of all columns. Views that no row knows are
                left out.

        Raises:
            UserError: If all degrees are the same, or on the same side of ``relevant_from``.
        """
        table, wanted = np.asarray(features, np.float64), np.asarray(degrees, np.float64)
        query = np.asarray(groups, np.int64)
        missed = np.zeros(len(wanted)) if overlooked is None else np.asarray(overlooked, np.float64)
        judged = ~np.isnan(wanted)
        lowest, highest = float(wanted[judged].min()), float(wanted[judged].max())
        relevant = (wanted >= relevant_from).astype(np.float64)
        if lowest == highest or relevant[judged].min() == relevant[judged].max():
            side = "all" if relevant[judged].min() else "none"
            raise UserError(
                f"calibration: {side} of the judged hits reach degree {relevant_from:g}; choose another degree"
            )
        # An overlooked hit has the highest degree.
        targets = tuple(
            np.where(judged, one + (1 - one) * missed, np.nan)
            for one in ((wanted - lowest) / (highest - lowest), relevant)
        )
        fitted: list[_View] = []
        apart: list[tuple[Values, Values]] = []
        for view in views or (names,):
            columns = np.array([names.index(name) for name in view])
            rows = np.flatnonzero(np.isfinite(table[:, columns]).all(axis=1)) if views else np.arange(len(table))
            some = np.flatnonzero(judged[rows])
            if len(some) > _ROWS:
                some = np.sort(np.random.default_rng(0).choice(some, _ROWS, replace=False))
            if len(some) == 0 or relevant[rows[some]].min() == relevant[rows[some]].max():
                continue
            kept, up = table[np.ix_(rows, columns)], [view.index(name) for name in rising if name in view]
            scale = Scale.fit(kept[some])
            scaled, parts, predicted = scale.of(kept), [], np.full((2, len(table)), np.nan)
            for number, target in enumerate(targets):
                part, predicted[number, rows] = _Fitted.fit(scaled, target[rows], query[rows], up, some)
                parts.append(part)
            fitted.append(_View(columns, scale, *parts))
            apart.append((predicted[0], predicted[1]))
        if not fitted:
            raise UserError("calibration: no judged hit has the features of any view; leave the views out")
        found = cls(names, lowest, highest, float(relevant_from), tuple(fitted))
        return found, tuple(Predicted(found._coherent(*each), each[1]) for each in apart)

    @property
    def views(self) -> int:
        """Number of views."""
        return len(self._views)

    def predict(self, features: ArrayLike) -> Predicted:
        """Predictions for (hits, F) features."""
        table = np.asarray(features, np.float64)
        degree, probability = np.empty(len(table)), np.empty(len(table))
        by = np.zeros(len(table), np.int64)
        left = np.ones(len(table), dtype=bool)
        for number, view in enumerate(self._views):
            last = view is self._views[-1]
            rows = left if last else left & np.isfinite(table[:, view.columns]).all(axis=1)
            if rows.any():
                kept = view.scale.of(table[np.ix_(rows, view.columns)])
                degree[rows], probability[rows] = view.degree.predict(kept), view.probability.predict(kept)
                by[rows] = number
                left &= ~rows
        return Predicted(self._coherent(degree, probability), probability, by)

    def _coherent(self, degree: Values, probability: Values) -> Values:
        """Degrees of scaled ones, within the bounds that the probability of being relevant gives."""
        least = self.lowest + probability * (self.relevant_from - self.lowest)
        most = self.relevant_from + probability * (self.highest - self.relevant_from)
        return np.clip(self.lowest + (self.highest - self.lowest) * degree, least, most)

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        views = [
            {
                "columns": view.columns.tolist(),
                "scale": view.scale.to_json(),
                "degree": view.degree.to_json(),
                "probability": view.probability.to_json(),
            }
            for view in self._views
        ]
        return {
            "names": list(self.names),
            "lowest": self.lowest,
            "highest": self.highest,
            "relevant_from": self.relevant_from,
            "views": views,
        }

    @classmethod
    def from_json(cls, value: object, where: str = "calibration: regression") -> Regression:
        """Read values of :meth:`to_json`; UserError if anything in them is not what a fit gives."""
        parts = fields_of(value, ("names", "lowest", "highest", "relevant_from", "views"), where)
        names = names_of(parts["names"], f"{where}.names")
        lowest, highest, least = numbers_of([parts[name] for name in ("lowest", "highest", "relevant_from")], where)
        ranges = lowest < least <= highest
        if not isinstance(parts["views"], list) or not 0 < len(parts["views"]) <= len(names) or not ranges:
            raise UserError(f"{where}: no views or no range of degrees; calibrate again")
        views = []
        for number, one in enumerate(parts["views"]):
            at = f"{where}.views[{number}]"
            view = fields_of(one, ("columns", "scale", "degree", "probability"), at)
            columns = numbers_of(view["columns"], f"{at}.columns")
            if not np.isin(columns, np.arange(len(names))).all() or len(np.unique(columns)) != len(columns):
                raise UserError(f"{at}: columns that are not among the {len(names)} names; calibrate again")
            fitted = [_Fitted.from_json(view[part], len(columns), f"{at}.{part}") for part in ("degree", "probability")]
            scale = Scale.from_json(view["scale"], len(columns), f"{at}.scale")
            views.append(_View(columns.astype(np.int64), scale, *fitted))
        return cls(names, float(lowest), float(highest), float(least), tuple(views))


def isotonic(given: ArrayLike, wanted: ArrayLike) -> tuple[Values, Values]:
    """Rising map with the smallest squared error, as points to interpolate between.

    Args:
        given: (n,) predictions.
        wanted: (n,) true values.

    Returns:
        At most 64 rising values of ``given``, and the value of the map at each.

    >>> isotonic([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1])
    (array([0.1, 0.5, 0.9]), array([0. , 0.5, 1. ]))
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(np.asarray(given, np.float64), kind="stable")
    before, after = np.asarray(given, np.float64)[order], np.asarray(wanted, np.float64)[order]
    # Equal shares of the rows first: a block is no single row, so no end of the map stands on one lucky hit.
    blocks = min(len(before), 4 * _KNOTS)
    starts = np.unique(np.linspace(0, len(before), blocks, endpoint=False).astype(np.int64))
    count = np.diff(starts, append=len(before))
    place, at = np.unique(np.add.reduceat(before, starts) / count, return_inverse=True)
    size, total = np.bincount(at, count), np.bincount(at, np.add.reduceat(after, starts))
    fitted = isotonic_regression(total / size, weights=size)
    starts = fitted.blocks[:-1]
    places, means = np.add.reduceat(size * place, starts) / np.add.reduceat(size, starts), fitted.x[starts]
    kept = evenly_spread(len(places), _KNOTS)
    return places[kept], np.clip(means[kept], 0.0, 1.0)
