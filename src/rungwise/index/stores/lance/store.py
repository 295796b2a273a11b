"""The LanceDB store: rows in a LanceDB table, in a folder or in an object store."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from copy import copy
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core import UserError, to_plain
from rungwise.index.filters import Where
from rungwise.index.stores._approximation import (
    GRAPH_UP_TO_ROWS,
    LISTS_PAY_FROM_BYTES,
    MAPPED_FROM_ROWS,
    PAYS_FROM_BYTES,
    SCALARS_PAY_FROM,
    Approximation,
    alternatives,
    partitions_of,
)
from rungwise.index.stores._base import (
    ApproximateIndex,
    LabelledVector,
    Metric,
    Record,
    Row,
    Side,
    Store,
    StoreBatch,
    StoreFacts,
    StoreHits,
    StoreSpace,
    WordHits,
    check_k,
    checked_queries,
    checked_rows,
)
from rungwise.index.stores._bm25 import words_of
from rungwise.index.stores._column_counts import StoreCounts
from rungwise.index.stores._engine_rows import ID, RECORD, SEAL_OF_RECORD, SEAL_OF_VECTOR, TEXT, VECTOR, to_engine
from rungwise.index.stores._vector_files import damaged
from rungwise.index.stores.lance._column_counts import columns_beside, counted, values
from rungwise.index.stores.lance._description import DESCRIPTION, TableDescription
from rungwise.index.stores.lance._rows import schema_of
from rungwise.index.stores.lance._table_reader import TableReader
from rungwise.index.stores.lance._table_rows import TableRows, ids_of
from rungwise.index.stores.lance._table_writer import TableWriter, WantedFiles
from rungwise.index.stores.lance._tables import Tables
from rungwise.similarity import Similarity

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import Table

__all__ = ["LanceStore"]

_READERS_MAY_LAG = timedelta(hours=1)


class LanceStore(Store):
    """A :class:`rungwise.index.Store` in a LanceDB table.

    Every row is compared while there are few; :meth:`compact` makes an approximate index once that pays. Scores are
    computed from whole vectors in any case. One process writes to a folder at a time and others wait; any number may
    read meanwhile. In an object store, a change is tried again when another one came first.

    Attributes:
        place: Folder or address of the database.
        name: Name of the table.

    >>> import tempfile
    >>> from rungwise.similarity import Cosine
    >>> store = LanceStore.create(Path(tempfile.mkdtemp()), "pets", 2, Cosine())
    >>> store.upsert(["dog", "cat", "wolf"], [[1, 0], [0, 1], [0.8, 0.6]], [{"legs": 4}] * 3)
    >>> found = store.search([[1, 0]], k=2)
    >>> found.ids, found.scores[0].tolist()
    ((('dog', 'wolf'),), [1.0, 0.800000...])
    >>> store.delete(["dog", "fox"]), store.count()
    (1, 2)
    >>> LanceStore.open(store.place, "pets").get(["cat"])["cat"].record
    {'legs': 4}
    """

    def __init__(self, tables: Tables) -> None:
        self.place, self.name = tables.place, tables.name
        self._tables, self._reader = tables, TableReader(tables)
        self._writer = TableWriter(tables, self._reader)
        described = self._reader.snapshot.rows.description
        self.dimension, self.similarity, self.side = described.dimension, described.similarity, described.side
        self.identity = described.identity
        self._made_here = False

    @classmethod
    def create(
        cls,
        place: Path | str,
        name: str,
        dimension: int,
        similarity: Similarity,
        side: Side = "image",
        *,
        half: bool = False,
    ) -> Self:
        """Make an empty store.

        Args:
            place: Folder of the database, made together with its parents, or an address such as ``s3://bucket/prefix``.
                Credentials and endpoint of an object store are taken from the environment.
            name: Name of the table.
            dimension: D, the length of a vector.
            similarity: How queries and rows are compared.
            side: Side of the similarity that the rows are.
            half: Keep vectors in half precision, which takes half the space.

        Raises:
            UserError: If a store stands there already, LanceDB does not compare by this similarity, or the place cannot
                be written.
        """
        if similarity.metric is None:
            raise UserError(
                f"LanceDB does not compare by the similarity {getattr(similarity, 'kind', similarity)!r}; keep this"
                " index in an exact store"
            )
        described = TableDescription(dimension, similarity, side, uuid4().hex, half)  # type: ignore[arg-type]  # a union
        tables = Tables(place, name)
        tables.create(schema_of(dimension, half, {DESCRIPTION: json.dumps(to_plain(described))}), _prepare)
        made = cls(tables)
        made._made_here = True
        return made

    @classmethod
    def open(cls, place: Path | str, name: str) -> Self:
        """Open a store. It stays as it is, whatever others write meanwhile, until :meth:`refresh`."""
        return cls(Tables(place, name))

    @property
    def half(self) -> bool:
        """Whether vectors are kept in half precision."""
        return self._reader.snapshot.rows.description.half

    @property
    def approximate_index(self) -> ApproximateIndex | None:
        """Index of near neighbours that :meth:`compact` made; None while every row is compared."""
        snapshot = self._reader.snapshot
        if snapshot.kind is None:
            return None

        def trying(settings: Approximation) -> LanceStore:
            tried = copy(self)
            tried._reader = self._reader.with_approximation(settings)
            tried._writer = TableWriter(self._tables, tried._reader)
            return tried

        present = snapshot.approximation
        others = alternatives(present, len(snapshot.rows))
        return ApproximateIndex(present, others, trying, self._writer.keep)

    def refresh(self) -> None:
        """Read the newest version that counts, if it is another; rows in memory are taken over."""
        self._reader.refresh()

    def close(self) -> None:
        """Let go of the database."""
        self._tables.close()

    def upsert(self, ids: Sequence[str], vectors: ArrayLike, records: Sequence[Record] | None = None) -> None:
        """Insert or replace rows in one commit of LanceDB."""
        ids, vectors, records = checked_rows(StoreBatch(ids, vectors, records), self.dimension)
        if ids:
            self._writer.upsert(ids, vectors, records)

    def delete(self, ids: Sequence[str]) -> int:
        """Delete rows in one commit of LanceDB; gives the number of rows deleted."""
        keys = sorted({to_engine(one) for one in ids})
        return self._writer.delete(keys) if keys else 0

    def compact(self, *, readers_may_lag: timedelta | None = None) -> None:
        """Free the space of deleted rows, bring all indexes up to date, and make those that pay by now.

        Args:
            readers_may_lag: Versions that are older than this are removed; if None, those older than an hour, and all
                but the newest of a store that this object made. Readers of a removed version get the answer of the
                newest.
        """
        if readers_may_lag is None:
            readers_may_lag = timedelta(milliseconds=1) if self._made_here else _READERS_MAY_LAG
        by_engine = self._tables.folder is None
        self._writer.compact(readers_may_lag, partial(_indexes_that_pay, by_engine=by_engine), _wanted_files)

    def search(
        self,
        vectors: ArrayLike,
        k: int = 10,
        where: Where | None = None,
        *,
        metric: Metric | None = None,
        exact: bool = False,
    ) -> StoreHits:
        """Find the k rows most alike to each query, by the approximate index where there is one."""
        queries = checked_queries(vectors, self.dimension, k)
        found = self._reader.answered(lambda snapshot: snapshot.nearest(queries, k, where, metric, exact))
        return StoreHits(tuple(ids_of(keys) for keys, _ in found), tuple(scores for _, scores in found))

    def find_words(self, words: str, k: int = 10, where: Where | None = None) -> WordHits:
        """Find rows by the lists of words in mapped files, else by LanceDB's full-text index; new rows at once."""
        check_k(k)
        sought = " ".join(words_of(words))
        keys, scores, texts = self._reader.answered(lambda snapshot: snapshot.by_words(sought, k, where))
        return WordHits((ids_of(keys),), (scores,), tuple(frozenset(text.split()) for text in texts))

    def get(self, ids: Sequence[str]) -> dict[str, Row]:
        """The rows with these ids, compared with their checksums."""
        keys = {to_engine(one): one for one in ids}
        rows = self._reader.answered(lambda snapshot: snapshot.with_ids(list(keys)))
        return {one: rows[key] for key, one in keys.items() if key in rows}

    def labelled(self, ids: Sequence[str], column: str) -> dict[str, LabelledVector]:
        """Vectors and texts from mapped files or from memory, else from the columns."""
        keys = {to_engine(one): one for one in ids}
        rows = self._reader.answered(lambda snapshot: snapshot.labelled(list(keys), column))
        return {one: rows[key] for key, one in keys.items() if key in rows}

    def count(self, where: Where | None = None) -> int:
        """Number of rows, or of those that fulfil ``where``."""
        return self._reader.answered(
            lambda snapshot: len(snapshot.rows) if where is None else snapshot.rows.count(where)
        )

    def counts(self, most: int) -> StoreCounts:
        """Exact counts of the columns, from the columns alone; no record is read."""
        return self._reader.answered(lambda snapshot: counted(snapshot.rows, most))

    def records(self, where: Where | None = None) -> Iterator[tuple[str, Record]]:
        """Id and record of every row, or of those that fulfil ``where``, in order; read some thousands at a time."""

        def read(rows: TableRows, found: pa.Table) -> list[tuple[str, Record]]:
            return list(zip(ids_of(found[ID].to_pylist()), rows.records(found), strict=True))

        for pairs in self._reader.in_blocks(where, [ID, RECORD, SEAL_OF_RECORD], read):
            yield from pairs

    def columns_beside(self, known: Collection[str]) -> frozenset[str]:
        """Names of other columns that some row has a value in; one row of each is looked at."""
        return self._reader.answered(lambda snapshot: columns_beside(snapshot.rows, known))

    def values(self, column: str) -> Iterator[Any]:
        """The values of a column, each at least once; no record is read."""
        return values(self._reader.snapshot.rows, column)

    def ids(self) -> Iterator[str]:
        """Ids of all rows, in order; no record is read."""
        return iter(self._reader.answered(lambda snapshot: snapshot.rows.all_ids()))

    def rows(self) -> Iterator[StoreBatch]:
        """All rows of the version that is open, in order, each compared with its checksums.

        Raises:
            UserError: If a row is damaged, or others have removed the version meanwhile, which they do after an hour.
        """

        def read(rows: TableRows, found: pa.Table) -> StoreBatch:
            return StoreBatch(ids_of(found[ID].to_pylist()), rows.vectors(found), list(rows.records(found)))

        try:
            yield from self._reader.in_blocks(None, [ID, RECORD, VECTOR, SEAL_OF_RECORD, SEAL_OF_VECTOR], read)
        except UserError as error:
            if not self._reader.is_behind():
                raise
            raise UserError(
                f"{self._tables.label}: changed and compacted while its rows were read; run the command again"
            ) from error

    def space(self) -> StoreSpace | None:
        """Bytes of the files in a folder; None in an object store."""
        if (sizes := self._tables.sizes()) is None:
            return None
        rows, indexes, earlier = sizes
        return StoreSpace(rows, indexes, earlier, self._free_after() if earlier else None)

    def _free_after(self) -> datetime | None:
        table = self._reader.snapshot.rows.table
        with self._tables.errors_in_one_line():
            versions = table.list_versions()
        times = [one["timestamp"].astimezone() for one in versions if one["version"] < table.version]
        return max(times) + _READERS_MAY_LAG if times else None

    def newest(
        self, count: int, offset: int = 0, where: Where | None = None, *, by: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Ids of the newest rows; no record is read, and the order is found once for each version of the table."""
        return self._reader.answered(lambda snapshot: ids_of(snapshot.rows.newest(tuple(by), count, offset, where)))

    def verified(self) -> str:
        """Check every row; every vector and record is compared with its checksum."""

        def look_through(rows: TableRows, found: pa.Table) -> None:
            if not np.isfinite(rows.vectors(found)).all():
                raise damaged(self._tables.label, "a vector holds NaN or infinity")

        found, version = super().verified(), self._reader.snapshot.rows.table.version
        for _ in self._reader.in_blocks(None, [ID, VECTOR, SEAL_OF_VECTOR], look_through):
            pass
        return f"{found} in version {version} of a LanceDB table: checksums of rows, ids, finite numbers"

    def verified_files(self) -> str:
        """Compare every file with its checksum; in an object store LanceDB keeps none."""
        return self._tables.verified_files() or super().verified_files()

    def about(self) -> StoreFacts:
        """Describe the approximate index, or why all rows are compared."""
        snapshot = self._reader.snapshot
        rows = len(snapshot.rows)
        size = 4 * rows * self.dimension
        pays = f"{(PAYS_FROM_BYTES if self._tables.folder is None else LISTS_PAY_FROM_BYTES) / 1e6:,.0f} MB"
        kept = f"{rows:,} vectors of {self.dimension} numbers ({size / 1e6:,.1f} MB)"
        if snapshot.kind is not None:
            chosen = snapshot.approximation
            how = {
                "lists": f"inverted lists, probes {chosen.probes}",
                "graph": f"IVF_HNSW_SQ, ef {chosen.ef}",
                "codes": f"IVF_RQ, probes {chosen.probes}",
            }[snapshot.kind]
            why = (
                f"{kept}: an index of near neighbours ({how}, refine {chosen.refine}) is faster than comparing all; of"
                f" up to {chosen.flat:,} rows that pass a filter, all are compared"
            )
        elif snapshot.files is not None or snapshot.in_memory:
            place = "in memory" if snapshot.files is None else "in mapped files"
            why = f"{kept}: all are compared, {place}; an approximate index pays from {pays} on"
        else:
            why = f"{kept}: all are compared, which is slow; `rungwise index compact` makes an approximate index"
        return StoreFacts("lance", exact=snapshot.kind is None, why=why)


def _wanted_files(rows: int, dimension: int) -> WantedFiles:
    """Mapped files that a table in a folder should have."""
    if rows < MAPPED_FROM_ROWS:
        return "none"
    return "lists" if 4 * rows * dimension >= LISTS_PAY_FROM_BYTES else "rows"


def _indexes_that_pay(table: Table, *, by_engine: bool) -> dict[str, Any]:
    """LanceDB's configurations of the indexes that pay and are not there, by column; of vectors if ``by_engine``."""
    from lancedb.index import BTree, HnswSq, IvfRq

    rows, there = table.count_rows(), {config.columns[0] for config in table.list_indices()}
    found: dict[str, Any] = {}
    pays = by_engine and 4 * rows * table.schema.field(VECTOR).type.list_size > PAYS_FROM_BYTES
    if VECTOR not in there and pays:
        codes = rows > GRAPH_UP_TO_ROWS
        parts = partitions_of(rows)
        found[VECTOR] = IvfRq(distance_type="dot", num_partitions=parts) if codes else HnswSq(distance_type="dot")
    if rows >= SCALARS_PAY_FROM:
        columns = (one for one in table.schema.names if one == ID or one.startswith(("number_", "text_", "truth_")))
        found |= {one: BTree() for one in columns if one not in there}
    return found


def _prepare(table: Table) -> None:
    from lancedb.index import FTS

    # Two commits at once that bring the same new id then conflict, and one is tried again; else both rows would stay.
    table.set_unenforced_primary_key(ID)  # type: ignore[attr-defined]

    # The words were taken from their texts before: they need only be parted.
    config = FTS(base_tokenizer="whitespace", lower_case=False, stem=False, remove_stop_words=False,
                 ascii_folding=False, max_token_length=None)  # fmt: skip
    table.create_index(TEXT, config=config)
