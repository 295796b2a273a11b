"""Decoding of picture files to uint8 RGB tensors or arrays; what cannot be decoded is refused in one line.

Pillow's copies of a whole picture are avoided: what it decoded is turned into RGB tile by tile, so that no more than
the picture as the file has it and the result are in memory together.
"""

from __future__ import annotations

import contextlib
import functools
import io
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

from rungwise.core import UserError
from rungwise.data.files import Picture
from rungwise.data.pictures._picture_files import (
    LARGE,
    UPLOAD_NAME,
    PictureHeader,
    damaged,
    decoded_jpeg,
    decoding,
    orientation,
    picture_bytes,
    picture_digest,
    picture_name,
    read_header,
)

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "UPLOAD_NAME",
    "PictureHeader",
    "load_array",
    "load_picture",
    "picture_digest",
    "prepared_array",
    "prepared_picture",
    "read_header",
    "small_image",
    "thumbnail",
]

T = TypeVar("T")

_TILE_PIXELS = 1 << 20
_SIDE_OF_LARGE = 2048
_SCALES = {"L;2": 85, "L;4": 17}
"""How far the greys of 2 and 4 bits lie apart as greys of 8 bits."""
_BITS, _PHOTOMETRIC, _SAMPLE_FORMAT = 258, 262, 339
_WHITE_IS_ZERO = 0


def load_picture(source: Picture | str | bytes, *, shorter_side: int | None = None, name: str | None = None) -> Tensor:
    """Decode one picture, upright as its EXIF orientation says; transparent parts become white.

    Values of 16 bits are divided by 256. Those of 32 bits, whole or floating-point, say no range of their own: 0 to 1
    (floating-point), 0 to 255 and 0 to 65535 are taken as black to white where all of them lie within; else the
    smallest becomes black and the largest white. Infinite values are black or white, and what is no number is black.

    Args:
        source: A file, a place in a larger one, or the bytes of a file. Of an animation the first frame is taken.
        shorter_side: A hint that no more than this many pixels on the shorter side are needed. A JPEG at least twice as
            large is decoded at half, a quarter or an eighth of its size, a JPEG 2000 at a fraction that it has, and
            another picture of more than 67 million pixels is made smaller at once; never below the hint.
        name: Name of the picture in messages; by default the path, or ``"<uploaded picture>"``.

    Returns:
        (3, height, width) uint8, RGB.

    Raises:
        UserError: If the file is missing, empty, truncated, damaged, no picture, or claims more pixels than
            :func:`~rungwise.core.limits` allow; nothing is decoded in the last case.

    >>> file = io.BytesIO()
    >>> Image.new("RGBA", (4, 2), (255, 0, 0, 0)).save(file, "PNG")
    >>> load_picture(file.getvalue()).shape, load_picture(file.getvalue()).unique()
    (torch.Size([3, 2, 4]), tensor([255], dtype=torch.uint8))
    """
    name, data = name or picture_name(source), picture_bytes(source)
    return _with_tensor(data, name, shorter_side, lambda picture: picture)


def prepared_picture(
    source: Picture | str | bytes,
    make: Callable[[Tensor], T],
    *,
    shorter_side: int | None = None,
    name: str | None = None,
) -> T:
    """The result of a function of a picture; memory for its pixels stays reserved until the function returns.

    Args:
        source: Picture as in :func:`load_picture`, with the same errors.
        make: Function of a (3, height, width) uint8 RGB tensor.
        shorter_side: Hint as in :func:`load_picture`. Without one, a picture of more than 67 million pixels is decoded
            as if it were 2,048.
        name: Name of the picture in messages.
    """
    name, data = name or picture_name(source), picture_bytes(source)
    return _with_tensor(data, name, shorter_side or _hint_of_large(data, name), make)


def _hint_of_large(data: bytes, name: str) -> int | None:
    return _SIDE_OF_LARGE if read_header(data, name, shorter_side=_SIDE_OF_LARGE).pixels > LARGE else None


def _with_tensor(data: bytes, name: str, shorter_side: int | None, make: Callable[[Tensor], T]) -> T:
    import torch

    with decoding(data, name, shorter_side) as image:
        with _explained(image, data, name):
            pixels = None
            if _is_jpeg(image) and image.mode in ("L", "RGB") and not _far_larger(image, shorter_side):
                pixels = decoded_jpeg(data)  # what it refuses, Pillow reads below or refuses with a better reason
            if pixels is None:
                pixels = torch.from_numpy(_decoded(image, shorter_side))
            else:
                pixels = _upright(pixels, orientation(image))
        del image  # what it holds is not there beside what resizing takes
        return make(pixels)


def load_array(
    source: Picture | str | bytes, *, shorter_side: int | None = None, name: str | None = None
) -> NDArray[np.uint8]:
    """:func:`load_picture` without torch, (3, height, width) uint8: Pillow decodes, at most 2 levels of 255 apart."""
    name, data = name or picture_name(source), picture_bytes(source)
    return _with_array(data, name, shorter_side, lambda picture: picture)


def prepared_array(
    source: Picture | str | bytes,
    make: Callable[[NDArray[np.uint8]], T],
    *,
    shorter_side: int | None = None,
    name: str | None = None,
) -> T:
    """:func:`prepared_picture` without torch: ``make`` gets a (3, height, width) uint8 RGB array."""
    name, data = name or picture_name(source), picture_bytes(source)
    return _with_array(data, name, shorter_side or _hint_of_large(data, name), make)


def _with_array(data: bytes, name: str, shorter_side: int | None, make: Callable[[NDArray[np.uint8]], T]) -> T:
    with decoding(data, name, shorter_side) as image:
        with _explained(image, data, name):
            pixels = _decoded(image, shorter_side)
        del image
        return make(pixels)


def _decoded(image: Image.Image, shorter_side: int | None) -> NDArray[np.uint8]:
    if _is_jpeg(image) and shorter_side is not None:
        _decode_smaller(image, shorter_side)
    _load(image)
    turned, factor = orientation(image), 1
    if shorter_side is not None and image.width * image.height > LARGE:
        factor = max(1, min(image.size) // shorter_side)
    across, down = math.ceil(image.width / factor), math.ceil(image.height / factor)
    pixels = np.empty((3, across, down) if turned >= 5 else (3, down, across), np.uint8)
    stored = _as_stored(pixels, turned)
    for (left, top), tile in _rgb_tiles(image, factor):
        stored[:, top : top + tile.height, left : left + tile.width] = np.asarray(tile).transpose(2, 0, 1)
    return pixels


def thumbnail(source: Picture | str | bytes, side: int) -> bytes:
    """A small JPEG of a picture, for pages and contact sheets.

    Args:
        source: Picture as in :func:`load_picture`, with the same errors.
        side: Longest side of the result in pixels; smaller pictures keep their size.

    Returns:
        The bytes of a JPEG file without metadata.

    >>> file = io.BytesIO()
    >>> Image.new("RGB", (400, 200)).save(file, "JPEG")
    >>> Image.open(io.BytesIO(thumbnail(file.getvalue(), 100))).size
    (100, 50)
    """
    image = small_image(source, side)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return file.getvalue()


def small_image(source: Picture | str | bytes, side: int) -> Image.Image:
    """A picture as a Pillow image, RGB, whose longest side is at most ``side`` pixels."""
    name, data = picture_name(source), picture_bytes(source)
    with decoding(data, name, side) as image, _explained(image, data, name):
        if _is_jpeg(image):
            _decode_smaller(image, side)
        _load(image)
        # What remains is at least twice as large as wanted, so that the filter below has enough to work on.
        factor = max(1, max(image.size) // (2 * side))
        small = Image.new("RGB", (math.ceil(image.width / factor), math.ceil(image.height / factor)))
        for place, tile in _rgb_tiles(image, factor):
            small.paste(tile, place)
        turned = orientation(image)
    small.thumbnail((side, side), Image.Resampling.BICUBIC)
    method = _TURNS.get(turned)
    return small if method is None else small.transpose(method)


_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@contextlib.contextmanager
def _explained(image: Image.Image, data: bytes, name: str) -> Iterator[None]:
    """Turn any error while the pixels of an opened picture are decoded into one line."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    # Decoders raise whatever they like on damaged data: OSError, SyntaxError, struct.error, ValueError.
    except Exception as error:
        raise damaged(name, image.format or "picture", io.BytesIO(data), error) from error


def _is_jpeg(image: Image.Image) -> bool:
    return image.format in ("JPEG", "MPO")


def _far_larger(image: Image.Image, shorter_side: int | None) -> bool:
    return shorter_side is not None and min(image.size) >= 2 * shorter_side


def _load(image: Image.Image) -> None:
    """Decode; the transparent colour of a PNG, which Pillow keeps as it stands in the file, is made one of 8 bits."""
    said = image.info.get("transparency")
    kinds = {tile.args for tile in getattr(image, "tile", [])} if image.format == "PNG" else set()
    if halved := getattr(image, "_reduce", 0):
        # The decoder of JPEG 2000 rounds up, and Pillow refuses what it makes where it has rounded the size down.
        width, height = (side + -side % (1 << halved) for side in image.size)
        image._size = width, height
    image.load()
    for kind, scale in _SCALES.items():
        if kind in kinds and isinstance(said, int):
            image.info["transparency"] = said * scale
    if "RGB;16B" in kinds and isinstance(said, tuple):
        image.info["transparency"] = tuple(one >> 8 for one in said)


def _decode_smaller(image: Image.Image, shorter_side: int) -> None:
    shorter = min(image.size)
    wanted = [math.ceil(side * shorter_side / shorter) for side in image.size]
    image.draft(None, (wanted[0], wanted[1]))


def _upright(pixels: Tensor, turned: int) -> Tensor:
    """Undo an EXIF orientation 1..8 of (3, height, width)."""
    if turned >= 5:
        pixels = pixels.transpose(1, 2)
    flips = _FLIPS.get(turned)
    return (pixels.flip(flips) if flips else pixels).contiguous()


def _as_stored(pixels: NDArray[np.uint8], turned: int) -> NDArray[np.uint8]:
    """A view of upright (3, height, width) pixels in the orientation of the file."""
    seen = np.flip(pixels, _FLIPS.get(turned, ()))
    return seen.transpose(0, 2, 1) if turned >= 5 else seen


_FLIPS = {2: (2,), 3: (1, 2), 4: (1,), 6: (2,), 7: (1, 2), 8: (1,)}


def _rgb_tiles(image: Image.Image, factor: int) -> Iterator[tuple[tuple[int, int], Image.Image]]:
    """Tiles of a decoded picture as RGB, made smaller by a factor, with their left and top."""
    across = max(1, _TILE_PIXELS // factor // factor) * factor
    width = min(across, math.ceil(image.width / factor) * factor)
    height = max(1, _TILE_PIXELS // width // factor) * factor
    boxes = [
        (left, top, min(left + width, image.width), min(top + height, image.height))
        for top in range(0, image.height, height)
        for left in range(0, image.width, width)
    ]
    to_rgb = _from_grey(image, boxes) if image.mode.startswith(("I", "F")) else _to_rgb
    for box in boxes:
        tile = to_rgb(image.crop(box))
        yield (box[0] // factor, box[1] // factor), tile.reduce(factor) if factor > 1 else tile


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode == "LAB":
        converted = ImageCms.applyTransform(image, _from_lab())
        assert converted is not None  # which is so where it makes a new picture
        return converted
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return image.convert("RGB")


def _from_grey(image: Image.Image, boxes: Sequence[tuple[int, int, int, int]]) -> Callable[[Image.Image], Image.Image]:
    """A function of tiles of a picture whose values have more than 8 bits."""
    transparent, tags = image.info.get("transparency"), getattr(image, "tag_v2", {})
    has_no_sign = image.mode == "I" and tags.get(_SAMPLE_FORMAT, (1,)) == (1,) and tags.get(_BITS) == (32,)

    def values_of(tile: Image.Image) -> NDArray[Any]:
        values = np.asarray(tile)
        return values.view(np.uint32) if has_no_sign else values

    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM"):
        low, high, bins = 0.0, 65536.0, 256  # every 256 values are one
    else:
        low, high = _range(image.mode, [_extremes(values_of(image.crop(box))) for box in boxes])
        bins = 255

    def convert(tile: Image.Image) -> Image.Image:
        values = values_of(tile)
        scaled = (values.astype(np.float64) - low) / (high - low) * bins
        if bins == 255:
            scaled = np.rint(scaled)
        grey = np.nan_to_num(np.clip(scaled, 0, 255), nan=0).astype(np.uint8)
        if tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO:
            grey = ~grey
        if isinstance(transparent, int):
            grey[values == transparent] = 255
        return Image.fromarray(grey).convert("RGB")

    return convert


def _extremes(values: NDArray[Any]) -> tuple[float, float]:
    """Smallest and largest finite value."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (math.inf, -math.inf)


def _range(mode: str, extremes: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The values that are black and white."""
    low, high = min(one for one, _ in extremes), max(one for _, one in extremes)
    for most in (1.0, 255.0, 65535.0) if mode == "F" else (255.0, 65535.0):
        if low >= 0 and high <= most:
            return 0.0, most
    return (low, high) if low < high else (low - 1, high)


@functools.cache
def _from_lab() -> ImageCms.ImageCmsTransform:
    """From CIE L*a*b* to sRGB, which Pillow does not convert by itself."""
    lab, rgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    return ImageCms.buildTransformFromOpenProfiles(lab, rgb, "LAB", "RGB")
