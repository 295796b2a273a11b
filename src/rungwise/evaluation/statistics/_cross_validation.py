"""Cross-validation of a calibration: each part of the queries is judged by a fit on the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import FEWEST_QUERIES, Calibration, FlatThreshold, Known, Oracle
from rungwise.core import UserError
from rungwise.metrics import ECE, CutF1, Ends, JudgedQueries, Measure, NoneAUROC, Positives, Rankings, Scores, judged_by

_FOLDS = 3
_AT_ONCE = 256
_BEST = 10
"""Number of top hits for which the calibration error is reported separately."""


@dataclass(frozen=True)
class CrossValidation:
    """Values of queries that were judged by a calibration fitted on others.

    Attributes:
        relevant: (queries,) number of relevant candidates, among judged ones.
        right: (queries,) number of relevant hits shown.
        cuts: (queries,) number of hits shown.
        cut_f1: F1 of the cut in percent, by method: ``"flat"`` is the best flat threshold of the other queries;
            ``"calibration"``; ``"captions"`` is the calibration with caption similarity, where that is known;
            ``"best"`` is the best cut of each query, which no method can know.
        shown: Mean number of hits shown, by method.
        ece: Expected calibration error of the degrees, as a share of the scale: over all candidates, and over the ten
            best hits.
        none_auroc: Area under the ROC curve of belief, between queries with something relevant and queries without; NaN
            unless there are both.
    """

    relevant: NDArray[np.int64]
    right: NDArray[np.int64]
    cuts: NDArray[np.int64]
    cut_f1: dict[str, float]
    shown: dict[str, float]
    ece: tuple[float, float]
    none_auroc: float


def has_enough(relevance: Scores, relevant_from: float, groups: NDArray[np.int64]) -> bool:
    """Whether every two thirds of the queries are enough to fit on; arguments are those of :func:`cross_validated`.

    >>> has_enough(np.eye(20), 1, np.arange(20)), has_enough(np.eye(40), 1, np.arange(40))
    (False, True)
    """
    if len(np.unique(groups)) < 2:
        return False
    fold, known, relevant = _folds(groups), ~np.isnan(relevance), relevance >= relevant_from
    rests = [fold != number for number in np.unique(fold)]
    return all(
        known[rest].any(axis=1).sum() >= FEWEST_QUERIES and relevant[rest].any() and (known & ~relevant)[rest].any()
        for rest in rests
    )


def cross_validated(
    similarity: Scores,
    relevance: Scores,
    relevant_from: float,
    groups: NDArray[np.int64],
    known: Sequence[Known] | None = None,
    unrelated: Scores | None = None,
    unrelated_known: Sequence[Known] | None = None,
) -> CrossValidation:
    """Fit a calibration on two thirds of the queries and judge the rest, three times.

    Args:
        similarity: (queries, candidates) similarities.
        relevance: (queries, candidates) degrees; NaN where nobody judged.
        relevant_from: The least degree that counts as relevant.
        groups: (queries,) group of each query. Queries of one group, such as the captions of one picture, are fitted or
            judged together.
        known: (queries,) what is known of each query besides its scores.
        unrelated: (texts, candidates) scores of texts that fit nothing, as ``Calibration.fit`` takes them.
        unrelated_known: (texts,) what is known of each of these texts.

    Raises:
        UserError: If :meth:`rungwise.calibration.Calibration.fit` refuses the data, or there are fewer than two groups.

    >>> rng = np.random.default_rng(0)
    >>> relevance = (rng.random((60, 200)) < 0.03).astype(float)
    >>> similarity = rng.normal(0.1, 0.05, relevance.shape) + 0.4 * relevance
    >>> found = cross_validated(similarity, relevance, 1, np.arange(60))
    >>> found.cut_f1["calibration"] > 90, found.cut_f1["best"] >= found.cut_f1["calibration"]
    (True, True)
    """
    fold = _folds(groups)
    scale = max(1.0, float(np.nanmax(relevance)))
    measures: tuple[Measure, ...] = (
        CutF1(relevant_from),
        ECE(scale=scale),
        ECE(_BEST, scale),
        NoneAUROC(relevant_from),
    )
    # An index may have no captions: that is judged apart.
    has_captions = known is not None and any(one.caption_scores is not None for one in known)
    of_scores = None if known is None else [replace(one, caption_scores=None) for one in known]
    by_method: dict[str, list[_Judgements]] = {}
    order = np.argsort(fold, kind="stable")
    for number in np.unique(fold):
        rest, own = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        facts = None if known is None else [known[query] for query in rest.tolist()]
        fitted = Calibration.fit(
            similarity[rest],
            relevance[rest],
            relevant_from,
            known=facts,
            unrelated=unrelated,
            unrelated_known=unrelated_known,
        )
        methods: dict[str, Ends] = {
            "flat": FlatThreshold.fit(similarity[rest], relevance[rest], relevant_from),
            "calibration": fitted if of_scores is None else fitted.informed(of_scores),
            "best": Oracle(relevance, relevant_from),
        }
        if known is not None and has_captions:
            methods["captions"] = fitted.informed(known)
        for name, method in methods.items():
            asked = measures if name == "calibration" else measures[:1]
            by_method.setdefault(name, []).append(_judged(method, similarity, relevance, own, asked, relevant_from))
    values = {
        name: [np.concatenate([part.values[at] for part in parts]) for at in range(len(parts[0].values))]
        for name, parts in by_method.items()
    }
    numbers = [measure.aggregate(own) for measure, own in zip(measures, values["calibration"], strict=True)]
    cuts = {name: np.concatenate([part.cuts for part in parts]) for name, parts in by_method.items()}
    right = np.concatenate([part.right for part in by_method["calibration"]])
    place = np.argsort(order)
    return CrossValidation(
        (relevance >= relevant_from).sum(axis=1),
        right[place],
        cuts["calibration"][place],
        {name: measures[0].aggregate(own[0]) for name, own in values.items()},
        {name: float(own.mean()) for name, own in cuts.items()},
        (numbers[1], numbers[2]),
        numbers[3],
    )


@dataclass(frozen=True)
class _Judgements:
    values: list[NDArray[np.float64]]
    cuts: NDArray[np.int64]
    right: NDArray[np.int64]


def _judged(
    method: Ends,
    similarity: Scores,
    relevance: Scores,
    queries: NDArray[np.int64],
    measures: Sequence[Measure],
    relevant_from: float,
) -> _Judgements:
    """Values of measures, cuts and right hits of a method on some of the queries."""
    values: list[list[NDArray[np.float64]]] = [[] for _ in measures]
    cuts, right = [], []
    for start in range(0, len(queries), _AT_ONCE):
        some = queries[start : start + _AT_ONCE]
        judged: JudgedQueries = judged_by(method, similarity[some], "t2i", some)
        nothing = Positives(np.zeros(len(some) + 1, np.int64), np.empty(0, np.int64))
        rankings = Rankings(nothing, similarity[some], relevance[some], "t2i", judged=judged)
        for own, measure in zip(values, measures, strict=True):
            own.append(measure.per_query(rankings))
        degrees = rankings.degrees_of_top(int(judged.cuts.max(initial=0)))
        right.append(((degrees >= relevant_from) & (np.arange(degrees.shape[1]) < judged.cuts[:, None])).sum(axis=1))
        cuts.append(judged.cuts)
    return _Judgements([np.concatenate(own) for own in values], np.concatenate(cuts), np.concatenate(right))


def _folds(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """(queries,) fold of each query; groups are assigned in an order drawn by a fixed seed."""
    names, group = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        raise UserError("groups: all queries are of one group; give queries of two pictures or more")
    dealt = np.random.default_rng(0).permutation(len(names)) % min(_FOLDS, len(names))
    return np.asarray(dealt[group])
