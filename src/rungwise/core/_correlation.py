"""Correlations of many lists at once; that of one list does not depend on the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def row_sums(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(rows,) sums from left to right, so that a row's last bit does not depend on the rows beside it.

    Numpy's own sum adds in an order that it chooses by the shape and the layout of the whole array.

    >>> row_sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7.])
    """
    if not values.shape[1]:
        return np.zeros(len(values))
    return np.asarray(np.add.accumulate(values, axis=1)[:, -1])


def spearman(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """(rows,) Spearman's correlation of finite (rows, K) with mean ranks for ties; NaN where x or y is constant."""
    from scipy.stats import rankdata

    centre = (x.shape[1] + 1) / 2
    return _cosines(rankdata(x, axis=1) - centre, rankdata(y, axis=1) - centre)


def pearson(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
    """(rows,) Pearson's correlation of finite (rows, K); NaN where x or y is constant.

    >>> pearson(np.array([[1, 2, 3], [1, 1, 1]]), np.array([[1, 3, 2], [1, 2, 3]]))
    array([0.5, nan])
    """
    return _cosines(_centred(x), _centred(y))


def pearson_and_spearman(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """Both correlations of two finite lists; NaN where one is constant, or they have fewer than two numbers.

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
