import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.index.background import Sample, chosen
from rungwise.similarity import Cosine, Inner, Order, Similarity
from tests.index.toy_store import ToyStore


@given(st.sets(st.text(), min_size=1, max_size=60), st.sets(st.text(), max_size=10), st.integers(1, 30))
def test_what_comes_and_goes_changes_the_sample_by_no_more_than_itself(before: set, come: set, size: int) -> None:
    first, after = set(chosen(sorted(before), size)), set(chosen(sorted(before | come), size))
    assert len(first) == min(size, len(before))
    assert len(first - after) <= len(come - before)
    assert after - first <= come


@pytest.mark.parametrize("similarity", [Cosine(), Inner(), Order()])
@pytest.mark.parametrize("metric", [None, "cosine"])
def test_scores_are_those_of_a_search(similarity: Similarity, metric: str | None) -> None:
    rng = np.random.default_rng(5)
    store = ToyStore(4, similarity)
    store.upsert([str(row) for row in range(30)], rng.random((30, 4)))
    query = rng.random((1, 4)).astype(np.float32)
    found = Sample.of(store, 30).background(query, metric)  # type: ignore[arg-type]
    searched = store.search(query, 30, metric=metric).scores[0]  # type: ignore[arg-type]
    np.testing.assert_allclose(np.sort(found.scores)[::-1], searched, rtol=1e-5, atol=1e-6)
    assert found.total == 30
    some = Sample.of(store, 7)
    assert (len(some.vectors), some.total) == (7, 30)


def test_nothing_is_a_sample_of_nothing() -> None:
    sample = Sample.of(ToyStore(3, Cosine()))
    assert sample.total == 0
    assert len(sample.background(np.ones((1, 3), np.float32)).scores) == 0
