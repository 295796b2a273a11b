"""Rows as a LanceDB table keeps them: which columns there are, and what a record becomes in them.

A record is kept whole as JSON. Beside it, every entry that a filter may ask for has a column of its own for each type
that it has ever had: ``number_year``, ``text_title``. Such a column is never null: a row that has no such entry holds a
value there that no entry can have, so that a filter has two answers in the engine as it has in Python.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core.errors import UserError
from rungwise.index.store import WORDS, Record, Vectors
from rungwise.index.where import OWN
from rungwise.index.words import words_of

if TYPE_CHECKING:
    import pyarrow as pa

ID, SEQ, VECTOR, LENGTH, RECORD, TEXT = "id", "seq", "vector", "length", "record", "words"
SEAL_OF_VECTOR, SEAL_OF_RECORD = "seal_of_vector", "seal_of_record"
"""Checksums of what a row holds, so that a file that was altered does not go unnoticed."""

Kind = Literal["number", "text", "truth", "list", "folded"]
"""What a filter may ask of an entry. ``list`` is for ``has``, ``folded`` (lower case) for ``contains``."""

MOST_COLUMNS = 2000
"""How many columns all entries together may take."""

NO_NUMBER, NO_TEXT, NO_TRUTH = -sys.float_info.max, "", -1
"""What stands in a column where the row has no such entry."""
_SQL_OF_NOTHING = {
    "number": f"cast({NO_NUMBER!r} as double)",
    "text": "''",
    "truth": "cast(-1 as tinyint)",
    "list": "''",
    "folded": "''",
}

_LEAST_NUMBER = math.nextafter(NO_NUMBER, 0)
_BETWEEN = "\U0010ffff"
"""Stands around each text of a list, and in no text: Unicode has no such character."""
_ESCAPE = "\ue000"
_ESCAPED = {
    **{code: f"{_ESCAPE}{chr(0x100 + code - 0xD800)}" for code in range(0xD800, 0xE000)},
    ord(_ESCAPE): _ESCAPE * 2,
}
_UNESCAPED = {text: chr(code) for code, text in _ESCAPED.items()}
_FOLDED = {**{code: chr(0x10F000 + code - 0xD800) for code in range(0xD800, 0xE000)}, ord(_BETWEEN): "\U0010fffd"}


def to_engine(text: str) -> str:
    r"""Any text as Unicode that every engine takes, in the same order: names of files hold what UTF-8 cannot.

    >>> to_engine("dog"), len(to_engine("\udcff")), to_engine("\ud7ff") < to_engine("\udcff") < to_engine("\ue000")
    ('dog', 2, True)
    """
    return text if text.isascii() else text.translate(_ESCAPED)


def from_engine(text: str) -> str:
    r"""The text that :func:`to_engine` made this of.

    >>> from_engine(to_engine("犬\udcff\ue000")) == "犬\udcff\ue000"
    True
    """
    if _ESCAPE not in text:
        return text
    parts, at = [], 0
    while (place := text.find(_ESCAPE, at)) >= 0:
        parts += [text[at:place], _UNESCAPED.get(text[place : place + 2], "")]
        at = place + 2
    return "".join([*parts, text[at:]])


def as_number(value: float) -> float:
    """A number as the engine compares it: in double precision.

    >>> as_number(3), as_number(-(10**400)) > NO_NUMBER
    (3.0, True)
    """
    try:
        return max(float(value), _LEAST_NUMBER)
    except OverflowError:
        return sys.float_info.max if value > 0 else _LEAST_NUMBER


def as_text(value: str) -> str:
    """A text that a row has, which differs from the one of a row that has none.

    >>> as_text("") == NO_TEXT
    False
    """
    return "=" + to_engine(value)


def as_list(values: Iterable[str]) -> str:
    """A list of texts as one, in which :func:`as_list` of one text stands if the list holds it.

    >>> as_list(["sea"]) in as_list(["beach", "sea"]), as_list(["sea"]) in as_list(["seaside"])
    (True, False)
    """
    texts = [to_engine(one).replace(_BETWEEN, f"{_ESCAPE}\U0010fffe") for one in values]
    return f"{_BETWEEN}{_BETWEEN.join(texts)}{_BETWEEN}" if texts else NO_TEXT


def as_folded(values: Iterable[str]) -> str:
    """Texts as one, in which :func:`sought_in_folded` of a part stands if one of them has this part in it."""
    texts = [one.lower().translate(_FOLDED) for one in values]
    return f"{_BETWEEN}{_BETWEEN.join(texts)}{_BETWEEN}" if texts else NO_TEXT


def sought_in_folded(part: str) -> str:
    """What to look for in :func:`as_folded`.

    >>> sought_in_folded("SEA") in as_folded(["The seaside"]), sought_in_folded("") in as_folded([""])
    (True, True)
    """
    return part.lower().translate(_FOLDED) or _BETWEEN


@lru_cache(maxsize=4096)
def column_of(kind: Kind, entry: str) -> str:
    """The column of the table for an entry of records, whatever the entry is called.

    >>> column_of("number", "year"), column_of("text", "Käse ")
    ('number_year', 'text__4b__e4_se_20_')
    """
    safe = "".join(one if one.isascii() and (one.islower() or one.isdigit()) else f"_{ord(one):x}_" for one in entry)
    if len(safe) > 120:
        safe = "__" + blake2b(entry.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{kind}_{safe}"


def filterable(record: Record) -> dict[str, Any]:
    """The columns that a record fills, with what stands in them.

    >>> filterable({"year": 2021, "hidden": {"x": 1}, "rungwise.item": "x"})
    {'number_year': 2021.0}
    """
    found: dict[str, Any] = {}
    for entry, value in record.items():
        if entry.startswith(OWN):
            continue
        if isinstance(value, bool):
            found[column_of("truth", entry)] = int(value)
        elif isinstance(value, int | float):
            found[column_of("number", entry)] = as_number(value)
        elif isinstance(value, str):
            found[column_of("text", entry)] = as_text(value)
            found[column_of("folded", entry)] = as_folded([value])
        elif isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
            found[column_of("list", entry)] = as_list(value)
            found[column_of("folded", entry)] = as_folded(value)
    return found


def nothing_of(columns: Iterable[str]) -> dict[str, str]:
    """Of new columns, in SQL, what the rows hold that were there before: constants, no text of a user.

    >>> nothing_of(["text_title"])
    {'text_title': "''"}
    """
    return {name: _SQL_OF_NOTHING[name.partition("_")[0]] for name in columns}


def schema_of(dimension: int, half: bool, metadata: Mapping[str, str]) -> pa.Schema:
    """Of a new table."""
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

    Raises:
        UserError: If a record holds what JSON cannot, or a number is too large for half precision.
    """
    import pyarrow as pa

    dimension, number = schema.field(VECTOR).type.list_size, schema.field(VECTOR).type.value_type
    with np.errstate(over="ignore"):
        stored = np.ascontiguousarray(vectors, np.float16 if pa.types.is_float16(number) else np.float32)
    if (large := np.flatnonzero(~np.isfinite(stored).all(axis=1))).size:
        raise UserError(f"{ids[large[0]]}: its vector is too large for half precision; keep this index in full")
    keys, texts = (
        [to_engine(one) for one in ids],
        [_json(one, record) for one, record in zip(ids, records, strict=True)],
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
            nothing = _nothing(field.name)
            values = [one.get(field.name, nothing) for one in filled]
        columns.append(pa.array(values, type=field.type) if not isinstance(values, pa.Array) else values)
    return pa.Table.from_arrays(columns, schema=schema)


def seals(keys: Sequence[str], contents: Sequence[str] | NDArray[Any]) -> NDArray[np.int64]:
    """(rows,) checksums of ids with what belongs to them.

    >>> seals(["a", "b"], ["x", "x"]).tolist() == seals(["a", "b"], ["x", "y"]).tolist()
    False
    """
    found = bytearray()
    for key, content in zip(keys, contents, strict=True):
        digest = blake2b(key.encode(), digest_size=8)
        digest.update(b"\0" + (content.encode() if isinstance(content, str) else content.tobytes()))
        found += digest.digest()
    return np.frombuffer(bytes(found), np.int64)


def vectors_of(column: pa.ChunkedArray | pa.Array, dimension: int) -> NDArray[Any]:
    """(rows, D) numbers of a column, as they are stored."""
    import pyarrow as pa

    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    parts = [one.flatten().to_numpy(zero_copy_only=False).reshape(-1, dimension) for one in chunks]
    if len(parts) == 1:
        return np.asarray(parts[0])
    return np.concatenate(parts) if parts else np.empty((0, dimension), np.float32)


def _nothing(column: str) -> Any:
    kind = column.partition("_")[0]
    return {"number": NO_NUMBER, "truth": NO_TRUTH}.get(kind, NO_TEXT)


def _json(row: str, record: Record) -> str:
    try:
        return json.dumps(record, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"the record of {row!r} cannot be stored ({error}); give texts, finite numbers, truth values, and lists and"
            " mappings of them"
        ) from error
