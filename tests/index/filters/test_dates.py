from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.index.filters._dates import before, period, since
from tests.index.filters.dates import ROWS, VALUES, covered, start_of

SECOND = 10**9


def moment(at: datetime) -> int:
    since_the_first = at - datetime.min
    return (since_the_first.days * 86400 + since_the_first.seconds) * SECOND + since_the_first.microseconds * 1000


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        *((one, "2020-12-31") for one in (
            "2020-12-31", "2020/12/31", "2020.12.31", "2020:12:31", "20201231", 20201231, "31.12.2020", "31/12/2020",
            "12/31/2020", "31-12-2020", "31. 12. 2020", "31 12 2020", "31 December 2020", "31. Dec. 2020",
            "31-Dec-2020",
            "31st of December, 2020", "December 31, 2020", "Dec 31st 2020", "2020-Dec-31", "2020 december 31",
            " 2020-12-31 ", "2020–12–31", "２０２０-１２-３１",
        )),
        *((one, "2020-05-01") for one in ("2020-5-1", "2020-05-1", "2020:5:1", "1 May 2020", "May 1 2020", "20200501")),
        ("05.05.2020", "2020-05-05"), ("5/5/2020", "2020-05-05"), ("2020/5/5", "2020-05-05"),
        ("29.2.2020", "2020-02-29"),
        *((one, "2020-05") for one in ("2020-05", "2020-5", "2020/05", "05/2020", "05.2020", "May 2020", "2020 may")),
        ("Sept. 2020", "2020-09"), ("2020-12", "2020-12"), ("9999-12", "9999-12"),
        ("2020", "2020"), (2020, "2020"), ("9999", "9999"), ("0001", "0001"),
        *((one, "2020-05-31 10:20") for one in (
            "2020-05-31 10:20", "2020-05-31T10:20", "31.5.2020 10:20", "31 May 2020, 10:20", "20200531T1020",
            "2020:05:31 10:20", "2020-5-31t10:20",
        )),
        *((one, "2020-05-31 09:20:30") for one in ("2020-05-31T09:20:30", "20200531T092030", "2020-05-31 9:20:30")),
        ("2020-05-31T10:20:30.5", "2020-05-31 10:20:30.5"),
    ],
)  # fmt: skip
def test_a_spelling_with_one_meaning_is_read(typed: str | int, means: str) -> None:
    found = period(typed)
    first, last = covered(means)
    assert (found.start, found.offset) == (moment(first), None)
    assert found.end == moment(last) + 1000


@pytest.mark.parametrize(
    ("zone", "hours"), [("Z", 0), ("z", 0), (" UTC", 0), ("+02:00", 2), ("-0330", -3.5), (" +05", 5)]
)
def test_an_offset_is_read_with_the_time(zone: str, hours: float) -> None:
    found, plain = period(f"2020-05-31T10:20:30{zone}"), period("2020-05-31T10:20:30")
    assert found == (plain.start, plain.end, int(hours * 3600) * SECOND)
    assert found.utc.start == plain.start - int(hours * 3600) * SECOND


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("01/05/2020", "could be 2020-05-01 or 2020-01-05; write the one that is meant"),
        ("01.05.2020", "could be 2020-05-01 or 2020-01-05"),
        ("1-5-2020 10:20", "could be 2020-05-01 or 2020-01-05"),
        ("2020/05/01", "could be 2020-05-01 or 2020-01-05"),
        *((one, "could be several dates; write the year with four digits") for one in (
            "05/06/20", "31.12.99", "200501", "1-2-03"
        )),
        *((one, "is on no calendar") for one in ("2020-13-01", "2020-02-30", "31.2.2021", "0000", "2020-00-10")),
        *((one, "is on no clock") for one in ("2020-05-31T24:00", "2020-05-31 10:60", "2020-05-31 10:20:61")),
        *((one, "is no date; write a day as '2020-05-31'") for one in (
            "", " ", "yesterday", "today", "noon", "2020-05-31 noon", "2020T10:20", "2020-05 10:20", "10:20", "May",
            "31 Mai 2020", "2020-05-31+02:00", "2020.05", "99", "2020-W05", "1" * 5000,
            "2020-05-31T10:20:30.1234567890", "犬",
        )),
        *((one, "that number is no date") for one in (5, 0, -2020, 20.5, 10**400, 202005)),
    ],
)  # fmt: skip
def test_what_could_be_several_dates_or_none_is_refused_in_one_line(typed: str | float, said: str) -> None:
    with pytest.raises(UserError) as raised:
        period(typed)
    assert said in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
    assert len(str(raised.value)) < 300


@given(
    st.dates(date(1000, 1, 1)),
    st.sampled_from(["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y/%m/%d", "%d %B %Y", "%b %d, %Y", "%Y%m%d"]),
)
def test_whatever_is_read_is_the_day_that_was_written_or_is_refused(day: date, form: str) -> None:
    written = day.strftime(form)
    if set(form) & set("/.") and day.day <= 12 and day.day != day.month:
        with pytest.raises(UserError, match="could be .* or "):
            period(written)
    else:
        start = moment(datetime(day.year, day.month, day.day))
        assert period(written) == (start, start + 86400 * SECOND, None)


@given(ROWS, VALUES, st.sampled_from([timedelta(0), timedelta(microseconds=1)]))
def test_texts_are_before_a_moment_or_not_as_their_times_are(row: str, value: str, later: timedelta) -> None:
    if covered(value)[0] == datetime.max:
        return
    edge = covered(value)[0] + later
    record = {"taken": row}
    assert before("taken", moment(edge)).holds(record) == (start_of(row) < edge)
    assert since("taken", moment(edge)).holds(record) == (start_of(row) >= edge)


def test_a_row_without_a_date_is_neither_before_nor_after() -> None:
    for edge in (period("2020"), period("2020-05-31T10:20:30.5"), period("9999")):
        for record in ({}, {"taken": 2020}, {"taken": True}):
            for bound in edge.start, edge.end:
                assert not before("taken", bound).holds(record)
                assert not since("taken", bound).holds(record)


def test_moments_beyond_the_calendar_have_an_order_too() -> None:
    assert before("taken", period("9999").end).holds({"taken": "9999-12-31T23:59:59Z"})
    early = period("0001-01-01T00:30+02:00").utc
    assert early.start < 0
    assert since("taken", early.start).holds({"taken": "0001-01-01"})
