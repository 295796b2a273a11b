import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms.v2 import functional as vision

from rungwise.core import UserError, from_plain, to_plain
from rungwise.encoders import Preprocessing


def noise(height: int, width: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (3, height, width), dtype=torch.uint8, generator=generator)


def as_image(picture: torch.Tensor) -> Image.Image:
    return Image.fromarray(picture.permute(1, 2, 0).numpy())


def as_array(image: Image.Image) -> np.ndarray:
    return np.asarray(image).transpose(2, 0, 1)


def test_short_side_keeps_proportions_and_square_does_not() -> None:
    wide = torch.zeros(3, 10, 40, dtype=torch.uint8)
    wide[:, :, 15:25] = 255
    assert Preprocessing(size=10, crop=1.0).apply(wide).float().mean() == 255
    squashed = Preprocessing(size=10, crop=1.0, resize="square", interpolation="bilinear").apply(wide)
    assert squashed.float().mean() == pytest.approx(255 / 4, abs=2)


@pytest.mark.parametrize("shape", [(3, 1, 3_000_000), (3, 3_000_000, 1)])
def test_a_line_of_pixels_does_not_become_gigabytes(shape: tuple[int, int, int]) -> None:
    line = torch.zeros(shape, dtype=torch.uint8)
    line[:, shape[1] // 2, shape[2] // 2] = 255
    small = Preprocessing(size=32, crop=1.0, interpolation="nearest").apply(line)
    assert small.shape == (3, 32, 32)
    assert small.max() == 255  # the middle is what is seen


@pytest.mark.parametrize("width", [10, 100, 160])
def test_usual_proportions_are_resized_whole(width: int) -> None:
    picture = torch.randint(0, 256, (3, 10, width), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    preprocessing = Preprocessing(size=8, crop=1.0)
    whole = vision.resize(picture, [8], interpolation=vision.InterpolationMode.BICUBIC, antialias=True)
    assert torch.equal(preprocessing.apply(picture), vision.center_crop(whole, [8, 8]))


@pytest.mark.slow
def test_it_is_read_and_used_without_torch() -> None:
    code = """
import sys, numpy as np, io
from PIL import Image
from rungwise.data.pictures import load_array
from rungwise.encoders import Preprocessing
file = io.BytesIO()
Image.new("RGB", (40, 30), (255, 0, 0)).save(file, "JPEG")
for crops in ("1C", "10C"):
    preprocessing = Preprocessing(size=8, crops=crops)
    array = preprocessing.apply_array(load_array(file.getvalue(), shorter_side=preprocessing.decoded_side))
    assert array.shape == preprocessing.prepared_shape and array.dtype == np.uint8, array.shape
preprocessing.normalise_array(array)
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


SHAPES = [(30, 40), (40, 30), (37, 53), (9, 64), (8, 8), (300, 200), (5, 3)]
WAYS = [
    {},
    {"resize": "square"},
    {"resize": "long_side", "crop": 1.0, "fill": (1, 2, 3)},
    {"resize": "long_side", "fill": (1, 2, 3)},
    {"crops": "10C", "crop": 0.5},
    {"crops": "10C", "crop": 0.5, "resize": "square"},
    {"crop_corner": "floor", "crop": 0.6},
    {"interpolation": "bilinear"},
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", SHAPES)
def test_pillow_and_torch_agree(way: dict[str, object], shape: tuple[int, int]) -> None:
    """Resampled by Pillow it is the array form to the bit, and by torchvision within the rounding of bytes."""
    picture = noise(*shape)
    by_pillow = Preprocessing(**({"size": 9} | way | {"resampling": "pillow"})).apply(picture)
    by_torch = Preprocessing(**({"size": 9} | way))
    array = by_torch.apply_array(picture.numpy())
    assert np.array_equal(by_pillow.numpy(), array)
    assert array.shape == by_torch.prepared_shape
    assert np.abs(array.astype(int) - by_torch.apply(picture).numpy().astype(int)).max() <= 2


@pytest.mark.parametrize("shape", SHAPES)
def test_without_interpolation_the_same_pixels_are_taken(shape: tuple[int, int]) -> None:
    picture = noise(*shape)
    preprocessing = Preprocessing(9, crop=0.6, interpolation="nearest")
    assert np.array_equal(preprocessing.apply_array(picture.numpy()), preprocessing.apply(picture).numpy())


@pytest.mark.parametrize("shape", SHAPES)
def test_pillow_resizes_as_the_transform_of_open_clip_does(shape: tuple[int, int]) -> None:
    """Its short, long and squashed sides, written out: a resized picture of Pillow, and the middle of it."""
    height, width = shape
    picture = noise(*shape)
    image = as_image(picture)
    squash = image.resize((9, 9), Image.Resampling.BICUBIC)
    short = (9, int(9 * height / width)) if width < height else (int(9 * width / height), 9)
    shortest = vision.center_crop(image.resize(short, Image.Resampling.BICUBIC), [9, 9])
    ratio = max(height, width) / 9
    small = image.resize((max(1, round(width / ratio)), max(1, round(height / ratio))), Image.Resampling.BICUBIC)
    longest = Image.new("RGB", (9, 9), (7, 7, 7))
    longest.paste(small, ((9 - small.width) // 2, (9 - small.height) // 2))
    for resize, expected in (("square", squash), ("short_side", shortest), ("long_side", longest)):
        made = Preprocessing(9, crop=1.0, resize=resize, resampling="pillow", fill=(7, 7, 7)).apply(picture)
        assert np.array_equal(made.numpy(), as_array(expected)), resize


@pytest.mark.parametrize("resize", ["short_side", "square"])
def test_ten_crops_are_the_corners_the_centre_and_their_mirror_images(resize: str) -> None:
    picture = noise(40, 61)
    preprocessing = Preprocessing(size=16, crop=0.5, resize=resize, crops="10C")
    resized = preprocessing.resized(picture).numpy()
    height, width = resized.shape[1:]
    assert (height, width) == ((32, 32) if resize == "square" else (32, 48))
    expected = []
    for mirrored in (False, True):
        for top, left in (
            (0, 0),
            (0, width - 16),
            (height - 16, 0),
            (height - 16, width - 16),
            ((height - 16) // 2, (width - 16) // 2),
        ):
            view = np.zeros((3, 16, 16), np.uint8)
            for y in range(16):
                for x in range(16):
                    view[:, y, 15 - x if mirrored else x] = resized[:, top + y, left + x]
            expected.append(view)
    assert np.array_equal(preprocessing.apply(picture).numpy(), np.stack(expected))


def test_random_crops_are_the_centre_where_nothing_is_trained() -> None:
    picture = noise(40, 61)
    assert torch.equal(Preprocessing(16, crops="RC").apply(picture), Preprocessing(16).apply(picture))
    assert Preprocessing(16, crops="RC").draws
    assert Preprocessing(16, mirrored=True).draws
    assert not Preprocessing(16, crops="10C").draws


def test_half_a_pixel_goes_either_way() -> None:
    """As torchvision rounds, half to even, and as transformers does, down."""
    picture = noise(8, 8 + 3)
    rounded, down = (Preprocessing(8, crop=1.0, crop_corner=corner).apply(picture) for corner in ("round", "floor"))
    assert torch.equal(rounded, picture[:, :, 2:10])
    assert torch.equal(down, picture[:, :, 1:9])


def test_full_decoding_asks_for_every_pixel() -> None:
    assert Preprocessing(224, crop=0.875).decoded_side == 256
    assert Preprocessing(224, decoding="full").decoded_side is None


def test_pictures_are_normalised_to_the_same_bits_one_by_one_and_together() -> None:
    preprocessing = Preprocessing(size=9)
    pictures = torch.randint(0, 256, (5, 3, 9, 9), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    before = pictures.clone()
    mean, std = (torch.tensor(one).view(1, 3, 1, 1) for one in (preprocessing.mean, preprocessing.std))
    for given in (pictures, pictures[:0], pictures.float()):
        found = preprocessing.normalise(given)
        assert torch.equal(found, (given.float() / 255 - mean) / std)
        assert found.is_contiguous(memory_format=torch.channels_last)
    traced = torch.jit.trace(preprocessing.normalise, pictures[:2])
    assert torch.equal(traced(pictures), preprocessing.normalise(pictures))
    assert torch.equal(pictures, before)


def test_normalised_alike_with_and_without_torch() -> None:
    preprocessing = Preprocessing(size=4)
    pictures = torch.stack([noise(4, 4), noise(4, 4, 1)])
    with_torch = preprocessing.normalise(pictures)
    assert with_torch.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_allclose(preprocessing.normalise_array(pictures.numpy()), with_torch.numpy(), rtol=1e-6)


def test_it_comes_back_from_its_plain_form() -> None:
    preprocessing = Preprocessing(8, resize="long_side", fill=(1, 2, 3), resampling="pillow", decoding="full")
    assert from_plain(Preprocessing, to_plain(preprocessing), "preprocessing.json") == preprocessing
    before = {
        name: to_plain(Preprocessing())[name] for name in ("size", "mean", "std", "crop", "interpolation", "resize")
    }
    assert from_plain(Preprocessing, before, "preprocessing.json") == Preprocessing()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"interpolation": "lanczos"}, "interpolation lanczos goes with resampling: pillow"),
        ({"fill": (0, 0, 256)}, r"fill\.2: must be at most 255"),
        ({"resize": "long_side", "crops": "RC"}, "shows the whole picture"),
        ({"crops": "10C", "mirrored": True}, "leave mirrored out"),
    ],
)
def test_what_does_not_go_together_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        dataclasses.replace(Preprocessing(), **change)


def test_views_of_training_alone_change_no_key() -> None:
    plain = Preprocessing().identity
    assert set(plain) == {one.name for one in dataclasses.fields(Preprocessing)}
    assert Preprocessing(crops="RC", mirrored=True).identity == plain, "evaluation sees the centre"
    assert Preprocessing(crops="10C").identity == plain | {"crops": "10C"}


@pytest.mark.parametrize("size", [(200, 300), (300, 200), (181, 97), (64, 64), (40, 900)])
@pytest.mark.parametrize("resize", ["short_side", "square", "long_side"])
@pytest.mark.parametrize("crop", [1.0, 0.875, 0.5])
def test_the_window_is_where_prepared_pixels_come_from(size, resize, crop):
    """Pixels say where they stand in the picture; the blue ones are the picture, the others what fills the square."""
    height, width = size
    picture = np.zeros((3, height, width), np.uint8)
    picture[0] = np.round(255 * (np.arange(width) + 0.5) / width)
    picture[1] = np.round(255 * (np.arange(height) + 0.5) / height)[:, None]
    picture[2] = 255
    seen = Preprocessing(size=32, crop=crop, resize=resize, interpolation="bilinear")
    prepared = seen.apply(torch.from_numpy(picture)).numpy().astype(float)
    left, top, right, bottom = seen.window(height, width)
    middles = (np.arange(32) + 0.5) / 32
    x, y = left + (right - left) * middles, top + (bottom - top) * middles
    inside = np.outer((y > 0) & (y < 1), (x > 0) & (x < 1))
    np.testing.assert_array_equal(prepared[2] > 128, inside)
    # Where the filter reaches over the picture's edge, values are no longer linear.
    for channel, along, pixel in ((0, x[None], (right - left) / 32), (1, y[:, None], (bottom - top) / 32)):
        clear = inside & (along > 1.5 * pixel) & (along < 1 - 1.5 * pixel)
        assert clear.any() or pixel > 0.3
        assert np.abs(prepared[channel] / 255 - along)[clear].max(initial=0) < 0.02
