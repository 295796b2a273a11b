"""Tables of separated texts (CSV, TSV) record by record, with cells of any length up to a limit.

Python's reader refuses cells of more than 131,072 characters unless a limit of the whole process is raised. Here that
limit stays as it is: a record with a longer cell is read by the rules of the same reader, and then that reader goes on.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from rungwise.core import UserError, limits, too_large

_TOO_LONG = "field larger than field limit"
_QUOTE = '"'
_LINE_END = re.compile(r"\r\n|\r|\n")


class QuotationError(UserError):
    """The quotation marks of a table are wrong."""

    __module__ = "rungwise.data.files"


def separated_records(path: Path, text: str, delimiter: str, *, quoted: bool = True) -> Iterator[tuple[int, list[str]]]:
    r"""Each record of a table with the line on which it begins; blank lines are left out.

    Args:
        path: Path of the file, for messages.
        text: Its content.
        delimiter: The character between cells.
        quoted: Cells may stand in quotation marks; otherwise a quotation mark is a character like others.

    Raises:
        QuotationError: If quotation marks are wrong.
        UserError: If a cell is longer than the limit ``line_bytes``.

    >>> list(separated_records(Path("a.csv"), 'image,caption\n\n"a.jpg","A ""big""\ndog"\n', ","))
    [(1, ['image', 'caption']), (3, ['a.jpg', 'A "big"\ndog'])]
    """
    buffer = io.StringIO(text, newline="")
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    reader = csv.reader(buffer, delimiter=delimiter, quoting=quoting, strict=True)
    before = 0
    checked = csv.field_size_limit() > limits().line_bytes
    while True:
        start, line = buffer.tell(), before + reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            where = f"{path}, line {line}"
            if not str(error).startswith(_TOO_LONG):
                raise QuotationError(f"{where}: {error}; correct the quotation marks from there on") from error
            cells, end = _record(text, start, delimiter, quoted, where)
            buffer.seek(end)
            before = line - 1 + len(_LINE_END.findall(text, start, end))
            reader = csv.reader(buffer, delimiter=delimiter, quoting=quoting, strict=True)
        if checked:
            for cell in cells:
                _check(cell, f"{path}, line {line}")
        if cells:
            yield line, cells


def _record(text: str, at: int, delimiter: str, quoted: bool, where: str) -> tuple[list[str], int]:
    """The record that begins at a place of a text, and where the next one begins."""
    plain = re.compile(f"[^{re.escape(delimiter)}\r\n]*")
    cells = []
    while True:
        if quoted and text.startswith(_QUOTE, at):
            cell, at = _quoted(text, at + 1, delimiter, where)
        else:
            found = plain.match(text, at)
            assert found is not None  # it matches nothing, too
            cell, at = found[0], found.end()
        _check(cell, where)
        cells.append(cell)
        if not text.startswith(delimiter, at):
            ended = _LINE_END.match(text, at)
            return cells, at if ended is None else ended.end()
        at += len(delimiter)


def _quoted(text: str, at: int, delimiter: str, where: str) -> tuple[str, int]:
    """The cell whose first character after its quotation mark is at a place, and the place after it."""
    parts = []
    size, most = 0, limits().line_bytes
    while (end := text.find(_QUOTE, at)) >= 0:
        parts.append(text[at:end])
        size += end - at + 1
        if size > most + 1:
            raise too_large(f"{where}, a cell", size, "line_bytes")
        at = end + 1
        if not text.startswith(_QUOTE, at):
            if at < len(text) and text[at] not in (delimiter, "\r", "\n"):
                raise QuotationError(
                    f"{where}: '{delimiter}' expected after '{_QUOTE}'; correct the quotation marks from there on"
                )
            return "".join(parts), at
        parts.append(_QUOTE)
        at += 1
    raise QuotationError(f"{where}: unexpected end of data; correct the quotation marks from there on")


def _check(cell: str, where: str) -> None:
    """Refuse a cell that is longer than the limit ``line_bytes``."""
    if len(cell) > limits().line_bytes // 4 and (size := len(cell.encode(errors="replace"))) > limits().line_bytes:
        raise too_large(f"{where}, a cell", size, "line_bytes")
