"""Dates as columns hold them and as people type them, and a slow reference that compares them as times."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from rungwise.index.filters import Operator

ZONES = ("", "Z", "+02:00", "-0330", " +05", "+00:00")
DAYS = ("2019-12-31", "2020-01-01", "2020-05-30", "2020-05-31", "2020-06-01", "9999-12-31")
CLOCKS = (
    "00:00",
    "00:00:00",
    "00:00:00.5",
    "10:20",
    "10:20:00",
    "10:20:30",
    "10:20:30.5",
    "10:20:30.50",
    "10:20:30.55",
)
LATE = ("23:59", "23:59:59", "23:59:59.5", "23:59:59.999999", "10:21", "09:59:59")
ROWS = st.one_of(
    st.sampled_from(DAYS),
    st.builds("{}{}{}{}".format, st.sampled_from(DAYS), st.sampled_from("T "), st.sampled_from(CLOCKS + LATE),
              st.sampled_from(ZONES)),
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(["2020", "2020-05", "2020-06", "2019", "9999", "9999-12", *DAYS]),
    st.builds("{}{}{}".format, st.sampled_from(DAYS), st.sampled_from("T "), st.sampled_from(CLOCKS + LATE)),
)
OPERATORS: tuple[Operator, ...] = ("==", "!=", "<", "<=", ">", ">=")
_FORMS = ("%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d")


def start_of(row: str) -> datetime:
    """The beginning of what a row's text says, as the clock there showed it."""
    clock = row[:10].replace("T", " ") + row[10:].replace("T", " ").rstrip("Z")
    for sign in "+-":
        clock = clock[:10] + clock[10:].split(sign)[0].rstrip()
    for form in _FORMS:
        try:
            return datetime.strptime(clock, form)
        except ValueError:
            continue
    raise AssertionError(row)


def covered(value: str) -> tuple[datetime, datetime]:
    """The first and the last microsecond that a value of a filter covers."""
    if len(value) == 4:
        return datetime(int(value), 1, 1), datetime(int(value), 12, 31, 23, 59, 59, 999999)
    if len(value) == 7:
        year, month = map(int, value.split("-"))
        days = [start_of(value + f"-{day:02}") for day in range(1, 32) if _is_day(year, month, day)]
        return days[0], days[-1] + timedelta(days=1, microseconds=-1) if year < 9999 else datetime.max
    start = start_of(value)
    if len(value) == 10:
        return start, start.replace(hour=23, minute=59, second=59, microsecond=999999)
    if len(value) == 16:
        return start, start.replace(second=59, microsecond=999999)
    digits = len(value.partition(".")[2])
    return start, start + timedelta(microseconds=10 ** (6 - digits) - 1)


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        datetime(year, month, day)
    except ValueError:
        return False
    return True


def fulfils(row: str, operator: Operator, value: str) -> bool:
    """Whether a date fulfils a condition, compared as times."""
    first, last = covered(value)
    at = start_of(row)
    if operator in ("==", "!="):
        return (first <= at <= last) == (operator == "==")
    edge = last if operator in ("<=", ">") else first
    compare: dict[str, Callable[[Any, Any], bool]] = {
        "<": operators.lt, "<=": operators.le, ">": operators.gt, ">=": operators.ge
    }  # fmt: skip
    return compare[operator](at, edge)
