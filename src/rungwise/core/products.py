"""Inner products of many rows with few or many queries, at the speed at which memory gives the rows away."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from rungwise.core.threads import in_threads

Vectors = NDArray[np.float32]

_FEW = 4
"""Up to so many queries, reading the rows takes longer than multiplying, and libraries for matrices read too slowly."""


def products(queries: Vectors, rows: Vectors) -> Vectors:
    """(queries, rows) inner products.

    Equal rows have equal products with few queries, wherever they stand; with many, if there are whole multiples of 16
    rows.

    Args:
        queries: (queries, D) float32.
        rows: (rows, D) float32, in memory or memory-mapped.

    >>> products(np.array([[1, 2]], np.float32), np.array([[1, 0], [3, 1]], np.float32))
    array([[1., 5.]], dtype=float32)
    """
    if len(queries) > _FEW:
        return np.asarray(queries @ rows.T, dtype=np.float32)
    from rungwise.core import product_kernels  # numba takes a while to load

    found = np.empty((len(queries), len(rows)), np.float32)
    arrays = _plain(rows), np.ascontiguousarray(queries, np.float32), found
    in_threads(partial(product_kernels.products_of_rows, *arrays), len(rows), rows.size)
    return found


def lengths(rows: Vectors) -> Vectors:
    """(rows,) Euclidean lengths.

    >>> lengths(np.array([[3, 4], [0, 0]], np.float32))
    array([5., 0.], dtype=float32)
    """
    from rungwise.core import product_kernels

    squares = np.empty(len(rows), np.float32)
    in_threads(partial(product_kernels.squares_of_rows, _plain(rows), squares), len(rows), rows.size)
    found: Vectors = np.sqrt(squares)
    return found


def _plain(rows: Vectors) -> Vectors:
    """As the kernels are compiled for; a memory map stays one."""
    return np.ascontiguousarray(rows, np.float32).view(np.ndarray)
