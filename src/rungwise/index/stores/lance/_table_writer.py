"""Changes to a LanceDB table: one at a time in a folder, and each counts once it is whole."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from rungwise.core import UserError, to_plain
from rungwise.index.stores._approximation import Approximation
from rungwise.index.stores._base import Record, Vectors
from rungwise.index.stores._engine_rows import ID, SEQ, VECTOR
from rungwise.index.stores.lance._description import APPROXIMATION
from rungwise.index.stores.lance._rows import MOST_COLUMNS, filterable, nothing_of, table_of
from rungwise.index.stores.lance._table_reader import TableReader
from rungwise.index.stores.lance._table_rows import ROWS_READ
from rungwise.index.stores.lance._tables import Tables
from rungwise.index.stores.lance._version_file import Counting
from rungwise.index.stores.lance.mapped import write_files

if TYPE_CHECKING:
    from lancedb.table import Table

_MANY_FILES = 64
"""Number of files of rows from which on a change puts them together."""
_CHANGED = 0.01
"""Share of the rows up to which those that changed are compared beside the mapped files, which stay as they are."""
_NEVER = timedelta(days=36500)

WantedFiles = Literal["none", "rows", "lists"]
"""Mapped files that a table should have: none, those of its rows, or inverted lists of near vectors as well."""


class TableWriter:
    """Writes to a table; ``reader`` goes on to each version that is written here."""

    def __init__(self, tables: Tables, reader: TableReader) -> None:
        self._tables, self._reader = tables, reader
        self._mapped: str | None = None  # name of the mapped files that will count once a change does
        self._written: tuple[int, int] | None = None  # the version that was written here, and the next place in order

    def upsert(self, ids: Sequence[str], vectors: Vectors, records: Sequence[Record]) -> None:
        """Insert or replace rows, which are checked already, in one commit."""
        filled = [filterable(record) for record in records]
        with self._changing() as table:
            self._add_columns(table, {name for one in filled for name in one})
            first = self._first_free(table)

            def change() -> Any:
                # Others may have added columns meanwhile.
                rows = table_of(ids, vectors, records, filled, first, table.schema)
                return table.merge_insert(ID).when_matched_update_all().when_not_matched_insert_all().execute(rows)

            self._tables.retried(change, table)
            self._written = int(table.version), first + len(ids)

    def delete(self, keys: Sequence[str]) -> int:
        """Delete rows by ids in the engine's form, in one commit; gives the number of rows deleted."""
        from lancedb.expr import col

        with self._changing() as table:
            deleted: Any = self._tables.retried(lambda: table.delete(col(ID).isin(keys)))
            return int(deleted.num_deleted_rows)

    def keep(self, settings: Approximation) -> None:
        """Search with these settings from now on, also when others open the table."""
        metadata = {APPROXIMATION: json.dumps(to_plain(settings))}
        with self._changing() as table:
            self._tables.retried(lambda: table.update_field_metadata({"path": VECTOR, "metadata": metadata}))

    def compact(
        self,
        readers_may_lag: timedelta,
        wanted: Callable[[Table], Mapping[str, Any]],
        mapped: Callable[[int, int], WantedFiles],
    ) -> None:
        """Merge files, bring all indexes up to date, make some, and remove old versions.

        Args:
            readers_may_lag: Age from which on versions are removed.
            wanted: Gives the indexes that are to be made: LanceDB's configurations by column.
            mapped: Mapped files that a table in a folder should have, by its rows and the dimension of its vectors.
        """
        with self._changing() as table:
            self._put_together(table)
            for column, config in wanted(table).items():
                self._tables.retried(partial(table.create_index, column, config=config))
            self._tables.acknowledge(table, self._mapped)  # before anything is removed that still counts
            self._tables.retried(lambda: table.optimize(cleanup_older_than=readers_may_lag))
        # What was written counts by now: nothing is lost where they cannot be made.
        if self._tables.folder is not None:
            with self._changing() as table:
                self._reader.refresh()  # others may have written in between
                self._bring_mapped_up_to_date(table, mapped)
            with self._tables.writing_alone():  # or files that another process is just writing would go
                self._tables.drop_mapped(readers_may_lag)

    def _bring_mapped_up_to_date(self, table: Table, mapped: Callable[[int, int], WantedFiles]) -> None:
        """Make mapped files of a table in a folder where they pay, and more than a few rows have changed since."""
        snapshot = self._reader.snapshot
        wanted = mapped(len(snapshot.rows), snapshot.rows.description.dimension)
        if wanted == "none":
            self._mapped = None
            return
        if (there := snapshot.mapped) is not None and there.changed <= _CHANGED * len(snapshot.rows):
            as_wanted = (there.files.lists is not None) == (wanted == "lists")
            if as_wanted and self._tables.mapped_is_whole():  # for which all of them is read
                return
        name = uuid4().hex
        folder = self._tables.mapped_folder(name)
        assert folder is not None
        write_files(folder, snapshot.rows, lists=wanted == "lists")
        for index in table.list_indices():  # of LanceDB's, which they take the place of
            if index.columns == [VECTOR]:
                self._tables.retried(partial(table.drop_index, index.name))
        self._mapped = name

    @contextmanager
    def _changing(self) -> Iterator[Table]:
        """Hold the lock of those that write, and give the newest version; a change counts once the block ends well."""
        with self._tables.writing_alone():
            table = self._tables.writing()
            before = Counting(table.version, self._tables.counting().mapped)
            self._mapped = before.mapped
            yield table
            if (table.version, self._mapped) != before:
                stats: Any = table.stats()
                if stats["fragment_stats"]["num_fragments"] > _MANY_FILES:
                    self._put_together(table)
                self._tables.acknowledge(table, self._mapped)
                self._reader.advance()

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
            places = table.search().select([SEQ]).to_batches(ROWS_READ).read_all()[SEQ].to_numpy()
        # In an object store others may write at the same time, and no two rows may have one place.
        return max(int(places.max(initial=-1)) + 1, time.time_ns() if self._tables.folder is None else 0)

    def _put_together(self, table: Table) -> None:
        """Merge small files and add new rows to the indexes; removes nothing that anybody may read."""
        self._tables.retried(lambda: table.optimize(cleanup_older_than=_NEVER))
