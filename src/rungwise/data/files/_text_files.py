"""Reading text files of unknown origin: UTF-8, or what a byte order mark says."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from rungwise.core import LimitName, UserError, read_bytes

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def read_text(path: Path, limit: LimitName = "text_bytes") -> str:
    """The whole of a text file, line ends untouched, without its byte order mark.

    Raises:
        UserError: If the file is missing, empty, larger than its limit, no regular file, may not be read, or is not
            UTF-8 (or marked UTF-16).
    """
    data = read_bytes(path, limit)
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        offset = len(mark) + error.start
        line = data.count(b"\n", 0, offset) + 1
        raise UserError(
            f"{path}, line {line}: byte {data[offset]:#04x} at offset {offset} is not {encoding.upper()};"
            " save the file as UTF-8"
        ) from error
    if (zero := text.find("\0")) >= 0:
        line = text.count("\n", 0, zero) + 1
        raise UserError(f"{path}, line {line}: holds a zero byte, so it is no text; save the file as UTF-8")
    if not text.strip():
        raise UserError(f"{path}: the file is empty; re-download it or remove it")
    return text


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""The lines of a text file that are not blank, with their numbers from 1; errors as :func:`read_text`."""
    # Not str.splitlines, which also breaks lines at characters that may stand inside a caption.
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r")


def read_every_line(path: Path) -> list[str]:
    r"""The lines of a text file, blank ones included, so that line n belongs to row n; errors as :func:`read_text`."""
    return [line.removesuffix("\r") for line in read_text(path).removesuffix("\n").split("\n")]
