"""Rows of a LanceDB table: its columns, and the values that a record fills them with.

A column of an entry, as :mod:`rungwise.index.stores._engine_rows` names it, is never null.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.index.stores._base import WORDS, Record, Vectors
from rungwise.index.stores._bm25 import words_of
from rungwise.index.stores._engine_rows import (
    ESCAPE,
    ID,
    LENGTH,
    NO_NUMBER,
    NO_TEXT,
    RECORD,
    SEAL_OF_RECORD,
    SEAL_OF_VECTOR,
    SEQ,
    TEXT,
    VECTOR,
    as_number,
    as_text,
    column_of,
    entries,
    from_engine,
    nothing_in,
    seals,
    to_engine,
    to_json,
)

if TYPE_CHECKING:
    import pyarrow as pa

MOST_COLUMNS = 2000
"""Number of columns that all entries together may take."""

_SQL_OF_NOTHING = {
    "number": f"cast({NO_NUMBER!r} as double)",
    "text": "''",
    "truth": "cast(-1 as tinyint)",
    "list": "''",
    "folded": "''",
}

_BETWEEN = "\U0010ffff"
"""Stands around each text of a list, and in no text: Unicode has no such character."""
_ESCAPED = re.compile(f"{ESCAPE}(.)", re.DOTALL)
_FOLDED = {**{code: chr(0x10F000 + code - 0xD800) for code in range(0xD800, 0xE000)}, ord(_BETWEEN): "\U0010fffd"}


def as_list(values: Iterable[str]) -> str:
    """A list of texts as one, in which :func:`as_list` of one text stands if the list holds it."""
    texts = [to_engine(one).replace(_BETWEEN, f"{ESCAPE}\U0010fffe") for one in values]
    return f"{_BETWEEN}{_BETWEEN.join(texts)}{_BETWEEN}" if texts else NO_TEXT


def from_list(text: str) -> tuple[str, ...]:
    """The list that :func:`as_list` wrote as this text.

    >>> from_list(as_list(["sea", "", "sun"])), from_list(as_list([]))
    (('sea', '', 'sun'), ())
    """
    parts = text[1:-1].split(_BETWEEN) if text else ()
    return tuple(
        _ESCAPED.sub(lambda sign: _BETWEEN if sign[1] == "\U0010fffe" else from_engine(sign[0]), one) for one in parts
    )


def as_folded(values: Iterable[str]) -> str:
    """Texts as one, in which :func:`sought_in_folded` of a part stands if one of them has this part in it."""
    texts = [one.lower().translate(_FOLDED) for one in values]
    return f"{_BETWEEN}{_BETWEEN.join(texts)}{_BETWEEN}" if texts else NO_TEXT


def sought_in_folded(part: str) -> str:
    """Text that stands in :func:`as_folded` of texts one of which has this part in it."""
    return part.lower().translate(_FOLDED) or _BETWEEN


def filterable(record: Record) -> dict[str, Any]:
    """Columns that a record fills, with their values."""
    found: dict[str, Any] = {}
    for kind, entry, value in entries(record):
        if kind == "truth":
            found[column_of(kind, entry)] = int(value)
        elif kind == "number":
            found[column_of(kind, entry)] = as_number(value)
        elif kind == "text":
            found[column_of(kind, entry)] = as_text(value)
            found[column_of("folded", entry)] = as_folded([value])
        else:
            found[column_of(kind, entry)] = as_list(value)
            found[column_of("folded", entry)] = as_folded(value)
    return found


def nothing_of(columns: Iterable[str]) -> dict[str, str]:
    """SQL for the values of new columns in rows that were there before: constants, no text of a user."""
    return {name: _SQL_OF_NOTHING[name.partition("_")[0]] for name in columns}


def schema_of(dimension: int, half: bool, metadata: Mapping[str, str]) -> pa.Schema:
    """Schema of a new table."""
    import pyarrow as pa

    number = pa.float16() if half else pa.float32()
    fields = [
        (ID, pa.string()),
        (SEQ, pa.int64()),
        (VECTOR, pa.list_(number, dimension)),
        (LENGTH, pa.float32()),
        (RECORD, pa.string()),
        (TEXT, pa.string()),
        (SEAL_OF_VECTOR, pa.int64()),
        (SEAL_OF_RECORD, pa.int64()),
    ]
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields], metadata=dict(metadata))


def table_of(
    ids: Sequence[str],
    vectors: Vectors,
    records: Sequence[Record],
    filled: Sequence[Mapping[str, Any]],
    first: int,
    schema: pa.Schema,
) -> pa.Table:
    """Rows as a table of a schema, their order counted from ``first``.

    Refused are records that hold what JSON cannot, and numbers that are too large for half precision.
    """
    import pyarrow as pa

    dimension, number = schema.field(VECTOR).type.list_size, schema.field(VECTOR).type.value_type
    with np.errstate(over="ignore"):
        stored = np.ascontiguousarray(vectors, np.float16 if pa.types.is_float16(number) else np.float32)
    if (large := np.flatnonzero(~np.isfinite(stored).all(axis=1))).size:
        raise UserError(f"{ids[large[0]]}: its vector is too large for half precision; keep this index in full")
    keys, texts = (
        [to_engine(one) for one in ids],
        [to_json(one, record) for one, record in zip(ids, records, strict=True)],
    )
    known = {
        ID: keys,
        SEQ: np.arange(first, first + len(ids)),
        VECTOR: pa.FixedSizeListArray.from_arrays(pa.array(stored.reshape(-1)), dimension),
        LENGTH: np.linalg.norm(stored.astype(np.float32), axis=1).astype(np.float32),
        RECORD: texts,
        TEXT: [" ".join(words_of(record[WORDS])) if isinstance(record.get(WORDS), str) else "" for record in records],
        SEAL_OF_VECTOR: seals(keys, stored),
        SEAL_OF_RECORD: seals(keys, texts),
    }
    columns = []
    for field in schema:
        values = known.get(field.name)
        if values is None:
            nothing = nothing_in(field.name)
            values = [one.get(field.name, nothing) for one in filled]
        columns.append(pa.array(values, type=field.type) if not isinstance(values, pa.Array) else values)
    return pa.Table.from_arrays(columns, schema=schema)


def vectors_of(column: pa.ChunkedArray | pa.Array, dimension: int) -> NDArray[Any]:
    """(rows, D) numbers of a column, as they are stored."""
    import pyarrow as pa

    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [one.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension) for one in chunks]
    if len(parts) == 1:
        return np.asarray(parts[0])
    return np.concatenate(parts) if parts else np.empty((0, dimension), np.float32)
