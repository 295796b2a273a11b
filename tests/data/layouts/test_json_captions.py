"""Captions in simple JSON, alone and in their place among the other layouts."""

import json
from pathlib import Path
from typing import Any

import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions, read


def written(
    root: Path, content: Any, name: str = "captions.json", pictures: tuple[str, ...] = ("a.jpg", "b.png")
) -> Path:
    for picture in pictures:
        (root / picture).touch()
    text = content if isinstance(content, str) else json.dumps(content)
    (root / name).write_text(text, encoding="utf-8-sig")
    return root


def captions(data: ImageCaptions) -> dict[str, list[str]]:
    of_image = data.captions_of_image
    return {one: [data.captions[at] for at in of_image[row]] for row, one in enumerate(data.image_ids)}


@pytest.mark.parametrize(
    "content",
    [
        [{"image": "a.jpg", "captions": ["A dog.", "A pet."]}, {"image": "b.png", "caption": "A cat."}],
        [{"file": "a.jpg", "text": "A dog."}, {"file": "a.jpg", "text": "A pet."}, {"file": "b.png", "text": "A cat."}],
        {"a.jpg": ["A dog.", "A pet."], "b.png": "A cat."},
        {"a.jpg": {"captions": ["A dog.", "A pet."]}, "b.png": {"captions": ["A cat."]}},
        {"info": {"year": 2020}, "images": [{"file_name": "a.jpg", "captions": ["A dog.", "A pet."]},
                                            {"file_name": "b.png", "captions": ["A cat."]}]},
        {"data": [{"image": "a.jpg", "captions": [{"raw": "A dog."}, {"raw": "A pet."}]},
                  {"image": "b.png", "captions": [{"raw": "A cat."}]}]},
    ],
)  # fmt: skip
def test_every_simple_form_says_the_same(content: Any, tmp_path: Path) -> None:
    for place in (written(tmp_path, content), tmp_path / "captions.json"):
        data = read(place)
        assert captions(data) == {"a.jpg": ["A dog.", "A pet."], "b.png": ["A cat."]}
        assert data.layout == "json"
        assert not data.issues


def test_what_stands_beside_captions_are_columns_and_splits(tmp_path: Path) -> None:
    entries = [
        {"image": "a.jpg", "caption": "A dog.", "split": "train", "year": 2020, "tags": ["x", "y"], "box": {"x": 1}},
        {"image": "b.png", "caption": "A cat.", "split": "test", "year": None},
    ]
    data = read(written(tmp_path, entries))
    assert data.splits == ("train", "test")
    assert dict(data.columns) == {"year": (2020, None), "tags": (("x", "y"), None), "box.x": (1, None)}
    assert data.issues == ()


def test_entries_that_are_none_are_counted_and_listed(tmp_path: Path) -> None:
    data = read(
        written(
            tmp_path,
            [
                {"image": "a.jpg", "caption": "A dog."},
                7,
                {"image": "c.jpg", "caption": "No."},
                {"image": "a.jpg", "captions": [{"tokens": []}]},
                {"image": {}, "caption": "Which?"},
            ],
        )
    )
    assert captions(data) == {"a.jpg": ["A dog."], "b.png": []}
    file = tmp_path / "captions.json"
    assert [(issue.kind, issue.where) for issue in data.issues] == [
        ("malformed row", f"{file}, [1]"),
        ("missing picture", f"{file}, [2]"),
        ("malformed row", f"{file}, [3]"),
        ("malformed row", f"{file}, [4]"),
    ]
    assert [issue.detail.partition("; left out: ")[2] for issue in data.issues] == [
        "", "'No.'", repr("'a.jpg'"), "'Which?'",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('[{"image": "a.jpg", "caption": "A dog."}', "not valid JSON"),
        ([{"image": "a.jpg", "captions": [{"tokens": []}]}], "a caption is an object without a text"),
        ([{"image": {}, "caption": "x"}], "holds a dict, not a text"),
        ({"a": [{"image": "a.jpg", "caption": "x"}], "b": [{"image": "a.jpg"}]}, "several lists of entries"),
    ],
)
def test_mistakes_are_one_line(content: Any, said: str, tmp_path: Path) -> None:
    file = written(tmp_path, content) / "captions.json"
    with pytest.raises(UserError, match=said) as refused:
        read(file)
    assert "captions.json" in str(refused.value)
    assert "\n" not in str(refused.value)
    data = read(tmp_path)
    assert (data.layout, [(issue.kind, issue.where) for issue in data.issues]) == (
        "folder",
        [("table left out", "captions.json")],
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            [{"picture": "a.jpg", "words": "A dog."}],
            "no key says the caption (such as caption or captions); its entries",
        ),
        ([{"caption": "A dog."}], "no key says which picture (such as image or file); its entries have caption"),
        ("[1, 2", "not valid JSON"),
        ({"version": 3}, "no list of entries that describe pictures"),
    ],
)
def test_json_that_cannot_be_read_beside_pictures_is_told(content: Any, said: str, tmp_path: Path) -> None:
    data = read(written(tmp_path, content, "my_captions.json"))
    assert data.layout == "folder"
    (issue,) = data.issues
    assert (issue.kind, issue.where) == ("captions not read", "my_captions.json")
    assert said in issue.detail
    written(tmp_path, content, "package.json")
    assert [issue.where for issue in read(tmp_path).issues[1:]] == ["1 other file (.json), such as package.json"]


def test_beside_a_table_simple_json_is_left_and_told(tmp_path: Path) -> None:
    written(tmp_path, {"a.jpg": ["A dog."]})
    (tmp_path / "captions.csv").write_text("image,caption\na.jpg,A wolf.\n")
    data = read(tmp_path)
    assert data.captions == ("A wolf.",)
    assert [issue.where for issue in data.issues] == ["captions.json"]
    assert "names pictures that captions.csv names too" in data.issues[0].detail
    assert read(tmp_path / "captions.json").captions == ("A dog.",)


def test_karpathys_and_cocos_files_stay_theirs(tmp_path: Path) -> None:
    karpathy = {"images": [{"filename": "a.jpg", "split": "test", "sentences": [{"raw": "A dog.", "sentid": 3}]}]}
    assert read(written(tmp_path, karpathy)).layout == "karpathy"
    coco = {"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": [{"id": 2, "image_id": 1, "caption": "A dog."}]}
    assert read(written(tmp_path, coco)).layout == "coco"


@pytest.mark.parametrize("key", [None, "data"])
@pytest.mark.parametrize("odd", [[None], [7, "text", True], [[]], [{}], [{"image": None, "caption": None}]])
def test_one_odd_entry_at_the_beginning_ends_nothing(key: str | None, odd: list[Any], tmp_path: Path) -> None:
    entries = [*odd, {"image": "a.jpg", "caption": "A dog."}, {"image": "b.png", "caption": None}, *odd]
    for place in (written(tmp_path, entries if key is None else {key: entries}), tmp_path / "captions.json"):
        data = read(place)
        assert captions(data) == {"a.jpg": ["A dog."], "b.png": []}
        assert len(data.issues) == 2 * len(odd) + 1


def test_a_picture_that_stands_twice_keeps_all_captions(tmp_path: Path) -> None:
    (tmp_path / 'a "b".jpg').touch()
    (tmp_path / "captions.json").write_text('{"a \\"b\\".jpg": "A dog.", "a \\"b\\".jpg": ["A pup.", "A pet."]}')
    assert read(tmp_path).captions == ("A dog.", "A pup.", "A pet.")
