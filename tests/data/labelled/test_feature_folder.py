from pathlib import Path

import numpy as np
import pytest
import scipy.io

from rungwise.core import UserError, limited
from rungwise.data import read
from rungwise.data.files import FeatureRows
from rungwise.data.labelled import split_of_rows
from tests.odd_files import on_posix, put

SIZES = {"train": 4, "dev": 2, "test": 3}


def save(path: Path, values: np.ndarray) -> None:
    if path.suffix == ".npy":
        np.save(path, values)
    elif path.suffix == ".mat":
        scipy.io.savemat(path, {path.stem: values})
    else:
        path.write_text("".join(",".join(map(str, row)) + "\n" for row in np.atleast_2d(values).tolist()))


def write(root: Path, ending: str = ".npy", names: tuple[str, str, str] = ("images", "texts", "labels")) -> Path:
    draw = np.random.default_rng(0)
    for split, rows in SIZES.items():
        save(root / f"{split}_{names[0]}{ending}", draw.normal(size=(rows, 6)).astype(np.float32))
        save(root / f"{split}_{names[1]}{ending}", draw.integers(0, 9, (rows, 3)))
        save(root / f"{split}_{names[2]}{ending}", np.eye(4, dtype=np.uint8)[np.arange(rows)])
    return root


def rows_of(found: object) -> np.ndarray:
    assert isinstance(found, FeatureRows)
    return found[:]


@pytest.mark.parametrize("ending", [".npy", ".csv", ".mat"])
@pytest.mark.parametrize("names", [("images", "texts", "labels"), ("img", "txt", "img_lab"), ("img", "txt", "lab")])
def test_the_same_collection_in_every_form(tmp_path: Path, ending: str, names: tuple[str, str, str]) -> None:
    data = read(write(tmp_path, ending, names))
    assert (data.layout, data.name, data.issues) == ("labelled_features", tmp_path.name, ())
    assert data.splits == ("train",) * 4 + ("val",) * 2 + ("test",) * 3
    assert data.image_ids[3:5] == ("train/3", "val/0")
    assert data.split("test").labels == (("1",), ("2",), ("3",))
    draw = np.random.default_rng(0)
    for split, rows in SIZES.items():
        part = data.split("val" if split == "dev" else split)
        np.testing.assert_array_equal(rows_of(part.pictures), draw.normal(size=(rows, 6)).astype(np.float32))
        np.testing.assert_array_equal(rows_of(part.texts), draw.integers(0, 9, (rows, 3)))


def test_rows_of_numpy_files_stay_in_them(tmp_path: Path) -> None:
    data = read(write(tmp_path))
    assert data.features is not None
    assert all(isinstance(part, np.memmap) for part in data.features.parts)
    assert data.text_features is not None
    assert data.text_features.dtype == np.float32  # counts of words


def test_ids_names_of_classes_and_words(tmp_path: Path) -> None:
    write(tmp_path)
    for path in tmp_path.glob("*_labels.npy"):
        path.unlink()
    (tmp_path / "train_labels.csv").write_text("sky\nsea|sky\n\nsand\n")
    (tmp_path / "test_ids.txt").write_text("a\nb\nc\n")
    data = read(tmp_path)
    assert data.labels == (("sky",), ("sea", "sky"), (), ("sand",), (), (), (), (), ())
    assert data.split("test").caption_ids == ("a", "b", "c")
    assert [issue.detail for issue in data.issues] == ["1 of 4 rows of train, 2 of 2 rows of val, 3 of 3 rows of test"]
    (tmp_path / "categories.list").write_text("one\ntwo\nthree\nfour\n")
    assert read(write(tmp_path, ".npy", ("images", "texts", "lab")) / "test_images.npy").labels[0] == ("one",)


def test_one_file_stands_for_its_split(tmp_path: Path) -> None:
    write(tmp_path)
    for name in ("dev_images.npy", "dev_texts.npy", "dev_labels.npy"):
        assert read(tmp_path / name).split_names == ("val",)
    assert not read(tmp_path / "dev_images.npy", captions_only=True).has_pictures
    assert split_of_rows(tmp_path / "dev_captions.npy") is None
    assert split_of_rows(tmp_path / "nowhere" / "dev_images.npy") is None


def test_labels_of_both_sides_must_agree(tmp_path: Path) -> None:
    write(tmp_path, ".mat", ("img", "txt", "img_lab"))
    save(tmp_path / "test_txt_lab.mat", np.eye(4)[:3])
    assert read(tmp_path).split("test").labels == (("1",), ("2",), ("3",))
    save(tmp_path / "test_txt_lab.mat", np.eye(4)[[0, 1, 3]])
    with pytest.raises(UserError, match=r"test_txt_lab\.mat, row 2: not the label that another file of test gives"):
        read(tmp_path)


def test_a_folder_below_is_found_and_of_several_one_must_be_given(tmp_path: Path) -> None:
    for name in ("deep", "nus", "voc"):
        (tmp_path / name).mkdir()
    (tmp_path / "deep" / "more").mkdir()
    write(tmp_path / "deep" / "more")
    assert read(tmp_path).name == "more"
    write(tmp_path / "nus")
    assert read(tmp_path).name == "nus"
    write(tmp_path / "voc")
    with pytest.raises(UserError, match=r"2 folders of features \(nus, voc\); give the one to read"):
        read(tmp_path)


def test_tables_of_captions_of_such_names_stay_tables(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    (tmp_path / "train_images.csv").write_text("id,file_name\n1,a.jpg\n")
    (tmp_path / "train_texts.csv").write_text("image,caption\na.jpg,A dog.\n")
    data = read(tmp_path)
    assert (data.layout, data.captions) == ("table", ("A dog.",))
    (tmp_path / "train_images.csv").unlink()
    np.save(tmp_path / "train_images.npy", np.ones((1, 2)))
    assert read(tmp_path).layout == "table"


def test_labels_alone_and_pictures_beside_are_said(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "extra_labels.csv").write_text("sky\n")
    (tmp_path / "class_labels.txt").write_text("sky\n")
    (tmp_path / "my_img.png").touch()
    assert [(issue.kind, Path(issue.where).name) for issue in read(tmp_path).issues] == [
        ("labels without rows", "extra_labels.csv"),
        ("pictures left out", "my_img.png"),
    ]


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        (
            "test_texts.npy",
            None,
            r"test_images\.npy: there is no test_texts \(\.npy, \.csv, \.mat\) beside it; add the",
        ),
        ("test_images.npy", None, r"test_texts\.npy: there is no test_images .* beside it; add the rows of the images"),
        (
            "test_texts.npy",
            np.ones((2, 3)),
            r"test_images\.npy of shape \(3, 6\) and test_texts\.npy of shape \(2, 3\)",
        ),
        (
            "test_texts.npy",
            np.ones((7, 3)),
            r"if each document is a column, transpose test_texts\.npy, else save one row",
        ),
        ("test_texts.npy", np.ones((3, 5)), r"test_texts\.npy is of shape \(3, 5\), but the rows of train_texts\.npy"),
        ("test_texts.npy", np.ones((0, 3)), r"test_texts\.npy: an array of shape \(0, 3\) holds no features"),
        ("test_texts.npy", np.array(["a", "b", "c"]), r"test_texts\.npy of shape \(3,\)"),
        ("test_texts.npy", np.array([{}]), r"test_texts\.npy: cannot be mapped .* save an array of numbers"),
        ("test_labels.npy", np.ones((4, 3)), r"test_labels\.npy: labels of shape \(4, 3\) for 3 rows; transpose"),
        ("test_labels.npy", np.ones((2, 4)), r"test_labels\.npy: labels of shape \(2, 4\) for 3 rows"),
        ("test_labels.npy", np.full((3, 4), 0.5), r"test_labels\.npy, row 0: 0\.5 in column 1 of the labels"),
        ("test_labels.npy", np.array([0, 1, 2]), r"test_labels\.npy: labels are numbers of classes, but those of"),
        ("test_images.csv", np.ones((3, 6)), r"2 files of the images of test \(test_images\.csv, test_images\.npy\)"),
        ("val_images.npy", np.ones((3, 6)), r"val_images\.npy: there is no val_texts"),
    ],
)
def test_files_that_do_not_fit(tmp_path: Path, name: str, values: np.ndarray | None, said: str) -> None:
    write(tmp_path)
    (tmp_path / name).unlink(missing_ok=True)
    if values is not None:
        save(tmp_path / name, values)
    with pytest.raises(UserError, match=said) as caught:
        read(tmp_path)
    assert "\n" not in str(caught.value)


def test_two_splits_of_one_name_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    for side, width in (("images", 6), ("texts", 3)):
        np.save(tmp_path / f"val_{side}.npy", np.ones((2, width)))
    with pytest.raises(UserError, match=r"dev_images\.npy and val_images\.npy are both of the split val; keep one"):
        read(tmp_path)


@pytest.mark.parametrize("ids", ["a\nb\n", "a\n\nc\n", "a\nb\na\n"])
def test_ids_that_do_not_fit(tmp_path: Path, ids: str) -> None:
    (write(tmp_path) / "test_ids.txt").write_text(ids)
    with pytest.raises(UserError, match=r"test_ids\.txt.*(2 ids, but test_images|line 2: an empty|line 3: id 'a')"):
        read(tmp_path)


def test_other_endings_are_refused_where_nothing_else_is_there(tmp_path: Path) -> None:
    np.save(tmp_path / "train_images.npy", np.ones((1, 2)))
    (tmp_path / "train_texts.h5").touch()
    with pytest.raises(UserError, match=r"train_texts\.h5: rows are not read from files of this ending; save them as"):
        read(tmp_path)
    np.save(tmp_path / "train_texts.npy", np.ones((1, 2)))
    (tmp_path / "train_labels.h5").touch()
    with pytest.raises(UserError, match=r"train_labels\.h5: numbers are not read from files of this ending"):
        read(tmp_path)


def test_rows_of_one_side_alone_are_explained(tmp_path: Path) -> None:
    np.save(tmp_path / "train_images.npy", np.ones((1, 2)))
    with pytest.raises(UserError, match=r"train_images\.npy: there is no train_texts"):
        read(tmp_path)
    (tmp_path / "a.jpg").touch()
    assert read(tmp_path).layout == "folder"


@pytest.mark.parametrize("ending", [".npy", ".csv", ".mat"])
@pytest.mark.parametrize("side", ["images", "texts", "labels"])
def test_empty_and_damaged_files(tmp_path: Path, ending: str, side: str) -> None:
    path = write(tmp_path, ending) / f"test_{side}{ending}"
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], b"\x80\0\xff" * 43 + whole[129:]):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=path.name) as caught:
            read(tmp_path)
        assert "\n" not in str(caught.value)


def test_a_limit_holds_for_text(tmp_path: Path) -> None:
    with limited(text_bytes=10), pytest.raises(UserError, match=r"train_images\.csv: .*RUNGWISE_MAX_TEXT_BYTES"):
        read(write(tmp_path, ".csv"))


@on_posix
@pytest.mark.parametrize("name", ["test_images.npy", "test_texts.csv", "test_labels.mat"])
def test_a_split_without_a_file_is_left_out_and_what_stands_there_is_not_read(tmp_path: Path, name: str) -> None:
    write(tmp_path)
    for path in tmp_path.glob("test_*"):
        path.unlink()
    put(tmp_path / name, "pipe")
    assert read(tmp_path).split_names == ("train", "val")
    with pytest.raises(UserError, match="is a pipe, not a file"):
        read(tmp_path / name)
