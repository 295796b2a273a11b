import json
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows, PackedPicture, ParquetCell, TarMember
from rungwise.index import WORDS, Condition, Item
from rungwise.index._items import ITEM, Items, from_record, ids_of_texts, to_record


def test_items_of_features_have_no_path(tmp_path: Path) -> None:
    data = ImageCaptions(("a", "b"), ("a dog",), np.array([1]), features=FeatureRows(np.zeros((2, 3), np.float32)))
    items = Items(data)[1:]
    assert items == [Item("b", None, ("a dog",), ("b#0",))]
    assert from_record("b", to_record(items[0], tmp_path), tmp_path) == items[0]


@pytest.mark.parametrize(("path", "stored"), [("photos/a.jpg", "../photos/a.jpg"), ("../a.jpg", None)])
def test_paths_beside_the_index_are_relative(tmp_path: Path, path: str, stored: str | None) -> None:
    home = tmp_path / "home"
    item = Item("a", (home / path).resolve())
    record = to_record(item, home / "index")
    assert record[ITEM]["path"] == (stored or item.path.as_posix())
    assert from_record("a", record, home / "index") == item
    assert to_record(item, None)[ITEM]["path"] == item.path.as_posix()


def test_damaged_records_are_noticed() -> None:
    with pytest.raises(KeyError):
        from_record("a", {"path": None}, None)
    with pytest.raises(TypeError):
        from_record("a", {"captions": "a dog", ITEM: {"path": None, "caption_ids": []}}, None)


def test_columns_stand_where_filters_see_them_and_words_together(tmp_path: Path) -> None:
    columns = {"title": "Red boat", "year": 2021, "tags": ("sea", "sun"), "sold": True, "file": "dir/quay.jpg"}
    facts = {"hash": "0a1b", "modified": "2021-07-01T10:00:00", "width": 640}
    item = Item("a", tmp_path / "a.jpg", ("a dog",), ("a#0",), {**columns, **facts})
    record = json.loads(json.dumps(to_record(item, tmp_path)))
    for condition in (
        Condition("year", ">=", 2021),
        Condition("tags", "has", "sea"),
        Condition("captions", "contains", "DOG"),
        Condition("sold", "==", True),
        Condition("width", "<", 641),
    ):
        assert condition.holds(record), condition
    assert sorted(record[WORDS].split("\n")) == ["Red boat", "a dog", "quay", "sea", "sun"]
    assert from_record("a", record, tmp_path) == item


@pytest.mark.parametrize("name", ["id", "path", "score", "captions", "rungwise.item"])
def test_columns_with_names_that_answers_use_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"a: no column can be called '{name}'"):
        to_record(Item("a", None, columns={name: "x"}), None)


def test_blank_texts_have_no_place() -> None:
    assert ids_of_texts([Item("a", None, ("x", " ", "x")), Item("b", None, ("x",))]) == {"x": ("a", "b")}


def record_of(**own: object) -> dict[str, object]:
    """Of a picture without captions."""
    return {"captions": [], ITEM: {"caption_ids": [], **own}}


@pytest.mark.parametrize("path", [7, ["a.jpg"], "a\0.jpg"])
def test_a_path_that_is_none_is_refused(path: object) -> None:
    with pytest.raises(TypeError):
        from_record("a", record_of(path=path), None)


@pytest.mark.parametrize("place", [{}, [], "x", {"offset": -1, "size": 1, "name": "a"}, {"row_group": 0, "row": 0}])
def test_a_place_that_is_none_is_refused(place: object) -> None:
    with pytest.raises(TypeError, match="place"):
        from_record("a", record_of(path="a.tar", place=place), None)


def test_a_place_needs_a_file() -> None:
    with pytest.raises(TypeError, match="place"):
        from_record("a", record_of(path=None, place={"offset": 0, "size": 1, "name": "a"}), None)


@pytest.mark.parametrize(
    "picture", [TarMember(Path("/data/0.tar"), 512, 10, "a.jpg"), ParquetCell(Path("/data/0.parquet"), 1, 2, "image")]
)
@pytest.mark.parametrize("folder", ["/data/index", "/elsewhere/index"])
def test_pictures_in_larger_files_come_back(picture: PackedPicture, folder: str) -> None:
    item = Item("a", picture, ("a dog",), ("a#0",))
    record = json.loads(json.dumps(to_record(item, Path(folder))))
    assert from_record("a", record, Path(folder)) == item
    assert Path(record[ITEM]["path"]).is_absolute() == (folder == "/elsewhere/index")


def test_a_relative_folder_is_that_of_the_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = Item("a", tmp_path / "one" / "a.jpg")
    stored = {}
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        stored[name] = to_record(item, Path("index"))[ITEM]["path"]
    assert stored == {"one": "../a.jpg", "two": str(item.path)}


@pytest.mark.parametrize("name", ["a.jpg", "../photos/a.jpg", "./a.jpg", "b/../a.jpg"])
def test_paths_are_straight_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    monkeypatch.chdir(photos)
    for path in (Path(name), photos / name):
        data = ImageCaptions(("a",), (), np.empty(0, np.int64), paths=(path,))
        assert Items(data)[0].path == photos / "a.jpg"
