"""The rows of one version of a LanceDB table: chosen by filters, in order, and compared with their checksums."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rungwise.index.filters import Both, Where
from rungwise.index.stores._base import LETTERS_OF_DATE, LabelledVector, Record, Row
from rungwise.index.stores._engine_rows import (
    ID,
    RECORD,
    SEAL_OF_RECORD,
    SEAL_OF_VECTOR,
    SEQ,
    VECTOR,
    as_text,
    column_of,
    from_engine,
    nothing_in,
    require_sealed,
    to_engine,
)
from rungwise.index.stores._vector_files import damaged
from rungwise.index.stores.lance._description import TableDescription
from rungwise.index.stores.lance._filters import Compiled, all_of, compiled
from rungwise.index.stores.lance._rows import vectors_of

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import Table

_ASKED = 1000
"""Ids left out by a filter up to which they are left out here, and more of them by the engine."""

ROWS_READ = 1 << 16
"""Rows that the engine hands over at a time; by default it is a thousand, each time by way of another thread."""


@dataclass(frozen=True)
class EngineFilter:
    """A filter as a search of the engine takes it.

    Attributes:
        only: Expression for the engine.
        without: Ids, in the engine's form, that are left out of what it finds.
        conditions: Conditions of the filter; None if it has none.
    """

    only: Compiled
    without: frozenset[str]
    conditions: Where | None


class TableRows:
    """Rows of one version of a table, which never change. Its length is their number.

    Attributes:
        table: The table, opened at this version.
        label: Name of the table in messages.
        description: Description of the table.
    """

    def __init__(self, table: Table, label: str, description: TableDescription) -> None:
        self.table, self.label, self.description = table, label, description
        self._columns = frozenset(table.schema.names)
        self._number = int(table.count_rows())
        self._newest = lru_cache(maxsize=2)(self._order)
        self.passing = lru_cache(maxsize=64)(self._counted)  # pages of one search ask for the same filter again

    def __len__(self) -> int:
        return self._number

    def compiled(self, where: Where | None) -> Compiled:
        """Compile a filter without the ids that it leaves out."""
        return True if where is None else compiled(Both(where.conditions), self._columns)

    def filter(self, where: Where | None) -> EngineFilter:
        """The filter for a search: the engine leaves out ids only where they are many."""
        conditions = Where(where.conditions) if where is not None and where.conditions else None
        if where is None or len(where.without) > _ASKED:
            return EngineFilter(self._chosen(where), frozenset(), conditions)
        return EngineFilter(self.compiled(where), frozenset(map(to_engine, where.without)), conditions)

    def count(self, where: Where) -> int:
        """Number of rows that fulfil a filter."""
        if not where.without:
            return self.passing(where)
        return int(self.of(self._chosen(where), [SEQ]).num_rows)

    def places(self, where: Where) -> NDArray[np.int64]:
        """Places in the order of rows, in any order, of the rows that fulfil the conditions of a filter."""
        return np.asarray(self.of(self.compiled(where), [SEQ])[SEQ].to_numpy())

    def in_order(self, where: Where | None) -> NDArray[np.int64]:
        """The engine's numbers of the rows that fulfil a filter, in order of rows."""
        found = self.of(self._chosen(where), [SEQ])
        order = np.argsort(found[SEQ].to_numpy(), kind="stable")
        return np.asarray(found["_rowid"].to_numpy().astype(np.int64)[order])

    def newest(self, by: tuple[str, ...], count: int, offset: int, where: Where | None) -> list[str]:
        """Ids, in the engine's form, of the newest rows that fulfil a filter (:meth:`Store.newest`)."""
        order, only = self._newest(by), self._chosen(where)
        if only is not True:
            order = order.filter(np.isin(order["_rowid"].to_numpy(), self.of(only, [SEQ])["_rowid"].to_numpy()))
        keys: list[str] = order[ID].slice(offset, count).to_pylist()
        return keys

    def _order(self, by: tuple[str, ...]) -> pa.Table:
        """Ids and the engine's numbers of all rows, the newest first."""
        import pyarrow as pa
        from pyarrow import compute

        columns = [one for one in (column_of("text", name) for name in by) if one in self._columns]
        found = self.of(True, [ID, SEQ, *columns])
        dates = pa.array([""] * found.num_rows)
        for column in reversed(columns):  # a row's date is the first one that it has
            is_date = compute.match_substring_regex(found[column], f"^{as_text('')}[0-9]")
            said = compute.utf8_slice_codeunits(found[column], len(as_text("")), len(as_text("")) + LETTERS_OF_DATE)
            dates = compute.if_else(is_date, said, dates)
        dated = compute.greater(dates, "")
        # Of two rows without a date, the one that was written last comes first; of others, the first id.
        written = compute.if_else(dated, 0, found[SEQ])
        key = compute.if_else(dated, found[ID], "")
        table = pa.table({"date": dates, "written": written, "key": key, ID: found[ID], "_rowid": found["_rowid"]})
        order = [("date", "descending"), ("written", "descending"), ("key", "ascending")]
        return table.take(compute.sort_indices(table, order)).select([ID, "_rowid"])

    def all_ids(self) -> tuple[str, ...]:
        """Ids of all rows, in order."""
        found = self.of(True, [ID, SEQ])
        return ids_of(found[ID].take(np.argsort(found[SEQ].to_numpy(), kind="stable")).to_pylist())

    def of(self, only: Compiled, names: list[str]) -> pa.Table:
        """Columns of the rows that a filter lets through, with the engine's numbers of them (``_rowid``)."""
        query = self.table.search().with_row_id(True).select(names)
        if only is False:
            return query.limit(1).to_arrow().slice(0, 0)
        return (query if only is True else query.where(only)).to_batches(ROWS_READ).read_all()

    def batches(self, names: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        """Columns of all rows, about ``rows`` at a time, in no order."""
        if names:
            yield from self.table.search().select(names).to_batches(rows)

    def first_with(self, column: str) -> Record:
        """Record of a row that has an entry in a column; empty if there is none."""
        from lancedb.expr import col, lit

        present = col(column) != lit(nothing_in(column))
        names = [ID, RECORD, SEAL_OF_RECORD]
        found = self.table.search().where(present).limit(1).select(names).to_arrow()
        return next(iter(self.records(found)), {})

    def taken(self, numbers: NDArray[np.int64], names: list[str]) -> pa.Table:
        """Columns of rows by the engine's numbers, in order of rows."""
        if not len(numbers):
            return self.of(False, [*names, SEQ])
        found = self.table.take_row_ids(numbers.tolist()).select([*names, SEQ]).to_arrow().sort_by(SEQ)
        if found.num_rows != len(numbers):
            raise damaged(self.label, f"{len(numbers) - found.num_rows} rows are missing")
        return found

    def with_ids(self, keys: list[str]) -> dict[str, Row]:
        """Rows by ids, which are in the engine's form."""
        from lancedb.expr import col

        rows: dict[str, Row] = {}
        names = [ID, VECTOR, RECORD, SEAL_OF_VECTOR, SEAL_OF_RECORD]
        for start in range(0, len(keys), _ASKED):
            found = self.table.search().where(col(ID).isin(keys[start : start + _ASKED])).select(names).to_arrow()
            whole = zip(found[ID].to_pylist(), self.vectors(found), self.records(found), strict=True)
            rows.update({key: Row(np.array(vector, np.float32), record) for key, vector, record in whole})
        return rows

    def labelled(self, keys: Sequence[str], entry: str) -> dict[str, LabelledVector]:
        """Vectors and texts of an entry of the rows with ids in the engine's form; no record is read."""
        from lancedb.expr import col

        column = self.text_column(entry)
        names = [ID, VECTOR, SEAL_OF_VECTOR, *([] if column is None else [column])]
        rows: dict[str, LabelledVector] = {}
        for start in range(0, len(keys), _ASKED):
            asked = list(keys[start : start + _ASKED])
            found = self.table.search().where(col(ID).isin(asked)).select(names).to_arrow()
            labels = [None] * found.num_rows if column is None else texts_of(found[column])
            whole = zip(found[ID].to_pylist(), self.vectors(found), labels, strict=True)
            rows.update({key: LabelledVector(np.array(vector, np.float32), label) for key, vector, label in whole})
        return rows

    def text_column(self, entry: str) -> str | None:
        """Name of the column with the texts of an entry; None where no row has any."""
        column = column_of("text", entry)
        return column if column in self._columns else None

    def vectors(self, found: pa.Table) -> NDArray[Any]:
        """(rows, D) vectors of rows, compared with their checksums."""
        vectors = vectors_of(found[VECTOR], self.description.dimension)
        require_sealed(self.label, found[ID].to_pylist(), found[SEAL_OF_VECTOR].to_numpy(), vectors)
        return vectors

    def records(self, found: pa.Table) -> list[Record]:
        """Records of rows, compared with their checksums."""
        texts = found[RECORD].to_pylist()
        require_sealed(self.label, found[ID].to_pylist(), found[SEAL_OF_RECORD].to_numpy(), texts)
        return [json.loads(text) for text in texts]

    def _chosen(self, where: Where | None) -> Compiled:
        """Compile a filter with the ids that it leaves out."""
        from lancedb.expr import col

        only = self.compiled(where)
        if where is None or not where.without or only is False:
            return only
        return all_of([only, ~col(ID).isin(sorted(map(to_engine, where.without)))])

    def _counted(self, where: Where) -> int:
        """Number of rows that fulfil the conditions of a filter."""
        only = self.compiled(where)
        if isinstance(only, bool):
            return len(self) if only else 0
        return int(self.of(only, [SEQ]).num_rows)


def texts_of(column: pa.ChunkedArray) -> list[str | None]:
    """Texts of an entry as :func:`as_text` wrote them into its column; None for rows that have none."""
    marked = len(as_text(""))
    return [from_engine(text[marked:]) if text else None for text in column.to_pylist()]


def ids_of(keys: Iterable[str]) -> tuple[str, ...]:
    """Ids in the user's form."""
    return tuple(map(from_engine, keys))
