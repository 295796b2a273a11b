import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import limits
from rungwise.data import typed
from rungwise.data._columns import kind_of, own_name, usable
from rungwise.data.layouts._gatherer import Gatherer


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1", "2.5"], (1.0, 2.5)),
        (["1e3", "-7"], (1000.0, -7.0)),
        (["007", "8"], ("007", "8")),
        (["1234567890123456789"], ("1234567890123456789",)),
        (["nan", "1"], ("nan", "1")),
        (["TRUE", "false"], (True, False)),
        (['["a", "b"]', "[]"], (("a", "b"), None)),
        (["[a]", "b"], ("[a]", "b")),
        (["red;blue", "red"], (("red", "blue"), ("red",))),
        (["A dog; asleep", "x;y"], ("A dog; asleep", "x;y")),
        (["٣"], ("٣",)),
    ],
)
def test_texts_become_what_all_of_a_column_are(cells: list[str], values: tuple[object, ...]) -> None:
    assert typed("column", cells, parse=True) == values


def test_types_of_a_typed_table_stay_and_mixed_ones_become_texts() -> None:
    assert typed("year", ["2020"], parse=False) == ("2020",)
    assert typed("year", [2020, 1.5, None], parse=False) == (2020.0, 1.5, None)
    assert typed("year", [2020, "about 2020", True], parse=False) == ("2020", "about 2020", "true")
    assert typed("words", [("a",), "b"], parse=False) == (("a",), ("b",))


def test_tags_are_lists_whatever_joins_them() -> None:
    assert typed("tags", ["beach, sea", "sand"], parse=False) == (("beach", "sea"), ("sand",))
    assert typed("Keywords", ["1"], parse=True) == (("1",),)


@given(st.lists(st.none() | st.text(), min_size=1, max_size=4), st.booleans())
def test_any_texts_give_one_kind(cells: list[str | None], parse: bool) -> None:
    column = typed("column", [usable(cell) for cell in cells], parse=parse)
    assert len(column) == len(cells)
    assert {kind_of((value,)) for value in column if value is not None} <= {kind_of(column)}


def test_names_of_our_own_are_never_taken() -> None:
    assert own_name("rungwise.item", {}) == "item"
    assert own_name("rungwise.rungwise.", {}) == "_"


def test_no_table_makes_columns_without_end() -> None:
    gatherer = Gatherer(None)
    image = gatherer.image("a.jpg", "row 1")
    assert image is not None
    for number in range(limits().table_columns + 5):
        gatherer.column(image, f"column {number}", number, "row 1")
    data = gatherer.collection("many", "table")
    assert len(data.columns) == limits().table_columns
    assert data.issues[0].detail.startswith("5 beyond the first 200")


def test_a_column_holds_dates_where_every_value_is_one() -> None:
    assert kind_of(("2020-05-31", None, "2020-05-31 10:20:30+02:00")) == "dates"
    for other in ("2020-05", "31.12.2020", "2020-13-01", "2020-05-32", "2020-05-31T24:00", "about 1900", ""):
        assert kind_of(("2020-05-31", other)) == "texts"
