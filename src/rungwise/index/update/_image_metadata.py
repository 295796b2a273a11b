"""Metadata of a picture's file: size, time, place, camera and keywords, read with care and left out where in doubt.

Cameras and programs write EXIF, IPTC and XMP; so does anybody who wishes a reader harm. Nothing here fails: what is
damaged, absurd or too much is passed over, and the picture is indexed without it.
"""

from __future__ import annotations

import datetime
import math
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from PIL import Image, ImageFile, IptcImagePlugin

from rungwise.core import UserError
from rungwise.data import Value
from rungwise.data.files import PackedPicture, Picture
from rungwise.data.layouts import clean_caption
from rungwise.data.pictures import open_header, orientation
from rungwise.data.sidecars import LONGEST_DESCRIPTION, LONGEST_TITLE, Xmp, clean_text, distinct_tags, read_xmp

LONGEST_NAME = 100
"""Number of characters of the longest name of a camera or a lens that is taken."""
NO_HEMISPHERE = "place without a hemisphere"
"""What is noted of a picture whose degrees say neither north nor south, or neither east nor west."""

_EXIF, _GPS = 0x8769, 0x8825
_MAKE, _MODEL, _LENS = 0x010F, 0x0110, 0xA434
FACTS = {
    **dict.fromkeys(("file", "folder", "modified", "format", "taken", "title", "description"), "text"),
    **dict.fromkeys(("camera_make", "camera_model", "lens"), "text"),
    **dict.fromkeys(("bytes", "width", "height", "year", "latitude", "longitude", "rating"), "number"),
}
"""Columns of metadata and their types; ``tags``, a list of texts, come beside them."""

_TIMES = ((0x9003, 0x9011), (0x9004, 0x9012))  # original and digitized, each with its offset from UTC
_WRITTEN = 0x0132, 0x9010  # of the file itself, which a program may have written long afterwards
_TIME = re.compile(r"(\d{4})[:-](\d\d)[:-](\d\d)[ T](\d\d):(\d\d):(\d\d)", re.ASCII)
_OFFSET = re.compile(r"[+-](?:0\d|1[0-4]):[0-5]\d", re.ASCII)
_FIRST_PHOTOGRAPH = 1826
_TITLE, _KEYWORDS, _DESCRIPTION, _CODING = (2, 5), (2, 25), (2, 120), (1, 90)
_UTF_8 = b"\x1b%G"


def facts_of_file(picture: Picture, item_id: str, size: int, modified: float, within: str = "") -> dict[str, Value]:
    """Metadata that needs no file opened: ``file``, ``folder``, ``bytes`` and ``modified``.

    Args:
        picture: The picture's file, or its place in a larger one.
        item_id: Id of the picture; where the id is its path, ``folder`` is the folder of the id.
        size: Size in bytes.
        modified: Time of the last change in seconds since 1970.
        within: Folder of the file within the collection, which is ``folder`` then; empty where it is not known.

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
        folder = within or (inner.parent.as_posix() if is_path else path.parent.name)
    facts: dict[str, Value] = {"file": _text(path.name), "folder": _text(folder), "bytes": size}
    with suppress(ValueError, OverflowError, OSError):  # times that the calendar does not have
        moment = datetime.datetime.fromtimestamp(modified, datetime.UTC)
        facts["modified"] = moment.isoformat(timespec="seconds").replace("+00:00", "Z")
    return facts


def facts_of_picture(data: bytes, note: Callable[[str], object] = str) -> dict[str, Value]:
    """Metadata in the bytes of a picture: ``width``, ``height``, ``format``, and what its owner or a camera wrote.

    Those are ``taken`` (ISO 8601, with an offset where one is known), ``year``, ``latitude``, ``longitude`` (degrees,
    north and east), ``camera_make``, ``camera_model``, ``lens``, ``tags`` (keywords of IPTC and XMP), ``title``,
    ``description`` (XMP, or else IPTC) and ``rating`` (XMP: 1 to 5, or -1 for a rejected picture). No pixel is decoded.
    Bytes that are no picture give nothing.

    Args:
        data: Bytes of the picture's file.
        note: Called with :data:`NO_HEMISPHERE` where a place is left out for that reason.

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
        within = exif.get_ifd(_EXIF)
        facts |= _camera(exif, within)
        facts |= _time(exif, within)
        facts |= _place(exif.get_ifd(_GPS), note)
    if isinstance(image, ImageFile.ImageFile):
        facts |= _said_by_people(image)
    return facts


def _camera(exif: Mapping[int, Any], within: Mapping[int, Any]) -> dict[str, Value]:
    said = {"camera_make": exif.get(_MAKE), "camera_model": exif.get(_MODEL), "lens": within.get(_LENS)}
    found = {name: _clean(text) for name, text in said.items() if isinstance(text, str)}
    return {name: text for name, text in found.items() if text}


def _clean(text: str) -> str:
    """A name as a line: what follows its end, control characters and further characters are cut off."""
    said = clean_caption(text.partition("\0")[0][: 2 * LONGEST_NAME])[0]
    return " ".join(said.split())[:LONGEST_NAME].rstrip()


def _time(whole: Mapping[int, Any], within: Mapping[int, Any]) -> dict[str, Value]:
    latest = datetime.datetime.now(datetime.UTC).year + 1
    exif, times = within, [*_TIMES]
    if not any(time in within for time, _ in _TIMES):
        exif, times = {**within, _WRITTEN[0]: whole.get(_WRITTEN[0])}, [_WRITTEN]
    for time, offset in times:
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


def _place(gps: Mapping[int, Any], note: Callable[[str], object]) -> dict[str, Value]:
    latitude, longitude = _degrees(gps.get(2)), _degrees(gps.get(4))
    # Programs write zeros where they know no place; there is only sea.
    if latitude is None or longitude is None or latitude > 90 or longitude > 180 or latitude == longitude == 0:
        return {}
    north, east = _sign(gps.get(1), "NS"), _sign(gps.get(3), "EW")
    if not north or not east:  # half of the world would be wrong
        note(NO_HEMISPHERE)
        return {}
    return {"latitude": north * latitude or 0.0, "longitude": east * longitude or 0.0}


def _sign(said: Any, directions: str) -> int:
    """1 or -1 for the first or second of two letters; 0 where neither is said."""
    text = said.decode("ascii", "replace") if isinstance(said, bytes) else said
    letter = text.strip("\0 ").upper() if isinstance(text, str) else ""
    return {directions[0]: 1, directions[1]: -1}.get(letter, 0)


def _degrees(said: Any) -> float | None:
    if not isinstance(said, tuple) or len(said) != 3:
        return None
    degrees, minutes, seconds = (float(one) for one in said)
    found = degrees + minutes / 60 + seconds / 3600
    if not (math.isfinite(found) and min(degrees, minutes, seconds) >= 0):
        return None
    return round(found, 6)


def _said_by_people(image: ImageFile.ImageFile) -> dict[str, Value]:
    """Title, description, rating and keywords; of each text what XMP says, or else IPTC."""
    iptc, xmp = _iptc(image), _xmp(image)
    found: dict[str, Value] = {
        "title": "".join(clean_text(one, LONGEST_TITLE) for one in _texts(iptc, _TITLE)[:1]),
        "description": "".join(clean_text(one, LONGEST_DESCRIPTION) for one in _texts(iptc, _DESCRIPTION)[:1]),
    }
    found |= xmp.columns
    found["tags"] = distinct_tags([*_texts(iptc, _KEYWORDS), *xmp.subjects])
    return {name: value for name, value in found.items() if value}


def _iptc(image: ImageFile.ImageFile) -> Mapping[Any, Any]:
    try:
        return IptcImagePlugin.getiptcinfo(image) or {}
    except Exception:  # of damaged metadata Pillow raises many kinds
        return {}


def _texts(iptc: Mapping[Any, Any], field: tuple[int, int]) -> list[str]:
    said = iptc.get(field)
    coding = "utf-8" if iptc.get(_CODING) == _UTF_8 else None
    return [_decoded(one, coding) for one in (said if isinstance(said, list) else [said]) if isinstance(one, bytes)]


def _decoded(said: bytes, coding: str | None) -> str:
    """Decode as UTF-8 first: many programs write it without saying so."""
    try:
        return said.decode("utf-8")
    except UnicodeDecodeError:
        return said.decode(coding or "latin-1", "replace")


def _xmp(image: Image.Image) -> Xmp:
    said = image.info.get("xmp", image.info.get("XML:com.adobe.xmp", b""))
    packet = said.encode("utf-8", "replace") if isinstance(said, str) else said
    return read_xmp(packet) if isinstance(packet, bytes) and packet else Xmp()


def _text(name: str) -> str:
    """A name as text that every output takes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
