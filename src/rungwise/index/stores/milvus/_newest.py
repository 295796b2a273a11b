"""The newest rows of a Milvus collection by their dates: Milvus sorts nothing, so where to cut is found by counting."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from rungwise.index.filters import Both, Condition, Either, Expression, Not, Where
from rungwise.index.stores._base import date_of, newest_first
from rungwise.index.stores._engine_rows import ID, RECORD, SEAL_OF_RECORD, from_engine
from rungwise.index.stores.milvus._collection import Collection
from rungwise.index.stores.milvus._filtered_rows import FilteredRows

_WASTE = 4
"""Multiple of the rows wanted that may be read: to read fewer needs more counts."""
_LEAST = 1000
"""Number of rows that are read without looking for a better place to cut."""
_FIRST, _LAST = datetime.datetime.min, datetime.datetime.max
_ANY = "0"
"""A text that is before all dates."""


def newest(kept: Collection, where: Where, count: int, offset: int, by: Sequence[str]) -> list[str]:
    """Ids of at most ``count`` rows, the newest by some columns first, after ``offset`` passed over."""
    if not by:
        return FilteredRows(kept, where).newest(count, offset)
    wanted = needed = offset + count
    while True:
        rows, cut = _since(kept, where, by, needed)
        dated = _ids(rows, by)
        if len(dated) >= wanted:
            return dated[offset:wanted]
        if cut == _ANY:
            break
        needed *= _WASTE  # Milvus counted rows that do not fulfil the filter
    found = dated[offset:]
    without = FilteredRows(kept, _and(where, Not(_dated(by, _ANY))))
    return found + without.newest(count - len(found), max(0, offset - len(dated)))


def _since(kept: Collection, where: Where, by: Sequence[str], count: int) -> tuple[FilteredRows, str]:
    """The rows from some date on, ``count`` at least where there are so many, and that date."""
    enough, cut = max(_WASTE * count, _LEAST), _ANY
    rows = FilteredRows(kept, _and(where, _dated(by, cut)))
    inside, outside = 0, int((_LAST - _FIRST).total_seconds())
    while rows.number > enough and outside - inside > 1:
        middle = (inside + outside) // 2
        later = (_FIRST + datetime.timedelta(seconds=middle)).isoformat()
        fewer = FilteredRows(kept, _and(where, _dated(by, later)))
        if fewer.number < count:
            outside = middle
        else:
            inside, rows, cut = middle, fewer, later
    return rows, cut


def _ids(rows: FilteredRows, by: Sequence[str]) -> list[str]:
    found = list(rows.kept.every(rows.only.text, [RECORD, SEAL_OF_RECORD]))
    pairs = zip((from_engine(row[ID]) for row in found), rows.kept.parsed(found), strict=True)
    return [
        one for one, _ in newest_first((one, date_of(record, by)) for one, record in pairs if rows.holds(one, record))
    ]


def _and(where: Where, condition: Expression) -> Where:
    return Where((*where.conditions, condition), where.without)


def _dated(by: Sequence[str], since: str) -> Expression:
    """Rows whose date (:func:`date_of`) is not before a text."""
    either: list[Expression] = []
    others: list[Expression] = []
    for name in by:
        either.append(Both((*others, Condition(name, ">=", since), Condition(name, "<", ":"))))
        others.append(Not(Both((Condition(name, ">=", _ANY), Condition(name, "<", ":")))))
    return Either(tuple(either))
