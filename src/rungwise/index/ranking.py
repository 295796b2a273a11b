"""The best k of many candidates, exactly, in one pass over blocks of them.

Score and position are packed into one integer whose order is the order of the ranking. Keys are unique, so the
result cannot depend on the block size or on what a partial sort does with equal scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

_LOW_WORD = np.int64(0xFFFFFFFF)
_SIGN = np.int64(0x7FFFFFFF)
_NEVER = np.iinfo(np.int64).min
# Matrix products take other code paths for the last few rows of a block, and there equal rows can get scores that
# differ in the last bit. With whole multiples, equal pictures have equal scores and stand in order of position.
_ROW_MULTIPLE = 16
_BLOCK_ELEMENTS = 1 << 23

Scorer = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""From a block of candidates (rows, D) to scores (queries, rows)."""


def rank(
    candidates: NDArray[np.float32],
    scorer: Scorer,
    queries: int,
    k: int,
    *,
    exclude: Sequence[int] = (),
    block: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k best candidates of each query by falling score, ties by the lower position.

    Args:
        candidates: (candidates, D), in memory or memory-mapped; fewer than 2^32.
        scorer: Scores of one block, (queries, rows). It may be given rows of zeros, whose scores are dropped.
        queries: How many rows of scores the scorer gives.
        k: How many to keep; more than there are means all.
        exclude: Positions that no query may get.
        block: Candidates per block, rounded up to a multiple of 16; chosen by memory unless given.

    Returns:
        Positions (queries, k) int64 and scores (queries, k) float32, best first.

    Raises:
        ValueError: If k is less than 1 or a score is not a number.

    >>> vectors = np.array([[1, 0], [0, 1], [1, 0], [2, 0]], np.float32)
    >>> rank(vectors, lambda rows: np.array([[1, 0]], np.float32) @ rows.T, queries=1, k=3)
    (array([[3, 0, 2]]), array([[2., 1., 1.]], dtype=float32))
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    left_out = np.unique(np.asarray(exclude, dtype=np.int64))
    k = min(k, len(candidates) - len(left_out))
    if k == 0 or queries == 0:
        return np.empty((queries, k), np.int64), np.empty((queries, k), np.float32)
    rows = block or max(1, _BLOCK_ELEMENTS // max(candidates.shape[1], queries))
    rows = -(-rows // _ROW_MULTIPLE) * _ROW_MULTIPLE
    best = np.empty((queries, 0), np.int64)
    for start in range(0, len(candidates), rows):
        chunk = candidates[start : start + rows]
        keys = _keys(scorer(_padded(chunk))[:, : len(chunk)], start)
        inside = left_out[(left_out >= start) & (left_out < start + len(chunk))]
        keys[:, inside - start] = _NEVER
        best = _largest(np.concatenate([best, keys], axis=1), k)
    best = -np.sort(-best, axis=1)
    return _LOW_WORD - (best & _LOW_WORD), _scores(best)


def _padded(chunk: NDArray[np.float32]) -> NDArray[np.float32]:
    missing = -len(chunk) % _ROW_MULTIPLE
    return np.pad(chunk, ((0, missing), (0, 0))) if missing else np.asarray(chunk)


def _keys(scores: NDArray[np.float32], start: int) -> NDArray[np.int64]:
    """(queries, rows) integers that order as (score, lower position first)."""
    if np.isnan(scores).any():
        raise ValueError("a similarity is not a number; the model's vectors or the query's hold NaN")
    # Adding 0 turns -0.0 into 0.0, which compares equal but has other bits.
    bits = (scores.astype(np.float32) + np.float32(0)).view(np.int32).astype(np.int64)
    # The bits of a negative float grow with its size: flip all but the sign, and integers order as floats do.
    ordered = np.where(bits < 0, bits ^ _SIGN, bits)
    positions = np.arange(start, start + scores.shape[1], dtype=np.int64)
    return (ordered << 32) | (_LOW_WORD - positions)


def _scores(keys: NDArray[np.int64]) -> NDArray[np.float32]:
    ordered = keys >> 32
    bits = np.where(ordered < 0, ordered ^ _SIGN, ordered)
    return bits.astype(np.int32).view(np.float32)


def _largest(keys: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    return keys if keys.shape[1] <= k else np.partition(keys, -k, axis=1)[:, -k:]
