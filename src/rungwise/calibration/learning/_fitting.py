"""Fit of a calibration to judged pairs of queries and candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.calibration._judgement import Background, Known, Values
from rungwise.calibration._null_distribution import Null
from rungwise.calibration.learning._belief import Belief
from rungwise.calibration.learning._features import (
    NAMES,
    QUERY_NAMES,
    QUERY_RISING,
    QUERY_VIEWS,
    RISING,
    VIEWS,
    depth_of,
    hit_features,
    query_features,
)
from rungwise.calibration.learning._rate import RelevantShare
from rungwise.calibration.learning._regression import Regression
from rungwise.calibration.learning._shift import JudgedHits, best_shift
from rungwise.calibration.learning._supervised import PositionCurve, Supervised
from rungwise.core import UserError

FEWEST_QUERIES = 20
"""Smallest number of judged queries; with fewer, a calibration would describe these queries and not the next one."""

_MOST_QUERIES = 5000
"""Largest number of queries read; more change nothing and take memory."""

_MOST_SHIFTED = 1000
"""Largest number of these queries by which the shift is chosen; more change little and take time."""

_MOST_ROWS = 400_000
"""Largest number of hits whose features are made."""

_NOTHING = 0.05
"""Share of queries assumed to have nothing relevant, if fewer of the given ones have nothing."""

_RATE, _CAPTION = "log_rate", "caption"
"""The column that a query's vector gives, and the beginning of the names of columns that captions give."""

_EDGES = np.linspace(-3.0, 7.0, 81)
_FEWEST_IN_BIN = 20


def checked_pairs(
    similarity: ArrayLike, relevance: ArrayLike, relevant_from: float
) -> tuple[NDArray[np.floating], Values]:
    """The two matrices as arrays, if something can be learnt from them.

    Raises:
        UserError: If shapes differ, there are fewer than two candidates or 20 judged queries, a score is not finite,
            all scores or all degrees are the same, or no degree is relevant.
    """
    scores, degrees = np.asarray(similarity), np.asarray(relevance)
    for name, array in (("similarity", scores), ("relevance", degrees)):
        if array.ndim != 2 or array.dtype.kind not in "fiub":
            raise UserError(f"{name}: {array.ndim} dimensions of {array.dtype}; give numbers, (queries, candidates)")
    if scores.shape != degrees.shape:
        raise UserError(f"relevance: shape {degrees.shape}, similarity {scores.shape}; give one degree for each score")
    if scores.shape[1] < 2:
        raise UserError(f"similarity: {scores.shape[1]} candidates; where relevance ends shows among two or more")
    if not np.isfinite(scores).all():
        row, column = np.argwhere(~np.isfinite(scores))[0]
        raise UserError(f"similarity: query {row}, candidate {column} is {scores[row, column]}; give finite scores")
    degrees = degrees.astype(np.float64, copy=False)
    if np.isinf(degrees).any():
        raise UserError("relevance: a degree is infinite; give finite degrees, and NaN for a pair that is not judged")
    if not np.isfinite(relevant_from):
        raise UserError(
            f"relevant_from: {relevant_from}; give the least degree that counts as relevant",
            parameters={"relevant_from": "relevant_from"},
        )
    judged = ~np.isnan(degrees)
    queries = int(judged.any(axis=1).sum())
    if queries < FEWEST_QUERIES:
        raise UserError(f"relevance: {queries} queries with a judged candidate; give at least {FEWEST_QUERIES}")
    if (scores.max(axis=1) == scores.min(axis=1)).all():
        raise UserError(
            "similarity: the scores of every query are constant; give those of a model that tells them apart"
        )
    least, most = float(np.nanmin(degrees)), float(np.nanmax(degrees))
    if least == most:
        raise UserError(f"relevance: every degree is {least:g}; nothing can be learnt without better and worse pairs")
    if not least < relevant_from <= most:
        raise UserError(
            f"relevant_from: {relevant_from:g}, but degrees are {least:g} to {most:g}; give one that some pairs reach"
            " and some do not",
            parameters={"relevant_from": "relevant_from"},
        )
    return scores, degrees


def learn(
    scores: NDArray[np.floating],
    degrees: Values,
    relevant_from: float,
    known: Sequence[Known] | None,
    unrelated: NDArray[np.floating] | None = None,
    unrelated_known: Sequence[Known] | None = None,
) -> tuple[Supervised, Values, Values]:
    """Learn from checked pairs.

    Args:
        scores: (queries, candidates) similarities.
        degrees: (queries, candidates) degrees, NaN where nobody judged.
        relevant_from: The smallest degree that counts as relevant.
        known: (queries,) what is known of each query besides its scores, with candidates in the order of ``scores``.
        unrelated: (texts, candidates) scores of texts to which nothing is relevant.
        unrelated_known: (texts,) what is known of each of these texts.

    Returns:
        The learnt part, the degrees (rows,) that it expects of the best hits, and their true degrees (rows,).
    """
    usable = np.flatnonzero((~np.isnan(degrees)).any(axis=1) & (scores.max(axis=1) > scores.min(axis=1)))
    if len(usable) > _MOST_QUERIES:
        usable = np.sort(np.random.default_rng(0).choice(usable, _MOST_QUERIES, replace=False))
    # Queries that mean the same candidate, such as the captions of a picture, are left out together.
    groups = np.nanargmax(degrees[usable], axis=1)
    rate = _rate(
        degrees[usable], groups, relevant_from, None if known is None else [known[at] for at in usable.tolist()]
    )
    depth = depth_of(scores.shape[1])
    # Of large indexes, hits of some queries are enough, and all of them would take much memory.
    every = -(-len(usable) * depth // _MOST_ROWS)
    rows, truths, of_rows, queries, something = [], [], [], [], []
    looked_at: list[_Looked] = []
    step = -(-len(usable) // _MOST_SHIFTED)
    sums = np.zeros((3, len(_EDGES) + 1))
    for number, query in enumerate(usable.tolist()):
        one, truth = np.asarray(scores[query], np.float64), degrees[query]
        about, log_rate = known[query] if known is not None else None, np.nan if rate is None else rate.crossed[number]
        order = np.argsort(-one, kind="stable")
        null = Null.of(Background(one, len(one)))
        best = order[:depth]
        features, of_query = hit_features(one[best], null, of_hits(about, best), log_rate)
        seen = ~np.isnan(truth[best])
        if number % every == 0:
            rows.append(features[seen])
            truths.append(truth[best][seen])
            of_rows.append(np.full(int(seen.sum()), groups[number]))
        queries.append(of_query)
        relevant = truth >= relevant_from
        something.append(bool(relevant.any()))
        if number % step == 0 and something[-1]:
            looked_at.append(_Looked(features, one[best[-1]], null, relevant[best], seen, int(relevant.sum())))
        left = order[~relevant[order]]
        if something[-1] and len(left) >= 2 and one[left[0]] > one[left[-1]]:
            emptied = Null.of(Background(one[left], len(left)))
            queries.append(query_features(one[left], emptied, of_hits(about, left[:depth]), log_rate))
            something.append(False)
        judged = ~np.isnan(truth)
        bins = np.searchsorted(_EDGES, null.positions(one[judged]))
        for column, weights in enumerate((None, truth[judged], relevant[judged])):
            sums[column] += np.bincount(bins, weights, minlength=sums.shape[1])
    table, truth = np.concatenate(rows), np.concatenate(truths)
    if not len(table):
        raise UserError(f"relevance: none of the {depth} best candidates of any query is judged; judge some of them")
    regression = Regression.fit(
        table,
        truth,
        np.concatenate(of_rows),
        relevant_from=relevant_from,
        names=NAMES,
        rising=RISING,
        views=_worth_fitting(VIEWS, table, NAMES),
    )
    # Queries without their own pictures look almost as they did; unrelated texts show what nothing looks like. Both
    # count about the same.
    if unrelated is not None and len(unrelated):
        times = max(1, sum(something) // len(unrelated))
        for number, row in enumerate(unrelated):
            about, log_rate = None if unrelated_known is None else unrelated_known[number], np.nan
            if rate is not None and about is not None and about.vector is not None:
                log_rate = rate.predict(about.vector)
            best = np.argsort(-row, kind="stable")[:depth]
            null, falling = Null.of(Background(row, len(row))), row[best].astype(np.float64)
            queries += [query_features(falling, null, of_hits(about, best), log_rate)] * times
        something += [False] * (times * len(unrelated))
    some, of_queries = np.array(something), np.stack(queries)
    beliefs = tuple(_belief(of_queries, some, view) for view in _worth_fitting(QUERY_VIEWS, of_queries, QUERY_NAMES))
    # Odds of nothing among the queries at hand, in place of those among the examples of the beliefs.
    nothing = max(_NOTHING, 1 - float(some.sum()) / len(usable))
    odds = nothing / (1 - nothing) * float(some.sum()) / max(1.0, float((~some).sum()))
    curve = _curve(sums)
    shift = best_shift([one.example(regression, curve) for one in looked_at])
    learnt = Supervised(regression, beliefs, odds, curve, shift, rate)
    return learnt, regression.predict(table).degree, truth


@dataclass(frozen=True)
class _Looked:
    """A query of the fit, from which the shift is learnt.

    Attributes:
        features: (hits, F) features of its best hits.
        last: Score of the last of these hits.
        null: Null distribution of the query.
        relevant: (hits,) whether each hit is relevant.
        judged: (hits,) whether each hit was judged.
        total: Number of relevant candidates.
    """

    features: Values
    last: float
    null: Null
    relevant: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    total: int

    def example(self, regression: Regression, curve: PositionCurve) -> JudgedHits:
        beyond = curve.relevant_after(len(self.features), self.last, self.null)
        probabilities = regression.predict(self.features).probability
        return JudgedHits(probabilities, beyond, self.relevant, self.judged, self.total)


def _belief(of_queries: Values, something: NDArray[np.bool_], view: tuple[str, ...]) -> Belief:
    """Belief fitted to the examples for which these columns are known, if there are some of both kinds."""
    columns = of_queries[:, [QUERY_NAMES.index(name) for name in view]]
    known = np.flatnonzero(~np.isnan(columns).any(axis=1))
    if not (something[known].any() and (~something[known]).any()):
        known = np.arange(len(columns))
    return Belief.fit(columns[known], something[known], view, rising=QUERY_RISING)


def _rate(
    degrees: Values, groups: NDArray[np.int64], relevant_from: float, known: Sequence[Known] | None
) -> RelevantShare | None:
    """Share of relevant candidates by the queries' vectors; None unless each query has one."""
    vectors = [] if known is None else [one.vector for one in known if one.vector is not None]
    if len(vectors) < len(degrees):
        return None
    relevant, judged = (degrees >= relevant_from).sum(axis=1), (~np.isnan(degrees)).sum(axis=1)
    return RelevantShare.fit(np.stack(vectors), relevant, judged, groups)


def _worth_fitting(
    views: tuple[tuple[str, ...], ...], table: Values, names: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    """Views whose columns are known in some rows, and the last view.

    Whoever knows the captions of hits also knows the query's vector. So where there are vectors to learn from, views of
    captions without a vector are not fitted.
    """
    unknown = {name for name, column in zip(names, table.T, strict=True) if np.isnan(column).all()}
    some = [view for view in views if view is views[-1] or not unknown.intersection(view)]
    if _RATE in unknown:
        return tuple(some)
    return tuple(view for view in some if _RATE in view or not any(name.startswith(_CAPTION) for name in view))


def of_hits(known: Known | None, hits: NDArray[np.int64]) -> Known | None:
    """Knowledge restricted to some of the query's candidates."""
    if known is None or known.caption_scores is None:
        return known
    return replace(known, caption_scores=known.caption_scores[hits])


def _curve(sums: Values) -> PositionCurve:
    """Curve of means over bins of positions that hold enough candidates, made to rise."""
    from scipy.optimize import isotonic_regression

    centres = np.concatenate([_EDGES[:1], (_EDGES[:-1] + _EDGES[1:]) / 2, _EDGES[-1:]])
    enough = sums[0] >= min(_FEWEST_IN_BIN, sums[0].max())
    counts = sums[0][enough]
    means = [isotonic_regression(sums[column][enough] / counts, weights=counts).x for column in (1, 2)]
    return PositionCurve(tuple(centres[enough].tolist()), *(tuple(mean.tolist()) for mean in means))
