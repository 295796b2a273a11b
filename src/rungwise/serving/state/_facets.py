"""Summaries of the columns of pictures, for filters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rungwise.index import Item
from rungwise.serving.schemas.responses import ColumnType, ColumnValue, IndexColumn, Value

_MOST_VALUES = 30
_LONGEST_VALUE = 60
_FOLDER, _MOST_FOLDERS, _LONGEST_FOLDER = "folder", 1_000, 400
"""Column of which all values are listed, as far as there are so many: people look for a folder by its name."""
_COUNTED = 5_000
"""Number of different values of a column that are counted; a column with more has one for nearly every picture."""
_REPEATED = 1.5
"""Mean number of pictures per value from which on values are listed."""
_EXAMPLES = 3


@dataclass
class _Seen:
    type: ColumnType
    rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, None] = field(default_factory=dict)
    least: str | float | None = None
    most: str | float | None = None


def columns_of(items: Iterable[Item], of: int | None = None) -> tuple[IndexColumn, ...]:
    """Summaries of the columns of pictures.

    Args:
        items: All pictures, or a sample of them.
        of: Number of pictures in all; None if ``items`` are all.

    >>> pets = [Item(str(year), None, columns={"year": year, "kind": ("dog",)}) for year in (2019, 2021)]
    >>> [(column.name, column.type, column.rows, column.least, column.most) for column in columns_of(pets)]
    [('year', 'number', 2, 2019, 2021), ('kind', 'texts', 2, None, None)]
    >>> columns_of(pets, of=200)[1].values
    (ColumnValue(value='dog', rows=200),)
    """
    seen: dict[str, _Seen] = {}
    looked_at = 0
    for looked_at, item in enumerate(items, 1):  # noqa: B007
        for name, value in item.columns.items():
            longest = _LONGEST_FOLDER if name == _FOLDER else _LONGEST_VALUE
            _see(seen.setdefault(name, _Seen(_type(value))), value, longest)
    share = 1.0 if of is None or not looked_at else of / looked_at
    return tuple(_column(name, one, share) for name, one in seen.items())


def _see(column: _Seen, value: Value, longest: int) -> None:
    column.rows += 1
    texts = [shown for shown in _shown(value) if len(shown) <= longest]
    for text in texts:
        if len(column.examples) < _EXAMPLES:
            column.examples[text] = None
        if text in column.counts or len(column.counts) < _COUNTED:
            column.counts[text] += 1
    ordered = None if isinstance(value, bool | tuple) else value
    if isinstance(ordered, str) and not _is_date(ordered):
        return
    if ordered is not None and (column.least is None or _before(ordered, column.least)):
        column.least = ordered
    if ordered is not None and (column.most is None or _before(column.most, ordered)):
        column.most = ordered


def _column(name: str, seen: _Seen, share: float) -> IndexColumn:
    listed: tuple[ColumnValue, ...] = ()
    repeated = seen.counts.total() >= _REPEATED * len(seen.counts) and len(seen.counts) < _COUNTED
    if seen.counts and (repeated or name == _FOLDER):
        among = seen.counts.most_common(_MOST_FOLDERS if name == _FOLDER else _MOST_VALUES)
        listed = tuple(ColumnValue(text, max(1, round(rows * share))) for text, rows in among)
    rows = max(1, round(seen.rows * share))
    dates_or_numbers = seen.type in ("text", "number")
    least, most = (seen.least, seen.most) if dates_or_numbers else (None, None)
    return IndexColumn(name, seen.type, tuple(seen.examples), rows, least, most, listed)


def _type(value: Value) -> ColumnType:
    match value:
        case bool():
            return "truth value"
        case str():
            return "text"
        case tuple():
            return "texts"
        case _:
            return "number"


def _shown(value: Value) -> tuple[str, ...]:
    match value:
        case bool():
            return ("true" if value else "false",)
        case str():
            return (value,)
        case tuple():
            return value
        case _:
            return (f"{value:g}" if isinstance(value, float) else str(value),)


def _is_date(text: str) -> bool:
    """Whether a text begins like a date of ISO 8601, whose order is that of the text.

    >>> _is_date("2021-05-01T10:00:00"), _is_date("2021 was good")
    (True, False)
    """
    return len(text) >= 10 and text[4] == text[7] == "-" and (text[:4] + text[5:7] + text[8:10]).isdecimal()


def _before(one: str | float, other: str | float) -> bool:
    """Whether one value stands before another of the same type; values of different types have no order."""
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str) and one < other
    return one < other
