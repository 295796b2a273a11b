from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.index.stores import StoreCounts, count_records
from rungwise.serving.schemas.responses import ColumnValue, IndexColumn
from rungwise.serving.state._facets import Facets, uncounted


def facets(of: int | None = None, most: int = 1000, **columns: list[object]) -> Facets:
    """Facets of rows, given by columns; of as many rows drawn at random from ``of``."""
    rows = max(map(len, columns.values()), default=0)
    records: list[dict[str, Any]] = [
        {name: values[row] for name, values in columns.items() if values[row] is not None} for row in range(rows)
    ]
    counts, looked_at = count_records(records, most)
    return Facets(StoreCounts(counts, looked_at, looked_at if of is None else of))


def by_name(found: Facets) -> dict[str, IndexColumn]:
    return {column.name: column for column in found.columns}


def test_types_ends_and_commonest_values() -> None:
    found = by_name(
        facets(
            year=[2019, 2021.5, 2020, None],
            taken=["2021-05-01T10:00:00", "2019-01-01", None, "2020-02-02"],
            kind=["dog", "dog", "cat", "dog"],
            tags=[["sea", "sun"], ["sea"], [], ["sun", "sea"]],
            good=[True, False, True, True],
            title=["One", "Two", "2020-01-01", "Four"],
            captions=[["a dog"]] * 4,
        )
    )
    assert [(one.name, one.type, one.rows) for one in found.values()] == [
        ("year", "number", 3),
        ("taken", "date", 3),
        ("kind", "text", 4),
        ("tags", "texts", 3),
        ("good", "truth value", 4),
        ("title", "text", 4),
    ]
    assert (found["year"].least, found["year"].most) == (2019, 2021.5)
    assert (found["taken"].least, found["taken"].most) == ("2019-01-01", "2021-05-01T10:00:00")
    assert (found["kind"].least, found["good"].least, found["tags"].most, found["title"].least) == (None,) * 4
    assert found["kind"].values == (ColumnValue("dog", 3, False), ColumnValue("cat", 1, False))
    assert found["tags"].values == (ColumnValue("sea", 3, False), ColumnValue("sun", 2, False))
    assert found["good"].values == (ColumnValue("true", 3, False), ColumnValue("false", 1, False))
    assert found["title"].values == ()
    assert found["title"].examples == ("One", "Two", "2020-01-01")
    assert not any(one.about or one.more for one in found.values())


def test_rows_drawn_at_random_give_numbers_that_are_about_so_and_no_bounds() -> None:
    (kind, year) = facets(of=400, kind=["dog", "dog", "cat", "cat"], year=[2019, 2020, 2020, 2019]).columns
    assert (kind.rows, kind.about, kind.values[0]) == (400, True, ColumnValue("cat", 200, False))
    assert (year.rows, year.least, year.most) == (400, None, None)


def test_values_of_different_types_under_one_name_do_no_harm() -> None:
    (column,) = facets(odd=["2021-05-01", 3, 4, True, ["x"], "y" * 1000, {"z": 1}, 1e300]).columns
    assert (column.rows, column.type, column.least, column.most) == (7, "number", 3, 1e300)


def test_no_pictures_have_no_columns() -> None:
    assert facets().columns == ()


def test_the_commonest_values_are_listed_and_the_others_are_found() -> None:
    names = [f"person {number:02}" for number in range(40) for _ in range(2)] + ["Bob B."]
    found = facets(person=names)
    (column,) = found.columns
    assert (len(column.values), column.more) == (30, True)
    assert found.values("person", "BOB", k=5) == ((ColumnValue("Bob B.", 1, False),), False)
    beginning, _ = found.values("person", "b", k=1)
    assert [one.value for one in beginning] == ["Bob B."]
    assert found.values("person", "son", k=3)[1]
    assert found.values("person", "nobody", k=5) == ((), False)
    assert found.values("person", within="", k=5) == ((), False)  # it holds no folders
    assert found.values("shop", k=5) == ((), False)


def test_of_a_column_with_too_many_values_none_is_listed() -> None:
    found = facets(most=3, person=["a", "a", "b", "b", "c", "c", "d", "d"])
    (column,) = found.columns
    assert (column.rows, column.values, column.more) == (8, (), False)
    assert found.values("person", "a", k=5) == ((), False)


def test_columns_stand_as_before_and_those_that_are_not_counted_say_no_number() -> None:
    some = facets(b=["x", "x"], a=[1, 2])
    before = uncounted(some.columns)
    assert [(one.name, one.type, one.rows, one.least, one.values) for one in before] == [
        ("b", "text", None, None, ()),
        ("a", "number", None, None, ()),
    ]
    counts, rows = count_records([{"a": 1}, {"c": "z"}, {"b": "y"}], 10)
    assert [one.name for one in Facets(StoreCounts(counts, rows, rows), before).columns] == ["b", "a", "c"]


def test_all_folders_are_found_though_each_has_one_picture() -> None:
    folders = [f"trips/{number:03} {'long ' * 20}" for number in range(100)]
    found = facets(folder=folders)
    (column,) = found.columns
    assert column.values == (ColumnValue("trips", 100, True),)
    assert {one.value for one in found.values("folder", within="trips", k=1000)[0]} == set(folders)
    assert found.values("folder", "077", k=9)[0][0].value == folders[77]


@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "A b", "c/"[:1]]), min_size=1, max_size=4).map("/".join), min_size=1)
)
def test_folders_have_the_pictures_of_those_below_them(folders: list[str]) -> None:
    found = facets(folder=folders)
    below: Counter[str] = Counter()
    for folder in folders:
        below.update({outer for outer in {*folders, *_outer(folder)} if f"{folder}/".startswith(f"{outer}/")})
    left, seen = [""], {}
    while left:
        for one in found.values("folder", within=left.pop(), k=1000)[0]:
            seen[one.value] = one.rows
            if one.inner:
                left.append(one.value)
    assert seen == below
    assert {one.value: one.rows for one in found.values("folder", k=1000)[0]} == below


def _outer(folder: str) -> set[str]:
    parts = folder.split("/")
    return {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}


@pytest.mark.parametrize("sought", ["rome", "ROME", " Rome "])
def test_a_folder_is_sought_by_its_own_name_first(sought: str) -> None:
    found = facets(folder=["a/Jerome", "b/Rome", "Rome 2020/day"])
    assert [one.value for one in found.values("folder", sought, k=9)[0]] == [
        "b/Rome",
        "Rome 2020",
        "a/Jerome",
        "Rome 2020/day",
    ]


def test_accents_of_folders_may_be_signs_of_their_own() -> None:
    """As macOS writes them, while people type letters with accents as one sign, and the other way round."""
    apart, whole = "Cafe\u0301", "caf\u00e9"
    found = facets(folder=[apart, f"trips/{whole}"])
    for typed in (whole, apart, whole.upper()):
        values, _ = found.values("folder", typed, k=5)
        assert [one.value for one in values] == [apart, f"trips/{whole}"]


def test_a_folder_with_a_very_long_name_hides_no_other() -> None:
    """Its pictures are those of the outermost folders around it, whose names are not too long."""
    deep = "d/" * 1000 + "e"
    found = facets(folder=["trips/rome", "trips/rome", deep, "x" * 1000])
    values, more = found.values("folder", within="", k=5)
    assert [(one.value, one.rows) for one in values] == [("d", 1), ("trips", 2)]
    assert not more
    assert found.values("folder", "rome", k=5)[0] == (ColumnValue("trips/rome", 2, inner=False),)
