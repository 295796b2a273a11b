"""Google Takeout: a JSON file beside each picture, with what Google Photos knew of it.

Its name is that of the picture, cut where it would be too long: ``a.jpg.json``, ``a.jpg.supplemental-metadata.json``,
``a.jpg.suppl.json``; of the second ``a.jpg`` of a folder, ``a(1).jpg``, it is ``a.jpg(1).json`` or
``a.jpg.supplemental-metadata(1).json``. Edited copies, ``a-edited.jpg``, have none of their own.
"""

from __future__ import annotations

import datetime
import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import PurePath
from typing import Any

from rungwise.core.text import normalised, unescaped
from rungwise.data._columns import Value
from rungwise.data.sidecars._xmp import LONGEST_DESCRIPTION, clean_text, distinct_tags

_SUPPLEMENT = ".supplemental-metadata"
_NUMBER = re.compile(r"\((\d{1,5})\)", re.ASCII)
_LONGEST_NAME = 46
"""Characters of the longest name before ``.json``; longer ones are cut."""
_EDITED = (
    "-edited",
    "-bearbeitet",
    "-modifié",
    "-modificato",
    "-editado",
    "-edytowane",
    "-bewerkt",
    "-redigerad",
    "-編集済み",
)
_MOST_ALIKE = 100
"""Pictures with the beginning of a cut name from which none is told from the others."""
_LONGEST_TITLE = 1000
_FIRST_PHOTOGRAPH = 1826


def is_takeout(content: object) -> bool:
    """Whether the content of a JSON file is what Google Takeout writes of one picture.

    >>> is_takeout({"title": "a.jpg", "photoTakenTime": {"timestamp": "1600000000"}}), is_takeout({"title": "a.jpg"})
    (True, False)
    """
    return (
        isinstance(content, dict)
        and isinstance(content.get("title"), str)
        and isinstance(content.get("photoTakenTime"), dict)
        and "timestamp" in content["photoTakenTime"]
    )


class PictureNames:
    """Names of the pictures of one folder, to find the one that a JSON file belongs to.

    >>> there = PictureNames(["a.jpg", "a(1).jpg", "a-edited.jpg"])
    >>> there.of("a.jpg(1).json", "a.jpg"), there.of("a.jpg.suppl.json", "a.jpg"), there.of("b.jpg.json", "b.jpg")
    (['a(1).jpg'], ['a.jpg', 'a-edited.jpg'], [])
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._named: dict[str, str] = {}
        for one in names:
            # Of two names that are one but for the form of Unicode, neither is known.
            composed = normalised(one, "NFC")
            self._named[composed] = "" if composed in self._named else one
        self._named = {composed: one for composed, one in self._named.items() if one}
        self._ordered = sorted(self._named)

    def of(self, name: str, title: str) -> list[str]:
        """The picture of a JSON file with its edited copies; none where its name does not decide.

        Args:
            name: Name of the JSON file.
            title: The picture's name in Google Photos, as the file says it.
        """
        base, number = normalised(PurePath(name).stem, "NFC"), ""
        if base.endswith(")") and (found := _NUMBER.fullmatch(base, max(0, base.rfind("(")))) is not None:
            base, number = base[: found.start()], found[0]
        head, dot, tail = base.rpartition(".")
        bases = [head, base] if head and dot and _SUPPLEMENT.startswith(f".{tail}") else [base]
        for one in bases:
            path = PurePath(one)
            wanted = [f"{path.stem}{edited}{number}{path.suffix}" for edited in ("", *_EDITED)]
            there = [self._named[each] for each in wanted if each in self._named]
            if there and all(_may_be(title, each, number) for each in there):
                return there
        if len(base) + len(number) < _LONGEST_NAME - 1:
            return []
        begin, cut = bases[0], list[str]()
        start = bisect_left(self._ordered, begin)
        alike = list(takewhile(lambda one: one.startswith(begin), self._ordered[start : start + _MOST_ALIKE]))
        if len(alike) < _MOST_ALIKE:
            cut = [one for one in alike if PurePath(one).stem.endswith(number) and _may_be(title, one, number)]
        plain = [one for one in cut if not any(edited in one for edited in _EDITED)]
        return [self._named[one] for one in cut] if len(plain) == 1 else []


def columns_of_takeout(content: Mapping[str, Any]) -> tuple[dict[str, Value], dict[str, Value]]:
    """What is said of a picture, and what counts only where the picture's file does not say it.

    Returns:
        The columns ``description``, ``people`` and ``favourite``; and ``taken``, ``year``, ``latitude``, ``longitude``.

    >>> columns_of_takeout({"title": "a.jpg", "photoTakenTime": {"timestamp": "1600000000"}, "favorited": True})
    ({'favourite': True}, {'taken': '2020-09-13T12:26:40+00:00', 'year': 2020})
    """
    said: dict[str, Value] = {}
    description = content.get("description")
    if isinstance(description, str) and (text := clean_text(unescaped(description), LONGEST_DESCRIPTION)):
        said["description"] = text
    people = content.get("people")
    named = [one.get("name") for one in people if isinstance(one, dict)] if isinstance(people, list) else []
    if names := distinct_tags(unescaped(one) for one in named if isinstance(one, str)):
        said["people"] = names
    if content.get("favorited") is True:
        said["favourite"] = True
    return said, {**_time(content.get("photoTakenTime")), **_place(content.get("geoData"))}


def _may_be(title: str, picture: str, number: str) -> bool:
    """Whether a picture of this name may be what the file calls by its title; Google replaces marks and cuts names."""
    stem = PurePath(picture).stem
    for edited in _EDITED:
        stem = stem.replace(edited, "")
    called, given = _letters(PurePath(unescaped(title[:_LONGEST_TITLE])).stem), _letters(stem.removesuffix(number))
    return not (called and given) or called.startswith(given) or given.startswith(called)


def _letters(name: str) -> str:
    return "".join(one for one in normalised(name, "NFC").casefold() if one.isalnum())


def _time(said: Any) -> dict[str, Value]:
    stamp = said.get("timestamp") if isinstance(said, dict) else None
    if isinstance(stamp, bool) or not isinstance(stamp, str | int) or len(str(stamp)) > 15:
        return {}
    with suppress(ValueError, OverflowError, OSError):
        taken = datetime.datetime.fromtimestamp(int(stamp), datetime.UTC)
        if int(stamp) != 0 and _FIRST_PHOTOGRAPH <= taken.year <= datetime.datetime.now(datetime.UTC).year + 1:
            return {"taken": taken.isoformat(), "year": taken.year}
    return {}


def _place(said: Any) -> dict[str, Value]:
    if not isinstance(said, dict):
        return {}
    latitude, longitude = said.get("latitude"), said.get("longitude")
    if not (isinstance(latitude, int | float) and isinstance(longitude, int | float)):
        return {}
    with suppress(OverflowError):  # of whole numbers without end
        north, east = round(float(latitude), 6), round(float(longitude), 6)
        # Google writes zeros where it knows no place.
        if math.isfinite(north) and math.isfinite(east) and abs(north) <= 90 and abs(east) <= 180 and (north or east):
            return {"latitude": north, "longitude": east}
    return {}
