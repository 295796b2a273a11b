"""Counts of the columns of a LanceDB table, from the columns that filters use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from rungwise.index.stores._column_counts import ColumnCounter, StoreCounts, Type, Value
from rungwise.index.stores._engine_rows import as_text, column_of, entry_of, from_engine, nothing_in
from rungwise.index.stores.lance._rows import from_list
from rungwise.index.stores.lance._table_rows import TableRows

if TYPE_CHECKING:
    import pyarrow as pa

_TYPES: tuple[Type, ...] = ("number", "text", "truth", "list")
_AT_ONCE = 1 << 15
"""Number of rows that are read at a time: what is the same in many of them is then looked at once."""


def counted(rows: TableRows, most: int) -> StoreCounts:
    """Counts of the columns of a table; at most ``most`` different values of a column are kept."""
    counters = {column: ColumnCounter(name, type_, most) for column, name, type_ in _columns(rows)}
    for batch in rows.batches(list(counters), _AT_ONCE):
        for column, counter in counters.items():
            _count(counter, column, batch[column])
    found = (counter.counts for counter in counters.values())
    return StoreCounts(tuple(one for one in found if one.rows), len(rows), len(rows))


def columns_beside(rows: TableRows, known: Collection[str]) -> frozenset[str]:
    """Names of the entries that some row has, beside those that are known, whose columns are not looked at."""
    found = ((column, name) for column, name, _ in _columns(rows) if name not in known)
    return frozenset(name for column, name in found if rows.first_with(column))


def values(rows: TableRows, entry: str) -> Iterator[Any]:
    """The values of an entry, each at least once, from its columns alone."""
    for kind in _TYPES:
        if (column := column_of(kind, entry)) in rows.table.schema.names:
            for batch in rows.batches([column], _AT_ONCE):
                yield from (
                    _value(kind, one) for one in batch[column].unique().to_pylist() if one != nothing_in(column)
                )


def _value(kind: Type, stored: Any) -> str | float | bool | list[str]:
    """The value that the engine has as this."""
    match kind:
        case "text":
            return from_engine(stored[len(as_text("")) :])
        case "list":
            return list(from_list(stored))
        case "truth":
            return bool(stored)
    return int(stored) if stored.is_integer() else float(stored)


def _columns(rows: TableRows) -> Iterator[tuple[str, str, Type]]:
    """Names of the columns with the names and types of their entries."""
    for column in rows.table.schema.names:
        type_ = column.partition("_")[0]
        if "_" in column and type_ in _TYPES:
            name = entry_of(column)
            if name is None:
                name = _name_in_records(rows, column)
            if name is not None:
                yield column, name, cast("Type", type_)


def _name_in_records(rows: TableRows, column: str) -> str | None:
    """Name of the entry with a column, as the record of a row says that has one; None if no row has any."""
    kind: Any = column.partition("_")[0]
    record = rows.first_with(column)
    return next((name for name in record if column_of(kind, name) == column), None)


def _count(counter: ColumnCounter, column: str, found: pa.Array) -> None:
    """Count the values of some rows."""
    from pyarrow import compute

    present = found.filter(compute.not_equal(found, nothing_in(column)))
    if not len(present):
        return
    kind = column.partition("_")[0]
    if counter.reads_values:
        each = present.value_counts()
        counter.add(len(present), _values(kind, each.field(0).to_pylist(), each.field(1).to_pylist()))
    elif kind == "number":
        bounds = compute.min_max(present)
        counter.add_bounds(len(present), bounds["min"].as_py(), bounds["max"].as_py())
    else:
        counter.add_bounds(len(present), None, None)


def _values(kind: str, stored: list[Any], rows: list[int]) -> Mapping[Value, int]:
    """Number of rows for each value, from what the engine has for it."""
    if kind == "text":
        marked = len(as_text(""))
        return dict(zip((from_engine(one[marked:]) for one in stored), rows, strict=True))
    if kind == "list":
        found: Counter[Value] = Counter()
        for texts, many in zip(stored, rows, strict=True):
            for one in dict.fromkeys(from_list(texts)):
                found[one] += many
        return found
    if kind == "truth":
        return dict(zip(map(bool, stored), rows, strict=True))
    found = Counter()
    for one, many in zip(stored, rows, strict=True):  # 0.0 and -0.0 are two values to the engine, and one here
        found[one] += many
    return found
