"""Measures of both models on the same queries by exact degrees, beside what chance reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from rungwise.demo._places import RELEVANT_FROM
from rungwise.evaluation.statistics import Interval, interval_of
from rungwise.metrics import CS, NDCG, CutF1, JudgedQueries, Measure, R, rank_all

Rows = NDArray[np.float32]
Values = NDArray[np.float64]

FIRST, FIVE, END, GAIN, ORDER = R(1), R(5), CutF1(RELEVANT_FROM), NDCG(10), CS(100)
MEASURES: Mapping[str, Measure] = {
    "right picture first": FIRST,
    "right picture in the first five": FIVE,
    "CutF1": END,
    "nDCG@10": GAIN,
    "CS@100": ORDER,
}
"""Measures by their names for people. A picture is right where everything that the query says is true of it."""

_DRAWS = 2000


@dataclass(frozen=True)
class MeasureLine:
    """Values of one measure for both models.

    Attributes:
        name: Name of the measure for people.
        triplet: Value of the model that learns right and wrong.
        degrees: Value of the model that learns degrees.
        chance: Expected value of a random ranking, exact; for CutF1 with every picture shown.
        low: Lower end of the 95 % interval of ``degrees - triplet`` over queries.
        high: Upper end of that interval.
    """

    name: str
    triplet: float
    degrees: float
    chance: float
    low: float
    high: float


@dataclass(frozen=True)
class Compared:
    """Values of both models on the same queries, and the number of pictures in the gallery."""

    title: str
    queries: int
    gallery: int
    lines: tuple[MeasureLine, ...]


def per_query(scores: Rows, relevance: Rows, judged: JudgedQueries) -> dict[str, Values]:
    """Every measure of every query, by name: (queries,) values, NaN where a query has no right picture.

    Args:
        scores: (queries, pictures) similarities.
        relevance: (queries, pictures) exact degrees.
        judged: Judgement of where relevance ends for each query.
    """
    rankings = rank_all(scores, right_pictures(relevance), relevance, "t2i", judged=judged)
    return {name: measure.per_query(rankings) for name, measure in MEASURES.items()}


def right_pictures(relevance: Rows) -> list[list[int]]:
    """Positions of the pictures of which everything that a query says is true, for every query.

    >>> right_pictures(np.array([[1.0, 0.5], [0.5, 0.25]], np.float32))
    [[0], []]
    """
    return [np.flatnonzero(row == 1).tolist() for row in relevance]


def by_chance(relevance: Rows) -> dict[str, Values]:
    """Exact expectation of every measure for a random ranking, query by query.

    CutF1 is that of showing every picture, the best without a ranking.

    >>> by_chance(np.array([[1.0, 0.0, 0.0, 0.0]]))["right picture in the first five"]
    array([100.])
    """
    total = relevance.shape[1]
    right = (relevance == 1).sum(axis=1).tolist()
    relevant = (relevance >= RELEVANT_FROM).sum(axis=1)
    depth = min(10, total)
    discounts = 1 / np.log2(np.arange(depth) + 2)
    ideal = -np.sort(-relevance.astype(np.float64), axis=1)[:, :depth] @ discounts
    gained = relevance.mean(axis=1, dtype=np.float64) * discounts.sum()
    return {
        "right picture first": 100.0 * np.array([found_by_chance(total, one, 1) for one in right]),
        "right picture in the first five": 100.0 * np.array([found_by_chance(total, one, 5) for one in right]),
        "CutF1": 100.0 * 2 * relevant / (total + relevant),
        "nDCG@10": 100.0 * np.divide(gained, ideal, out=np.zeros(len(ideal)), where=ideal > 0),
        "CS@100": np.zeros(len(relevance)),
    }


def found_by_chance(total: int, right: int, first: int) -> float:
    """Probability that ``first`` pictures drawn at random of ``total`` include one of the ``right`` ones.

    >>> found_by_chance(4, 1, 2)
    0.5
    """
    first = min(first, total)
    return 1 - comb(total - right, first) / comb(total, first)


def compared(
    title: str, triplet: Mapping[str, Values], degrees: Mapping[str, Values], relevance: Rows, owners: Sequence[int]
) -> Compared:
    """Averages of both models, with intervals of their differences.

    Args:
        title: Description of the queries.
        triplet: (queries,) values of the model that learns right and wrong, by measure.
        degrees: (queries,) values of the model that learns degrees, by measure.
        relevance: (queries, pictures) exact degrees.
        owners: (queries,) group of each query, such as the picture of a caption; groups are drawn as a whole.
    """
    chance = by_chance(relevance)
    lines = []
    for name in MEASURES:
        low, high = difference(degrees[name] - triplet[name], owners)
        one, other, random = (float(np.nanmean(values[name])) for values in (triplet, degrees, chance))
        lines.append(MeasureLine(name, one, other, random, low, high))
    return Compared(title, len(relevance), relevance.shape[1], tuple(lines))


def difference(values: Values, owners: Sequence[int]) -> Interval:
    """The 95 % interval of a mean difference, by drawing groups of queries with replacement (paired bootstrap).

    Args:
        values: (queries,) differences; NaN is left out.
        owners: (queries,) group of each query.

    >>> low, high = difference(np.array([1.0, 2.0, 3.0, 2.0]), [0, 1, 2, 3])
    >>> 1 <= low <= 2 <= high <= 3
    True
    """
    known = ~np.isnan(values)
    _, group = np.unique(np.asarray(owners)[known], return_inverse=True)
    sums, counts = np.bincount(group, weights=values[known]), np.bincount(group)
    chosen = np.random.default_rng(0).integers(0, len(sums), (_DRAWS, len(sums)))
    return interval_of(sums[chosen].sum(axis=1) / counts[chosen].sum(axis=1))
