import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import Limits, UserError, limited
from rungwise.index import Both, Condition, Either, Not, Where, WhereError, check_columns, parse_where, write_where
from rungwise.index.filters import columns_of
from rungwise.index.filters._parser import DEEPEST, MOST_VALUES

YEAR = Condition("year", ">=", 2020)
BEACH = Condition("tags", "has", "beach")
RED = Condition("title", "contains", "red")
TWO_TO_THREE = Both((Condition("year", ">=", 2), Condition("year", "<=", 3)))


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("year >= 2020", (YEAR,)),
        ("year>=2020", (YEAR,)),
        ("year ≥ +2020", (YEAR,)),
        ("year >= 2020 and tags has 'beach'", (YEAR, BEACH)),
        ("YEAR = 1 AND x == 2", (Condition("YEAR", "==", 1), Condition("x", "==", 2))),
        ("year >= 2020 and (tags has 'beach' or not title contains \"red\")", (YEAR, Either((BEACH, Not(RED))))),
        ("tags has 'beach' or year >= 2020 and title contains 'red'", (Either((BEACH, Both((YEAR, RED)))),)),
        ("not (year >= 2020 and tags has “beach”)", (Not(Both((YEAR, BEACH))),)),
        ("not not year >= 2020", (Not(Not(YEAR)),)),
        ("tags not has 'beach'", (Not(BEACH),)),
        ("year not in (1, 2.5)", (Not(Condition("year", "in", (1, 2.5))),)),
        ("place in ('sea','lake')", (Condition("place", "in", ("sea", "lake")),)),
        (
            "year between 2 and 3 and x <> 4",
            (TWO_TO_THREE, Condition("x", "!=", 4)),
        ),
        ("sold == true and `shop name` != false", (Condition("sold", "==", True), Condition("shop name", "!=", False))),
        ('"not" < -1.5e3', (Condition("not", "<", -1500.0),)),
        (
            "attrs.articleType == ”Shirt” and a-b = »x»",
            (Condition("attrs.articleType", "==", "Shirt"), Condition("a-b", "==", "x")),
        ),
        ("»my column« = ‚x‘ and ’y’ == 'it’s'", (Condition("my column", "==", "x"), Condition("y", "==", "it’s"))),
        ("größe < .5", (Condition("größe", "<", 0.5),)),
        ("t == 'it''s' and u == \"a \\\"b\\\"\"", (Condition("t", "==", "it's"), Condition("u", "==", 'a "b"'))),
        ("folder contains '\\photos'", (Condition("folder", "contains", "\\photos"),)),
        ("t == ''", (Condition("t", "==", ""),)),
        ('"(" == 1 and not ")" == 2', (Condition("(", "==", 1), Not(Condition(")", "==", 2)))),
        ("rungwise.words contains 'a'", (Condition("rungwise.words", "contains", "a"),)),
    ],
)
def test_filters_are_read(text: str, conditions: tuple) -> None:
    assert parse_where(text) == Where(conditions)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", 0, "the filter is empty; write a condition, as in year >= 2020"),
        ("  ", 2, "the filter is empty"),
        ("year", 4, "expected a comparison"),
        ("year >=", 7, "expected a value"),
        ("year >= and x = 1", 8, "HERE and x = 1): expected a value"),
        ("tags has beach", 9, "put texts in quotes: 'beach'"),
        ("taken >= 2020-05-01", 9, "put dates and texts in quotes: '2020-05-01'"),
        ("x = 1.2.3", 4, "in quotes: '1.2.3'"),
        ("x = 5kg", 4, "in quotes: '5kg'"),
        ("2020 <= year", 0, "expected a column"),
        ("and = 1", 0, 'put the name in quotes, as in "and" == 1'),
        ("x = 1 y = 2", 6, "expected and, or, or the end"),
        ("(x = 1", 6, "expected )"),
        ("x = 1)", 5, "expected and, or, or the end"),
        ("x in 1", 5, "list the values"),
        ("x in ()", 6, "expected a value"),
        ("x = 'red", 4, "the quote is not closed; add '"),
        ("x && y", 2, "'&' means nothing here"),
        ("x = 1; drop table", 5, "';' means nothing here"),
        ("x between 1 or 2", 12, "expected and"),
        ("my column = 1", 3, 'put a column of several words in quotes, as in "my column" == 1'),
        ("x not = 1", 6, "expected a comparison"),
        ("x 'in' (1, 2)", 2, "expected a comparison"),
        ("x '==' 1", 2, "expected a comparison"),
        ("tags has 3", 5, "`has` takes a text"),
        ("x < true", 2, "truth values are not in order"),
        ("x = 1e999", 2, "inf is no text"),
        ("(" * (DEEPEST + 1) + "x = 1" + ")" * (DEEPEST + 1), DEEPEST, "write it flatter"),
        ("not " * 5000 + "x", None, "characters, where at most"),
        (f"x = {'9' * 500}", 4, "400 digits"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line_with_its_place(text: str, place: int | None, message: str) -> None:
    with pytest.raises(WhereError) as error:
        parse_where(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400
    if place is not None:
        assert error.value.place == place
        assert f"character {place + 1}" in str(error.value)


NAMES = st.text(min_size=1, max_size=8) | st.sampled_from(
    ["year", "not", "in", "a b", "größe", "x.y", "it's", "`", "(", ")", ",", "=="]
)
TEXTS = st.text(max_size=12)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = TEXTS | NUMBERS | st.booleans()
CONDITIONS = st.one_of(
    st.builds(Condition, NAMES, st.sampled_from(["==", "!="]), VALUES),
    st.builds(Condition, NAMES, st.sampled_from(["<", "<=", ">", ">="]), TEXTS | NUMBERS),
    st.builds(Condition, NAMES, st.just("in"), st.lists(VALUES, min_size=1, max_size=3).map(tuple)),
    st.builds(Condition, NAMES, st.sampled_from(["has", "contains"]), TEXTS),
)
EXPRESSIONS = st.recursive(
    CONDITIONS,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(Either, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(Both, st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


@settings(max_examples=40)
@given(st.lists(EXPRESSIONS, min_size=1, max_size=3).map(tuple))
def test_what_is_written_is_read_back(conditions: tuple) -> None:
    assert parse_where(write_where(Where(conditions))) == Where(conditions)


@given(st.text(alphabet=string.ascii_lowercase + " '\"`\\()=<>,.-019é“", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        where = parse_where(text)
    except WhereError as error:
        place = error.place
    else:
        place = 0
        assert parse_where(write_where(where)) == where
    assert 0 <= place <= len(text)


def test_a_long_list_of_values_is_refused_where_a_long_filter_is_allowed() -> None:
    with limited(query_characters=10_000), pytest.raises(WhereError, match="ask in several searches"):
        parse_where(f"x in ({', '.join(['1'] * (MOST_VALUES + 1))})")


def test_a_long_filter_is_refused_before_it_is_read() -> None:
    with pytest.raises(WhereError, match="at most"):
        parse_where("x" * (Limits.query_characters + 1))


def test_columns_that_no_picture_has_are_said_with_those_there_are() -> None:
    where = parse_where("Yaer > 2 or not tags has 'a' and x in (1, 2)")
    assert columns_of(where) == ("Yaer", "tags", "x")
    check_columns(where, {"Yaer", "tags", "x"})
    with pytest.raises(UserError, match="'Yaer'; did you mean year\\? There are: \"shop name\", tags, x, year"):
        check_columns(where, ["year", "tags", "x", "shop name"])
    for text, near in (
        ("articleType == 'Shirt'", "attrs.articleType"),
        ("attrs == 'Shirt'", "attrs.articleType"),
        ("shopname = 1", '"shop name"'),
    ):
        with pytest.raises(UserError, match=f"did you mean {near}\\?"):
            check_columns(parse_where(text), ["attrs.articleType", "shop name", "x"])
    with pytest.raises(UserError, match="There are: none"):
        check_columns(where, [])
    with pytest.raises(UserError, match="and 70 more"):
        check_columns(where, [f"c{n}" for n in range(100)])
