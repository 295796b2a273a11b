from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.index import Condition, Not, Where, parse_where
from rungwise.index.filters import ColumnKind, Columns, KindError, Operator, kinds_of, understood
from tests.index.filters.dates import OPERATORS, ROWS, VALUES, fulfils

KINDS = {"taken": "dates", "modified": "dates in UTC"}


@given(st.lists(ROWS, min_size=1, max_size=5), st.sampled_from(OPERATORS), VALUES)
def test_dates_compare_as_the_times_that_they_are(rows: list[str], operator: Operator, value: str) -> None:
    where = understood(Where((Condition("taken", operator, value),)), KINDS)
    records = [{"taken": row} for row in rows]
    expected = [fulfils(row, operator, value) for row in rows]
    assert [where.holds("", record) for record in records] == expected
    assert Columns(records).holding(where.conditions).tolist() == expected
    negated = understood(Where((Not(Condition("taken", operator, value)),)), KINDS)
    assert [negated.holds("", record) for record in [*records, {}]] == [*(not one for one in expected), True]


@given(st.lists(ROWS, min_size=1, max_size=5), VALUES, VALUES)
def test_between_and_in_cover_each_value(rows: list[str], one: str, other: str) -> None:
    between = understood(parse_where(f"taken between '{one}' and '{other}'"), KINDS)
    among = understood(parse_where(f"taken in ('{one}', '{other}')"), KINDS)
    for row in rows:
        assert between.holds("", {"taken": row}) == (fulfils(row, ">=", one) and fulfils(row, "<=", other))
        assert among.holds("", {"taken": row}) == (fulfils(row, "==", one) or fulfils(row, "==", other))


def test_many_days_that_follow_each_other_are_one_range() -> None:
    days = ", ".join(f"'2020-05-{day:02}'" for day in range(31, 0, -1))
    (condition,) = understood(parse_where(f"taken in ({days}, '2020-06', 2020)"), KINDS).conditions
    assert len(condition.of) == 1


def test_the_kind_of_a_column_is_seen_in_all_of_its_values() -> None:
    records = [
        {"taken": "2020-05-31T10:20:30+02:00", "modified": "2020-05-31T10:20:30Z", "day": "2020-05-31", "n": 2020},
        {"taken": "2020-05-31", "modified": "2020-05-31T10:20:30+00:00", "day": "about 1900", "folder": "2020-05-31"},
        {"sent": "2020-05", "when": "2020-05-31", "rungwise.item": "2020-05-31", "list": ["2020-05-31"]},
        {"when": 20200531, "mixed": "2020-05-31T10:20Z"},
        {"mixed": "2020-05-31T10:20", "modified": None},
    ]
    assert kinds_of(records) == {
        "taken": "dates", "modified": "dates in UTC", "day": "texts", "n": "numbers", "folder": "texts",
        "sent": "years and months", "when": "others", "list": "lists of texts", "mixed": "dates",
    }  # fmt: skip


@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">="])
def test_texts_that_merely_hold_a_date_are_compared_as_texts(operator: Operator) -> None:
    for value in ("2020-05-31", "01.05.2020", "yesterday"):
        where = Where((Condition("title", operator, value),))
        assert understood(where, {"title": "others"}).conditions == where.conditions
    assert understood(parse_where("taken contains '2020-05'"), KINDS).conditions == (
        Condition("taken", "contains", "2020-05"),
    )


def test_a_date_that_cannot_be_read_is_refused_with_its_column_and_its_parameter() -> None:
    for text in (
        "taken >= '01.05.2020'",
        "taken == 'yesterday'",
        "not taken in ('2020', 'x')",
        "taken > 7",
        "taken in (true)",
    ):
        with pytest.raises(KindError, match="filter: 'taken' holds dates, and .*; write ") as raised:
            understood(parse_where(text), KINDS)
        assert raised.value.parameters == {"filter": "where"}


def test_an_offset_counts_for_times_in_utc_and_is_left_aside_with_local_ones() -> None:
    noon = "2020-05-31T12:00:00+02:00"
    utc = understood(parse_where(f"modified == '{noon}'"), KINDS)
    assert (utc.holds("", {"modified": "2020-05-31T10:00:00Z"}), utc.notes) == (True, ())
    assert not utc.holds("", {"modified": "2020-05-31T12:00:00Z"})
    local = understood(parse_where(f"taken == '{noon}' or taken == '{noon}'"), KINDS)
    assert [local.holds("", {"taken": f"2020-05-31T12:00:00{zone}"}) for zone in ("", "+02:00", "-05:00")] == [True] * 3
    assert local.notes == (f"'taken' holds local times: the offset from UTC of '{noon}' was left aside",)


def test_a_filter_that_was_understood_stays_as_it_is() -> None:
    once = understood(parse_where("taken == '2020-05-31T10:20:30.5'"), KINDS)
    assert understood(once, KINDS) is once
    left_out = once.and_without(frozenset("a"))
    assert (understood(left_out, KINDS), left_out.without) == (left_out, frozenset("a"))


HELD: dict[str, ColumnKind] = {
    "year": "numbers", "code": "texts", "when": "texts", "ok": "texts", "good": "truth values",
    "tags": "lists of texts", "sent": "years and months", "folder": "texts", "mixed": "others", "day": "dates",
}  # fmt: skip
SHOWN = {"year": [2019], "code": ["2020", "001"], "when": ["2020-05-31", "unknown", "31.05.2020"], "ok": ["yes"],
         "good": [True], "tags": [["sea"]]}  # fmt: skip


def examples(column: str) -> list[object]:
    return list(SHOWN.get(column, ()))


@given(st.lists(st.integers(-30, 30).map(lambda tens: tens / 10) | st.none(), max_size=6), st.sampled_from(OPERATORS))
def test_a_text_that_is_a_number_is_compared_as_that_number(rows: list[float | None], operator: Operator) -> None:
    records = [{} if row is None else {"year": row} for row in rows]
    for text, number in (("2", 2), (" -1.5 ", -1.5), ("+.5", 0.5), ("1e0", 1), ("2.", 2)):
        where = understood(Where((Condition("year", operator, text),)), HELD)
        expected = [Condition("year", operator, number).holds(record) for record in records]
        assert [where.holds("", record) for record in records] == expected
        assert Columns(records).holding(where.conditions).tolist() == expected
        among = understood(parse_where(f"not year in ('{text}', 3)"), HELD)
        assert [among.holds("", one) for one in records] == [one.get("year") not in (number, 3) for one in records]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("year >= '2020-05-01'", "'year' holds numbers, such as 2019; write a number in place of '2020-05-01'"),
        ("year in (2020, 'x')", "'year' holds numbers, such as 2019; write a number in place of 'x'"),
        ("year == true", "'year' holds numbers, such as 2019; write a number in place of true"),
        ("year == '1e999'", "'year' holds numbers, such as 2019; write a number in place of '1e999'"),
        ("year contains '20'", "'year' holds numbers, such as 2019; compare with =="),
        ("code == 1", "'code' holds texts, such as '2020'; write a text in quotes in place of 1"),
        ("not code between 1 and 3", "'code' holds texts, such as '2020'; write a text in quotes in place of 1"),
        ("ok == true", "'ok' holds texts, such as 'yes'; write a text in quotes in place of true"),
        ("ok has 'yes'", "'ok' holds texts, such as 'yes'; write contains 'PART OF A TEXT'"),
        ("good == 'yes'", "'good' holds truth values; write true or false, without quotes, in place of 'yes'"),
        ("tags == 'sea'", "'tags' holds lists of texts, such as ['sea']; write has 'TEXT', or contains 'PART OF A"),
        ("sent >= 2020", "'sent' holds texts; write a text in quotes in place of 2020"),
        ("folder == 2020", "'folder' holds texts; write a text in quotes in place of 2020"),
    ],
)
def test_a_value_of_another_kind_is_refused_with_what_the_column_holds(text: str, said: str) -> None:
    with pytest.raises(KindError) as raised:
        understood(parse_where(text), HELD, examples)
    assert str(raised.value).startswith(f"filter: {said}")
    assert raised.value.parameters == {"filter": "where"}


@pytest.mark.parametrize("value", ["2020-05-01", "2020-05", "1.5.2020", "01/05/2020", "May 2020", "2020", "20200501"])
def test_texts_are_not_put_in_order_beside_a_date(value: str) -> None:
    for text in (f"when >= '{value}'", f"when < '{value}'", f"not when between '{value}' and 'x'"):
        with pytest.raises(
            KindError,
            match="'when' holds texts, such as 'unknown', which would be compared with .* letter by letter; w",
        ):
            understood(parse_where(text), HELD, examples)


def test_what_a_column_may_hold_is_compared_as_it_stands() -> None:
    for text in (
        "year == 2020", "code == '001'", "code < '2'", "code >= '2020'", "when == '31.05.2020'", "good == true",
        "when contains '2020'", "when > 'x'", "tags has 'sea'", "sent >= '2020-05'", "mixed >= '2020-05-01'",
        "mixed == 1", "folder >= '2020-05-01'", "ok in ('yes', 'no')",
    ):  # fmt: skip
        assert understood(parse_where(text), HELD, examples).conditions == parse_where(text).conditions


FOLDERS = st.sampled_from(
    ["Holidays", "Holidays/2020", "Holidays/2020/May", "Holidays 2", "Holidays-old", "holidays", "Holiday", "Holidays0",
     "x/Holidays", "100%_a", "100%_a/b", "100x_a", ""]
)  # fmt: skip


def is_in(folder: str, named: str) -> bool:
    parts, wanted = folder.split("/"), named.strip("/").split("/")
    return parts == wanted if named.endswith("/.") else parts[: len(wanted)] == wanted


@given(st.lists(FOLDERS, min_size=1, max_size=5), FOLDERS.filter(bool), st.sampled_from(["{}", "{}/", "./{}", "/{}/"]))
def test_a_folder_is_all_that_is_below_it(folders: list[str], named: str, form: str) -> None:
    records: list[dict[str, object]] = [{"folder": folder} for folder in folders]
    typed = form.format(named)
    expected = [is_in(folder, named) for folder in folders]
    for text, wanted in (
        (f"folder == '{typed}'", expected),
        (f"folder != '{typed}'", [not one for one in expected]),
        (f"not folder == '{typed}'", [not one for one in expected]),
        (
            f"folder in ('{typed}', 'Holidays/2020')",
            [is_in(one, named) or is_in(one, "Holidays/2020") for one in folders],
        ),
        (f"folder == '{typed.rstrip('/')}/.'", [folder == named for folder in folders]),
        (f"folder != '{typed.rstrip('/')}/.'", [folder != named for folder in folders]),
    ):
        where = understood(parse_where(text), {"folder": "others"})
        assert [where.holds("", record) for record in records] == wanted, text
        assert Columns(records).holding(where.conditions).tolist() == wanted, text


def test_signs_of_windows_and_both_forms_of_accents_name_one_folder() -> None:
    def holds(typed: str, folder: str) -> bool:
        return understood(Where((Condition("folder", "==", typed),)), {}).holds("", {"folder": folder})

    assert holds("Bilder\\Rom", "Bilder/Rom/Tag 1")
    assert holds("odd\\name", "odd\\name")
    for form, other in (("NFC", "NFD"), ("NFD", "NFC")):
        assert holds(unicodedata.normalize(form, "Bücher"), unicodedata.normalize(other, "Bücher") + "/2020")
    assert not understood(parse_where("folder != 'a'"), {}).holds("", {})
    assert understood(parse_where("folder == ''"), {}).holds("", {"folder": ""})
    assert not holds("", "a")
    mixed = understood(parse_where("folder in (1, true, 'a')"), {})
    assert [mixed.holds("", {"folder": one}) for one in ("a/b", 1, True, "b", 2, False)] == [True] * 3 + [False] * 3
    for text in ("folder > 'a'", "folder contains 'a'", "folder == 7", "folder == true"):
        assert understood(parse_where(text), {}).conditions == parse_where(text).conditions
