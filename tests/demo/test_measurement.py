"""Also tests rungwise.demo._table."""

from itertools import permutations

import numpy as np
import pytest

from rungwise.demo import rendered
from rungwise.demo._measurement import (
    MEASURES,
    Compared,
    MeasureLine,
    by_chance,
    compared,
    difference,
    found_by_chance,
    per_query,
)
from rungwise.demo._places import RELEVANT_FROM
from rungwise.metrics import JudgedQueries

DEGREES = np.array([[1.0, 0.5, 0.75, 0.0, 1.0], [0.25, 1.0, 0.5, 0.5, 0.0]], np.float32)


def judged(cuts):
    return JudgedQueries(np.array(cuts), np.ones(len(cuts)))


def test_chance_is_the_mean_over_all_orders():
    """Every ranking of five pictures, one by one."""
    rankings = list(permutations(range(5)))
    scores = np.array([[-order.index(place) for place in range(5)] for order in rankings], np.float32)
    expected = by_chance(DEGREES)
    for query, degrees in enumerate(DEGREES):
        values = per_query(scores, np.tile(degrees, (len(scores), 1)), judged([5] * len(scores)))
        for name in MEASURES:
            assert expected[name][query] == pytest.approx(values[name].mean(), abs=1e-4), name


def test_found_by_chance():
    assert [found_by_chance(4, 4, 2), found_by_chance(4, 0, 2), found_by_chance(3, 1, 1)] == pytest.approx(
        [1, 0, 1 / 3]
    )
    assert found_by_chance(3, 1, 5) == 1


def test_a_query_by_hand():
    scores = np.array([[0.9, 0.8, 0.7, 0.6, 0.5]], np.float32)
    values = {name: own[0] for name, own in per_query(scores, DEGREES[:1], judged([2])).items()}
    discounts = 1 / np.log2(np.arange(2, 7))
    assert values["right picture first"] == values["right picture in the first five"] == 100
    # Two are shown, one of them relevant; three are relevant in all.
    assert (DEGREES[0] >= RELEVANT_FROM).sum() == 3
    assert values["CutF1"] == pytest.approx(100 * 2 * 1 / (2 + 3))
    gain = 100 * (DEGREES[0] @ discounts) / (np.array([1, 1, 0.75, 0.5, 0]) @ discounts)
    assert values["nDCG@10"] == pytest.approx(gain)


def test_queries_of_one_picture_are_drawn_together():
    values = np.repeat([0.0, 10.0, 3.0, 6.0], 5)
    alone, together = difference(values, range(20)), difference(values, np.repeat(range(4), 5).tolist())
    assert alone.high - alone.low < together.high - together.low


def test_queries_without_a_value_are_left_out():
    assert difference(np.array([1.0, np.nan, 1.0]), [0, 1, 2]) == (1.0, 1.0)


def test_a_comparison_says_who_is_better():
    rng = np.random.default_rng(0)
    relevance = np.round(rng.random((60, 40)), 1).astype(np.float32)
    relevance[np.arange(60), rng.integers(0, 40, 60)] = 1
    noisy = [relevance + rng.normal(0, spread, relevance.shape).astype(np.float32) for spread in (1.0, 0.1)]
    worse, better = (per_query(scores, relevance, judged([5] * 60)) for scores in noisy)
    found = compared("searches", worse, better, relevance, range(60))
    assert (found.queries, found.gallery) == (60, 40)
    assert all(line.low > 0 for line in found.lines)
    again = compared("searches", better, better, relevance, range(60))
    assert all((line.low, line.high) == (0, 0) for line in again.lines)


def test_the_table_fits_80_columns():
    lines = tuple(MeasureLine(name, 100.0, 100.0, 100.0, -100.0, -100.0) for name in MEASURES)
    text = rendered(Compared("searches for combinations absent from training", 100, 10_000, lines))
    assert max(map(len, text.splitlines())) <= 80
    assert all(name in text for name in MEASURES)
