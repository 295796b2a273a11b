import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rungwise.core import UserError
from rungwise.index.search import _diversity as module
from rungwise.index.search._diversity import Folding, diversified
from rungwise.similarity import unit_rows

ROWS = arrays(np.float32, st.tuples(st.integers(1, 12), st.just(3)), elements=st.integers(-2, 2).map(float))
HASHES = st.lists(st.sampled_from([None, "a", "b"]), min_size=12, max_size=12)


def folded(rows: np.ndarray, hashes: list, least: float = 0.98, step: int = 99) -> list[list[int]]:
    folding = Folding(least)
    for start in range(0, len(rows), step):
        folding.add(rows[start : start + step], hashes[start : start + len(rows[start : start + step])])
    return folding.groups


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, HASHES, st.sampled_from([0.47, 0.91, 0.98]), st.sampled_from([1, 3, 99]), st.sampled_from([2, 5, 64]))
def test_folding_is_that_of_a_plain_loop_however_the_rows_come(
    monkeypatch, rows: np.ndarray, hashes: list, least: float, step: int, at_once: int
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    units = unit_rows(rows)
    groups: list[list[int]] = []
    for position in range(len(rows)):
        for group in groups:
            same = hashes[position] is not None and hashes[position] == hashes[group[0]]
            if same or units[position] @ units[group[0]] >= least:
                group.append(position)
                break
        else:
            groups.append([position])
    assert folded(rows, hashes[: len(rows)], least, step) == groups


def test_equal_contents_are_folded_whatever_their_vectors() -> None:
    assert folded(np.array([[1, 0], [0, 1], [-1, 0]]), ["a", "b", "a"]) == [[0, 2], [1]]


@settings(max_examples=40)
@given(ROWS, st.floats(0, 1))
def test_diversity_keeps_every_row_and_the_best_one_first(rows: np.ndarray, diversity: float) -> None:
    relevance = -np.arange(len(rows))
    order = diversified(relevance, rows, diversity)
    assert sorted(order) == list(range(len(rows)))
    if diversity < 1:
        assert order[0] == 0
    assert diversified(relevance, rows, 0) == list(range(len(rows)))


@settings(max_examples=40)
@given(ROWS)
def test_diversity_is_maximal_marginal_relevance(rows: np.ndarray) -> None:
    relevance, units = np.linspace(1, 0, len(rows)), unit_rows(rows).astype(float)
    if len(rows) == 1:
        relevance = np.ones(1)
    order: list[int] = []
    for place in diversified(relevance, rows, 0.4):
        values = {
            one: 0.6 * relevance[one] - 0.4 * max((float(units[one] @ units[other]) for other in order), default=0)
            for one in range(len(rows))
            if one not in order
        }
        assert values[place] == pytest.approx(max(values.values()), abs=1e-5)
        order.append(place)


@pytest.mark.parametrize("diversity", [-0.1, 1.1, float("nan")])
def test_other_degrees_are_refused(diversity: float) -> None:
    with pytest.raises(UserError, match="from 0"):
        diversified([1.0], [[1.0]], diversity)


def test_rows_of_zeros_hide_no_near_duplicates() -> None:
    assert folded(np.array([[0, 0], [0, 0], [1, 0], [1, 0]]), [None] * 4) == [[0], [1], [2, 3]]
