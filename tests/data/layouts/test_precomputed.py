from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.data import read
from rungwise.evaluation._protocols import ConsecutiveFolds


def vectors(count: int, seed: int = 0, shape: tuple[int, ...] = (4,)) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=(count, *shape)).astype(np.float32)


def write(root: Path, split: str, rows: NDArray[Any], captions: int | list[str], ids: list[str] | None = None) -> None:
    root.mkdir(exist_ok=True)
    np.save(root / f"{split}_ims.npy", rows)
    lines = captions if isinstance(captions, list) else [f"{split} caption {number}" for number in range(captions)]
    (root / f"{split}_caps.txt").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    if ids is not None:
        (root / f"{split}_ids.txt").write_text("".join(line + "\n" for line in ids))


def test_every_split_keeps_its_rows_and_its_captions(tmp_path: Path) -> None:
    rows = {"train": vectors(4, 1, (3, 2)), "dev": vectors(2, 2, (3, 2)), "testall": vectors(3, 3, (3, 2))}
    for split, count in (("testall", 6), ("dev", 14), ("train", 4)):
        write(tmp_path / "f30k_precomp", split, rows[split], count)
    data = read(tmp_path / "f30k_precomp")
    assert (data.layout, data.name, data.issues) == ("precomputed", "f30k_precomp", ())
    assert data.splits == ("train",) * 4 + ("val",) * 2 + ("testall",) * 3
    assert data.image_ids[3:7] == ("train/3", "val/0", "val/1", "testall/0")
    assert [len(captions) for captions in data.captions_of_image] == [1] * 4 + [7] * 2 + [2] * 3
    assert data.caption_ids[-1] == "testall/2#1"
    for split, name in (("train", "train"), ("dev", "val"), ("testall", "testall")):
        part = data.split(name)
        assert part.features is not None
        np.testing.assert_array_equal(part.features[:], rows[split])
        assert all(caption.startswith(f"{split} ") for caption in part.captions)
    assert data.features is not None
    assert all(isinstance(part, np.memmap) for part in data.features.parts)


def test_folds_of_testall_are_consecutive_rows(tmp_path: Path) -> None:
    rows = vectors(50)
    write(tmp_path, "testall", np.repeat(rows, 5, axis=0), 250)
    write(tmp_path, "test", rows[:10], 50)
    part = read(tmp_path).split("testall")
    folds = ConsecutiveFolds("five", count=5, size=10).folds(part.image_of_caption, len(part))
    for number, fold in enumerate(folds):
        assert part.features is not None
        np.testing.assert_array_equal(part.features[fold.images], rows[10 * number : 10 * number + 10])
        assert [part.captions[caption] for caption in fold.captions] == [
            f"testall caption {line}" for line in range(50 * number, 50 * number + 50)
        ]


def test_a_folder_around_several_says_which_there_are(tmp_path: Path) -> None:
    for name in ("f30k_precomp", "coco_precomp"):
        write(tmp_path / name, "dev", vectors(2), 4)
    with pytest.raises(UserError, match="precomputed features lie in coco_precomp, f30k_precomp; give the folder"):
        read(tmp_path)


@pytest.mark.parametrize("file", ["dev_ims.npy", "dev_caps.txt"])
def test_one_split_alone_by_either_of_its_files(tmp_path: Path, file: str) -> None:
    for split in ("dev", "test"):
        write(tmp_path, split, vectors(2), 4)
    assert read(tmp_path / file).split_names == ("val",)


@pytest.mark.parametrize("each", [2, 3, 5])
def test_rows_that_stand_once_for_each_caption_are_told_from_the_rows(tmp_path: Path, each: int) -> None:
    rows = vectors(200)
    rows[7] = rows[6]  # two images that look alike stay two
    write(tmp_path, "test", np.repeat(rows, each, axis=0), 200 * each)
    data = read(tmp_path)
    assert len(data) == 200
    assert data.image_of_caption.tolist() == np.repeat(np.arange(200), each).tolist()
    assert data.features is not None
    np.testing.assert_array_equal(data.features[:], rows)


def test_uneven_numbers_of_captions_need_ids(tmp_path: Path) -> None:
    counts = np.array([5, 6, 5, 7])
    rows, owners = vectors(4), np.repeat(np.arange(4), [5, 6, 5, 7])
    write(tmp_path, "val", rows[owners], 23)
    with pytest.raises(UserError, match=r"val_ims.npy: some rows stand several times, .*; write val_ids.txt with the"):
        read(tmp_path)
    ids = [f"COCO_{owner}" for owner in owners]
    for saved in (rows[owners], rows):
        write(tmp_path, "val", saved, 23, ids)
        data = read(tmp_path)
        assert data.image_ids == ("COCO_0", "COCO_1", "COCO_2", "COCO_3")
        assert [len(captions) for captions in data.captions_of_image] == counts.tolist()
        assert data.features is not None
        np.testing.assert_array_equal(data.features[:], rows)


def test_ids_of_each_row(tmp_path: Path) -> None:
    write(tmp_path, "test", vectors(3), 6, ["c", "a", "b"])
    data = read(tmp_path)
    assert (data.image_ids, data.caption_ids[:3]) == (("c", "a", "b"), ("c#0", "c#1", "a#0"))


def test_distinct_ids_settle_that_equal_rows_are_different_images(tmp_path: Path) -> None:
    rows = vectors(4)
    rows[1] = rows[0]
    write(tmp_path, "test", rows, 4, list("abcd"))
    assert read(tmp_path).image_ids == tuple("abcd")


def test_an_id_that_two_splits_use_gets_the_split_before_it(tmp_path: Path) -> None:
    write(tmp_path, "test", vectors(2), 2, ["1", "2"])
    write(tmp_path, "testall", vectors(3), 3, ["1", "2", "3"])
    data = read(tmp_path)
    assert data.image_ids == ("test/1", "test/2", "testall/1", "testall/2", "testall/3")
    assert data.split("testall").caption_ids[0] == "testall/1#0"


def test_an_empty_caption_is_left_out_and_moves_no_other(tmp_path: Path) -> None:
    write(tmp_path, "test", vectors(2), ["A dog.", "", " Ein Hund über Köln.\r", "A cat."])
    data = read(tmp_path)
    assert data.captions == ("A dog.", "Ein Hund über Köln.", "A cat.")
    assert data.image_of_caption.tolist() == [0, 1, 1]
    assert data.caption_ids == ("test/0#0", "test/1#0", "test/1#1")
    assert [(issue.kind, issue.where) for issue in data.issues] == [
        ("empty caption", f"{tmp_path / 'test_caps.txt'}, line 2")
    ]


def test_half_a_split_is_said(tmp_path: Path) -> None:
    write(tmp_path, "test", vectors(2), 2)
    np.save(tmp_path / "dev_ims.npy", vectors(2))
    (tmp_path / "train_caps.txt").write_text("a\n")
    data = read(tmp_path)
    assert data.split_names == ("test",)
    assert [(issue.kind, issue.detail) for issue in data.issues] == [
        ("incomplete split", "there is no dev_caps.txt beside it"),
        ("incomplete split", "there is no train_ims.npy beside it"),
    ]


def test_captions_alone(tmp_path: Path) -> None:
    write(tmp_path, "test", vectors(2), 4)
    data = read(tmp_path, captions_only=True)
    assert (len(data), len(data.captions), data.has_pictures) == (2, 4, False)


@pytest.mark.parametrize(
    ("rows", "captions", "ids", "message"),
    [
        (vectors(3), 7, None, r"x_ims.npy: 3 rows, but x_caps.txt has 7 captions, no whole number .*write x_ids.txt"),
        (vectors(4), 2, None, "4 rows, but x_caps.txt has 2 captions"),
        (
            vectors(3),
            6,
            ["a", "b"],
            r"x_ids.txt: 2 ids, but the split has 3 rows and 6 captions; write one id for each",
        ),
        (vectors(3), 6, ["a", "", "b"], "x_ids.txt, line 2: an empty line; write one id a line"),
        (vectors(3), 6, ["a", "b", "a"], "x_ids.txt: id 'a' stands for two images; give each image an id of its own"),
        (vectors(3), 6, list("aabbbb"), "x_ims.npy: 3 rows, but x_ids.txt names 2 images for 6 captions"),
        (np.repeat(vectors(3), 2, 0), 6, list("abcdef"), "all ids differ, but each row of x_ims.npy stands 2 times"),
        (np.zeros((2, 2), np.int8), 2, None, "x_ims.npy: numbers of type int8, .*; save them as float32"),
    ],
)
def test_counts_that_do_not_go_together_get_one_line(
    tmp_path: Path, rows: NDArray[Any], captions: int, ids: list[str] | None, message: str
) -> None:
    write(tmp_path, "x", rows, captions, ids)
    with pytest.raises(UserError, match=message) as caught:
        read(tmp_path)
    assert "\n" not in str(caught.value)


def test_splits_of_different_extractors_do_not_mix(tmp_path: Path) -> None:
    write(tmp_path, "train", vectors(2, shape=(36, 8)), 2)
    write(tmp_path, "test", vectors(2, shape=(36, 9)), 2)
    with pytest.raises(UserError, match=r"test_ims.npy: rows of shape \(36, 9\), but .*train_ims.npy has"):
        read(tmp_path)


def test_an_id_of_two_different_rows_is_refused(tmp_path: Path) -> None:
    rows = vectors(3)
    rows[1] = rows[0]
    write(tmp_path, "dev", rows, 3, ["a", "a", "b"])
    assert read(tmp_path).image_of_caption.tolist() == [0, 0, 1]
    rows[1, 2] += 1
    write(tmp_path, "dev", rows, 3, ["a", "a", "b"])
    with pytest.raises(UserError, match=r"dev_ids.txt: 'a' names the rows 0 and 1 of dev_ims.npy, which differ; give"):
        read(tmp_path)
