"""Ranks and top lists of rows of scores, exact under ties (lower index first) and without a full sort."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.errors import UserError

_LANES = 128
"""Bytes that are added at a time when Trues are counted: a few vector registers wide."""


def count_true(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(rows,) how many entries of each row are True.

    Numpy widens every byte to eight before it adds, which costs more than the comparison did. Bytes are added as bytes
    instead, at most 255 of them, and only those sums are widened.

    >>> count_true(np.array([[True, False, True], [False, False, True]]))
    array([2, 1])
    """
    rows, columns = mask.shape
    ones = mask.view(np.uint8)
    total = np.zeros(rows, dtype=np.int64)
    for start in range(0, columns, 255 * _LANES):
        part = ones[:, start : start + 255 * _LANES]
        whole = part.shape[1] // _LANES * _LANES
        lanes = part[:, :whole].reshape(rows, whole // _LANES, _LANES)
        total += np.add.reduce(lanes, axis=1, dtype=np.uint8).sum(axis=1, dtype=np.int64)
        total += part[:, whole:].sum(axis=1, dtype=np.int64)
    return total


def count_true_in_columns(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(columns,) how many entries of each column are True.

    >>> count_true_in_columns(np.array([[True, False, True], [False, False, True]]))
    array([1, 0, 2])
    """
    ones = mask.view(np.uint8)
    total = np.zeros(mask.shape[1], dtype=np.int64)
    for start in range(0, len(ones), 255):
        total += np.add.reduce(ones[start : start + 255], axis=0, dtype=np.uint8)
    return total


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
    if not len(scores):
        return np.empty(0, dtype=np.int64)
    own = scores[np.arange(len(scores)), column][:, None]
    # A tie counts left of the own column only. Where captions stand in the order of their images the own columns of a
    # block lie close together, so nearly every score needs one comparison instead of three.
    left, right = int(column.min()), int(column.max()) + 1
    between = scores[:, left:right]
    ties = (between == own) & (np.arange(left, right) < column[:, None])
    before = count_true(scores[:, :left] >= own) + count_true(scores[:, right:] > own)
    return before + count_true((between > own) | ties) + 1


class RunningRanks:
    """Ranks from 1 of one row of each column, counted while blocks of rows go by.

    Args:
        row: (columns,) whose rank is asked, by its position among all rows.
        own: (columns,) its score, bit for bit as it will come in its block.

    >>> scores = np.array([[0.5, 0.1], [0.5, 0.7], [0.9, 0.7]])
    >>> running = RunningRanks(np.array([1, 2]), np.array([0.5, 0.7]))
    >>> for start in range(3):
    ...     running.add(start, scores[start : start + 1])
    >>> running.ranks
    array([3, 2])
    """

    def __init__(self, row: NDArray[np.int64], own: NDArray[Any]) -> None:
        self._row = row
        self._own = own
        self._just_below = np.nextafter(own, np.array(-np.inf, dtype=own.dtype))
        self.ranks = np.ones(len(row), dtype=np.int64)

    def add(self, start: int, block: NDArray[Any]) -> None:
        """Count a block whose first row stands at position ``start``.

        Raises:
            UserError: If an own score comes with other bits than were announced.
        """
        # Rows above the own one win ties: "own or more" is "more than the next smaller number".
        bar = np.where(self._row < start, self._own, self._just_below)
        self.ranks += count_true_in_columns(block > bar)
        inside = np.flatnonzero((self._row >= start) & (self._row < start + len(block)))
        if inside.size:
            row, own = self._row[inside] - start, self._own[inside]
            if not np.array_equal(block[row, inside], own):
                raise UserError(
                    f"similarity, images {start} to {start + len(block) - 1}: a pair got another score when it was"
                    " scored again; score without dropout or random draws, or give a matrix"
                )
            not_before = (block[:, inside] == own) & (np.arange(len(block))[:, None] >= row)
            self.ranks[inside] -= count_true_in_columns(not_before)


def top_columns(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    """(rows, K) columns by falling score, ties to the lower column.

    >>> top_columns(np.array([[0.5, 0.9, 0.5, 0.1]]), 2)
    array([[1, 0]])
    """
    k = min(k, scores.shape[1])
    if not scores.size or not k:
        return np.empty((len(scores), k), dtype=np.int64)
    row, column = np.nonzero(_contenders(scores, k))
    counts = np.bincount(row, minlength=len(scores))
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    falling = np.full((len(scores), int(counts.max())), np.inf, dtype=scores.dtype)
    falling[row, place] = -scores[row, column]
    columns = np.zeros(falling.shape, dtype=np.int64)
    columns[row, place] = column
    return np.take_along_axis(columns, np.argsort(falling, axis=1, kind="stable")[:, :k], axis=1)


def _contenders(scores: NDArray[Any], k: int) -> NDArray[np.bool_]:
    """(rows, columns) True for the first K of each row and few others."""
    bar = _reached_by(scores, k)[:, None]
    reached = scores >= bar
    crowded = np.flatnonzero(count_true(reached) > 2 * k)
    if crowded.size:
        above = scores[crowded] > bar[crowded]
        level = reached[crowded] & ~above
        vacant = k - count_true(above)[:, None]
        reached[crowded] = above | (level & (np.cumsum(level, axis=1) <= vacant))
    return reached


def _reached_by(scores: NDArray[Any], k: int) -> NDArray[Any]:
    """(rows,) a score that at least K entries of the row reach, and seldom many more.

    Each row is cut into groups and the K-th of the groups' maxima is taken: K groups have an entry that reaches it.
    """
    columns = scores.shape[1]
    groups = 4 * k
    if groups < columns // 2:
        whole = columns // groups * groups
        scores = scores[:, :whole].reshape(len(scores), -1, groups).max(axis=1)
        columns = groups
    return np.asarray(np.partition(scores, columns - k, axis=1)[:, columns - k])


def row_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows,) sums from left to right, so that a row's last bit does not depend on the rows beside it.

    Numpy's own sum adds in an order that it chooses by the shape and the layout of the whole array.

    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7.])
    """
    if not values.shape[1]:
        return np.zeros(len(values))
    return np.asarray(np.add.accumulate(values, axis=1)[:, -1])
