r"""Files of one array of numbers: NumPy (``.npy``), CSV, or MATLAB (``.mat``) with the one array that is in it.

**CSV** has one row of the array a line, with commas, semicolons or tabs between the numbers and a point within them.
The first line may be a header: names, or the columns' numbers from 0 as pandas writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, opened_file
from rungwise.core.formats import read_only_array
from rungwise.data.files._feature_rows import map_array
from rungwise.data.files._text_files import read_lines

ENDINGS = (".npy", ".csv", ".mat")
"""Lower-case file extensions that :func:`read_numbers` reads."""

_DELIMITERS = ("\t", ";", ",")
_HEAD_BYTES = 1 << 16
_FEWEST_COUNTED = 3
"""Least number of columns for which a first line 0, 1, 2, ... is a header; two numbers may be a row as well."""


def read_numbers(path: Path) -> NDArray[Any]:
    r"""The array of a file, read by its extension; a NumPy file is mapped, the numbers of a CSV are float32.

    Raises:
        UserError: If the file cannot be read as its extension says, holds no array of numbers or several, or has
            another extension.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "train_images.csv"
    >>> _ = file.write_text("a;b\n1;2.5\n3;4\n")
    >>> read_numbers(file).tolist()
    [[1.0, 2.5], [3.0, 4.0]]
    """
    ending = path.suffix.lower()
    if ending == ".npy":
        return map_array(path)
    if ending == ".mat":
        return read_only_array(path)
    if ending != ".csv":
        raise UserError(f"{path}: numbers are not read from files of this ending; save them as {', '.join(ENDINGS)}")
    lines = list(read_lines(path))
    delimiter = delimiter_of(lines[0][1])
    rows = lines[1:] if is_header(lines[0][1], delimiter) else lines
    if not rows:
        raise UserError(f"{path}: a header without rows; write the file again")
    with np.errstate(over="ignore"):  # to infinity, which who reads these refuses
        return matrix(rows, delimiter, path).astype(np.float32)


def delimiter_of(line: str) -> str:
    r"""The delimiter between the numbers of a line: a tab, else a semicolon, else a comma."""
    return next((sign for sign in _DELIMITERS if sign in line), ",")


def is_header(line: str, delimiter: str) -> bool:
    """Whether the first line of a file names its columns."""
    cells = [cell.strip() for cell in line.split(delimiter)]
    counted = len(cells) >= _FEWEST_COUNTED and cells == [str(place) for place in range(len(cells))]
    return counted or all(cell and _number(cell) is None for cell in cells)


def numbers_in(line: str, delimiter: str) -> list[float] | None:
    """The numbers of a line; None if one of its cells is no number."""
    found = [_number(cell) for cell in line.split(delimiter)]
    return None if None in found else [number for number in found if number is not None]


def matrix(lines: Sequence[tuple[int, str]], delimiter: str, path: Path) -> NDArray[np.float64]:
    """(lines, numbers in each) the numbers of lines, which come with their line numbers for messages."""
    rows: list[list[float]] = []
    for number, line in lines:
        row = numbers_in(line, delimiter)
        if row is None:
            cells = line.split(delimiter)
            place, cell = next((at, one) for at, one in enumerate(cells, 1) if _number(one) is None)
            raise UserError(
                f"{path}, line {number}: {cell.strip()[:40]!r} in column {place} is no number; write numbers with a"
                " decimal point, and no column of names"
            )
        if rows and len(row) != len(rows[0]):
            raise UserError(
                f"{path}, line {number}: {len(row)} numbers, but line {lines[0][0]} has {len(rows[0])}; write one row"
                " of the array a line"
            )
        rows.append(row)
    return np.array(rows, np.float64)


def is_words(path: Path) -> bool:
    r"""Whether a CSV begins as a table of texts and not as an array of numbers; False if that cannot be seen."""
    try:
        with opened_file(path, None) as file:
            head = file.read(_HEAD_BYTES + 1)
    except (UserError, OSError):
        return False
    lines = head[:_HEAD_BYTES].decode("utf-8-sig", "replace").split("\n")
    # The last one may be cut off; if it is the first as well, it is longer than any header of a table of texts.
    whole = [line for line in (lines[:-1] if len(head) > _HEAD_BYTES else lines) if line.strip()]
    return bool(whole) and all(numbers_in(line, delimiter_of(line)) is None for line in whole)


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
