import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from rungwise.core.errors import UserError
from rungwise.core.limits import limited
from rungwise.data.picture_files import MOST_SCANS, count_scans, read_header
from rungwise.data.pictures import load_picture

MIB = 1 << 20


def encoded(image: Image.Image, form: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def many_scans(scans: int) -> bytes:
    """A progressive JPEG that passes over its pixels again and again, for some bytes each time."""
    data = encoded(Image.new("L", (64, 64), 128), "JPEG", progressive=True)
    start = data.index(b"\xff\xda")
    again = b"\xff\xda\x00\x08\x01\x01\x00\x01\x05\x00\x7f\xff\x00"
    return data[:start] + again * scans + data[start:]


@pytest.mark.parametrize(("mode", "form"), [("RGB", "PNG"), ("RGBA", "PNG"), ("P", "GIF"), ("1", "TIFF")])
def test_headers_say_what_decoding_takes(mode: str, form: str) -> None:
    header = read_header(encoded(Image.new(mode, (400, 300)), form))
    assert (header.form, header.width, header.height, header.mode) == (form, 400, 300, mode)
    assert header.pixels == 120_000
    assert header.memory() == 120_000 * (11 if form == "TIFF" else 7) + 40 * MIB


def test_a_jpeg_that_is_decoded_smaller_takes_less() -> None:
    header = read_header(encoded(Image.new("RGB", (4000, 2000)), "JPEG", subsampling=0))
    coefficients = 8_000_000 * 6
    assert header.working == coefficients
    assert header.memory(shorter_side=250) == 8_000_000 // 64 * 7 + coefficients + 40 * MIB
    assert header.memory(shorter_side=1001) == header.memory()
    assert read_header(encoded(Image.new("L", (4000, 2000)), "JPEG")).working == 8_000_000 * 2


def tiled(side: int) -> bytes:
    """A TIFF of 16 x 16 pixels, which says that its only tile has sides of this many."""
    body = zlib.compress(bytes(side * 16))
    entries = [(256, 16), (257, 16), (258, 8), (259, 8), (262, 1), (277, 1), (322, side), (323, side)]
    entries += [(324, 8 + 2 + 10 * 12 + 4), (325, len(body))]
    directory = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + directory + bytes(4) + body


def test_the_tiles_of_a_tiff_count_where_they_are_larger_than_the_picture() -> None:
    assert read_header(tiled(16)).memory() < 46 * MIB
    assert read_header(tiled(4000)).memory() > 4000**2
    with pytest.raises(UserError, match="tiles are far larger"):
        load_picture(tiled(30_000))


def test_files_and_bytes_say_the_same(tmp_path: Path) -> None:
    data = encoded(Image.new("RGB", (40, 30)), "WEBP")
    (tmp_path / "a.webp").write_bytes(data)
    assert read_header(tmp_path / "a.webp") == read_header(data)


def test_what_is_no_picture_gets_one_line_with_its_name(tmp_path: Path) -> None:
    for content, message in ((b"", "the file is empty"), (b"hello", "not a picture"), (b"\xff\xd8\xff", "JPEG")):
        (tmp_path / "a.jpg").write_bytes(content)
        with pytest.raises(UserError, match=message) as refused:
            read_header(tmp_path / "a.jpg")
        assert str(refused.value).startswith(f"{tmp_path / 'a.jpg'}: ")
        with pytest.raises(UserError, match=f"^<uploaded picture>: .*{message}"):
            read_header(content)


def test_the_most_pixels_are_a_setting() -> None:
    data = encoded(Image.new("L", (100, 100)), "PNG")
    with (
        limited(picture_pixels=9_999),
        pytest.raises(UserError, match=r"more than 9999 .* RUNGWISE_MAX_PICTURE_PIXELS"),
    ):
        load_picture(data)
    with limited(picture_pixels=10_000):
        assert load_picture(data).shape == (3, 100, 100)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"progressive": True, "subsampling": 0}])
def test_scans_of_usual_pictures_are_few(options: dict[str, object]) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (200, 300, 3), dtype=np.uint8))
    data = encoded(noise, "JPEG", **options)
    assert count_scans(data) == (10 if options else 1)
    assert count_scans(data + b"\xff\xda" * 1000) == count_scans(data)  # after a picture phones may put a film


def test_a_jpeg_of_very_many_scans_is_refused_where_a_stranger_sends_it(tmp_path: Path) -> None:
    assert read_header(many_scans(50)).pixels == 64 * 64
    with pytest.raises(UserError, match=f"scans, more than {MOST_SCANS}"):
        read_header(many_scans(10_000))


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"\xff\xd8", b"\xff\xd8\xff\xe0", b"\xff\xd8\xff\xe0\xff\xff", b"\xff" * 999]
)
def test_scans_of_nonsense_are_none(data: bytes) -> None:
    assert count_scans(data) == 0


MEASURE = """
import gc, io, sys
from pathlib import Path
from PIL import Image
from rungwise.data.pictures import load_picture, read_header, thumbnail
from rungwise.encoders.preprocessing import Preprocessing

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024

def tiny():
    file = io.BytesIO()
    Image.new("RGB", (40, 30)).save(file, "PNG")
    return file.getvalue()

ways = {
    "whole": lambda data: Preprocessing().apply(load_picture(data)),
    "hint": lambda data: Preprocessing().apply(load_picture(data, shorter_side=256)),
    "thumbnail": lambda data: thumbnail(data, 256),
}
for path in sorted(Path(sys.argv[1]).iterdir()):
    data = path.read_bytes()
    for name, way in ways.items():
        way(tiny())
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        before = peak()
        way(data)
        print(path.name, name, peak() - before, read_header(data).memory(None if name == "whole" else 256))
"""

KINDS = {
    "rgb.png": {}, "rgba.png": {}, "p.png": {"transparency": 3}, "l.png": {}, "rgb.jpg": {},
    "rgb-progressive.jpg": {"progressive": True, "subsampling": 0}, "rgba.webp": {}, "p.gif": {}, "rgb.bmp": {},
    "cmyk-progressive.jpg": {"progressive": True, "subsampling": 0}, "rgba.avif": {"speed": 9},
    "rgba.tif": {"compression": "tiff_adobe_deflate"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak of memory is not told here")
def test_decoding_takes_no_more_than_the_header_says(tmp_path: Path) -> None:
    x, y = np.meshgrid(np.arange(4000), np.arange(3000))
    colours = np.stack([x * 255 // 4000, y * 255 // 3000, (x + y) % 256, (x * y) % 256], 2).astype(np.uint8)
    for name, options in KINDS.items():
        mode = name.partition(".")[0].partition("-")[0].upper()
        image = Image.fromarray(colours if mode == "RGBA" else colours[:, :, :3])
        image.convert(mode).save(tmp_path / name, **options)
    command = [sys.executable, "-c", MEASURE, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()
    assert len(told) == 3 * len(KINDS)
    assert [line for line in told if int(line.split()[2]) > int(line.split()[3])] == []
