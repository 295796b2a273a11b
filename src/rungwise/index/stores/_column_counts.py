"""Counts of the columns of rows: how many rows have a value, which values there are, and the least and the most.

Rows are counted batch by batch. Of a column with more different values than are kept, or with long ones, no numbers of
rows per value are given: they would be of some values only.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal

from rungwise.core.output import short_repr
from rungwise.data import is_date
from rungwise.index.filters import OWN

LONGEST_VALUE = 400
"""Number of characters of the longest text that is counted by itself: of a folder, a name or a tag."""
Type = Literal["number", "text", "truth", "list"]
"""Type of an entry of a record: whole numbers and fractions are one, lists of texts another."""
Value = str | float | bool
_FOLDER = "folder"
_ROWS_AT_ONCE = 4096
_TYPES: Mapping[type, Type] = {
    bool: "truth",
    int: "number",
    float: "number",
    str: "text",
    list: "list",
    tuple: "list",
}


@dataclass(frozen=True)
class ColumnCounts:
    """Counts of the values of one type in a column.

    Attributes:
        name: Name of the entry of records.
        type: Type of the values.
        rows: Number of rows that have such a value; a row with an empty list has none.
        dates: Whether all values are dates, as :func:`rungwise.data.is_date` knows them.
        least: The smallest number or the earliest date; None for others.
        most: The largest number or the latest date; None for others.
        values: Number of rows that have each value, for lists each text of theirs; numbers are in double precision.
            Rows in a folder with a long name are those of the next one around it whose name is not. Empty unless
            ``complete``.
        complete: Whether ``values`` has all values; else there are more than were to be kept, or longer ones.
    """

    name: str
    type: Type
    rows: int
    dates: bool
    least: str | float | None
    most: str | float | None
    values: Mapping[Value, int]
    complete: bool

    __repr__ = short_repr


@dataclass(frozen=True)
class StoreCounts:
    """Counts of the columns of a store.

    Attributes:
        columns: Counts for each column and type that a row has, in no particular order.
        rows: Number of rows that were counted: all, or some that were drawn at random.
        of: Number of rows of the store.
    """

    columns: tuple[ColumnCounts, ...]
    rows: int
    of: int

    __repr__ = short_repr

    @property
    def exact(self) -> bool:
        """Whether all rows were counted."""
        return self.rows >= self.of


class ColumnCounter:
    """Counts the values of one type in one column, batch by batch; at most ``most`` different ones are kept."""

    def __init__(self, name: str, type_: Type, most: int) -> None:
        self._name, self._type, self._most = name, type_, most
        self._rows = 0
        self._kept: Counter[Value] | None = Counter()
        self._dates = type_ == "text"
        self._least: Any = None
        self._last: Any = None

    @property
    def reads_values(self) -> bool:
        """Whether values are still looked at; else the number of rows, and the bounds of numbers, are enough."""
        return self._kept is not None or self._dates

    def add(self, rows: int, values: Mapping[Value, int]) -> None:
        """Count a batch: the number of its rows with a value, and the number of them for each value."""
        if not rows:
            return
        self._dates = self._dates and all(is_date(str(one)) for one in values)
        if self._type == "number" or self._dates:
            self.add_bounds(rows, min(values, default=None), max(values, default=None))
        else:
            self._rows += rows
        if self._kept is not None:
            if any(isinstance(one, str) and len(one) > LONGEST_VALUE for one in values):
                if self._name != _FOLDER:
                    self._kept = None
                    return
                values = _in_outer_folders(values)
            self._kept.update(values)
            if len(self._kept) > self._most:
                self._kept = None

    def add_bounds(self, rows: int, least: Any, most: Any) -> None:
        """Count a batch by the number of its rows with a value, and the least and the most of its values."""
        self._rows += rows
        if rows and least is not None:
            self._least = least if self._least is None else min(self._least, least)
            self._last = most if self._last is None else max(self._last, most)

    @property
    def counts(self) -> ColumnCounts:
        """What was counted."""
        in_order = self._type == "number" or self._dates
        least, most = (self._least, self._last) if in_order else (None, None)
        complete = self._kept is not None
        return ColumnCounts(
            self._name, self._type, self._rows, self._dates, least, most, dict(self._kept or {}), complete
        )


def _in_outer_folders(values: Mapping[Value, int]) -> Counter[Value]:
    """Numbers of rows in folders, of which one whose name is too long would else take the others with it."""
    found: Counter[Value] = Counter()
    for one, rows in values.items():
        folder = str(one)
        while len(folder) > LONGEST_VALUE:
            folder = folder[: LONGEST_VALUE + 1].rpartition("/")[0]
        found[folder] += rows
    return found


def count_records(records: Iterable[Mapping[str, Any]], most: int) -> tuple[tuple[ColumnCounts, ...], int]:
    """Counts of the columns of records, and the number of records; at most ``most`` values of a column are kept.

    >>> (legs,), rows = count_records([{"legs": 4}, {"legs": 2}, {"legs": 4}, {}], 10)
    >>> legs.name, legs.rows, legs.least, legs.most, legs.values, rows
    ('legs', 3, 2.0, 4.0, {4.0: 2, 2.0: 1}, 4)
    """
    counters: dict[tuple[str, Type], ColumnCounter] = {}
    rows, left = 0, iter(records)
    while batch := list(islice(left, _ROWS_AT_ONCE)):
        rows += len(batch)
        for name in dict.fromkeys(chain.from_iterable(batch)):
            if name.startswith(OWN):
                continue
            for type_, values in _by_type([record[name] for record in batch if name in record]):
                key = name, type_
                counter = counters.get(key) or counters.setdefault(key, ColumnCounter(name, type_, most))
                counter.add(*_counted(type_, values))
    return tuple(counter.counts for counter in counters.values()), rows


def _by_type(values: Sequence[Any]) -> Iterator[tuple[Type, list[Any]]]:
    """Values of each type that filters know."""
    found: dict[Type, list[Any]] = {}
    for kind in dict.fromkeys(map(type, values)):
        if (type_ := _TYPES.get(kind)) is not None:
            of_kind: Iterable[Any] = (one for one in values if type(one) is kind)
            if type_ == "list":
                of_kind = (one for one in of_kind if one and all(isinstance(text, str) for text in one))
            found.setdefault(type_, []).extend(of_kind)
    return ((type_, some) for type_, some in found.items() if some)


def _counted(type_: Type, values: Sequence[Any]) -> tuple[int, Mapping[Value, int]]:
    """Number of rows, and of those for each value."""
    each: Iterable[Value] = values
    if type_ == "list":
        each = chain.from_iterable(map(dict.fromkeys, values))
    elif type_ == "number":
        each = map(_number, values)
    return len(values), Counter(each)


def _number(value: float) -> float:
    """A number in double precision, which whole numbers of any size may be too large for."""
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max
