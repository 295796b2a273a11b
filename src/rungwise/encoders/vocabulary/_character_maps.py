"""Checks of the character tables in SentencePiece vocabularies (``Precompiled``), before they are used.

A table is a trie of bytes, a double array of 32-bit units, and the texts that stand for what the trie finds. The
library follows the units unchecked: one that points beyond the table would end the program in the middle of a caption.
Here every unit is checked once.

The layout: four bytes with the length of the double array, the array, then texts that each end with a zero byte. Of a
unit, bit 31 says that it holds a value, bit 8 that a value stands at its offset, and bits 9 to 30 are the offset.
"""

from __future__ import annotations

import base64
import binascii

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError

LONGEST_TEXT = 64
"""Largest number of bytes that may stand for one character; the longest in SentencePiece's tables is 33."""
_VALUE = 1 << 31


def check_character_map(encoded: object, where: str) -> None:
    """Refuse a base64 table that is damaged, points beyond itself, or makes long texts of short ones."""
    reason = _unsound(encoded)
    if reason:
        raise UserError(f"{where}: precompiled_charsmap: {reason}; copy the folder anew")


def _unsound(encoded: object) -> str | None:
    if not isinstance(encoded, str):
        return "expected a text in base64"
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return "not base64"
    size = int.from_bytes(data[:4], "little")
    if len(data) < 5 or size < 4 or size % 4 or 4 + size > len(data):
        return "cut off"
    units = np.frombuffer(data, "<u4", count=size // 4, offset=4).astype(np.int64)
    texts = data[4 + size :]
    try:
        texts.decode("utf-8")
    except UnicodeDecodeError:
        return "its texts are no UTF-8"
    if max(map(len, texts.split(b"\0"))) > LONGEST_TEXT:
        return f"a text of more than {LONGEST_TEXT} bytes stands for one character"
    return _points_beyond(units, texts)


def _points_beyond(units: NDArray[np.int64], texts: bytes) -> str | None:
    """Reason if a step or a value leads outside. A unit that holds a value is never stepped from."""
    steps = np.flatnonzero(units < _VALUE)
    offset = (units[steps] >> 10) << ((units[steps] & (1 << 9)) >> 6)
    reached = steps ^ offset
    # The next byte of a text is put into the lowest eight bits.
    if (reached | 255).max(initial=0) >= len(units):
        return "a step leads beyond its end"
    values = units[reached[(units[steps] >> 8) & 1 == 1]] & (_VALUE - 1)
    if values.max(initial=0) >= len(texts):
        return "a value leads beyond its texts"
    inner = (np.frombuffer(texts, np.uint8)[values] & 0xC0) == 0x80
    return "a value leads into the middle of a character" if inner.any() else None
