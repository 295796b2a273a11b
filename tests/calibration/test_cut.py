import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.calibration.cut import best_cut, expected_f1


def by_enumeration(probabilities):
    """Mean F1 of every cut over all outcomes; a query with nothing relevant has an F1 of 0 for every k > 0."""
    n = len(probabilities)
    values = np.zeros(n + 1)
    for outcome in itertools.product([0, 1], repeat=n):
        weight = np.prod([p if right else 1 - p for p, right in zip(probabilities, outcome, strict=True)])
        for k in range(1, n + 1):
            values[k] += weight * 2 * sum(outcome[:k]) / (k + sum(outcome))
    return values


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_it_is_the_mean_over_all_outcomes(probabilities):
    expected = by_enumeration(probabilities)
    assert expected_f1(np.array(probabilities))[1:] == pytest.approx(expected[1:], abs=1e-9)


def test_many_hits_are_as_exact_as_few():
    """Against the distribution of the number of relevant hits without each one, by convolution."""
    probabilities = np.sort(np.random.default_rng(0).random(150) ** 3)[::-1]
    values = expected_f1(probabilities)
    for k in (1, 20, 75, 150):
        total = 0.0
        for i in range(k):
            counts = np.ones(1)
            for j, p in enumerate(probabilities):
                if j != i:
                    counts = np.convolve(counts, [1 - p, p])
            total += 2 * probabilities[i] * (counts / (k + 1 + np.arange(len(counts)))).sum()
        assert values[k] == pytest.approx(total, abs=1e-5)


def test_others_that_may_be_relevant_count_as_many_unlikely_hits_do():
    probabilities = np.array([0.9, 0.6, 0.3])
    many = expected_f1(np.concatenate([probabilities, np.full(2000, 0.005)]))
    assert expected_f1(probabilities, beyond=10.0) == pytest.approx(many[:4], abs=2e-3)


def test_showing_nothing_is_worth_the_belief_that_there_is_nothing():
    assert expected_f1(np.array([0.5, 0.2]), belief=0.7)[0] == pytest.approx(0.3)
    assert expected_f1(np.array([0.5, 0.2]), belief=0.0).tolist() == [1, 0, 0]
    # If anything is relevant, it is the one hit.
    assert expected_f1(np.array([0.7]), belief=0.7)[1] == pytest.approx(0.7)


def test_the_best_cut():
    assert best_cut(np.zeros(0)) == 0
    assert best_cut(np.array([1.0, 1.0, 0.0])) == 2
    assert best_cut(np.array([0.3, 0.3]), belief=0.35) == 0
    # Lewis 1995: a hit pays from half the best F1 on, not from one half.
    assert best_cut(np.array([0.4, 0.4, 0.4, 0.01])) == 3
