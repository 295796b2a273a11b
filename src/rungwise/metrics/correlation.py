"""Rank correlations of many lists at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.metrics.ranking import row_sums

_BASE = 32
"""Inversions inside runs of this length are counted by comparing all pairs; longer runs are merged."""

_CELLS = 1 << 20
"""Lists are taken so many entries at a time, for the caches' sake."""


def tau_b(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Kendall's tau-b of each row, O(K log K) (Knight 1966); 0 where x or y is constant.

    Args:
        x: (rows, K) finite.
        y: (rows, K) finite.

    Returns:
        (rows,) -1..1, the values of ``scipy.stats.kendalltau`` where that is not NaN.

    >>> tau_b(np.array([[1, 2, 3], [1, 1, 1]]), np.array([[1, 3, 2], [1, 2, 3]])).round(4)
    array([0.3333, 0.    ])
    """
    length = x.shape[1]
    step = max(1, _CELLS // max(1, length))
    parts = [_tau_b(x[start : start + step], y[start : start + step]) for start in range(0, len(x), step)]
    return np.concatenate(parts) if parts else np.empty(0)


def _tau_b(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    length = x.shape[1]
    pairs = length * (length - 1) // 2
    # One integer per entry holds both ranks, so that sorting it sorts by x and, within ties of x, by y.
    small = np.int32 if length * length < 2**31 else np.int64
    both = np.sort((dense_ranks(x) * length + dense_ranks(y)).astype(small), axis=1)
    by_x, y_in_order = np.divmod(both, max(1, length))
    ties_x, ties_both = _tied_pairs(by_x), _tied_pairs(both)
    ties_y = _tied_pairs(np.sort(y_in_order, axis=1))
    surplus = pairs - ties_x - ties_y + ties_both - 2 * inversions(y_in_order)
    scale = np.sqrt(pairs - ties_x), np.sqrt(pairs - ties_y)
    some = (scale[0] > 0) & (scale[1] > 0)
    tau = np.divide(surplus, scale[0], out=np.zeros(len(x)), where=some)
    return np.asarray(np.clip(np.divide(tau, scale[1], out=tau, where=some), -1.0, 1.0))


def dense_ranks(values: NDArray[Any]) -> NDArray[np.int64]:
    """Ranks from 0 of each row's entries, equal for equal values and without gaps.

    >>> dense_ranks(np.array([[0.5, 0.1, 0.5, 0.9]]))
    array([[1, 0, 1, 2]])
    """
    order = np.argsort(values, axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    steps = np.zeros(values.shape, dtype=np.int64)
    np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=1, out=steps[:, 1:])
    ranks = np.empty_like(steps)
    ranks[np.arange(len(values))[:, None], order] = steps
    return ranks


def inversions(ranks: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Pairs of each row that stand in falling order: i < j and rank i > rank j.

    Runs of 32 are counted pair by pair, then merged two by two. A merge sorts keys of (rank, left before right); how
    far the right half's entries moved tells how many left entries are greater.

    Args:
        ranks: (rows, K) integers in 0..K - 1.

    >>> inversions(np.array([[2, 0, 1], [0, 0, 1]]))
    array([2, 0])
    """
    rows, length = ranks.shape
    width = _BASE
    padded = -(-length // width) * width
    while padded > width:  # to a power of two runs; padding is greatest and last, so it is in no inversion
        width *= 2
    runs = np.full((rows, width), length, dtype=np.int32)
    runs[:, :length] = ranks
    short: NDArray[Any] = runs.reshape(-1, _BASE).astype(np.uint8 if length < 256 else np.int32)
    count = np.zeros(len(short), dtype=np.int64)
    for lag in range(1, _BASE):
        count += (short[:, :-lag] > short[:, lag:]).sum(axis=1)
    total: NDArray[np.int64] = count.reshape(rows, -1).sum(axis=1)
    half = _BASE
    runs = np.sort(runs.reshape(rows, -1, _BASE), axis=2)
    while half < width:
        keys = 2 * runs.reshape(rows, -1, 2 * half)
        keys[:, :, half:] += 1
        keys = np.sort(keys, axis=2)
        moved_to = ((keys & 1) @ np.arange(2 * half, dtype=np.float64)).astype(np.int64)
        # Unmoved, the right half fills places half..2 half - 1; each greater left entry pulls one of them down by one.
        total += (half * half + half * (half - 1) // 2 - moved_to).sum(axis=1)
        runs = keys >> 1
        half *= 2
    return total


def _tied_pairs(ordered: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """(rows,) pairs of equal entries in sorted rows."""
    rows, length = ordered.shape
    places = np.arange(length)
    first = np.ones((rows, length), dtype=np.bool_)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    start = np.maximum.accumulate(np.where(first, places, 0), axis=1)
    return np.asarray((places - start).sum(axis=1))


def spearman(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Spearman's correlation of each row with mean ranks for ties; 0 where x or y is constant.

    Args:
        x: (rows, K) finite.
        y: (rows, K) finite.

    >>> spearman(np.array([[1, 2, 3]]), np.array([[1, 3, 2]]))
    array([0.5])
    """
    from scipy.stats import rankdata

    centre = (x.shape[1] + 1) / 2
    a, b = rankdata(x, axis=1) - centre, rankdata(y, axis=1) - centre
    scale = np.sqrt(row_sums(a * a) * row_sums(b * b))
    correlation = np.divide(row_sums(a * b), scale, out=np.zeros(len(x)), where=scale > 0)
    return np.asarray(np.clip(correlation, -1.0, 1.0))
