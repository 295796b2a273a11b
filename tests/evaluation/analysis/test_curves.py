from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.evaluation import evaluate
from rungwise.evaluation.analysis import mean_curve, random_recall, recall_curve, steps_of


@given(st.integers(1, 7), st.data())
def test_chance_is_that_of_every_possible_order(gallery, data):
    """Of all ways to take K of n candidates, those count that hold one of the r right ones."""
    positives = data.draw(st.lists(st.integers(1, gallery), min_size=1, max_size=4))
    steps = np.arange(1, gallery + 1)
    wanted = []
    for k in steps:
        found = [
            np.mean([any(one < right for one in first) for first in combinations(range(gallery), int(k))])
            for right in positives
        ]
        wanted.append(np.mean(found))
    np.testing.assert_allclose(random_recall(gallery, positives, steps), wanted, atol=1e-12)


def test_chance_agrees_with_all_permutations_of_a_small_gallery():
    """The curve of recall itself, averaged over all orders of five candidates, two of which are right."""
    ranks = [1 + min(order.index(0), order.index(1)) for order in permutations(range(5))]
    curve = recall_curve(ranks, np.arange(len(ranks)), 5, np.full(len(ranks), 2), draws=10)
    np.testing.assert_allclose(curve.value, curve.chance, atol=1e-9)


def test_chance_of_many_right_candidates_neither_overflows_nor_takes_long():
    found = random_recall(100_000, [1, 50_000, 99_999], [1, 2, 100_000])
    np.testing.assert_allclose(found, [(1e-5 + 0.5 + 0.99999) / 3, (2e-5 + 0.75 + 1) / 3, 1.0], atol=1e-5)


def test_the_band_is_that_of_a_slow_bootstrap_over_images():
    generator = np.random.default_rng(3)
    owners = np.repeat(np.arange(40), generator.integers(1, 6, 40))
    rows = generator.normal(owners[:, None] % 3, 1.0, (len(owners), 2))
    curve = mean_curve([1, 2], rows, owners, draws=4000)
    means = []
    for _ in range(4000):
        drawn = generator.integers(0, 40, 40)
        means.append(np.concatenate([rows[owners == image] for image in drawn]).mean(axis=0))
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    np.testing.assert_allclose(curve.value, rows.mean(axis=0))
    np.testing.assert_allclose(curve.low, low, atol=0.04)
    np.testing.assert_allclose(curve.high, high, atol=0.04)


def test_bands_cover_the_truth_about_as_often_as_they_say():
    """Of 300 samples with a known mean, about 95 % have it in their band."""
    generator = np.random.default_rng(0)
    covered = 0
    for _ in range(300):
        of_image = generator.normal(0, 1, 60)
        rows = np.repeat(of_image, 5)[:, None] + generator.normal(0, 1, (300, 1))
        curve = mean_curve([1], rows, np.repeat(np.arange(60), 5), draws=300)
        covered += bool(curve.low[0] <= 0 <= curve.high[0])
    assert 0.90 <= covered / 300 <= 0.98  # queries taken one by one would reach about 70 %


def test_the_recall_curve_goes_through_the_measures():
    owners = np.arange(30).repeat(2)
    scores = np.random.default_rng(1).random((30, 60))
    result = evaluate(similarity=scores, image_of_caption=owners, measures=["R@1", "R@5", "R@10", "MeanR"])
    curve = recall_curve(result.per_query("t2i/MeanR"), owners, 30, np.ones(60))
    for k in (1, 5, 10):
        assert curve.value[curve.x == k] == pytest.approx(result[f"t2i/R@{k}"])
    inside = (curve.low <= curve.value) & (curve.value <= curve.high)
    assert inside.all()
    assert curve.value[-1] == curve.chance[-1] == 100
    np.testing.assert_allclose(curve.chance, 100 * curve.x / 30)


def test_where_all_queries_agree_the_band_is_wilsons():
    curve = recall_curve(np.full(100, 7), np.arange(100).repeat(1), 10, np.ones(100))
    assert curve.value[0] == 0
    assert curve.low[0] == 0
    assert curve.high[0] == pytest.approx(3.70, abs=0.01)  # 0 of 100, by the published formula
    assert curve.value[-1] == 100
    assert curve.low[-1] == pytest.approx(96.30, abs=0.01)
    assert curve.high[-1] == 100
    captions = recall_curve(np.full(100, 7), np.arange(20).repeat(5), 10, np.ones(100))
    assert captions.high[0] > curve.high[0]  # five captions of a picture are no five trials


def test_queries_without_a_right_candidate_are_left_out_and_unlisted_ones_count_as_missed():
    curve = recall_curve([1, np.nan, np.inf], [0, 1, 2], 4, [1, 0, 2], depth=2)
    assert curve.x.tolist() == [1, 2]
    assert curve.value.tolist() == [50, 50]
    np.testing.assert_allclose(curve.chance, 100 * (np.array([1 / 4, 1 / 2]) + np.array([1 / 2, 5 / 6])) / 2)


@pytest.mark.parametrize("most", [1, 2, 59, 61, 10_000])
def test_steps_are_whole_rising_and_end_where_they_should(most):
    steps = steps_of(most)
    assert steps[0] == 1
    assert steps[-1] == most
    assert (np.diff(steps) > 0).all()
    assert len(steps) <= 60


def test_what_does_not_fit_is_refused():
    with pytest.raises(UserError, match=r"got \(2, 1\) and \(2,\)"):
        mean_curve([1, 2], [[1.0], [2.0]], [0, 1])
    with pytest.raises(UserError, match="no query has values"):
        mean_curve([1], [[np.nan]], [0])
    with pytest.raises(UserError, match="draws must be at least 1"):
        mean_curve([1], [[1.0]], [0], draws=0)
    with pytest.raises(UserError, match="for each query"):
        recall_curve([1, 2], [0], 3, [1, 1])
    with pytest.raises(UserError, match="no query has values"):
        recall_curve([np.nan], [0], 3, [0])
