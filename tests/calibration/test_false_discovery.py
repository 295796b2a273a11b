import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rungwise.calibration._false_discovery import belief_from, chance_of_noise, false_discovery_rates


def test_rates_are_near_the_true_ones_of_a_known_mixture():
    rng = np.random.default_rng(0)
    null, other = rng.normal(size=20_000), rng.normal(3, 1, 1000)
    scores = np.concatenate([null, other])
    relevant = np.arange(len(scores)) >= len(null)
    order = np.argsort(-scores)
    rates = false_discovery_rates(20_000 * stats.norm.sf(scores[order]))
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8)):
        among = (rates >= low) & (rates < high)
        assert among.sum() > 30
        assert abs(rates[among].mean() - (1 - relevant[order][among].mean())) < 0.12


@given(st.lists(st.floats(1e-9, 1e4), min_size=1, max_size=50))
def test_rates_rise_with_the_rank_and_are_probabilities(steps):
    rates = false_discovery_rates(np.cumsum(steps))
    assert (np.diff(rates) >= 0).all()
    assert rates.min() >= 0
    assert rates.max() <= 1


def test_one_hit_that_the_null_cannot_explain_is_sure_whatever_follows():
    assert false_discovery_rates(np.array([1e-12, 1.0, 2.0, 3.0]))[0] < 0.01


def test_no_hits_have_no_rates():
    assert false_discovery_rates(np.zeros(0)).shape == (0,)
    assert chance_of_noise(np.zeros(0)) == 1


def test_the_chance_of_noise_is_uniform_under_noise():
    rng = np.random.default_rng(1)
    chances = [chance_of_noise(500 * np.sort(rng.random(500))) for _ in range(2000)]
    assert stats.kstest(chances, "uniform").pvalue > 0.01


def test_belief_falls_with_the_chance_of_noise_from_one_to_zero():
    chances = np.concatenate([[0.0], np.logspace(-12, 0, 200)])
    beliefs = [belief_from(chance) for chance in chances]
    assert (np.diff(beliefs) <= 0).all()
    assert (beliefs[0], beliefs[-1]) == (1, 0)
    below, above = belief_from(np.exp(-1) - 1e-9), belief_from(np.exp(-1))
    assert below == pytest.approx(above, abs=1e-6)
