from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.data import ImageCaptions
from rungwise.evaluation.analysis import FalseNegative, write_false_negatives
from rungwise.grading import Questions, read_questions, with_pictures
from rungwise.grading._questions import Question
from rungwise.relevance.human import Judgement, add_judgement, now
from tests.grading.conftest import write_pairs

DATA = ImageCaptions(
    ("=a", "b", "COCO_7.jpg"),
    ("a dog", "-1 degrees", "a  cat,\nasleep", "café \udcff"),
    np.array([0, 1, 1, 2]),
    caption_ids=("=0", "1", "2", "3"),
)


def read(path: Path, text: str, data: ImageCaptions = DATA) -> Questions:
    path.write_text(text, encoding="utf-8")
    return read_questions(path, data, shuffle=False)


def test_what_evaluate_writes_is_read_back_with_all_its_oddities(tmp_path: Path) -> None:
    pairs = [(image, caption) for image in range(3) for caption in range(4)]
    found = [
        FalseNegative("i2t", image, caption, 1, 0.5, 1.0, 0.5)
        if (image + caption) % 2
        else FalseNegative("t2i", caption, image, 1, float("nan"), 1.0, 0.5)
        for image, caption in pairs
    ]
    write_false_negatives(tmp_path / "wrong.csv", found, DATA)
    questions = read_questions(tmp_path / "wrong.csv", DATA, shuffle=False)
    assert [(one.image, one.caption) for one in questions.asked] == pairs
    assert [one.direction for one in questions.asked] == [one.direction for one in found]
    assert not questions.issues


def test_a_pair_of_both_directions_is_asked_once(tmp_path: Path) -> None:
    questions = read(tmp_path / "pairs.csv", "direction,image,caption\ni2t,b,1\nt2i,b,1\nt2i,b,2\n")
    assert questions.asked == (Question(1, 1, "i2t"), Question(1, 2, "t2i"))


def test_any_table_with_ids_will_do(tmp_path: Path) -> None:
    for name, text in (
        ("a.csv", "Image;Caption\nb;1\n7;2\n"),
        ("a.tsv", "caption\timage\tmore\n1\tb\tx\n2\t7\ty\n"),
        ("a.jsonl", '{"image": "b", "caption": 1}\n{"image": 7, "caption": "2", "direction": "up"}\n'),
    ):
        questions = read(tmp_path / name, text)
        assert questions.asked == (Question(1, 1), Question(2, 2)), name


def test_judgements_of_others_can_be_graded_again(tmp_path: Path) -> None:
    path = tmp_path / "judgements.jsonl"
    for who in ("Ada", "Bo"):
        add_judgement(path, Judgement("b", "1", 4, who, now(), hash_of_text("-1 degrees"), "t2i"))
    assert read_questions(path, DATA).asked == (Question(1, 1, "t2i"),)


def test_the_order_tells_no_rank_and_is_the_seeds(data: ImageCaptions, tmp_path: Path) -> None:
    pairs = [(image, caption) for image in range(8) for caption in range(40)]
    table = write_pairs(tmp_path / "wrong.csv", data, pairs)
    orders = [[(one.image, one.caption) for one in read_questions(table, data, seed=seed).asked] for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == pairs
    ranks = [pairs.index(pair) for pair in orders[0]]
    assert abs(np.corrcoef(ranks, range(len(ranks)))[0, 1]) < 0.15


def test_rows_that_are_not_of_the_collection_are_listed(tmp_path: Path) -> None:
    rows = [
        "b,1,-1 degrees",
        "b,2,",
        "c,1,x",
        "b,9,x",
        "b,0",
        "b,1,a dog",
        *(f"b,{at},{DATA.captions[at]}" for at in (1,)),
    ]
    rows += ["7,1,-1 degrees", "7,2,", "'=a,1,'-1 degrees"]
    questions = read(tmp_path / "pairs.csv", "\n".join(["image,caption,text", *rows]))
    assert [(one.image, one.caption) for one in questions.asked] == [(1, 1), (1, 2), (2, 1), (2, 2), (0, 1)]
    assert [(one.kind, one.where.rpartition(", ")[2]) for one in questions.issues] == [
        ("row of an unknown picture", "line 4"),
        ("row of an unknown caption", "line 5"),
        ("row that is no pair", "line 6"),
        ("row of another caption", "line 7"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,text\nb,x\n", "needs the columns image and caption, which hold ids, found image, text"),
        ("image,caption\n", "names no pair"),
        (
            "image,caption\nx,1\ny,1\nb,1\n",
            r"2 of its 3 rows are not of collection, the first at line 2 \(row of an un",
        ),
        ("image,caption,text\nb,1,a pup\n", "1 of its 1 rows are not of collection"),
        ('image,caption\nb,"1\n', "correct the quotation marks"),
    ],
)
def test_what_cannot_be_asked_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(tmp_path / "pairs.csv", text)
    assert "\n" not in str(caught.value)


def test_pictures_that_cannot_be_shown_are_left_out_and_listed(data: ImageCaptions, tmp_path: Path) -> None:
    (tmp_path / "cut.png").write_bytes(data.paths[1].read_bytes()[:200])  # type: ignore[union-attr]
    paths = (data.paths[0], tmp_path / "cut.png", tmp_path / "gone.png", *data.paths[3:])
    broken = replace(data, paths=paths)
    every = Questions(broken, tuple(Question(image, 0) for image in (1, 0, 2, 3, 4)))
    told: list[int] = []
    found = with_pictures(every, tell=told.append)
    assert [one.image for one in found.asked] == [0, 3, 4]
    assert told == [1, 2, 3, 4, 5]
    assert [(one.kind, one.where) for one in found.issues] == [
        ("picture that cannot be shown", data.image_ids[1]),
        ("picture that cannot be shown", data.image_ids[2]),
    ]
    assert [one.image for one in with_pictures(every, limit=1).asked] == [0]
    with pytest.raises(UserError, match=r"none of the 2 pictures can be shown, such as pictures/scene-00001\.png"):
        with_pictures(replace(every, asked=(Question(1, 0), Question(2, 0), Question(1, 3))))
    with pytest.raises(UserError, match="has no picture files"):
        with_pictures(Questions(DATA, (Question(0, 0),)))
