import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rungwise.index.ranking import rank


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
