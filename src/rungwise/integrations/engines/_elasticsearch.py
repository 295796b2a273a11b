"""Elasticsearch and OpenSearch, by their HTTP interface."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import printable
from rungwise.integrations.engines._hits import Hits, hits

Post = Callable[[str, Mapping[str, Any]], Any]
"""From a path and a JSON body to the JSON of the answer."""

_LARGEST_ANSWER = 1 << 26
_SECONDS = 60.0
_LOOKED_AT = 10
"""Candidates that each shard looks at, for each hit that is asked for: Elasticsearch's default is 1.5."""


class ElasticsearchEngine:
    """Lists of an index of Elasticsearch by approximate nearest neighbours (``knn``).

    Args:
        address: Address of the server, such as ``"https://user:password@localhost:9200"``.
        index: Name of the index.
        vector: Field of the vectors.
        id: Field of the ids; ``_id`` of the documents if empty.
        post: Asks the server in place of a connection of ours.

    Raises:
        UserError: If there is no such server, index or field.

    >>> answer = {"hits": {"hits": [{"_id": "dog", "_score": 0.9}]}}
    >>> engine = ElasticsearchEngine("http://localhost:9200", "pets", post=lambda path, body: answer)
    >>> engine.search(np.array([1, 0], np.float32), 1)
    (('dog',), array([0.9]))
    """

    title = "Elasticsearch"

    def __init__(
        self, address: str, index: str, *, vector: str = "vector", id: str = "", post: Post | None = None
    ) -> None:
        self.name = f"{self.title}, {index}"
        self._path, self._vector, self._id = quote(index, safe=""), vector, id
        self._post = post or _Server(self.name, address).post

    def count(self) -> int:
        """Number of documents with a vector."""
        found = self._post(f"/{self._path}/_count", {"query": {"exists": {"field": self._vector}}})
        try:
            return int(found["count"])
        except (KeyError, TypeError, ValueError):
            raise self._stranger() from None

    def search(self, vector: NDArray[np.float32], k: int) -> Hits:
        """Ids and falling scores of the first k hits of a (D,) query; of a cosine c the score is (1 + c) / 2."""
        body = {**self._knn(vector.tolist(), k), "size": k, "_source": [self._id] if self._id else False}
        found = self._post(f"/{self._path}/_search", body)
        try:
            listed = found["hits"]["hits"]
            ids = [one.get("_source", {}).get(self._id) if self._id else one["_id"] for one in listed]
            return hits(self.name, ids, [one["_score"] for one in listed])
        except (AttributeError, KeyError, TypeError):
            raise self._stranger() from None

    def _knn(self, vector: list[float], k: int) -> dict[str, Any]:
        candidates = min(10_000, _LOOKED_AT * k)  # the most that it takes
        return {"knn": {"field": self._vector, "query_vector": vector, "k": k, "num_candidates": candidates}}

    def _stranger(self) -> UserError:
        return UserError(f"{self.name}: what answers there is no {self.title}; correct the address")


class OpenSearchEngine(ElasticsearchEngine):
    """Lists of an index of OpenSearch by its k-NN plugin; arguments of :class:`ElasticsearchEngine`."""

    title = "OpenSearch"

    def _knn(self, vector: list[float], k: int) -> dict[str, Any]:
        return {"query": {"knn": {self._vector: {"vector": vector, "k": k}}}}


class _Server:
    """Connection to a server; a redirection is not followed, so that a password goes nowhere else."""

    def __init__(self, name: str, address: str) -> None:
        self._name = name
        try:
            place = urlsplit(address)
            host, port = place.hostname, place.port
        except ValueError:
            host = port = None
        if host is None or place.scheme not in ("http", "https"):
            raise UserError(f"{name}: no address of a server; write it as http://HOST:PORT")
        self._of = HTTPSConnection if place.scheme == "https" else HTTPConnection
        self._host, self._port, self._below = host, port, place.path.rstrip("/")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if place.username:
            both = f"{unquote(place.username)}:{unquote(place.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(both.encode()).decode()}"

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        connection = self._of(self._host, self._port, timeout=_SECONDS)
        try:
            connection.request("POST", self._below + path, json.dumps(body), self._headers)
            response = connection.getresponse()
            content = response.read(_LARGEST_ANSWER)
            found = json.loads(content)
        except (OSError, HTTPException) as error:
            reason = printable(str(getattr(error, "strerror", None) or error) or type(error).__name__)
            raise UserError(f"{self._name}: cannot be asked ({reason}); is the server running?") from error
        except (ValueError, RecursionError) as error:
            raise UserError(f"{self._name}: what answers there speaks no JSON; correct the address") from error
        finally:
            connection.close()
        if response.status >= 300:
            reason = printable(_reason(found)[:200])
            raise UserError(f"{self._name}: refused with status {response.status} ({reason})")
        return found


def _reason(found: Any) -> str:
    """Reason in the JSON of a refusal."""
    error = found.get("error") if isinstance(found, dict) else None
    return str(error.get("reason", "") if isinstance(error, dict) else error or "no reason given")
