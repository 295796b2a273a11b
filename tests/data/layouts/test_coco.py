import json
from pathlib import Path
from typing import Any

import pytest

from rungwise.core import UserError, limited
from rungwise.data import read

YEAR = "2017"


def content(numbers: list[int], captions: int = 2, prefix: str = "") -> dict[str, Any]:
    images = [{"id": number, "file_name": f"{prefix}{number:012d}.jpg", "height": 2, "width": 3} for number in numbers]
    annotations = [
        {"image_id": number, "id": number * 10 + n, "caption": f"Caption {n} of {number}."}
        for n in range(captions)
        for number in numbers
    ]
    return {"info": {"year": 2017}, "licenses": [], "images": images, "annotations": annotations}


def write(path: Path, said: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(said), encoding="utf-8")
    return path


def add_pictures(root: Path, numbers: list[int]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        (root / f"{number:012d}.jpg").touch()


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    """The published folder, with boxes beside the captions, and pictures in a folder for each split."""
    root = tmp_path / "coco"
    for split, numbers in (("train", [9, 25]), ("val", [139])):
        write(root / "annotations" / f"captions_{split}{YEAR}.json", content(numbers))
        boxes = content(numbers)
        boxes["annotations"] = [{"image_id": numbers[0], "id": 1, "bbox": [0, 0, 1, 1], "category_id": 18}]
        write(root / "annotations" / f"instances_{split}{YEAR}.json", boxes)
        add_pictures(root / f"{split}{YEAR}", numbers)
    return root


def test_the_published_folder(coco: Path) -> None:
    data = read(coco)
    assert (data.layout, data.name, data.issues) == ("coco", "coco", ())
    assert data.image_ids == ("9", "25", "139")
    assert data.splits == ("train", "train", "val")
    assert [path.relative_to(coco).as_posix() for path in data.paths] == [
        "train2017/000000000009.jpg",
        "train2017/000000000025.jpg",
        "val2017/000000000139.jpg",
    ]
    assert data.caption_ids == ("90", "250", "91", "251", "1390", "1391")
    assert [captions.tolist() for captions in data.captions_of_image] == [[0, 2], [1, 3], [4, 5]]


def test_one_file_alone_finds_the_pictures_beside_its_folder(coco: Path) -> None:
    data = read(coco / "annotations" / "captions_val2017.json")
    assert (data.image_ids, data.splits, len(data.paths)) == (("139",), ("val",), 1)
    assert data.layout == "coco"


def test_pictures_of_one_name_are_told_by_the_folder_that_the_file_names(coco: Path) -> None:
    add_pictures(coco / "train2017", [139])
    add_pictures(coco / "val2017", [9])
    data = read(coco)
    found = dict(zip(data.image_ids, data.paths, strict=True))
    assert (found["9"].parent.name, found["139"].parent.name) == ("train2017", "val2017")


@pytest.mark.parametrize("captions", [1, 3])
def test_any_file_and_any_folder(tmp_path: Path, captions: int) -> None:
    said = content([7, 8], captions)
    said["images"][0]["split"] = "test"
    said["annotations"] = [one for one in said["annotations"] if one["image_id"] == 7]
    write(tmp_path / "mine.json", {key: said[key] for key in ("annotations", "images")})
    add_pictures(tmp_path / "deep" / "down", [7, 8])
    for path in (tmp_path, tmp_path / "mine.json"):
        data = read(path)
        assert (data.layout, data.image_ids, data.splits) == ("coco", ("7", "8"), ("test", "none"))
        assert [len(one) for one in data.captions_of_image] == [captions, 0]


def test_captions_without_any_picture_at_hand(coco: Path) -> None:
    for split in ("train2017", "val2017"):
        for path in (coco / split).iterdir():
            path.unlink()
    data = read(coco)
    assert (data.paths, len(data)) == ((), 3)


def test_missing_pictures_and_captions_of_none_are_counted(coco: Path) -> None:
    (coco / "train2017" / "000000000025.jpg").unlink()
    add_pictures(coco / "test2017", [7])
    said = content([139])
    said["annotations"] += [
        {"image_id": 140, "id": 1, "caption": "Of nothing."},
        {"image_id": 139, "id": 2, "caption": "  "},
        {"image_id": 139, "id": 3, "caption": "half \ud83d"},
    ]
    write(coco / "annotations" / "captions_val2017.json", said)
    data = read(coco)
    assert data.image_ids == ("9", "139", "test2017/000000000007.jpg")
    assert data.issues[0].detail == "no picture named '000000000025.jpg'"
    kinds = ["missing picture", "caption of no picture", "empty caption", "malformed text"]
    assert [issue.kind for issue in data.issues] == kinds
    assert "annotations[2]: no entry of 'images' has the id 140" in f"{data.issues[1].where}: {data.issues[1].detail}"


def test_two_files_of_one_split_are_not_guessed_about(coco: Path) -> None:
    write(coco / "annotations" / "captions_train2014.json", content([3]))
    with pytest.raises(UserError, match="3 files of captions .*; give the one to read"):
        read(coco)
    assert read(coco / "annotations" / "captions_train2014.json", captions_only=True).image_ids == ("3",)


def test_the_middle_of_a_large_file_is_not_read_to_recognise_it(tmp_path: Path) -> None:
    said = content(list(range(3000)))
    assert len(json.dumps(said)) > 4 * (1 << 16)
    write(tmp_path / "captions_train2014.json", said)
    data = read(tmp_path, captions_only=True)
    assert (data.layout, len(data), len(data.captions)) == ("coco", 3000, 6000)


def changed(where: str, number: int, **fields: object) -> dict[str, Any]:
    said = content([1, 2])
    said[where][number] |= fields
    for key in [key for key, value in fields.items() if value is KeyError]:
        del said[where][number][key]
    return said


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({**content([1]), "images": [], "keys": {"file_name": 1}}, "has no list 'images', or an empty one"),
        ({**content([1]), "images": {"file_name": 1}}, "has no list 'images', or an empty one"),
        (changed("images", 1, id=1), "images[1]: id 1 stands already for '000000000001.jpg'"),
        (changed("images", 1, id=KeyError), "images[1]: needs 'id' (a number or a text)"),
        (changed("images", 1, id=[1]), "images[1]: needs 'id' (a number or a text)"),
        (changed("images", 1, id=True), "images[1]: needs 'id' (a number or a text)"),
        (changed("images", 1, file_name=3), "images[1]: needs 'file_name' (a text)"),
        (changed("annotations", 1, caption=None), "annotations[1]: needs 'caption' (a text)"),
        (changed("annotations", 1, image_id=KeyError), "annotations[1]: needs 'image_id'"),
        (changed("annotations", 1, id=10), "annotations[1]: caption id '10' stands already in"),
        (changed("annotations", 1, id=None), "annotations[1]: needs 'id'"),
        ({**content([1]), "images": [3, {"file_name": "a.jpg"}]}, "images[0]: needs 'id'"),
        ({**content([1]), "images": []}, "its list 'images' is empty"),
        ({**content([1]), "annotations": [3, {"caption": "x", "image_id": 1}]}, "annotations[0]: needs 'image_id'"),
    ],
)
def test_malformed_files_are_one_line(tmp_path: Path, said: object, line: str) -> None:
    file = write(tmp_path / "captions_val2017.json", said)
    with pytest.raises(UserError) as caught:
        read(file, captions_only=True)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_cut_file_and_one_beyond_the_limit(coco: Path) -> None:
    file = coco / "annotations" / "captions_val2017.json"
    with limited(text_bytes=100), pytest.raises(UserError, match="RUNGWISE_MAX_TEXT_BYTES"):
        read(file)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(UserError, match="captions_val2017.json: not valid JSON"):
        read(file)


def test_a_file_of_boxes_says_what_to_give(tmp_path: Path) -> None:
    said = content([1])
    said["annotations"] = [{"image_id": 1, "id": 1, "bbox": [0, 0, 1, 1], "note": {"caption": "x"}}]
    with pytest.raises(UserError, match="holds no captions; give a file such as captions_val2017.json"):
        read(write(tmp_path / "a.json", said))


def test_a_file_of_captions_that_was_cut_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    (tmp_path / "captions_val2017.json").write_text('{"images": [{"id": 1, "file_na')
    data = read(tmp_path)
    assert data.captions == ()
    assert [(one.kind, one.where) for one in data.issues] == [("unreadable file", "captions_val2017.json")]
