"""Opening of pictures: every picture is opened here, from whatever source, and refused in one line beyond a limit.

Bytes, pixels, work beside the pixels and memory are limited before a pixel is decoded. Nothing else in the package
calls Pillow's or torchvision's decoders.
"""

from __future__ import annotations

import functools
import io
import logging
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Condition
from typing import IO, TYPE_CHECKING

from PIL import Image, UnidentifiedImageError

from rungwise.core import (
    MissingFileError,
    UserError,
    digest_of_parts,
    limits,
    opened_file,
    read_bytes,
    readable,
    too_large,
    variable,
)
from rungwise.core.disk import digest_of
from rungwise.core.output import native_lines_dropped
from rungwise.data._collection import Issue
from rungwise.data.files import PackedPicture, Picture
from rungwise.data.pictures._decoding_cost import DecodingCost, decoding_cost
from rungwise.data.pictures._heif import HeifError, Still, TooLargeError, is_heif, still_picture
from rungwise.data.pictures._jpeg2000 import BOXES, CODE

if TYPE_CHECKING:
    from torch import Tensor

# Pillow warns of large pictures and of each odd tag of EXIF, up to 65,535 times for one file. The limits here stand in
# place of the first, and what the second is about is passed over on purpose.
warnings.filterwarnings("ignore", module=r"PIL\.")
logging.getLogger("PIL").addHandler(logging.NullHandler())

UPLOAD_NAME = "<uploaded picture>"
"""Name in messages of a picture that came as bytes."""

MISSING = "missing picture"
"""Kind of issue of a picture whose file is missing."""

# EPS is left out because Pillow runs another program for it; other formats because they are not used for photos.
WEB_FORMATS = ("JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF")
"""Formats of pictures that strangers may send to a server."""
_FORMATS = (*WEB_FORMATS, "JPEG2000", "HEIF")
NEEDS_EXTRA = "HEIC without its decoder"
"""Kind of issue of a picture whose decoder is not installed."""
_EXTRA = "a HEIC picture, which needs pillow-heif; pip install 'rungwise[heif]'"
_JPEG_ORIENTATION = 0x0112
_TILE_WIDTH, _TILE_HEIGHT = 0x142, 0x143
_LARGE_TILE = 1 << 24
_SIGNATURES = (
    (b"\xff\xd8\xff", "JPEG"), (b"\x89PNG\r\n", "PNG"), (CODE, "JPEG2000"), (BOXES, "JPEG2000"), (b"ftyp", "HEIF"),
)  # fmt: skip
_HALVINGS_OF_JPEG = 3
# A pixel is held in three channels, and in the (up to) four bytes of Pillow's or of what resizes, and what is taken of
# the system is a little more. Decoders of some formats hold more at their peak. tests/data/picture_memory.py measures.
_BYTES_OF_PIXEL = 8
_BESIDES = {"WEBP": 12, "AVIF": 8, "HEIF": 10}
_BESIDES_OF_CHANNEL = 6
"""Bytes that a decoder of JPEG 2000 takes besides for each value."""
_STEPS_OF_HEIF, _STEPS_OF_BYTE, _STEPS_OF_UNIT = 16, 256, 1 << 13
"""Steps for a pixel of HEIC, for a byte that is read again, and for a piece of a picture."""
LARGE = 1 << 26
"""Pixels beyond which a picture that comes out whole is made smaller at once, where less is asked for."""
_BYTES_WHERE_SMALLER = 4
_FIXED = 64 << 20
_BYTES_OF_PART = 512


@dataclass(frozen=True)
class PictureHeader:
    """The claims of a picture's header.

    Attributes:
        form: Pillow's name of the format.
        width: Width in pixels.
        height: Height in pixels.
        mode: Pillow's name of the pixel format.
        working: Bytes that the decoder needs beside the decoded pixels.
        halvings: How many times the decoder can halve the sides while it decodes.
        besides: Bytes that it needs besides for each pixel that it decodes.
    """

    form: str
    width: int
    height: int
    mode: str
    working: int
    halvings: int = 0
    besides: int = 0

    @property
    def pixels(self) -> int:
        """Number of pixels."""
        return self.width * self.height

    def memory(self, shorter_side: int | None = None) -> int:
        """Most bytes that loading and resizing the picture takes, without the file itself.

        ``shorter_side`` is a hint as in :func:`~rungwise.data.pictures.load_picture`.

        >>> png = PictureHeader("PNG", 10_000, 10_000, "RGBA", working=0)
        >>> jpeg = PictureHeader("JPEG", 10_000, 10_000, "RGB", working=0, halvings=3)
        >>> png.memory() >> 20, png.memory(256) >> 20, jpeg.memory() >> 20, jpeg.memory(shorter_side=256) >> 20
        (826, 445, 826, 75)
        """
        decoded, each = self.pixels, _BYTES_OF_PIXEL
        if shorter_side:
            halved = halvings(self, shorter_side)
            decoded >>= 2 * halved
            if decoded > LARGE and min(self.width, self.height) >> halved >= 2 * shorter_side:
                each = _BYTES_WHERE_SMALLER
        return decoded * (each + self.besides) + self.working + _FIXED


def halvings(header: PictureHeader, shorter_side: int) -> int:
    """How many times a picture's sides are halved while it is decoded, so that the shorter one keeps as many pixels.

    >>> [halvings(PictureHeader("JPEG", 1000, side, "RGB", 0, halvings=3), 100) for side in (1000, 400, 199)]
    [3, 2, 0]
    """
    shorter = min(header.width, header.height)
    return next((by for by in range(header.halvings, 0, -1) if shorter >= shorter_side << by), 0)


def read_header(
    source: Picture | bytes,
    name: str | None = None,
    *,
    shorter_side: int | None = None,
    formats: Sequence[str] = _FORMATS,
) -> PictureHeader:
    """Read a picture's header; no pixel is decoded.

    Args:
        source: A file, a place in a larger one, or the bytes of a file.
        name: Name of the picture in messages; by default the path, or ``"<uploaded picture>"``.
        shorter_side: Hint as in :func:`~rungwise.data.pictures.load_picture`, by which less work may be needed.
        formats: Pillow's names of the formats that are taken.

    Raises:
        UserError: If it is no picture, damaged, or has more bytes, more pixels or more work beside them than
            :func:`~rungwise.core.limits` allow.

    >>> file = io.BytesIO()
    >>> Image.new("P", (40, 30)).save(file, "PNG")
    >>> read_header(file.getvalue())
    PictureHeader(form='PNG', width=40, height=30, mode='P', working=...)
    """
    name = name or picture_name(source)
    if isinstance(source, Path):
        with opened_file(source, "picture_bytes") as file:
            return _header_of(*_opened(file, name, shorter_side, formats))
    return _header_of(*_opened(io.BytesIO(picture_bytes(source)), name, shorter_side, formats))


def upright_size(data: bytes, name: str) -> tuple[int, int]:
    """Height and width in pixels of a picture as it stands upright; no pixel is decoded."""
    with decoding(data, name, 1) as image:  # Pillow looks for EXIF behind the pixels of a PNG, and decodes them
        return (image.width, image.height) if orientation(image) >= 5 else (image.height, image.width)


def open_header(data: bytes, name: str) -> Image.Image:
    """A Pillow image whose format, mode and size are known and no pixel is decoded. Errors as :func:`read_header`."""
    return _opened(io.BytesIO(data), name, shorter_side=1)[0]


@contextmanager
def decoding(data: bytes, name: str, shorter_side: int | None = None) -> Iterator[Image.Image]:
    """A picture to be decoded and resized within the block; memory for it is reserved until the end of the block.

    Where other threads decode so much that the limit ``picture_memory`` would be passed, it waits for them.

    Args:
        data: The bytes of a file.
        name: Name of the picture in messages.
        shorter_side: Hint as in :func:`~rungwise.data.pictures.load_picture`.

    Raises:
        UserError: For the reasons of :func:`read_header`, and if the picture alone takes more than the limit.
    """
    image, work = _opened(io.BytesIO(data), name, shorter_side)
    header = _header_of(image, work)
    if image.format == "JPEG2000" and shorter_side:
        image.reduce = halvings(header, shorter_side)  # type: ignore[method-assign, assignment]  # as Pillow has it
    needed = header.memory(shorter_side) + 2 * len(data)
    most = limits().picture_memory
    if needed > most:
        raise UserError(
            f"{name}: decoding it would take {readable(needed)} of memory, where pictures take at most"
            f" {readable(most)}; shrink it, save it as JPEG, or set {variable('picture_memory')}={needed}"
        )
    held = [image]
    del image  # what decoders hold is to be free as soon as nobody needs the picture any more
    with _ROOM.taken(needed, most), native_lines_dropped():
        yield held.pop()


def decoded_jpeg(data: bytes) -> Tensor | None:
    """(3, H, W) uint8 of a JPEG that was opened by :func:`decoding`; None where torchvision does not read it."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg

    try:
        pixels: Tensor = decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), mode=ImageReadMode.RGB)
    except RuntimeError:
        return None
    return pixels


class _Room:
    """Memory that the threads of this process have reserved for pictures."""

    def __init__(self) -> None:
        self._taken = 0
        self._changed = Condition()

    @contextmanager
    def taken(self, size: int, most: int) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._taken + size <= most)
            self._taken += size
        try:
            yield
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()


_ROOM = _Room()


def _opened(
    file: IO[bytes], name: str, shorter_side: int | None = None, formats: Sequence[str] = _FORMATS
) -> tuple[Image.Image, DecodingCost]:
    """Give a file to Pillow; no other code does."""
    size = file.seek(0, io.SEEK_END)
    if size > limits().picture_bytes:
        raise too_large(name, size, "picture_bytes")
    start = _beginning(file)
    if is_heif(start):
        return _opened_heif(file, name, formats)
    work = decoding_cost(file, limits().picture_work)
    if work.wrong:
        raise UserError(f"{name}: damaged JPEG 2000 ({work.wrong}); re-download or remove it")
    if work.of_pixels:
        width, height = (max(1, one) for one in work.sides)
        halved = halvings(PictureHeader("", width, height, "", 0, work.halvings), shorter_side) if shorter_side else 0
        work = replace(work, steps=work.steps + (work.of_pixels >> 2 * halved))
    _require_work(work, name)
    return _by_pillow(file, name, [one for one in _known_formats() if one in formats and one != "HEIF"]), work


def _require_work(work: DecodingCost, name: str) -> None:
    if work.steps > limits().picture_work:
        raise UserError(
            f"{name}: {work.why}, too much to decode; save it anew, or set {variable('picture_work')}"
            f" above {limits().picture_work}"
        )


def _by_pillow(file: IO[bytes], name: str, formats: Sequence[str]) -> Image.Image:
    """A picture as Pillow sees it, of no more pixels than are allowed."""
    most = limits().picture_pixels
    # Pillow refuses twice as many as it says. A program's own limit is raised to ours, and no further.
    if Image.MAX_IMAGE_PIXELS is not None and most > 2 * Image.MAX_IMAGE_PIXELS:
        Image.MAX_IMAGE_PIXELS = most // 2 + 1
    try:
        image = Image.open(file, formats=tuple(formats))
    except Image.DecompressionBombError as error:
        raise _oversized(name) from error
    except UnidentifiedImageError as error:
        start = _beginning(file)
        if not start:
            raise UserError(f"{name}: the file is empty; re-download or remove it") from error
        for signature, form in _SIGNATURES:
            if start.startswith(signature, 4 if form == "HEIF" else 0) and form in formats:
                raise damaged(name, form, file, error) from error
        raise _unknown(name) from error
    except Exception as error:
        form = "JPEG" if _beginning(file).startswith(b"\xff\xd8") else "picture"
        raise damaged(name, form, file, error) from error
    # Pillow's own check is off wherever a program has set its limit to None.
    pixels = image.width * image.height
    if pixels > most:
        raise _oversized(name)
    if _tile(image) > max(2 * pixels, _LARGE_TILE):
        raise UserError(f"{name}: a TIFF whose tiles are far larger than the picture; save it anew")
    return image


def _opened_heif(file: IO[bytes], name: str, formats: Sequence[str]) -> tuple[Image.Image, DecodingCost]:
    if "HEIF" not in formats:
        raise _unknown(name)
    file.seek(0)
    try:
        still = still_picture(file.read(), limits().picture_pixels)
    except TooLargeError as error:
        raise _oversized(name) from error
    except HeifError as error:
        raise UserError(f"{name}: damaged HEIC ({error}); re-download it, or convert it to JPEG") from error
    work = _work_of_heif(still)
    _require_work(work, name)
    if not has_heif():
        raise UserError(f"{name}: {_EXTRA}")
    return _by_pillow(io.BytesIO(still.data), name, ["HEIF"]), work


def _work_of_heif(still: Still) -> DecodingCost:
    again = max(0, still.read - len(still.data))
    steps = still.pixels * _STEPS_OF_HEIF + again * _STEPS_OF_BYTE + still.units * _STEPS_OF_UNIT
    why = f"{still.pixels:,} pixels of tiles and alpha in {still.units:,} pieces of {still.read:,} bytes"
    return DecodingCost(steps, why, kept=still.pixels * _BESIDES["HEIF"])


@functools.cache
def has_heif() -> bool:
    """Whether HEIC can be decoded: the extra ``heif`` is installed."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener(thumbnails=False, depth_images=False, aux_images=False, decode_threads=1)
    return True


def _unknown(name: str) -> UserError:
    return UserError(f"{name}: not a picture in a known format; convert it to JPEG or PNG, or remove it")


def _oversized(name: str) -> UserError:
    most = limits().picture_pixels
    return UserError(
        f"{name}: its header claims more than {most} pixels; shrink or remove it, or set {variable('picture_pixels')}"
    )


def orientation(image: Image.Image) -> int:
    """Orientation of a picture, 1..8 as in EXIF; 1 where nothing usable is given."""
    try:
        said = int(image.getexif().get(_JPEG_ORIENTATION, 1))
    # Broken metadata do not make the pixels unreadable, and Pillow raises many kinds of error for them.
    except Exception:
        return 1
    return said if 1 <= said <= 8 else 1


def picture_bytes(source: Picture | str | bytes) -> bytes:
    """The bytes of a picture's file, from whatever source.

    Args:
        source: A file, a place in a larger file, or the bytes themselves.
    """
    if isinstance(source, bytes):
        return source
    if isinstance(source, PackedPicture):
        return source.read()
    return read_bytes(Path(source), "picture_bytes")


def read_picture(source: Picture | bytes) -> bytes | Issue:
    """The bytes of a picture's file, or the issue that says why there are none."""
    try:
        data = picture_bytes(source)
    except MissingFileError:
        return Issue(MISSING, picture_name(source), "no such file")
    except UserError as error:
        return unreadable_picture(picture_name(source), error)
    except OSError as error:
        return Issue("unreadable picture", picture_name(source), error.strerror or str(error))
    if is_heif(data[:64]) and not has_heif():
        return Issue(NEEDS_EXTRA, picture_name(source), _EXTRA)
    return data


def unreadable_picture(name: str, error: UserError) -> Issue:
    """The issue of a picture that was refused."""
    why = str(error).removeprefix(f"{name}: ")
    return Issue(NEEDS_EXTRA if why == _EXTRA else "unreadable picture", name, why)


def picture_name(source: Picture | str | bytes) -> str:
    """Name of a picture in messages: its file, with the place in a larger one, or :data:`UPLOAD_NAME`."""
    return UPLOAD_NAME if isinstance(source, bytes) else str(source)


def picture_digest(source: Picture | str) -> str:
    """SHA-256 of the bytes of a picture's file, as 64 hexadecimal digits."""
    if isinstance(source, PackedPicture):
        return digest_of_parts([source.read()])
    return digest_of(Path(source), "picture_bytes")


def damaged(name: str, form: str, file: IO[bytes], error: Exception) -> UserError:
    """The error for a file that ends early or makes no sense."""
    reason = " ".join(str(error).split())
    size = file.seek(0, io.SEEK_END)
    file.seek(max(0, size - 64))
    jpeg_without_end = form in ("JPEG", "MPO") and b"\xff\xd9" not in file.read()
    truncated = jpeg_without_end or "truncated" in reason.lower()
    if truncated:
        reason = f"it ends after {size} bytes"
    elif isinstance(error, UnidentifiedImageError):
        reason = "its header makes no sense"
    return UserError(
        f"{name}: {'truncated' if truncated else 'damaged'} {form} ({reason or type(error).__name__});"
        " re-download or remove it"
    )


def _header_of(image: Image.Image, work: DecodingCost) -> PictureHeader:
    form, pixels = image.format or "picture", image.width * image.height
    working, times, besides = _BESIDES.get(form, 0) * pixels, work.halvings, 0
    if form in ("JPEG", "MPO"):
        working, times = _coefficients(image) if work.passes else 0, _HALVINGS_OF_JPEG
    elif form == "TIFF":
        working = 4 * max(pixels, _tile(image))
    elif form == "JPEG2000":
        working, besides = 0, _BESIDES_OF_CHANNEL * len(image.getbands())
    working = max(working, work.kept) + _BYTES_OF_PART * work.parts
    return PictureHeader(form, image.width, image.height, image.mode, working, times, besides)


def _coefficients(image: Image.Image) -> int:
    """Bytes for the coefficients of a JPEG, all of which are kept where it comes in several scans."""
    sampling = [(across, down) for _, across, down, _ in getattr(image, "layer", [])] or [(1, 1)]
    widest, highest = (max(side) for side in zip(*sampling, strict=True))
    samples: float = sum(across * down for across, down in sampling) / max(1, widest * highest)
    return math.ceil(2 * samples * image.width * image.height)


def _tile(image: Image.Image) -> int:
    """Pixels of a TIFF's tile, which may be larger than the picture."""
    tags, pixels = getattr(image, "tag_v2", {}), 1
    for tag in (_TILE_WIDTH, _TILE_HEIGHT):
        side = tags.get(tag)
        pixels *= side if isinstance(side, int) else 0
    return pixels


def _beginning(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read(64)


@functools.cache
def _known_formats() -> tuple[str, ...]:
    Image.init()
    return tuple(form for form in _FORMATS if form in Image.OPEN)
