"""Qdrant: a collection on a server, or in a folder of its local mode."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import require
from rungwise.integrations.engines._hits import Hits, asking, hits


class QdrantEngine:
    """Lists of a collection of Qdrant.

    Args:
        client: A ``qdrant_client.QdrantClient``.
        collection: Name of the collection.
        vector: Name of its vectors, where it has named ones.
        id: Field of the payload that holds the ids; Qdrant's own ids if empty.

    Raises:
        MissingExtraError: If qdrant-client is not installed.
        UserError: If there is no such collection, or no server answers.

    >>> from qdrant_client import QdrantClient, models
    >>> client = QdrantClient(":memory:")
    >>> params = models.VectorParams(size=2, distance=models.Distance.COSINE)
    >>> _ = client.create_collection("pets", vectors_config=params)
    >>> _ = client.upsert("pets", [models.PointStruct(id=7, vector=[1.0, 0.0], payload={"file": "dog.jpg"})])
    >>> QdrantEngine(client, "pets", id="file").search(np.array([1, 0], np.float32), 1)[0]
    ('dog.jpg',)
    """

    def __init__(self, client: Any, collection: str, *, vector: str = "", id: str = "") -> None:
        require("qdrant_client", "this engine")
        from qdrant_client.models import Distance

        self.name = f"Qdrant, {collection}"
        self._client, self._collection, self._vector, self._id = client, collection, vector, id
        with asking(self.name):
            vectors = client.get_collection(collection).config.params.vectors
            params = vectors[vector] if vector else vectors
            # Of cosine and dot, more is nearer; of the two distances, less.
            self._sign = 1 if params.distance in (Distance.COSINE, Distance.DOT) else -1

    def count(self) -> int:
        """Number of points."""
        with asking(self.name):
            return int(self._client.count(self._collection).count)

    def search(self, vector: NDArray[np.float32], k: int) -> Hits:
        """Ids and falling scores of the first k hits of a (D,) query; a distance is negated."""
        with asking(self.name):
            found = self._client.query_points(
                self._collection,
                query=vector.tolist(),
                using=self._vector or None,
                limit=k,
                with_payload=[self._id] if self._id else False,
            ).points
        ids = [(one.payload or {}).get(self._id) if self._id else one.id for one in found]
        return hits(self.name, ids, [self._sign * one.score for one in found])
