"""Work that a picture's file makes beside its pixels: scans, run lengths, comments, profiles, entries, layers.

A decoder takes some nanoseconds for a pixel. A small file can make it take thousands of times as long: each scan of a
JPEG is a pass over all pixels, and an empty one takes 13 bytes. This work is counted here before Pillow sees the file,
in steps. A step is what one scan costs for one pixel, about a third of a nanosecond.
"""

from __future__ import annotations

import io
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from rungwise.data.pictures._jpeg2000 import BOXES, CODE, code_stream

_JPEG, _PNG, _GIF = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8"
_PIECE = 1 << 20
"""Bytes that are read at a time; the decoder of texts of numbers takes as many."""

# In steps, as measured with Pillow 13 and libjpeg-turbo 3, and rounded up.
_LEAST_PIXELS = 1 << 16
"""Cost of the tables of a scan, in pixels: a smaller scan costs as much as one of this size."""
_ARITHMETIC = 16
"""Factor by which a scan in arithmetic code can cost more than others."""
_RUN_LENGTHS = 256
"""Steps for each pixel of a BMP with run lengths: Python fills the rest of a row pixel by pixel."""
_PART = 1 << 15
"""Steps for a segment, a chunk, a block or a strip, each of which Pillow keeps as an object."""
_PROFILE = 1 << 23
"""Steps for a profile that is unpacked, up to 1 MiB."""
_COPIED = 4
"""Bytes that are copied in one step."""
_MOVED = 16
"""Bytes that are moved in one step within the cache of the processor."""
_COMPARED = 3
"""Steps for each pair of items of an AVIF, which are looked for one after another."""
_BIT = 8
"""Steps for each bit of each value of a JPEG 2000."""
_TILE, _PRECINCT, _BLOCK, _PACKET = 1 << 14, 1 << 12, 1 << 10, 1 << 8
"""Steps for what a decoder of JPEG 2000 keeps, and for each layer of each precinct."""
_BYTES_OF_TILE, _BYTES_OF_PRECINCT, _BYTES_OF_BLOCK = 3 << 10, 640, 512

_JPEG_MARKER = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])", re.DOTALL)
_START_OF_SCAN, _END_OF_IMAGE, _APP1 = 0xDA, 0xD9, 0xE1
_ALONE = frozenset({0x01, 0xD8, *range(0xD0, 0xD8)})
_LAST_OF_HUFFMAN = 0xC7
_OF_ONE_SCAN = frozenset({0xC0, 0xC1, 0xC9})
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_SCANS_OF_TIFF = 100
"""Number of scans that libtiff accepts in a JPEG within a TIFF."""
_UNITS = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
_WHOLE_NUMBERS = {1: "B", 3: "H", 4: "I", 16: "Q"}
_MOST_TAGS = 1 << 16


@dataclass(frozen=True)
class DecodingCost:
    """Work that a picture's file makes for a decoder beside its pixels.

    Attributes:
        steps: Amount of work.
        why: Cause of the work, in words.
        parts: Number of objects that Pillow keeps of the file: segments, chunks, blocks, strips.
        passes: Whether a JPEG comes in several scans, so that all of its coefficients are kept.
        of_pixels: Work for the pixels of a JPEG 2000; a quarter for each halving of the sides.
        sides: Width and height of a JPEG 2000 in pixels.
        halvings: How many times its decoder can halve them.
        kept: Bytes that it keeps beside the pixels.
        wrong: Why a file should be given to no decoder.
    """

    steps: int = 0
    why: str = ""
    parts: int = 0
    passes: bool = False
    of_pixels: int = 0
    sides: tuple[int, int] = (0, 0)
    halvings: int = 0
    kept: int = 0
    wrong: str = ""


def decoding_cost(file: IO[bytes], most: int) -> DecodingCost:
    """Examine a picture's file without decoding a pixel; what makes no sense is left to Pillow.

    The file is read where that is needed to know: a JPEG of several scans is as a whole, in pieces. Its place is the
    beginning again.

    Args:
        file: File open for reading, seekable.
        most: Number of steps after which the rest is not examined.

    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.new("L", (1000, 1000)).save(file, "JPEG", progressive=True)
    >>> decoding_cost(file, most=1 << 33)
    DecodingCost(steps=6000000, why='6 scans of 1,000,000 pixels', parts=4, passes=True, ...)
    """
    file.seek(0)
    start = file.read(16)
    try:
        for signature, walk in _WALKS:
            if signature.match(start):
                return max(walk(file, most), key=lambda one: one.steps, default=DecodingCost())
        return DecodingCost()
    except (struct.error, IndexError, ValueError, OverflowError):
        return DecodingCost()
    finally:
        file.seek(0)


def count_scans(data: bytes) -> int:
    r"""Number of scans of a JPEG up to its first end marker."""
    scans, place = 0, 0
    while found := _JPEG_MARKER.search(data, place):
        kind, place = found[1][0], found.end()
        if kind == _END_OF_IMAGE:
            break
        scans += kind == _START_OF_SCAN
        if kind not in _ALONE:
            place += int.from_bytes(data[place : place + 2], "big")
    return scans


def _of_jpeg(file: IO[bytes], most: int) -> Iterator[DecodingCost]:
    file.seek(2)
    pixels, arithmetic, parts, exif, copied, frames, components = 0, False, 0, 0, 0, 0, 0
    while (kind := _next_marker(file)) not in (_START_OF_SCAN, _END_OF_IMAGE, None):
        if kind in _ALONE:
            continue
        parts += 1
        size = int.from_bytes(file.read(2), "big") - 2
        if kind in _FRAMES:
            _, height, width, components = struct.unpack(">BHHB", file.read(6))
            pixels = max(pixels, width * height)
            arithmetic |= kind > _LAST_OF_HUFFMAN
            frames += 1 if kind in _OF_ONE_SCAN else 2
            size -= 6
        elif kind == _APP1 and size >= 6:
            if file.read(6) == b"Exif\0\0":  # Pillow copies what it has of it for each more
                exif += size
                copied += exif
            size -= 6
        if max(parts * _PART, copied // _COPIED) > most:
            break
        file.seek(max(0, size), io.SEEK_CUR)
    begin = file.tell()
    # A decoder takes one scan of a frame that has no more of each place where that scan has all components.
    has_one = kind == _START_OF_SCAN and frames == 1 and file.read(3)[2] == components
    yield DecodingCost(parts * _PART, f"{parts:,} segments before its pixels", parts, passes=not has_one)
    yield DecodingCost(copied // _COPIED, f"EXIF in {parts:,} segments", parts, passes=not has_one)
    scans = 1 if has_one else 1 + _count(file, b"\xff\xda")
    each = max(pixels, _LEAST_PIXELS) * (_ARITHMETIC if arithmetic else 1)
    if scans * each > most:  # some may belong to a second picture, or to the film that phones put behind
        file.seek(begin)
        rest = file.read()
        scans = 1 + count_scans(rest[int.from_bytes(rest[:2], "big") :])
    coded = " of an arithmetic code" if arithmetic else ""
    yield DecodingCost(scans * each, f"{scans:,} scans{coded} of {pixels:,} pixels", parts, passes=not has_one)


def _next_marker(file: IO[bytes]) -> int | None:
    """The kind of the next marker, found as decoders do: other bytes are passed over."""
    byte = file.read(1)
    while byte:
        if byte != b"\xff":
            byte = file.read(1)
            continue
        while byte == b"\xff":
            byte = file.read(1)
        if byte and byte != b"\0":
            return byte[0]
    return None


def _of_png(file: IO[bytes], most: int) -> Iterator[DecodingCost]:
    file.seek(len(_PNG))
    profiles = parts = 0
    while len(head := file.read(8)) == 8 and (kind := head[4:]) != b"IEND":
        parts += kind != b"IDAT"
        profiles += kind == b"iCCP"
        if max(parts * _PART, profiles * _PROFILE) > most:
            break
        file.seek(int.from_bytes(head[:4], "big") + 4, io.SEEK_CUR)
    yield DecodingCost(profiles * _PROFILE, f"{profiles:,} colour profiles", parts)
    yield DecodingCost(parts * _PART, f"{parts:,} chunks beside its pixels", parts)


def _of_gif(file: IO[bytes], most: int) -> Iterator[DecodingCost]:
    file.seek(10)
    flags = file.read(3)[0]
    if flags & 128:
        file.seek(3 << ((flags & 7) + 1), io.SEEK_CUR)
    parts = 0
    while (byte := file.read(1)) and byte not in b",;":
        if byte == b"!":
            file.seek(1, io.SEEK_CUR)
            while size := file.read(1)[0]:
                parts += 1
                file.seek(size, io.SEEK_CUR)
                if parts * _PART > most:
                    break
        if parts * _PART > most:
            break
    yield DecodingCost(parts * _PART, f"{parts:,} blocks before its pixels", parts)


def _of_bmp(file: IO[bytes], most: int) -> Iterator[DecodingCost]:
    file.seek(14)
    head = file.read(20)
    if int.from_bytes(head[:4], "little") >= 40:
        width, height, _, _, compression = struct.unpack_from("<iiHHI", head, 4)
        if compression in (1, 2):
            pixels = abs(width * height)
            yield DecodingCost(pixels * _RUN_LENGTHS, f"run lengths of {pixels:,} pixels")


def _of_text(file: IO[bytes], most: int) -> Iterator[DecodingCost]:
    """Cost of a PPM whose numbers are written as text: each comment is cut out of the piece that holds it."""
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    comments = _count(file, b"#")
    yield DecodingCost(comments * min(size, _PIECE) // _MOVED, f"{comments:,} comments")


def _of_avif(file: IO[bytes], most: int) -> Iterator[DecodingCost]:
    end = file.seek(0, io.SEEK_END)
    items = 0
    for kind, begin, until in _boxes(file, 0, end):
        if kind == b"meta":
            for inner, place, _ in _boxes(file, begin + 4, until):
                if inner in (b"iinf", b"iloc"):
                    file.seek(place)
                    version = file.read(4)[0]
                    file.seek(2 if inner == b"iloc" else 0, io.SEEK_CUR)
                    long = version >= (2 if inner == b"iloc" else 1)
                    items = max(items, int.from_bytes(file.read(4 if long else 2), "big"))
    yield DecodingCost(items**2 * _COMPARED, f"{items:,} items", items)


def _boxes(file: IO[bytes], place: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """Kind, beginning and end of the content of each box."""
    for _ in range(_MOST_TAGS):
        if place + 8 > end:
            return
        file.seek(place)
        head = file.read(16)
        size, begin = int.from_bytes(head[:4], "big"), place + 8
        if size == 1:
            size, begin = int.from_bytes(head[8:16], "big"), place + 16
        until = end if size == 0 else min(end, place + size)
        if until < begin:
            return
        yield head[4:8], begin, until
        place = until


def _of_jpeg2000(file: IO[bytes], most: int) -> Iterator[DecodingCost]:
    try:
        found = code_stream(file, most // _PART)
    except (struct.error, IndexError, ValueError) as error:
        yield DecodingCost(wrong=str(error) if type(error) is ValueError else "it ends within its header")
        return
    each = found.tiles * found.components
    steps = found.parts * _PART + each * _TILE + found.precincts * _PRECINCT + found.blocks * _BLOCK
    steps += found.precincts * found.layers * found.orders * _PACKET
    of_pixels = found.samples * max(1, found.bits) * _BIT
    why = (
        f"{found.bits} bits of {found.samples:,} values in {found.tiles:,} tiles, {found.precincts:,} precincts,"
        f" {found.blocks:,} blocks of code and {found.layers:,} layers"
    )
    sides = found.width, found.height
    kept = each * _BYTES_OF_TILE + found.precincts * _BYTES_OF_PRECINCT + found.blocks * _BYTES_OF_BLOCK
    yield DecodingCost(steps, why, found.parts, of_pixels=of_pixels, sides=sides, halvings=found.levels, kept=kept)


def _of_tiff(file: IO[bytes], most: int) -> Iterator[DecodingCost]:
    end = file.seek(0, io.SEEK_END)
    tags = dict(_tags(file))

    def numbers(*names: int) -> tuple[int, ...]:
        kind, count, place, order = next((tags[one] for one in names if one in tags), (0, 0, 0, "<"))
        if kind not in _WHOLE_NUMBERS or place + count * _UNITS[kind] > end:
            return ()
        file.seek(place)
        return struct.unpack(f"{order}{count}{_WHOLE_NUMBERS[kind]}", file.read(count * _UNITS[kind]))

    parts = max((count for name, (_, count, _, _) in tags.items() if name in (273, 279, 324, 325)), default=0)
    steps = DecodingCost(parts * _PART, f"{parts:,} strips or tiles", parts)
    yield steps
    if (numbers(259) or (1,))[0] in (6, 7) and steps.steps <= most:
        width, height = ((numbers(one) or (0,))[0] for one in (256, 257))
        sides = [(numbers(one) or (0,))[0] for one in (322, 323)]
        rows = (numbers(278) or (height,))[0]
        strip = sides[0] * sides[1] or width * min(rows, height)
        file.seek(0)
        scans = _count(file, b"\xff\xda")
        # Strips that lie over one another have each all scans that libtiff takes.
        shared = sum(numbers(279, 325)) > end
        passes = min(scans, _SCANS_OF_TIFF) * max(1, parts) if shared else min(scans, _SCANS_OF_TIFF * max(1, parts))
        yield DecodingCost(passes * strip, f"{passes:,} scans of strips or tiles of {strip:,} pixels", parts)


def _tags(file: IO[bytes]) -> Iterator[tuple[int, tuple[int, int, int, str]]]:
    """Tags of the first directory: number, type, number of values, their place, order of bytes."""
    file.seek(0)
    head = file.read(16)
    order = "<" if head[:2] == b"II" else ">"
    is_big = struct.unpack_from(f"{order}H", head, 2)[0] == 43
    (place,) = struct.unpack_from(f"{order}Q", head, 8) if is_big else struct.unpack_from(f"{order}I", head, 4)
    file.seek(place)
    (count,) = struct.unpack(f"{order}Q", file.read(8)) if is_big else struct.unpack(f"{order}H", file.read(2))
    place += 8 if is_big else 2
    size, form, within = (20, f"{order}HHQ", 8) if is_big else (12, f"{order}HHI", 4)
    for _ in range(min(count, _MOST_TAGS)):
        entry = file.read(size)
        if len(entry) < size:
            return
        tag, kind, values = struct.unpack_from(form, entry)
        begin = place + size - within
        if kind in _UNITS and values * _UNITS[kind] > within:
            begin = int.from_bytes(entry[-within:], "little" if order == "<" else "big")
        yield tag, (kind, values, begin, order)
        place += size


def _count(file: IO[bytes], what: bytes) -> int:
    """Number of occurrences of some bytes in the rest of a file."""
    found, before = 0, b""
    while piece := file.read(_PIECE):
        found += (before + piece).count(what) if before else piece.count(what)
        before = piece[len(piece) + 1 - len(what) :]
    return found


_WALKS = (
    (re.compile(re.escape(_JPEG)), _of_jpeg),
    (re.compile(re.escape(_PNG)), _of_png),
    (re.compile(re.escape(_GIF)), _of_gif),
    (re.compile(rb"BM"), _of_bmp),
    (re.compile(rb"P[123]"), _of_text),
    (re.compile(rb"....ftyp", re.DOTALL), _of_avif),
    (re.compile(rb"(II|MM)(\0[*+]|[*+]\0)"), _of_tiff),
    (re.compile(re.escape(CODE) + b"|" + re.escape(BOXES)), _of_jpeg2000),
)
