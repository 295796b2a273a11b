"""Decoding of picture files to uint8 RGB tensors or arrays; what cannot be decoded is refused in one line.

Pillow's copies of a whole picture are avoided: what it decoded is turned into RGB tile by tile, so that no more than
the picture as the file has it and the result are in memory together.
"""

from __future__ import annotations

import contextlib
import io
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rungwise.core import UserError
from rungwise.data.files import Picture
from rungwise.data.pictures._picture_files import (
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


def load_picture(source: Picture | str | bytes, *, shorter_side: int | None = None, name: str | None = None) -> Tensor:
    """Decode one picture, upright as its EXIF orientation says; transparent parts become white.

    Args:
        source: A file, a place in a larger one, or the bytes of a file. Of an animation the first frame is taken.
        shorter_side: A hint that no more than this many pixels on the shorter side are needed. A JPEG at least twice as
            large is decoded at half, a quarter or an eighth of its size, never below the hint.
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
    return prepared_picture(source, lambda picture: picture, shorter_side=shorter_side, name=name)


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
        shorter_side: Hint as in :func:`load_picture`.
        name: Name of the picture in messages.
    """
    import torch

    name, data = name or picture_name(source), picture_bytes(source)
    with decoding(data, name, shorter_side) as image:
        with _explained(image, data, name):
            pixels = None
            if _is_jpeg(image) and image.mode in ("L", "RGB") and not _far_larger(image, shorter_side):
                pixels = decoded_jpeg(data)  # what it refuses, Pillow reads below or refuses with a better reason
            if pixels is None:
                pixels = torch.from_numpy(_decoded(image, name, shorter_side))
            else:
                pixels = _upright(pixels, orientation(image))
        del image  # what it holds is not there beside what resizing takes
        return make(pixels)


def load_array(
    source: Picture | str | bytes, *, shorter_side: int | None = None, name: str | None = None
) -> NDArray[np.uint8]:
    """:func:`load_picture` without torch, (3, height, width) uint8: Pillow decodes, at most 2 levels of 255 apart."""
    return prepared_array(source, lambda picture: picture, shorter_side=shorter_side, name=name)


def prepared_array(
    source: Picture | str | bytes,
    make: Callable[[NDArray[np.uint8]], T],
    *,
    shorter_side: int | None = None,
    name: str | None = None,
) -> T:
    """:func:`prepared_picture` without torch: ``make`` gets a (3, height, width) uint8 RGB array."""
    name, data = name or picture_name(source), picture_bytes(source)
    with decoding(data, name, shorter_side) as image:
        with _explained(image, data, name):
            pixels = _decoded(image, name, shorter_side)
        del image
        return make(pixels)


def _decoded(image: Image.Image, name: str, shorter_side: int | None) -> NDArray[np.uint8]:
    if _is_jpeg(image) and shorter_side is not None:
        _decode_smaller(image, shorter_side)
    image.load()
    turned = orientation(image)
    height, width = (image.width, image.height) if turned >= 5 else (image.height, image.width)
    pixels = np.empty((3, height, width), np.uint8)
    stored = _as_stored(pixels, turned)
    for (left, top, right, bottom), tile in _rgb_tiles(image, name):
        stored[:, top:bottom, left:right] = np.asarray(tile).transpose(2, 0, 1)
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
        image.load()
        # What remains is at least twice as large as wanted, so that the filter below has enough to work on.
        factor = max(1, max(image.size) // (2 * side))
        small = Image.new("RGB", (math.ceil(image.width / factor), math.ceil(image.height / factor)))
        for (left, top, _, _), tile in _rgb_tiles(image, name, factor):
            small.paste(tile.reduce(factor) if factor > 1 else tile, (left // factor, top // factor))
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


def _rgb_tiles(
    image: Image.Image, name: str, multiple: int = 1
) -> Iterator[tuple[tuple[int, int, int, int], Image.Image]]:
    """Tiles of a decoded picture as RGB, with their boxes; left and top are multiples of ``multiple`` pixels."""
    across = max(1, _TILE_PIXELS // multiple // multiple) * multiple
    width = min(across, math.ceil(image.width / multiple) * multiple)
    height = max(1, _TILE_PIXELS // width // multiple) * multiple
    for top in range(0, image.height, height):
        for left in range(0, image.width, width):
            box = left, top, min(left + width, image.width), min(top + height, image.height)
            yield box, _to_rgb(image.crop(box), name)


def _to_rgb(image: Image.Image, name: str) -> Image.Image:
    if image.mode == "F":
        raise UserError(f"{name}: floating-point pixels of unknown range; convert it to 8 or 16 bits")
    if image.mode.startswith("I"):
        grey = np.asarray(image).astype(np.int64)
        if grey.min() < 0 or grey.max() > 65535:
            raise UserError(f"{name}: 32-bit pixels of unknown range; convert it to 8 or 16 bits")
        return Image.fromarray((grey >> 8).astype(np.uint8)).convert("RGB")
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return image.convert("RGB")
