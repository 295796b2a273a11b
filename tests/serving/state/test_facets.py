from rungwise.index import Item
from rungwise.serving.schemas.responses import ColumnValue
from rungwise.serving.state._facets import columns_of


def items(**columns: list[object]) -> list[Item]:
    rows = max(map(len, columns.values()))
    return [
        Item(str(row), None, columns={name: values[row] for name, values in columns.items() if values[row] is not None})
        for row in range(rows)
    ]


def test_types_ends_and_commonest_values() -> None:
    found = {
        column.name: column
        for column in columns_of(
            items(
                year=[2019, 2021.5, 2020, None],
                taken=["2021-05-01T10:00:00", "2019-01-01", None, "2020-02-02"],
                kind=["dog", "dog", "cat", "dog"],
                tags=[("sea", "sun"), ("sea",), (), ("sun", "sea")],
                good=[True, False, True, True],
                title=["One", "Two", "Three", "Four"],
            )
        )
    }
    assert [(one.name, one.type, one.rows) for one in found.values()] == [
        ("year", "number", 3),
        ("taken", "text", 3),
        ("kind", "text", 4),
        ("tags", "texts", 4),
        ("good", "truth value", 4),
        ("title", "text", 4),
    ]
    assert (found["year"].least, found["year"].most) == (2019, 2021.5)
    assert (found["taken"].least, found["taken"].most) == ("2019-01-01", "2021-05-01T10:00:00")
    assert (found["kind"].least, found["good"].least, found["tags"].most) == (None, None, None)
    assert found["kind"].values == (ColumnValue("dog", 3), ColumnValue("cat", 1))
    assert found["tags"].values == (ColumnValue("sea", 3), ColumnValue("sun", 2))
    assert found["title"].values == ()
    assert found["title"].examples == ("One", "Two", "Three")


def test_numbers_of_some_stand_for_all() -> None:
    (column,) = columns_of(items(kind=["dog", "dog", "cat", "cat"]), of=400)
    assert column.rows == 400
    assert column.values[0] == ColumnValue("dog", 200)


def test_values_of_different_types_under_one_name_do_no_harm() -> None:
    (column,) = columns_of(items(odd=["2021-05-01", 3, True, ("x",), "y" * 1000]))
    assert column.rows == 5
    assert column.examples == ("2021-05-01", "3", "true")


def test_no_pictures_have_no_columns() -> None:
    assert columns_of([], of=0) == ()


def test_all_folders_are_listed_though_each_has_one_picture() -> None:
    folders = [f"trips/{number:03} {'long ' * 20}" for number in range(100)]
    (column,) = columns_of(items(folder=folders))
    assert {one.value for one in column.values} == set(folders)
