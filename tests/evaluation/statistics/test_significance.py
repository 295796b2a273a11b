import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rungwise.core import UserError
from rungwise.evaluation import evaluate
from rungwise.evaluation.statistics import (
    Interval,
    holm,
    interval_of_difference,
    interval_of_number,
    over_pictures,
    over_seeds,
    seeds_to_show,
    wilson,
)


@pytest.mark.parametrize(
    ("p", "corrected"),
    [([], []), ([0.2], [0.2]), ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]), ([0.5, 0.9, 0.5], [1.0, 1.0, 1.0])],
)
def test_holm(p, corrected):
    assert holm(p) == pytest.approx(corrected)


@given(st.integers(1, 400), st.data(), st.floats(0.5, 0.99))
def test_wilson_is_that_of_scipy(count, data, level):
    right = data.draw(st.integers(0, count))
    wanted = stats.binomtest(right, count).proportion_ci(level, method="wilson")
    assert wilson(right / count, count, level) == pytest.approx((wanted.low, wanted.high), abs=1e-9)


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=12), st.floats(0.5, 0.99))
def test_the_test_over_seeds_is_that_of_scipy(differences, level):
    found = over_seeds(differences, level)
    if np.std(differences, ddof=1) <= 1e-9 * max(1.0, abs(np.mean(differences))):
        assert found is None
        return
    wanted = stats.ttest_1samp(differences, 0)
    assert found.p == pytest.approx(wanted.pvalue, abs=1e-9)
    assert found.interval == pytest.approx(wanted.confidence_interval(level), rel=1e-6, abs=1e-9)


def test_one_seed_is_not_tested():
    assert over_seeds([3.0], 0.95) is None
    assert over_seeds([], 0.95) is None
    assert over_seeds([2.0, 2.0, 2.0], 0.95) is None


@given(st.lists(st.integers(-3, 3), min_size=19, max_size=60))
def test_p_over_pictures_is_twice_the_smaller_side(values):
    draws = np.array(values, dtype=float)
    found = over_pictures(draws, 9, Interval(-1, 1))
    below = sum(value <= 0 for value in values)
    above = sum(value >= 0 for value in values)
    assert found.p == min(1.0, 2 * (1 + min(below, above)) / (1 + len(values)))
    assert found.at_most == (min(below, above) == 0 and found.p < 1)
    assert over_pictures(-draws, 9, Interval(-1, 1)).p == found.p


def test_p_is_small_where_the_interval_of_the_draws_leaves_out_zero():
    for shift in np.linspace(0, 4, 41):
        draws = np.random.default_rng(0).normal(shift, 1, 1999)
        low = np.quantile(draws, 0.025)
        found = over_pictures(draws, 9, Interval(low, 9))
        if abs(low) > 0.02:
            assert (found.p < 0.05) == (low > 0)


@pytest.mark.parametrize(("difference", "deviation"), [(1.0, 0.1), (1.0, 1.0), (1.0, 2.5), (0.01, 0.02), (1.0, 9.0)])
def test_so_many_seeds_show_the_difference_as_often_as_said(difference, deviation):
    count = seeds_to_show(difference, deviation)
    generator = np.random.default_rng(0)

    def shown(seeds):
        drawn = generator.normal(difference, deviation, (4000, seeds))
        return (stats.ttest_1samp(drawn, 0, axis=1).pvalue < 0.05).mean()

    assert shown(count) > 0.77
    if count > 2:
        assert shown(count - 1) < 0.83
    assert seeds_to_show(-difference, deviation) == count


def test_where_no_number_of_seeds_is_enough_it_is_none():
    assert seeds_to_show(1e-6, 1.0) is None
    assert seeds_to_show(1.0, 0.0) == 2


def test_intervals_of_shares_at_an_end():
    right = evaluate(similarity=np.eye(40), image_of_caption=range(40))
    low, high = right.interval("t2i/R@1")
    assert (low, high) == pytest.approx((100 * wilson(1.0, 40).low, 100))
    assert right.interval("rsum") == pytest.approx((6 * low, 600))
    assert right.interval("i2t/MedR") == (1.0, 1.0)  # a rank is no share
    mixed = evaluate(
        similarity=np.roll(np.eye(40), 1, axis=1) + 2 * np.eye(40) * (np.arange(40) < 9), image_of_caption=range(40)
    )
    assert 0 < mixed.interval("i2t/R@1").low < mixed["i2t/R@1"] < mixed.interval("i2t/R@1").high < 100


def test_pictures_are_counted_and_not_their_captions():
    owners = np.repeat(np.arange(20), 5)
    result = evaluate(similarity=np.eye(20)[:, owners], image_of_caption=owners, measures=["R@1"])
    assert interval_of_number(result, "t2i/R@1", np.full(9, 100.0)).low == pytest.approx(100 * wilson(1.0, 20).low)


def test_the_interval_of_the_difference_of_shares_is_newcombes():
    """Method 10 of Newcombe 1998: its table II has .6075 to 1 for 10/10 against 0/10, and -.2775 to .2775 for 0/10."""
    right = evaluate(similarity=np.eye(10), image_of_caption=range(10), measures=["R@1"])
    wrong = evaluate(similarity=np.tri(10) - 2 * np.eye(10), image_of_caption=range(10), measures=["R@1"])
    assert (right["i2t/R@1"], wrong["i2t/R@1"]) == (100, 0)
    assert interval_of_difference([wrong], [right], "i2t/R@1", np.full(9, 100.0)) == pytest.approx(
        (60.75, 100), abs=0.01
    )
    assert interval_of_difference([wrong], [wrong], "i2t/R@1", np.zeros(9)) == pytest.approx((-27.75, 27.75), abs=0.01)


def test_a_level_outside_of_its_range_is_one_line():
    right = evaluate(similarity=np.eye(10), image_of_caption=range(10), measures=["R@1"])
    for level in (0, 1, 1.5, math.nan):
        with pytest.raises(UserError, match="level must lie between 0 and 1"):
            right.interval("i2t/R@1", level)
