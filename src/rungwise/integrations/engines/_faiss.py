"""faiss: an index in memory or in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, require
from rungwise.integrations.engines._hits import Hits, asking, hits


class FaissEngine:
    """Lists of a faiss index, which names its rows by numbers.

    Args:
        index: The index, or its file. faiss reads a file without checking it: take files of people whom you trust.
        ids: (rows,) ids of the rows; their numbers if None.

    Raises:
        MissingExtraError: If faiss is not installed.
        UserError: If the file cannot be read, or there are not as many ids as rows.

    >>> import faiss
    >>> index = faiss.IndexFlatIP(2)
    >>> index.add(np.eye(2, dtype=np.float32))
    >>> FaissEngine(index, ["dog", "cat"]).search(np.array([0.6, 0.8], np.float32), 1)
    (('cat',), array([0.80000001]))
    """

    def __init__(self, index: Any, ids: Sequence[str] | None = None) -> None:
        require("faiss", "this engine")
        import faiss

        self.name = f"faiss, {type(index).__name__}"
        if isinstance(index, str | Path):
            self.name = f"faiss, {index}"
            if not Path(index).is_file():
                raise UserError(f"{index}: no such file; name the file that faiss.write_index wrote")
            with asking(self.name):
                index = faiss.read_index(str(index))
        if ids is not None and len(ids) != index.ntotal:
            raise UserError(f"{self.name}: {index.ntotal} rows, but {len(ids)} ids; give one for each row in its order")
        self._index, self._ids = index, ids
        # Only of the inner product is more nearer.
        self._sign = 1 if index.metric_type == faiss.METRIC_INNER_PRODUCT else -1

    def count(self) -> int:
        """Number of vectors."""
        return int(self._index.ntotal)

    def search(self, vector: NDArray[np.float32], k: int) -> Hits:
        """Ids and falling scores of the first k hits of a (D,) query; a distance is negated."""
        if len(vector) != self._index.d:
            raise UserError(f"{self.name}: vectors of {self._index.d} numbers, the query has {len(vector)}")
        scores, rows = self._index.search(np.ascontiguousarray(vector[None], np.float32), k)
        found = rows[0] >= 0  # fewer than k stand as -1
        names = [row if self._ids is None else self._ids[row] for row in rows[0][found].tolist()]
        return hits(self.name, names, self._sign * scores[0][found])
