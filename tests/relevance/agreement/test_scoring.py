import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from rungwise.core import UserError
from rungwise.relevance.agreement._scoring import Estimate, accuracy, correlations, estimates, flattened, of_each_rater

NAN = float("nan")


def slow_taus(x, y):
    """Tau-b and Stuart's tau-c, one pair of items after the other."""
    agree = tied_x = tied_y = pairs = 0
    for one, other in combinations(range(len(x)), 2):
        signs = np.sign(x[one] - x[other]), np.sign(y[one] - y[other])
        agree += signs[0] * signs[1]
        tied_x, tied_y, pairs = tied_x + (signs[0] == 0), tied_y + (signs[1] == 0), pairs + 1
    fewest = min(len(set(x)), len(set(y)))
    return agree / math.sqrt((pairs - tied_x) * (pairs - tied_y)), 2 * agree / (len(x) ** 2 * (fewest - 1) / fewest)


@pytest.mark.parametrize("values", [2, 4, 50])
def test_correlations_are_those_of_the_definition_and_of_scipy(values):
    draw = np.random.default_rng(values)
    for _ in range(10):
        grades = draw.integers(0, values, 40).astype(float)
        degrees = np.round(grades + draw.normal(0, values, 40), 1)
        found = correlations(degrees, grades)
        assert found[0] == pytest.approx(stats.pearsonr(degrees, grades).statistic)
        assert found[1] == pytest.approx(stats.spearmanr(degrees, grades).statistic)
        assert found[2:] == pytest.approx([stats.kendalltau(degrees, grades, variant=v).statistic for v in "bc"])
        assert found[2:] == pytest.approx(slow_taus(degrees, grades))


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_the_size_of_degrees_does_not_matter(size):
    draw = np.random.default_rng(0)
    degrees, grades = draw.normal(size=20), draw.integers(0, 4, 20).astype(float)
    assert correlations(size * degrees, grades) == pytest.approx(correlations(degrees, grades))


def test_fine_degrees_reach_1_in_tau_c_and_not_in_tau_b():
    grades = np.repeat([1.0, 2.0, 3.0, 4.0], 5)
    found = correlations(np.arange(20.0), grades)
    assert found[3] == pytest.approx(1)
    assert found[2] < 0.95


@pytest.mark.parametrize("lists", [([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [4, 4, 4]), ([1], [2]), ([], [])])
def test_constant_lists_have_no_correlation(lists):
    assert np.isnan(correlations(*(np.array(one, float) for one in lists))).all()


def test_single_ratings_each_count():
    degrees, ratings = np.array([0.1, 0.5, 0.9]), np.array([[1, 2], [NAN, 3], [NAN, NAN]])
    found = flattened(degrees, ratings)
    assert [one.tolist() for one in found] == [[0.1, 0.1, 0.5], [1, 2, 3]]


def test_the_mean_over_raters_is_that_of_scipy():
    draw = np.random.default_rng(0)
    degrees = draw.normal(size=30)
    ratings = np.round(degrees[:, None] * 2 + draw.normal(size=(30, 3)))
    found = of_each_rater(degrees, ratings)
    assert found[2] == pytest.approx(np.mean([stats.kendalltau(degrees, one).statistic for one in ratings.T]))
    assert found[1] == pytest.approx(np.mean([stats.spearmanr(degrees, one).statistic for one in ratings.T]))
    ratings[:, 2], ratings[5:, 1] = NAN, NAN
    wanted = (
        stats.pearsonr(degrees, ratings[:, 0]).statistic + stats.pearsonr(degrees[:5], ratings[:5, 1]).statistic
    ) / 2
    assert of_each_rater(degrees, ratings)[0] == pytest.approx(wanted)
    assert np.isnan(of_each_rater(degrees, np.full((30, 2), NAN))).all()


def test_accuracy_counts_ties_half():
    draw = np.random.default_rng(0)
    first, second = draw.integers(0, 3, (2, 200)).astype(float)
    preferred = draw.integers(-1, 2, 200).astype(float)
    right = 0.0
    for one, other, wanted in zip(first, second, preferred, strict=True):
        if one == other or wanted == 0:
            right += 0.5
        else:
            right += (one > other) == (wanted > 0)
    assert accuracy(first, second, preferred) == pytest.approx(right / 200)
    assert np.isnan(accuracy(*np.zeros((3, 0))))


def test_intervals_are_those_of_a_plain_loop():
    values = np.random.default_rng(1).normal(size=50)

    def statistic(at):
        return np.array([values[at].mean(), values[at].max()])

    generator = np.random.default_rng(7)
    drawn = [statistic(generator.integers(0, 50, 50)) for _ in range(100)]
    lows, highs = np.quantile(drawn, [0.025, 0.975], axis=0)
    found = estimates(statistic, 50, 100, seed=7)
    assert [one.value for one in found] == pytest.approx([values.mean(), values.max()])
    assert [one.low for one in found] == pytest.approx(lows)
    assert [one.high for one in found] == pytest.approx(highs)
    assert found == estimates(statistic, 50, 100, seed=7)
    assert found != estimates(statistic, 50, 100, seed=8)


def test_without_draws_or_items_there_is_no_interval():
    for found in (estimates(lambda at: np.array([1.0]), 5, 0, 0), estimates(lambda at: np.array([NAN]), 0, 10, 0)):
        assert np.isnan([found[0].low, found[0].high]).all()
    assert str(Estimate(NAN, NAN, NAN)) == "-"
    with pytest.raises(UserError, match="draws must be 0 or more, got -1"):
        estimates(lambda at: np.array([1.0]), 5, -1, 0)


def test_few_items_have_no_interval():
    few, enough = (estimates(lambda at: np.array([at.mean()]), items, 100, 0)[0] for items in (9, 10))
    assert str(few) == "4.000"
    assert enough.low < enough.value < enough.high


def test_draws_in_which_a_number_is_not_defined_do_not_count():
    found = estimates(lambda at: np.array([NAN if 0 in at else 2.0]), 12, 200, 0)
    assert np.isnan(found[0].value)
    assert (found[0].low, found[0].high) == (2, 2)
