import math

import numpy as np
import pytest

from rungwise.training.pair_models import correlations


def slow_pearson(one, other):
    a, b = np.asarray(one) - np.mean(one), np.asarray(other) - np.mean(other)
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(sum(a * a) * sum(b * b))


def slow_ranks(values):
    return [sum(other < one for other in values) + (sum(other == one for other in values) + 1) / 2 for one in values]


def test_they_are_those_of_the_books():
    draw = np.random.default_rng(0)
    one, other = draw.integers(0, 6, 50).astype(float), draw.normal(size=50)
    found = correlations(one, other)
    assert found.pearson == pytest.approx(slow_pearson(one, other))
    assert found.spearman == pytest.approx(slow_pearson(slow_ranks(one), slow_ranks(other)))
    assert found.together == pytest.approx(found.pearson + found.spearman)
    assert found.pairs == 50


@pytest.mark.parametrize(("one", "other"), [([], []), ([1], [2]), ([1, 1], [1, 2]), ([1, 2], [3, 3])])
def test_without_any_there_is_none_and_it_is_never_the_best(one, other):
    found = correlations(one, other)
    assert math.isnan(found.pearson)
    assert found.together == -math.inf
    assert str(found).startswith(f"no correlation, for scores are all equal or too few ({len(one)} pair")
