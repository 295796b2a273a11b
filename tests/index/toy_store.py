"""A store in a dictionary: the contract in as few lines as it takes, and the model that others are compared with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rungwise.index.filters import Where
from rungwise.index.stores import Metric, Record, Row, Store, StoreBatch, StoreFacts, StoreHits, checked_queries
from rungwise.index.stores._base import Side, checked_rows
from rungwise.similarity import Similarity


class ToyStore(Store):
    def __init__(self, dimension: int, similarity: Similarity, side: Side = "image") -> None:
        self.dimension, self.similarity, self.side = dimension, similarity, side
        self.rows: dict[str, Row] = {}

    def upsert(self, ids: Sequence[str], vectors: ArrayLike, records: Sequence[Record] | None = None) -> None:
        for one, vector, record in zip(*checked_rows(StoreBatch(ids, vectors, records), self.dimension), strict=True):
            self.rows.pop(one, None)
            self.rows[one] = Row(vector, record)

    def delete(self, ids: Sequence[str]) -> int:
        return sum(self.rows.pop(one, None) is not None for one in ids)

    def search(
        self,
        vectors: ArrayLike,
        k: int = 10,
        where: Where | None = None,
        *,
        metric: Metric | None = None,
        exact: bool = False,
    ) -> StoreHits:
        ids = [one for one, row in self.rows.items() if where is None or where.holds(one, row.record)]
        scores = np.array([self._scores(query, ids, metric) for query in checked_queries(vectors, self.dimension, k)])
        best = [np.argsort(-row, kind="stable")[:k] for row in scores]
        return StoreHits(
            tuple(tuple(ids[place] for place in row) for row in best),
            tuple(row[places].astype(np.float32) for row, places in zip(scores, best, strict=True)),
        )

    def get(self, ids: Sequence[str]) -> dict[str, Row]:
        return {one: self.rows[one] for one in ids if one in self.rows}

    def count(self, where: Where | None = None) -> int:
        return sum(where is None or where.holds(one, row.record) for one, row in self.rows.items())

    def records(self, where: Where | None = None) -> Iterator[tuple[str, Record]]:
        return ((one, row.record) for one, row in self.rows.items() if where is None or where.holds(one, row.record))

    def about(self) -> StoreFacts:
        return StoreFacts("toy", exact=True, why="a dictionary")

    def _scores(self, query: np.ndarray, ids: list[str], metric: Metric | None) -> np.ndarray:
        rows = np.array([self.rows[one].vector for one in ids], np.float32).reshape(-1, self.dimension)
        if metric is None:
            image_first = (rows, query[None]) if self.side == "image" else (query[None], rows)
            return self.similarity.array(*image_first).reshape(-1)
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query) if metric == "cosine" else 1
        return rows @ query / np.where(np.equal(lengths, 0), 1, lengths)
