"""What a filter means in an index: a date covers its day, a folder all that is below it, and a number is a number.

Stores compare texts letter by letter. So before a filter comes to a store, its conditions on dates and folders become
comparisons of texts that say what people mean, alike for every store. A value of a type that a column does not hold
would be equal to nothing, in silence: it becomes a value of that type, or is refused.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from rungwise.core import UserError
from rungwise.core.output import quoted, short_repr
from rungwise.core.text import normalised
from rungwise.data import is_date
from rungwise.index.filters._conditions import OWN, Both, Condition, Either, Expression, Not, Scalar, Where
from rungwise.index.filters._dates import Period, before, is_period, period, since

ColumnKind: TypeAlias = Literal[
    "dates in UTC", "dates", "years and months", "texts", "numbers", "truth values", "lists of texts", "others"
]
"""Kind of the values of a column, as far as filters care; ``others`` are of several kinds."""
Examples: TypeAlias = Callable[[str], Sequence[object]]
"""Gives some values of a column by its name."""

_FOLDER = "folder"
_ALONE = "/."
"""End of a folder's name in a filter that leaves out the folders below."""
_TEXTS: tuple[ColumnKind, ...] = ("dates in UTC", "dates", "years and months", "texts")
"""Kinds of texts; a column whose texts are of two of them is of the later."""
_IN_ORDER = re.compile(r"\d{4}(?:-\d\d)?", re.ASCII)
"""Texts whose letters are in the order of time beside dates."""
_NUMBER = re.compile(r"[+-]?(?:\d{1,64}(?:\.\d{0,64})?|\.\d{1,64})(?:[eE][+-]?\d{1,4})?", re.ASCII)
_LONGEST = 64
_UTC = ("Z", "+00:00", "+0000", "+00")
_OPTION = {"filter": "where"}


class KindError(UserError):
    """A filter compares a column with a value that is of another kind, or that could be several dates."""

    __module__ = "rungwise.index.filters"


@dataclass(frozen=True)
class UnderstoodWhere(Where):
    """A filter whose conditions are to be taken by the letter: :func:`understood` made it.

    Attributes:
        notes: What is to be said of how it was understood.
    """

    notes: tuple[str, ...] = field(default=(), compare=False)

    __repr__ = short_repr

    def and_without(self, ids: frozenset[str]) -> UnderstoodWhere:
        """The same filter with more ids left out."""
        return replace(self, without=self.without | ids)


def kinds_of(records: Iterable[Mapping[str, Any]]) -> dict[str, ColumnKind]:
    """Kinds of the columns of records; a column holds dates where each of its values does.

    >>> kinds_of([{"taken": "2020-05-31T10:20:30", "title": "2020-05-31"}, {"title": "a dog", "rungwise.item": {}}])
    {'taken': 'dates', 'title': 'texts'}
    """
    kinds: dict[str, ColumnKind] = {}
    for record in records:
        for name, value in record.items():
            known = kinds.get(name)
            if known == "others" or name.startswith(OWN) or value is None:
                continue
            if known == "texts" and isinstance(value, str):
                continue
            kind = _kind_of(name, value)
            if known is None or known == kind:
                kinds[name] = kind
            else:
                both_texts = known in _TEXTS and kind in _TEXTS
                kinds[name] = max(known, kind, key=_TEXTS.index) if both_texts else "others"
    return kinds


def _kind_of(name: str, value: object) -> ColumnKind:
    if isinstance(value, bool):
        return "truth values"
    if isinstance(value, int | float):
        return "numbers"
    if isinstance(value, list | tuple):
        return "lists of texts"
    if not isinstance(value, str):
        return "others"
    if name != _FOLDER and is_date(value):
        return "dates in UTC" if value.endswith(_UTC) else "dates"
    return "years and months" if _IN_ORDER.fullmatch(value) else "texts"


def understood(where: Where, kinds: Mapping[str, ColumnKind], examples: Examples = lambda name: ()) -> UnderstoodWhere:
    """The filter that people mean by this one.

    * A value that a column of dates is compared with covers its day, month, year, minute or second. Dates are compared
      as a clock on the wall shows them, with those of a column in UTC as a clock in UTC does; the offset from UTC of a
      value of the filter counts with such a column only, and a note says where it does not.
    * A text that is a number is that number for a column of numbers.
    * ``folder`` equals a folder in this one and in all below it; with ``/.`` at its end in this one alone.

    Args:
        where: Filter as it was typed. One that was understood before is given back as it is.
        kinds: Kinds of the columns by name; those that are missing are compared as the filter says.
        examples: Gives some values of a column: an error shows one, and they tell years from other digits.

    Raises:
        KindError: If a column is compared with a value of another kind: a column of dates with what is no date or could
            be several, one of numbers with what is none, one of texts with a number or a truth value, or by order with
            a date.

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
        of_kind = expression if kind == "others" else _of_kind(expression, kind, examples)
        if kind in ("dates", "dates in UTC"):
            return _of_dates(expression, kind, notes)
        return _in_folders(expression) if expression.column == _FOLDER else of_kind

    return UnderstoodWhere(tuple(map(meant, where.conditions)), where.without, tuple(notes))


def _of_kind(condition: Condition, kind: ColumnKind, examples: Examples) -> Expression:
    """The same condition with values that a column of this kind may hold, or an error that says what it holds."""
    column, operator = condition.column, condition.operator
    values = condition.value if isinstance(condition.value, tuple) else (condition.value,)

    def refused(remedy: str, but: str = "") -> KindError:
        some = examples(column)
        shown = next((one for one in some if isinstance(one, str) and not is_date(one)), some[0] if some else None)
        such = (
            ""
            if shown is None or isinstance(shown, bool)
            else f", such as {quoted(shown) if isinstance(shown, str) else str(shown)[:80]}"
        )
        holds = "texts" if kind in _TEXTS else kind
        return KindError(f"filter: {quoted(column)} holds {holds}{such}{but}; {remedy}", parameters=_OPTION)

    if kind == "lists of texts":
        if operator not in ("has", "contains"):
            raise refused("write has 'TEXT', or contains 'PART OF A TEXT'")
        return condition
    if operator == "has" or (operator == "contains" and kind not in _TEXTS):
        raise refused("write contains 'PART OF A TEXT'" if kind in _TEXTS else "compare with ==")
    if kind == "truth values":
        if others := [one for one in values if not isinstance(one, bool)]:
            raise refused(f"write true or false, without quotes, in place of {_shown(others[0])}")
    elif kind == "numbers":
        numbers = tuple(map(_number, values))
        for one, number in zip(values, numbers, strict=True):
            if number is None:
                raise refused(f"write a number in place of {_shown(one)}")
        if values != numbers:
            # Rows that were not looked at may hold the text.
            found = tuple(one for one in numbers if one is not None)
            given = replace(condition, value=found if isinstance(condition.value, tuple) else found[0])
            return Either((condition, given))
    elif kind in ("texts", "years and months"):
        if others := [one for one in values if not isinstance(one, str)]:
            raise refused(f"write a text in quotes in place of {_shown(others[0])}")
        is_order = operator in ("<", "<=", ">", ">=") and column != _FOLDER
        if is_order and kind == "texts" and _means_a_date(str(values[0]), lambda: examples(column)):
            raise refused(
                "write contains 'PART OF A TEXT', or the dates of the collection as 2020-05-31",
                f", which would be compared with {_shown(values[0])} letter by letter",
            )
    return condition


def _shown(value: Scalar) -> str:
    if isinstance(value, str):
        return quoted(value)
    return str(value).lower() if isinstance(value, bool) else str(value)[:80]


def _number(value: Scalar) -> int | float | None:
    """A number, also one that a text is; None where there is none."""
    if isinstance(value, bool):
        return None
    if not isinstance(value, str):
        return value
    text = value.strip() if len(value) <= _LONGEST else ""
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    if not math.isfinite(number):
        return None
    return int(text) if text.lstrip("+-").isdigit() else number


def _means_a_date(text: str, beside: Callable[[], Sequence[object]]) -> bool:
    """Whether a text is a date; digits alone are one only where the column has dates of more than digits."""
    if not text.strip().isdigit():
        return is_period(text)
    others = (one for one in beside() if isinstance(one, str) and not one.strip().isdigit())
    return is_period(text) and any(map(is_period, others))


def _of_dates(condition: Condition, kind: ColumnKind, notes: dict[str, None]) -> Expression:
    """A condition on a column of dates; parts of texts are compared as they stand."""
    column, values = condition.column, condition.value
    if condition.operator == "contains":
        return condition
    if isinstance(values, tuple):
        periods = [_period(column, one, kind, notes) for one in values]
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
        raise KindError(f"filter: {quoted(column)} holds dates, and {error}", parameters=_OPTION) from None
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
