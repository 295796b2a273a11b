"""The best k of many candidates, exactly: ties go to the lower position, and no block or thread changes the answer.

:func:`top_columns` takes rows of scores that are in memory, :func:`rank` candidates that are scored block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.core.compute._threads import SORTING, in_threads

_FEW = 8
"""Number of rows up to which numpy alone is as quick as compiled loops, which a first search would wait for."""
_LANES = 1 << 10
"""Number of groups of a row's scores, at least, whose maxima tell where the best ones begin."""
_CELLS = 1 << 17
"""Number of scores that a thread searches at a time: they fit into its cache."""

ROW_MULTIPLE = 16
"""Number of rows of which a product's block is a whole multiple; a block that is none is filled up with zeros.

Matrix products take other code paths for the last few rows of a block, and there equal rows can get scores that differ
in the last bit. With whole multiples, equal candidates have equal scores and stand in order of position.
"""
_BLOCK_ELEMENTS = 1 << 23

Scorer = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Maps a block of candidates (rows, D) to scores (queries, rows)."""


class RankedRows(Protocol):
    """Candidates of :func:`rank`: an array (candidates, D), or several arrays that are read as one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(candidates, D)."""
        ...

    def __len__(self) -> int:
        """Number of candidates."""
        ...

    def __getitem__(self, block: slice, /) -> NDArray[np.float32]:
        """(rows, D) consecutive candidates."""
        ...


def top_columns(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    """(rows, K) columns by falling score, ties to the lower column; K is k, or all columns where there are fewer.

    Args:
        scores: (rows, columns), none of them NaN; infinities are in order. Other types than float32 are read as
            float64.
        k: Number of columns for each row, 0 or more.

    >>> top_columns(np.array([[0.5, 0.9, 0.5, 0.1]]), 2)
    array([[1, 0]])
    """
    rows, columns = scores.shape
    scores = np.ascontiguousarray(scores, dtype=np.float32 if scores.dtype == np.float32 else np.float64)
    top = np.empty((rows, min(k, columns)), dtype=np.int64)
    if not top.size:
        return top
    if rows <= _FEW:
        for line, best in zip(scores, top, strict=True):
            best[:] = _best_of(line, len(best))
        return top
    step = max(1, _CELLS // columns)

    def find(low: int, high: int) -> None:
        for start in range(low, high, step):
            stop = min(start + step, high)
            _find_top(scores[start:stop], top[start:stop])

    all_are_sorted = 2 * top.shape[1] > columns
    in_threads(find, rows, SORTING * scores.size if all_are_sorted else scores.size)
    return top


def taken(values: NDArray[Any], columns: NDArray[np.int64]) -> NDArray[Any]:
    """(rows, K) the entries in each row's columns: ``np.take_along_axis``, on threads."""
    if len(values) <= _FEW:
        return np.take_along_axis(values, columns, axis=1)
    from rungwise.core.compute import _topk_kernels as topk_kernels  # numba takes a while to load

    found = np.empty(columns.shape, dtype=values.dtype)
    arrays = np.ascontiguousarray(values), np.ascontiguousarray(columns), found
    in_threads(partial(topk_kernels.take_in_rows, *arrays), len(found), found.size)
    return found


class Best:
    """The k best candidates of every query, while candidates come in order of position, some at a time.

    Args:
        queries: Number of queries.
        k: Number of candidates to keep for each query.
        candidates: Number of candidates in all.

    Attributes:
        positions: (queries, K) int64, best first, ties by the lower position; K is k, or all candidates.
        scores: (queries, K) float32.

    >>> best = Best(queries=1, k=2, candidates=4)
    >>> for first in (0, 2):
    ...     best.offer(np.array([0]), first, np.array([[0.5, 0.25]], np.float32))
    >>> best.positions, best.scores
    (array([[0, 2]]), array([[0.5, 0.5]], dtype=float32))
    """

    def __init__(self, queries: int, k: int, candidates: int) -> None:
        shape = queries, min(k, candidates)
        self.positions, self.scores = np.empty(shape, np.int64), np.empty(shape, np.float32)

    def offer(self, queries: NDArray[np.int64], first: int, scores: NDArray[np.float32]) -> None:
        """Offer the next candidates to some queries; other threads may offer candidates to other queries meanwhile.

        Args:
            queries: (rows,) positions of the queries.
            first: Position of the first candidate, which is the number of candidates offered to these queries before.
            scores: (rows, candidates), none of them NaN.
        """
        k = self.positions.shape[1]
        columns = top_columns(scores, k)
        found, at = taken(scores, columns), first + columns
        if kept := min(k, first):  # what was kept stands first, so that equal scores stay in order of position
            found = np.concatenate([self.scores[queries, :kept], found], axis=1)
            at = np.concatenate([self.positions[queries, :kept], at], axis=1)
            columns = top_columns(found, k)
            found, at = taken(found, columns), taken(at, columns)
        self.positions[queries, : at.shape[1]] = at
        self.scores[queries, : at.shape[1]] = found


def rank(
    candidates: RankedRows,
    scorer: Scorer,
    queries: int,
    k: int,
    *,
    exclude: Sequence[int] | NDArray[np.int64] = (),
    weights: NDArray[np.float32] | None = None,
    block: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The k best candidates of each query by falling score, in one pass over blocks of candidates.

    Args:
        candidates: (candidates, D), in memory or memory-mapped.
        scorer: Scores of one block, (queries, rows). It may get rows of zeros, whose scores are dropped.
        queries: Number of rows of scores that the scorer gives.
        k: Number of candidates to keep; at most all are given.
        exclude: Positions that no query may get.
        weights: (candidates,) factors of their scores, such as 1 / length for a cosine.
        block: Candidates per block, rounded up to a multiple of 16; None chooses by memory.

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
    kept = np.ones(len(candidates), dtype=bool)
    kept[np.asarray(exclude, dtype=np.int64)] = False
    k = min(k, int(kept.sum()))
    positions, scores = np.empty((queries, k), np.int64), np.empty((queries, k), np.float32)
    if not positions.size:
        return positions, scores
    rows = block or max(1, _BLOCK_ELEMENTS // max(candidates.shape[1], queries))
    rows = -(-rows // ROW_MULTIPLE) * ROW_MULTIPLE
    # The rest is a block of its own, since padding copies.
    whole = len(candidates) - len(candidates) % ROW_MULTIPLE
    for start, stop in pairwise([*range(0, whole, rows), whole, len(candidates)]):
        if start == stop:
            continue
        chunk = candidates[start:stop]
        found = np.asarray(scorer(_padded(chunk)), np.float32)[:, : len(chunk)]
        if weights is not None:
            found = found * weights[start : start + len(chunk)]
        if np.isnan(found).any():
            raise ValueError("a similarity is not a number; the model's vectors or the query's hold NaN")
        here = np.flatnonzero(kept[start : start + len(chunk)])
        found = found if len(here) == len(chunk) else found[:, here]
        best = top_columns(found, k)
        found, at = taken(found, best), start + here[best]
        if start:  # what was kept stands before what comes now, so that equal scores stay in order of position
            found, at = np.concatenate([scores, found], axis=1), np.concatenate([positions, at], axis=1)
            best = top_columns(found, k)
            found, at = taken(found, best), taken(at, best)
        positions, scores = at, found
    return positions, scores + np.float32(0)  # which turns -0.0 into 0.0


def _padded(chunk: NDArray[np.float32]) -> NDArray[np.float32]:
    missing = -len(chunk) % ROW_MULTIPLE
    return np.pad(chunk, ((0, missing), (0, 0))) if missing else np.asarray(chunk)


def _best_of(scores: NDArray[Any], k: int) -> NDArray[np.int64]:
    """(k,) places of the best of (n,) scores, as :func:`_find_top` finds them in many rows."""
    lanes = max(4 * k, _LANES)
    if 2 * k > len(scores):
        places = np.arange(len(scores))
    else:
        whole = len(scores) // lanes * lanes
        groups = scores[:whole].reshape(-1, lanes).max(axis=0) if whole else scores
        bar = np.partition(groups, len(groups) - k)[len(groups) - k]
        places = np.flatnonzero(scores >= bar)
    best: NDArray[np.int64] = places[np.argsort(-scores[places], kind="stable")[:k]]
    return best


def _find_top(scores: NDArray[Any], top: NDArray[np.int64]) -> None:
    """Sort the entries that reach a bar; at least K entries reach it, and seldom many more."""
    from rungwise.core.compute import _topk_kernels as topk_kernels

    rows, columns = scores.shape
    k = top.shape[1]
    if 2 * k > columns:
        top[:] = _order(scores)[:, :k]
        return
    if 8 * k <= columns:  # K groups have an entry that reaches the K-th of the groups' maxima
        groups = np.empty((rows, 4 * k), dtype=scores.dtype)
        topk_kernels.maxima_in_rows(scores, groups, 0, rows)
    else:
        groups = scores.copy()
    groups.partition(groups.shape[1] - k, axis=1)
    bar = np.ascontiguousarray(groups[:, groups.shape[1] - k])
    counts = np.empty(rows, dtype=np.int64)
    topk_kernels.count_reaching(scores, bar, counts, 0, rows)
    values = np.empty((rows, int(counts.max()) + 1), dtype=scores.dtype)
    places = np.empty(values.shape, dtype=np.int64)
    topk_kernels.gather_reaching(scores, bar, values, places, 0, rows)
    topk_kernels.take_in_rows(places, np.ascontiguousarray(_order(values)[:, :k]), top, 0, rows)


def _order(scores: NDArray[Any]) -> NDArray[np.int64]:
    """(rows, columns) all columns by falling score, ties to the lower column."""
    from rungwise.core.compute import _topk_kernels as topk_kernels

    if scores.dtype != np.float32:
        order = np.argsort(-scores, axis=1)
        topk_kernels.lower_index_first(scores, order, 0, len(scores))
        return order
    # One integer holds a float32 and its column, so that plain sorting, which is fastest, breaks ties as it should.
    packed = np.empty(scores.shape, dtype=np.uint64)
    topk_kernels.pack_falling(scores.view(np.uint32), packed, 0, len(scores))
    packed.sort(axis=1)
    packed &= np.uint64(0xFFFFFFFF)
    return packed.view(np.int64)
