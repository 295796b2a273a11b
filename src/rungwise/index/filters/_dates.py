"""Dates in filters: what people type as the time that it covers, and that time as comparisons of ISO 8601 texts.

Columns hold dates as texts of ISO 8601, such as ``2020-05-31``, ``2020-05-31T10:20:30Z`` or ``2020-05-31 10:20+02:00``.
Their letters are in the order of time, except where one text says more of the time than the other, and for the sign
between day and time. So a comparison with a time becomes a few comparisons of texts, which every store can make.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import NamedTuple

from rungwise.core import UserError
from rungwise.core.output import quoted
from rungwise.core.text import normalised
from rungwise.index.filters._conditions import Both, Condition, Either, Expression, Not, Scalar

_SECOND = 10**9
_HOUR, _DAY = 3600 * _SECOND, 24 * 3600 * _SECOND
_LONGEST = 64
_AFTER_ALL = ":"
"""A text behind all that begin with a digit, in place of the year 10000, which has too many digits for this order."""
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
_NUMBER_OF_MONTH = {form: number for number, name in enumerate(_MONTHS, 1) for form in (name, name[:3])} | {"sept": 9}
_DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))
_CLOCK = re.compile(
    r"(?:T|,? )(\d\d?):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)? ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?\Z", re.ASCII | re.IGNORECASE
)
_COMPACT_CLOCK = re.compile(r"T(\d\d)(\d\d)(\d\d)?()(Z|[+-]\d\d(?::?\d\d)?)?\Z", re.ASCII | re.IGNORECASE)
_NTH = r"(?P<day>\d\d?)(?:st|nd|rd|th|\.)?"
_YEAR_FIRST = re.compile(r"(\d{4})(?:([-/.:])(\d\d?)\2(\d\d?)|[-/](\d\d?)|(\d\d)(\d\d))?", re.ASCII)
_YEAR_LAST = re.compile(r"(\d\d?)([-/ ]|\. ?)(\d\d?)\2(\d{4})", re.ASCII)
_MONTH_FIRST = re.compile(r"(\d\d?)[-/.](\d{4})", re.ASCII)
_NAMED = (
    re.compile(rf"{_NTH}[ -](?:of )?(?P<month>[a-z]+)\.?,?[ -](?P<year>\d{{4}})", re.ASCII),
    re.compile(rf"(?P<month>[a-z]+)\.? {_NTH},? (?P<year>\d{{4}})", re.ASCII),
    re.compile(rf"(?P<year>\d{{4}})[ -](?P<month>[a-z]+)\.?[ -]{_NTH}", re.ASCII),
    re.compile(r"(?P<month>[a-z]+)\.?,?[ -](?P<year>\d{4})", re.ASCII),
    re.compile(r"(?P<year>\d{4})[ -](?P<month>[a-z]+)\.?", re.ASCII),
)
_SHORT_YEAR = re.compile(r"\d\d?([-/ ]|\. ?)\d\d?\1\d\d|\d{6}", re.ASCII)
_AS = "write a day as '2020-05-31', a month as '2020-05', a year as '2020', a time as '2020-05-31T10:20'"


class Period(NamedTuple):
    """The time that a value of a filter covers, as a clock on the wall shows it.

    Attributes:
        start: Its beginning, in nanoseconds since the beginning of the year 1.
        end: The first moment behind it.
        offset: Nanoseconds by which that clock is ahead of UTC; None where the value does not say it.
    """

    start: int
    end: int
    offset: int | None

    @property
    def utc(self) -> Period:
        """The same time as a clock in UTC shows it."""
        return Period(self.start - (self.offset or 0), self.end - (self.offset or 0), 0)


def period(value: Scalar) -> Period:
    """The time that a value covers: a day, a month, a year, a minute, a second or a part of one.

    Any spelling with one meaning is read; English names of months are.

    Raises:
        UserError: If the value is no date, or could be several.

    >>> day = period("31.12.2020")
    >>> day == period("Dec 31, 2020") == period(20201231), (day.end - day.start) // 10**9
    (True, 86400)
    >>> period("01/05/2020")
    Traceback (most recent call last):
    rungwise.core.UserError: '01/05/2020' could be 2020-05-01 or 2020-01-05; write the one that is meant
    """
    if not isinstance(value, str) and not (value in range(1000, 10**4) or value in range(10**7, 10**8)):
        raise UserError(f"{'that truth value' if isinstance(value, bool) else 'that number'} is no date; {_AS}")
    shown, text = quoted(str(value)), str(value)
    if len(text) > _LONGEST:
        raise UserError(f"{shown} is no date; {_AS}")
    text = " ".join(normalised(text, "NFKC").translate(_DASHES).split()).lower()
    clock = _CLOCK.search(text) or _COMPACT_CLOCK.search(text)
    dates = set(_dates(text[: clock.start()] if clock else text))
    usable = [one for one in dates if _exists(*one)]
    if len(usable) > 1:  # day and month may be the other way round
        said = " or ".join(sorted((f"{year}-{month:02}-{day:02}" for year, month, day in usable), reverse=True))
        raise UserError(f"{shown} could be {said}; write the one that is meant")
    if not usable and _SHORT_YEAR.fullmatch(text[: clock.start()] if clock else text):
        raise UserError(f"{shown} could be several dates; write the year with four digits, a day as '2020-05-31'")
    if not usable or (clock and not usable[0][2]):
        wrong = "is on no calendar" if dates and not usable else "is no date"
        raise UserError(f"{shown} {wrong}; {_AS}")
    year, month, day = usable[0]
    if clock is None:
        return Period(_midnight(year, month, day), _end_of(year, month, day), None)
    hour, minute, second, fraction, zone = clock.groups()
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        raise UserError(f"{shown} is on no clock; {_AS}")
    start = _midnight(year, month, day) + int(hour) * _HOUR + (int(minute) * 60 + int(second or 0)) * _SECOND
    start += int((fraction or "0").ljust(9, "0"))
    covers = 10 ** (9 - len(fraction)) if fraction else _SECOND if second else 60 * _SECOND
    return Period(start, start + covers, None if zone is None else _offset(zone))


def is_period(text: str) -> bool:
    """Whether a text is a date in a spelling that :func:`period` knows, also one that could be several.

    >>> is_period("31.05.2020"), is_period("01/05/2020"), is_period("a dog")
    (True, True, False)
    """
    text = " ".join(normalised(text[: _LONGEST + 1], "NFKC").translate(_DASHES).split()).lower()
    if len(text) > _LONGEST:
        return False
    clock = _CLOCK.search(text) or _COMPACT_CLOCK.search(text)
    day = text[: clock.start()] if clock else text
    return any(_exists(*one) for one in _dates(day)) or _SHORT_YEAR.fullmatch(day) is not None


def before(column: str, moment: int) -> Expression:
    """Rows whose column holds a date before a moment; a date covers a time, whose beginning counts.

    >>> before("taken", period("2020-05-31").start)
    Condition(column='taken', operator='<', value='2020-05-31')
    """
    day, clock = _written(moment)
    if not clock:
        return Condition(column, "<", day)
    return Either(
        (
            Condition(column, "<", f"{day} {clock}"),
            Both((Condition(column, ">=", f"{day}T"), Condition(column, "<", f"{day}T{clock}"))),
            *_earlier_in_utc(column, day, clock),
        )
    )


def since(column: str, moment: int) -> Expression:
    """Rows whose column holds a date at a moment or after it: all with a date that are not :func:`before` it."""
    day, clock = _written(moment)
    if not clock:
        return Condition(column, ">=", day)
    with_blank = Both((Condition(column, ">=", f"{day} {clock}"), Condition(column, "<", f"{day}T")))
    found = Either((Condition(column, ">=", f"{day}T{clock}"), with_blank))
    return Both((found, *map(Not, _earlier_in_utc(column, day, clock))))


def _earlier_in_utc(column: str, day: str, clock: str) -> Iterator[Expression]:
    """Texts of an earlier time that stand behind this one only because they end with Z, where it goes on.

    >>> [one.value for one in _earlier_in_utc("taken", "2020-05-31", "10:20:30")]
    [('2020-05-31 10:20Z', '2020-05-31T10:20Z')]
    """
    lengths = [*([5] if len(clock) > 5 else []), *([8] if len(clock) > 8 else []), *range(10, len(clock))]
    if lengths:
        yield Condition(column, "in", tuple(f"{day}{sign}{clock[:length]}Z" for length in lengths for sign in " T"))


def _written(moment: int) -> tuple[str, str]:
    """Day and clock of a moment, as short as they can be written, so that no text of that moment is before it."""
    days, within = divmod(moment, _DAY)
    if days >= datetime.date.max.toordinal():
        return _AFTER_ALL, ""
    day = datetime.date.fromordinal(max(days, 0) + 1).isoformat()
    seconds, fraction = divmod(within, _SECOND)
    minutes, second = divmod(seconds, 60)
    clock = f"{minutes // 60:02}:{minutes % 60:02}"
    if second or fraction:
        clock += f":{second:02}"
    if fraction:
        clock += f".{fraction:09}".rstrip("0")
    return day, clock if within and days >= 0 else ""


def _dates(text: str) -> Iterator[tuple[int, int | None, int | None]]:
    """The dates that a text without a time may stand for: year, month and day, None where it names none."""
    if found := _YEAR_FIRST.fullmatch(text):
        year, sign, month, day, month_alone, joined_month, joined_day = found.groups()
        yield int(year), _number(month or month_alone or joined_month), _number(day or joined_day)
        if sign in ("/", "."):  # ISO 8601 has the hyphen alone, and cameras the colon
            yield int(year), int(day), int(month)
    elif found := _YEAR_LAST.fullmatch(text):
        one, _, other, year = found.groups()
        yield int(year), int(other), int(one)
        yield int(year), int(one), int(other)
    elif found := _MONTH_FIRST.fullmatch(text):
        yield int(found[2]), int(found[1]), None
    for form in _NAMED:
        if (found := form.fullmatch(text)) and (month_named := _NUMBER_OF_MONTH.get(found["month"])):
            yield int(found["year"]), month_named, _number(found.groupdict().get("day"))


def _number(digits: str | None) -> int | None:
    return None if digits is None else int(digits)


def _exists(year: int, month: int | None, day: int | None) -> bool:
    try:
        datetime.date(year, 1 if month is None else month, 1 if day is None else day)
    except ValueError:
        return False
    return True


def _midnight(year: int, month: int | None, day: int | None) -> int:
    return (datetime.date(year, month or 1, day or 1).toordinal() - 1) * _DAY


def _end_of(year: int, month: int | None, day: int | None) -> int:
    if day is not None:
        return _midnight(year, month, day) + _DAY
    if month is not None and month < 12:
        return _midnight(year, month + 1, 1)
    return datetime.date.max.toordinal() * _DAY if year == datetime.MAXYEAR else _midnight(year + 1, 1, 1)


def _offset(zone: str) -> int:
    if zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    size = int(digits[:2]) * _HOUR + int(digits[2:]) * 60 * _SECOND
    return -size if zone[0] == "-" else size
