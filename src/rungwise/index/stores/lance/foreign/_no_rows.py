"""A store without rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core import UserError
from rungwise.index.filters import Where
from rungwise.index.stores._base import Metric, Record, Row, Store, StoreFacts, StoreHits, checked_queries
from rungwise.similarity import Similarity


class NoRows(Store):
    """A store without rows, for the captions of a table that has none."""

    def __init__(self, dimension: int, similarity: Similarity) -> None:
        self.dimension, self.similarity, self.side = dimension, similarity, "text"

    def upsert(self, ids: Sequence[str], vectors: ArrayLike, records: Sequence[Record] | None = None) -> None:
        """Refused."""
        raise UserError("a store without rows is read only")

    def delete(self, ids: Sequence[str]) -> int:
        """Nothing is deleted."""
        return 0

    def search(
        self,
        vectors: ArrayLike,
        k: int = 10,
        where: Where | None = None,
        *,
        metric: Metric | None = None,
        exact: bool = False,
    ) -> StoreHits:
        """Nothing is found."""
        queries = checked_queries(vectors, self.dimension, k)
        return StoreHits(((),) * len(queries), (np.empty(0, np.float32),) * len(queries))

    def get(self, ids: Sequence[str]) -> dict[str, Row]:
        """No rows."""
        return {}

    def count(self, where: Where | None = None) -> int:
        """0."""
        return 0

    def records(self, where: Where | None = None) -> Iterator[tuple[str, Record]]:
        """No records."""
        return iter(())

    def about(self) -> StoreFacts:
        """Describe it for people."""
        return StoreFacts("none", True, "it has no rows")
