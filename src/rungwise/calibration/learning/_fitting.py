"""Fit of a calibration to judged pairs of queries and candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.calibration._judgement import Background, Known, Values
from rungwise.calibration._null_distribution import Null
from rungwise.calibration._rung_names import names_from
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
from rungwise.calibration.learning._regression import Predicted, Regression
from rungwise.calibration.learning._shift import JudgedHits, best_shift
from rungwise.calibration.learning._supervised import PositionCurve, Rule, Supervised, belief_of
from rungwise.core import UserError

FEWEST_QUERIES = 20
"""Smallest number of judged queries; with fewer, a calibration would describe these queries and not the next one."""

_MOST_QUERIES = 5000
"""Largest number of queries read; more change nothing and take memory."""

_MOST_SHIFTED = 200
"""Largest number of these queries by which the shift is chosen; more change little and take time."""

_MOST_ROWS = 400_000
"""Largest number of hits whose features are made."""

_NOTHING = 0.05
"""Share of queries assumed to have nothing relevant, if fewer of the given ones have nothing."""

_DISBELIEVED, _LOST = 0.95, 0.05
"""Share of the unrelated texts for which nothing is shown, and the largest share of other queries that it may cost."""

_EDGES = np.linspace(-3.0, 7.0, 81)
_FEWEST_IN_BIN = 20


def checked_pairs(
    similarity: ArrayLike, relevance: ArrayLike, relevant_from: float, fewest: int = FEWEST_QUERIES
) -> tuple[NDArray[np.floating], Values]:
    """The two matrices as arrays, if something can be learnt from them.

    Raises:
        UserError: If shapes differ, there are fewer than two candidates or ``fewest`` judged queries, a score is not
            finite,
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
    if queries < fewest:
        raise UserError(f"relevance: {queries} queries with a judged candidate; give at least {fewest}")
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
    overlooked: Values | None = None,
) -> Supervised:
    """Learn from checked pairs.

    Args:
        scores: (queries, candidates) similarities.
        degrees: (queries, candidates) degrees, NaN where nobody judged.
        relevant_from: The smallest degree that counts as relevant.
        known: (queries,) what is known of each query besides its scores, with candidates in the order of ``scores``.
        unrelated: (texts, candidates) scores of texts to which nothing is relevant.
        unrelated_known: (texts,) what is known of each of these texts.
        overlooked: (queries, candidates) probability that a pair is relevant, whatever its degree; 0 for all if None.
    """
    usable = np.flatnonzero((~np.isnan(degrees)).any(axis=1) & (scores.max(axis=1) > scores.min(axis=1)))
    if len(usable) > _MOST_QUERIES:
        usable = np.sort(np.random.default_rng(0).choice(usable, _MOST_QUERIES, replace=False))
    # Queries that mean the same candidate, such as the captions of a picture, are left out together.
    groups = np.nanargmax(degrees[usable], axis=1)
    if len(usable) and (groups == groups[0]).all():  # nothing is left to fit to without the one group
        groups = np.arange(len(usable))
    rate = _rate(
        degrees[usable], groups, relevant_from, None if known is None else [known[at] for at in usable.tolist()]
    )
    depth = depth_of(scores.shape[1])
    # Of large indexes, hits of some queries are enough, and all of them would take much memory.
    every = -(-len(usable) * depth // _MOST_ROWS)
    highest = float(np.nanmax(degrees))
    rows: list[_Hits] = []
    queries, something, foreign = [], [], []
    sums = np.zeros((3, len(_EDGES) + 1))
    for number, query in enumerate(usable.tolist()):
        one, truth = np.asarray(scores[query], np.float64), degrees[query]
        missed = np.zeros(len(one)) if overlooked is None else overlooked[query]
        about, log_rate = known[query] if known is not None else None, np.nan if rate is None else rate.crossed[number]
        order = np.argsort(-one, kind="stable")
        null = Null.of(Background(one, len(one)))
        hits, features, of_query = hit_features(one[order], null, about and about.of_hits(order), log_rate)
        relevant = truth >= relevant_from
        judged = ~np.isnan(truth)
        likely = np.where(relevant, 1.0, missed)[judged]
        if number % every == 0:
            total = float(likely.sum()) if relevant.any() else 0.0
            last = null, len(hits), float(one[order[depth - 1]]) if depth < len(one) else float(one[order[-1]])
            rows.append(_Hits(features, truth[order[hits]], missed[order[hits]], int(groups[number]), total, last))
        queries.append(of_query)
        something.append(bool(relevant.any()))
        foreign.append(not something[-1])
        left = order[~relevant[order]]
        if something[-1] and len(left) >= 2 and one[left[0]] > one[left[-1]]:
            emptied = Null.of(Background(one[left], len(left)))
            gone = about and replace(about.of_hits(left), bearers=None if about.bearers is None else 0)
            queries.append(query_features(one[left], emptied, gone, log_rate))
            something.append(False)
            foreign.append(False)
        bins = np.searchsorted(_EDGES, null.positions(one[judged]))
        expected = truth[judged] + missed[judged] * (highest - truth[judged])
        for column, weights in enumerate((np.ones(len(bins)), expected, likely)):
            sums[column] += np.bincount(bins, weights, minlength=sums.shape[1])
    table, truth = np.concatenate([one.features for one in rows]), np.concatenate([one.degrees for one in rows])
    if np.isnan(truth).all():
        raise UserError(f"relevance: none of the {depth} best candidates of any query is judged; judge some of them")
    regression, crossed = Regression.fit(
        table,
        truth,
        np.concatenate([np.full(len(one.degrees), one.group) for one in rows]),
        np.concatenate([one.overlooked for one in rows]),
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
            order = np.argsort(-row, kind="stable")
            null, falling = Null.of(Background(row, len(row))), row[order].astype(np.float64)
            queries += [query_features(falling, null, about and about.of_hits(order), log_rate)] * times
        something += [False] * (times * len(unrelated))
        foreign += ([True] + [False] * (times - 1)) * len(unrelated)
    some, of_queries = np.array(something), np.stack(queries)
    beliefs = tuple(_belief(of_queries, some, view) for view in _worth_fitting(QUERY_VIEWS, of_queries, QUERY_NAMES))
    # Odds of nothing among the queries at hand, in place of those among the examples of the beliefs.
    nothing = max(_NOTHING, 1 - float(some.sum()) / len(usable))
    odds = nothing / (1 - nothing) * float(some.sum()) / max(1.0, float((~some).sum()))
    floor = 0.0
    if unrelated is not None and len(unrelated):
        believed = np.array([belief_of(beliefs, one, odds) for one in of_queries])
        floor = float(min(np.quantile(believed[np.array(foreign)], _DISBELIEVED), np.quantile(believed[some], _LOST)))
    curve = _curve(sums)
    rules = tuple(_rule(rows, view, curve, relevant_from, highest) for view in crossed)
    return Supervised(regression, rules, beliefs, floor, odds, curve, rate)


@dataclass(frozen=True)
class _Hits:
    """The hits of a query of the fit that have features.

    Attributes:
        features: (hits, F) features.
        degrees: (hits,) true degrees; NaN where nobody judged.
        overlooked: (hits,) probability that each is relevant, whatever its degree says.
        group: Group of the query.
        relevant: Number of relevant candidates of the whole index, as far as it is known.
        last: Null distribution of the query, number of these hits, and score of the last of the best hits.
    """

    features: Values
    degrees: Values
    overlooked: Values
    group: int
    relevant: float
    last: tuple[Null, int, float]


def _rule(
    rows: Sequence[_Hits], crossed: Predicted, curve: PositionCurve, relevant_from: float, highest: float
) -> Rule:
    """Shift and names for the numbers of one view, by queries that each prediction was made without."""
    examples: list[JudgedHits] = []
    expected: list[Values] = []
    truth: list[Values] = []
    at = 0
    for one in rows:
        here = slice(at, at := at + len(one.degrees))
        probabilities, degrees = crossed.probability[here], crossed.degree[here]
        best = np.argsort(-probabilities, kind="stable")
        if not one.relevant or np.isnan(probabilities).any():
            continue
        null, hits, last = one.last
        beyond = curve.relevant_after(hits, last, null)
        judged = ~np.isnan(one.degrees)
        likely = np.where(one.degrees >= relevant_from, 1.0, one.overlooked * judged)
        examples.append(JudgedHits(probabilities[best], beyond, likely[best], judged[best], one.relevant))
        for whole, part in ((expected, degrees), (truth, one.degrees)):
            whole.append(part[best])
    if not examples:
        return Rule(best_shift(()), *names_from(np.zeros(0), np.zeros(0), relevant_from, highest))
    step = -(-len(examples) // _MOST_SHIFTED)
    shift = best_shift(examples[::step])
    shown = [example.cut(shift) for example in examples]
    degrees, true = (
        np.concatenate([one[:cut] for one, cut in zip(each, shown, strict=True)]) for each in (expected, truth)
    )
    # A name is given for what was said, not for what may have been overlooked.
    known = ~np.isnan(true)
    return Rule(shift, *names_from(degrees[known], true[known], relevant_from, highest))


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
    """Views without the columns that no row knows, each once."""
    known = {name for name, column in zip(names, table.T, strict=True) if not np.isnan(column).all()}
    return tuple(dict.fromkeys(tuple(name for name in view if name in known) for view in views))


def _curve(sums: Values) -> PositionCurve:
    """Curve of means over bins of positions that hold enough candidates, made to rise."""
    from scipy.optimize import isotonic_regression

    centres = np.concatenate([_EDGES[:1], (_EDGES[:-1] + _EDGES[1:]) / 2, _EDGES[-1:]])
    enough = sums[0] >= min(_FEWEST_IN_BIN, sums[0].max())
    counts = sums[0][enough]
    means = [isotonic_regression(sums[column][enough] / counts, weights=counts).x for column in (1, 2)]
    return PositionCurve(tuple(centres[enough].tolist()), *(tuple(mean.tolist()) for mean in means))
