"""Rows of a Milvus collection: the fields that records fill, and the values that fill them.

A record is kept whole as JSON in ``record``. The columns that were known when the collection was made have fields of
their own, which are never null; all others stand together in the JSON field ``columns``. A row whose columns are too
large for that has the mark ``cut``: filters let it through, and its record is checked by whoever asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rungwise.core import UserError
from rungwise.index.stores._base import WORDS, Record, Vectors
from rungwise.index.stores._bm25 import words_of
from rungwise.index.stores._engine_rows import (
    ID,
    LENGTH,
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
    nothing_in,
    seals,
    to_engine,
    to_json,
)
from rungwise.index.stores._id_sampling import sample_key

COLUMNS, CUT, DRAW = "columns", "cut", "draw"
"""Fields of a row; ``draw`` is its sample key, by which rows are looked through in parts of one size, or drawn."""
LONGEST = 65_535
"""Bytes of the longest text that Milvus holds in one field."""
_MOST_JSON = 60_000
FIELDS_OF_THEIR_OWN = ("number", "text", "truth")
_MOST_FIELDS = 40
"""Number of columns with fields of their own; Milvus takes 64 fields in all."""


def fields_of(columns: Mapping[str, str], partition: str = "") -> tuple[str, ...]:
    """The columns of records that get fields of their own, by the names of entries with their types.

    ``partition`` is the entry by whose texts rows are parted; empty for none.

    >>> fields_of({"year": "number", "tags": "list"}, partition="album")
    ('text_album', 'number_year')
    """
    found = [column_of("text", partition)] if partition else []
    found += [column_of(kind, name) for name, kind in columns.items() if kind in FIELDS_OF_THEIR_OWN]
    return tuple(dict.fromkeys(found))[:_MOST_FIELDS]


def rows_of(
    ids: Sequence[str], vectors: Vectors, records: Sequence[Record], first: int, fields: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Rows of a collection, their order counted from ``first``; ``fields`` are the columns with fields of their own.

    Raises:
        UserError: If an id or a record is larger than Milvus holds, or a record holds what JSON cannot.
    """
    keys = [to_engine(one) for one in ids]
    texts = [to_json(one, record) for one, record in zip(ids, records, strict=True)]
    for key, text in zip(keys, texts, strict=True):
        if len(key.encode()) > LONGEST or len(text) > LONGEST:
            raise UserError(
                f"{key[:60]!r}: its id or its record takes more than the {LONGEST:,} bytes that Milvus holds in a"
                " field; keep fewer columns and captions with it"
            )
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    of_vectors, of_records = seals(keys, np.ascontiguousarray(vectors)), seals(keys, texts)
    for at, (key, record) in enumerate(zip(keys, records, strict=True)):
        own, others, cut = _columns(record, frozenset(fields))
        yield {
            ID: key,
            SEQ: first + at,
            VECTOR: vectors[at],
            LENGTH: float(np.float32(lengths[at])),
            RECORD: texts[at],
            SEAL_OF_VECTOR: int(of_vectors[at]),
            SEAL_OF_RECORD: int(of_records[at]),
            COLUMNS: others,
            CUT: cut,
            DRAW: sample_key(ids[at]),
            **{name: own.get(name, nothing_in(name)) for name in fields},
        }


def _columns(record: Record, fields: frozenset[str]) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """Values of fields of their own, values of the JSON field, and whether something is too large for either."""
    own: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for kind, entry, value in entries(record):
        name = column_of(kind, entry)
        stored = _stored(kind, value)
        if name in fields:
            if isinstance(stored, str) and len(stored.encode()) > LONGEST:
                return {}, {}, True
            own[name] = stored
        else:
            others[name] = stored
    if isinstance(text := record.get(WORDS), str):
        others[TEXT] = sorted(set(words_of(text)))
    if len(json.dumps(others, ensure_ascii=False).encode()) > _MOST_JSON:
        return {}, {}, True
    return own, others, False


def _stored(kind: str, value: Any) -> Any:
    match kind:
        case "number":
            return as_number(value)
        case "truth":
            return int(value)
        case "text":
            return as_text(value)
    return [as_text(one) for one in value]
