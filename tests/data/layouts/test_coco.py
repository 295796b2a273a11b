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
    assert data.issues[0].detail == (
        "no picture named '000000000025.jpg'; left out: 'Caption 0 of 25.', 'Caption 1 of 25.'"
    )
    kinds = ["missing picture", "caption of no picture", "empty caption", "malformed text"]
    assert [issue.kind for issue in data.issues] == kinds
    assert data.issues[1].where.endswith("annotations[2]")
    assert data.issues[1].detail == "no entry of 'images' has the id 140; left out: 'Of nothing.'"


def test_of_two_files_of_the_same_pictures_that_which_names_more_is_read(coco: Path) -> None:
    write(coco / "annotations" / "captions_train2014.json", content([9], prefix="COCO_train2014_"))
    write(coco / "annotations" / "captions_other2014.json", content([3]))
    (coco / "annotations" / "captions_broken2014.json").write_text(json.dumps(content([3]))[:-3])
    data = read(coco)
    assert data.image_ids == ("9", "25", "139")
    assert {issue.where: issue.detail.partition(";")[0] for issue in data.issues} == {
        "annotations/captions_train2014.json": "names no picture of the folder",
        "annotations/captions_other2014.json": "names no picture of the folder",
        "annotations/captions_broken2014.json": "not valid JSON (Expecting ',' delimiter, column 250)",
    }
    write(coco / "annotations" / "captions_few2014.json", content([9]))
    data = read(coco)
    assert data.image_ids == ("9", "25", "139")
    assert "annotations/captions_few2014.json" in {
        issue.where for issue in data.issues if "names pictures that annotations/captions_train2017" in issue.detail
    }
    assert read(coco / "annotations" / "captions_train2014.json", captions_only=True).image_ids == ("9",)


def test_files_that_number_their_own_pictures_get_ids_that_say_which(tmp_path: Path) -> None:
    """Each of two files counts from 1, and in each folder a picture has the same name."""
    for split, numbers in (("train", [1, 2]), ("test", [1])):
        add_pictures(tmp_path / split, numbers)
        write(tmp_path / f"captions_{split}.json", content(numbers, 1))
    data = read(tmp_path)
    assert data.image_ids == ("captions_test/1", "1", "2")
    assert [path.parent.name for path in data.paths] == ["test", "train", "train"]
    assert (data.splits, data.issues) == (("test", "train", "train"), ())
    (tmp_path / "test" / "000000000001.jpg").rename(tmp_path / "test" / "000000000004.jpg")
    data = read(tmp_path)  # and none is looked for in the folder of another split
    assert data.image_ids == ("1", "2", "test/000000000004.jpg")
    assert data.captions == ("Caption 0 of 1.", "Caption 0 of 2.")


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
        ({**content([1]), "images": [3, {"file_name": "a.jpg"}]}, "images[0] (needs 'id'"),
        ({**content([1]), "images": []}, "its list 'images' is empty"),
        ({**content([1]), "annotations": [{"image_id": 1, "bbox": "caption"}]}, "its list 'annotations' holds no capt"),
    ],
)
def test_malformed_files_are_one_line(tmp_path: Path, said: object, line: str) -> None:
    file = write(tmp_path / "captions_val2017.json", said)
    with pytest.raises(UserError) as caught:
        read(file, captions_only=True)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
    (tmp_path / "a.jpg").touch()
    data = read(tmp_path)
    assert (data.layout, data.image_ids) == ("folder", ("a.jpg",))
    assert [issue.where for issue in data.issues] == ["captions_val2017.json"]


EVERY = ["Caption 0 of 1.", "Caption 0 of 2.", "Caption 1 of 1.", "Caption 1 of 2."]


@pytest.mark.parametrize(
    ("said", "kind", "left"),
    [
        (changed("images", 1, id=2.0), None, []),
        (changed("images", 1, id="2"), None, []),
        (changed("annotations", 1, image_id=2.0), None, []),
        (changed("annotations", 1, image_id="2"), None, []),
        (changed("annotations", 1, id=KeyError), None, []),
        (changed("annotations", 1, id=None), None, []),
        (changed("annotations", 1, id=[]), "malformed entry", []),
        (changed("annotations", 1, id=10), "repeated caption id", []),
        (changed("annotations", 1, id=float("nan")), "malformed entry", []),
        (changed("images", 1, id=1), "repeated id", EVERY),
        (changed("images", 1, id=KeyError), "malformed entry", [EVERY[1], EVERY[3]]),
        (changed("images", 1, id=[1]), "malformed entry", [EVERY[1], EVERY[3]]),
        (changed("images", 1, id=True), "malformed entry", [EVERY[1], EVERY[3]]),
        (changed("images", 1, file_name=3), "malformed entry", [EVERY[1], EVERY[3]]),
        (changed("images", 1, file_name=KeyError), "malformed entry", [EVERY[1], EVERY[3]]),
        (changed("annotations", 1, caption=None), "empty caption", [EVERY[1]]),
        (changed("annotations", 1, caption=KeyError), "malformed entry", [EVERY[1]]),
        (changed("annotations", 1, caption=7), "malformed entry", [EVERY[1]]),
        (changed("annotations", 1, caption=[EVERY[1]]), "malformed entry", [EVERY[1]]),
        (changed("annotations", 1, image_id=KeyError), "malformed entry", [EVERY[1]]),
        (changed("annotations", 1, image_id=2.5), "malformed entry", [EVERY[1]]),
        (changed("annotations", 1, image_id=99), "caption of no picture", [EVERY[1]]),
    ],
)
def test_one_odd_entry_is_listed_and_the_rest_is_read(
    tmp_path: Path, said: dict[str, Any], kind: str | None, left: list[str]
) -> None:
    """With another image that is sound, so that the whole is read; what is left out is listed with its caption."""
    more = content([5], 1)
    said["images"].append(more["images"][0])
    said["annotations"] += [*more["annotations"], *([7, "a text", None, []] if kind else [])]
    file = write(tmp_path / "captions_val2017.json", said)
    data = read(file, captions_only=True)
    kept = [text for text in EVERY if text not in left] + ["Caption 0 of 5."]
    assert list(data.captions) == kept
    owners = [data.image_ids[image] for image in data.image_of_caption]
    assert owners == [text.rstrip(".").rpartition(" ")[2] for text in kept]
    details = [issue.detail for issue in data.issues]
    if kind != "empty caption" and not (kind == "malformed entry" and said["annotations"][1].get("caption", 7) == 7):
        assert all(any(text in detail for detail in details) for text in left)
    if kind is None:
        assert details == []
    else:
        kinds = [issue.kind for issue in data.issues]
        assert kind in kinds
        assert kinds.count("malformed entry") == 4 + (kind == "malformed entry")


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


def test_a_picture_in_the_folder_of_another_split_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "1.jpg").touch()
    for split in ("train", "val"):
        said = {
            "images": [{"id": 1, "file_name": "1.jpg"}],
            "annotations": [{"id": 1, "image_id": 1, "caption": f"of {split}"}],
        }
        (tmp_path / f"captions_{split}.json").write_text(json.dumps(said))
    for path in (tmp_path, tmp_path / "captions_train.json"):
        data = read(path)
        assert (data.captions, data.splits) == (("of train",), ("train",))
    with pytest.raises(UserError, match="no picture named '1.jpg', nor any other"):
        read(tmp_path / "captions_val.json")
    said["images"][0]["file_name"] = "train/1.jpg"
    (tmp_path / "captions_val.json").write_text(json.dumps(said))
    assert read(tmp_path / "captions_val.json").captions == ("of val",)
