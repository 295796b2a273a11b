"""Decoding of picture files to uint8 RGB tensors; what cannot be decoded is refused with one line."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import math
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor
from torchvision.io import ImageReadMode, decode_jpeg

from rungwise.core.errors import UserError
from rungwise.core.reading import opened, read_bytes

MAX_PIXELS = 178_956_970
"""Pictures that claim more pixels are refused from their header; Pillow's own limit for an error."""

UPLOAD_NAME = "<uploaded picture>"
"""What a picture that came as bytes is called in messages."""

# EPS is left out because Pillow runs another program for it; other formats because they are not used for photos.
_FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF")
_JPEG_ORIENTATION = 0x0112


def load_picture(source: Path | str | bytes, *, shorter_side: int | None = None, name: str | None = None) -> Tensor:
    """Decode one picture, upright as its EXIF orientation says; transparent parts become white.

    Args:
        source: A file, or the bytes of one. Of an animation the first frame is taken.
        shorter_side: A hint that no more than this many pixels on the shorter side are needed. A JPEG at
            least twice as large is decoded at half, a quarter or an eighth of its size, never below the hint.
        name: What messages call the picture; the path, or ``"<uploaded picture>"``, unless given.

    Returns:
        (3, height, width) uint8, RGB.

    Raises:
        UserError: If the file is missing, empty, truncated, damaged, no picture, or claims more than
            :data:`MAX_PIXELS` pixels; nothing is decoded in the last case.

    >>> file = io.BytesIO()
    >>> Image.new("RGBA", (4, 2), (255, 0, 0, 0)).save(file, "PNG")
    >>> load_picture(file.getvalue()).shape, load_picture(file.getvalue()).unique()
    (torch.Size([3, 2, 4]), tensor([255], dtype=torch.uint8))
    >>> load_picture(file.getvalue()[:50])
    Traceback (most recent call last):
    rungwise.core.errors.UserError: <uploaded picture>: truncated PNG (...); re-download or remove it
    """
    name = name or (UPLOAD_NAME if isinstance(source, bytes) else str(source))
    data = source if isinstance(source, bytes) else read_picture(Path(source))
    if not data:
        raise UserError(f"{name}: the file is empty; re-download or remove it")
    image = _open(data, name)
    try:
        is_jpeg = image.format in ("JPEG", "MPO")
        if is_jpeg and image.mode in ("L", "RGB") and not _far_larger(image, shorter_side):
            encoded = torch.frombuffer(bytearray(data), dtype=torch.uint8)
            # What it refuses, Pillow reads below or refuses with a better reason.
            with contextlib.suppress(RuntimeError):
                return _upright(decode_jpeg(encoded, mode=ImageReadMode.RGB), _orientation(image))
        if is_jpeg and shorter_side is not None:
            shorter = min(image.size)
            wanted = [math.ceil(side * shorter_side / shorter) for side in image.size]
            image.draft(None, (wanted[0], wanted[1]))
        image.load()
        return _to_tensor(_to_rgb(_transposed(image), name))
    except UserError:
        raise
    # Decoders raise whatever they like on damaged data: OSError, SyntaxError, struct.error, ValueError.
    except Exception as error:
        raise _damaged(name, image.format or "picture", data, error) from error


def thumbnail(source: Path | str | bytes, side: int) -> bytes:
    """A small JPEG of a picture, for pages and contact sheets.

    Args:
        source: As in :func:`load_picture`, with the same errors.
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


def small_image(source: Path | str | bytes, side: int) -> Image.Image:
    """A picture as a Pillow image, RGB, whose longest side is at most ``side`` pixels.

    >>> file = io.BytesIO()
    >>> Image.new("L", (400, 200)).save(file, "PNG")
    >>> small_image(file.getvalue(), 100)
    <PIL.Image.Image image mode=RGB size=100x50 at ...>
    """
    pixels = load_picture(source, shorter_side=side)
    image = Image.fromarray(np.ascontiguousarray(pixels.permute(1, 2, 0).numpy()))
    image.thumbnail((side, side), Image.Resampling.BICUBIC)
    return image


def picture_digest(path: Path | str) -> str:
    """SHA-256 of a file's bytes, as 64 hexadecimal digits; errors as :func:`read_picture`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.jpg"
    ...     _ = file.write_bytes(b"")
    ...     picture_digest(file)[:8]
    'e3b0c442'
    """
    with opened(Path(path), "picture_bytes") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_picture(path: Path) -> bytes:
    """The bytes of a picture file, not decoded.

    Raises:
        UserError: If it is missing, no regular file, may not be read, or is larger than the limit ``picture_bytes``.

    >>> read_picture(Path("nowhere.jpg"))
    Traceback (most recent call last):
    rungwise.core.reading.MissingFileError: nowhere.jpg: no such file; correct the path
    """
    return read_bytes(path, "picture_bytes")


def _open(data: bytes, name: str) -> Image.Image:
    """Header only: format, mode and size are known afterwards, no pixel is decoded."""
    oversized = f"{name}: its header claims more than {MAX_PIXELS} pixels; shrink or remove it"
    try:
        image = Image.open(io.BytesIO(data), formats=_known_formats())
    except Image.DecompressionBombError as error:
        raise UserError(oversized) from error
    except UnidentifiedImageError as error:
        for signature, form in ((b"\xff\xd8\xff", "JPEG"), (b"\x89PNG\r\n", "PNG")):
            if data.startswith(signature):
                raise _damaged(name, form, data, error) from error
        raise UserError(f"{name}: not a picture in a known format; convert it to JPEG or PNG, or remove it") from error
    except Exception as error:
        form = "JPEG" if data.startswith(b"\xff\xd8") else "picture"
        raise _damaged(name, form, data, error) from error
    # Pillow's own check is off wherever a program has set its limit to None.
    if image.width * image.height > MAX_PIXELS:
        raise UserError(oversized)
    return image


@functools.cache
def _known_formats() -> tuple[str, ...]:
    Image.init()
    return tuple(form for form in _FORMATS if form in Image.OPEN)


def _damaged(name: str, form: str, data: bytes, error: Exception) -> UserError:
    reason = " ".join(str(error).split())
    jpeg_without_end = form in ("JPEG", "MPO") and b"\xff\xd9" not in data[-64:]
    truncated = jpeg_without_end or "truncated" in reason.lower()
    if truncated:
        reason = f"it ends after {len(data)} bytes"
    elif isinstance(error, UnidentifiedImageError):
        reason = "its header makes no sense"
    return UserError(
        f"{name}: {'truncated' if truncated else 'damaged'} {form} ({reason or type(error).__name__});"
        " re-download or remove it"
    )


def _far_larger(image: Image.Image, shorter_side: int | None) -> bool:
    return shorter_side is not None and min(image.size) >= 2 * shorter_side


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_JPEG_ORIENTATION, 1))
    # Broken metadata do not make the pixels unreadable, and Pillow raises many kinds of error for them.
    except Exception:
        return 1


def _upright(pixels: Tensor, orientation: int) -> Tensor:
    """Undo an EXIF orientation 1..8 of (3, height, width); other values mean upright."""
    if orientation in (5, 6, 7, 8):
        pixels = pixels.transpose(1, 2)
    flips = {2: (2,), 3: (1, 2), 4: (1,), 6: (2,), 7: (1, 2), 8: (1,)}.get(orientation)
    return (pixels.flip(flips) if flips else pixels).contiguous()


def _transposed(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # as in _orientation
        return image


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


def _to_tensor(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).contiguous()
