"""The Milvus store: rows in a collection of a Milvus server, which several processes write to and search."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Self
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core import UserError, limits, to_plain
from rungwise.index.filters import Where
from rungwise.index.stores._approximation import Approximation
from rungwise.index.stores._base import (
    ApproximateIndex,
    Metric,
    Record,
    Row,
    Side,
    Store,
    StoreBatch,
    StoreFacts,
    StoreHits,
    WordHits,
    check_k,
    checked_queries,
    checked_rows,
)
from rungwise.index.stores._column_counts import StoreCounts, count_records
from rungwise.index.stores._engine_rows import (
    ID,
    RECORD,
    SEAL_OF_RECORD,
    SEAL_OF_VECTOR,
    SEQ,
    VECTOR,
    from_engine,
    to_engine,
)
from rungwise.index.stores._vector_files import damaged
from rungwise.index.stores.milvus import full_text
from rungwise.index.stores.milvus._collection import KEYS_AT_ONCE, ROWS_AT_ONCE, Collection
from rungwise.index.stores.milvus._description import (
    APPROXIMATION,
    DESCRIPTION,
    CollectionDescription,
    described,
    schema_of,
)
from rungwise.index.stores.milvus._filtered_rows import FilteredRows
from rungwise.index.stores.milvus._filters import one_of
from rungwise.index.stores.milvus._newest import newest
from rungwise.index.stores.milvus._order import in_order
from rungwise.index.stores.milvus._rows import fields_of, rows_of
from rungwise.index.stores.milvus._search import BYTES_AT_ONCE, Best, compared, near
from rungwise.index.stores.milvus._server import Server
from rungwise.index.stores.milvus.catalog import address_in, collection_at
from rungwise.similarity import Similarity

LINKS, BREADTH = 16, 200
"""M and efConstruction of the graph (HNSW, Malkov and Yashunin 2020)."""
_EF = (32, 64, 100, 200, 400, 800)
_NONE = np.empty(0, np.float32)
_COUNTED = 20_000
"""Number of rows, drawn at random, that stand for all where there are too many to be counted."""


class MilvusStore(Store):
    """A :class:`rungwise.index.Store` in a collection of Milvus, made with :meth:`create` and opened with :meth:`open`.

    Any number of processes may write and search at a time. A batch of up to some thousand rows becomes whole or not at
    all; larger ones are written in such parts. In a collection that a column parts, rows that are replaced are first
    removed: a process that dies between the two leaves them out, and the next update of the index brings them back.

    An object finds at once what it has written itself, and what others wrote before :meth:`refresh`. Every method
    raises a UserError if the server does not answer.

    Attributes:
        address: Address of the index or store on its server.
        name: Name of the store.
        collection: Milvus's name of the collection.
    """

    def __init__(self, server: Server, name: str, collection: str) -> None:
        self._server, self.address, self.name, self.collection = server, server.address, name, collection
        self._label = f"{self.address}/{name}"
        description, self._chosen = described(server, collection, self._label)
        self._kept = Collection(server, collection, self._label, description)
        self.dimension, self.similarity, self.side = description.dimension, description.similarity, description.side
        self.identity = description.identity
        self._door = Lock()
        self._next = 0

    @property
    def approximate_index(self) -> ApproximateIndex:
        """Graph that Milvus makes of all rows; of its settings only ``ef`` and ``flat`` count here."""
        others = (Approximation(probes=1, ef=ef, refine=1, flat=self._chosen.flat) for ef in _EF)

        def trying(settings: Approximation) -> MilvusStore:
            tried = copy(self)
            tried._chosen = settings
            return tried

        def keep(settings: Approximation) -> None:
            properties = {APPROXIMATION: json.dumps(to_plain(settings))}
            self._server.call(
                lambda client, wait: client.alter_collection_properties(self.collection, properties, timeout=wait)
            )
            self._chosen = settings

        return ApproximateIndex(self._chosen, tuple(dict.fromkeys((self._chosen, *others))), trying, keep)

    @classmethod
    def create(
        cls,
        place: Path | str,
        name: str,
        dimension: int,
        similarity: Similarity,
        side: Side = "image",
        *,
        columns: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """Make an empty store.

        Args:
            place: An address such as ``milvus://HOST:19530/NAME`` (:mod:`rungwise.index.stores.milvus._server`).
            name: Name of the store.
            dimension: D, the length of a vector.
            similarity: How queries and rows are compared.
            side: Side of the similarity that the rows are.
            columns: Names of entries of the records, each with its type (``number``, ``text``, ``truth``), as far as
                they are known. They get fields of their own, in which filters are faster.

        Raises:
            UserError: If a store stands there already, or Milvus does not compare by this similarity.
        """
        address = address_in(place)
        if similarity.metric is None:
            raise UserError(
                f"Milvus does not compare by the similarity {getattr(similarity, 'kind', similarity)!r}; keep this"
                " index in an exact store"
            )
        server = Server(address)
        collection = collection_at(server, name)
        if server.has(collection):
            raise UserError(f"{address}/{name}: a store stands here already; open it, or choose another place")
        fields = fields_of(columns, address.partition)
        identity, parted = uuid4().hex, address.partition
        description = CollectionDescription(dimension, similarity, side, identity, fields, parted)  # type: ignore[arg-type]  # a union
        schema, properties = schema_of(description), {DESCRIPTION: json.dumps(to_plain(description))}

        def made(client: Any, wait: float) -> None:
            client.create_collection(
                collection, schema=schema, num_shards=address.shards, consistency_level="Session",
                properties=properties, timeout=wait,
            )  # fmt: skip
            index = client.prepare_index_params()
            graph = {"M": LINKS, "efConstruction": BREADTH}
            index.add_index(VECTOR, index_type="HNSW", metric_type="IP", params=graph)
            client.create_index(collection, index, timeout=wait)

        server.call(made)
        return cls(server, name, collection)

    @classmethod
    def open(cls, place: Path | str, name: str) -> Self:
        """Open a store; refuses a collection that is missing, or that is no store."""
        server = Server(address_in(place))
        return cls(server, name, collection_at(server, name))

    def refresh(self) -> None:
        """Let the next search wait until the server has what was written before."""
        description, self._chosen = described(self._server, self.collection, self._label)
        self._kept = Collection(self._server, self.collection, self._label, description)

    def close(self) -> None:
        """End the connection."""
        self._server.close()

    def upsert(self, ids: Sequence[str], vectors: ArrayLike, records: Sequence[Record] | None = None) -> None:
        """Insert or replace rows; more than 16 MB, or some thousand rows, are written in several parts."""
        ids, vectors, records = checked_rows(StoreBatch(ids, vectors, records), self.dimension)
        if not ids:
            return
        with self._door:
            # Others may write at the same time, and no two rows may have one place.
            first = max(self._next, time.time_ns())
            self._next = first + len(ids)
        rows = list(rows_of(ids, vectors, records, first, self._kept.description.fields))
        part: list[dict[str, Any]] = []
        size = 0
        for row in rows:
            took = 4 * self.dimension + len(row[RECORD]) * 2
            if part and (size + took > BYTES_AT_ONCE or len(part) == ROWS_AT_ONCE):
                self._kept.write(part)
                part, size = [], 0
            part.append(row)
            size += took
        self._kept.write(part)

    def delete(self, ids: Sequence[str]) -> int:
        """Delete rows, a thousand in a request; gives the number of rows deleted."""
        keys = sorted({to_engine(one) for one in ids})
        starts = range(0, len(keys), KEYS_AT_ONCE)
        return sum(self._kept.remove(keys[start : start + KEYS_AT_ONCE]) for start in starts)

    def compact(self) -> None:
        """Have all rows brought into the approximate index, and wait for it; Milvus frees space by itself."""
        self._kept.put_together()

    def search(
        self,
        vectors: ArrayLike,
        k: int = 10,
        where: Where | None = None,
        *,
        metric: Metric | None = None,
        exact: bool = False,
    ) -> StoreHits:
        """Find the k rows most alike to each query; ``exact`` fetches every vector, which takes long for many."""
        queries, rows = checked_queries(vectors, self.dimension, k), FilteredRows(self._kept, where)
        if rows.none or not len(queries):
            return StoreHits(((),) * len(queries), (_NONE,) * len(queries))
        found: list[Best | None] = [None] * len(queries)
        if not exact:
            found = near(rows, queries, k, self._chosen, cosine=metric == "cosine")
            if metric is None:
                found = [one and (one[0], self.similarity.of_metric(one[1])) for one in found]
        left = [at for at, one in enumerate(found) if one is None]
        if left:
            others = compared(rows, queries[left], k, self.similarity, self.side, metric)
            for at, one in zip(left, others, strict=True):
                found[at] = one
        ids, scores = zip(*(one for one in found if one is not None), strict=True)
        return StoreHits(tuple(ids), tuple(np.asarray(one, np.float32) for one in scores))

    def find_words(self, words: str, k: int = 10, where: Where | None = None) -> WordHits:
        """Find rows by words, ranked here; among rows with frequent words alone, only some are looked at."""
        check_k(k)
        return full_text.best(FilteredRows(self._kept, where), words, k)

    def get(self, ids: Sequence[str]) -> dict[str, Row]:
        """The rows with these ids, compared with their checksums."""
        keys = {to_engine(one): one for one in ids}
        rows: dict[str, Row] = {}
        asked = list(keys)
        for start in range(0, len(asked), KEYS_AT_ONCE):
            found = self._kept.rows(
                one_of(ID, asked[start : start + KEYS_AT_ONCE]), [ID, VECTOR, RECORD, SEAL_OF_VECTOR, SEAL_OF_RECORD]
            )
            vectors, records = self._kept.vectors(found), self._kept.parsed(found)
            rows |= {row[ID]: Row(*both) for row, *both in zip(found, vectors, records, strict=True)}
        return {one: rows[key] for key, one in keys.items() if key in rows}

    def count(self, where: Where | None = None) -> int:
        """Number of rows, or of those that fulfil ``where``."""
        return FilteredRows(self._kept, where).count()

    def records(self, where: Where | None = None) -> Iterator[tuple[str, Record]]:
        """Id and record of every row, or of those that fulfil ``where``, in order; a thousand are fetched at a time."""
        return FilteredRows(self._kept, where).records()

    def counts(self, most: int) -> StoreCounts:
        """Counts of the columns of all rows, or of 20,000 drawn at random where there are more than are to be read.

        The limit is ``counted_rows`` (see :class:`rungwise.core.Limits`): every record comes over the network.
        """
        rows, names = self.count(), [RECORD, SEAL_OF_RECORD]
        whole = rows <= limits().counted_rows
        read = self._kept.every(True, names) if whole else iter(self._kept.drawn(True, rows, _COUNTED, names))
        batches = iter(lambda: list(islice(read, ROWS_AT_ONCE)), [])
        columns, looked_at = count_records((one for batch in batches for one in self._kept.parsed(batch)), most)
        return StoreCounts(columns, looked_at, looked_at if whole else rows)

    def ids(self) -> Iterator[str]:
        """Ids of all rows, in order; no record is fetched."""
        return (from_engine(key) for _, key in sorted((row[SEQ], row[ID]) for row in self._kept.every(True, [ID, SEQ])))

    def rows(self) -> Iterator[StoreBatch]:
        """All rows in order, a thousand in a request.

        Raises:
            UserError: If a row is damaged, or others have replaced or removed rows meanwhile.
        """
        places = in_order(self._kept, True)
        names = [VECTOR, RECORD, SEAL_OF_VECTOR, SEAL_OF_RECORD]
        for start in range(0, len(places), KEYS_AT_ONCE):
            some = places[start : start + KEYS_AT_ONCE]
            found = self._kept.at(some, names)
            if len(found) != len(some):
                raise UserError(f"{self._label}: others wrote here while its rows were read; run the command again")
            yield StoreBatch(
                [from_engine(row[ID]) for row in found], self._kept.vectors(found), self._kept.parsed(found)
            )

    def newest(
        self, count: int, offset: int = 0, where: Where | None = None, *, by: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Ids of the newest rows; older rows are not fetched."""
        return tuple(newest(self._kept, where or Where(), count, offset, tuple(by)))

    def drawn(self, count: int) -> list[str]:
        """Ids of a sample of the rows; no other rows are fetched."""
        return [from_engine(row[ID]) for row in self._kept.drawn(True, self.count(), count, [ID])]

    def verified(self) -> str:
        """Check every row; every vector and record is compared with its checksum."""
        found = super().verified()
        places = in_order(self._kept, True)
        for start in range(0, len(places), KEYS_AT_ONCE):
            rows = self._kept.at(places[start : start + KEYS_AT_ONCE], [VECTOR, SEAL_OF_VECTOR])
            if not np.isfinite(self._kept.vectors(rows)).all():
                raise damaged(self._label, "a vector holds NaN or infinity")
        return f"{found} in the collection {self.collection}: checksums, ids, finite numbers"

    def about(self) -> StoreFacts:
        """Describe the graph."""
        rows, chosen = self.count(), self._chosen
        why = (
            f"{rows:,} vectors of {self.dimension} numbers ({4 * rows * self.dimension / 1e6:,.1f} MB) on"
            f" {self.address}: an index of near neighbours (HNSW, M {LINKS}, ef {chosen.ef})"
        )
        return StoreFacts("milvus", exact=False, why=why)
