"""Also tests rungwise.metrics._kernels, in which the counting is done."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as some

from rungwise.core.compute import _threads as threads
from rungwise.metrics import RunningLists
from rungwise.metrics import _kernels as kernels
from rungwise.metrics._counting import RunningRanks, count_ranks

MATRICES = some.arrays(
    st.sampled_from([np.float32, np.float64]),
    st.tuples(st.integers(1, 6), st.integers(1, 80)),
    elements=st.sampled_from([-1.5, -0.0, 0.0, 0.25, 3.0]),
)


@settings(max_examples=40)
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


@settings(max_examples=40)
@given(MATRICES, st.integers(1, 90), st.integers(1, 6))
def test_running_lists_are_the_heads_of_stable_sorts_of_columns(scores, k, step):
    scores = np.ascontiguousarray(scores.T)
    k = min(k, len(scores))
    other = np.arange(scores.size).reshape(scores.shape)
    lists = RunningLists(scores.shape[1], k)
    for start in range(0, len(scores), step):
        lists.add(start, scores[start : start + step], other[start : start + step])
    rows = np.argsort(-scores.T, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(lists.rows, rows)
    np.testing.assert_array_equal(lists.scores, np.take_along_axis(scores.T, rows, axis=1))
    np.testing.assert_array_equal(lists.beside, np.take_along_axis(other.T, rows, axis=1))


def test_threads_give_what_one_gives(monkeypatch):
    generator = np.random.default_rng(0)
    scores = generator.standard_normal((300, 2500), dtype=np.float32).round(1)
    column = generator.integers(0, 2500, 300)

    def everything():
        running = RunningRanks(column, scores[np.arange(300), column], 2500)
        lists = RunningLists(300, 7)
        for start in range(0, 2500, 500):
            running.add(start, scores.T[start : start + 500])
            lists.add(start, scores.T[start : start + 500], scores.T[start : start + 500])
        return [
            count_ranks(scores, column),
            running.ranks,
            lists.rows,
        ]

    found = []
    for cores in (1, 3):
        monkeypatch.setattr(threads, "cores", lambda cores=cores: cores)
        monkeypatch.setattr(threads, "_SMALL", 1)
        found.append(everything())
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@given(st.data())
def test_the_forms_in_numpy_count_the_same(data):
    """What counts where numba is not installed, ties and repeated columns included."""
    rows, columns = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 9))
    drawn = data.draw(st.lists(st.integers(0, 3), min_size=rows * columns, max_size=rows * columns))
    scores = np.array(drawn, dtype=np.float32).reshape(rows, columns)
    column = np.array(data.draw(st.lists(st.integers(0, columns - 1), min_size=rows, max_size=rows)))
    ranks = [np.zeros(rows, dtype=np.int64) for _ in range(2)]
    for one, count in zip(ranks, (kernels.rank_in_rows, kernels.plain_rank_in_rows), strict=True):
        count(scores, column, one, 0, rows)
    np.testing.assert_array_equal(*ranks)
    own_row = np.array(data.draw(st.lists(st.integers(0, rows - 1), min_size=columns, max_size=columns)))
    own = scores[own_row, np.arange(columns)]
    order = np.argsort(own_row, kind="stable")
    starts = np.searchsorted(own_row[order], np.arange(rows + 1))
    if data.draw(st.booleans()):
        own = own + np.float32(1)  # which was announced wrong
    found = []
    for count in (kernels.count_in_columns, kernels.plain_count_in_columns):
        bar, counts = np.nextafter(own, np.float32(-np.inf)), np.zeros(columns, dtype=np.int64)
        wrong = count(scores, bar, counts, own, order, starts, 0, columns)
        found.append((wrong, counts.tolist() if wrong == -1 else None))
    assert found[0] == found[1]
