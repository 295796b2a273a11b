import numpy as np

from rungwise.calibration._rung_names import names_from


def test_a_name_is_right_at_least_half_of_the_time():
    rng = np.random.default_rng(0)
    expected = rng.random(5000)
    true = np.clip(expected + rng.normal(0, 0.2, 5000), 0, 1)
    exactly, close = names_from(expected, true, 0.5, 1.0)
    assert exactly > close
    for boundary, least in ((exactly, 0.75), (close, 0.5)):
        just_above = (expected >= boundary) & (expected < boundary + 0.1)
        just_below = (expected < boundary) & (expected >= boundary - 0.1)
        assert (true[just_above] >= least).mean() >= 0.5
        assert (true[just_below] >= least).mean() < 0.5


def test_a_name_that_is_never_right_is_never_given():
    expected = np.array([0.1, 0.2, 0.3, 0.4])
    exactly, close = names_from(expected, np.array([0.0, 0.0, 0.6, 0.6]), 0.5, 1.0)
    assert exactly > 1.0
    assert close == 0.3


def test_where_the_highest_degree_is_the_relevant_one_both_names_have_one_boundary():
    exactly, close = names_from(np.array([0.1, 0.9]), np.array([0.0, 1.0]), 1.0, 1.0)
    assert exactly == close == 0.9
