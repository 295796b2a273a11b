import json
import math
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import hash_of_text, sealed
from rungwise.relevance.human import (
    Judgement,
    Judgements,
    add_judgement,
    is_judgement_line,
    now,
    read_judgements,
    require_place,
)
from rungwise.relevance.human import _log as log

TEXT = hash_of_text("a dog")


def of(image: str, grade: int | None, who: str = "Ada", caption: str = "b#0") -> Judgement:
    return Judgement(image, caption, grade, who, now(), TEXT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "judgements.jsonl"


def test_of_one_person_and_pair_the_last_judgement_counts(path: Path) -> None:
    for one in (of("a", 4), of("c", 2), of("a", 1, "Bo"), of("a", 3), of("c", None)):
        add_judgement(path, one)
    found = read_judgements(path)
    assert [(one.image, one.who, one.grade) for one in found] == [("a", "Bo", 1), ("a", "Ada", 3)]
    assert found.lines == (3, 4)
    assert found.graders == ("Ada", "Bo")
    assert found.by("Ada") == {("a", "b#0"): 3}
    assert found.kept[0].when.endswith("Z")


def test_ratings_are_those_of_nested_loops(path: Path) -> None:
    random = np.random.default_rng(0)
    for _ in range(60):
        who, image = f"grader {random.integers(3)}", f"image {random.integers(12)}"
        add_judgement(path, of(image, int(random.integers(1, 5)), who))
    found = read_judgements(path)
    ratings = found.ratings()
    assert ratings.shape == (3, len(found.pairs))
    for row, who in enumerate(found.graders):
        for column, pair in enumerate(found.pairs):
            own = [one.grade for one in found if one.who == who and one.pair == pair]
            assert (own == [ratings[row, column]]) if own else math.isnan(ratings[row, column])


def test_graders_who_read_other_texts_rated_other_pairs() -> None:
    changed = replace(of("a", 2, "Bo"), text_hash=hash_of_text("a cat"))
    both = Judgements((of("a", 4), changed))
    assert both.ratings().shape == (2, 1)
    assert np.array_equal(both.ratings(texts_apart=True), [[4, math.nan], [math.nan, 2]], equal_nan=True)


@pytest.mark.parametrize(
    "other",
    [
        b"image,caption\na,b#0\n",
        b'{"image": "a.jpg", "captions": ["a dog"]}\n' * 30,
        sealed({"query": "a dog", "id": "a", "grade": "right", "when": now(), "who": "Ada"}),
    ],
    ids=["table", "captions", "grades of searches"],
)
def test_a_file_of_something_else_is_never_added_to(path: Path, other: bytes) -> None:
    path.write_bytes(other)
    for ask in (lambda: add_judgement(path, of("a", 4)), lambda: require_place(path)):
        with pytest.raises(UserError, match="holds something else than judgements; name another file"):
            ask()
    assert path.read_bytes() == other


def test_a_file_of_something_else_is_kept_even_where_it_is_too_large(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MOST_BYTES", 10)
    path.write_bytes(b"a diary of ours\n")
    with pytest.raises(UserError, match="something else"):
        add_judgement(path, of("a", 4))
    assert path.read_bytes() == b"a diary of ours\n"


def test_a_place_is_looked_at_without_a_trace_of_judgements(path: Path) -> None:
    require_place(path)
    assert not path.exists()
    path.touch()
    require_place(path)
    add_judgement(path, of("a", 4))
    before = path.read_bytes()
    require_place(path)
    assert path.read_bytes() == before
    (path.parent / "file").touch()
    for refused in (path.parent / "file" / "judgements.jsonl", path.parent):
        with pytest.raises(UserError):
            require_place(refused)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grade": 0}, "grade 0: give a whole number from 1 to 4"),
        ({"grade": 5}, "grade 5"),
        ({"grade": True}, "grade True"),
        ({"image": ""}, "the image id of a judgement is empty"),
        ({"caption": "x" * 8_001}, "the caption id of a judgement has 8001 characters"),
        ({"who": " "}, "the grader's name of a judgement is empty"),
        ({"who": "x" * 201}, "the grader's name of a judgement has 201 characters"),
        ({"when": ""}, "the time of a judgement is empty"),
        ({"text_hash": "abc"}, "text_hash of a judgement is no SHA-256"),
        ({"direction": "i2i"}, "direction of a judgement is 'i2i'"),
    ],
)
def test_what_is_no_judgement_is_one_line(change: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        replace(of("a", 4), **change)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


STRANGE = [
    {"grade": 4.0},
    {"grade": "4"},
    {"grade": [4]},
    {"grade": {"4": 4}},
    {"grade": 7},
    {"who": 3},
    {"who": None},
    {"image": ["a"]},
    {"direction": 1},
    {"direction": "sideways"},
    {"text_hash": ""},
    {"more": "of it"},
]


@pytest.mark.parametrize("change", STRANGE, ids=[json.dumps(one) for one in STRANGE])
def test_strange_lines_with_a_good_seal_are_damaged(path: Path, change: dict[str, object]) -> None:
    plain = {"image": "a", "caption": "b#0", "grade": 4, "who": "Ada", "when": now(), "text_hash": TEXT}
    path.write_bytes(sealed({**plain, **change}) + sealed({**plain, "image": "c"}))
    found = read_judgements(path)
    assert [one.image for one in found] == ["c"]
    (issue,) = found.issues
    assert (issue.kind, issue.where) == ("damaged judgement", f"{path}, line 1")
    assert "\n" not in issue.detail


def test_damaged_lines_are_listed_and_the_others_count(path: Path) -> None:
    for number in range(4):
        add_judgement(path, of(f"p{number}", 4))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"grade": 4', b'"grade": 1')
    lines[2] = b"[[[[[\n"
    path.write_bytes(b"".join(lines)[:-9])
    found = read_judgements(path)
    assert [one.image for one in found] == ["p0"]
    assert [one.where.rpartition(", ")[2] for one in found.issues] == ["line 2", "line 3", "line 4"]
    add_judgement(path, of("p9", 2))
    assert [one.image for one in read_judgements(path)] == ["p0", "p9"]


NAME = st.text(min_size=1, max_size=30).filter(str.strip)


@settings(max_examples=30)
@given(NAME, NAME, NAME, st.sampled_from(["", "i2t", "t2i"]))
def test_any_text_is_an_id_and_a_name(
    tmp_path_factory: pytest.TempPathFactory, image: str, caption: str, who: str, direction: str
) -> None:
    path = tmp_path_factory.mktemp("judgements") / "one.jsonl"
    given_now = Judgement(image, caption, 2, who, now(), TEXT, direction)  # type: ignore[arg-type]
    add_judgement(path, given_now)
    assert read_judgements(path).kept == (given_now,)


def _twenty(path: Path, who: str) -> None:
    for number in range(20):
        add_judgement(path, of(f"p{number}", 1 + number % 4, who))


@pytest.mark.slow
def test_many_who_judge_at_once_lose_nothing(path: Path) -> None:
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda number: _twenty(path, f"thread {number}"), range(3)))
    processes = [multiprocessing.get_context("spawn").Process(target=_twenty, args=(path, f"p{n}")) for n in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    found = read_judgements(path)
    assert len(found) == 100
    assert not found.issues


def test_the_file_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MOST_BYTES", 2000)
    for number in range(50):
        add_judgement(path, of(f"p{number % 3}", 4))
    assert path.stat().st_size < 2400
    assert len(read_judgements(path)) == 3
    with pytest.raises(UserError, match="full of judgements"):
        _twenty(path, "Bo")


def test_a_line_of_judgements_is_known(path: Path) -> None:
    assert is_judgement_line(of("a", 4).line())
    assert not is_judgement_line(sealed({"query": "a dog", "id": "a", "grade": "right"}))
    assert not is_judgement_line(b'{"image": "a", "caption": "b", "grade": 3}')


def test_a_place_that_may_not_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="choose another place"):
        add_judgement(tmp_path / "file" / "judgements.jsonl", of("a", 4))
