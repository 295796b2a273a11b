import copy
import pickle
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows

DATA = ImageCaptions(
    ("a", "b", "c"),
    ("a dog", "a cat", "a pup", "a bird"),
    np.array([1, 0, 1, 2]),
    paths=(Path("a.jpg"), Path("b.jpg"), Path("c.jpg")),
    splits=("train", "test", "train"),
    labels=(("cat",), ("dog", "pup"), ()),
    name="pets",
)
ROWS = FeatureRows(np.arange(6, dtype=np.float32).reshape(3, 2))


def test_selecting_keeps_all_that_belongs_to_an_image() -> None:
    part = DATA.select([1, 0], name="two")
    assert (part.image_ids, part.captions) == (("b", "a"), ("a dog", "a pup", "a cat"))
    assert part.image_of_caption.tolist() == [0, 0, 1]
    assert part.caption_ids == ("b#0", "b#1", "a#0")
    assert part.paths == (Path("b.jpg"), Path("a.jpg"))
    assert (part.splits, part.labels, part.name) == (("test", "train"), (("dog", "pup"), ("cat",)), "two")


def test_splits_by_name() -> None:
    assert DATA.split_names == ("train", "test")
    train = DATA.split("train")
    assert (train.image_ids, train.name, len(train)) == (("a", "c"), "pets/train", 2)
    assert DATA.split("test", "train").image_ids == DATA.image_ids
    with pytest.raises(UserError, match="pets: no picture is in split 'val'; it has train, test"):
        DATA.split("val")


def test_positives_of_a_block() -> None:
    assert DATA.positives(np.array([1, 2]), np.array([0, 1, 3])).tolist() == [
        [True, False, False],
        [False, False, True],
    ]


def test_rows_of_features_follow_their_images() -> None:
    data = replace(DATA, paths=(), features=ROWS)
    assert data.has_pictures
    assert data.pictures is ROWS
    assert data.split("train").pictures[:].tolist() == [[0, 1], [4, 5]]  # type: ignore[union-attr]
    chosen = data.select([2, 0]).features
    assert chosen is not None
    assert chosen[:].tolist() == [[4, 5], [0, 1]]
    assert chosen.parts[0] is ROWS.parts[0]


def test_what_a_model_reads_of_each_image() -> None:
    assert DATA.pictures == DATA.paths
    assert DATA.has_pictures
    captions_alone = replace(DATA, paths=())
    assert captions_alone.pictures == ()
    assert not captions_alone.has_pictures


def test_the_hash_is_of_ids_captions_and_ownership_alone() -> None:
    for same in (replace(DATA, paths=(), features=ROWS), replace(DATA, splits=()), replace(DATA, name="other")):
        assert same.content_hash() == DATA.content_hash()
    changes: list[dict[str, Any]] = [
        {"image_ids": ("a", "b", "d"), "caption_ids": DATA.caption_ids},
        {"captions": ("a dog", "a cat", "a pup", "a crow")},
        {"image_of_caption": np.array([1, 0, 1, 1])},
        {"caption_ids": ("1", "2", "3", "4")},
    ]
    assert DATA.content_hash() not in {replace(DATA, **change).content_hash() for change in changes}
    # The hash keys files that exist: it may not change from one version to the next.
    assert DATA.content_hash()[:16] == "0ca371a3c97f18ac"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_of_caption": np.array([0])}, r"4 captions but image_of_caption has shape \(1,\)"),
        ({"image_of_caption": np.array([0, 1, 2, 3])}, "image_of_caption runs 0..3 but there are 3 images"),
        ({"paths": (Path("a.jpg"),)}, "1 paths for 3 items; give one each, or none at all"),
        ({"splits": ("train",)}, "1 splits for 3 items"),
        ({"image_ids": ("a", "b", "a")}, "image id 'a' stands twice; ids must be unique"),
        ({"caption_ids": ("1", "2", "2", "3")}, "caption id '2' stands twice"),
        ({"features": ROWS}, "has both picture files and features; give one of them"),
        ({"paths": (), "features": ROWS.take([0])}, "1 rows of features for 3 items; give one each"),
    ],
)
def test_parts_that_do_not_fit_get_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=f"^pets: {message}") as caught:
        replace(DATA, **change)
    assert "\n" not in str(caught.value)


def test_a_collection_of_any_size_prints_few_lines() -> None:
    ids = tuple(f"a picture of a very long name {n}" for n in range(5_000))
    data = ImageCaptions(ids, ids, np.arange(5_000), splits=("train",) * 5_000, labels=(("x",),) * 5_000, paths=ids)
    lines = repr(data).splitlines()
    assert lines[0] == "collection: 5,000 images, 5,000 captions, 1 an image"
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 120


def test_a_notebook_shows_what_a_collection_holds() -> None:
    data = ImageCaptions(("a<b>", "b"), ("a <dog>", "a cat"), np.array([0, 1]), name="pets & more")
    html = data._repr_html_()
    assert "pets &amp; more: 2 images, 2 captions, 1 an image" in html
    assert "a &lt;dog&gt;" in html
    assert "<dog>" not in html


COPIES: dict[str, Callable[[ImageCaptions], ImageCaptions]] = {
    "pickle": lambda data: pickle.loads(pickle.dumps(data)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_is_equal_and_its_mappings_stay_read_only(copied: Callable[[ImageCaptions], ImageCaptions]) -> None:
    data = replace(DATA, columns={"year": (2020, None, 2021)}, fallbacks={"place": ("Rome", None, None)})
    again = copied(data)
    for field in fields(data):
        assert np.all(getattr(again, field.name) == getattr(data, field.name)), field.name
    for one in (data, again, copied(again)):
        for mapping in (one.columns, one.fallbacks):
            with pytest.raises(TypeError, match="does not support item assignment"):
                mapping["new"] = ()  # type: ignore[index]
    rows = copied(replace(DATA, paths=(), features=ROWS)).features
    assert rows is not None
    assert np.array_equal(rows[:], ROWS[:])


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda: DATA.select("test"), "pets: select() takes positions, got 'test'; .split('test') takes a split"),
        (lambda: DATA.save(None), "folder= got NoneType; give the folder to write"),
        (lambda: DATA.save(""), "folder= is empty; give the folder to write"),
    ],
)
def test_a_wrong_argument_is_one_line(call: Callable[[], Any], line: str) -> None:
    with pytest.raises(UserError) as refused:
        call()
    assert str(refused.value) == line
