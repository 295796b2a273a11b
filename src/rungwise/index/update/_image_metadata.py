"""Metadata of a picture's file: size, time, place and keywords, read with care and left out where in doubt.

Cameras and programs write EXIF, IPTC and XMP; so does anybody who wishes a reader harm. Nothing here fails: what is
damaged, absurd or too much is passed over, and the picture is indexed without it.
"""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any
from xml.parsers import expat

from PIL import Image, ImageFile, IptcImagePlugin

from rungwise.core import UserError
from rungwise.data import Value
from rungwise.data.files import PackedPicture, Picture
from rungwise.data.layouts import clean_caption
from rungwise.data.pictures import open_header, orientation

MOST_TAGS = 64
"""Number of keywords that are taken from one picture."""
LONGEST_TAG = 100
"""Number of characters of the longest keyword that is taken."""

_EXIF, _GPS = 0x8769, 0x8825
FACTS = {
    **dict.fromkeys(("file", "folder", "modified", "format", "taken"), "text"),
    **dict.fromkeys(("bytes", "width", "height", "year", "latitude", "longitude"), "number"),
}
"""Columns of metadata and their types; ``tags``, a list of texts, come beside them."""

_TIMES = ((0x9003, 0x9011), (0x9004, 0x9012))  # original and digitized, each with its offset from UTC
_TIME = re.compile(r"(\d{4})[:-](\d\d)[:-](\d\d)[ T](\d\d):(\d\d):(\d\d)", re.ASCII)
_OFFSET = re.compile(r"[+-](?:0\d|1[0-4]):[0-5]\d", re.ASCII)
_FIRST_PHOTOGRAPH = 1826
_XMP_BYTES = 1 << 20
_SUBJECT = "http://purl.org/dc/elements/1.1/ subject"
_LISTED = "http://www.w3.org/1999/02/22-rdf-syntax-ns# li"
_KEYWORDS, _CODING = (2, 25), (1, 90)
_UTF_8 = b"\x1b%G"


def facts_of_file(picture: Picture, item_id: str, size: int, modified: float) -> dict[str, Value]:
    """Metadata that needs no file opened: ``file``, ``folder``, ``bytes`` and ``modified``.

    Args:
        picture: The picture's file, or its place in a larger one.
        item_id: Id of the picture; where the id is its path, ``folder`` is the folder of the id.
        size: Size in bytes.
        modified: Time of the last change in seconds since 1970.

    >>> from pathlib import Path
    >>> facts_of_file(Path("/photos/rome/a.jpg"), "rome/a.jpg", 7, 0)
    {'file': 'a.jpg', 'folder': 'rome', 'bytes': 7, 'modified': '1970-01-01T00:00:00Z'}
    """
    if isinstance(picture, PackedPicture):
        path = PurePosixPath(str(picture.place.get("name") or item_id).replace("\\", "/"))
        folder = path.parent.as_posix() if path.parent.name else picture.file.name
    else:
        path = PurePosixPath(picture.as_posix())
        inner = PurePosixPath(item_id)
        is_path = bool(inner.parent.name) and path.parts[-len(inner.parts) :] == inner.parts
        folder = inner.parent.as_posix() if is_path else path.parent.name
    facts: dict[str, Value] = {"file": _text(path.name), "folder": _text(folder), "bytes": size}
    with suppress(ValueError, OverflowError, OSError):  # times that the calendar does not have
        moment = datetime.datetime.fromtimestamp(modified, datetime.UTC)
        facts["modified"] = moment.isoformat(timespec="seconds").replace("+00:00", "Z")
    return facts


def facts_of_picture(data: bytes) -> dict[str, Value]:
    """Metadata in the bytes of a picture: ``width``, ``height``, ``format``, and what its owner or a camera wrote.

    Those are ``taken`` (ISO 8601, with an offset where one is known), ``year``, ``latitude``, ``longitude`` (degrees,
    north and east) and ``tags`` (keywords of IPTC and XMP). No pixel is decoded. Bytes that are no picture give
    nothing.

    >>> import io
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (40, 30)).save(file, "JPEG")
    >>> facts_of_picture(file.getvalue())
    {'width': 40, 'height': 30, 'format': 'JPEG'}
    """
    try:
        image = open_header(data, "")
    except UserError:
        return {}
    # Pillow looks for EXIF behind the pixels of a PNG, and would decode them.
    has_exif = image.format != "PNG" or "exif" in image.info
    # It gives the size of a TIFF as it is seen.
    turned = image.format != "TIFF" and has_exif and orientation(image) >= 5
    width, height = (image.height, image.width) if turned else image.size
    facts: dict[str, Value] = {"width": width, "height": height, "format": str(image.format)}
    # Pillow raises whatever it likes on damaged metadata.
    with suppress(Exception):
        exif = image.getexif() if has_exif else Image.Exif()
        facts |= _time(exif.get_ifd(_EXIF))
        facts |= _place(exif.get_ifd(_GPS))
    if tags := tuple(_tags(image)) if isinstance(image, ImageFile.ImageFile) else ():
        facts["tags"] = tags
    return facts


def _time(exif: Mapping[int, Any]) -> dict[str, Value]:
    latest = datetime.datetime.now(datetime.UTC).year + 1
    for time, offset in _TIMES:
        said = exif.get(time)
        match = _TIME.match(said) if isinstance(said, str) else None
        if match is None:
            continue
        try:
            taken = datetime.datetime(*map(int, match.groups()))  # type: ignore[arg-type]  # six numbers
        except ValueError:  # such as 0000:00:00, which cameras without a clock write
            continue
        if _FIRST_PHOTOGRAPH <= taken.year <= latest:
            zone = exif.get(offset)
            known = isinstance(zone, str) and _OFFSET.fullmatch(zone.strip("\0 "))
            return {"taken": taken.isoformat() + (str(zone).strip("\0 ") if known else ""), "year": taken.year}
    return {}


def _place(gps: Mapping[int, Any]) -> dict[str, Value]:
    latitude, longitude = _degrees(gps.get(2), gps.get(1), "S"), _degrees(gps.get(4), gps.get(3), "W")
    if latitude is None or longitude is None or abs(latitude) > 90 or abs(longitude) > 180:
        return {}
    # Programs write zeros where they know no place; there is only sea.
    return {} if latitude == longitude == 0 else {"latitude": latitude, "longitude": longitude}


def _degrees(said: Any, direction: Any, negative: str) -> float | None:
    if not isinstance(said, tuple) or len(said) != 3:
        return None
    degrees, minutes, seconds = (float(one) for one in said)
    found = degrees + minutes / 60 + seconds / 3600
    if not (math.isfinite(found) and min(degrees, minutes, seconds) >= 0):
        return None
    is_negative = isinstance(direction, str) and direction.strip("\0 ").upper() == negative
    return round(-found if is_negative else found, 6)


def _tags(image: ImageFile.ImageFile) -> Iterator[str]:
    """Keywords, each once, in their order."""
    seen: set[str] = set()
    for tag in (*_from_iptc(image), *_from_xmp(image)):
        clean = " ".join(clean_caption(tag)[0].split())
        if clean and len(clean) <= LONGEST_TAG and clean.casefold() not in seen and len(seen) < MOST_TAGS:
            seen.add(clean.casefold())
            yield clean


def _from_iptc(image: ImageFile.ImageFile) -> list[str]:
    try:
        found: Mapping[Any, Any] = IptcImagePlugin.getiptcinfo(image) or {}
    except Exception:  # of damaged metadata Pillow raises many kinds
        return []
    keywords = found.get(_KEYWORDS)
    coding = "utf-8" if found.get(_CODING) == _UTF_8 else None
    listed = keywords if isinstance(keywords, list) else [keywords]
    return [_decoded(one, coding) for one in listed if isinstance(one, bytes)]


def _decoded(said: bytes, coding: str | None) -> str:
    """Decode as UTF-8 first: many programs write it without saying so."""
    try:
        return said.decode("utf-8")
    except UnicodeDecodeError:
        return said.decode(coding or "latin-1", "replace")


def _from_xmp(image: Image.Image) -> list[str]:
    said = image.info.get("xmp", image.info.get("XML:com.adobe.xmp", b""))
    packet = said.encode("utf-8", "replace") if isinstance(said, str) else said
    if not isinstance(packet, bytes) or not packet or len(packet) > _XMP_BYTES:
        return []
    reading = _Subjects()
    with suppress(expat.ExpatError, _UnwantedError, ValueError):
        reading.parser.Parse(packet.strip(b"\0 \r\n\t"), True)
    return reading.found


class _UnwantedError(Exception):
    """A document type, with which a small text can stand for a large one, or for a file."""


class _Subjects:
    """The entries of ``dc:subject`` as a parser meets them."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._within = 0
        self._text: list[str] | None = None
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._more
        self.parser.StartDoctypeDeclHandler = self._refuse

    def _refuse(self, *_: object) -> None:
        raise _UnwantedError

    def _begin(self, name: str, _: Mapping[str, str]) -> None:
        self._within += name == _SUBJECT
        if self._within and name == _LISTED:
            self._text = []

    def _end(self, name: str) -> None:
        self._within -= name == _SUBJECT
        if name == _LISTED and self._text is not None:
            self.found.append("".join(self._text))
            self._text = None

    def _more(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)


def _text(name: str) -> str:
    """A name as text that every output takes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
