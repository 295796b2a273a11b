import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import pearson_and_spearman, row_sums, spearman
from rungwise.core._correlation import pearson


def test_row_sums_do_not_depend_on_the_neighbours():
    values = np.random.default_rng(0).random((50, 333))
    whole = row_sums(values)
    for layout in (values, np.asfortranarray(values)):
        alone = np.concatenate([row_sums(layout[row : row + 1]) for row in range(50)])
        np.testing.assert_array_equal(whole, alone)
    np.testing.assert_allclose(whole, values.sum(axis=1), rtol=1e-12)
    assert row_sums(np.empty((2, 0))).tolist() == [0.0, 0.0]


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 150), st.sampled_from([2, 5, 1000]), st.integers(0, 2**32 - 1))
def test_they_are_scipys(length, levels, seed):
    generator = np.random.default_rng(seed)
    x, y = generator.integers(0, levels, (2, 3, length)) / 7
    products, rhos = pearson(x, y), spearman(x, y)
    for row in range(3):
        constant = len(set(x[row])) == 1 or len(set(y[row])) == 1
        product = np.nan if constant else scipy.stats.pearsonr(x[row], y[row]).statistic
        rho = np.nan if constant else scipy.stats.spearmanr(x[row], y[row]).statistic
        assert products[row] == pytest.approx(product, abs=1e-12, nan_ok=True)
        assert rhos[row] == pytest.approx(rho, abs=1e-12, nan_ok=True)
        assert pearson_and_spearman(x[row], y[row]) == pytest.approx((product, rho), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("size", [1e-300, 1e-3, 1e300])
def test_numbers_of_any_size_correlate(size):
    draw = np.random.default_rng(0)
    x, y = draw.standard_normal((2, 200))
    assert pearson_and_spearman(size * x, y) == pytest.approx(pearson_and_spearman(x, y))


@pytest.mark.parametrize(("x", "y"), [([], []), ([1], [2]), ([0, 0], [1, 2]), ([1, 2], [3, 3])])
def test_lists_that_do_not_vary_have_no_correlation(x, y):
    assert np.isnan(pearson_and_spearman(x, y)).all()
