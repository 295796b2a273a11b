"""What is learnt from judged queries: degree and probability of a hit, belief in a query, how much to expect of it.

**Hits.** With x the standardised features of a hit (position in the query's null distribution, gap to the best, and
what is known of the query), the probability that its degree reaches ``relevant_from`` is ::

    P(R >= t | x) = c( sigmoid( b0 + sum_i b_i x_i + sum_(i <= j) b_ij x_i x_j ) )

The products let a feature of the query change what a feature of the hit means. Boosted trees on the same features end
no better (measured, see docs/relevance-ends.md). b is fitted by Newton's method with a ridge penalty; with few queries
there are no products, and the ridge is chosen by cross-validation. c is an isotonic map, fitted to predictions for
queries that were left out, so that the numbers are shares that hold. The expected degree is fitted in the same way, to
degrees scaled to 0..1. Within a query, whoever asks makes both non-increasing by rank.

**Rate.** How many candidates a query has by its text alone: ridge regression of log((relevant + 1/2) / candidates) on
the query's text vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.errors import UserError

Values = NDArray[np.float64]

_ROWS = 60_000
"""Rows that a fit looks at, drawn at random."""
_MANY, _SOME = 300, 50
"""Queries from which products are fitted without asking; from which the isotonic map is fitted."""
_FOLDS = 4
_RIDGES = (1.0, 10.0, 100.0)
_RATE_RIDGES = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_STEPS = 15
_STRIDE, _SETTLED = 3.0, 1e-3
"""The largest change of a coefficient in a step; the change at which a fit is done."""
_BLOCK = 16_384
_FLAT = 1e-9
"""A spread below it is none, and a probability below it is taken for it."""
_CLIP = 4.0
"""Standard deviations to which features are clipped: an unusual query is not extrapolated to."""
_KNOTS = 64
_LONGEST = 65_536
"""Numbers in a list that is read."""


@dataclass(frozen=True)
class Predicted:
    """Of hits.

    Attributes:
        degree: (hits,) expected degree of relevance.
        probability: (hits,) that the degree is at least ``relevant_from``.
    """

    degree: Values
    probability: Values


@dataclass(frozen=True)
class _Scale:
    """Columns made comparable: mean 0 and standard deviation 1 in the fit, the unknown at 0.

    Attributes:
        centre: (F,) means.
        spread: (F,) standard deviations.
    """

    centre: Values
    spread: Values

    @classmethod
    def fit(cls, features: Values) -> _Scale:
        known = np.isfinite(features)
        count = np.maximum(known.sum(axis=0), 1)
        centre = np.where(known, features, 0.0).sum(axis=0) / count
        spread = np.sqrt((np.where(known, features - centre, 0.0) ** 2).sum(axis=0) / count)
        spread[spread < _FLAT] = 1.0
        return cls(centre, spread)

    def of(self, features: Values) -> Values:
        """(rows, F) scaled, never NaN."""
        scaled = (features - self.centre) / self.spread
        scaled[~np.isfinite(features)] = 0.0
        return np.clip(scaled, -_CLIP, _CLIP, out=scaled)

    def to_json(self) -> dict[str, list[float]]:
        return {"centre": self.centre.tolist(), "spread": self.spread.tolist()}

    @classmethod
    def from_json(cls, value: object, columns: int, where: str) -> _Scale:
        parts = _fields(value, ("centre", "spread"), where)
        centre, spread = (_numbers(parts[name], f"{where}.{name}") for name in ("centre", "spread"))
        if len(centre) != columns or len(spread) != columns or (spread < _FLAT).any():
            raise UserError(f"{where}: numbers for {columns} features do not fit together; calibrate again")
        return cls(centre, spread)


@dataclass(frozen=True)
class _Logistic:
    """Logistic regression on scaled columns, with or without their products.

    Attributes:
        weights: (1 + F,) or (1 + F + F (F + 1) / 2,) coefficients.
        columns: F.
    """

    weights: Values
    columns: int

    @classmethod
    def fit(
        cls, scaled: Values, target: Values, ridge: float, products: bool, start: _Logistic | None = None
    ) -> _Logistic:
        """Newton's method; ``target`` in 0..1 may be fractional."""
        if start is None:
            weights = np.zeros(_width(scaled.shape[1], products))
            mean = float(np.clip(target.mean(), 1e-6, 1 - 1e-6))
            weights[0] = np.log(mean / (1 - mean))
        else:
            weights = start.weights
        penalty = np.full(len(weights), ridge)
        penalty[0] = 0.0
        for _ in range(_STEPS):
            slope, curve = -penalty * weights, np.diag(np.maximum(penalty, 1e-9))
            for begin in range(0, len(target), _BLOCK):
                table = _terms(scaled[begin : begin + _BLOCK], products)
                expected = _sigmoid(table @ weights)
                slope += table.T @ (target[begin : begin + _BLOCK] - expected)
                curve += (table * (expected * (1 - expected))[:, None]).T @ table
            step = np.linalg.solve(curve, slope)
            weights = weights + step * min(1.0, _STRIDE / max(float(np.abs(step).max()), _FLAT))
            if np.abs(step).max() < _SETTLED:
                break
        return cls(weights, scaled.shape[1])

    @classmethod
    def fit_rising(cls, scaled: Values, target: Values, ridge: float, rising: Sequence[int]) -> _Logistic:
        """Without products; a column that must not fall, and does, is left out."""
        model = cls.fit(scaled, target, ridge, products=False)
        while falls := [one for one in rising if model.weights[1 + one] < 0]:
            scaled = scaled.copy()
            scaled[:, falls] = 0.0
            model = cls.fit(scaled, target, ridge, products=False)
        return model

    @cached_property
    def _form(self) -> Values:
        """(F, F) the coefficients of products, above and on the diagonal."""
        form = np.zeros((self.columns, self.columns))
        if len(self.weights) > 1 + self.columns:
            form[np.triu_indices(self.columns)] = self.weights[1 + self.columns :]
        return form

    def predict(self, scaled: Values) -> Values:
        """(rows,) in 0..1."""
        straight = scaled @ self.weights[1 : 1 + self.columns] + self.weights[0]
        return _sigmoid(straight + np.einsum("ij,ij->i", scaled @ self._form, scaled))

    def to_json(self) -> list[float]:
        return [float(one) for one in self.weights]

    @classmethod
    def from_json(cls, value: object, columns: int, where: str) -> _Logistic:
        weights = _numbers(value, where)
        if len(weights) not in {_width(columns, products) for products in (False, True)}:
            raise UserError(f"{where}: {len(weights)} numbers do not fit {columns} features; calibrate again")
        return cls(weights, columns)


@dataclass(frozen=True)
class _Fitted:
    """A logistic regression and the isotonic map that makes its numbers shares that hold."""

    model: _Logistic
    given: Values
    meant: Values

    @classmethod
    def fit(cls, scaled: Values, target: Values, groups: NDArray[np.int64], rising: Sequence[int]) -> _Fitted:
        fold = _folds(groups)
        queries = len(np.unique(groups))
        choices = [(1.0, True)] if queries >= _MANY else [(ridge, False) for ridge in _RIDGES]
        best: tuple[float, _Logistic, Values] | None = None
        for ridge, products in choices:
            if products:
                model = _Logistic.fit(scaled, target, ridge, products)
            else:
                model = _Logistic.fit_rising(scaled, target, ridge, rising)
            apart = np.empty(len(target))
            for one in np.unique(fold):
                out = fold == one
                if products:
                    left = _Logistic.fit(scaled[~out], target[~out], ridge, products, model)
                else:
                    left = _Logistic.fit_rising(scaled[~out], target[~out], ridge, rising)
                apart[out] = left.predict(scaled[out])
            sure = np.clip(apart, _FLAT, 1 - _FLAT)
            loss = -float(np.mean(target * np.log(sure) + (1 - target) * np.log(1 - sure)))
            if best is None or loss < best[0]:
                best = (loss, model, apart)
        assert best is not None
        _, model, apart = best
        given, meant = isotonic(apart, target) if queries >= _SOME else (np.array([0.0, 1.0]), np.array([0.0, 1.0]))
        return cls(model, given, meant)

    def predict(self, scaled: Values) -> Values:
        return np.asarray(np.interp(self.model.predict(scaled), self.given, self.meant))

    def to_json(self) -> dict[str, Any]:
        return {"weights": self.model.to_json(), "given": self.given.tolist(), "meant": self.meant.tolist()}

    @classmethod
    def from_json(cls, value: object, columns: int, where: str) -> _Fitted:
        parts = _fields(value, ("weights", "given", "meant"), where)
        given, meant = _numbers(parts["given"], f"{where}.given"), _numbers(parts["meant"], f"{where}.meant")
        rises = len(given) == len(meant) and (np.diff(given) > 0).all() and (np.diff(meant) >= 0).all()
        if not rises or min(given[0], meant[0]) < 0 or max(given[-1], meant[-1]) > 1:
            raise UserError(f"{where}: no rising map of 0..1 to 0..1; calibrate again")
        return cls(_Logistic.from_json(parts["weights"], columns, f"{where}.weights"), given, meant)


@dataclass(frozen=True)
class _View:
    """Both regressions on some of the columns."""

    columns: NDArray[np.int64]
    scale: _Scale
    degree: _Fitted
    probability: _Fitted


@dataclass(frozen=True)
class Regression:
    """From features of hits to expected degree and to the probability of being relevant.

    What is not known of every query (its vector, captions of the hits) stands in columns of its own: ``views`` names
    sets of columns, the richest first, and each has regressions of its own. A hit is judged by the first view of which
    all columns are known.

    Attributes:
        names: (F,) of the columns.
        lowest: Degree that stands for 0 while fitting.
        highest: Degree that stands for 1.

    >>> draw = np.random.default_rng(0)
    >>> position = draw.normal(size=(4000, 1))
    >>> degrees = (position[:, 0] + draw.normal(size=4000) > 1).astype(float)
    >>> fitted = Regression.fit(position, degrees, np.arange(4000) // 10, relevant_from=1, names=("position",))
    >>> fitted.predict(np.array([[-1.0], [1.0], [3.0]])).probability.round(1)
    array([0. , 0.5, 1. ])
    """

    names: tuple[str, ...]
    lowest: float
    highest: float
    _views: tuple[_View, ...]

    @classmethod
    def fit(
        cls,
        features: ArrayLike,
        degrees: ArrayLike,
        groups: ArrayLike,
        *,
        relevant_from: float,
        names: tuple[str, ...],
        rising: tuple[str, ...] = (),
        views: tuple[tuple[str, ...], ...] = (),
    ) -> Regression:
        """Fit to hits of judged queries.

        Args:
            features: (rows, F) of hits; NaN is not known.
            degrees: (rows,) of relevance.
            groups: (rows,) the query of each.
            relevant_from: The degree from which a hit is relevant.
            names: (F,) of the columns.
            rising: Names of columns in which no answer may fall; with many queries, products bend them.
            views: Sets of columns, the richest first; one of all columns if empty. One that no row knows is left out.

        Raises:
            UserError: If all degrees are the same, or on the same side of ``relevant_from``.
        """
        table, wanted = np.asarray(features, np.float64), np.asarray(degrees, np.float64)
        query = np.asarray(groups, np.int64)
        lowest, highest = float(wanted.min()), float(wanted.max())
        relevant = (wanted >= relevant_from).astype(np.float64)
        if lowest == highest or relevant.min() == relevant.max():
            side = "all" if relevant.min() else "none"
            raise UserError(
                f"calibration: {side} of the judged hits reach degree {relevant_from:g}; choose another degree"
            )
        fitted = []
        for view in views or (names,):
            columns = np.array([names.index(name) for name in view])
            rows = np.flatnonzero(np.isfinite(table[:, columns]).all(axis=1)) if views else np.arange(len(table))
            if len(rows) > _ROWS:
                rows = np.sort(np.random.default_rng(0).choice(rows, _ROWS, replace=False))
            if len(rows) == 0 or relevant[rows].min() == relevant[rows].max():
                continue
            kept, up = table[np.ix_(rows, columns)], [view.index(name) for name in rising if name in view]
            scale = _Scale.fit(kept)
            parts = [
                _Fitted.fit(scale.of(kept), target[rows], query[rows], up)
                for target in ((wanted - lowest) / (highest - lowest), relevant)
            ]
            fitted.append(_View(columns, scale, *parts))
        if not fitted:
            raise UserError("calibration: no judged hit has the features of any view; leave the views out")
        return cls(names, lowest, highest, tuple(fitted))

    def predict(self, features: ArrayLike) -> Predicted:
        """Of (hits, F) features."""
        table = np.asarray(features, np.float64)
        degree, probability = np.empty(len(table)), np.empty(len(table))
        left = np.ones(len(table), dtype=bool)
        for view in self._views:
            last = view is self._views[-1]
            rows = left if last else left & np.isfinite(table[:, view.columns]).all(axis=1)
            if rows.any():
                kept = view.scale.of(table[np.ix_(rows, view.columns)])
                degree[rows], probability[rows] = view.degree.predict(kept), view.probability.predict(kept)
                left &= ~rows
        return Predicted(self.lowest + (self.highest - self.lowest) * degree, probability)

    def to_json(self) -> dict[str, Any]:
        """Numbers, names and lists of them."""
        views = [
            {
                "columns": view.columns.tolist(),
                "scale": view.scale.to_json(),
                "degree": view.degree.to_json(),
                "probability": view.probability.to_json(),
            }
            for view in self._views
        ]
        return {"names": list(self.names), "lowest": self.lowest, "highest": self.highest, "views": views}

    @classmethod
    def from_json(cls, value: object, where: str = "calibration: regression") -> Regression:
        """What :meth:`to_json` gave.

        Raises:
            UserError: If anything in it is not what a fit gives.
        """
        parts = _fields(value, ("names", "lowest", "highest", "views"), where)
        names = _names(parts["names"], f"{where}.names")
        lowest, highest = _numbers([parts["lowest"], parts["highest"]], where)
        if not isinstance(parts["views"], list) or not 0 < len(parts["views"]) <= len(names) or lowest >= highest:
            raise UserError(f"{where}: no views or no range of degrees; calibrate again")
        views = []
        for number, one in enumerate(parts["views"]):
            at = f"{where}.views[{number}]"
            view = _fields(one, ("columns", "scale", "degree", "probability"), at)
            columns = _numbers(view["columns"], f"{at}.columns")
            if not np.isin(columns, np.arange(len(names))).all() or len(np.unique(columns)) != len(columns):
                raise UserError(f"{at}: columns that are not among the {len(names)} names; calibrate again")
            fitted = [_Fitted.from_json(view[part], len(columns), f"{at}.{part}") for part in ("degree", "probability")]
            scale = _Scale.from_json(view["scale"], len(columns), f"{at}.scale")
            views.append(_View(columns.astype(np.int64), scale, *fitted))
        return cls(names, float(lowest), float(highest), tuple(views))


@dataclass(frozen=True)
class Belief:
    """Whether anything is relevant to a query, by a few features of it.

    >>> draw = np.random.default_rng(0)
    >>> best = draw.normal(size=(500, 1))
    >>> belief = Belief.fit(best, best[:, 0] > 0, names=("best",))
    >>> belief.predict(np.array([[3.0]])) > 0.9, belief.predict(np.array([[-3.0]])) < 0.1
    (True, True)
    """

    names: tuple[str, ...]
    _scale: _Scale
    _model: _Logistic

    @classmethod
    def fit(
        cls, features: ArrayLike, something: ArrayLike, names: tuple[str, ...], rising: tuple[str, ...] = ()
    ) -> Belief:
        """Fit to queries of which it is known.

        Args:
            features: (queries, G); NaN is not known.
            something: (queries,) bool, whether anything is relevant.
            names: (G,) of the columns.
            rising: Names of columns in which the belief may not fall; those that are not among ``names`` do nothing.
        """
        table = np.asarray(features, np.float64)
        scale = _Scale.fit(table)
        up = [names.index(name) for name in rising if name in names]
        return cls(names, scale, _Logistic.fit_rising(scale.of(table), np.asarray(something, np.float64), 1.0, up))

    def predict(self, features: ArrayLike) -> float:
        """In 0..1, of one query's (1, G) or (G,) features."""
        return float(self._model.predict(self._scale.of(np.atleast_2d(np.asarray(features, np.float64))))[0])

    def to_json(self) -> dict[str, Any]:
        """Numbers, names and lists of them."""
        return {"names": list(self.names), "scale": self._scale.to_json(), "weights": self._model.to_json()}

    @classmethod
    def from_json(cls, value: object, where: str = "calibration: belief") -> Belief:
        """What :meth:`to_json` gave.

        Raises:
            UserError: If anything in it is not what a fit gives.
        """
        parts = _fields(value, ("names", "scale", "weights"), where)
        names = _names(parts["names"], f"{where}.names")
        scale = _Scale.from_json(parts["scale"], len(names), f"{where}.scale")
        return cls(names, scale, _Logistic.from_json(parts["weights"], len(names), f"{where}.weights"))


@dataclass(frozen=True)
class Rate:
    """The share of candidates that are relevant to a query, as a logarithm, by its text vector alone.

    Attributes:
        weights: (D,) of the vector.
        bias: Is added.
        crossed: (queries,) predictions for the queries of the fit, each by a fit that left its group out; empty when
            it was read from a file. What is fitted on top takes these.

    >>> vectors = np.random.default_rng(0).normal(size=(200, 4))
    >>> rate = Rate.fit(vectors, np.exp(3 + vectors[:, 0]), 1000, np.arange(200))
    >>> round(rate.predict(np.zeros(4)), 1), round(rate.predict(np.array([1.0, 0, 0, 0])), 1)
    (-3.9, -2.9)
    """

    weights: Values
    bias: float
    crossed: Values

    @classmethod
    def fit(cls, vectors: ArrayLike, relevant: ArrayLike, candidates: int | ArrayLike, groups: ArrayLike) -> Rate:
        """Fit; the ridge is chosen by cross-validation.

        Args:
            vectors: (queries, D) text vectors.
            relevant: (queries,) how many candidates are relevant.
            candidates: How many there are (or were judged), for all queries or (queries,).
            groups: (queries,) queries of one group are left out together, such as the captions of a picture.
        """
        given = np.asarray(vectors, np.float64)
        wanted = np.log((np.asarray(relevant, np.float64) + 0.5) / np.asarray(candidates, np.float64))
        fold = _folds(np.asarray(groups, np.int64))
        crossed = np.empty((len(_RATE_RIDGES), len(wanted)))
        for one in np.unique(fold):
            out = fold == one
            for number, (weights, bias) in enumerate(_ridges(given[~out], wanted[~out])):
                crossed[number, out] = given[out] @ weights + bias
        best = int(((crossed - wanted) ** 2).mean(axis=1).argmin())
        weights, bias = _ridges(given, wanted)[best]
        return cls(weights, bias, crossed[best])

    def predict(self, vector: ArrayLike) -> float:
        """log((relevant + 1/2) / candidates) that is expected of a query with this (D,) vector.

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
        """Numbers and a list of them."""
        return {"weights": self.weights.tolist(), "bias": self.bias}

    @classmethod
    def from_json(cls, value: object, where: str = "calibration: rate") -> Rate:
        """What :meth:`to_json` gave.

        Raises:
            UserError: If anything in it is not what a fit gives.
        """
        parts = _fields(value, ("weights", "bias"), where)
        weights, bias = _numbers(parts["weights"], f"{where}.weights"), _numbers([parts["bias"]], f"{where}.bias")
        return cls(weights, float(bias[0]), np.zeros(0))


def isotonic(given: ArrayLike, wanted: ArrayLike) -> tuple[Values, Values]:
    """The rising map that fits best in squares, by pooling adjacent violators, as points to interpolate between.

    Args:
        given: (n,) predictions.
        wanted: (n,) what should have been predicted.

    Returns:
        At most 64 rising ``given``, and what each means.

    >>> isotonic([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1])
    (array([0.1, 0.5, 0.9]), array([0. , 0.5, 1. ]))
    """
    order = np.argsort(np.asarray(given, np.float64), kind="stable")
    before, after = np.asarray(given, np.float64)[order], np.asarray(wanted, np.float64)[order]
    # Equal shares of the rows first: a block is no single row, so no end of the map stands on one lucky hit.
    blocks = min(len(before), 4 * _KNOTS)
    starts = np.unique(np.linspace(0, len(before), blocks, endpoint=False).astype(np.int64))
    count = np.diff(np.append(starts, len(before))).astype(np.float64)
    place, mean = np.add.reduceat(before, starts) / count, np.add.reduceat(after, starts) / count
    pooled: list[tuple[float, float, float]] = []
    for now in zip(count.tolist(), place.tolist(), mean.tolist(), strict=True):
        size, x, y = now
        while pooled and (pooled[-1][2] >= y or pooled[-1][1] >= x):
            other, x_before, y_before = pooled.pop()
            x, y = (other * x_before + size * x) / (other + size), (other * y_before + size * y) / (other + size)
            size += other
        pooled.append((size, x, y))
    places, means = np.array([x for _, x, _ in pooled]), np.array([y for _, _, y in pooled])
    kept = np.unique(np.linspace(0, len(places) - 1, min(len(places), _KNOTS)).round().astype(np.int64))
    return places[kept], np.clip(means[kept], 0.0, 1.0)


def _ridges(vectors: Values, wanted: Values) -> list[tuple[Values, float]]:
    """Weights and bias for every ridge, by one eigendecomposition."""
    centre, mean = vectors.mean(axis=0), float(wanted.mean())
    moved = vectors - centre
    sizes, directions = np.linalg.eigh(moved.T @ moved)
    towards = directions.T @ (moved.T @ (wanted - mean))
    out = []
    for ridge in _RATE_RIDGES:
        weights = directions @ (towards / (np.maximum(sizes, 0.0) + ridge))
        out.append((weights, mean - float(centre @ weights)))
    return out


def _folds(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """A fold for each row, the same for rows of a group."""
    _, at = np.unique(groups, return_inverse=True)
    of_group = np.random.default_rng(0).permutation(int(at.max()) + 1) % _FOLDS
    return np.asarray(of_group[at])


def _terms(scaled: Values, products: bool) -> Values:
    """(rows, terms) 1, the columns, and their products."""
    parts = [np.ones((len(scaled), 1)), scaled]
    if products:
        first, second = np.triu_indices(scaled.shape[1])
        parts.append(scaled[:, first] * scaled[:, second])
    return np.concatenate(parts, axis=1)


def _sigmoid(x: Values) -> Values:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))


def _width(columns: int, products: bool) -> int:
    return 1 + columns + (columns * (columns + 1) // 2 if products else 0)


def _fields(value: object, names: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(names):
        raise UserError(f"{where}: not the fields {', '.join(names)}; calibrate again")
    return value


def _numbers(value: object, where: str) -> Values:
    if not isinstance(value, list) or not 0 < len(value) <= _LONGEST:
        raise UserError(f"{where}: no list of 1 to {_LONGEST} numbers; calibrate again")
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and abs(one) < 1e30 for one in value):
        raise UserError(f"{where}: holds what is no finite number; calibrate again")
    return np.array(value, np.float64)


def _names(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= 64 or not all(isinstance(one, str) for one in value):
        raise UserError(f"{where}: no list of 1 to 64 names; calibrate again")
    return tuple(value)
