from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageEnhance

from rungwise.core import UserError
from rungwise.data.pictures import SIDE, alike_across, thumbnail_pixels
from rungwise.data.pictures._near_duplicates import same_picture


def scene(seed: int, side: int = 200) -> Image.Image:
    """Forty coloured boxes: something with details everywhere, as a photo has."""
    draw = np.random.default_rng(seed)
    picture = Image.new("RGB", (side, side), tuple(draw.integers(60, 200, 3).tolist()))
    pen = ImageDraw.Draw(picture)
    for _ in range(40):
        left, top = draw.uniform(0, 0.9, 2) * side
        width, height = draw.uniform(0.05, 0.4, 2) * side
        pen.rectangle((left, top, left + width, top + height), fill=tuple(draw.integers(0, 230, 3).tolist()))
    return picture


def thumbnail(picture: Image.Image, tmp_path: Path, quality: int = 70) -> np.ndarray:
    picture.save(tmp_path / "one.jpg", "JPEG", quality=quality)
    return thumbnail_pixels(tmp_path / "one.jpg")


def same(one: np.ndarray, other: np.ndarray) -> bool:
    found, _ = same_picture(one[None].astype(np.float32), other[None].astype(np.float32))
    back, _ = same_picture(other[None].astype(np.float32), one[None].astype(np.float32))
    assert found[0] == back[0], "either may come first"
    return bool(found[0])


@pytest.mark.parametrize(
    "change",
    [
        lambda picture: picture.resize((90, 130), Image.Resampling.BICUBIC),
        lambda picture: picture.crop((6, 2, 198, 192)),
        lambda picture: picture.crop((0, 12, 200, 200)),
        lambda picture: ImageEnhance.Brightness(picture).enhance(1.2),
        lambda picture: ImageEnhance.Contrast(picture).enhance(0.6),
        lambda picture: ImageEnhance.Brightness(picture.crop((5, 5, 195, 197)).resize((120, 120))).enhance(0.8),
    ],
    ids=["resized", "cropped", "one side cut", "brightened", "paler", "all of it"],
)
def test_a_picture_that_was_changed_a_little_is_the_same(change, tmp_path: Path) -> None:
    for seed in range(5):
        assert same(thumbnail(scene(seed), tmp_path), thumbnail(change(scene(seed)), tmp_path, 50))


@pytest.mark.parametrize(
    "change",
    [
        lambda picture: picture.rotate(90),
        lambda picture: picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        lambda picture: picture.crop((0, 0, 110, 110)),
        lambda picture: Image.fromarray(255 - np.asarray(picture)),
    ],
    ids=["turned", "mirrored", "a quarter", "negative"],
)
def test_a_picture_that_was_changed_much_is_another(change, tmp_path: Path) -> None:
    for seed in range(5):
        assert not same(thumbnail(scene(seed), tmp_path), thumbnail(change(scene(seed)), tmp_path))


def one_thing(left: float, top: float, side: int = 200) -> Image.Image:
    picture = Image.new("RGB", (side, side), (240, 240, 235))
    ImageDraw.Draw(picture).ellipse((left, top, left + 60, top + 60), fill=(200, 40, 40))
    return picture


def test_the_same_thing_at_another_place_is_another_picture(tmp_path: Path) -> None:
    """On a plain ground a shift looks like a crop, but for its size."""
    assert not same(thumbnail(one_thing(60, 70), tmp_path), thumbnail(one_thing(68, 70), tmp_path))
    assert same(thumbnail(one_thing(60, 70), tmp_path), thumbnail(one_thing(60, 70), tmp_path, 40))


def test_one_thing_more_makes_another_picture(tmp_path: Path) -> None:
    more = scene(0)
    ImageDraw.Draw(more).rectangle((60, 60, 110, 110), fill=(255, 255, 255))
    assert not same(thumbnail(scene(0), tmp_path), thumbnail(more, tmp_path))


def test_smooth_skies_are_not_the_same(tmp_path: Path) -> None:
    ramp = Image.linear_gradient("L").resize((200, 200))
    skies = [Image.merge("RGB", (ramp, ramp, Image.new("L", (200, 200), 220))) for _ in range(2)]
    for at, sky in enumerate(skies):
        ImageDraw.Draw(sky).ellipse((50 + 70 * at, 60, 70 + 70 * at, 75), fill=(20, 20, 20))
    assert not same(*(thumbnail(sky, tmp_path) for sky in skies))


def test_pairs_across_groups_alone_are_found(tmp_path: Path) -> None:
    thumbnails = np.stack([thumbnail(scene(seed), tmp_path) for seed in (0, 1, 2, 0, 1, 1)])
    found = alike_across(thumbnails, [0, 0, 1, 1, 0, 2])
    assert [(one.first, one.second) for one in found] == [(0, 3), (1, 5), (4, 5)]
    assert all(one.correlation > 0.99 for one in found)


def test_progress_counts_every_picture() -> None:
    thumbnails = np.zeros((300, SIDE, SIDE, 3), np.uint8)
    done: list[int] = []
    assert alike_across(thumbnails, np.arange(300) % 2, done.append) == [], "what is plain shows nothing"
    assert sum(done) == 300


def test_what_is_no_picture(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere"):
        thumbnail_pixels(tmp_path / "nowhere.jpg")
