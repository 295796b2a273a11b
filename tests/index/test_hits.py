import numpy as np
import pytest

from rungwise.index import Hit, Hits


def test_hits_are_lists_by_query() -> None:
    hits = Hits(np.array([[4, 2], [2, 4]]), np.array([[0.5, 0.25], [1, 0]], np.float32), (("d", "b"), ("b", "d")))
    assert len(hits) == 2
    assert hits[1] == [Hit(2, "b", 1.0), Hit(4, "d", 0.0)]
    assert list(hits) == [hits[0], hits[1]]
    with pytest.raises(IndexError):
        hits[2]


def test_no_query_has_no_hits() -> None:
    assert list(Hits(np.empty((0, 0), np.int64), np.empty((0, 0), np.float32), ())) == []
