"""LanceDB: a table in a folder or an object store."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, require
from rungwise.integrations.engines._hits import Hits, Metric, asking, hits


class LanceDBEngine:
    """Lists of a table of LanceDB, by its own index where it has one.

    Args:
        place: Folder or address of the database.
        table: Name of the table.
        vector: Column of the vectors.
        id: Column of the ids.
        metric: Distance by which the table is searched.

    Raises:
        MissingExtraError: If lancedb is not installed.
        UserError: If there is no such table or column.
    """

    def __init__(
        self, place: str, table: str, *, vector: str = "vector", id: str = "id", metric: Metric = "cosine"
    ) -> None:
        require("lancedb", "this engine")
        import lancedb

        self.name = f"LanceDB, {place}/{table}"
        with asking(self.name):
            self._table: Any = lancedb.connect(place).open_table(table)
            columns = self._table.schema.names
        for column in (vector, id):
            if column not in columns:
                raise UserError(f"{self.name}: no column {column}; it has {', '.join(columns)}")
        self._vector, self._id = vector, id
        self._metric: Metric = metric

    def count(self) -> int:
        """Number of rows."""
        return int(self._table.count_rows())

    def search(self, vector: NDArray[np.float32], k: int) -> Hits:
        """Ids and falling scores of the first k hits of a (D,) query: the cosine, or the negated distance."""
        with asking(self.name):
            query = self._table.search(vector, vector_column_name=self._vector)
            distance = "dot" if self._metric == "inner" else self._metric
            rows = query.distance_type(distance).select([self._id, "_distance"]).limit(k).to_arrow()
        distances = rows["_distance"].to_numpy()
        # LanceDB's distance of an inner product is one minus it, as that of a cosine.
        scores = -distances if self._metric == "l2" else 1 - distances.astype(np.float64)
        return hits(self.name, rows[self._id].to_pylist(), scores)
