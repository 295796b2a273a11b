"""Rows in an engine that keeps columns of one type: ids and texts, columns of records, checksums.

A record is kept whole as JSON. Beside it, every entry that a filter may ask for has a column of its own for each type
that it has ever had: ``number_year``, ``text_title``. Where such a column is never null, a row that has no such entry
holds a value there that no entry can have, so that a filter has two answers in the engine as it has in Python.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.index.filters import OWN
from rungwise.index.stores._base import Record
from rungwise.index.stores._column_counts import Type
from rungwise.index.stores._vector_files import damaged

ID, SEQ, VECTOR, LENGTH, RECORD, TEXT = "id", "seq", "vector", "length", "record", "words"
SEAL_OF_VECTOR, SEAL_OF_RECORD = "seal_of_vector", "seal_of_record"
"""Columns with checksums of a row's vector and record, so that a file that was altered does not go unnoticed."""

Kind = Literal["number", "text", "truth", "list", "folded"]
"""Kind of column for an entry. ``list`` is for ``has``, ``folded`` (lower case) for ``contains``."""

NO_NUMBER, NO_TEXT, NO_TRUTH = -sys.float_info.max, "", -1
"""Values of a column where the row has no such entry."""

_LEAST_NUMBER = math.nextafter(NO_NUMBER, 0)
ESCAPE = "\ue000"
"""First of the two characters that stand for one which UTF-8 cannot hold."""
_ESCAPED = {
    **{code: f"{ESCAPE}{chr(0x100 + code - 0xD800)}" for code in range(0xD800, 0xE000)},
    ord(ESCAPE): ESCAPE * 2,
}
_SIGN = re.compile("_([0-9a-f]+)_")
"""A character in the name of a column that such names cannot have."""
_UNESCAPED = {text: chr(code) for code, text in _ESCAPED.items()}


def to_engine(text: str) -> str:
    r"""Any text as Unicode that every engine takes, in the same order: names of files hold what UTF-8 cannot.

    >>> to_engine("dog"), len(to_engine("\udcff")), to_engine("\ud7ff") < to_engine("\udcff") < to_engine("\ue000")
    ('dog', 2, True)
    """
    return text if text.isascii() else text.translate(_ESCAPED)


def from_engine(text: str) -> str:
    """The text from which :func:`to_engine` made this."""
    if ESCAPE not in text:
        return text
    parts, at = [], 0
    while (place := text.find(ESCAPE, at)) >= 0:
        parts += [text[at:place], _UNESCAPED.get(text[place : place + 2], "")]
        at = place + 2
    return "".join([*parts, text[at:]])


def as_number(value: float) -> float:
    """A number as the engine compares it, in double precision, and above :data:`NO_NUMBER`."""
    try:
        return max(float(value), _LEAST_NUMBER)
    except OverflowError:
        return sys.float_info.max if value > 0 else _LEAST_NUMBER


def as_text(value: str) -> str:
    """A row's text in a form that differs from :data:`NO_TEXT`, that of a row without one."""
    return "=" + to_engine(value)


@lru_cache(maxsize=4096)
def column_of(kind: Kind, entry: str) -> str:
    """Name of the column for an entry of records, whatever the entry is called.

    >>> column_of("number", "year"), column_of("text", "Käse ")
    ('number_year', 'text__4b__e4_se_20_')
    """
    safe = "".join(one if one.isascii() and (one.islower() or one.isdigit()) else f"_{ord(one):x}_" for one in entry)
    if len(safe) > 120:
        safe = "__" + blake2b(entry.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{kind}_{safe}"


def entry_of(column: str) -> str | None:
    """Name of the entry whose column has this name; None where the entry's name is too long to stand in it.

    >>> entry_of("text__4b__e4_se_20_"), entry_of(column_of("text", "x" * 200))
    ('Käse ', None)
    """
    safe = column.partition("_")[2]
    return None if safe.startswith("__") else _SIGN.sub(lambda sign: chr(int(sign[1], 16)), safe)


def nothing_in(column: str) -> float | str:
    """Value of a column, named by :func:`column_of`, in a row that has no such entry."""
    return {"number": NO_NUMBER, "truth": NO_TRUTH}.get(column.partition("_")[0], NO_TEXT)


def entries(record: Record) -> Iterator[tuple[Type, str, Any]]:
    """Type, name and value of the entries of a record that filters see."""
    for entry, value in record.items():
        if entry.startswith(OWN):
            continue
        if isinstance(value, bool):
            yield "truth", entry, value
        elif isinstance(value, int | float):
            yield "number", entry, value
        elif isinstance(value, str):
            yield "text", entry, value
        elif isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
            yield "list", entry, value


def seals(keys: Sequence[str], contents: Sequence[str] | NDArray[Any]) -> NDArray[np.int64]:
    """(rows,) checksums of ids with their texts or vectors."""
    found = bytearray()
    for key, content in zip(keys, contents, strict=True):
        digest = blake2b(key.encode(), digest_size=8)
        digest.update(b"\0" + (content.encode() if isinstance(content, str) else content.tobytes()))
        found += digest.digest()
    return np.frombuffer(bytes(found), np.int64)


def require_sealed(
    label: str, keys: Sequence[str], wanted: NDArray[np.int64], contents: Sequence[str] | NDArray[Any]
) -> None:
    """Refuse rows whose texts or vectors are not those that were written.

    Args:
        label: Name of the place in messages.
        keys: (rows,) ids in the engine's form.
        wanted: (rows,) checksums that were written.
        contents: (rows,) texts, or (rows, D) vectors.
    """
    wrong = np.flatnonzero(seals(keys, contents) != wanted)
    if wrong.size:
        raise damaged(label, f"the row {keys[wrong[0]]!r} is not as it was written"[:200])


def to_json(row: str, record: Record) -> str:
    """A record as JSON; refuses one that holds what JSON cannot, by the id of its row."""
    try:
        return json.dumps(record, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"the record of {row!r} cannot be stored ({error}); give texts, finite numbers, truth values, and lists and"
            " mappings of them"
        ) from error
