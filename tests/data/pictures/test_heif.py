"""HEIC: pictures of its encoder are read, and what a stranger makes of the boxes is refused before libheif sees it."""

import io
import random
import struct
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image

from rungwise.core import UserError, limited
from rungwise.data.pictures import NEEDS_EXTRA, load_array, load_picture, read_header, thumbnail, upright_size
from rungwise.data.pictures import _picture_files as door
from rungwise.data.pictures._heif import HeifError, TooLargeError, is_heif, still_picture
from tests.hostile import bombs

MOST = 1 << 24


def box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", 8 + len(body)) + kind + body


def put(data: bytes, place: int, new: bytes) -> bytes:
    return data[:place] + new + data[place + len(new) :]


@pytest.mark.parametrize("options", [{}, {"tile_size": 64}, {"quality": -1, "chroma": 444}])
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_it_is_read_like_other_pictures(mode: str, options: dict[str, object]) -> None:
    data = bombs.heic(160, mode, **options)
    header = read_header(data)
    assert (header.form, header.width, header.height) == ("HEIF", 160, 160)
    ramp = Image.linear_gradient("L").resize((160, 160))
    seen = Image.merge("RGB", [ramp, ramp.rotate(90), ramp]).convert(mode).convert("RGB")
    found = load_array(data)
    assert np.abs(found.astype(int) - np.asarray(seen).transpose(2, 0, 1)).mean() < 4
    assert (load_picture(data).numpy() == found).all()
    assert max(Image.open(io.BytesIO(thumbnail(data, 20))).size) == 20


@pytest.mark.parametrize("orientation", range(1, 9))
def test_it_is_turned_once(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    image = Image.new("RGB", (96, 64), "blue")
    image.paste("red", (0, 0, 32, 32))
    bombs.heic()
    heic, jpeg = (bombs.encoded(image, form, exif=exif.tobytes(), quality=95) for form in ("HEIF", "JPEG"))
    assert load_array(heic).shape == load_array(jpeg).shape
    assert np.abs(load_array(heic).astype(int) - load_array(jpeg)).mean() < 3
    assert upright_size(heic, "a.heic") == upright_size(jpeg, "a.jpg")


def test_transparent_parts_become_white_and_ten_bits_eight() -> None:
    bombs.heic()
    clear = bombs.encoded(Image.new("RGBA", (64, 64), (200, 0, 0, 0)), "HEIF")
    assert load_array(clear).min() > 250
    deep = Image.fromarray(np.full((64, 64), 32768, np.uint16))
    assert abs(int(load_array(bombs.encoded(deep, "HEIF"))[0, 9, 9]) - 128) <= 1


def test_nothing_but_the_primary_picture_is_left() -> None:
    bombs.heic()
    frames = [Image.new("RGB", (64, 64), colour) for colour in ("red", "green", "blue")]
    data = bombs.encoded(frames[0], "HEIF", save_all=True, append_images=frames[1:], primary_index=1)
    found = load_array(data)
    assert found[1].mean() > found[0].mean() + 60
    left = still_picture(data, MOST)
    assert left.pixels == 64 * 64
    assert left.data.count(b"hvc1") < data.count(b"hvc1")
    more = data + box(b"moov", bytes(100)) + box(b"uuid", bytes(100))
    assert still_picture(more, MOST).data.count(b"free") == 2


def test_without_its_decoder_one_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bombs.heic()
    monkeypatch.setattr(door, "has_heif", lambda: False)
    with pytest.raises(UserError, match=r"pip install 'rungwise\[heif\]'"):
        load_picture(data)
    issue = door.read_picture(data)
    assert not isinstance(issue, bytes)
    assert issue.kind == NEEDS_EXTRA


def test_who_decodes_which_file() -> None:
    def head(major: bytes, *others: bytes) -> bytes:
        return box(b"ftyp", major + bytes(4) + b"".join(others))

    for major in (b"heic", b"heix", b"hevc", b"mif1", b"msf1"):
        assert is_heif(head(major, b"mif1", b"heic"))
    for said in (head(b"avif", b"mif1", b"heic"), head(b"mif1", b"avif"), head(b"isom", b"heic"), head(b"crx ")):
        assert not is_heif(said)
    assert not is_heif(b"")


def test_limits_of_pixels_work_and_memory_hold() -> None:
    data = bombs.heic(64)
    with limited(picture_pixels=64 * 64 - 1), pytest.raises(UserError, match="more than 4095 pixels"):
        load_picture(data)
    with limited(picture_work=1000), pytest.raises(UserError, match="4,096 pixels of tiles and alpha in"):
        load_picture(data)
    with limited(picture_memory=1 << 20), pytest.raises(UserError, match="PICTURE_MEMORY"):
        load_picture(data)


def twice(kind: bytes) -> Callable[[bytes], bytes]:
    """The box once more, where it stands."""

    def change(data: bytes) -> bytes:
        place, meta = data.index(kind) - 4, data.index(b"meta") - 4
        size = int.from_bytes(data[place : place + 4], "big")
        longer = put(data, meta, struct.pack(">I", int.from_bytes(data[meta : meta + 4], "big") + size))
        return longer[:place] + data[place : place + size] + longer[place:]

    return change


def at(kind: bytes, offset: int, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: put(data, data.index(kind) + 4 + offset, new)


ATTACKS: dict[str, tuple[Callable[[], bytes], Callable[[bytes], bytes], str]] = {
    "a box beyond the end": (bombs.heic, at(b"meta", -8, b"\x7f\xff\xff\xff"), "beyond its end"),
    "a box of no size": (bombs.heic, at(b"meta", -8, b"\0\0\0\4"), "beyond its end"),
    "a box of 64 bits": (bombs.heic, at(b"meta", -8, b"\0\0\0\1"), ""),
    "no list of items": (bombs.heic, at(b"meta", -4, b"none"), "no still picture"),
    "two lists of items": (bombs.heic, twice(b"iinf"), "stands twice"),
    "an item of nobody": (bombs.heic, at(b"pitm", 4, b"\xff\xff"), "makes no sense"),
    "a place beyond the end": (bombs.heic, at(b"iloc", 18, b"\x7f\xff\xff\xff"), "beyond its end"),
    "another file": (bombs.heic, at(b"iloc", 10, b"\0\1"), "place of an item"),
    "many items": (bombs.heic, at(b"iinf", 4, b"\xff\xff"), "more than 1,000 items"),
    "many places": (bombs.heic, at(b"iloc", 6, b"\xff\xff"), "more than 1,000 items"),
    "a property of nobody": (bombs.heic, at(b"ipma", 11, b"\x7f"), "properties make no sense"),
    "no settings": (bombs.heic, at(b"hvcC", -4, b"none"), "no settings"),
    "a cut picture": (bombs.heic, at(b"mdat", 0, b"\xff\xff\xff\xff"), "makes no sense"),
    "a size of nothing": (bombs.heic, lambda data: bombs.heic_large(0), "how large its picture is"),
    "a film": (bombs.heic, lambda data: bombs.heic_film(100), "is a film"),
    "larger than its tiles": (bombs.heic, lambda data: bombs.heic_tiles(4), "do not make up"),
    "a tile that is the picture": (
        lambda: bombs.heic(128, tile_size=64), at(b"dimg", 4, b"\0\1\0\1\0\1\0\1"), "a tile of its picture",
    ),
    "a tile that is missing": (lambda: bombs.heic(128, tile_size=64), at(b"dimg", 4, b"\xff\xff"), "makes no sense"),
    "a picture that is derived from itself": (
        lambda: put(bombs.heic(128, tile_size=64), bombs.heic(128, tile_size=64).index(b"grid"), b"iden"),
        at(b"dimg", 2, b"\0\1\0\1"), "",
    ),
    "another code": (bombs.heic, lambda data: data.replace(b"hvc1", b"av01"), "'av01'"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_end_in_one_line(name: str) -> None:
    make, change, said = ATTACKS[name]
    data = change(make())
    with pytest.raises((HeifError, TooLargeError)) as refused:
        still_picture(data, MOST)
    assert said in str(refused.value)
    with pytest.raises(UserError, match=r"^<uploaded picture>: damaged HEIC \(.*\); re-download it"):
        load_picture(data)


def test_a_picture_that_is_larger_than_its_header_says() -> None:
    data = bombs.heic(256)
    place = data.index(b"ispe") + 8
    with pytest.raises(HeifError, match="larger than its header says"):
        still_picture(put(data, place, struct.pack(">II", 16, 16)), MOST)
    with pytest.raises(TooLargeError):
        still_picture(put(data, place, struct.pack(">II", 1 << 16, 1 << 16)), MOST)


def test_files_that_are_cut_or_damaged_are_refused_or_read() -> None:
    draw = random.Random(3)
    good = [bombs.heic(64), bombs.heic(128, tile_size=64), bombs.heic(64, "RGBA")]
    for data in good:
        for cut in (0, 3, 11, 40, 100, 300, len(data) - 1):
            with pytest.raises(UserError):
                load_picture(data[:cut])
    for _ in range(300):
        data = bytearray(draw.choice(good))
        for _ in range(draw.choice((1, 2, 8))):
            place = draw.randrange(min(len(data), draw.choice((700, 5000))))
            data[place : place + 4] = draw.choice(
                (b"\xff\xff\xff\xff", b"\0\0\0\0", draw.randbytes(4), draw.randbytes(1))
            )
        with suppress(UserError):
            thumbnail(bytes(data), 16)
