"""Correlations of many lists at once."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.threads import SORTING, in_threads
from rungwise.core.topk import taken, top_columns
from rungwise.metrics.counting import row_sums


def tau_b(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Kendall's tau-b of each row, O(K log K); 0 where x or y is constant.

    Lists whose x falls already, as retrieved ones do, are not sorted by it again.

    Args:
        x: (rows, K) finite.
        y: (rows, K) finite.

    Returns:
        (rows,) -1..1, the values of ``scipy.stats.kendalltau`` where that is not NaN.

    >>> tau_b(np.array([[1, 2, 3], [1, 1, 1]]), np.array([[1, 3, 2], [1, 2, 3]])).round(4)
    array([0.3333, 0.    ])
    """
    from rungwise.metrics import kernels  # numba takes a while to load

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


def spearman(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Spearman's correlation of each row with mean ranks for ties; NaN where x or y is constant.

    Args:
        x: (rows, K) finite.
        y: (rows, K) finite.

    >>> spearman(np.array([[1, 2, 3]]), np.array([[1, 3, 2]]))
    array([0.5])
    """
    from scipy.stats import rankdata

    centre = (x.shape[1] + 1) / 2
    return _cosines(rankdata(x, axis=1) - centre, rankdata(y, axis=1) - centre)


def pearson(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """Pearson's correlation of each row; NaN where x or y is constant.

    Args:
        x: (rows, K) finite.
        y: (rows, K) finite.

    >>> pearson(np.array([[1, 2, 3], [1, 1, 1]]), np.array([[1, 3, 2], [1, 2, 3]]))
    array([0.5, nan])
    """
    return _cosines(_centred(x), _centred(y))


def pearson_and_spearman(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """Both correlations of two lists; NaN where one is constant, or they have fewer than two numbers.

    Args:
        x: (n,) finite.
        y: (n,) finite.

    >>> [round(one, 4) for one in pearson_and_spearman([0.1, 0.2, 0.9], [1, 2, 5])]
    [0.9919, 1.0]
    """
    rows = np.asarray(x, np.float64)[None], np.asarray(y, np.float64)[None]
    return float(pearson(*rows)[0]), float(spearman(*rows)[0])


def _centred(x: NDArray[Any]) -> NDArray[np.float64]:
    most = np.abs(x).max(axis=1, keepdims=True, initial=0)
    scaled = x / np.where(most > 0, most, 1)  # squares of large or small numbers have no place
    return np.asarray(scaled - (row_sums(scaled) / max(1, x.shape[1]))[:, None])


def _cosines(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    scale = np.sqrt(row_sums(a * a) * row_sums(b * b))
    correlation = np.divide(row_sums(a * b), scale, out=np.full(len(a), np.nan), where=scale > 0)
    return np.asarray(np.clip(correlation, -1.0, 1.0))
