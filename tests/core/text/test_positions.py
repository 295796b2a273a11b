"""Positions that stand for the whole of a long list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core.text import evenly_spread


@given(st.integers(0, 10_000), st.integers(1, 3_000))
def test_each_position_once_rising_and_within_the_list(count: int, most: int) -> None:
    found = evenly_spread(count, most)
    assert found.dtype == np.int64
    assert len(found) == min(count, most)
    assert (np.diff(found) > 0).all()
    assert not len(found) or (found[0] == 0 and found[-1] < count)


@given(st.integers(2, 10_000), st.integers(2, 3_000))
def test_the_ends_are_there_and_gaps_are_alike(count: int, most: int) -> None:
    found = evenly_spread(count, most)
    assert found[-1] == count - 1
    assert np.ptp(np.diff(found)) <= 1


def test_of_one_it_is_the_first() -> None:
    assert evenly_spread(9, 1).tolist() == [0]
