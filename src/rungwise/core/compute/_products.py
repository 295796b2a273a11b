"""Inner products of many rows with few or many queries, as fast as memory delivers the rows."""

from __future__ import annotations

import threading
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from rungwise.core.compute._threads import in_threads

Vectors = NDArray[np.float32]

_FEW = 4
"""Largest number of queries for which reading the rows takes longer than multiplying; above it, BLAS is used."""
_LIGHT = 4
"""Ratio of the time of other work on an entry to that of a product: below as many more entries, threads do not pay."""
_SHARE = 2048
"""Number of rows of either side that one thread multiplies at a time."""
_limiting = threading.Lock()
"""Held while matrix libraries are limited to one thread, which is a setting of the whole process."""


def products(queries: Vectors, rows: Vectors) -> Vectors:
    """(queries, rows) inner products of (queries, D) with (rows, D) float32, in memory or memory-mapped.

    Equal rows have equal products with few queries, wherever they stand; with many, if there are whole multiples of 16
    rows.

    >>> products(np.array([[1, 2]], np.float32), np.array([[1, 0], [3, 1]], np.float32))
    array([[1., 5.]], dtype=float32)
    """
    if len(queries) > _FEW:
        return np.asarray(queries @ rows.T, dtype=np.float32)
    rows, queries = _plain(rows), np.ascontiguousarray(queries, np.float32)
    found = np.empty((len(queries), len(rows)), np.float32)

    # Not a product of matrices, in which an equal row may get another last bit elsewhere.
    def multiply(low: int, high: int) -> None:
        for query, own in zip(queries, found, strict=True):
            _inner(rows[low:high], query, own[low:high])

    in_threads(multiply, len(rows), rows.size // _LIGHT)
    return found


def steady_products(first: Vectors, second: Vectors) -> Vectors:
    """(first, second) inner products of (first, D) with (second, D), to the same bits for any number of threads.

    Matrix libraries share a product among their threads, and where a share ends they add up in another order.
    Here they get shares of a fixed size on one thread each.

    >>> steady_products(np.array([[1, 2]], np.float32), np.array([[1, 0], [3, 1]], np.float32))
    array([[1., 5.]], dtype=float32)
    """
    found = np.empty((len(first), len(second)), np.float32)
    shares = list(product(range(0, len(first), _SHARE), range(0, len(second), _SHARE)))

    def multiply(low: int, high: int) -> None:
        for row, column in shares[low:high]:
            rows, columns = slice(row, row + _SHARE), slice(column, column + _SHARE)
            np.matmul(first[rows], second[columns].T, out=found[rows, columns])

    with _limiting, _libraries().limit(limits=1, user_api="blas"):
        in_threads(multiply, len(shares), found.size * first.shape[1])
    return found


@cache
def _libraries() -> ThreadpoolController:
    """The matrix libraries that this process has loaded; looking for them takes longer than a small product."""
    return ThreadpoolController()


def lengths(rows: Vectors) -> Vectors:
    """(rows,) Euclidean lengths."""
    rows = _plain(rows)
    squares = np.empty(len(rows), np.float32)

    def add_up(low: int, high: int) -> None:
        _inner(rows[low:high], rows[low:high], squares[low:high])

    in_threads(add_up, len(rows), rows.size // _LIGHT)
    found: Vectors = np.sqrt(squares)
    return found


def _inner(rows: Vectors, other: Vectors, out: Vectors) -> None:
    """Inner products of each row with another vector, or with the row of another array."""
    if hasattr(np, "vecdot"):  # which numpy 1 lacks
        np.vecdot(rows, other, out=out)
    else:
        np.einsum("nd,nd->n", rows, np.broadcast_to(other, rows.shape), out=out)


def _plain(rows: Vectors) -> Vectors:
    """A plain contiguous float32 array; a memory map is not read."""
    return np.ascontiguousarray(rows, np.float32).view(np.ndarray)
