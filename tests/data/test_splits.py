from dataclasses import replace

import numpy as np
import pytest

from rungwise.core.errors import UserError
from rungwise.data import ImageCaptions
from rungwise.data.splits import with_splits, with_validation


def many(count: int) -> ImageCaptions:
    return ImageCaptions(tuple(f"{number}.jpg" for number in range(count)), (), np.zeros(0, np.int64))


def test_shares_are_about_right_and_stable() -> None:
    data = with_splits(many(4000), validation=0.1, test=0.2)
    shares = {name: data.splits.count(name) / 4000 for name in data.split_names}
    assert abs(shares["val"] - 0.1) < 0.02
    assert abs(shares["test"] - 0.2) < 0.02
    assert with_splits(many(8000), validation=0.1, test=0.2).splits[:4000] == data.splits


def test_present_splits_are_left_alone() -> None:
    data = ImageCaptions(("a", "b"), (), np.zeros(0, np.int64), splits=("train", "none"))
    assert with_splits(data) is data


def test_pictures_are_held_out_where_none_validate() -> None:
    data = replace(many(1000), splits=("train",) * 900 + ("test",) * 100)
    held = with_validation(data)
    assert 60 < held.splits.count("val") < 120
    assert held.splits[900:] == ("test",) * 100
    assert with_validation(held) is held
    few = replace(many(2), splits=("train", "train"))
    assert sorted(with_validation(few).splits) == ["train", "val"]
    one = replace(many(1), splits=("train",))
    assert with_validation(one) is one
    other = with_validation(replace(data, splits=("a",) * 1000), train=("a",), validation="dev")
    assert set(other.splits) == {"a", "dev"}


@pytest.mark.parametrize(
    ("there", "asked", "meant"),
    [("val", "vali", "val"), ("dev", "val", "dev"), ("holdout", "holduot", "holdout")],
)
def test_no_pictures_are_held_out_where_a_name_is_misspelt(there: str, asked: str, meant: str) -> None:
    data = replace(many(10), splits=("train",) * 6 + (there,) * 2 + ("test",) * 2, name="photos")
    with pytest.raises(UserError, match=f"no picture is in split '{asked}', .*; did you mean {meant}[?] It has"):
        with_validation(data, validation=asked)
    assert with_validation(data, validation=there) is data


def test_a_split_that_is_trained_on_is_none_that_validates() -> None:
    data = replace(many(10), splits=("train",) * 5 + ("val",) * 5)
    assert with_validation(data, train=("train", "val"), validation="held").splits.count("held") >= 1
