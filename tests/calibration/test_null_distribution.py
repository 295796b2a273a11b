import numpy as np
import pytest
from scipy import stats

from rungwise.calibration import Background
from rungwise.calibration._null_distribution import Null


def null_of(scores, total=None):
    return Null.of(Background(scores, total or len(scores)))


def test_noise_is_fitted_as_it_was_made():
    scores = np.random.default_rng(0).normal(0.3, 0.04, 20_000)
    null = null_of(scores)
    assert null.centre == pytest.approx(0.3, abs=0.002)
    # Its standard error is added.
    assert null.spread == pytest.approx(0.04 * (1 + 1.8 / np.sqrt(20_000)), rel=0.03)
    assert null.low_spread == pytest.approx(0.04, rel=0.03)
    assert null.irrelevant == pytest.approx(20_000, rel=0.01)


@pytest.mark.parametrize("share", [0.05, 0.15, 0.3])
def test_what_is_relevant_hardly_moves_the_fit(share):
    rng = np.random.default_rng(1)
    relevant = rng.random(20_000) < share
    null = null_of(rng.normal(0, 1, 20_000) + 6 * relevant)
    plain = np.quantile(rng.normal(0, 1, 20_000) + 6 * relevant, [0.5, 0.75])
    assert abs(null.centre) < max(0.05, 0.5 * abs(plain[0]))
    assert abs(null.spread - 1) < 0.15
    assert null.irrelevant / 20_000 == pytest.approx(1 - share, abs=0.06)


def test_only_the_upper_half_counts_for_the_upper_tail():
    rng = np.random.default_rng(2)
    noise = rng.normal(0, 1, 40_000)
    null = null_of(np.where(noise > 0, 1.4 * noise, noise))
    assert null.spread == pytest.approx(1.4, rel=0.06)
    assert null.low_spread == pytest.approx(1, rel=0.05)


def test_tails_are_those_of_the_normal_distribution():
    null = Null(0.1, 0.05, 1000, 1000.0, 0.05, np.array([0.3]), 10)
    positions = null.positions(np.array([0.1, 0.2, 0.35]))
    assert positions == pytest.approx([0, 2, 5])
    assert np.exp(null.log_tails(positions)) == pytest.approx(stats.norm.sf([0, 2, 5]))
    assert null.expected_false(positions) == pytest.approx(1000 * stats.norm.sf([0, 2, 5]))


def test_a_sample_gives_nearly_the_null_of_all():
    rng = np.random.default_rng(3)
    scores = rng.normal(0.2, 0.1, 100_000)
    whole, part = null_of(scores), null_of(rng.choice(scores, 4096, replace=False), 100_000)
    assert part.centre == pytest.approx(whole.centre, abs=0.01)
    assert part.spread == pytest.approx(whole.spread, rel=0.08)
    assert part.total == whole.total


def test_equal_scores_have_no_spread_and_whatever_is_higher_is_far_out():
    null = null_of(np.full(100, 0.3))
    assert (null.centre, null.spread) == (0.3, 0.0)
    assert null.positions(np.array([0.3, 0.2, 0.31])).tolist() == [0, 0, 12]
    assert null.low_positions(np.array([0.3, 0.31])).tolist() == [0, 12]


def test_mostly_equal_scores_take_their_spread_from_the_others():
    null = null_of(np.concatenate([np.zeros(900), np.full(100, 1.0)]))
    assert 0 < null.spread < 1
