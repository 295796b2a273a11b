"""What a filter means in an index: a date covers its day, and a folder all that is below it.

Stores compare texts letter by letter. So before a filter comes to a store, its conditions on dates and folders become
comparisons of texts that say what people mean, alike for every store.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from rungwise.core import UserError
from rungwise.core.output import quoted
from rungwise.core.text import normalised
from rungwise.data import is_date
from rungwise.index.filters._conditions import OWN, Both, Condition, Either, Expression, Not, Scalar, Where
from rungwise.index.filters._dates import Period, before, period, since

ColumnKind: TypeAlias = Literal["dates", "dates in UTC", "others"]
"""Kind of the values of a column, as far as filters care."""

_FOLDER = "folder"
_ALONE = "/."
"""End of a folder's name in a filter that leaves out the folders below."""
_UTC = ("Z", "+00:00", "+0000", "+00")
_OPTION = {"filter": "where"}


class DateError(UserError):
    """A filter compares a column of dates with a value that is no date, or that could be several."""

    __module__ = "rungwise.index.filters"


@dataclass(frozen=True)
class UnderstoodWhere(Where):
    """A filter whose conditions are to be taken by the letter: :func:`understood` made it.

    Attributes:
        notes: What is to be said of how it was understood.
    """

    notes: tuple[str, ...] = field(default=(), compare=False)

    def and_without(self, ids: frozenset[str]) -> UnderstoodWhere:
        """The same filter with more ids left out."""
        return replace(self, without=self.without | ids)


def kinds_of(records: Iterable[Mapping[str, Any]]) -> dict[str, ColumnKind]:
    """Kinds of the columns of records; a column holds dates where each of its values does.

    >>> kinds_of([{"taken": "2020-05-31T10:20:30", "title": "2020-05-31"}, {"title": "a dog", "rungwise.item": {}}])
    {'taken': 'dates', 'title': 'others'}
    """
    kinds: dict[str, ColumnKind] = {}
    for record in records:
        for name, value in record.items():
            if kinds.get(name) == "others" or name.startswith(OWN) or value is None:
                continue
            if not isinstance(value, str) or name == _FOLDER or not is_date(value):
                kinds[name] = "others"
            elif kinds.get(name) != "dates":
                kinds[name] = "dates in UTC" if value.endswith(_UTC) else "dates"
    return kinds


def understood(where: Where, kinds: Mapping[str, ColumnKind]) -> UnderstoodWhere:
    """The filter that people mean by this one.

    * A value that a column of dates is compared with covers its day, month, year, minute or second. Dates are compared
      as a clock on the wall shows them, with those of a column in UTC as a clock in UTC does; the offset from UTC of a
      value of the filter counts with such a column only, and a note says where it does not.
    * ``folder`` equals a folder in this one and in all below it; with ``/.`` at its end in this one alone.

    Args:
        where: Filter as it was typed. One that was understood before is given back as it is.
        kinds: Kinds of the columns by name; those that are missing hold no dates.

    Raises:
        DateError: If a column of dates is compared with what is no date, or could be several.

    >>> understood(Where((Condition("taken", "<=", "2020-05-31"),)), {"taken": "dates"}).conditions
    (Condition(column='taken', operator='<', value='2020-06-01'),)
    """
    if isinstance(where, UnderstoodWhere):
        return where
    notes: dict[str, None] = {}

    def meant(expression: Expression) -> Expression:
        match expression:
            case Not(of=of):
                return Not(meant(of))
            case Both(of=of):
                return Both(tuple(map(meant, of)))
            case Either(of=of):
                return Either(tuple(map(meant, of)))
        kind = kinds.get(expression.column, "others")
        if kind != "others":
            return _of_dates(expression, kind, notes)
        return _in_folders(expression) if expression.column == _FOLDER else expression

    return UnderstoodWhere(tuple(map(meant, where.conditions)), where.without, tuple(notes))


def _of_dates(condition: Condition, kind: ColumnKind, notes: dict[str, None]) -> Expression:
    """A condition on a column of dates; truth values, and parts of texts, are compared as they stand."""
    column, values = condition.column, condition.value
    if condition.operator in ("has", "contains") or isinstance(values, bool):
        return condition
    if isinstance(values, tuple):
        periods = [_period(column, one, kind, notes) for one in values if not isinstance(one, bool)]
        return Either(tuple(_within(column, start, end) for start, end in _joined(periods)))
    covered = _period(column, values, kind, notes)
    match condition.operator:
        case "==":
            return _within(column, covered.start, covered.end)
        case "!=":
            return Either((before(column, covered.start), since(column, covered.end)))
        case "<":
            return before(column, covered.start)
        case "<=":
            return before(column, covered.end)
        case ">":
            return since(column, covered.end)
        case _:
            return since(column, covered.start)


def _within(column: str, start: int, end: int) -> Expression:
    return Both((since(column, start), before(column, end)))


def _joined(periods: Iterable[Period]) -> list[tuple[int, int]]:
    """Start and end of periods, those that touch as one: an engine takes some hundred conditions."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted((one.start, one.end) for one in periods):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _period(column: str, value: Scalar, kind: ColumnKind, notes: dict[str, None]) -> Period:
    try:
        found = period(value)
    except UserError as error:
        raise DateError(f"filter: {quoted(column)} holds dates, and {error}", parameters=_OPTION) from None
    if found.offset is None:
        return found
    if kind == "dates in UTC":
        return found.utc
    notes[f"{quoted(column)} holds local times: the offset from UTC of {quoted(str(value))} was left aside"] = None
    return found


def _in_folders(condition: Condition) -> Expression:
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)
    if condition.operator not in ("==", "!=", "in") or not any(isinstance(one, str) for one in values):
        return condition
    others = [one for one in values if not isinstance(one, str)]
    folders = list(itertools.chain.from_iterable(_folders(one) for one in values if isinstance(one, str)))
    names = (*others, *(name for name, _ in folders))
    above = dict.fromkeys(name for name, alone in folders if not alone)
    below = [(f"{name}/", f"{name}{chr(ord('/') + 1)}") for name in above]
    if condition.operator == "!=":
        outside = (Either((Condition(_FOLDER, "<", first), Condition(_FOLDER, ">=", end))) for first, end in below)
        return Both((*(Condition(_FOLDER, "!=", name) for name in dict.fromkeys(names)), *outside))
    inside = (Both((Condition(_FOLDER, ">=", first), Condition(_FOLDER, "<", end))) for first, end in below)
    return Either((Condition(_FOLDER, "in", names), *inside))


def _folders(typed: str) -> Iterator[tuple[str, bool]]:
    """Names of the folder that a text names, and whether folders below it are left out.

    Signs between folders may be those of Windows; letters with accents may be written in one sign or in two, as file
    systems do.
    """
    yield typed, True
    alone = typed.endswith(_ALONE)
    for name in dict.fromkeys((typed, typed.replace("\\", "/"))):
        clean = name.removeprefix("./").removesuffix(_ALONE).strip("/")
        if clean and clean != ".":
            for form in dict.fromkeys((clean, normalised(clean, "NFC"), normalised(clean, "NFD"))):
                yield form, alone
