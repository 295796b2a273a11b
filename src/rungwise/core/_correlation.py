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
    centre = (x.shape[1] + 1) / 2
    return _cosines(_mean_ranks(x) - centre, _mean_ranks(y) - centre)


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


def _mean_ranks(x: NDArray[Any]) -> NDArray[np.float64]:
    """(rows, K) ranks from 1 within each row; equal values have the mean of their ranks."""
    order = np.argsort(x, axis=1)
    rising = np.take_along_axis(x, order, axis=1)
    changes = rising[:, 1:] != rising[:, :-1]
    edge = np.ones((len(x), min(1, x.shape[1])), dtype=bool)
    place = np.arange(x.shape[1])
    first = np.maximum.accumulate(np.where(np.hstack([edge, changes]), place, 0), axis=1)
    last = np.minimum.accumulate(np.where(np.hstack([changes, edge]), place, x.shape[1])[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(x.shape)
    np.put_along_axis(ranks, order, (first + last) / 2 + 1, axis=1)
    return ranks


def _centred(x: NDArray[Any]) -> NDArray[np.float64]:
    most = np.abs(x).max(axis=1, keepdims=True, initial=0)
    scaled = x / np.where(most > 0, most, 1)  # squares of large or small numbers have no place
    return np.asarray(scaled - (row_sums(scaled) / max(1, x.shape[1]))[:, None])


def _cosines(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    scale = np.sqrt(row_sums(a * a) * row_sums(b * b))
    correlation = np.divide(row_sums(a * b), scale, out=np.full(len(a), np.nan), where=scale > 0)
    return np.asarray(np.clip(correlation, -1.0, 1.0))
