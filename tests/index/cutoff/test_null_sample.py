import numpy as np
import pytest

from rungwise.index.cutoff._null_sample import NullSample
from rungwise.similarity import Cosine, Inner, Order, Similarity
from tests.index.toy_store import ToyStore


@pytest.mark.parametrize("similarity", [Cosine(), Inner(), Order()])
@pytest.mark.parametrize("metric", [None, "cosine"])
def test_scores_are_those_of_a_search(similarity: Similarity, metric: str | None) -> None:
    rng = np.random.default_rng(5)
    store = ToyStore(4, similarity)
    store.upsert([str(row) for row in range(30)], rng.random((30, 4)))
    query = rng.random((1, 4)).astype(np.float32)
    found = NullSample.of(store, 30).background(query, metric)  # type: ignore[arg-type]
    searched = store.search(query, 30, metric=metric).scores[0]  # type: ignore[arg-type]
    np.testing.assert_allclose(np.sort(found.scores)[::-1], searched, rtol=1e-5, atol=1e-6)
    assert found.total == 30
    some = NullSample.of(store, 7)
    assert (len(some.vectors), some.total) == (7, 30)


def test_nothing_is_a_sample_of_nothing() -> None:
    sample = NullSample.of(ToyStore(3, Cosine()))
    assert sample.total == 0
    assert len(sample.background(np.ones((1, 3), np.float32)).scores) == 0
