"""JPEG 2000: what the header of a code stream asks of a decoder, read before OpenJPEG sees the file.

The sides of the picture say little of the work. A decoder keeps something of each tile, each precinct and each block
of code, goes through each layer of each precinct, and through each bit of each pixel; a header of a hundred bytes can
ask for millions of these.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

CODE = b"\xff\x4f\xff\x51"
"""First bytes of a code stream."""
BOXES = b"\0\0\0\x0cjP  \r\n\x87\n"
"""First bytes of a file with boxes around a code stream."""

_SIZE, _STYLE, _STYLE_OF_ONE, _BITS, _BITS_OF_ONE, _ORDER = 0x51, 0x52, 0x53, 0x5C, 0x5D, 0x5F
_TILE, _DATA, _END = 0x90, 0x93, 0xD9
_MOST_BOXES = 1 << 10
_MOST_LEVELS = 32


@dataclass
class CodeStream:
    """What a header says.

    Attributes:
        width: Width in pixels.
        height: Height in pixels.
        components: Number of channels.
        tiles: Number of tiles.
        levels: How many times a decoder can halve the sides.
        samples: Number of values of all channels.
        precincts: Number of groups of blocks, each of which has a place in each layer.
        blocks: Number of blocks of code.
        layers: Number of layers.
        bits: Number of bits of a value, as many as the header allows.
        orders: Number of times that the order of the layers may begin anew.
        parts: Number of parts of the tiles and segments of the header.
    """

    width: int
    height: int
    components: int
    tiles: int
    levels: int
    samples: int = 0
    precincts: int = 0
    blocks: int = 0
    layers: int = 1
    bits: int = 0
    orders: int = 1
    parts: int = 0


def code_stream(file: IO[bytes], most_parts: int) -> CodeStream:
    """Read the header of a file's code stream, and those of its tiles.

    Args:
        file: File open for reading, seekable.
        most_parts: Number of segments and parts of tiles after which the rest is not looked at.

    Raises:
        ValueError: If it makes no sense.
        struct.error: If it ends too early.
    """
    begin, claimed = _begin(file)
    file.seek(begin + 2)
    found: CodeStream | None = None
    sides: tuple[int, ...] = ()
    for marker, body in _segments(file):
        if marker == _SIZE and found is None:
            sides = struct.unpack_from(">8I", body, 2)
            found = _sized(sides, body)
            if claimed is not None and claimed != (found.width, found.height, found.components):
                raise ValueError("it says two sizes")
        if found is None:
            raise ValueError("it does not begin with its size")
        found.parts += 1
        if marker == _STYLE:
            found.layers = max(found.layers, int.from_bytes(body[2:4], "big"))
            _add_style(found, body[0], body[5:], sides)
        elif marker == _STYLE_OF_ONE:
            skipped = 1 if found.components < 257 else 2
            _add_style(found, body[skipped], body[skipped + 1 :], sides)
        elif marker in (_BITS, _BITS_OF_ONE):
            _add_bits(found, body if marker == _BITS else body[1 if found.components < 257 else 2 :])
        elif marker == _ORDER:
            found.orders += len(body) // 7
        if found.parts > most_parts:
            break
    if found is None or not found.precincts:
        raise ValueError("it does not say how it is coded")
    return found


def _begin(file: IO[bytes]) -> tuple[int, tuple[int, int, int] | None]:
    """Place of the code stream, and width, height and channels as the boxes around it say."""
    end = file.seek(0, 2)
    file.seek(0)
    if file.read(4) == CODE:
        return 0, None
    place, claimed = 0, None
    for _ in range(_MOST_BOXES):
        file.seek(place)
        head = file.read(16)
        size, begin = int.from_bytes(head[:4], "big"), place + 8
        if size == 1:
            size, begin = int.from_bytes(head[8:16], "big"), place + 16
        until = end if size == 0 else place + size
        if not begin <= until <= end:
            raise ValueError("a box goes beyond its end")
        file.seek(begin)
        if head[4:8] == b"jp2h":
            said = file.read(22)
            if said[4:8] != b"ihdr":
                raise ValueError("it does not say how large it is")
            height, width, components = struct.unpack_from(">IIH", said, 8)
            claimed = width, height, components
        elif head[4:8] == b"jp2c":
            if claimed is None or file.read(4) != CODE:
                raise ValueError("it has no code stream")
            return begin, claimed
        place = until
    raise ValueError("it has too many boxes")


def _segments(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Markers and bodies of the header and of the headers of the tiles."""
    ends = -1
    while len(marker := file.read(2)) == 2 and marker[0] == 0xFF:
        kind = marker[1]
        if kind == _END:
            return
        if kind == _DATA:
            if ends < 0:  # the last part of a tile goes on to the end
                return
            file.seek(ends)
            continue
        size = int.from_bytes(file.read(2), "big")
        body = file.read(max(0, size - 2))
        if size < 2 or len(body) < size - 2:
            raise ValueError("it ends within its header")
        if kind == _TILE:
            length = int.from_bytes(body[2:6], "big")
            ends = file.tell() - 12 + length if length >= 14 else -1
        yield kind, body


def _sized(sides: tuple[int, ...], body: bytes) -> CodeStream:
    right, bottom, left, top, across, down, first, upper = sides
    components = int.from_bytes(body[34:36], "big")
    if not (left < right and top < bottom and across and down and components):
        raise ValueError("its sides make no sense")
    tiles = math.ceil(max(0, right - first) / across) * math.ceil(max(0, bottom - upper) / down)
    # Sides that do not begin at 0 are rounded in another way than Pillow expects.
    levels = 0 if left or top else _MOST_LEVELS
    found = CodeStream(right - left, bottom - top, components, tiles, levels)
    found.samples = found.width * found.height * components
    return found


def _add_style(found: CodeStream, style: int, body: bytes, sides: tuple[int, ...]) -> None:
    """Take in how a channel is cut up; where several ways are said, the costliest counts for all channels."""
    levels, wide, high = body[0], (body[1] & 15) + 2, (body[2] & 15) + 2
    if levels > _MOST_LEVELS:
        raise ValueError("its levels make no sense")
    found.levels = min(found.levels, levels)
    width, height = min(sides[4], found.width), min(sides[5], found.height)
    precincts = blocks = 0
    for level in range(levels + 1):
        shrunk = levels if level == 0 else levels - level + 1
        step = body[5 + level] if style & 1 else 0xFF
        across, down = step & 15, step >> 4
        resolution = levels - level
        # What lies across the borders of a tile is cut, so that there may be one more in each direction.
        here = ((width >> resolution >> across) + 2) * ((height >> resolution >> down) + 2)
        narrow, low = min(wide, max(0, across - (level > 0))), min(high, max(0, down - (level > 0)))
        of_band = ((width >> shrunk >> narrow) + 2) * ((height >> shrunk >> low) + 2)
        precincts += here
        blocks += of_band * (1 if level == 0 else 3)
    everywhere = found.tiles * found.components
    found.precincts = max(found.precincts, precincts * everywhere)
    found.blocks = max(found.blocks, blocks * everywhere)


def _add_bits(found: CodeStream, body: bytes) -> None:
    guard, kind = body[0] >> 5, body[0] & 31
    exponents = [one >> 3 for one in body[1:]] if kind == 0 else [body[at] >> 3 for at in range(1, len(body), 2)]
    found.bits = max(found.bits, guard + max(exponents, default=0) - 1)
