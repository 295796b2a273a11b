import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rungwise.core.compute import Best, rank, taken, top_columns
from rungwise.core.compute import _threads as threads

MATRICES = hnp.arrays(
    st.sampled_from([np.float32, np.float64]),
    st.tuples(st.integers(1, 12), st.integers(1, 80)),
    elements=st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 0.25, 3.0, np.inf]),
)


@given(MATRICES, st.integers(1, 90))
def test_top_columns_are_the_head_of_a_stable_sort(scores, k):
    np.testing.assert_array_equal(top_columns(scores, k), np.argsort(-scores, axis=1, kind="stable")[:, :k])


@pytest.mark.parametrize("columns", [1000, 3000])
@pytest.mark.parametrize("k", [1, 5, 40, 999, 1000, 2000])
def test_top_columns_of_long_rows_with_and_without_ties(k, columns):
    generator = np.random.default_rng(k)
    scores = generator.standard_normal((20, columns), dtype=np.float32)
    scores[5:10] = scores[5:10].round(1)
    scores[10:15] = np.maximum(scores[10:15], 1.5)  # most are equal, and least
    scores[15:] = 0
    right = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(top_columns(scores, k), right)
    for row in range(len(scores)):
        np.testing.assert_array_equal(top_columns(scores[row : row + 1], k), right[row : row + 1])


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (3, 4)])
def test_nothing_is_asked_or_there_is_nothing(shape):
    assert top_columns(np.zeros(shape, np.float32), 0).shape == (shape[0], 0)
    assert top_columns(np.zeros(shape, np.float32), 9).shape == shape


def test_threads_give_what_one_gives(monkeypatch):
    scores = np.random.default_rng(0).standard_normal((300, 2500), dtype=np.float32).round(1)
    found = []
    for cores in (1, 3):
        monkeypatch.setattr(threads, "cores", lambda cores=cores: cores)
        monkeypatch.setattr(threads, "_SMALL", 1)
        found.append([top_columns(scores, k) for k in (5, 700, 2500)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found[0][-1], np.argsort(-scores, axis=1, kind="stable"))


def test_entries_are_taken_by_row():
    values = np.random.default_rng(0).random((4, 9))
    columns = np.random.default_rng(1).integers(0, 9, (4, 3))
    for layout in (values, np.asfortranarray(values)):
        np.testing.assert_array_equal(taken(layout, columns), np.take_along_axis(values, columns, axis=1))


def slow_rank(scores: list[float], k: int, exclude: list[int]) -> list[tuple[int, float]]:
    left = [(position, score) for position, score in enumerate(scores) if position not in exclude]
    return sorted(left, key=lambda pair: (-pair[1], pair[0]))[:k]


@given(
    scores=hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 3), st.integers(1, 70)),
        elements=st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5]), st.floats(width=32, allow_nan=False)),
    ),
    k=st.integers(1, 80),
    block=st.sampled_from([1, 16, 32, 1000]),
    data=st.data(),
)
def test_rank_equals_a_sort_whatever_the_block_size(
    scores: np.ndarray, k: int, block: int, data: st.DataObject
) -> None:
    exclude = data.draw(st.lists(st.integers(0, scores.shape[1] - 1), max_size=4))
    # The candidates' vectors are their columns of scores, so the scorer is the identity.
    positions, found = rank(
        np.ascontiguousarray(scores.T), lambda rows: rows.T, len(scores), k, exclude=exclude, block=block
    )
    for row in range(len(scores)):
        expected = slow_rank(scores[row].tolist(), k, exclude)
        assert positions[row].tolist() == [position for position, _ in expected]
        assert found[row].tolist() == [score for _, score in expected]


@pytest.mark.parametrize("count", [1, 2, 7, 15, 16, 17, 100, 1001])
@pytest.mark.parametrize("dimension", [3, 64, 300])
def test_equal_vectors_get_equal_scores_and_keep_their_order(count: int, dimension: int) -> None:
    generator = np.random.default_rng(count)
    candidates = np.repeat(generator.standard_normal((1, dimension), dtype=np.float32), count, axis=0)
    query = generator.standard_normal((1, dimension), dtype=np.float32)
    positions, scores = rank(candidates, lambda rows: query @ rows.T, 1, count)
    assert positions[0].tolist() == list(range(count))
    assert len(set(scores[0].tolist())) == 1


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        rank(np.ones((3, 1), np.float32), lambda rows: rows.T * np.nan, 1, 1)


def test_everything_excluded_leaves_nothing() -> None:
    positions, scores = rank(np.ones((2, 1), np.float32), lambda rows: rows.T, 1, 5, exclude=(0, 1, 1))
    assert positions.shape == scores.shape == (1, 0)


def test_no_candidates_leave_nothing() -> None:
    assert rank(np.ones((0, 2), np.float32), lambda rows: rows[:, :1].T, 1, 5)[0].shape == (1, 0)


def test_k_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        rank(np.ones((2, 1), np.float32), lambda rows: rows.T, 1, 0)


@pytest.mark.parametrize("k", [1, 4, 30])
@pytest.mark.parametrize("step", [1, 3, 20])
def test_the_best_of_candidates_in_parts_are_those_of_all(k: int, step: int) -> None:
    scores = np.random.default_rng(4).integers(0, 5, (6, 20)).astype(np.float32)
    best = Best(6, k, 20)
    for first in range(0, 20, step):
        for queries in (np.array([4, 0, 2]), np.array([1, 3, 5])):
            best.offer(queries, first, scores[queries, first : first + step])
    np.testing.assert_array_equal(best.positions, top_columns(scores, k))
    np.testing.assert_array_equal(best.scores, taken(scores, top_columns(scores, k)))
