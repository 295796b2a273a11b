"""Parts become one collection. The two layouts that give parts are tested beside it."""

from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.data.labelled._labelled_features import FeatureArray, FeatureSplit, collection_of, documents_of

ROOT = Path("features")


def part(split: str, rows: int, width: int = 4, kind: str = "f8", **more: object) -> FeatureSplit:
    draw = np.random.default_rng(rows)
    images = FeatureArray(f"I_{split}", draw.integers(0, 9, (rows, width)).astype(kind))
    texts = FeatureArray(f"T_{split}", draw.integers(0, 9, (rows, 3)).astype(kind))
    return FeatureSplit(split, images, texts, **more)  # type: ignore[arg-type]


def collection(*parts: FeatureSplit, captions_only: bool = False) -> ImageCaptions:
    return collection_of(parts, ROOT, name="photos", layout="labelled_features", captions_only=captions_only)


def rows_of(found: object) -> np.ndarray:
    assert isinstance(found, FeatureRows)
    return found[:]


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "u1", "i2", "i8", "?"])
def test_rows_of_any_type_are_given_as_floating_point(kind: str) -> None:
    parts = part("train", 3, kind=kind), part("db", 2, kind=kind)
    data = collection(*parts)
    for side in ("images", "texts"):
        stored = np.concatenate([getattr(one, side).values for one in parts])
        found = rows_of(data.pictures if side == "images" else data.texts)
        assert found.dtype == (stored.dtype if stored.dtype.kind == "f" else np.float32)
        np.testing.assert_array_equal(found, stored)


def test_any_name_of_a_split_will_do() -> None:
    data = collection(part("train", 3), part("db", 2))
    assert (data.split_names, len(data.split("db"))) == (("train", "db"), 2)
    assert data.image_ids == ("train/0", "train/1", "train/2", "db/0", "db/1")
    assert data.captions == data.caption_ids == data.image_ids
    np.testing.assert_array_equal(data.image_of_caption, np.arange(5))


def test_ids_that_two_parts_use_get_the_name_of_the_split() -> None:
    data = collection(part("train", 2, image_ids=("a", "b")), part("test", 1, image_ids=("a",)))
    assert data.image_ids == ("train/a", "train/b", "test/a")
    data = collection(part("train", 2, image_ids=("a", "b")), part("test", 1, image_ids=("c",)))
    assert data.caption_ids == ("a", "b", "c")


def test_one_issue_counts_the_rows_without_a_label() -> None:
    labels = (("sky",), (), ("sky", "sea"))
    data = collection(part("train", 3, labels=labels), part("val", 1, labels=(("sea",),)), part("test", 2))
    assert data.labels == (*labels, ("sea",), (), ())
    assert [(issue.kind, issue.where, issue.detail) for issue in data.issues] == [
        ("no label", "features", "1 of 3 rows of train, 2 of 2 rows of test")
    ]
    assert collection(part("train", 1, labels=(("sky",),))).issues == ()


def test_rows_are_called_by_their_array_in_messages() -> None:
    data = collection(part("train", 3), part("val", 0), part("test", 2)).split("test")
    assert data.features is not None
    assert data.features.place(1) == "features, I_test, row 1"


def test_images_are_left_out_on_request() -> None:
    data = collection(part("train", 3), captions_only=True)
    assert not data.has_pictures
    assert data.text_features is not None


def test_a_part_may_be_empty_and_not_all() -> None:
    assert collection(part("train", 3), part("test", 0)).split_names == ("train",)
    with pytest.raises(UserError, match="features: its arrays have no rows; give another file"):
        collection(part("train", 0), part("test", 0))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (part("test", 2, width=5), r"I_test is of shape \(2, 5\), but the rows of I_train have 4 numbers"),
        (part("test", 2, width=0), r"I_test is of shape \(2, 0\) and type float64"),
        (part("test", 2, kind="c16"), r"I_test is of shape \(2, 4\) and type complex128; features are rows of numbers"),
        (part("test", 2, kind="U1"), r"type <U1"),
    ],
)
def test_rows_of_one_side_are_of_one_width(other: FeatureSplit, said: str) -> None:
    with pytest.raises(UserError, match=said):
        collection(part("train", 3), other)


@pytest.mark.parametrize(
    ("images", "texts", "said"),
    [
        ((3, 8), (2, 4), r"I of shape \(3, 8\) and T of shape \(2, 4\); save one row for each document in both$"),
        ((8, 3), (4, 3), "if each document is a column, transpose both, else save one row"),
        ((3, 8), (4, 3), "transpose T, else"),
        ((8, 3), (3, 4), "transpose I, else"),
        ((3,), (3, 4), "save one row for each document in both$"),
        ((3, 2, 2), (3, 4), "save one row for each document in both$"),
    ],
)
def test_sides_that_do_not_go_together(images: tuple[int, ...], texts: tuple[int, ...], said: str) -> None:
    with pytest.raises(UserError, match=said):
        documents_of(FeatureArray("I", np.ones(images)), FeatureArray("T", np.ones(texts)), ROOT)
