"""Compiled inner loops of :mod:`rungwise.core.compute._products`: every row is read once."""

from __future__ import annotations

import numpy as np

from rungwise.core.compute._kernels import sums_kernel


@sums_kernel
def products_of_rows(rows, queries, found, low, high):  # type: ignore[no-untyped-def]
    """``found[query, row]`` = inner product, for rows low..high - 1."""
    for row in range(low, high):
        line = rows[row]
        for query in range(len(queries)):
            asked = queries[query]
            total = np.float32(0)
            for each in range(len(line)):
                total += line[each] * asked[each]
            found[query, row] = total


@sums_kernel
def squares_of_rows(rows, found, low, high):  # type: ignore[no-untyped-def]
    """``found[row]`` = sum of squares, for rows low..high - 1."""
    for row in range(low, high):
        line = rows[row]
        total = np.float32(0)
        for each in range(len(line)):
            total += line[each] * line[each]
        found[row] = total
