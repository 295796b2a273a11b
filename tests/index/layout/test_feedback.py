import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import hash_of_text, sealed
from rungwise.index import Grade, Index
from rungwise.index.layout import _feedback as feedback
from rungwise.index.layout import add_grade, now, read_grades
from tests.colour_model import ColourModel, colour_pictures

NAME = "grades.jsonl"


def give(folder: Path, query: str, item_id: str, grade: str) -> None:
    add_grade(folder, Grade(query, item_id, grade, now()))  # type: ignore[arg-type]


def test_of_one_query_and_picture_the_last_grade_counts(index: Index) -> None:
    index.grade("red", "0-red", "close")
    index.grade("red", "2-blue", "wrong")
    index.grade("red", "0-red", "right")
    found = index.grades()
    assert [(one.id, one.grade, one.degree) for one in found] == [("2-blue", "wrong", 0.0), ("0-red", "right", 1.0)]
    assert found.by_query()["red"]["0-red"].when.endswith("Z")
    index.grade("red", "0-red", None)
    assert [one.id for one in Index.open(index.folder).grades()] == ["2-blue"]


def test_grades_outlive_updates_and_their_pictures(index: Index, tmp_path: Path) -> None:
    index.grade("red", "0-red", "right")
    index.remove(["0-red"])
    index.compact()
    assert len(index.grades()) == 1
    with pytest.raises(UserError, match="no picture with id '0-red'"):
        index.grade("red", "0-red", "wrong")
    data = colour_pictures(tmp_path / "photos", ["red", "green"])
    index.update(data, ColourModel())
    assert [one.id for one in index.grades()] == ["0-red"]


@pytest.mark.parametrize(
    ("query", "item_id", "grade", "message"),
    [
        (" ", "a", "right", "query of a grade is empty"),
        ("x" * 2_001, "a", "right", "query of a grade: 2,001 characters"),
        ("x", "a" * 8_001, "right", "id of a grade has 8001 characters"),
        ("x", "a", "great", "grade 'great': give one of right, close, wrong"),
    ],
)
def test_what_is_no_grade_is_one_line(query: str, item_id: str, grade: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Grade(query, item_id, grade, "")  # type: ignore[arg-type]


def test_damaged_lines_are_listed_and_the_others_count(tmp_path: Path) -> None:
    for number in range(4):
        give(tmp_path, "boats", f"p{number}", "right")
    lines = (tmp_path / NAME).read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"right"', b'"wrong"')
    lines[2] = b"[[[[[\n"
    (tmp_path / NAME).write_bytes(b"".join(lines)[:-9])  # the last line is cut off
    found = read_grades(tmp_path)
    assert [one.id for one in found] == ["p0"]
    assert [one.where.rpartition(", ")[2] for one in found.issues] == ["line 2", "line 3", "line 4"]
    assert "checksum" in found.issues[0].detail
    give(tmp_path, "boats", "p9", "close")
    assert [one.id for one in read_grades(tmp_path)] == ["p0", "p9"]


@settings(max_examples=40)
@given(st.text(min_size=1).filter(str.strip), st.text(max_size=30))
def test_any_text_is_a_query_and_an_id(tmp_path_factory: pytest.TempPathFactory, query: str, item_id: str) -> None:
    folder = tmp_path_factory.mktemp("grades")
    give(folder, query, item_id, "close")
    (kept,) = read_grades(folder)
    assert (kept.query, kept.id) == (query, item_id)


@pytest.mark.slow  # whoever finds another one writing sleeps
def test_many_who_grade_at_once_lose_nothing(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: give(tmp_path, f"q{number % 5}", f"p{number}", "right"), range(40)))
    found = read_grades(tmp_path)
    assert len(found) == 40
    assert not found.issues


def test_the_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feedback, "MOST_BYTES", 1000)
    for number in range(50):
        give(tmp_path, "boats", f"p{number % 3}", "right")
    assert (tmp_path / NAME).stat().st_size < 1300
    assert len(read_grades(tmp_path)) == 3
    with pytest.raises(UserError, match="full of grades"):
        _fill(tmp_path)


def _fill(folder: Path) -> None:
    for number in range(50):
        give(folder, "boats", f"p{number}", "right")


def test_an_index_in_no_folder_keeps_no_grades(index: Index) -> None:
    loose = Index(index.manifest, index.picture_store, index.caption_store)
    assert len(loose.grades()) == 0
    with pytest.raises(UserError, match="in no folder"):
        loose.grade("red", "0-red", "right")


def test_a_line_is_json_in_ascii(tmp_path: Path) -> None:
    give(tmp_path, "hünde", "犬", "right")
    line = (tmp_path / NAME).read_bytes()
    assert line.isascii()
    assert json.loads(line)["query"] == "hünde"


def test_grades_of_two_people_stand_beside_each_other(index: Index) -> None:
    index.grade("red", "0-red", "right", who="Ada")
    index.grade("red", "0-red", "wrong", who="Bo")
    index.grade("red", "0-red", "close", who="Ada")
    assert [(one.who, one.grade) for one in index.grades()] == [("Bo", "wrong"), ("Ada", "close")]
    assert index.grades().by_query()["red"]["0-red"].grade == "close"  # the newest
    index.grade("red", "0-red", None, who="Ada")
    index.grade("red", "0-red", None)  # nobody in particular said anything
    assert [(one.who, one.grade) for one in index.grades()] == [("Bo", "wrong")]
    with pytest.raises(UserError, match="name has 81 characters"):
        index.grade("red", "0-red", "right", who="x" * 81)


def test_people_are_called_in_one_way(index: Index) -> None:
    index.grade("red", "0-red", "right", who="Jose\u0301  \u200bDiaz")
    index.grade("red", "0-red", "wrong", who="Jos\u00e9\xa0Diaz")
    assert [(one.who, one.grade) for one in index.grades()] == [("Jos\u00e9 Diaz", "wrong")]
    with pytest.raises(UserError, match="letter or a digit"):
        index.grade("red", "0-red", "right", who="\u3164")


def test_a_line_that_lacks_a_field_is_an_issue(tmp_path: Path) -> None:
    lacking = {"query": "boats", "id": "a", "grade": "right", "when": "2024-05-01T12:00:00Z", "who": ""}
    (tmp_path / NAME).write_bytes(sealed(lacking))
    give(tmp_path, "boats", "c", "close")
    found = read_grades(tmp_path)
    assert [one.id for one in found] == ["c"]
    (issue,) = found.issues
    assert "text_hash" in issue.detail


def test_a_line_says_the_hash_of_its_query(tmp_path: Path) -> None:
    give(tmp_path, "boats", "a", "right")
    line = json.loads((tmp_path / NAME).read_bytes())
    assert line.pop("text_hash") == hash_of_text("boats")
    del line["seal"]
    (tmp_path / NAME).write_bytes(sealed({**line, "text_hash": hash_of_text("ships")}))
    (issue,) = read_grades(tmp_path).issues
    assert "another query" in issue.detail
