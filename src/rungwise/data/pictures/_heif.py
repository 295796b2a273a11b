"""HEIC: what a file's boxes say is checked, and the file cut down to one still picture, before libheif sees it.

A HEIF file is a small file system: items with types, places, properties and references to each other. Of all that one
picture is needed: the primary one, its tiles, its alpha, its EXIF and XMP. Every other item and box is given a name
that libheif passes over. What is left has sizes that were compared with each other, places within the file, and no
references that go round.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

MOST_ITEMS = 1000
"""Number of items of a file, which is also what libheif takes."""

_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"})
_AVIF = frozenset({b"avif", b"avis"})
_TOP = frozenset({b"ftyp", b"meta", b"mdat"})
_INNER = frozenset({b"hdlr", b"pitm", b"iinf", b"iloc", b"iprp", b"iref", b"idat", b"dinf"})
_PROPERTIES = frozenset({b"ispe", b"hvcC", b"colr", b"irot", b"imir", b"clap", b"pixi", b"pasp", b"auxC"})
_REFERENCES = frozenset({b"dimg", b"auxl", b"cdsc", b"prem"})
_ALPHA = (b"urn:mpeg:hevc:2015:auxid:1", b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha")
_NOTHING = b"free"
_MOST_BOXES, _MOST_PROPERTIES, _MOST_UNITS, _MOST_EXTENTS = 1 << 12, 1 << 12, 1 << 16, 32
_MOST_METADATA = 16 << 20
_PADDING = 128
"""Pixels by which the coded picture may be wider or higher than it is shown: encoders fill up their blocks."""
_BESIDE = 1 << 22
"""Pixels that tiles may have in all beside four times those of the picture."""
_SEQUENCE, _FIRST_NO_VIDEO = 33, 32


class HeifError(ValueError):
    """A file that makes no sense; the message says what does not."""


class TooLargeError(ValueError):
    """A picture of more pixels than are allowed."""


@dataclass(frozen=True)
class Still:
    """The one picture of a file.

    Attributes:
        data: A file with this picture alone.
        pixels: Pixels that are decoded in all: tiles and alpha.
        read: Bytes that are decoded in all.
        units: Pieces of which these are made.
    """

    data: bytes
    pixels: int
    read: int
    units: int


class _Box(NamedTuple):
    kind: bytes
    place: int
    begin: int
    end: int


@dataclass
class _Item:
    kind: bytes
    place: int
    extents: list[tuple[int, int]] = field(default_factory=list)
    properties: list[_Box] = field(default_factory=list)


def is_heif(start: bytes) -> bool:
    """Whether a file that begins with these bytes, the first 64 or so, is for libheif and not for an AVIF decoder.

    >>> is_heif(bytes.fromhex("0000001c") + b"ftypheic" + bytes(4) + b"mif1heicmiaf")
    True
    >>> is_heif(bytes.fromhex("0000001c") + b"ftypavif" + bytes(4) + b"mif1avifmiaf")
    False
    """
    if start[4:8] != b"ftyp":
        return False
    size = min(len(start), int.from_bytes(start[:4], "big"))
    major, others = start[8:12], {start[at : at + 4] for at in range(16, size - 3, 4)}
    return major in _BRANDS and not (major in (b"mif1", b"msf1") and others & _AVIF)


def still_picture(data: bytes, most_pixels: int) -> Still:
    """Check a file and leave its primary picture.

    Args:
        data: The file.
        most_pixels: Number of pixels that the picture may have.

    Raises:
        HeifError: If the file makes no sense, or its picture is made in a way that is not read.
        TooLargeError: If the picture is larger.
    """
    try:
        return _Reading(data, most_pixels).still()
    except (struct.error, IndexError, KeyError, OverflowError) as error:
        raise HeifError("its header makes no sense") from error


class _Reading:
    def __init__(self, data: bytes, most_pixels: int) -> None:
        self._data, self._out = data, bytearray(data)
        self._most = most_pixels
        self._items: dict[int, _Item] = {}
        self._references: list[tuple[_Box, int, tuple[int, ...]]] = []
        self._inline: tuple[int, int] | None = None
        self._pixels = self._read = self._units = 0
        self._needed: set[int] = set()
        self._looked: dict[int, tuple[int, int, int]] = {}

    def still(self) -> Still:
        metas = [one for one in self._boxes(0, len(self._data)) if self._kept(one, _TOP) and one.kind == b"meta"]
        if len(metas) != 1:
            raise HeifError("it has no still picture" if not metas else "it has several lists of items")
        inner: dict[bytes, _Box] = {}
        for box in self._boxes(metas[0].begin + 4, metas[0].end):
            if self._kept(box, _INNER):
                if box.kind in inner:
                    raise HeifError("a part of its header stands twice")
                inner[box.kind] = box
        if lacking := {b"hdlr", b"pitm", b"iinf", b"iloc", b"iprp"} - inner.keys():
            raise HeifError(f"its header has no {min(lacking).decode()}")
        if b"idat" in inner:
            self._inline = inner[b"idat"].begin, inner[b"idat"].end
        self._read_items(inner[b"iinf"])
        self._read_places(inner[b"iloc"])
        self._read_properties(inner[b"iprp"])
        if b"iref" in inner:
            self._read_references(inner[b"iref"])
        at = inner[b"pitm"].begin
        primary = self._number(at + 4, 4 if self._data[at] else 2)
        self._need_picture(primary)
        for one in self._alpha_of(frozenset(self._needed)):
            self._need_picture(one)
        self._need_metadata(primary)
        for number, item in self._items.items():
            if number not in self._needed:
                self._out[item.place : item.place + 4] = b"none"
        for box, begin, _ in self._references:
            if begin not in self._needed or box.kind not in _REFERENCES:
                self._out[box.place + 4 : box.place + 8] = b"none"
        return Still(bytes(self._out), self._pixels, self._read, self._units)

    def _boxes(self, place: int, end: int) -> Iterator[_Box]:
        count = 0
        while place < end:
            if place + 8 > end or count == _MOST_BOXES:
                raise HeifError("it ends within a box" if count < _MOST_BOXES else "it has too many boxes")
            size, begin = self._number(place, 4), place + 8
            if size == 1:
                size, begin = self._number(place + 8, 8), place + 16
            until = end if size == 0 else place + size
            if not begin <= until <= end:
                raise HeifError("a box goes beyond its end")
            yield _Box(self._data[place + 4 : place + 8], place, begin, until)
            place, count = until, count + 1

    def _kept(self, box: _Box, names: frozenset[bytes]) -> bool:
        """Whether a box has one of these names; others get one that is passed over."""
        if box.kind in names:
            return True
        self._out[box.place + 4 : box.place + 8] = _NOTHING
        return False

    def _number(self, place: int, size: int) -> int:
        if place + size > len(self._data):
            raise HeifError("it ends within its header")
        return int.from_bytes(self._data[place : place + size], "big")

    def _read_items(self, box: _Box) -> None:
        wide = 4 if self._data[box.begin] else 2
        if self._number(box.begin + 4, wide) > MOST_ITEMS:
            raise HeifError(f"it has more than {MOST_ITEMS:,} items")
        for one in self._boxes(box.begin + 4 + wide, box.end):
            version = self._data[one.begin]
            if one.kind != b"infe" or version not in (2, 3) or len(self._items) == MOST_ITEMS:
                raise HeifError("its list of items makes no sense")
            wide = 2 if version == 2 else 4
            number, place = self._number(one.begin + 4, wide), one.begin + 6 + wide
            if number in self._items or place + 4 > one.end:
                raise HeifError("its list of items makes no sense")
            self._items[number] = _Item(self._data[place : place + 4], place)

    def _read_places(self, box: _Box) -> None:
        version, at = self._data[box.begin], box.begin + 4
        sizes = self._number(at, 2)
        of_offset, of_length, of_base = sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15
        of_index = sizes & 15 if version else 0
        if version > 2 or {of_offset, of_length, of_base, of_index} - {0, 4, 8}:
            raise HeifError("its list of places makes no sense")
        wide = 4 if version == 2 else 2
        count, at = self._number(at + 2, wide), at + 2 + wide
        if count > MOST_ITEMS:
            raise HeifError(f"it has more than {MOST_ITEMS:,} items")
        for _ in range(count):
            number, at = self._number(at, wide), at + wide
            within = 0
            if version:
                within, at = self._number(at, 2) & 15, at + 2
            elsewhere, at = self._number(at, 2), at + 2
            base, at = self._number(at, of_base), at + of_base
            extents, at = self._number(at, 2), at + 2
            if extents > _MOST_EXTENTS or elsewhere or within > 1 or at > box.end:
                raise HeifError("the place of an item makes no sense")
            begin, end = (0, len(self._data)) if not within else self._inline or (0, 0)
            for _ in range(extents):
                at += of_index
                offset, length = self._number(at, of_offset), self._number(at + of_offset, of_length)
                at += of_offset + of_length
                if begin + base + offset + length > end:
                    raise HeifError("the place of an item lies beyond its end")
                if number in self._items:
                    self._items[number].extents.append((begin + base + offset, length))

    def _read_properties(self, box: _Box) -> None:
        inner = list(self._boxes(box.begin, box.end))
        if [one.kind for one in inner].count(b"ipco") != 1 or {one.kind for one in inner} - {b"ipco", b"ipma"}:
            raise HeifError("its properties make no sense")
        known = [one for part in inner if part.kind == b"ipco" for one in self._boxes(part.begin, part.end)]
        for one in known:
            self._kept(one, _PROPERTIES)
        seen = 0
        for part in inner:
            if part.kind != b"ipma":
                continue
            at = part.begin + 4
            wide, long = 4 if self._data[part.begin] else 2, self._data[part.begin + 3] & 1
            count, at = self._number(at, 4), at + 4
            for _ in range(min(count, MOST_ITEMS + 1)):
                number, many, at = self._number(at, wide), self._data[at + wide], at + wide + 1
                seen += many
                if seen > _MOST_PROPERTIES or at > part.end:
                    raise HeifError("its properties make no sense")
                for _ in range(many):
                    which = self._number(at, 2) & 0x7FFF if long else self._number(at, 1) & 0x7F
                    at += 2 if long else 1
                    if which > len(known):
                        raise HeifError("its properties make no sense")
                    if which and number in self._items:
                        self._items[number].properties.append(known[which - 1])
            if count > MOST_ITEMS:
                raise HeifError(f"it has more than {MOST_ITEMS:,} items")

    def _read_references(self, box: _Box) -> None:
        wide, seen = 4 if self._data[box.begin] else 2, 0
        for one in self._boxes(box.begin + 4, box.end):
            begin, count = self._number(one.begin, wide), self._number(one.begin + wide, 2)
            at = one.begin + wide + 2
            seen += count
            if at + count * wide > one.end or seen > _MOST_UNITS:
                raise HeifError("its references make no sense")
            ends = tuple(self._number(at + step * wide, wide) for step in range(count))
            self._references.append((one, begin, ends))

    def _need_picture(self, number: int, depth: int = 0) -> tuple[int, int, int]:
        """Take a picture in, with all that it is made of; gives width, height and pixels that are decoded."""
        if number in self._looked:
            _, _, pixels = self._looked[number]
            self._pixels += pixels
            return self._looked[number]
        item = self._items[number]
        width, height = self._size(item)
        if width * height > self._most:
            raise TooLargeError
        parts = [end for box, begin, ends in self._references if (box.kind, begin) == (b"dimg", number) for end in ends]
        if item.kind == b"hvc1":
            self._check_coded(item, width, height)
            pixels = width * height
            self._pixels += pixels
        elif item.kind == b"grid" and depth < 2:
            pixels = self._need_tiles(item, width, height, parts)
        elif item.kind == b"iden" and depth == 0 and len(parts) == 1:
            pixels = self._need_picture(parts[0], depth + 1)[2]
        else:
            shown = item.kind.decode("latin-1")
            raise HeifError(f"its picture is a {shown!r}, which is not read")
        self._needed.add(number)
        self._looked[number] = width, height, pixels
        return width, height, pixels

    def _need_tiles(self, item: _Item, width: int, height: int, parts: list[int]) -> int:
        said = self._content(item)
        wide = 4 if said[1] & 1 else 2
        rows, columns = said[2] + 1, said[3] + 1
        size = int.from_bytes(said[4 : 4 + wide], "big"), int.from_bytes(said[4 + wide : 4 + 2 * wide], "big")
        if size != (width, height) or len(parts) != rows * columns or len(said) < 4 + 2 * wide:
            raise HeifError("its tiles do not make up its picture")
        pixels, first = 0, None
        for part in parts:
            if self._items[part].kind != b"hvc1":
                raise HeifError("a tile of its picture is no picture")
            across, down, each = self._need_picture(part, 2)
            pixels += each
            if (first := first or (across, down)) != (across, down) or pixels > 4 * width * height + _BESIDE:
                raise HeifError("its tiles do not make up its picture")
        if first is None or first[0] * columns < width or first[1] * rows < height:
            raise HeifError("its tiles do not make up its picture")
        return pixels

    def _alpha_of(self, pictures: frozenset[int]) -> list[int]:
        found = []
        for box, begin, ends in self._references:
            if box.kind == b"auxl" and begin in self._items and pictures.intersection(ends):
                kinds = [one for one in self._items[begin].properties if one.kind == b"auxC"]
                if any(self._data[one.begin + 4 : one.end].split(b"\0")[0] in _ALPHA for one in kinds):
                    found.append(begin)
        return found

    def _need_metadata(self, primary: int) -> None:
        """Take the first EXIF and the first XMP of the picture in."""
        left = {b"Exif", b"mime"}
        for box, begin, ends in self._references:
            item = self._items.get(begin)
            if item is None or box.kind != b"cdsc" or primary not in ends or item.kind not in left:
                continue
            if sum(length for _, length in item.extents) <= _MOST_METADATA:
                left.remove(item.kind)
                self._needed.add(begin)

    def _size(self, item: _Item) -> tuple[int, int]:
        sizes = [one for one in item.properties if one.kind == b"ispe"]
        if len(sizes) != 1:
            raise HeifError("it does not say how large its picture is")
        width, height = self._number(sizes[0].begin + 4, 4), self._number(sizes[0].begin + 8, 4)
        if sizes[0].end - sizes[0].begin < 12 or not width or not height:
            raise HeifError("it does not say how large its picture is")
        return width, height

    def _check_coded(self, item: _Item, width: int, height: int) -> None:
        """Compare the size with what the decoder will find, and see that there is one picture."""
        found = [one for one in item.properties if one.kind == b"hvcC"]
        if len(found) != 1:
            raise HeifError("its picture has no settings for the decoder")
        head = self._data[found[0].begin : found[0].end]
        pictures, sequences = 0, 0
        for unit in (*_units_of_settings(head), *self._units_of(item, (head[21] & 3) + 1)):
            self._units += 1
            if self._units > _MOST_UNITS:
                raise HeifError("its picture is in too many pieces")
            kind, layer = unit[0] >> 1 & 63, (unit[0] & 1) << 5 | unit[1] >> 3
            if layer:
                raise HeifError("its picture has several layers")
            if kind < _FIRST_NO_VIDEO:
                pictures += unit[2] >> 7
            elif kind == _SEQUENCE:
                sequences += 1
                coded = _size_of_sequence(unit)
                if not (0 < coded[0] <= width + _PADDING and 0 < coded[1] <= height + _PADDING):
                    raise HeifError("its picture is larger than its header says")
        if pictures != 1 or not sequences:
            raise HeifError("its picture is a film" if pictures > 1 else "its picture makes no sense")

    def _units_of(self, item: _Item, wide: int) -> Iterator[bytes]:
        """The beginnings of the pieces of a coded picture."""
        content = self._content(item)
        self._read += len(content)
        at = 0
        while at < len(content):
            size = int.from_bytes(content[at : at + wide], "big")
            at += wide
            if size < 3 or at + size > len(content):
                raise HeifError("its picture makes no sense")
            yield content[at : at + min(size, 256)]
            at += size

    def _content(self, item: _Item) -> bytes:
        return b"".join(self._data[place : place + length] for place, length in item.extents)


def _units_of_settings(head: bytes) -> Iterator[bytes]:
    at = 23
    for _ in range(head[22]):
        count, at = int.from_bytes(head[at + 1 : at + 3], "big"), at + 3
        for _ in range(count):
            size, at = int.from_bytes(head[at : at + 2], "big"), at + 2
            if size < 3 or at + size > len(head):
                raise HeifError("the settings of its decoder make no sense")
            yield head[at : at + min(size, 256)]
            at += size


def _size_of_sequence(unit: bytes) -> tuple[int, int]:
    """Width and height in pixels that a sequence parameter set of HEVC gives."""
    bits = _Bits(unit[2:].replace(b"\0\0\3", b"\0\0"))
    bits.take(4)
    layers = bits.take(3)
    bits.take(1 + 96)
    present = [(bits.take(1), bits.take(1)) for _ in range(layers)]
    if layers:
        bits.take(2 * (8 - layers))
    for profile, level in present:
        bits.take(88 * profile + 8 * level)
    bits.code()
    if bits.code() == 3:
        bits.take(1)
    return bits.code(), bits.code()


class _Bits:
    def __init__(self, data: bytes) -> None:
        self._value, self._left = int.from_bytes(data, "big"), 8 * len(data)

    def take(self, count: int) -> int:
        self._left -= count
        if self._left < 0:
            raise HeifError("the settings of its decoder make no sense")
        return self._value >> self._left & (1 << count) - 1

    def code(self) -> int:
        """A number in Golomb's code: as many zeros as it has digits beside the first."""
        zeros = 0
        while not self.take(1):
            zeros += 1
            if zeros > 31:
                raise HeifError("the settings of its decoder make no sense")
        return (1 << zeros | self.take(zeros)) - 1
