"""XMP: what people and programs write about a picture, in its file or in a file beside it, read with care.

A packet of a stranger costs no more than its size: no document type is read, with which a small text could stand for a
large one or for a file, and what is nested too deeply is given up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from xml.parsers import expat

from rungwise.core.output import short_repr
from rungwise.data._columns import Value
from rungwise.data.layouts import clean_caption

MOST_TAGS = 64
"""Number of keywords that are taken from one picture."""
LONGEST_TAG = 100
"""Number of characters of the longest keyword that is taken."""
LONGEST_TITLE = 300
"""Number of characters of the longest title that is taken."""
LONGEST_DESCRIPTION = 5000
"""Number of characters of the longest description that is taken."""

_PACKET_BYTES = 1 << 20
_DEEPEST = 64
_MOST_ENTRIES = 1000
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns# "
_DC = "http://purl.org/dc/elements/1.1/ "
_LANGUAGE = "http://www.w3.org/XML/1998/namespace lang"
_TITLE, _DESCRIPTION, _SUBJECT = f"{_DC}title", f"{_DC}description", f"{_DC}subject"
_RATING = "http://ns.adobe.com/xap/1.0/ Rating"
_EXTENSION = "http://ns.adobe.com/photoshop/1.0/ SidecarForExtension"
_WANTED = frozenset({_TITLE, _DESCRIPTION, _SUBJECT, _RATING, _EXTENSION})


@dataclass(frozen=True)
class Xmp:
    """What a packet of XMP says.

    Attributes:
        title: Title, in the default language where there are several; empty where there is none.
        description: Description, likewise.
        rating: From 1 to 5, or -1 for a picture that was rejected; None where there is none.
        subjects: Keywords as they stand.
        extension: Ending of the file that a sidecar is for, such as ``"DNG"``; empty where it does not say.
        is_whole: Whether the packet was read to its end.
    """

    title: str = ""
    description: str = ""
    rating: float | None = None
    subjects: tuple[str, ...] = ()
    extension: str = ""
    is_whole: bool = True

    __repr__ = short_repr

    @property
    def columns(self) -> dict[str, Value]:
        """The columns ``title``, ``description``, ``rating`` and ``tags``, those that are known."""
        found: dict[str, Value | None] = {
            "title": self.title,
            "description": self.description,
            "rating": self.rating,
            "tags": distinct_tags(self.subjects),
        }
        return {name: value for name, value in found.items() if value}


def read_xmp(packet: bytes) -> Xmp:
    """What a packet says; nothing where it is damaged, too large, or no XMP. Never an error.

    >>> read_xmp(b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    ...     b' xmlns:xmp="http://ns.adobe.com/xap/1.0/"><rdf:Description xmp:Rating="4"/></rdf:RDF>').columns
    {'rating': 4}
    """
    if len(packet) > _PACKET_BYTES:
        return Xmp(is_whole=False)
    reading = _Properties()
    whole = False
    with suppress(expat.ExpatError, _UnwantedError, ValueError, LookupError):
        reading.parser.Parse(packet.strip(b"\0 \r\n\t"), True)
        whole = True
    found = reading.found
    return Xmp(
        title=clean_text(_in_default_language(found.get(_TITLE, [])), LONGEST_TITLE),
        description=clean_text(_in_default_language(found.get(_DESCRIPTION, [])), LONGEST_DESCRIPTION),
        rating=_rating([text for _, text in found.get(_RATING, [])]),
        subjects=tuple(text for _, text in found.get(_SUBJECT, [])),
        extension=clean_text(_in_default_language(found.get(_EXTENSION, [])), LONGEST_TAG),
        is_whole=whole,
    )


def clean_text(text: str, longest: int) -> str:
    r"""A text on one line, without control characters; empty where it is longer than ``longest``.

    >>> clean_text(" A beach.\r\n At noon. ", 100), clean_text("x" * 101, 100)
    ('A beach. At noon.', '')
    """
    clean = " ".join(clean_caption(text)[0].split())
    return clean if len(clean) <= longest else ""


def distinct_tags(said: Iterable[str]) -> tuple[str, ...]:
    """Keywords, each once whatever the case of its letters, in their order.

    >>> distinct_tags(["sea", " sun ", "Sea", ""])
    ('sea', 'sun')
    """
    seen: dict[str, str] = {}
    for tag in said:
        clean = clean_text(tag, LONGEST_TAG)
        if clean and clean.casefold() not in seen and len(seen) < MOST_TAGS:
            seen[clean.casefold()] = clean
    return tuple(seen.values())


def _in_default_language(said: list[tuple[str, str]]) -> str:
    return next((text for language, text in said if language == "x-default"), said[0][1] if said else "")


def _rating(said: list[str]) -> float | None:
    with suppress(ValueError):
        found = float(said[0].strip()) if said else 0.0
        # Zero is what programs write where nobody gave any.
        if math.isfinite(found) and -1 <= found <= 5 and found != 0:
            return int(found) if found.is_integer() else found
    return None


class _UnwantedError(Exception):
    """A document type, or something nested too deeply."""


class _Properties:
    """The wanted properties of the described picture itself, as a parser meets them: language and text of each."""

    def __init__(self) -> None:
        self.found: dict[str, list[tuple[str, str]]] = {}
        self._open: list[str] = []
        self._property = ""
        self._language = ""
        self._listed = False
        self._text: list[str] | None = None
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._more
        self.parser.StartDoctypeDeclHandler = self._refuse

    def _refuse(self, *_: object) -> None:
        raise _UnwantedError

    def _begin(self, name: str, attributes: Mapping[str, str]) -> None:
        # Histories and ingredients hold descriptions of other pictures, further below.
        within_description = self._open[-2:] == [f"{_RDF}RDF", f"{_RDF}Description"]
        self._open.append(name)
        if len(self._open) > _DEEPEST:
            raise _UnwantedError
        if self._open[-2:] == [f"{_RDF}RDF", f"{_RDF}Description"]:
            for one in _WANTED & attributes.keys():
                self._add(one, "", attributes[one])
        elif within_description and name in _WANTED:
            self._property, self._text, self._listed = name, [], False
        elif self._property and name == f"{_RDF}li":
            self._language, self._text, self._listed = attributes.get(_LANGUAGE, ""), [], True

    def _end(self, name: str) -> None:
        self._open.pop()
        if not self._property:
            return
        is_property = name == self._property
        if self._text is not None and (name == f"{_RDF}li" or (is_property and not self._listed)):
            self._add(self._property, self._language, "".join(self._text))
            self._language, self._text = "", None
        if is_property:
            self._property, self._text = "", None

    def _add(self, name: str, language: str, text: str) -> None:
        held = self.found.setdefault(name, [])
        if text.strip() and len(held) < _MOST_ENTRIES:
            held.append((language, text))

    def _more(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)
