"""The header of a JPEG 2000: what it asks of a decoder, and what is refused before one sees it."""

import io
import random
import struct
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image

from rungwise.core import UserError, limited
from rungwise.data.pictures import load_array, load_picture, read_header, thumbnail, upright_size
from rungwise.data.pictures._jpeg2000 import code_stream
from tests.hostile import bombs

SAVED = [
    {},
    {"no_jp2": True},
    {"tile_size": (32, 32)},
    {"irreversible": True, "quality_mode": "rates", "quality_layers": [20, 10, 5]},
    {"precinct_size": (64, 64), "codeblock_size": (16, 16), "progression": "RPCL"},
    {"num_resolutions": 1},
    {"plt": True, "comment": "a comment"},
]


def colours(width: int = 150, height: int = 110) -> Image.Image:
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    return Image.fromarray(np.stack([x, y * 2, x + y], 2).astype(np.uint8))


@pytest.mark.parametrize("options", SAVED)
@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA"])
def test_it_is_read_like_other_pictures(mode: str, options: dict[str, object]) -> None:
    image = colours().convert(mode)
    data = bombs.encoded(image, "JPEG2000", **options)
    header = read_header(data)
    assert (header.form, header.width, header.height, header.mode) == ("JPEG2000", 150, 110, mode)
    assert upright_size(data, "a.jp2") == (110, 150)
    found = load_array(data)
    reference = np.asarray(image.convert("RGB")).transpose(2, 0, 1)
    assert np.abs(found.astype(int) - reference).mean() < (3 if "irreversible" in options else 0.01)
    assert (load_picture(data).numpy() == found).all()
    smaller = load_array(data, shorter_side=27).shape
    assert smaller == ((3, 110, 150) if "num_resolutions" in options else (3, 28, 38))
    assert max(Image.open(io.BytesIO(thumbnail(data, 20))).size) == 20


def test_what_a_header_says() -> None:
    plain = code_stream(io.BytesIO(bombs.encoded(colours(), "JPEG2000", no_jp2=True)), 1000)
    assert (plain.width, plain.height, plain.components, plain.tiles, plain.levels) == (150, 110, 3, 1, 5)
    assert (plain.samples, plain.layers) == (3 * 150 * 110, 1)
    assert 8 <= plain.bits <= 14
    cut = code_stream(io.BytesIO(bombs.encoded(colours(), "JPEG2000", tile_size=(32, 32))), 1000)
    assert cut.tiles == 5 * 4
    assert cut.parts >= 20


@pytest.mark.parametrize("size", [(150, 110), (149, 97), (128, 96), (131, 200), (33, 257)])
@pytest.mark.parametrize("wanted", [1, 5, 9, 20, 40])
def test_sides_of_every_length_are_made_smaller(size: tuple[int, int], wanted: int) -> None:
    data = bombs.encoded(colours(*size), "JPEG2000")
    halved = next((by for by in range(5, 0, -1) if min(size) >= wanted << by), 0)
    width, height = (-(-side // (1 << halved)) for side in size)
    assert load_array(data, shorter_side=wanted).shape == (3, height, width)


def test_sixteen_bits() -> None:
    values = np.linspace(0, 65535, 400).astype(np.uint16).reshape(20, 20)
    data = bombs.encoded(Image.fromarray(values), "JPEG2000")
    assert (load_array(data)[0] == values >> 8).all()


def test_two_sizes_are_refused() -> None:
    data = bombs.encoded(colours(), "JPEG2000")
    place = data.index(b"ihdr") + 4
    for claimed in ((110, 151), (10_000, 10_000), (1, 1)):
        wrong = data[:place] + struct.pack(">II", *claimed) + data[place + 8 :]
        with pytest.raises(UserError, match=r"damaged JPEG 2000 \(it says two sizes\)"):
            load_picture(wrong)


def test_the_limits_of_pixels_and_memory_hold() -> None:
    data = bombs.encoded(colours(), "JPEG2000")
    with limited(picture_pixels=16_499), pytest.raises(UserError, match="more than 16499 pixels"):
        load_picture(data)
    with limited(picture_memory=1 << 20), pytest.raises(UserError, match="PICTURE_MEMORY"):
        load_picture(data)
    work = 8 * 8 * 3 * 150 * 110
    with (
        limited(picture_work=work),
        pytest.raises(UserError, match=r"bits of 49,500 values in 1 tiles, .*PICTURE_WORK"),
    ):
        load_picture(data)
    with limited(picture_work=work):  # of the sides a quarter, of the work a sixteenth
        assert load_picture(data, shorter_side=27).shape == (3, 28, 38)


@pytest.mark.parametrize("at", [0, 3, 12, 20, 40, 60, 80, 85, 100, 130, 180])
def test_a_cut_file_is_refused(at: int) -> None:
    for options in SAVED[:3]:
        with pytest.raises(UserError) as refused:
            load_picture(bombs.encoded(colours(), "JPEG2000", **options)[:at])
        assert "\n" not in str(refused.value)


def test_damaged_files_are_refused_or_read() -> None:
    draw = random.Random(7)
    good = [bombs.encoded(colours(60, 40), "JPEG2000", **options) for options in SAVED]
    for _ in range(300):
        data = bytearray(draw.choice(good))
        for _ in range(draw.choice((1, 2, 8))):
            place = draw.randrange(min(len(data), draw.choice((200, 5000))))
            data[place : place + 4] = draw.choice(
                (b"\xff\xff\xff\xff", b"\0\0\0\0", draw.randbytes(4), draw.randbytes(1))
            )
        with suppress(UserError):
            thumbnail(bytes(data), 16)
