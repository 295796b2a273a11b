"""A fixed sample of the pictures of an index: most of them are irrelevant to any query.

The sample is drawn by the ids (:mod:`rungwise.index.stores._id_sampling`). So it is the same for everybody, and changes
by no more than the share of rows that come and go.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import Background
from rungwise.core.compute import products
from rungwise.index._ranking import HASH
from rungwise.index.stores import Metric, Store, Vectors
from rungwise.similarity import Similarity, unit_rows

SAMPLED = 2048
"""Rows of the sample: enough for the tail of irrelevant scores, few enough to compare in some tenths of a ms."""


class NullSample:
    """Rows of a store that stand for all its ``total`` rows: (sample, D) vectors."""

    def __init__(self, vectors: Vectors, total: int, similarity: Similarity) -> None:
        self.vectors = np.ascontiguousarray(vectors, np.float32)
        self.total = total
        self._similarity = similarity
        self._units = unit_rows(self.vectors)

    @classmethod
    def of(cls, store: Store, size: int = SAMPLED) -> NullSample:
        """The sample of a store of pictures; all rows where there are no more than ``size``."""
        rows = store.labelled(store.drawn(size), HASH)  # which folding has read, where vectors are held in memory
        vectors = np.stack([row.vector for row in rows.values()]) if rows else np.empty((0, store.dimension))
        return cls(np.asarray(vectors, np.float32), max(store.count(), len(rows)), store.similarity)

    def background(self, query: NDArray[np.float32], metric: Metric | None = None) -> Background:
        """Scores of a (1, D) query with the sample; ``metric`` None is the store's similarity."""
        return Background(self.scores(query, metric)[0], self.total)

    def scores(self, queries: NDArray[np.float32], metric: Metric | None = None) -> NDArray[np.float32]:
        """(queries, sample) scores of (queries, D) queries."""
        if metric == "cosine":
            return products(unit_rows(queries), self._units)
        if metric is not None or self._similarity.product:
            return products(queries, self.vectors)
        return np.asarray(self._similarity.array(self.vectors, queries).T)
