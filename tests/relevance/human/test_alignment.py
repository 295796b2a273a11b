import json
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.disk import digest_of
from rungwise.core.disk.sealed_lines import hash_of_text, sealed
from rungwise.data import ImageCaptions
from rungwise.index.layout import Grade, add_grade
from rungwise.index.layout import _feedback as feedback
from rungwise.relevance.human import Judgement, add_judgement, is_of_people, now, place_judgements
from rungwise.relevance.human._alignment import DEGREES

DATA = ImageCaptions(
    tuple(f"{number}.jpg" for number in range(6)),
    ("a dog", "a cat", "a dog", "a tree", "two men", "snow"),
    np.arange(6),
    name="pets",
)


def judge(
    path: Path, image: int | str, caption: int | str, grade: int | None, who: str = "Ada", text: str = ""
) -> None:
    image_id = f"{image}.jpg" if isinstance(image, int) else image
    caption_id = DATA.caption_ids[caption] if isinstance(caption, int) else caption
    read = text or (DATA.captions[caption] if isinstance(caption, int) else "?")
    add_judgement(path, Judgement(image_id, caption_id, grade, who, now(), hash_of_text(read)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "judgements.jsonl"


def test_means_over_graders_are_those_of_nested_loops(path: Path) -> None:
    random = np.random.default_rng(0)
    said: dict[tuple[int, int], dict[str, int]] = {}
    for _ in range(80):
        image, caption, grade = (int(random.integers(low, high)) for low, high in ((0, 6), (0, 6), (1, 5)))
        who = f"grader {random.integers(3)}"
        judge(path, image, caption, grade, who)
        said.setdefault((image, caption), {})[who] = grade
    placed = place_judgements(path, DATA)
    pairs, means = placed.means()
    assert [tuple(pair) for pair in pairs.tolist()] == sorted(said)
    for pair, mean in zip(pairs.tolist(), means, strict=True):
        own = said[tuple(pair)].values()
        assert mean == pytest.approx(sum(own) / len(own))
    for bound in (1.0, 2.5, 3.0, 10 / 3, 4.0):
        right = sorted(pair for pair, own in said.items() if sum(own.values()) / len(own) >= bound - 1e-12)
        assert [tuple(pair) for pair in placed.right(bound).tolist()] == right
    assert placed.right().tolist() == placed.right(3.0).tolist()
    assert placed.graders == ("grader 0", "grader 1", "grader 2")
    assert placed.hashes == {"judgements.jsonl": digest_of(path)}


def test_files_of_several_people_with_one_name_are_all_told(tmp_path: Path) -> None:
    files = [tmp_path / who / "judgements.jsonl" for who in ("ada", "bo")]
    for file, who in zip(files, ("Ada", "Bo"), strict=True):
        judge(file, 0, 1, 4, who)
    placed = place_judgements(files, DATA)
    assert placed.hashes == {f"{file.parent.name}/judgements.jsonl": digest_of(file) for file in files}
    assert place_judgements([files[0], tmp_path / "ada" / ".." / "bo" / "judgements.jsonl"], DATA).graders == (
        "Ada",
        "Bo",
    )


def test_of_one_person_and_pair_the_latest_judgement_of_several_files_counts(tmp_path: Path) -> None:
    def add(name: str, grade: int, who: str, when: str) -> Path:
        text = hash_of_text(DATA.captions[1])
        add_judgement(tmp_path / name, Judgement("0.jpg", DATA.caption_ids[1], grade, who, when, text))
        return tmp_path / name

    late = add("late.jsonl", 1, "Ada", "2024-05-02T00:00:00Z")
    early = add("early.jsonl", 4, "Ada", "2024-05-01T00:00:00Z")
    add("early.jsonl", 4, "Bo", "2024-05-01T00:00:00Z")
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(early.read_bytes())
    for files in ([late, early], [early, late], [early, copy, late], [copy, late, early, early]):
        placed = place_judgements(files, DATA)
        assert sorted(placed.grades) == [1.0, 4.0]
        assert placed.means()[1].tolist() == [2.5]
        assert placed.right().tolist() == []
        assert len(placed.hashes) == 2


def test_grades_of_searches_without_a_name_may_be_of_several_people(tmp_path: Path) -> None:
    for folder, said in (("one", "right"), ("other", "wrong")):
        (tmp_path / folder).mkdir()
        add_grade(tmp_path / folder, Grade("a cat", "0.jpg", said, now()))  # type: ignore[arg-type]
    files = [tmp_path / folder / "grades.jsonl" for folder in ("one", "other")]
    assert place_judgements(files, DATA).means()[1].tolist() == [0.5]


def test_what_is_not_of_the_collection_is_listed(path: Path) -> None:
    judge(path, 0, 1, 4)
    judge(path, "gone.jpg", 1, 4)
    judge(path, 0, "gone", 4)
    judge(path, 2, 1, 3, text="a kitten")
    judge(path, 3, 1, 2)
    path.write_bytes(path.read_bytes() + b'{"seal": 1}\n')
    placed = place_judgements(path, DATA)
    assert placed.images.tolist() == [0, 3]
    assert [(one.kind, one.where, one.detail) for one in placed.issues] == [
        ("damaged judgement", f"{path}, line 6", "its checksum is another"),
        ("judgement of an unknown image", f"{path}, line 2", "'gone.jpg'"),
        ("judgement of an unknown caption", f"{path}, line 3", "'gone'"),
        ("judgement of another caption", f"{path}, line 4", "'1.jpg#0' had another text"),
    ]


def test_a_file_of_other_captions_is_refused_with_counts_and_the_first_place(path: Path) -> None:
    judge(path, 0, 1, 4)
    for image in (1, 2):
        judge(path, image, 1, 4, text="a kitten")
    message = r"judgements\.jsonl: 2 of its 3 judgements are of other captions, the first at line 2 \('1\.jpg#0' had"
    with pytest.raises(UserError, match=message):
        place_judgements(path, DATA)


@pytest.mark.parametrize("undone", [False, True])
def test_a_file_without_judgements_of_the_collection_is_refused(path: Path, undone: bool) -> None:
    if undone:
        judge(path, 0, 1, 4)
        judge(path, 0, 1, None)
        message = "none of its 0 judgements is of pets; give"
    else:
        judge(path, "gone.jpg", 1, 4)
        message = r"none of its 1 judgements is of pets, such as 'gone\.jpg' \(.*line 1\)"
    with pytest.raises(UserError, match=message):
        place_judgements(path, DATA)


def test_several_files_are_one(path: Path, tmp_path: Path) -> None:
    judge(path, 0, 1, 4, "Ada")
    judge(tmp_path / "other.jsonl", 0, 1, 1, "Bo")
    placed = place_judgements([path, tmp_path / "other.jsonl"], DATA)
    assert placed.means()[1].tolist() == [2.5]
    assert placed.graders == ("Ada", "Bo")
    assert list(placed.hashes) == ["judgements.jsonl", "other.jsonl"]
    add_grade(tmp_path, Grade("a cat", "0.jpg", "right", now()))
    with pytest.raises(UserError, match="have no common scale"):
        place_judgements([path, tmp_path / "grades.jsonl"], DATA)


def test_a_search_for_a_caption_judges_it(tmp_path: Path) -> None:
    for query, image, said, who in (
        ("a dog", "1.jpg", "right", "Ada"),
        ("a dog", "1.jpg", "wrong", "Bo"),
        ("a cat", "1.jpg", "close", ""),
        ("a cat", "0.jpg", "right", ""),
        ("a bird", "1.jpg", "right", ""),
        ("snow", "gone.jpg", "right", ""),
    ):
        add_grade(tmp_path, Grade(query, image, said, now(), who))  # type: ignore[arg-type]
    feedback.take_back(tmp_path, "a cat", "0.jpg")
    placed = place_judgements(tmp_path / "grades.jsonl", DATA)
    pairs, means = placed.means()
    assert pairs.tolist() == [[1, 0], [1, 1], [1, 2]]  # two captions have the text "a dog"
    assert means.tolist() == [0.5, 0.5, 0.5]
    assert placed.graders == ("Ada", "Bo")
    assert placed.right().tolist() == []
    assert placed.right(0.5).tolist() == pairs.tolist()
    assert [(one.kind, one.detail) for one in placed.issues] == [
        ("grade of a search that is no caption", "'a bird'"),
        ("judgement of an unknown image", "'gone.jpg'"),
    ]


def test_grades_of_earlier_versions_and_damaged_ones(tmp_path: Path) -> None:
    old = {"query": "snow", "id": "5.jpg", "grade": "right", "when": "2024-05-01T12:00:00Z"}
    odd = [{**old, "grade": "nice"}, {**old, "id": 3}, {"query": "snow"}]
    (tmp_path / "grades.jsonl").write_bytes(b"".join(map(sealed, [old, *odd])))
    placed = place_judgements(tmp_path / "grades.jsonl", DATA)
    assert placed.right().tolist() == [[5, 5]]
    assert [one.kind for one in placed.issues] == ["damaged judgement"] * 3


def test_the_grades_of_an_index_mean_the_same_here() -> None:
    assert DEGREES == feedback.DEGREES


def test_files_are_known_by_what_they_hold(path: Path, tmp_path: Path) -> None:
    judge(path, 0, 1, 4)
    assert is_of_people(path)
    add_grade(tmp_path, Grade("a dog", "1.jpg", "right", now()))
    assert is_of_people(tmp_path / "grades.jsonl")
    (tmp_path / "i2t.json").write_text(json.dumps({"7": [70]}))
    assert not is_of_people(tmp_path / "i2t.json")
    with pytest.raises(UserError, match=r"i2t\.json: is no file of judgements"):
        place_judgements(tmp_path / "i2t.json", DATA)
    judge(path, 1, 1, 3)
    path.write_bytes(b"\xff\xfe" + path.read_bytes())
    assert is_of_people(path)
    assert [one.where for one in place_judgements(path, DATA).issues] == [f"{path}, line 1"]
    with pytest.raises(UserError, match="no such file"):
        is_of_people(tmp_path / "nowhere")
