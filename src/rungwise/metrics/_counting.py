"""Exact ranks and running lists of best candidates, without a full sort; ties go to the lower index."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.compute import in_threads


def count_ranks(scores: NDArray[Any], column: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rank from 1 of one candidate in each row, found by counting the candidates before it.

    Args:
        scores: (rows, columns) finite scores.
        column: (rows,) index of the candidate whose rank is wanted.

    Returns:
        (rows,) ranks: 1 + number of greater scores + number of equal scores at a lower index.

    >>> count_ranks(np.array([[0.5, 0.9, 0.5], [0.5, 0.9, 0.5]]), np.array([0, 2]))
    array([2, 3])
    """
    from rungwise.metrics import _kernels as kernels  # numba takes a while to load

    scores = np.ascontiguousarray(scores)
    ranks = np.empty(len(scores), dtype=np.int64)
    in_threads(partial(kernels.rank_in_rows, scores, column, ranks), len(scores), scores.size)
    return ranks


class RunningRanks:
    """Ranks from 1 of one row in each column, counted while blocks of rows are passed in.

    Args:
        row: (columns,) position, among all rows, of the row whose rank is wanted.
        own: (columns,) score of that row, bit for bit as it will appear in its block.
        rows: Number of rows.

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
        """Count a block whose first row stands at position ``start``; blocks must come in order.

        Raises:
            UserError: If a score of ``own`` appears with other bits in the block.
        """
        from rungwise.metrics import _kernels as kernels

        starts = self._starts[start : start + len(block) + 1]
        block = np.ascontiguousarray(block)
        changed: list[int] = []

        def count(low: int, high: int) -> None:
            arrays = (self._bar, self.ranks, self._own, self._columns, starts)
            changed.append(kernels.count_in_columns(block, *arrays, low, high))

        in_threads(count, block.shape[1], block.size)
        if max(changed, default=-1) >= 0:
            raise UserError(
                f"similarity, images {start} to {start + len(block) - 1}: a pair got another score when it was"
                " scored again; score without dropout or random draws, or give a matrix"
            )


class RunningLists:
    """The first k rows of each column by falling score, kept while blocks of rows are passed in; ties to the lower row.

    Args:
        columns: Number of columns.
        k: Length of the lists.

    Attributes:
        rows: (columns, k) int64 positions of rows, best first.
        scores: (columns, k) scores of these rows.
        beside: (columns, k) entries of a second matrix at the same places.

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
        """Add a block whose first row stands at position ``start``, with the same part of a second matrix."""
        from rungwise.metrics import _kernels as kernels

        if not start:
            self.scores = np.full(self.rows.shape, -np.inf, dtype=block.dtype)
            self.beside = np.zeros(self.rows.shape, dtype=other.dtype)
        block, other = np.ascontiguousarray(block), np.ascontiguousarray(other)
        arrays = (block, other, start, self.scores, self.rows, self.beside)
        in_threads(partial(kernels.offer_to_columns, *arrays), block.shape[1], block.size)
