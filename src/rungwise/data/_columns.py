"""The further columns of a user's table, such as years, prices, tags and titles, and the types of their cells.

A table that knows types (JSON lines, Parquet) keeps its own. In a table of texts (CSV, TSV) a column of which every
cell is a number holds numbers, and likewise truth values and lists.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence

Value = str | bool | int | float | tuple[str, ...]
"""A cell after conversion: a text, a truth value, a number or a list of texts."""
Column = tuple[Value | None, ...]
"""(images,) a value for each image, None where it has none."""

RESERVED = frozenset({"id", "path", "score", "captions", "hash"})
"""Names with a meaning in every result; a user's column of such a name gets an underscore at its end."""
TAG_NAMES = frozenset({"tags", "tag", "keywords", "labels", "categories", "classes"})
"""Columns that hold lists, also where their text is joined by commas or has one part."""

_OWN = "rungwise."
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(\.\d{1,15})?([eE][+-]?\d{1,2})?", re.ASCII)
_TRUTH = {"true": True, "false": False}
_EXACT = 1 << 53
_DATE = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
    r"(?:[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z| ?[+-]\d\d(?::?\d\d)?)?)?",
    re.ASCII,
)
_MOST_PARTS = 1000


def usable(cell: object) -> object | None:
    """A cell as a text, a number, a truth value or a list of texts; None where it is empty.

    Dates become texts in the order of the calendar, numbers in lists become texts.

    Raises:
        TypeError: If it is something else, such as a mapping.

    >>> usable(" "), usable(float("nan")), usable(datetime.date(2021, 5, 1)), usable(["a", 7, ""])
    (None, None, '2021-05-01', ('a', '7'))
    """
    if isinstance(cell, decimal.Decimal):
        cell = float(cell)
    if isinstance(cell, bool) or (isinstance(cell, int) and abs(cell) <= _EXACT):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    if isinstance(cell, str):
        return cell.strip() or None
    if isinstance(cell, int):
        return str(cell)
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    if isinstance(cell, list | tuple):
        parts = [usable(one) for one in cell[:_MOST_PARTS]]
        if any(isinstance(one, tuple) for one in parts):
            raise TypeError("a list of lists")
        return tuple(dict.fromkeys(str(one) for one in parts if one is not None)) or None
    if cell is None:
        return None
    raise TypeError(f"a {type(cell).__name__}")


def leaves(name: str, cell: object, depth: int) -> Iterator[tuple[str, object]]:
    """The cells of a column of objects, each called by the names on its way; other cells stay what they are.

    Args:
        name: Name of the column.
        cell: Its cell.
        depth: Number of objects inside one another that are opened; deeper ones come as they are.

    >>> list(leaves("attrs", {"kind": "Shirt", "season": {"name": "Fall", "years": [2011, 2012]}}, 8))
    [('attrs.kind', 'Shirt'), ('attrs.season.name', 'Fall'), ('attrs.season.years', [2011, 2012])]
    >>> list(leaves("attrs", {"season": {"name": "Fall"}}, 1)), list(leaves("year", 2011, 8))
    ([('attrs.season', {'name': 'Fall'})], [('year', 2011)])
    """
    if not isinstance(cell, Mapping) or not depth:
        yield name, cell
        return
    for key, inner in cell.items():
        yield from leaves(f"{name}.{key}", inner, depth - 1)


def typed(name: str, cells: Sequence[object | None], *, parse: bool) -> Column:
    """The values of a column from cells that :func:`usable` gave.

    Texts that stand for numbers stay texts where one of them begins with a needless zero, as numbers of articles do.
    Texts joined by ``;`` without blanks are lists, as are lists in JSON.

    Args:
        name: Name of the column; :data:`TAG_NAMES` are lists.
        cells: (images,) usable cells, None where empty.
        parse: The cells come from a table of texts.

    >>> typed("year", ["2020", None, "2021"], parse=True), typed("code", ["007", "12"], parse=True)
    ((2020, None, 2021), ('007', '12'))
    >>> typed("kind", ["a;b", "c"], parse=True), typed("text", ["a; b", "c"], parse=True)
    ((('a', 'b'), ('c',)), ('a; b', 'c'))
    """
    there = [cell for cell in cells if cell is not None]
    if there and all(isinstance(cell, str) for cell in there):
        return _of_texts(name, cells, parse)
    if any(isinstance(cell, tuple) for cell in there):
        return tuple(_parts(cell, name) if cell is not None else None for cell in cells)
    if all(isinstance(cell, bool) for cell in there):
        return tuple(cells)  # type: ignore[arg-type]  # as just seen
    if all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in there):
        whole = all(isinstance(cell, int) for cell in there)
        return tuple(cell if cell is None or whole else float(cell) for cell in cells)  # type: ignore[arg-type,misc]
    return tuple(None if cell is None else _written(cell) for cell in cells)


def kind_of(column: Column) -> str:
    """Kind of the values of a column, in words: ``dates`` are texts, all of which :func:`is_date` takes for one.

    >>> kind_of(("2021-05-01", None)), kind_of(("2021-05-01", "unknown")), kind_of((2021, None))
    ('dates', 'texts', 'numbers')
    """
    first = next((value for value in column if value is not None), None)
    if isinstance(first, bool):
        return "truth values"
    if isinstance(first, int | float):
        return "numbers"
    if isinstance(first, tuple):
        return "lists of texts"
    is_dates = isinstance(first, str) and all(
        isinstance(one, str) and is_date(one) for one in column if one is not None
    )
    return "dates" if is_dates else "texts"


def is_date(text: str) -> bool:
    """Whether a text is a day as ISO 8601 writes it, or a time of a day; a blank may stand in place of the T.

    >>> is_date("2021-05-01"), is_date("2021-05-01 10:20:30.5+02:00"), is_date("2021-05"), is_date("2021-05-01 good")
    (True, True, False, False)
    """
    return _DATE.fullmatch(text) is not None


def own_name(name: str, taken: Mapping[str, object]) -> str:
    """Name of a column in results, given the names that are taken: reserved names get an underscore at their end.

    >>> own_name("score", {}), own_name("year", {}), own_name(" id ", {"id_": ()})
    ('score_', 'year', 'id__')
    """
    name = name.strip()
    start = 0
    while name.startswith(_OWN, start):
        start += len(_OWN)
    name = name[start:] or ("_" if start else "")
    while name in RESERVED or name in taken:
        name += "_"
    return name


def _of_texts(name: str, cells: Sequence[object | None], parse: bool) -> Column:
    texts = [cell for cell in cells if isinstance(cell, str)]
    is_tags = name.strip().lower() in TAG_NAMES
    if parse and not is_tags:
        if all(text.lower() in _TRUTH for text in texts):
            return tuple(_TRUTH[cell.lower()] if isinstance(cell, str) else None for cell in cells)
        if all(_NUMBER.fullmatch(text) for text in texts):
            whole = all("." not in text and "e" not in text.lower() for text in texts)
            number = int if whole else float
            return tuple(number(cell) if isinstance(cell, str) else None for cell in cells)
    joined = any(";" in text for text in texts) and not any(re.search(r";\s|\s;", text) for text in texts)
    if is_tags or joined or all(_json_list(text) is not None for text in texts):
        between = ";" if not is_tags or any(";" in text for text in texts) else ","
        return tuple(_parts(cell, name, between) if cell is not None else None for cell in cells)
    return tuple(cell if isinstance(cell, str) else None for cell in cells)


def _parts(cell: object, name: str, between: str = ";") -> tuple[str, ...] | None:
    if isinstance(cell, str):
        listed = _json_list(cell)
        cell = cell.split(between)[:_MOST_PARTS] if listed is None else listed
    parts = cell if isinstance(cell, list | tuple) else [_written(cell)]
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip())) or None


def _json_list(text: str) -> list[str] | None:
    """The texts of a list in JSON; None if the text is no such list."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in found):
        return None
    return [str(one) for one in found[:_MOST_PARTS]]


def _written(cell: object) -> str:
    return ("true" if cell else "false") if isinstance(cell, bool) else str(cell)
