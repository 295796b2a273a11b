import hashlib
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageCms, ImageFile, ImageOps

from rungwise.core import UserError
from rungwise.data.pictures import _decoding as decoding
from rungwise.data.pictures import load_array, load_picture, prepared_array, prepared_picture, small_image, thumbnail
from rungwise.data.pictures._picture_files import picture_digest


def smooth(width: int = 64, height: int = 40) -> Image.Image:
    """A gradient without symmetry, which JPEG keeps nearly unchanged."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([x, y, (x + y) / 2], axis=2).astype(np.uint8))


def encoded(image: Image.Image, form: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def reference(image: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1)


def difference(a: torch.Tensor, b: torch.Tensor) -> int:
    assert a.shape == b.shape
    return int((a.int() - b.int()).abs().max())


def png_header(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_formats_come_back_exactly(form: str) -> None:
    image = smooth()
    pixels = load_picture(encoded(image, form))
    assert pixels.dtype == torch.uint8
    assert pixels.is_contiguous()
    assert torch.equal(pixels, reference(image))


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
def test_jpeg_equals_what_pillow_decodes(options: dict[str, object]) -> None:
    data = encoded(smooth(), "JPEG", quality=95, **options)
    assert difference(load_picture(data), reference(Image.open(io.BytesIO(data)))) <= 2


def test_the_suffix_of_a_file_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "really_png.jpg"
    path.write_bytes(encoded(smooth(), "PNG"))
    assert torch.equal(load_picture(path), reference(smooth()))
    assert torch.equal(load_picture(str(path)), reference(smooth()))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_honoured_alike_in_every_format(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = smooth()
    turned = {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_270,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_90,
    }[orientation]
    expected = reference(stored if turned is None else stored.transpose(turned))
    assert torch.equal(load_picture(encoded(stored, "PNG", exif=exif)), expected)
    assert torch.equal(load_picture(encoded(stored, "TIFF", exif=exif)), expected)
    assert difference(load_picture(encoded(stored, "JPEG", quality=98, exif=exif)), expected) <= 8
    drafted = load_picture(encoded(smooth(256, 160), "JPEG", exif=exif), shorter_side=40)
    assert difference(drafted, expected) <= 16


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_broken_exif_leaves_the_pixels_readable() -> None:
    data = encoded(smooth(), "JPEG", exif=b"Exif\x00\x00MM\x00*\xff\xff\xff\xff" + b"\xff" * 30)
    assert load_picture(data).shape == (3, 40, 64)


def test_grey_cmyk_and_palette_become_rgb() -> None:
    grey = smooth().convert("L")
    assert difference(load_picture(encoded(grey, "JPEG", quality=98)), reference(grey)) <= 4
    cmyk = load_picture(encoded(smooth().convert("CMYK"), "JPEG", quality=98))
    assert difference(cmyk, reference(smooth())) <= 12
    palette = smooth().quantize(16)
    assert torch.equal(load_picture(encoded(palette, "PNG")), reference(palette))
    one_bit = smooth().convert("1")
    assert torch.equal(load_picture(encoded(one_bit, "PNG")), reference(one_bit))


def test_sixteen_bits_are_scaled_not_clipped() -> None:
    grey = np.linspace(0, 65535, 64 * 40).reshape(40, 64).astype(np.uint16)
    expected = torch.from_numpy((grey >> 8).astype(np.uint8)).expand(3, -1, -1)
    assert torch.equal(load_picture(encoded(Image.fromarray(grey), "PNG")), expected)
    assert torch.equal(load_picture(encoded(Image.fromarray(grey), "TIFF")), expected)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_transparent_parts_become_white(mode: str) -> None:
    layer = Image.new("RGBA", (4, 1), (0, 0, 0, 255))
    layer.putpixel((3, 0), (0, 0, 0, 0))
    pixels = load_picture(encoded(layer.convert(mode), "PNG"))
    assert pixels[:, 0, :].T.tolist() == [[0, 0, 0]] * 3 + [[255, 255, 255]]


def test_half_transparent_is_blended() -> None:
    pixels = load_picture(encoded(Image.new("RGBA", (1, 1), (0, 0, 0, 128)), "PNG"))
    assert pixels.flatten().tolist() == [127, 127, 127]


def test_of_an_animation_the_first_frame_is_taken() -> None:
    frames = [Image.new("RGB", (5, 3), colour) for colour in ("red", "green", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert load_picture(data)[:, 0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize("wanted", [1, 24, 25, 26, 49, 50, 51, 100, 101])
def test_a_hint_never_gives_less_than_was_asked_for(wanted: int) -> None:
    data = encoded(smooth(333, 101), "JPEG")
    height, width = load_picture(data, shorter_side=wanted).shape[1:]
    assert wanted <= height <= 101
    assert abs(width / height - 333 / 101) < 0.4
    if wanted <= 50:
        assert height <= 51


def test_a_hint_changes_nothing_for_other_formats() -> None:
    assert load_picture(encoded(smooth(), "PNG"), shorter_side=4).shape == (3, 40, 64)


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("hint", [None, 10])
def test_a_jpeg_cut_anywhere_is_refused(progressive: bool, hint: int | None) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    data = encoded(Image.fromarray(noise), "JPEG", progressive=progressive)
    assert load_picture(data, shorter_side=hint).ndim == 3
    for kept in [3, 4, 20, 100, 300, 600, 650, *range(700, len(data), 97), len(data) - 2, len(data) - 1]:
        with pytest.raises(UserError, match=rf"^cut.jpg: truncated JPEG \(it ends after {kept} bytes\); re-down"):
            load_picture(data[:kept], shorter_side=hint, name="cut.jpg")


@pytest.mark.parametrize("form", ["PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM"])
def test_other_formats_cut_in_half_are_refused(form: str) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8))
    data = encoded(noise, form)
    with pytest.raises(UserError, match=r"re-download or remove it|not a picture"):
        load_picture(data[: len(data) // 2])


def test_a_picture_of_ten_gigapixels_is_refused_from_its_header(tmp_path: Path) -> None:
    path = tmp_path / "huge.png"
    path.write_bytes(png_header(100_000, 100_000))
    with pytest.raises(UserError, match=r"^\S*huge.png: its header claims more than 268435456 pixels; shrink"):
        load_picture(path)


def test_the_limit_holds_where_a_program_has_switched_pillow_s_own_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)

    def never(self: ImageFile.ImageFile) -> None:
        raise AssertionError("pixels were decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", never)
    with pytest.raises(UserError, match="claims more than"):
        load_picture(png_header(100_000, 100_000))


def test_what_is_no_picture_gets_one_line(tmp_path: Path) -> None:
    for name, content, message in (
        ("a.txt", b"hello", "not a picture in a known format"),
        ("b.jpg", b"", "the file is empty"),
        ("c.ps", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not a picture in a known format"),
        ("d.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "damaged PNG"),
        ("e.jpg", b"\xff\xd8\xff\xc0\x00\x05\x09\x00\x00" + b"\xff\xd9" * 9, "damaged JPEG"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError) as caught:
            load_picture(tmp_path / name)
        assert str(caught.value).startswith(f"{tmp_path / name}: {message}")
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"none.jpg: no such file"):
        load_picture(tmp_path / "none.jpg")
    with pytest.raises(UserError, match="is a folder, not a file"):
        load_picture(tmp_path)
    with pytest.raises(UserError, match=r"^<uploaded picture>: not a picture"):
        load_picture(b"hello")


def test_models_get_very_large_pictures_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "LARGE", 1000)
    monkeypatch.setattr(decoding, "_SIDE_OF_LARGE", 20)
    data = encoded(smooth(130, 70), "PNG")
    assert prepared_array(data, np.shape) == (3, 24, 44)
    assert prepared_picture(data, lambda picture: picture.shape) == (3, 24, 44)
    assert prepared_array(data, np.shape, shorter_side=36) == load_array(data).shape == (3, 70, 130)
    assert prepared_array(encoded(smooth(30, 20), "PNG"), np.shape) == (3, 20, 30)


def greys(data: bytes) -> list[int]:
    pixels = load_picture(data)
    assert pixels.equal(torch.from_numpy(load_array(data)))
    assert (pixels == pixels[:1]).all()
    return [int(one) for one in pixels[0].flatten()]


@pytest.mark.parametrize(
    ("values", "seen"),
    [
        ([0, 0.5, 1], [0, 128, 255]),
        ([0, 128, 255], [0, 128, 255]),
        ([0, 32768, 65535], [0, 128, 255]),
        ([-5, 0, 5], [0, 128, 255]),
        ([-3.4e38, 0, 3.4e38], [0, 128, 255]),
        ([np.nan, 0, np.inf, -np.inf, 1], [0, 0, 255, 0, 255]),
        ([np.nan, np.nan], [0, 0]),
        ([7, 7], [7, 7]),
        ([-3, -3], [255, 255]),
    ],
)
def test_values_of_32_bits_are_scaled(values: list[float], seen: list[int]) -> None:
    assert greys(encoded(Image.fromarray(np.array([values], np.float32)), "TIFF")) == seen
    if all(np.isfinite(values)) and all(one == int(one) and abs(one) < 2**31 for one in values) and max(values) > 1:
        assert greys(encoded(Image.fromarray(np.array([values], np.int32)), "TIFF")) == seen


def test_tiles_of_one_picture_have_one_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_TILE_PIXELS", 100)
    data = encoded(Image.fromarray(np.linspace(-1000, 1000, 40 * 30, dtype=np.float32).reshape(30, 40)), "TIFF")
    found = greys(data)
    assert found == sorted(found)
    assert (found[0], found[-1]) == (0, 255)


def png_of(depth: int, colour: int, row: bytes, transparent: bytes, width: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, 1, depth, colour, 0, 0, 0)) + chunk(b"tRNS", transparent)
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" + row)) + chunk(b"IEND", b"")


def test_a_transparent_grey_becomes_white_in_every_depth() -> None:
    for depth, row, value, seen in (
        (1, b"\x40", 1, [0, 255]),
        (2, b"\x10", 1, [0, 255]),
        (4, b"\x07", 7, [0, 255]),
        (8, b"\0\x07", 7, [0, 255]),
    ):
        assert greys(png_of(depth, 0, row, struct.pack(">H", value), 2)) == seen
    row = struct.pack(">4H", 1000, 1001, 0, 65535)
    assert greys(png_of(16, 0, row, struct.pack(">H", 1000), 4)) == [255, 3, 0, 255]


def test_a_transparent_colour_of_16_bits_becomes_white() -> None:
    data = png_of(16, 2, struct.pack(">6H", 1000, 2000, 3000, 0, 256, 65535), struct.pack(">3H", 1000, 2000, 3000), 2)
    assert load_array(data)[:, 0].T.tolist() == [[255, 255, 255], [0, 1, 255]]


def tiff_of(values: np.ndarray, photometric: int = 1, kind: int = 1) -> bytes:
    """A TIFF of one row of greys."""
    width, size = len(values), values.itemsize
    tags = [
        (256, width),
        (257, 1),
        (258, 8 * size),
        (259, 1),
        (262, photometric),
        (273, 122),
        (277, 1),
        (279, width * size),
    ]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in [*tags, (339, kind)])
    return b"II*\0" + struct.pack("<IH", 8, 9) + entries + bytes(4) + values.tobytes()


def test_whole_numbers_of_tiff() -> None:
    assert greys(tiff_of(np.array([0, 1 << 31, (1 << 32) - 1], "<u4"))) == [0, 128, 255]
    assert greys(tiff_of(np.array([-100, 0, 100], "<i2"), kind=2)) == [0, 128, 255]
    assert greys(tiff_of(np.array([0, 1000, 65535], "<u2"), photometric=0)) == [255, 252, 0]


def test_portable_greys() -> None:
    assert greys(b"P5\n3 1\n65535\n" + np.array([0, 256, 65535], ">u2").tobytes()) == [0, 1, 255]
    assert greys(b"Pf\n3 1\n-1.0\n" + np.array([0, 0.5, 1], "<f4").tobytes()) == [0, 128, 255]


@pytest.mark.parametrize(("mode", "form"), [("YCbCr", "TIFF"), ("LAB", "TIFF"), ("CMYK", "TIFF"), ("CMYK", "JPEG")])
def test_other_colours_become_rgb(mode: str, form: str) -> None:
    colours = np.repeat(np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [128, 128, 128]]], np.uint8), 8, 0).repeat(
        8, 1
    )
    image = Image.fromarray(colours)
    if mode == "LAB":
        spaces = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
        image = ImageCms.profileToProfile(image, *spaces, outputMode="LAB")
    else:
        image = image.convert(mode)
    options = {"quality": 100} if form == "JPEG" else {}
    found = load_array(encoded(image, form, **options)).transpose(1, 2, 0)
    assert np.abs(found.astype(int) - colours).max() < (25 if mode == "LAB" else 4)


def test_a_very_large_picture_is_made_smaller_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "LARGE", 1000)
    monkeypatch.setattr(decoding, "_TILE_PIXELS", 500)
    for form in ("PNG", "TIFF"):
        data = encoded(smooth(130, 70), form)
        whole = load_array(data)
        assert whole.shape == (3, 70, 130)
        small = load_array(data, shorter_side=20)
        reference = smooth(130, 70).reduce(3)
        assert small.shape == (3, reference.height, reference.width)
        assert (small.transpose(1, 2, 0) == np.asarray(reference)).all()
        assert load_array(data, shorter_side=36).shape == whole.shape


def test_thumbnails_keep_the_shape_and_never_grow() -> None:
    big, small = encoded(smooth(1000, 500), "JPEG"), encoded(smooth(30, 60), "PNG")
    assert Image.open(io.BytesIO(thumbnail(big, 100))).size == (100, 50)
    assert Image.open(io.BytesIO(thumbnail(small, 100))).size == (30, 60)
    assert small_image(small, 20).size == (10, 20)


def test_digest_is_that_of_the_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"abc" * 100_000)
    assert picture_digest(path) == hashlib.sha256(b"abc" * 100_000).hexdigest()
    with pytest.raises(UserError, match="no such file"):
        picture_digest(tmp_path / "none")


def test_what_torchvision_refuses_is_left_to_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> torch.Tensor:
        raise RuntimeError("unsupported")

    monkeypatch.setattr("torchvision.io.decode_jpeg", refuse)
    data = encoded(smooth(), "JPEG")
    assert torch.equal(load_picture(data), reference(Image.open(io.BytesIO(data))))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_thumbnails_are_upright(orientation: int, form: str) -> None:
    image = smooth(256, 160)
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(image, form, exif=exif)
    wanted = reference(ImageOps.exif_transpose(Image.open(io.BytesIO(data))).resize(small_image(data, 64).size))
    assert small_image(data, 64).size in ((64, 40), (40, 64))
    assert difference(reference(small_image(data, 64)), wanted) <= 16


@pytest.mark.parametrize("size", [(1, 12_000), (12_000, 1), (66, 67), (1, 1), (300, 3)])
@pytest.mark.parametrize("mode", ["RGB", "P", "RGBA", "1"])
def test_pictures_of_any_shape_are_whole_where_tiles_meet(
    size: tuple[int, int], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "_TILE_PIXELS", 1 << 12)
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 4), dtype=np.uint8)
    image = Image.fromarray(noise).convert("RGB" if mode == "P" else mode if mode != "1" else "RGB").convert(mode)
    data = encoded(image, "PNG", compress_level=1)
    layer = image.convert("RGBA")
    white = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    assert torch.equal(load_picture(data), reference(white))
    assert max(small_image(data, 64).size) == min(64, max(size))


def test_a_file_beyond_the_limit_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "a.png").open("wb") as file:
        file.truncate(1 << 30)  # which takes no room
    for reader in (load_picture, picture_digest):
        with pytest.raises(UserError, match=r"a.png: 1.0 GiB, where at most 256.0 MiB are read"):
            reader(tmp_path / "a.png")
