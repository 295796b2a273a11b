"""Kendall's rank correlation of many lists at once."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core.compute import SORTING, in_threads, taken, top_columns


def tau_b(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Kendall's tau-b of each row in O(K log K); 0 where x or y is constant.

    Lists that already fall in x, as retrieved ones do, are not sorted again.

    Args:
        x: (rows, K) finite values.
        y: (rows, K) finite values.

    Returns:
        (rows,) correlations in -1..1, the values of ``scipy.stats.kendalltau`` where that is not NaN.

    >>> tau_b(np.array([[1, 2, 3], [1, 1, 1]]), np.array([[1, 3, 2], [1, 2, 3]])).round(4)
    array([0.3333, 0.    ])
    """
    from rungwise.metrics import _kernels as kernels  # numba takes a while to load

    rows, length = x.shape
    if (x[:, 1:] > x[:, :-1]).any():
        order = top_columns(x, length)
        x, y = taken(x, order), taken(y, order)
    else:
        y = np.array(y, order="C")
    tied, tau = np.empty((rows, 2), dtype=np.int64), np.empty(rows)
    in_threads(partial(kernels.untie_in_rows, np.ascontiguousarray(x), y, tied), rows, x.size)
    order = top_columns(-y, length)
    in_threads(partial(kernels.tau_in_rows, y, order, tied, tau), rows, SORTING * x.size)
    return tau
