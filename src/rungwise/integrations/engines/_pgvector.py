"""PostgreSQL with pgvector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, require
from rungwise.integrations.engines._hits import Hits, Metric, asking, hits

_OPERATORS = {"cosine": "<=>", "l2": "<->", "inner": "<#>"}
"""Distance operators of pgvector."""


class PgvectorEngine:
    """Lists of a table of PostgreSQL with a column of pgvector; the session is read-only.

    Args:
        connection: A ``psycopg.Connection``, or where to connect to, such as ``"postgresql://localhost/photos"``.
        table: The table; a schema may stand before it with a point.
        vector: Column of the vectors.
        id: Column of the ids.
        metric: Distance by which it is searched: the one of its index, or the index is not used.

    Raises:
        MissingExtraError: If psycopg is not installed.
        UserError: If there is no such server, or no such table or column.
    """

    def __init__(
        self, connection: Any, table: str, *, vector: str = "embedding", id: str = "id", metric: Metric = "cosine"
    ) -> None:
        require("psycopg", "this engine")
        import psycopg
        from psycopg import sql

        self.name = f"pgvector, {table}"
        if metric not in _OPERATORS:
            raise UserError(f"{self.name}: metric {metric} is unknown; take {', '.join(_OPERATORS)}")
        self._metric: Metric = metric
        names = sql.Identifier(*table.split("."))
        self._search = sql.SQL("SELECT {}, {} {} %s::vector AS distance FROM {} ORDER BY distance LIMIT %s").format(
            sql.Identifier(id), sql.Identifier(vector), sql.SQL(_OPERATORS[metric]), names
        )
        self._count = sql.SQL("SELECT count({}) FROM {}").format(sql.Identifier(vector), names)
        with asking(self.name):
            if isinstance(connection, str):
                read_only = "-c default_transaction_read_only=on"
                connection = psycopg.connect(connection, autocommit=True, options=read_only)
            self._connection = connection
            self.count()

    def count(self) -> int:
        """Number of rows with a vector."""
        with asking(self.name):
            return int(self._connection.execute(self._count).fetchone()[0])

    def search(self, vector: NDArray[np.float32], k: int) -> Hits:
        """Ids and falling scores of the first k hits of a (D,) query: the cosine, or the negated distance."""
        asked = "[" + ",".join(map(repr, vector.astype(float).tolist())) + "]"
        with asking(self.name):
            rows = self._connection.execute(self._search, (asked, k)).fetchall()
        rows = [row for row in rows if row[1] is not None]  # of rows without a vector
        # The operator of the inner product gives it negated.
        return hits(self.name, [row[0] for row in rows], [(self._metric == "cosine") - row[1] for row in rows])
