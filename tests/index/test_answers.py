import numpy as np

from rungwise.index import Hit
from rungwise.index._answers import hits_of
from rungwise.index.stores import StoreHits


def test_hits_are_lists_by_query_and_may_differ_in_length() -> None:
    found = StoreHits((("d", "b"), ("b",)), (np.array([0.5, 0.25], np.float32), np.array([1], np.float32)))
    assert hits_of(found) == [[Hit("d", 0.5), Hit("b", 0.25)], [Hit("b", 1.0)]]


def test_no_query_has_no_hits() -> None:
    assert hits_of(StoreHits((), ())) == []
