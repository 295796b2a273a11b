import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as some

from rungwise.metrics.ranking import (
    RunningRanks,
    count_ranks,
    row_sums,
    top_columns,
)

MATRICES = some.arrays(
    st.sampled_from([np.float32, np.float64]),
    st.tuples(st.integers(1, 6), st.integers(1, 80)),
    elements=st.sampled_from([-1.5, -0.0, 0.0, 0.25, 3.0]),
)


@pytest.mark.parametrize("shape", [(1, 1), (3, 127), (3, 128), (2, 255 * 128 + 5), (600, 3), (0, 4), (4, 0)])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_counts_are_sums_at_every_length(shape, share):
    mask = np.random.default_rng(0).random(shape) < share
    np.testing.assert_array_equal(count_true(mask), mask.sum(axis=1))
    np.testing.assert_array_equal(count_true_in_columns(mask), mask.sum(axis=0))
    np.testing.assert_array_equal(count_true(mask[:, 1:]), mask[:, 1:].sum(axis=1))


@settings(deadline=None)
@given(MATRICES, st.integers(1, 90))
def test_top_columns_are_the_head_of_a_stable_sort(scores, k):
    np.testing.assert_array_equal(top_columns(scores, k), np.argsort(-scores, axis=1, kind="stable")[:, :k])


@pytest.mark.parametrize("k", [1, 5, 40, 999, 1000, 2000])
def test_top_columns_of_long_rows_with_and_without_ties(k):
    generator = np.random.default_rng(k)
    scores = generator.standard_normal((20, 1000), dtype=np.float32)
    scores[5:10] = scores[5:10].round(1)
    scores[10:15] = np.maximum(scores[10:15], 1.5)  # most are equal, and least
    scores[15:] = 0
    np.testing.assert_array_equal(top_columns(scores, k), np.argsort(-scores, axis=1, kind="stable")[:, :k])


@settings(deadline=None)
@given(MATRICES, st.data())
def test_ranks_are_places_in_a_stable_sort(scores, data):
    rows, columns = scores.shape
    places = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1) + 1
    column = np.array(data.draw(st.lists(st.integers(0, columns - 1), min_size=rows, max_size=rows)))
    np.testing.assert_array_equal(count_ranks(scores, column), places[np.arange(rows), column])

    step = data.draw(st.integers(1, columns))
    running = RunningRanks(column, scores[np.arange(rows), column], columns)
    for start in range(0, columns, step):
        running.add(start, np.ascontiguousarray(scores.T[start : start + step]))
    np.testing.assert_array_equal(running.ranks, places[np.arange(rows), column])


def test_row_sums_do_not_depend_on_the_neighbours():
    values = np.random.default_rng(0).random((50, 333))
    whole = row_sums(values)
    for layout in (values, np.asfortranarray(values)):
        alone = np.concatenate([row_sums(layout[row : row + 1]) for row in range(50)])
        np.testing.assert_array_equal(whole, alone)
    np.testing.assert_allclose(whole, values.sum(axis=1), rtol=1e-12)
    assert row_sums(np.empty((2, 0))).tolist() == [0.0, 0.0]
