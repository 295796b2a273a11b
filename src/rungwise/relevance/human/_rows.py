"""The rows of a file of judgements in any of its formats: CSV, TSV, JSON or JSON lines.

Columns are known by name; case and outer blanks do not matter. Cells are texts in a table and values in JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rungwise.core import UserError, parse_json
from rungwise.data.files import read_text, separated_records

Cells = Mapping[str, object]
"""Values by column, in lower case."""

LARGEST_GRADE = float(np.finfo(np.float32).max)
"""Largest absolute value of a grade: degrees are numbers of 32 bits."""

RATING = re.compile(r"(?:annotator|grade|judge|rater|rating|score)s?[ _-]?[0-9]{1,3}")
"""Name of a column that holds the ratings of one person, such as ``score_1``."""


@dataclass(frozen=True)
class JudgementRows:
    """A file's rows, read one after the other.

    Attributes:
        path: The file.
        columns: Names in lower case, in their order.
        rows: Place and cells of each row.
    """

    path: Path
    columns: tuple[str, ...]
    rows: Iterable[tuple[str, Cells]]


def rows_of(path: Path) -> JudgementRows:
    r"""The rows of a table with a header, of a JSON list of objects, or of JSON lines."""
    text = read_text(path)
    return _json(path, text) if text.lstrip()[:1] in ("[", "{") else table_rows(path, text)


def table_rows(path: Path, text: str | None = None) -> JudgementRows:
    r"""The rows of a CSV or TSV; the delimiter is the tab where the header has one.

    Args:
        path: The file.
        text: Content of the file, where it was read already.

    Raises:
        UserError: If the file cannot be read; while rows are read, if quotation marks are wrong.
    """
    text = read_text(path) if text is None else text
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    numbered = separated_records(path, text, delimiter)
    _, header = next(numbered, (0, []))
    columns = tuple(name.strip().lower() for name in header)

    def rows() -> Iterator[tuple[str, Cells]]:
        for line, cells in numbered:
            # A row that is too short has no last cells, and what a row has too much belongs to no column.
            yield f"{path}, line {line}", dict(zip(columns, cells, strict=False))

    return JudgementRows(path, columns, rows())


def _json(path: Path, text: str) -> JudgementRows:
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if text.lstrip().startswith("{") and (len(lines) > 1 and lines[1][1].lstrip().startswith("{")):
        found = [(f"{path}, line {number}", parse_json(line, f"{path}, line {number}")) for number, line in lines]
    else:
        content = parse_json(text, path)
        entries = content if isinstance(content, list) else [content]
        found = [(f"{path}, entry {number}", entry) for number, entry in enumerate(entries, start=1)]
    columns: dict[str, None] = {}
    rows: list[tuple[str, Cells]] = []
    for where, entry in found:
        if not isinstance(entry, dict):
            raise UserError(f"{where}: is no object of columns; write a list of objects, or an object a line")
        cells = {str(name).strip().lower(): value for name, value in entry.items()}
        columns.update(dict.fromkeys(cells))
        rows.append((where, cells))
    return JudgementRows(path, tuple(columns), rows)


def text_of(cells: Cells, columns: Sequence[str], where: str) -> str:
    """The text of the first of some columns that is there, without outer blanks; empty where there is none.

    Args:
        cells: Cells of the row.
        columns: Names that mean the same.
        where: Place of the row.
    """
    value = next((cells[name] for name in columns if cells.get(name) is not None), "")
    if not isinstance(value, str | int | float):
        raise UserError(f"{where}: {columns[0]} is no text but {str(value)[:40]!r}; write one text")
    return str(value).strip()


def texts_of(cells: Cells, column: str, where: str) -> tuple[str, ...]:
    """The texts of a list: in JSON, as JSON in a cell, or in columns such as ``reference_1``.

    Args:
        cells: Cells of the row.
        column: Name of the column in the plural, such as ``references``.
        where: Place of the row.

    >>> texts_of({"references": ["a dog", "dogs"]}, "references", "entry 1")
    ('a dog', 'dogs')
    >>> texts_of({"reference_1": "a dog", "reference_2": ""}, "references", "line 2")
    ('a dog',)
    """
    whole = cells.get(column)
    if isinstance(whole, str) and whole.lstrip().startswith("["):
        whole = parse_json(whole, where)
    if whole is None or isinstance(whole, str):
        single = re.compile(rf"{re.escape(column)}?(?:[ _-]?[0-9]{{1,3}})?")
        whole = [text for name, text in cells.items() if single.fullmatch(name) and text]
    if not isinstance(whole, list) or not all(isinstance(one, str) for one in whole):
        raise UserError(f"{where}: {column} is no list of texts; write a JSON list, or columns {column}_1, {column}_2")
    return tuple(stripped for one in whole if (stripped := one.strip()))


def ratings_of(cells: Cells, columns: Sequence[str], where: str) -> list[float]:
    """The ratings of a row: one in a column, a list in a column, or those of columns such as ``score_1``.

    Args:
        cells: Cells of the row.
        columns: Names of a column that holds all ratings; the first present one counts.
        where: Place of the row.

    Returns:
        At least one rating; NaN for an empty cell beside others, since columns may be persons.

    Raises:
        UserError: If a rating is no number, or there is none.

    >>> ratings_of({"scores": [4, 5]}, ("scores",), "entry 1")
    [4.0, 5.0]
    >>> ratings_of({"score_1": "3", "score_2": ""}, ("scores",), "line 2")
    [3.0, nan]
    """
    value = next((cells[name] for name in columns if name in cells), None)
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = parse_json(value, where)
    if value is None:
        single = {name: cell for name, cell in cells.items() if RATING.fullmatch(name)}
        values: list[object] = list(single.values())
        if single and all(cell in ("", None) for cell in values):
            values = []
    else:
        values = value if isinstance(value, list) else [value]
    if not values:
        raise UserError(f"{where}: has no rating; write one, or leave the row out")
    if len(values) == 1 and values[0] in ("", None):
        return [grade_of("", where)]
    return [float("nan") if one in ("", None) else grade_of(one, where) for one in values]


def grade_of(cell: object, where: str) -> float:
    """The number in a cell; a UserError that names ``where`` if it is not finite or beyond the range of degrees."""
    grade = number_of(cell)
    if grade is None:
        raise UserError(f"{where}: {repr('' if cell is None else cell)[:80]} is no grade; write a number")
    return grade


def number_of(cell: object) -> float | None:
    """The number in a cell, None where it is no finite number or beyond the range of degrees."""
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        return None
    try:
        number = float(cell)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) <= LARGEST_GRADE else None
