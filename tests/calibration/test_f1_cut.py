import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.calibration._f1_cut import best_cut, expected_f1


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


@pytest.mark.parametrize("power", [1, 3, 6])
def test_many_hits_are_as_exact_as_few(power):
    """Against the distribution of the number of relevant hits without each one, by convolution."""
    probabilities = np.sort(np.random.default_rng(0).random(150) ** power)[::-1]
    values = expected_f1(probabilities)
    for k in (1, 20, 64, 65, 150):
        total = 0.0
        for i in range(k):
            counts = np.ones(1)
            for j, p in enumerate(probabilities):
                if j != i:
                    counts = np.convolve(counts, [1 - p, p])
            total += 2 * probabilities[i] * (counts / (k + 1 + np.arange(len(counts)))).sum()
        assert values[k] == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("shift", [0.5, 1.0, 2.0, 3.0])
def test_a_shift_is_the_mean_over_queries_whose_hits_move_together(shift):
    """Against enumeration on a fine grid of shifts, with the logits that have the probabilities as their mean."""
    probabilities = np.array([0.9, 0.6, 0.5, 0.3, 0.05])
    grid = shift * np.linspace(-6, 6, 121)
    weights = np.exp(-((grid / shift) ** 2) / 2)
    weights /= weights.sum()
    low, high = np.full(5, -60.0), np.full(5, 60.0)
    for _ in range(60):
        logits = (low + high) / 2
        below = weights @ (1 / (1 + np.exp(-(logits + grid[:, None])))) < probabilities
        low, high = np.where(below, logits, low), np.where(below, high, logits)
    expected = np.zeros(6)
    for weight, moved in zip(weights, grid, strict=True):
        expected += weight * by_enumeration(1 / (1 + np.exp(-(logits + moved))))
    assert expected_f1(probabilities, shift=shift) == pytest.approx(expected, abs=0.015)


def test_less_is_shown_where_hits_are_relevant_together():
    probabilities = 0.8 / np.sqrt(np.arange(1, 301))
    cuts = [best_cut(probabilities, shift=shift) for shift in (0.0, 1.0, 2.0, 3.0)]
    assert cuts == sorted(cuts, reverse=True)
    assert cuts[-1] < cuts[0] / 3


def test_others_that_may_be_relevant_count_as_many_unlikely_hits_do():
    probabilities = np.array([0.9, 0.6, 0.3])
    many = expected_f1(np.concatenate([probabilities, np.full(2000, 0.005)]))
    assert expected_f1(probabilities, beyond=10.0) == pytest.approx(many[:4], abs=2e-3)


def test_nothing_is_shown_if_that_is_expected_to_be_worth_more():
    one = np.array([0.7])
    assert best_cut(one, belief=0.7) == 1
    assert best_cut(one, belief=0.3) == 0
    assert best_cut(np.full(50, 0.02), belief=0.8) == 0
    # Who is that sure of something is shown something, however little of it is right.
    assert best_cut(np.full(50, 0.02), belief=0.9) > 0
    assert best_cut(np.array([1.0]), belief=0.0) == 0


def test_the_best_cut():
    assert best_cut(np.zeros(0)) == 0
    assert best_cut(np.zeros(3)) == 0
    assert best_cut(np.array([1.0, 1.0, 0.0])) == 2
    # Lewis 1995: a hit pays from half the best F1 on, not from one half.
    assert best_cut(np.array([0.4, 0.4, 0.4, 0.01])) == 3
