r"""Class labels of rows: an indicator of each class, numbers of classes, or words; and the names of the classes.

**Arrays**: (rows, classes) of zeros and ones, any number of ones in a row; or (rows,), (rows, 1) or (1, rows) numbers
of classes, NaN where a row has none. Classes count from 1, or from 0 where some row is of class 0.

**CSV**: the same with commas, semicolons or tabs between the columns; or one label a line, a word or a number, or
several with ``|`` or ``;`` between them. An empty line is a row without a label.

**Names**: ``categories.list`` or ``classes.txt`` beside, one a line. Without them the labels are the classes' numbers,
those of the columns of an indicator from 1.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, is_regular
from rungwise.data.files import delimiter_of, is_header, matrix, numbers_in, read_every_line, read_lines, read_numbers

NAMES_FILES = ("categories.list", "classes.txt")
"""Files of class names; the first present one counts."""

_HEADERS = frozenset({"label", "labels", "class", "classes", "category", "categories"})
_SEPARATOR = re.compile(r"[|;]")
_CLASS_NUMBER = re.compile(r"(\d{1,9})(?:\.0*)?", re.ASCII)
_MOST_CLASSES = 10**9


@dataclass(frozen=True)
class ClassLabels:
    """The labels of some rows as they stand in the data, before the classes have names.

    Attributes:
        place: File and array, for messages.
        kind: Whether a label is a column of an indicator (counted from 1), the number of a class, or a word.
        rows: (rows,) the labels of each row; any number, none included.
        classes: Number of columns of an indicator; 0 for the other kinds.
        lines: (rows,) the line of each row in a file of text, for messages; empty for an array.
    """

    place: str
    kind: Literal["columns", "numbers", "words"]
    rows: tuple[tuple[int | str, ...], ...]
    classes: int = 0
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class ClassNames:
    """The names of the classes in their order, and the file that gives them."""

    path: Path
    names: tuple[str, ...]


def labels_in_array(values: NDArray[Any], rows: int, place: str, lines: tuple[int, ...] = ()) -> ClassLabels:
    """The labels that an array gives.

    Args:
        values: (rows, classes) of zeros and ones, or (rows,), (rows, 1) or (1, rows) numbers of classes.
        rows: Number of rows that the labels must have.
        place: File and array, for messages.
        lines: The line of each row in a file of text, for messages.
    """
    if values.dtype.kind not in "biuf":
        raise UserError(f"{place}: labels of type {values.dtype}; save numbers, and words in a CSV")
    if not rows and not values.size:
        return ClassLabels(place, "numbers", ())
    if values.shape in ((rows,), (rows, 1), (1, rows)):
        return ClassLabels(place, "numbers", _numbers(values.reshape(-1), place, lines), lines=lines)
    if values.ndim != 2 or len(values) != rows:
        transposed = values.ndim == 2 and values.shape[1] == rows
        remedy = "transpose the labels" if transposed else "save the labels of each row, zeros for a row that has none"
        raise UserError(f"{place}: labels of shape {values.shape} for {rows} rows; {remedy}")
    return ClassLabels(place, "columns", _columns(values, place, lines), values.shape[1], lines)


def read_labels(path: Path, rows: int) -> ClassLabels:
    r"""The labels in a file, read by its extension.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "train_labels.csv"
    >>> _ = file.write_text("sky|sea\n\nsky\n")
    >>> read_labels(file, 3).rows
    (('sky', 'sea'), (), ('sky',))
    """
    if path.suffix.lower() != ".csv":
        return labels_in_array(read_numbers(path), rows, str(path))
    lines = read_every_line(path)
    has_header = len(lines) > 1 and _is_header(lines, rows)
    numbered = list(enumerate(lines, 1))[has_header:]
    while len(numbered) > rows and not numbered[-1][1].strip():
        numbered.pop()
    if _is_matrix([line for _, line in numbered]):
        return _matrix_labels(numbered, path, rows)
    if len(numbered) != rows:
        raise UserError(
            f"{path}: {len(numbered)} lines of labels for {rows} rows; write one line for each row, an empty one for a"
            " row without a label, and above them nothing but the header 'label'"
        )
    words = tuple(_words(line, f"{path}, line {number}") for number, line in numbered)
    found = [_CLASS_NUMBER.fullmatch(word) for row in words for word in row]
    places = tuple(number for number, _ in numbered)
    if found and all(found):
        classes = tuple(tuple(dict.fromkeys(int(word.partition(".")[0]) for word in row)) for row in words)
        return ClassLabels(str(path), "numbers", classes, lines=places)
    return ClassLabels(str(path), "words", words, lines=places)


def class_names(folder: Path) -> ClassNames | None:
    r"""The class names in the first of :data:`NAMES_FILES` in a folder; None if there is none."""
    path = next((folder / name for name in NAMES_FILES if is_regular(folder / name)), None)
    if path is None:
        return None
    lines: dict[str, int] = {}
    for number, line in read_lines(path):
        if (first := lines.setdefault(line.strip(), number)) != number:
            raise UserError(
                f"{path}, line {number}: {line.strip()!r} stands already in line {first}; give each class its own name"
            )
    return ClassNames(path, tuple(lines))


def named(parts: Sequence[ClassLabels], names: ClassNames | None) -> list[tuple[tuple[str, ...], ...]]:
    """The labels of a collection's parts as texts: names of classes, else their numbers, or the words themselves.

    Args:
        parts: The labels of each part.
        names: Names of the classes; None takes their numbers.

    Raises:
        UserError: If the parts give their classes in different kinds, or a class has no name.

    >>> columns = labels_in_array(np.array([[0, 1], [1, 1]]), 2, "L_tr")
    >>> named([columns], ClassNames(Path("classes.txt"), ("sky", "sea")))
    [(('sea',), ('sky', 'sea'))]
    >>> named([columns], None)
    [(('2',), ('1', '2'))]
    """
    filled = [part for part in parts if part.rows]
    for part in filled[1:]:
        if (part.kind, part.classes) != (filled[0].kind, filled[0].classes):
            raise UserError(
                f"{part.place}: labels are {_said(part)}, but those of {filled[0].place} are {_said(filled[0])}; save"
                " the labels of all parts alike"
            )
    if not filled or names is None or filled[0].kind == "words":
        return [tuple(tuple(map(str, row)) for row in part.rows) for part in parts]
    count = len(names.names)
    if filled[0].kind == "columns" and filled[0].classes != count:
        raise UserError(
            f"{filled[0].place}: labels of {filled[0].classes} classes, but {names.path.name} names {count}; correct"
            " one"
        )
    is_zero_based = any(0 in row for part in filled for row in part.rows)
    found = []
    for part in parts:
        rows = []
        for number, row in enumerate(part.rows):
            places = [int(label) - (not is_zero_based) for label in row]
            if beyond := [label for label, at in zip(row, places, strict=True) if at >= count]:
                base = "from 0, as class 0 occurs" if is_zero_based else "from 1"
                raise UserError(
                    f"{_row_at(part.place, number, part.lines)}: class {beyond[0]}, but {names.path.name} names"
                    f" {count}, counted {base}; correct one"
                )
            rows.append(tuple(names.names[at] for at in places))
        found.append(tuple(rows))
    return found


def _numbers(values: NDArray[Any], place: str, lines: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    values = values.astype(np.uint8) if values.dtype.kind == "b" else values
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
    with np.errstate(invalid="ignore"):
        odd = ~missing & ~((values >= 0) & (values < _MOST_CLASSES) & (values == np.floor(values)))
    if odd.any():
        row = int(np.flatnonzero(odd)[0])
        raise UserError(
            f"{_row_at(place, row, lines)}: {values[row]:g} is no number of a class; write whole numbers from 0 or 1,"
            " or an indicator of zeros and ones"
        )
    return tuple(() if lacks else (int(value),) for value, lacks in zip(values, missing, strict=True))


def _columns(values: NDArray[Any], place: str, lines: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    if (odd := (values != 0) & (values != 1)).any():
        row, column = (int(axis[0]) for axis in np.nonzero(odd))
        raise UserError(
            f"{_row_at(place, row, lines)}: {values[row, column]:g} in column {column + 1} of the labels; write 1 for"
            " each class of the row and 0 for the others"
        )
    owners, columns = np.nonzero(values)
    starts = np.searchsorted(owners, np.arange(len(values) + 1)).tolist()
    ones = (columns + 1).tolist()
    return tuple(tuple(ones[begin:end]) for begin, end in itertools.pairwise(starts))


def _is_header(lines: Sequence[str], rows: int) -> bool:
    """Whether the first line names the columns of a matrix, or announces labels."""
    if _is_matrix(lines[1:]):
        return is_header(lines[0], delimiter_of(lines[0]))
    return len(lines) > rows and lines[0].strip().strip('"').lower() in _HEADERS


def _is_matrix(lines: Sequence[str]) -> bool:
    """Whether lines are columns of numbers, judged from the last; semicolons may stand between labels as well."""
    filled = [line for line in lines if line.strip()]
    delimiter = delimiter_of(filled[-1]) if filled else ""
    if not delimiter or delimiter not in filled[-1] or numbers_in(filled[-1], delimiter) is None:
        return False
    return delimiter != ";" or len({line.count(delimiter) for line in filled}) == 1


def _matrix_labels(lines: Sequence[tuple[int, str]], path: Path, rows: int) -> ClassLabels:
    filled = [(number, line) for number, line in lines if line.strip()]
    values = matrix(filled, delimiter_of(filled[0][1]), path)
    if len(filled) < len(lines):
        whole = np.zeros((len(lines), values.shape[1]))
        whole[[bool(line.strip()) for _, line in lines]] = values
        values = whole
    return labels_in_array(values, rows, str(path), tuple(number for number, _ in lines))


def _words(line: str, where: str) -> tuple[str, ...]:
    line = line.strip()
    is_quoted = line.startswith('"')
    try:
        cells = next(csv.reader([line], strict=True), [""]) if is_quoted else [line]
    except csv.Error as error:
        raise UserError(f"{where}: {error}; correct the quotation marks") from error
    if len(cells) > 1 or (not is_quoted and re.search(r"[,\t]", line)):
        raise UserError(
            f"{where}: columns of words; write one label a line, or several with | between them, and one that holds a"
            " comma in quotes"
        )
    parts = (part.strip() for part in _SEPARATOR.split(cells[0]))
    return tuple(dict.fromkeys(part for part in parts if part))


def _row_at(place: str, row: int, lines: tuple[int, ...]) -> str:
    """Place of a row for messages; several numbers of one line have no lines of their own."""
    return f"{place}, line {lines[row]}" if row < len(lines) else f"{place}, row {row}"


def _said(labels: ClassLabels) -> str:
    return {
        "columns": f"an indicator of {labels.classes} classes",
        "numbers": "numbers of classes",
        "words": "words",
    }[labels.kind]
