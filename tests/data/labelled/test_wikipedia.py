from pathlib import Path

import numpy as np
import pytest
import scipy.io

from rungwise.core import UserError
from rungwise.data import read
from rungwise.data.files import FeatureRows

SIZES = {"train": 4, "test": 3}


def write(root: Path, *, lists: bool = True, categories: bool = True, **more: object) -> Path:
    draw = np.random.default_rng(0)
    arrays: dict[str, object] = {}
    for split, end in (("train", "tr"), ("test", "te")):
        arrays[f"I_{end}"], arrays[f"T_{end}"] = (
            draw.normal(size=(SIZES[split], 6)),
            draw.normal(size=(SIZES[split], 3)),
        )
        if lists:
            lines = [f"{split}-text-{row}\t{split}-image-{row}\t{row % 2 + 1}\n" for row in range(SIZES[split])]
            (root / f"{split}set_txt_img_cat.list").write_text("".join(lines))
    if categories:
        (root / "categories.list").write_text("art\nbiology\n")
    arrays |= more
    scipy.io.savemat(root / "raw_features.mat", {name: value for name, value in arrays.items() if value is not None})
    return root


def test_images_and_texts_are_rows_with_the_labels_of_the_lists(tmp_path: Path) -> None:
    data = read(write(tmp_path))
    assert (data.layout, len(data), data.issues) == ("wikipedia", 7, ())
    assert data.splits == ("train",) * 4 + ("test",) * 3
    assert data.image_ids[3:5] == ("train-image-3", "test-image-0")
    assert data.captions == data.caption_ids
    assert data.caption_ids[3:5] == ("train-text-3", "test-text-0")
    assert data.labels[:3] == (("art",), ("biology",), ("art",))
    stored = scipy.io.loadmat(tmp_path / "raw_features.mat")
    test = data.split("test")
    assert isinstance(test.pictures, FeatureRows)
    assert isinstance(test.texts, FeatureRows)
    np.testing.assert_array_equal(test.pictures[:], stored["I_te"])
    np.testing.assert_array_equal(test.texts[:], stored["T_te"])
    np.testing.assert_array_equal(data.select([5, 0]).texts[:], np.stack([stored["T_te"][1], stored["T_tr"][0]]))


def test_the_file_itself_under_any_name_and_without_the_images(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "raw_features.mat").rename(tmp_path / "mine.mat")
    data = read(tmp_path / "mine.mat", captions_only=True)
    assert not data.has_pictures
    assert data.text_features is not None


def test_without_lists_rows_are_numbered(tmp_path: Path) -> None:
    data = read(write(tmp_path, lists=False))
    assert data.image_ids[3:5] == ("train/3", "test/0")
    assert [(issue.kind, issue.detail) for issue in data.issues] == [
        ("no label", "4 of 4 rows of train, 3 of 3 rows of test")
    ]
    assert (data.layout, data.labels) == ("labelled_features", ())


def test_without_one_of_the_lists_its_rows_are_numbered(tmp_path: Path) -> None:
    (write(tmp_path) / "testset_txt_img_cat.list").unlink()
    data = read(tmp_path)
    assert (data.layout, data.image_ids[3:5]) == ("wikipedia", ("train-image-3", "test/0"))
    assert [(issue.kind, issue.detail) for issue in data.issues] == [
        ("missing list", "the 3 rows are numbered"),
        ("no label", "3 of 3 rows of test"),
    ]


def test_without_names_of_categories_their_numbers_are_the_labels(tmp_path: Path) -> None:
    assert read(write(tmp_path, categories=False)).labels[1] == ("2",)


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("testset_txt_img_cat.list", "t i 1\n", "1 lines, but raw_features.mat has 3 rows"),
        ("testset_txt_img_cat.list", "t i 1\nt2 i2\nt3 i3 1\n", "line 2: not the id of a text"),
        ("testset_txt_img_cat.list", "t i 1\nt2 i2 one\nt3 i3 1\n", "line 2: not the id of a text"),
        ("testset_txt_img_cat.list", "t i 1\nt2 i2 3\nt3 i3 1\n", "line 2: category 3, but categories.list names 2"),
        ("testset_txt_img_cat.list", "t i 1\nt2 i2 0\nt3 i3 1\n", "line 2: category 0, but"),
        ("testset_txt_img_cat.list", "t i 1\nt2 i 1\nt3 i3 1\n", "image id 'i' stands twice"),
        ("testset_txt_img_cat.list", "t i 1\nt i2 1\nt3 i3 1\n", "caption id 't' stands twice"),
        ("testset_txt_img_cat.list", "", "the file is empty"),
    ],
)
def test_lists_that_do_not_fit(tmp_path: Path, file: str, text: str, said: str) -> None:
    (write(tmp_path) / file).write_text(text)
    with pytest.raises(UserError, match=said) as caught:
        read(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"T_te": np.ones((2, 3))}, r"I_te of shape \(3, 6\) and T_te of shape \(2, 3\)"),
        ({"T_te": np.ones((3, 4))}, r"T_te is of shape \(3, 4\)"),
        ({"I_tr": np.ones((4, 6, 2))}, "I_tr of shape"),
        ({"I_tr": "words"}, "'I_tr' is no full array of real numbers"),
        ({"I_tr": None}, "holds no array 'I_tr'; give a file with I_tr, T_tr, I_te, T_te"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path: Path, more: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        read(write(tmp_path, **more) / "raw_features.mat")


def test_a_part_may_be_empty_and_not_both(tmp_path: Path) -> None:
    empty = {"I_te": np.ones((0, 6)), "T_te": np.ones((0, 3))}
    data = read(write(tmp_path, lists=False, **empty))
    assert data.split_names == ("train",)
    assert data.text_features is not None
    with pytest.raises(UserError, match="its arrays have no rows"):
        read(write(tmp_path, lists=False, **empty, I_tr=np.ones((0, 6)), T_tr=np.ones((0, 3))))


def test_other_and_damaged_mat_files_in_a_folder(tmp_path: Path) -> None:
    write(tmp_path)
    scipy.io.savemat(tmp_path / "other.mat", {"x": np.ones((2, 2))})
    (tmp_path / "broken.mat").write_bytes(b"MATLAB")
    data = read(tmp_path)
    assert [(issue.kind, issue.where) for issue in data.issues] == [("unreadable file", "broken.mat")]


@pytest.mark.real_data
def test_the_published_set(real_data: Path) -> None:
    data = read(real_data / "wikipedia")
    assert (data.layout, data.issues) == ("wikipedia", ())
    assert (len(data.split("train")), len(data.split("test"))) == (2173, 693)
    assert isinstance(data.pictures, FeatureRows)
    assert isinstance(data.texts, FeatureRows)
    assert (data.pictures.shape, data.texts.shape) == ((2866, 128), (2866, 10))
    assert len({label for labels in data.labels for label in labels}) == 10
    stored = scipy.io.loadmat(real_data / "wikipedia" / "raw_features.mat")
    np.testing.assert_array_equal(data.split("test").texts[:], stored["T_te"])
    np.testing.assert_array_equal(data.split("train").pictures[:], stored["I_tr"])
