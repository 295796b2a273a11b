from dataclasses import replace

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import UNDRAWN, ImageCaptions, with_share, with_splits, with_validation


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


def drawn(data: ImageCaptions, share: float, seed: int = 0, train: tuple[str, ...] = ("train",)) -> set[str]:
    shared = with_share(data, train, share, seed)
    assert shared.image_ids == data.image_ids
    return {one for one, split in zip(shared.image_ids, shared.splits, strict=True) if split in train}


def test_a_share_is_nested_stable_and_of_the_seed() -> None:
    data = replace(many(1000), splits=("train",) * 900 + ("val",) * 100)
    tenth = drawn(data, 0.1)
    assert len(tenth) == 90
    assert tenth < drawn(data, 0.25) < drawn(data, 0.999)
    assert len(tenth & drawn(data, 0.1, seed=1)) < 30
    turned = ImageCaptions(data.image_ids[::-1], (), np.zeros(0, np.int64), splits=data.splits[::-1])
    assert drawn(turned, 0.1) == tenth
    assert with_share(data, ("train",), 1.0, 0) is data
    assert set(with_share(data, ("train",), 0.1, 0).splits) == {"train", UNDRAWN, "val"}
    assert with_share(data, ("train",), 0.1, 0).splits[900:] == ("val",) * 100


@pytest.mark.parametrize(("pictures", "share", "kept"), [(113_287, 0.03, 3398), (29_000, 0.25, 7250), (100, 0.29, 29)])
def test_the_whole_part_of_a_share_is_kept(pictures: int, share: float, kept: int) -> None:
    data = replace(many(pictures), splits=("train",) * pictures)
    assert len(drawn(data, share)) == kept


def test_a_share_is_of_all_splits_that_are_trained_on() -> None:
    data = replace(many(100), splits=("train",) * 50 + ("restval",) * 50)
    both = drawn(data, 0.5, train=("train", "restval"))
    assert len(both) == 50
    assert 0 < sum(int(one.split(".")[0]) < 50 for one in both) < 50


def test_a_share_that_leaves_nothing_says_what_would() -> None:
    data = replace(many(30), splits=("train",) * 30)
    with pytest.raises(UserError, match=r"a share of 0.01 of 30 training pictures leaves none; take at least 0.0334$"):
        with_share(data, ("train",), 0.01, 0)
    assert len(drawn(data, 0.0334)) == 1
