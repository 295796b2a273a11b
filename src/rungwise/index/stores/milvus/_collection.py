"""One collection of Milvus: rows written and read, and compared with their checksums."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rungwise.index.stores._base import Record, Vectors
from rungwise.index.stores._engine_rows import (
    ID,
    LENGTH,
    RECORD,
    SEAL_OF_RECORD,
    SEAL_OF_VECTOR,
    SEQ,
    VECTOR,
    from_engine,
    require_sealed,
)
from rungwise.index.stores._id_sampling import DRAWS
from rungwise.index.stores._scan import inverse_lengths
from rungwise.index.stores.milvus._description import CollectionDescription
from rungwise.index.stores.milvus._filters import both, literal, one_of
from rungwise.index.stores.milvus._rows import CUT, DRAW
from rungwise.index.stores.milvus._server import Server

if TYPE_CHECKING:
    from pymilvus import MilvusClient

KEYS_AT_ONCE = 1000
"""Number of ids or places in one expression."""
ROWS_AT_ONCE = 4096
_PAUSE = 0.2
_REMEMBERED = 4096
_LOADING_SECONDS = 600.0
_UNIT = 1e-4
"""Largest distance of a vector's length from 1 at which its inner product is its cosine for choosing candidates."""


@dataclass
class _Learnt:
    """Knowledge of the rows that holds until somebody writes.

    Attributes:
        fresh: Nothing was read since the collection was opened, or since rows were deleted.
        loaded: The server has the collection in memory, without which nothing can be searched.
        passing: Number of rows that fulfil each expression that was asked for.
    """

    fresh: bool = True
    loaded: bool = False
    passing: dict[str, int] = field(default_factory=dict)


class Collection:
    """The collection in which a :class:`rungwise.index.stores.milvus.MilvusStore` keeps its rows.

    Its first answer has all that was written before it was made, by whomever.

    Attributes:
        server: Server that has the collection.
        name: Milvus's name of the collection.
        description: Description of the collection.
        dimension: D, the length of a vector.
    """

    def __init__(self, server: Server, name: str, label: str, description: CollectionDescription) -> None:
        self.server, self.name, self._label = server, name, label
        self.description, self.dimension = description, description.dimension
        self._learnt = _Learnt()

    def write(self, rows: list[dict[str, Any]]) -> None:
        """Insert rows, or replace those with the same ids, in one request; in a parted collection in two."""
        if self.description.partition:
            # Milvus 2.3 writes replaced rows to another part than the one in which it looks for them.
            self.remove([row[ID] for row in rows])
            self.server.call(lambda client, wait: client.insert(self.name, rows, timeout=wait))
        else:
            self.server.call(lambda client, wait: client.upsert(self.name, rows, timeout=wait))
        self._learnt = replace(self._learnt, passing={})

    def remove(self, keys: Sequence[str]) -> int:
        """Remove rows in one request; gives the number of rows removed."""
        found = [row[ID] for row in self.rows(one_of(ID, keys), [ID])]
        if found:
            only = one_of(ID, found)
            self.server.call(lambda client, wait: client.delete(self.name, filter=only, timeout=wait))
            # Milvus 2.3 does not say when it deleted, so that the next answer waits for everything.
            self._learnt = replace(self._learnt, fresh=True, passing={})
        return len(found)

    def load(self) -> None:
        """Have the collection in the server's memory, without which nothing can be searched."""
        if not self._learnt.loaded:
            self.server.call(
                lambda client, wait: client.load_collection(self.name, timeout=wait), patience=_LOADING_SECONDS
            )
            self._learnt.loaded = True

    def _read(self, ask: Callable[[MilvusClient, str, float], Any]) -> list[Any]:
        """Read from the rows; ``ask`` gets the client, the consistency level and the seconds for which it may try.

        The first answer after opening, or after rows were deleted, waits until the server has all that was written
        before. Others need only what this process wrote since: what a server has answered once, it answers again.
        """
        self.load()
        learnt = self._learnt
        level = "Strong" if learnt.fresh else "Session"
        found: list[Any] = self.server.call(lambda client, wait: ask(client, level, wait))
        learnt.fresh = False
        return found

    def rows(self, only: str, names: list[str], limit: int | None = None) -> list[dict[str, Any]]:
        """Fields of some rows, in no order; with a limit those of the first ids."""
        at_most = {} if limit is None else {"limit": limit}
        return self._read(
            lambda client, level, wait: client.query(
                self.name, filter=only, output_fields=names, consistency_level=level, timeout=wait, **at_most
            )
        )

    def every(self, only: str | bool, names: list[str]) -> Iterator[dict[str, Any]]:
        """Fields of any number of rows, in no order: Milvus gives some thousands at a time, in order of ids."""
        if only is False:
            return
        after = ""
        while True:
            beyond: str | bool = f"{ID} > {literal(after)}" if after else True
            text = both(only, beyond)
            found = self.rows(f'{ID} >= ""' if text is True else str(text), list({*names, ID}), ROWS_AT_ONCE)
            yield from found
            if len(found) < ROWS_AT_ONCE:
                return
            after = max(row[ID] for row in found)

    def counted(self, only: str | bool) -> int:
        """Number of rows that an expression lets through."""
        if only is False:
            return 0
        return int(self.rows("" if only is True else str(only), ["count(*)"])[0]["count(*)"])

    def drawn(self, only: str | bool, passing: int, count: int, names: list[str]) -> list[dict[str, Any]]:
        """Fields of the ``count`` rows with the smallest sample keys, those first.

        ``only`` lets through the rows that may be drawn, about ``passing``.
        """
        # Draws are spread evenly; the square root is what chance adds.
        share = (count + 4 * math.sqrt(count) + 16) / max(1, passing)
        while True:
            below: str | bool = f"{DRAW} < {int(share * DRAWS)}" if share < 1 else True
            found = list(self.every(both(only, below), [*names, DRAW]))
            if len(found) >= count or below is True:
                return sorted(found, key=lambda row: (row[DRAW], from_engine(row[ID])))[:count]
            share *= 2

    def at(self, places: NDArray[np.int64], names: list[str]) -> list[dict[str, Any]]:
        """Fields of the rows at places, in order."""
        found = self.rows(one_of(SEQ, places.tolist()), [*names, ID, SEQ])
        return sorted(found, key=lambda row: row[SEQ])

    def parsed(self, rows: Sequence[Mapping[str, Any]]) -> list[Record]:
        """Records of rows, compared with their checksums."""
        texts = [row[RECORD] for row in rows]
        require_sealed(self._label, *_sealed(rows, SEAL_OF_RECORD), texts)
        return [json.loads(text) for text in texts]

    def vectors(self, rows: Sequence[Mapping[str, Any]]) -> Vectors:
        """(rows, D) vectors of rows, compared with their checksums."""
        vectors = np.array([row[VECTOR] for row in rows], np.float32).reshape(-1, self.dimension)
        require_sealed(self._label, *_sealed(rows, SEAL_OF_VECTOR), vectors)
        return vectors

    @property
    def has_cut(self) -> bool:
        """Whether there are rows whose columns are too large for the engine."""
        return self.passing(f"{CUT} == true") > 0

    @property
    def unit(self) -> bool:
        """Whether all vectors have the length 1, so that inner products are cosines."""
        return self.passing(f"({LENGTH} < {1 - _UNIT} or {LENGTH} > {1 + _UNIT})") == 0

    def passing(self, only: str | bool) -> int:
        """Number of rows that an expression lets through, counted once until somebody writes."""
        known, text = self._learnt.passing, "" if only is True else str(only)
        if text not in known:
            if len(known) > _REMEMBERED:
                known.clear()
            known[text] = self.counted(only)
        return known[text]

    def nearest(
        self, queries: Vectors, wanted: int, only: str | bool, names: list[str], ef: int, parts: int = 1
    ) -> list[list[tuple[dict[str, Any], float]]]:
        """Fields of the rows that the approximate index finds, best first, each with the engine's score.

        Args:
            queries: (queries, D).
            wanted: Largest number of rows for each query.
            only: Expression for the rows that may be found.
            names: Names of the fields.
            ef: Number of candidates that the walk through the graph keeps.
            parts: Number of disjoint parts in which the rows are looked through.
        """
        if parts > 1:
            found: list[list[tuple[dict[str, Any], float]]] = [[] for _ in queries]
            for part in range(parts):
                first, last = DRAWS * part // parts, DRAWS * (part + 1) // parts - 1
                here = both(only, f"({DRAW} >= {first} and {DRAW} <= {last})")
                for best, hits in zip(found, self.nearest(queries, wanted, here, names, ef), strict=True):
                    best += hits
            return [sorted(best, key=lambda hit: -hit[1])[:wanted] for best in found]
        answers = self._read(
            lambda client, level, wait: client.search(
                self.name, data=list(queries), filter="" if only is True else str(only), limit=wanted,
                output_fields=names, search_params={"metric_type": "IP", "params": {"ef": ef}}, anns_field=VECTOR,
                consistency_level=level, timeout=wait,
            )
        )  # fmt: skip
        return [[({ID: hit[ID], **hit["entity"]}, float(hit["distance"])) for hit in hits] for hits in answers]

    def put_together(self) -> None:
        """Bring all rows into the approximate index; Milvus itself frees the space of deleted ones."""

        def wait_for(client: Any, wait: float) -> None:
            client.flush(self.name, timeout=wait)
            while client.describe_index(self.name, VECTOR, timeout=wait).get("pending_index_rows"):
                self.server.pause(_PAUSE)

        self.server.call(wait_for, patience=_LOADING_SECONDS)


def _sealed(rows: Sequence[Mapping[str, Any]], column: str) -> tuple[list[str], NDArray[np.int64]]:
    """Ids of rows, in the engine's form, and their checksums in a column."""
    return [row[ID] for row in rows], np.array([row[column] for row in rows], np.int64)


class StreamedCollection:
    """Some rows of a collection, fetched block by block; a :class:`rungwise.index.stores._scan.VectorRows`.

    ``places``, (rows,), are their rising places in the order of rows.
    """

    def __init__(self, collection: Collection, places: NDArray[np.int64]) -> None:
        self._collection, self._places = collection, places
        self.shape = (len(places), collection.dimension)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, block: slice) -> Vectors:
        """Vectors at consecutive positions."""
        return self.gathered(np.arange(len(self))[block])

    def gathered(self, positions: NDArray[np.int64]) -> Vectors:
        """Vectors at positions that rise; zeros for a row that somebody has deleted meanwhile."""
        vectors = np.zeros((len(positions), self.shape[1]), np.float32)
        for start in range(0, len(positions), KEYS_AT_ONCE):
            places = self._places[positions[start : start + KEYS_AT_ONCE]]
            rows = self._collection.at(places, [VECTOR, SEAL_OF_VECTOR])
            at = np.searchsorted(places, [row[SEQ] for row in rows])
            vectors[start + at] = self._collection.vectors(rows)
        return vectors

    @cached_property
    def inverse_lengths(self) -> Vectors:
        """(rows,) 1 / length of each vector."""
        blocks = range(0, len(self), KEYS_AT_ONCE)
        found = [inverse_lengths(self[start : start + KEYS_AT_ONCE]) for start in blocks]
        return np.concatenate(found) if found else np.empty(0, np.float32)

    def ids_at(self, positions: NDArray[np.int64]) -> tuple[str, ...]:
        """Ids at positions."""
        places = self._places[positions]
        found: dict[int, str] = {}
        for start in range(0, len(places), KEYS_AT_ONCE):
            found |= {row[SEQ]: row[ID] for row in self._collection.at(places[start : start + KEYS_AT_ONCE], [])}
        return tuple(from_engine(found[place]) for place in places.tolist() if place in found)
