"""Ranks and top lists of rows of scores, exact under ties (lower index first) and without a full sort."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core.errors import UserError

_CELLS = 1 << 17
"""Scores that are looked through at a time on a thread: they fit into its cache."""


def count_ranks(scores: NDArray[Any], column: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rank from 1 of one candidate of each row, by counting those before it.

    Args:
        scores: (rows, columns), finite.
        column: (rows,) the candidate whose rank is asked.

    Returns:
        (rows,) 1 + greater scores + equal scores at a lower index.

    >>> count_ranks(np.array([[0.5, 0.9, 0.5], [0.5, 0.9, 0.5]]), np.array([0, 2]))
    array([2, 3])
    """
    from rungwise.metrics import kernels  # numba takes a while to load

    scores = np.ascontiguousarray(scores)
    ranks = np.empty(len(scores), dtype=np.int64)
    kernels.in_threads(partial(kernels.rank_in_rows, scores, column, ranks), len(scores), scores.size)
    return ranks


class RunningRanks:
    """Ranks from 1 of one row of each column, counted while blocks of rows go by.

    Args:
        row: (columns,) whose rank is asked, by its position among all rows.
        own: (columns,) its score, bit for bit as it will come in its block.
        rows: How many rows there are.

    >>> scores = np.array([[0.5, 0.1], [0.5, 0.7], [0.9, 0.7]])
    >>> running = RunningRanks(np.array([1, 2]), np.array([0.5, 0.7]), rows=3)
    >>> for start in range(3):
    ...     running.add(start, scores[start : start + 1])
    >>> running.ranks
    array([3, 2])
    """

    def __init__(self, row: NDArray[np.int64], own: NDArray[Any], rows: int) -> None:
        self._own = own
        # Rows above the own one win ties: "own or more" is "more than the next smaller number".
        self._bar = np.nextafter(own, np.array(-np.inf, dtype=own.dtype))
        self._columns = np.argsort(row, kind="stable")
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))])
        self.ranks = np.ones(len(row), dtype=np.int64)

    def add(self, start: int, block: NDArray[Any]) -> None:
        """Count a block whose first row stands at position ``start``; blocks come in order.

        Raises:
            UserError: If an own score comes with other bits than were announced.
        """
        from rungwise.metrics import kernels

        starts = self._starts[start : start + len(block) + 1]
        block = np.ascontiguousarray(block)
        changed: list[int] = []

        def count(low: int, high: int) -> None:
            arrays = (self._bar, self.ranks, self._own, self._columns, starts)
            changed.append(kernels.count_in_columns(block, *arrays, low, high))

        kernels.in_threads(count, block.shape[1], block.size)
        if max(changed, default=-1) >= 0:
            raise UserError(
                f"similarity, images {start} to {start + len(block) - 1}: a pair got another score when it was"
                " scored again; score without dropout or random draws, or give a matrix"
            )


class RunningLists:
    """The first k rows of each column by falling score, kept while blocks of rows go by; ties to the lower row.

    Args:
        columns: How many.
        k: Length of the lists.

    Attributes:
        rows: (columns, k) int64 positions, best first.
        scores: (columns, k) their scores.
        beside: (columns, k) the entries that a second matrix has in these places.

    >>> lists = RunningLists(columns=2, k=1)
    >>> for start, row in enumerate(np.array([[0.5, 0.1], [0.5, 0.7]])):
    ...     lists.add(start, row[None], 10 * row[None])
    >>> lists.rows.ravel(), lists.beside.ravel()
    (array([0, 1]), array([5., 7.]))
    """

    def __init__(self, columns: int, k: int) -> None:
        self.rows = np.zeros((columns, k), dtype=np.int64)
        self.scores: NDArray[Any] = np.empty((columns, 0))
        self.beside: NDArray[Any] = np.empty((columns, 0))

    def add(self, start: int, block: NDArray[Any], other: NDArray[Any]) -> None:
        """Take a block whose first row stands at position ``start``, and the same part of a second matrix."""
        from rungwise.metrics import kernels

        if not start:
            self.scores = np.full(self.rows.shape, -np.inf, dtype=block.dtype)
            self.beside = np.zeros(self.rows.shape, dtype=other.dtype)
        block, other = np.ascontiguousarray(block), np.ascontiguousarray(other)
        arrays = (block, other, start, self.scores, self.rows, self.beside)
        kernels.in_threads(partial(kernels.offer_to_columns, *arrays), block.shape[1], block.size)


def top_columns(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    """(rows, K) columns by falling score, ties to the lower column.

    >>> top_columns(np.array([[0.5, 0.9, 0.5, 0.1]]), 2)
    array([[1, 0]])
    """
    from rungwise.metrics import kernels

    rows, columns = scores.shape
    scores = np.ascontiguousarray(scores, dtype=np.float32 if scores.dtype == np.float32 else np.float64)
    top = np.empty((rows, min(k, columns)), dtype=np.int64)
    step = max(1, _CELLS // max(1, columns))

    def find(low: int, high: int) -> None:
        for start in range(low, high, step):
            stop = min(start + step, high)
            _find_top(scores[start:stop], top[start:stop])

    all_are_sorted = 2 * top.shape[1] > columns
    kernels.in_threads(find, rows, kernels.SORTING * scores.size if all_are_sorted else scores.size)
    return top


def taken(values: NDArray[Any], columns: NDArray[np.int64]) -> NDArray[Any]:
    """(rows, K) the entries that stand in each row's columns: ``np.take_along_axis``, on threads.

    >>> taken(np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[1], [0]]))
    array([[0.2],
           [0.3]])
    """
    from rungwise.metrics import kernels

    found = np.empty(columns.shape, dtype=values.dtype)
    arrays = np.ascontiguousarray(values), np.ascontiguousarray(columns), found
    kernels.in_threads(partial(kernels.take_in_rows, *arrays), len(found), found.size)
    return found


def _find_top(scores: NDArray[Any], top: NDArray[np.int64]) -> None:
    """Sort what reaches a bar that at least K entries reach, and seldom many more."""
    from rungwise.metrics import kernels

    rows, columns = scores.shape
    k = top.shape[1]
    if 2 * k > columns:
        top[:] = _order(scores)[:, :k]
        return
    if 8 * k <= columns:  # K groups have an entry that reaches the K-th of the groups' maxima
        groups = np.empty((rows, 4 * k), dtype=scores.dtype)
        kernels.maxima_in_rows(scores, groups, 0, rows)
    else:
        groups = scores.copy()
    groups.partition(groups.shape[1] - k, axis=1)
    bar = np.ascontiguousarray(groups[:, groups.shape[1] - k])
    counts = np.empty(rows, dtype=np.int64)
    kernels.count_reaching(scores, bar, counts, 0, rows)
    values = np.empty((rows, int(counts.max()) + 1), dtype=scores.dtype)
    places = np.empty(values.shape, dtype=np.int64)
    kernels.gather_reaching(scores, bar, values, places, 0, rows)
    kernels.take_in_rows(places, np.ascontiguousarray(_order(values)[:, :k]), top, 0, rows)


def _order(scores: NDArray[Any]) -> NDArray[np.int64]:
    """(rows, columns) all columns by falling score, ties to the lower column."""
    from rungwise.metrics import kernels

    if scores.dtype != np.float32:
        order = np.argsort(-scores, axis=1)
        kernels.lower_index_first(scores, order, 0, len(scores))
        return order
    # One integer holds a float32 and its column, so that plain sorting, which is fastest, breaks ties as it should.
    packed = np.empty(scores.shape, dtype=np.uint64)
    kernels.pack_falling(scores.view(np.uint32), packed, 0, len(scores))
    packed.sort(axis=1)
    packed &= np.uint64(0xFFFFFFFF)
    return packed.view(np.int64)


def row_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows,) sums from left to right, so that a row's last bit does not depend on the rows beside it.

    Numpy's own sum adds in an order that it chooses by the shape and the layout of the whole array.

    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7.])
    """
    if not values.shape[1]:
        return np.zeros(len(values))
    return np.asarray(np.add.accumulate(values, axis=1)[:, -1])
