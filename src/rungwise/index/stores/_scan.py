"""Exact search by comparing every row, for stores that have their vectors at hand."""

from __future__ import annotations

from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.core.compute import RankedRows, Scorer, lengths, products, rank
from rungwise.index.stores._base import Metric, Side, Vectors
from rungwise.similarity import Similarity

_FEW = 4
"""If at most one row in so many is kept, the kept ones are gathered, which costs less than comparing the others too."""


class VectorRows(RankedRows, Protocol):
    """(rows, D) vectors that can be read block by block, or gathered."""

    @property
    def inverse_lengths(self) -> Vectors:
        """(rows,) 1 / length of each vector; 0 for a vector of zeros."""
        ...

    def gathered(self, positions: NDArray[np.int64]) -> Vectors:
        """(positions, D) vectors at positions that rise."""
        ...


def compare_all(
    rows: VectorRows,
    queries: Vectors,
    k: int,
    similarity: Similarity,
    side: Side,
    metric: Metric | None = None,
    kept: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.int64], Vectors]:
    """The k rows, of (rows, D), most alike to each of (queries, D), equal ones in order of position.

    Args:
        rows: Vectors of the rows.
        queries: Vectors of the queries.
        k: Number of rows for each query, at least 1.
        similarity: Similarity of queries and rows.
        side: Side of the similarity that the rows are.
        metric: Metric that replaces the similarity; None for the similarity.
        kept: (rows,) whether a row may be found; all if None.

    Returns:
        Positions (queries, found) and scores (queries, found), best first.
    """
    scorer = _scorer(queries, similarity, side, metric)
    weights = rows.inverse_lengths if metric == "cosine" else None
    if kept is None or kept.all():
        return rank(rows, scorer, len(queries), k, weights=weights)
    chosen = np.flatnonzero(kept)
    if _FEW * len(chosen) > len(rows):
        return rank(rows, scorer, len(queries), k, exclude=np.flatnonzero(~kept), weights=weights)
    return compare_some(rows, chosen, queries, k, similarity, side, metric)


def compare_some(
    rows: VectorRows,
    chosen: NDArray[np.int64],
    queries: Vectors,
    k: int,
    similarity: Similarity,
    side: Side,
    metric: Metric | None = None,
) -> tuple[NDArray[np.int64], Vectors]:
    """The k most alike of the rows at positions that rise; as :func:`compare_all` otherwise."""
    weights = rows.inverse_lengths[chosen] if metric == "cosine" else None
    scorer = _scorer(queries, similarity, side, metric)
    positions, scores = rank(_Chosen(rows, chosen), scorer, len(queries), k, weights=weights)
    return chosen[positions], scores


def inverse_lengths(rows: Vectors) -> Vectors:
    """(rows,) 1 / length of each vector; 0 for a vector of zeros, whose cosine is 0 with everything."""
    return inverted(lengths(rows))


def inverted(found: Vectors) -> Vectors:
    """(rows,) 1 / each length; 0 for 0."""
    return np.asarray(np.divide(1, found, out=np.zeros_like(found), where=found > 0), np.float32)


class _Chosen:
    """Some rows, gathered block by block."""

    def __init__(self, rows: VectorRows, positions: NDArray[np.int64]) -> None:
        self._rows, self._positions = rows, positions
        self.shape = (len(positions), rows.shape[1])

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, block: slice) -> Vectors:
        return self._rows.gathered(self._positions[block])


def _scorer(queries: Vectors, similarity: Similarity, side: Side, metric: Metric | None) -> Scorer:
    if metric == "cosine":
        norms = np.linalg.norm(queries, axis=1, keepdims=True)
        queries = np.divide(queries, norms, out=np.zeros_like(queries), where=norms > 0)
    if metric is not None or similarity.product:
        return partial(products, queries)
    if side == "image":
        return lambda rows: similarity.array(rows, queries).T
    return lambda rows: similarity.array(queries, rows)
