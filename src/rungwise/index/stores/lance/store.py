"""The LanceDB store: rows in a LanceDB table, in a folder or in an object store."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core import UserError, to_plain
from rungwise.index.filters import Where
from rungwise.index.stores._approximation import (
    GRAPH_UP_TO_ROWS,
    PAYS_FROM_BYTES,
    SCALARS_PAY_FROM,
    Approximation,
    alternatives,
    partitions_of,
)
from rungwise.index.stores._base import (
    Metric,
    Record,
    Row,
    Side,
    Store,
    StoreBatch,
    StoreFacts,
    StoreHits,
    check_k,
    checked_queries,
    checked_rows,
)
from rungwise.index.stores._bm25 import words_of
from rungwise.index.stores._engine_rows import ID, RECORD, SEAL_OF_RECORD, SEAL_OF_VECTOR, SEQ, TEXT, VECTOR, to_engine
from rungwise.index.stores._vector_files import damaged
from rungwise.index.stores.lance._description import APPROXIMATION, DESCRIPTION, TableDescription
from rungwise.index.stores.lance._rows import MOST_COLUMNS, filterable, nothing_of, schema_of, table_of
from rungwise.index.stores.lance._snapshot import LanceSnapshot, ids_of
from rungwise.index.stores.lance._tables import Tables
from rungwise.similarity import Similarity

if TYPE_CHECKING:
    from lancedb.table import Table

__all__ = ["LanceStore"]

_T = TypeVar("_T")
_ROWS_AT_ONCE = 4096
_MANY_FILES = 64
"""Number of files of rows from which on a change puts them together."""
_READERS_MAY_LAG = timedelta(hours=1)
_NEVER = timedelta(days=36500)


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
        self._tables = tables
        self.place, self.name = tables.place, tables.name
        self._view = self._looked(None)
        described = self._view.description
        self.dimension, self.similarity, self.side = described.dimension, described.similarity, described.side
        self._made_here = False
        self._written: tuple[int, int] | None = None  # the version that this store wrote, and the next place in order

    @property
    def identity(self) -> str:
        """Text that differs from that of every other store."""
        return self._view.description.identity

    @property
    def approximation(self) -> Approximation | None:
        """Setting of the approximate index; None while every row is compared."""
        return self._view.approximation if self._view.approximate else None

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

    def alternatives(self) -> tuple[Approximation, ...]:
        """Settings of the approximate index that are worth :meth:`trying`, the present one first; none without it."""
        view = self._view
        return alternatives(view.approximation, view.rows, graph=view.graph) if view.approximate else ()

    def trying(self, settings: Approximation) -> Self:
        """The same store with another setting for its searches; nothing is written."""
        tried = copy(self)
        tried._view = self._view.with_approximation(settings)
        return tried

    def keep(self, settings: Approximation) -> None:
        """Search with this setting from now on, also when others open the store."""
        metadata = {APPROXIMATION: json.dumps(to_plain(settings))}
        with self._writing() as table:
            self._tables.retried(lambda: table.update_field_metadata({"path": VECTOR, "metadata": metadata}))

    def refresh(self) -> None:
        """Read the newest version that counts, if it is another; rows in memory are taken over."""
        if self._tables.version() != self._view.table.version:
            self._view = self._looked(self._view)

    def close(self) -> None:
        """Let go of the database."""
        self._tables.close()

    def upsert(self, ids: Sequence[str], vectors: ArrayLike, records: Sequence[Record] | None = None) -> None:
        """Insert or replace rows in one commit of LanceDB."""
        ids, vectors, records = checked_rows(StoreBatch(ids, vectors, records), self.dimension)
        if not ids:
            return
        filled = [filterable(record) for record in records]
        with self._writing() as table:
            self._add_columns(table, {name for one in filled for name in one})
            first = self._first_free(table)

            def change() -> Any:
                # Others may have added columns meanwhile.
                rows = table_of(ids, vectors, records, filled, first, table.schema)
                return table.merge_insert(ID).when_matched_update_all().when_not_matched_insert_all().execute(rows)

            self._tables.retried(change, table)
            self._written = int(table.version), first + len(ids)

    def delete(self, ids: Sequence[str]) -> int:
        """Delete rows in one commit of LanceDB; gives the number of rows deleted."""
        from lancedb.expr import col

        keys = sorted({to_engine(one) for one in ids})
        if not keys:
            return 0
        with self._writing() as table:
            deleted: Any = self._tables.retried(lambda: table.delete(col(ID).isin(keys)))
            return int(deleted.num_deleted_rows)

    def compact(self, *, readers_may_lag: timedelta | None = None) -> None:
        """Free the space of deleted rows, bring all indexes up to date, and make those that pay by now.

        Args:
            readers_may_lag: Versions that are older than this are removed; if None, those older than an hour, and all
                but the newest of a store that this object made. Readers of a removed version get the answer of the
                newest.
        """
        if readers_may_lag is None:
            readers_may_lag = timedelta(milliseconds=1) if self._made_here else _READERS_MAY_LAG
        with self._writing() as table:
            self._put_together(table)
            self._index(table)
            self._tables.acknowledge(table)  # before anything is removed that still counts
            self._tables.retried(lambda: table.optimize(cleanup_older_than=readers_may_lag))

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
        found = self._answered(lambda view: view.nearest(queries, k, where, metric, exact))
        return StoreHits(tuple(ids_of(keys) for keys, _ in found), tuple(scores for _, scores in found))

    def find_words(self, words: str, k: int = 10, where: Where | None = None) -> StoreHits:
        """Find rows by LanceDB's full-text index, in which new rows are found at once."""
        check_k(k)
        keys, scores = self._answered(lambda view: view.by_words(" ".join(words_of(words)), k, where))
        return StoreHits((ids_of(keys),), (scores,))

    def get(self, ids: Sequence[str]) -> dict[str, Row]:
        """The rows with these ids, compared with their checksums."""
        keys = {to_engine(one): one for one in ids}
        rows = self._answered(lambda view: view.rows_with(list(keys)))
        return {one: rows[key] for key, one in keys.items() if key in rows}

    def count(self, where: Where | None = None) -> int:
        """Number of rows, or of those that fulfil ``where``."""
        return self._answered(lambda view: view.rows if where is None else view.count(where))

    def records(self, where: Where | None = None) -> Iterator[tuple[str, Record]]:
        """Id and record of every row, or of those that fulfil ``where``, in order; read some thousands at a time."""
        view = self._view
        with self._tables.errors_in_one_line():
            rows = view.in_order(where)
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            with self._tables.errors_in_one_line():
                found = view.taken(rows[start : start + _ROWS_AT_ONCE], [ID, RECORD, SEAL_OF_RECORD])
                pairs = list(zip(ids_of(found[ID].to_pylist()), view.records(found), strict=True))
            yield from pairs

    def ids(self) -> Iterator[str]:
        """Ids of all rows, in order; no record is read."""
        return iter(self._answered(lambda view: view.all_ids()))

    def newest(self, count: int, offset: int = 0, where: Where | None = None) -> tuple[str, ...]:
        """Ids of the rows written last, the last first; no record is read."""

        def last(view: LanceSnapshot) -> tuple[str, ...]:
            rows = view.in_order(where)[::-1][offset : offset + count]
            return ids_of(view.taken(rows, [ID])[ID].to_pylist()[::-1]) if len(rows) else ()

        return self._answered(last)

    def verified(self) -> str:
        """Check every row; every vector and record is compared with its checksum."""
        view, found = self._view, super().verified()
        with self._tables.errors_in_one_line():
            rows = view.in_order(None)
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                part = view.taken(rows[start : start + _ROWS_AT_ONCE], [ID, VECTOR, SEAL_OF_VECTOR])
                if not np.isfinite(view.vectors(part)).all():
                    raise damaged(self._tables.label, "a vector holds NaN or infinity")
        return f"{found} in version {view.table.version} of a LanceDB table: checksums of rows, ids, finite numbers"

    def verified_files(self) -> str:
        """Compare every file with its checksum; in an object store LanceDB keeps none."""
        return super().verified_files() if self._tables.folder is None else self._tables.verified_files()

    def about(self) -> StoreFacts:
        """Describe the approximate index, or why all rows are compared."""
        view = self._view
        size, pays = 4 * view.rows * self.dimension, f"{PAYS_FROM_BYTES / 1e6:,.0f} MB"
        kept = f"{view.rows:,} vectors of {self.dimension} numbers ({size / 1e6:,.1f} MB)"
        if view.approximate:
            chosen = view.approximation
            how = f"IVF_HNSW_SQ, ef {chosen.ef}" if view.graph else f"IVF_RQ, probes {chosen.probes}"
            why = (
                f"{kept}: an index of near neighbours ({how}, refine {chosen.refine}) is faster than comparing all; of"
                f" up to {chosen.flat:,} rows that pass a filter, all are compared"
            )
        elif view.in_memory:
            why = f"{kept}: all are compared, in memory; an approximate index pays from {pays} on"
        else:
            why = f"{kept}: all are compared, which is slow; `rungwise index compact` makes an approximate index"
        return StoreFacts("lance", exact=not view.approximate, why=why)

    def _answered(self, ask: Callable[[LanceSnapshot], _T]) -> _T:
        """Answer of the held version; of the newest one, where another process has removed the files of this one."""
        view = self._view
        try:
            with self._tables.errors_in_one_line():
                return ask(view)
        except UserError:
            if self._tables.version() == view.table.version:
                raise
            self.refresh()
            with self._tables.errors_in_one_line():
                return ask(self._view)

    def _looked(self, before: LanceSnapshot | None) -> LanceSnapshot:
        table = self._tables.reading()
        with self._tables.errors_in_one_line():
            return LanceSnapshot(table, self._tables.label, before)

    @contextmanager
    def _writing(self) -> Iterator[Table]:
        """Hold the lock of those that write, and give the newest version; a change counts once the block ends well."""
        with self._tables.writing_alone():
            table = self._tables.writing()
            before = table.version
            yield table
            if table.version != before:
                stats: Any = table.stats()
                if stats["fragment_stats"]["num_fragments"] > _MANY_FILES:
                    self._put_together(table)
                self._tables.acknowledge(table)
                self._view = self._looked(self._view)

    def _add_columns(self, table: Table, names: set[str]) -> None:
        def added() -> None:
            new = sorted(names - set(table.schema.names))
            if len(table.schema.names) + len(new) > MOST_COLUMNS:
                raise UserError(
                    f"{self._tables.label}: the records have more entries than {MOST_COLUMNS} columns hold; keep fewer"
                    " of them"
                )
            if new:
                table.add_columns(nothing_of(new))

        self._tables.retried(added, table)

    def _first_free(self, table: Table) -> int:
        """The next place in the order of rows."""
        if self._tables.folder is not None and self._written is not None and self._written[0] == table.version:
            return self._written[1]
        with self._tables.errors_in_one_line():
            places = table.search().select([SEQ]).to_arrow()[SEQ].to_numpy()
        # In an object store others may write at the same time, and no two rows may have one place.
        return max(int(places.max(initial=-1)) + 1, time.time_ns() if self._tables.folder is None else 0)

    def _put_together(self, table: Table) -> None:
        """Merge small files and add new rows to the indexes; removes nothing that anybody may read."""
        self._tables.retried(lambda: table.optimize(cleanup_older_than=_NEVER))

    def _index(self, table: Table) -> None:
        """Make the indexes that pay and are not there."""
        from lancedb.index import BTree, HnswSq, IvfRq

        rows, there = table.count_rows(), {config.columns[0] for config in table.list_indices()}
        if VECTOR not in there and 4 * rows * self.dimension > PAYS_FROM_BYTES:
            near: Any = HnswSq(distance_type="dot")
            if rows > GRAPH_UP_TO_ROWS:
                near = IvfRq(distance_type="dot", num_partitions=partitions_of(rows))
            self._tables.retried(lambda: table.create_index(VECTOR, config=near))
        if rows >= SCALARS_PAY_FROM:
            for name in table.schema.names:
                if name not in there and (name == ID or name.startswith(("number_", "text_", "truth_"))):
                    self._tables.retried(partial(table.create_index, name, config=BTree()))


def _prepare(table: Table) -> None:
    from lancedb.index import FTS

    # Two commits at once that bring the same new id then conflict, and one is tried again; else both rows would stay.
    table.set_unenforced_primary_key(ID)  # type: ignore[attr-defined]

    # The words were taken from their texts before: they need only be parted.
    config = FTS(base_tokenizer="whitespace", lower_case=False, stem=False, remove_stop_words=False,
                 ascii_folding=False, max_token_length=None)  # fmt: skip
    table.create_index(TEXT, config=config)
