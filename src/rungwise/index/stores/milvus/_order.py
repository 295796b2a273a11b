"""Places of rows in their order, by which Milvus cannot sort."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rungwise.index.stores._engine_rows import SEQ
from rungwise.index.stores.milvus._collection import Collection
from rungwise.index.stores.milvus._filters import both

_LAST_PLACE = (1 << 63) - 1
_WASTE = 4
"""Multiple of the rows wanted at one end that may be read: to read fewer needs more counts."""


def in_order(rows: Collection, only: str | bool) -> NDArray[np.int64]:
    """Places of the rows that an expression lets through, in their order."""
    return np.sort(np.array([row[SEQ] for row in rows.every(only, [SEQ])], np.int64))


def first_places(rows: Collection, only: str | bool, count: int) -> NDArray[np.int64]:
    """Places of the first rows, in their order: at least ``count``, or all where there are no more."""
    return _end(rows, only, count, "<")


def last_places(rows: Collection, only: str | bool, count: int) -> NDArray[np.int64]:
    """Places of the last rows, in their order: at least ``count``, or all where there are no more."""
    return _end(rows, only, count, ">=")


def _end(rows: Collection, only: str | bool, count: int, side: str) -> NDArray[np.int64]:
    """Places at one end of the order; where to cut is found by counting."""
    if only is False:
        return np.empty(0, np.int64)
    enough, number = _WASTE * count, rows.counted(only)
    cut: str | bool = True
    outside, inside = (0, _LAST_PLACE) if side == "<" else (_LAST_PLACE, 0)
    while number > enough and abs(inside - outside) > 1:
        middle = (outside + inside) // 2
        found = rows.counted(both(only, f"{SEQ} {side} {middle}"))
        if found < count:
            outside = middle
        else:
            inside, number, cut = middle, found, f"{SEQ} {side} {middle}"
    return in_order(rows, both(only, cut))
