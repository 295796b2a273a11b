import ast
import importlib
import io
import os
import struct
import threading
import warnings
import zlib
from pathlib import Path

import pytest
from PIL import Image

from rungwise.core import UserError, limited
from rungwise.data.pictures import _picture_files as picture_files
from rungwise.data.pictures import load_picture, read_header
from rungwise.data.pictures._picture_files import decoding
from tests.data import picture_memory
from tests.house import PACKAGE

MIB = 1 << 20


def encoded(image: Image.Image, form: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


@pytest.mark.parametrize(("mode", "form"), [("RGB", "PNG"), ("RGBA", "PNG"), ("P", "GIF"), ("1", "TIFF")])
def test_headers_say_what_decoding_takes(mode: str, form: str) -> None:
    header = read_header(encoded(Image.new(mode, (400, 300)), form))
    assert (header.form, header.width, header.height, header.mode) == (form, 400, 300, mode)
    assert header.pixels == 120_000
    reckoned = 120_000 * (12 if form == "TIFF" else 8) + 64 * MIB
    assert reckoned <= header.memory() <= reckoned + MIB


def test_a_jpeg_that_is_decoded_smaller_takes_less() -> None:
    header = read_header(encoded(Image.new("RGB", (4000, 2000)), "JPEG", subsampling=0, progressive=True))
    coefficients = 8_000_000 * 6
    assert coefficients <= header.working <= coefficients + MIB
    assert header.memory(shorter_side=250) == 8_000_000 // 64 * 8 + header.working + 64 * MIB
    assert header.memory(shorter_side=1001) == header.memory()
    grey = Image.new("L", (4000, 2000))
    assert read_header(encoded(grey, "JPEG", progressive=True)).working < 8_000_000 * 2 + MIB
    assert read_header(encoded(grey, "JPEG")).working < MIB  # nothing is kept of one scan


def tiled(side: int) -> bytes:
    """A TIFF of 16 x 16 pixels, which says that its only tile has sides of this many."""
    body = zlib.compress(bytes(side * 16))
    entries = [(256, 16), (257, 16), (258, 8), (259, 8), (262, 1), (277, 1), (322, side), (323, side)]
    entries += [(324, 8 + 2 + 10 * 12 + 4), (325, len(body))]
    directory = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + directory + bytes(4) + body


def test_the_tiles_of_a_tiff_count_where_they_are_larger_than_the_picture() -> None:
    assert read_header(tiled(16)).memory() < 70 * MIB
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


def test_no_other_file_gives_pillow_or_torchvision_a_picture() -> None:
    """A limit that stands at one door is none at the others."""
    of_image = {"open", "OPEN", "frombytes", "frombuffer"}
    anywhere = {"decode_jpeg", "decode_image", "read_image", "decode_png", "decode_webp", "decode_gif", "decode_avif"}
    anywhere |= {"imread", "imopen", "ImageReader", "getmp"}
    found: set[tuple[str, str]] = set()
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                pillow = ast.unparse(node.value) in ("Image", "PIL.Image") and node.attr in of_image
                if pillow or node.attr in anywhere:
                    found.add((place, node.attr))
            elif isinstance(node, ast.ImportFrom):
                library = (node.module or "").partition(".")[0] in ("PIL", "torchvision", "cv2", "imageio")
                found |= {(place, one.name) for one in node.names if library and one.name in of_image | anywhere}
    door = "data/pictures/_picture_files.py"
    assert found == {(door, "open"), (door, "OPEN"), (door, "decode_jpeg")}


def test_bytes_are_limited_whichever_way_they_come(tmp_path: Path) -> None:
    data = encoded(Image.new("L", (100, 100)), "BMP")
    (tmp_path / "a.bmp").write_bytes(data)
    with limited(picture_bytes=len(data) - 1):
        for source in (data, tmp_path / "a.bmp"):
            for reader in (read_header, load_picture):
                with pytest.raises(UserError, match="RUNGWISE_MAX_PICTURE_BYTES"):
                    reader(source)


def test_a_picture_that_takes_more_memory_than_all_may_is_refused() -> None:
    data = encoded(Image.new("L", (1000, 1000)), "PNG")
    needed = read_header(data).memory() + 2 * len(data)
    with limited(picture_memory=needed):
        assert load_picture(data).shape == (3, 1000, 1000)
    with (
        limited(picture_memory=needed - 1),
        pytest.raises(UserError, match=f"PICTURE_MEMORY={needed}$"),
    ):
        load_picture(data)


def test_pictures_that_together_take_too_much_wait_for_one_another() -> None:
    data = encoded(Image.new("L", (1000, 1000)), "PNG")
    needed = read_header(data).memory() + 2 * len(data)
    order: list[str] = []

    def second() -> None:
        with decoding(data, "second"):
            order.append("second")

    with limited(picture_memory=2 * needed - 1):
        with decoding(data, "first"):
            thread = threading.Thread(target=second)
            thread.start()
            # It cannot begin while this one holds its memory.
            while not picture_files._ROOM._changed._waiters:  # type: ignore[attr-defined]
                pass
            order.append("first")
        thread.join()
    assert order == ["first", "second"]


def test_pillow_says_nothing_of_its_own(tmp_path: Path) -> None:
    """Neither of large pictures nor of each tag of EXIF that makes no sense."""
    entries = b"".join(struct.pack("<HHLL", tag, 7, 60_000, 8) for tag in range(1, 900))
    exif = b"Exif\0\0II*\0" + struct.pack("<IH", 8, 899) + entries + bytes(50_000)
    (tmp_path / "a.jpg").write_bytes(encoded(Image.new("L", (16, 16)), "JPEG", exif=exif))
    data = encoded(Image.new("1", (9500, 9500)), "PNG")
    (tmp_path / "b.png").write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.reload(quiet := importlib.import_module("rungwise.data.pictures._picture_files"))
        for name in ("a.jpg", "b.png"):
            assert quiet.read_header(tmp_path / name)


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak of memory is not told here")
def test_decoding_takes_no_more_than_the_header_says(tmp_path: Path) -> None:
    """Of every format, mode and way of saving; ``python -m tests.data.picture_memory`` prints the numbers."""
    found = picture_memory.peaks(picture_memory.SIDES, tmp_path)
    assert len(found) == len(picture_memory.SIDES) * len(picture_memory.WAYS) * len(picture_memory.pictures())
    assert [one for one in found if one.taken > one.reckoned] == []
