"""Files of people's judgements of image-caption pairs: tables with a header, and Flickr8K's experts and crowd.

Each is known by what it holds, never by its name. A reader gives one judgement a line and knows no collection; which
items the ids name is :class:`rungwise.relevance.human.Human`'s to find.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rungwise.core.errors import UserError
from rungwise.data.textfiles import read_lines, read_text

Judgement = tuple[str, str, str, float | None]
"""Place in the file, image id, caption id, grade; None where nobody voted."""

LARGEST_GRADE = float(np.finfo(np.float32).max)
"""Degrees are numbers of 32 bits."""

_GRADE_COLUMNS = ("grade", "agg_score", "score", "rating", "relevance")
_FLICKR8K_NUMBERS = 3
"""After image and caption: three experts' grades, or the share of yes with both counts of votes."""


def read_judgements(path: Path) -> Iterator[Judgement]:
    r"""The judgements of a file, known by what it holds: Flickr8K's experts or crowd, or a table with a header.

    Raises:
        UserError: If the file cannot be read, a column is missing, or a line has another form; the line is named.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "renamed.txt"
    >>> _ = file.write_text("a.jpg\ta.jpg#0\t4\t4\t3\n")
    >>> [(image, caption, round(grade, 2)) for _, image, caption, grade in read_judgements(file)]
    [('a.jpg', 'a.jpg#0', 3.67)]
    """
    _, first = next(read_lines(path))
    cells = first.split("\t")
    if len(cells) != 2 + _FLICKR8K_NUMBERS or any(_number(cell) is None for cell in cells[2:]):
        return graded_table(path)
    # The crowd's share of votes is 1 only where nobody said no, so its three numbers are never all grades.
    grades = all(_number(cell) in (1, 2, 3, 4) for cell in cells[2:])
    return flickr8k_experts(path) if grades else flickr8k_crowd(path)


def graded_table(path: Path) -> Iterator[Judgement]:
    r"""A CSV or TSV with the columns ``image``, ``caption`` and a grade, as CxC's ``sits_*.csv`` is.

    Raises:
        UserError: As :func:`read_judgements`.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "grades.csv"
    >>> _ = file.write_text("image,caption,grade\na.jpg,a.jpg#0,3.5\n")
    >>> [judgement[1:] for judgement in graded_table(file)]
    [('a.jpg', 'a.jpg#0', 3.5)]
    """
    text = read_text(path)
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        yield from _graded(path, reader)
    except csv.Error as error:
        # The reader's number is that of the last whole record.
        line = reader.line_num + 1
        raise UserError(f"{path}, line {line}: {error}; correct the quotation marks from there on") from error


def _graded(path: Path, reader: csv.DictReader[str]) -> Iterator[Judgement]:
    columns = {(name or "").strip().lower(): name for name in reader.fieldnames or ()}
    graded = next((columns[name] for name in _GRADE_COLUMNS if name in columns), None)
    if graded is None or not {"image", "caption"} <= columns.keys():
        raise UserError(
            f"{path}: needs the columns image, caption and grade (or agg_score, score, rating, relevance), found"
            f" {', '.join(columns) or 'none'}; rename or add them"
        )
    for cells in reader:
        where = f"{path}, line {reader.line_num}"
        image, caption = cells[columns["image"]], cells[columns["caption"]]
        yield where, (image or "").strip(), (caption or "").strip(), _grade(cells[graded], where)


def flickr8k_crowd(path: Path) -> Iterator[Judgement]:
    r"""Flickr8K's ``CrowdFlowerAnnotations.txt`` (Hodosh et al. 2013): the share of people who said yes, 0..1.

    Raises:
        UserError: If a line has another form or a negative count.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "crowd.txt"
    >>> _ = file.write_text("a.jpg\ta.jpg#1\t0.25\t1\t3\n")
    >>> [judgement[1:] for judgement in flickr8k_crowd(file)]
    [('a.jpg', 'a.jpg#1', 0.25)]
    """
    for where, image, caption, (_, yes, no) in _tabbed(path):
        yield where, image, caption, _share(yes, no, where)


def flickr8k_experts(path: Path) -> Iterator[Judgement]:
    r"""Flickr8K's ``ExpertAnnotations.txt`` (Hodosh et al. 2013): the mean of three experts' grades, 1..4.

    Raises:
        UserError: If a line has another form.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "experts.txt"
    >>> _ = file.write_text("a.jpg\ta.jpg#0\t4\t3\t2\n")
    >>> [judgement[1:] for judgement in flickr8k_experts(file)]
    [('a.jpg', 'a.jpg#0', 3.0)]
    """
    for where, image, caption, grades in _tabbed(path):
        yield where, image, caption, sum(grades) / len(grades)


def _tabbed(path: Path) -> Iterator[tuple[str, str, str, list[float]]]:
    for number, line in read_lines(path):
        where = f"{path}, line {number}"
        cells = line.split("\t")
        if len(cells) != 2 + _FLICKR8K_NUMBERS:
            raise UserError(
                f"{where}: not image, caption and {_FLICKR8K_NUMBERS} numbers between tabs; give the published file"
            )
        yield where, cells[0], cells[1], [_grade(cell, where) for cell in cells[2:]]


def _grade(cell: str | None, where: str) -> float:
    grade = _number(cell or "")
    if grade is None:
        raise UserError(f"{where}: {cell or ''!r} is no grade; write a number")
    return grade


def _number(cell: str) -> float | None:
    """None where a cell holds no finite number, or one beyond the range of degrees."""
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if abs(number) <= LARGEST_GRADE else None


def _share(yes: float, no: float, where: str) -> float | None:
    if min(yes, no) < 0:
        raise UserError(f"{where}: {yes:g} yes and {no:g} no votes; correct the counts")
    return yes / (yes + no) if yes + no else None
