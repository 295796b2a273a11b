r"""Text of unknown origin for a terminal: control characters are shown, not sent.

File names and captions may hold escape codes that recolour, erase or retitle a terminal, marks that reverse the order
of letters, and halves of characters that no output can encode.
"""

from __future__ import annotations

import re

# C0 controls but tab and newline, DEL, C1 controls, marks of direction, line and paragraph separators, surrogates.
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""The text with all invisible characters written out; tabs and ends of lines stay.

    >>> printable("a\x1b[31m red \u202etxt.exe \udcff")
    'a\\x1b[31m red \\u202etxt.exe \\udcff'
    """
    return _ODD.sub(_shown, text)


def quoted(text: str, most: int = 80) -> str:
    r"""The text in quotes for a message about it, in one line; longer text is cut.

    >>> quoted("yaer"), quoted("a" * 9000, 10), quoted("a\nb\u202e")
    ("'yaer'", "'aaaaaaaaa…'", "'a\\nb\\u202e'")
    """
    return repr(text if len(text) <= most else f"{text[: most - 1]}…")


def line_of(error: BaseException) -> str:
    r"""The message of an error in one printable line, or its type where it has none.

    >>> line_of(ValueError("two\nlines")), line_of(MemoryError())
    ('two lines', 'MemoryError')
    """
    return printable(" ".join(str(error).split()) or type(error).__name__)


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
