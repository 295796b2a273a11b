import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import sealed
from rungwise.index import Index
from rungwise.index.layout import (
    SavedSearch,
    forget_search,
    keep_favourite,
    manifest,
    read_favourites,
    save_search,
    why_not_kept,
)
from rungwise.index.layout import _favourites as favourites
from rungwise.index.maintenance import verify_index
from tests.colour_model import ColourModel, colour_pictures

NAME = "favourites.jsonl"


def ids(folder: Path) -> list[str]:
    return [one.id for one in read_favourites(folder).pictures]


def saved(name: str, query: str = "red", where: str = "") -> SavedSearch:
    return SavedSearch(name, query, where, "2024-05-01T12:00:00Z")


def test_a_picture_is_a_favourite_until_the_mark_is_taken_away(tmp_path: Path) -> None:
    for one in ("a", "b", "a"):
        keep_favourite(tmp_path, one)
    assert sorted(ids(tmp_path)) == ["a", "b"]
    keep_favourite(tmp_path, "a", kept=False)
    keep_favourite(tmp_path, "never", kept=False)
    assert ids(tmp_path) == ["b"]
    assert read_favourites(tmp_path).pictures[0].when.endswith("Z")


def test_a_search_has_one_name_and_is_forgotten_by_it(tmp_path: Path) -> None:
    save_search(tmp_path, saved("beach", "a beach"))
    save_search(tmp_path, saved("summer", "", "year == 2020"))
    save_search(tmp_path, saved("beach", "a sandy beach"))
    assert [(one.name, one.query, one.where) for one in read_favourites(tmp_path).searches] == [
        ("summer", "", "year == 2020"),
        ("beach", "a sandy beach", ""),
    ]
    assert forget_search(tmp_path, "beach")
    assert not forget_search(tmp_path, "beach")
    assert [one.name for one in read_favourites(tmp_path).searches] == ["summer"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((" ", "red", ""), "name of a search has 1 characters"),
        (("x" * 101, "red", ""), "name of a search has 101 characters"),
        (("a", " ", ""), "neither words nor a filter"),
        (("a", "x" * 2001, ""), "query of a saved search: 2,001 characters"),
        (("a", "", "x" * 2001), "filter of a saved search: 2,001 characters"),
    ],
)
def test_what_is_no_search_is_one_line(given: tuple[str, str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        SavedSearch(*given, "")


def test_updates_compaction_and_an_index_in_its_place_keep_them(index: Index, tmp_path: Path) -> None:
    keep_favourite(index.folder, "0-red")
    save_search(index.folder, saved("reds"))
    index.grade("red", "0-red", "right")
    index.remove(["0-red"])
    index.compact()
    data = colour_pictures(tmp_path / "photos", ["red", "green"])
    index.update(data, ColourModel())
    manifest.refuse_strangers(index.folder)
    Index.build(data, ColourModel(), index.folder, overwrite=True)
    assert ids(index.folder) == ["0-red"]
    assert [one.name for one in read_favourites(index.folder).searches] == ["reds"]
    assert len(Index.open(index.folder).grades()) == 1


def test_verify_counts_them_and_names_a_damaged_line(index: Index) -> None:
    keep_favourite(index.folder, "0-red")
    save_search(index.folder, saved("reds"))
    (said,) = (one for one in verify_index(index.folder) if one.what == NAME)
    assert (said.wrong, said.found) == ("", "1 favourites, 1 saved searches")
    path = index.folder / NAME
    path.write_bytes(path.read_bytes().replace(b"0-red", b"1-red"))
    (said,) = (one for one in verify_index(index.folder) if one.what == NAME)
    assert f"{NAME}, line 1: damaged favourite" in said.wrong
    assert [one.name for one in read_favourites(index.folder).searches] == ["reds"]


@settings(max_examples=40)
@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30).filter(str.strip))
def test_any_text_is_an_id_and_a_name(tmp_path_factory: pytest.TempPathFactory, item_id: str, name: str) -> None:
    folder = tmp_path_factory.mktemp("favourites")
    keep_favourite(folder, item_id)
    save_search(folder, saved(name))
    found = read_favourites(folder)
    assert (found.pictures[0].id, found.searches[0].name, found.issues) == (item_id, name, ())


def test_lines_that_are_none_are_issues_and_the_others_count(tmp_path: Path) -> None:
    keep_favourite(tmp_path, "a")
    with (tmp_path / NAME).open("ab") as file:
        file.write(sealed({"kind": "picture", "id": "b", "kept": "yes", "when": ""}))
        file.write(sealed({"kind": "else", "kept": True}))
        file.write(sealed({"kept": True}))
        file.write(sealed({"kind": ["picture"], "id": 7, "kept": True, "when": ""}))
        file.write(b'{"kind": "pict')
    keep_favourite(tmp_path, "c")
    found = read_favourites(tmp_path)
    assert [one.id for one in found.pictures] == ["a", "c"]
    assert len(found.issues) == 5


def test_the_file_and_the_numbers_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(favourites, "MOST_BYTES", 1000)
    monkeypatch.setattr(favourites, "MOST_FAVOURITES", 3)
    monkeypatch.setattr(favourites, "MOST_SEARCHES", 1)
    for number in range(40):
        keep_favourite(tmp_path, f"p{number % 3}")
    assert (tmp_path / NAME).stat().st_size < 1300
    assert len(ids(tmp_path)) == 3
    with pytest.raises(UserError, match="there are 3 favourites"):
        keep_favourite(tmp_path, "another")
    save_search(tmp_path, saved("one"))
    with pytest.raises(UserError, match="there are 1 saved searches"):
        save_search(tmp_path, saved("two"))


@pytest.mark.slow  # whoever finds another one writing sleeps
def test_many_who_mark_at_once_lose_nothing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: keep_favourite(tmp_path, f"p{number}"), range(40)))
    assert len(ids(tmp_path)) == 40
    assert not read_favourites(tmp_path).issues


def test_under_an_address_nothing_is_kept_and_the_reason_is_said() -> None:
    place = Path("s3://bucket/index")
    assert why_not_kept(None)
    assert why_not_kept(place)
    assert read_favourites(None) == read_favourites(place) == favourites.Favourites()
    with pytest.raises(UserError, match="are not kept"):
        keep_favourite(place, "a")


def test_a_line_is_json_in_ascii(tmp_path: Path) -> None:
    keep_favourite(tmp_path, "犬")
    line = (tmp_path / NAME).read_bytes()
    assert line.isascii()
    assert json.loads(line)["id"] == "犬"
