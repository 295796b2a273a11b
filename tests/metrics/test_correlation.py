import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.metrics._correlation import tau_b


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 150), st.sampled_from([2, 5, 1000]), st.integers(0, 2**32 - 1))
def test_tau_b_is_scipys(length, levels, seed):
    generator = np.random.default_rng(seed)
    x, y = generator.integers(0, levels, (2, 3, length)) / 7
    ours = tau_b(x, y)
    for row in range(3):
        constant = len(set(x[row])) == 1 or len(set(y[row])) == 1
        theirs = 0.0 if constant else scipy.stats.kendalltau(x[row], y[row]).statistic
        assert ours[row] == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("length", [31, 32, 33, 63, 64, 65, 1000, 4095, 4096, 4097, 9000])
def test_tau_b_of_long_lists_is_scipys(length):
    generator = np.random.default_rng(length)
    for kind in (np.float32, np.float64):
        x, y = generator.standard_normal((2, 2, length)).round(2).astype(kind)
        theirs = [scipy.stats.kendalltau(a, b).statistic for a, b in zip(x, y, strict=True)]
        np.testing.assert_allclose(tau_b(x, y), theirs, rtol=0, atol=1e-12)
        falling = np.argsort(-x, axis=1, kind="stable")
        lists = np.take_along_axis(x, falling, axis=1), np.take_along_axis(y, falling, axis=1)
        np.testing.assert_array_equal(tau_b(*lists), tau_b(x, y))
        assert (lists[1] == np.take_along_axis(y, falling, axis=1)).all()  # the caller's lists stay as they are


def test_no_lists_and_single_entries():
    assert tau_b(np.empty((0, 5)), np.empty((0, 5))).shape == (0,)
    assert tau_b(np.ones((2, 1)), np.ones((2, 1))).tolist() == [0.0, 0.0]
