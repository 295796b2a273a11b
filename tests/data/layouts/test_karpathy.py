import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rungwise.core import UserError
from rungwise.data import read
from tests.odd_files import on_posix, put


def image(name: str, split: str, *captions: str, **more: Any) -> dict[str, Any]:
    sentences = [{"raw": text, "tokens": text.lower().split(), "sentid": hash((name, text))} for text in captions]
    return {"filename": name, "split": split, "sentences": sentences, **more}


IMAGES = [
    image("v1.jpg", "restval", "A dog.", "A pet.", filepath="val2014", cocoid=11, imgid=0),
    image("v2.jpg", "val", "A cat.", filepath="val2014", cocoid=12, imgid=1),
    image("t1.jpg", "train", "A cow.", "", filepath="train2014", cocoid=13, imgid=2),
]


def write(root: Path, images: object = IMAGES, name: str = "dataset_coco.json") -> Path:
    (root / name).write_text(json.dumps({"images": images, "dataset": "coco"}), encoding="utf-8")
    return root


def add_pictures(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


@pytest.mark.parametrize("name", ["dataset_coco.json", "whatever.json"])
def test_a_folder_with_pictures_below_their_filepath(tmp_path: Path, name: str) -> None:
    add_pictures(tmp_path, "images/val2014/v1.jpg", "images/val2014/v2.jpg", "images/train2014/t1.jpg")
    data = read(write(tmp_path, name=name))
    assert data.layout == "karpathy"
    assert data.image_ids == ("v1.jpg", "v2.jpg", "t1.jpg")
    assert data.splits == ("restval", "val", "train")
    assert data.captions == ("A dog.", "A pet.", "A cat.", "A cow.")
    assert data.caption_ids[0] == str(IMAGES[0]["sentences"][0]["sentid"])
    assert data.paths[2] == tmp_path / "images" / "train2014" / "t1.jpg"
    assert [(issue.kind, issue.where) for issue in data.issues] == [
        ("empty caption", f"{tmp_path / name}, images[2].sentences[1]")
    ]


def test_restval_joins_train_on_request(tmp_path: Path) -> None:
    assert read(write(tmp_path), join_restval=True).splits == ("train", "val", "train")


def test_without_any_picture_the_captions_are_enough(tmp_path: Path) -> None:
    data = read(write(tmp_path) / "dataset_coco.json")
    assert data.paths == ()
    assert len(data) == 3
    assert data.name == "coco"


def test_pictures_without_folders_are_found(tmp_path: Path) -> None:
    add_pictures(tmp_path, "v1.jpg", "v2.jpg", "t1.jpg")
    assert [path.name for path in read(write(tmp_path)).paths] == ["v1.jpg", "v2.jpg", "t1.jpg"]


def test_some_missing_pictures_are_kept_account_of(tmp_path: Path) -> None:
    add_pictures(tmp_path, "val2014/v1.jpg", "extra.jpg")
    data = read(write(tmp_path))
    assert data.image_ids == ("v1.jpg", "extra.jpg")
    assert data.splits == ("restval", "none")
    missing = [issue.where for issue in data.issues if issue.kind == "missing picture"]
    assert missing == [f"{tmp_path / 'dataset_coco.json'}, images[{n}]" for n in (1, 2)]
    assert data.issues[1].detail == "no picture named 'train2014/t1.jpg'; left out: 'A cow.'"


def test_a_picture_of_another_folder_is_another_picture(tmp_path: Path) -> None:
    name = "COCO_val2014_000000000042.jpg"
    add_pictures(tmp_path, "train2014/v1.jpg", f"images/{name}")
    data = read(write(tmp_path, [*IMAGES, image(name, "val", "A bird.", filepath="val2014")]))
    assert (data.image_ids, data.captions) == ((name, "train2014/v1.jpg"), ("A bird.",))


def test_equal_file_names_in_two_folders_stay_apart(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a/1.jpg", "b/1.jpg")
    images = [image("1.jpg", "train", "A dog.", filepath="a"), image("1.jpg", "val", "A cat.", filepath="b")]
    data = read(write(tmp_path, images))
    assert data.image_ids == ("a/1.jpg", "b/1.jpg")
    assert data.captions == ("A dog.", "A cat.")


def test_mistakes_get_one_line(tmp_path: Path) -> None:
    for content, message in (
        ('{"images": [\n{"sentences": ]}', r"not valid JSON \(Expecting value, line 2, column 15\); correct it"),
        ("[]", "has no list 'images'"),
        ('{"images": []}', "its list 'images' is empty"),
        ('{"images": [3]}', r"images\[0\] \(needs 'filename' \(a text\) and 'sentences'"),
        ('{"images": [{"filename": "a.jpg"}]}', r"images\[0\] \(needs 'filename' \(a text\) and 'sentences'"),
        ('{"images": [{"sentences": []}]}', r"images\[0\] \(needs 'filename' \(a text\) and 'sentences'"),
        ("", "the file is empty"),
    ):
        path = tmp_path / "dataset_x.json"
        path.write_text(content)
        with pytest.raises(UserError, match=rf"dataset_x.json.*{message}") as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_pictures_of_another_collection_are_refused(tmp_path: Path) -> None:
    add_pictures(tmp_path, "other.jpg")
    with pytest.raises(UserError, match=r"images\[0\]: no picture named 'val2014/v1.jpg', nor any other"):
        read(write(tmp_path) / "dataset_coco.json")
    data = read(tmp_path)
    assert (data.layout, data.image_ids) == ("folder", ("other.jpg",))
    assert [(issue.kind, issue.where) for issue in data.issues] == [("captions left out", "dataset_coco.json")]


def test_of_two_files_the_first_that_can_be_read_is(tmp_path: Path) -> None:
    write(write(tmp_path), name="dataset_flickr8k.json")
    (tmp_path / "dataset_x.json").write_text("{}")
    data = read(tmp_path)
    assert (data.layout, data.name, len(data)) == ("karpathy", "coco", 3)
    assert [(issue.kind, issue.where) for issue in data.issues[-2:]] == [
        ("captions left out", "dataset_x.json"),
        ("captions left out", "dataset_flickr8k.json"),
    ]
    assert len(read(tmp_path / "dataset_flickr8k.json")) == 3


def test_one_odd_entry_is_listed_and_the_rest_is_read(tmp_path: Path) -> None:
    odd = [
        7,
        None,
        {"filename": "b.jpg"},
        {"filename": 3, "sentences": [{"raw": "A cow."}]},
        {"sentences": [{"raw": "A goat."}]},
        {"filename": "a.jpg", "split": None, "filepath": 3, "sentences": [
            {"raw": "A dog.", "sentid": 1.0}, {"raw": None, "sentid": 2}, {}, "A cat.", {"raw": ["A hen."]},
            {"raw": "A pet.", "sentid": [3]}, {"raw": "A pup.", "sentid": 1}, {"raw": "A wolf."}]},
    ]  # fmt: skip
    data = read(write(tmp_path, odd))
    assert (data.image_ids, data.splits) == (("a.jpg",), ("none",))
    assert data.captions == ("A dog.", "A pet.", "A pup.", "A wolf.")
    assert data.caption_ids == ("1", "a.jpg#1", "a.jpg#2", "a.jpg#3")
    said = " ".join(issue.detail for issue in data.issues)
    assert all(text in said for text in ("A cow.", "A goat.", "A cat.", "A pup."))
    assert [(issue.kind, issue.where.partition(", images")[2]) for issue in data.issues] == [
        ("malformed entry", "[0]"),
        ("malformed entry", "[1]"),
        ("malformed entry", "[2]"),
        ("malformed entry", "[3]"),
        ("malformed entry", "[4]"),
        ("empty caption", "[5].sentences[1]"),
        ("malformed entry", "[5].sentences[2]"),
        ("malformed entry", "[5].sentences[3]"),
        ("malformed entry", "[5].sentences[4]"),
        ("malformed entry", "[5].sentences[5]"),
        ("repeated caption id", "[5].sentences[6]"),
    ]


def test_a_missing_picture_does_not_lend_its_captions_to_one_of_its_name(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a/1.jpg")
    images = [image("1.jpg", "val", "A cat.", filepath="b"), image("1.jpg", "train", "A dog.", filepath="a")]
    data = read(write(tmp_path, images))
    assert (data.image_ids, data.captions) == (("a/1.jpg",), ("A dog.",))
    assert [(issue.kind, issue.detail) for issue in data.issues] == [
        ("missing picture", "no picture named 'b/1.jpg'; left out: 'A cat.'")
    ]


def test_half_a_character_is_left_out_and_listed(tmp_path: Path) -> None:
    """What is kept goes through every tokeniser and into every file; the field's files do hold such escapes."""
    add_pictures(tmp_path, "a.jpg")
    raw = ["A \\ud83d\\ude00 dog.", "A \\ud83d cat.", "A \\u001b[31mred\\u0000 bird.", "\\udc00"]
    sentences = ", ".join(f'{{"raw": "{text}", "sentid": {number}}}' for number, text in enumerate(raw))
    path = tmp_path / "dataset_x.json"
    path.write_text(
        f'{{"images": [{{"filename": "a.jpg", "split": "train", "sentences": [{sentences}]}},'
        ' {"filename": "\\udcff.jpg", "split": "train", "sentences": [{"raw": "Nothing."}]}]}'
    )
    data = read(tmp_path)
    assert data.captions == ("A \U0001f600 dog.", "A  [31mred  bird.")
    assert data.caption_ids == ("0", "2")
    assert [(issue.kind, issue.where.partition(", ")[2]) for issue in data.issues] == [
        ("malformed text", "images[0].sentences[1]"),
        ("malformed text", "images[0].sentences[2]"),
        ("malformed text", "images[0].sentences[3]"),
        ("malformed text", "images[1]"),
    ]
    for text in data.captions:
        text.encode()


@pytest.mark.parametrize("content", ['{"images": ' + "[" * 100_000, '{"images": ' + "9" * 5000 + "}"])
def test_json_made_to_hurt_gets_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "dataset_x.json").write_text(content)
    with pytest.raises(UserError, match=r"dataset_x.json: not valid JSON") as caught:
        read(tmp_path)
    assert "\n" not in str(caught.value)


@on_posix
def test_what_is_no_file_beside_the_file_is_listed(tmp_path: Path) -> None:
    add_pictures(tmp_path, "a.jpg")
    put(tmp_path / "annotations.json", "pipe")
    data = read(write(tmp_path, [image("a.jpg", "train", "A dog.")]))
    assert (data.layout, data.captions) == ("karpathy", ("A dog.",))
    assert [issue.where for issue in data.issues] == ["annotations.json"]


def test_a_file_that_may_not_be_read_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_pictures(tmp_path, "a.jpg")
    (tmp_path / "secret.json").write_text("{}")
    opened = os.open

    def refuse(path: object, *more: int, **others: int) -> int:
        if Path(str(path)).name == "secret.json":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *more, **others)

    monkeypatch.setattr(os, "open", refuse)
    (issue,) = read(tmp_path).issues
    assert (issue.kind, issue.where) == ("unreadable file", "secret.json")
    assert "permission denied" in issue.detail
