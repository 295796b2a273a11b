"""Queries that people typed, kept beside an index."""

from datetime import date
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import sealed
from rungwise.index import Index
from rungwise.index.layout import (
    AskedQuery,
    add_queries,
    forget_queries,
    manifest,
    read_queries,
    require_kept,
)
from rungwise.index.layout import _asked_queries as queries
from rungwise.index.maintenance import verify_index
from tests.colour_model import ColourModel, colour_pictures

NAME = "queries.jsonl"
DAY = date(2024, 5, 1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Index.build(colour_pictures(tmp_path / "photos", ["red", "blue"]), ColourModel(), tmp_path / "index").folder


def add(folder: Path, *texts: str, day: date = DAY, days: int = 30, most: int = 100) -> None:
    add_queries(folder, texts, days=days, most=most, day=day)


def kept(folder: Path, day: date = DAY) -> list[tuple[str, int]]:
    return [(one.text, one.times) for one in read_queries(folder, day).kept]


def test_each_writing_counts_a_text_once_and_the_most_asked_stand_first(folder: Path) -> None:
    add(folder, "a red boat", "blue")
    add(folder, "blue", day=date(2024, 5, 2))
    assert kept(folder) == [("blue", 2), ("a red boat", 1)]
    first = read_queries(folder, DAY).kept[0]
    assert first == AskedQuery("blue", 2, "2024-05-02", "2024-06-01")
    assert not [one for one in folder.iterdir() if one.name.endswith(".partial")]


def test_a_query_goes_after_its_days_whether_a_server_runs_or_not(folder: Path) -> None:
    add(folder, "old")
    add(folder, "new", day=date(2024, 5, 20))
    assert kept(folder, date(2024, 5, 31)) == [("new", 1), ("old", 1)]
    assert kept(folder, date(2024, 6, 1)) == [("new", 1)]
    assert b"old" in (folder / NAME).read_bytes()
    add(folder, day=date(2024, 6, 1))
    assert b"old" not in (folder / NAME).read_bytes()
    add(folder, day=date(2025, 6, 1))
    assert not (folder / NAME).exists()


def test_those_asked_longest_ago_make_room(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in range(1, 5):
        add(folder, f"query {day}", day=date(2024, 5, day), most=3)
    assert [text for text, _ in kept(folder)] == ["query 2", "query 3", "query 4"]
    monkeypatch.setattr(queries, "MOST_BYTES", 2 * len((folder / NAME).read_bytes()) // 3 + 10)
    add(folder, day=date(2024, 5, 5))
    assert [text for text, _ in kept(folder)] == ["query 3", "query 4"]


def test_a_damaged_line_is_listed_and_the_others_count(folder: Path) -> None:
    add(folder, "red", day=date(2999, 5, 1))
    plain = {"text": "blue", "times": 1, "day": "2999-05-01", "until": "2999-06-01"}
    wrong = (
        b"no JSON\n",
        sealed(plain)[:-4] + b"\n",
        sealed(plain | {"who": "somebody"}),
        sealed(plain | {"times": 0}),
        sealed(plain | {"times": True}),
        sealed(plain | {"times": 1 << 60}),
        sealed(plain | {"until": "tomorrow"}),
        sealed(plain | {"text": " "}),
        sealed(plain | {"text": 2001 * "a"}),
    )
    with (folder / NAME).open("ab") as file:
        file.writelines(wrong)
    found = read_queries(folder)
    assert [one.text for one in found.kept] == ["red"]
    assert len(found.issues) == len(wrong)
    assert found.issues[0].where.endswith("queries.jsonl, line 2")
    assert Index.open(folder).asked_queries() == {"red": 1}
    check = next(one for one in verify_index(folder) if NAME in str(one))
    assert "damaged query" in check.wrong
    add(folder, day=date(2999, 5, 1))
    assert not read_queries(folder).issues
    assert next(one for one in verify_index(folder) if NAME in str(one)).found == "1 queries"


def test_all_are_forgotten_by_a_call_or_by_removing_the_file(folder: Path) -> None:
    assert forget_queries(folder) == 0
    add(folder, "red", "blue", day=date(2999, 5, 1))
    assert forget_queries(folder) == 2
    assert Index.open(folder).asked_queries() == {}
    add(folder, "red", day=date(2999, 5, 1))
    (folder / NAME).unlink()
    add(folder, "blue", day=date(2999, 5, 1))
    assert Index.open(folder).asked_queries() == {"blue": 1}


def test_an_index_in_no_folder_of_this_machine_keeps_none(folder: Path) -> None:
    index = Index.open(folder)
    assert Index(index.manifest, index.picture_store, index.caption_store).asked_queries() == {}
    for place in (None, Path("s3://bucket/index")):
        with pytest.raises(UserError, match="queries cannot be kept: this index is .*; serve a copy in a folder"):
            require_kept(place)
    assert require_kept(folder) == folder
    (folder / NAME).mkdir()
    with pytest.raises(UserError, match="a folder stands here; name a file"):
        require_kept(folder)


def test_nothing_is_written_where_no_index_stands(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no index here"):
        add(tmp_path / "gone", "red")
    assert not (tmp_path / "gone").exists()


def test_they_are_part_of_the_index_and_go_over_to_its_successor(folder: Path) -> None:
    add(folder, "red", day=date(2999, 5, 1))
    manifest.refuse_strangers(folder)
    data = colour_pictures(folder.parent / "others", ["green"])
    Index.build(data, ColourModel(), folder, overwrite=True)
    assert Index.open(folder).asked_queries() == {"red": 1}
