r"""Text functions whose time is proportional to the length, whatever a stranger wrote.

Each function here guards a library function that takes the square of the length for some texts, or fails for some. The
rest of the package calls these and not the library's; a test holds that.
"""

from __future__ import annotations

import difflib
import html
import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

_MOST_MARKS = 30
"""Most marks on one letter that are put in order together, as in the Stream-Safe Text Format of UAX #15."""
_JOINER = "\u034f"
_SHORT = 1000
"""Length in characters of a text whose marks are quickly put in order."""
_LONGEST_NAME = 100
_NUMBER = re.compile("&#0*([0-9]+)")
_NO_CHARACTER = "1114112"


def normalised(text: str, form: Literal["NFC", "NFD", "NFKC", "NFKD"]) -> str:
    r"""A text in a normal form of Unicode.

    Marks on a letter are put in order, which takes the square of their number: in a long text a joiner separates marks
    of one letter beyond the thirtieth.

    >>> normalised("e\u0301", "NFC"), len(normalised("\u0301\u0327" * 1000, "NFD"))
    ('é', 2066)
    """
    return unicodedata.normalize(form, with_few_marks(text))


def with_few_marks(text: str) -> str:
    """The same text, with a joiner wherever more than thirty marks would stand in a row; short texts as they are."""
    if len(text) <= _SHORT or text.isascii():
        return text
    parts: list[str] = []
    marks = 0
    for letter in text:
        marks = marks + 1 if unicodedata.combining(letter) else 0
        if marks > _MOST_MARKS:
            parts.append(_JOINER)
            marks = 1
        parts.append(letter)
    return "".join(parts)


def unescaped(text: str) -> str:
    r"""A text with the characters that HTML writes as ``&amp;`` or ``&#233;``.

    Python refuses numbers of thousands of digits; no character has one of more than seven.

    >>> unescaped("bread &amp; butter &#0038; &#" + "9" * 5000 + ";")
    'bread & butter & \ufffd'
    """
    if "&" not in text:
        return text
    return html.unescape(_NUMBER.sub(lambda found: f"&#{found[1] if len(found[1]) < 8 else _NO_CHARACTER}", text))


def near_names(name: str, known: Iterable[str], most: int = 1, least: float = 0.6) -> list[str]:
    """Known names that are written nearly like ``name``, the nearest first; none where ``name`` is too long.

    Args:
        name: Name as somebody wrote it.
        known: Existing names; very long ones are never near.
        most: Highest number of names.
        least: Least similarity by :class:`difflib.SequenceMatcher`, 0..1; its time grows with the square of the
            lengths.

    >>> near_names("yaer", ["year", "title"]), near_names("year" * 1000, ["year" * 1000])
    (['year'], [])
    """
    if len(name) > _LONGEST_NAME:
        return []
    return difflib.get_close_matches(name, [one for one in known if len(one) <= 2 * _LONGEST_NAME], most, least)
