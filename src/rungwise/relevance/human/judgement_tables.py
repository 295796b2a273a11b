"""Files of people's judgements of image-caption pairs: tables with a header, and Flickr8K's experts and crowd.

Each is known by what it holds, never by its name. A reader gives one judgement a line and knows no collection; which
items the ids name is :class:`rungwise.relevance.human.source.HumanJudgements`'s to find.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from rungwise.core.errors import UserError
from rungwise.data.files.text_files import read_lines
from rungwise.relevance.human.rows import grade_of, number_of, table_rows, text_of

Judgement = tuple[str, str, str, float | None]
"""Place in the file, image id, caption id, grade; None where nobody voted."""

GRADE_COLUMNS = ("grade", "agg_score", "score", "rating", "relevance")
"""Names of the column of grades; the first present one counts."""

_NUMBERS = 3
"""After image and caption: three experts' grades, or the share of yes with both counts of votes."""


def read_graded(path: Path) -> Iterator[Judgement]:
    r"""The judgements of a file, known by what it holds: Flickr8K's experts or crowd, or a table with a header.

    Raises:
        UserError: If the file cannot be read, a column is missing, or a line has another form; the line is named.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "renamed.txt"
    >>> _ = file.write_text("a.jpg\ta.jpg#0\t4\t4\t3\n")
    >>> [(image, caption, round(grade, 2)) for _, image, caption, grade in read_graded(file)]
    [('a.jpg', 'a.jpg#0', 3.67)]
    """
    match flickr8k_layout(path):
        case "flickr8k-expert":
            return flickr8k_experts(path)
        case "flickr8k-crowd":
            return flickr8k_crowd(path)
    return graded_table(path)


def flickr8k_layout(path: Path) -> Literal["flickr8k-expert", "flickr8k-crowd"] | None:
    r"""Which of Flickr8K's files this is; None for another one.

    Raises:
        UserError: If the file cannot be read.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "renamed.txt"
    >>> _ = file.write_text("a.jpg\ta.jpg#0\t1\t3\t0\n")
    >>> flickr8k_layout(file)
    'flickr8k-crowd'
    """
    _, first = next(read_lines(path))
    cells = first.split("\t")
    if len(cells) != 2 + _NUMBERS or any(number_of(cell) is None for cell in cells[2:]):
        return None
    # The crowd's share of votes is 1 only where nobody said no, so its three numbers are never all grades.
    grades = all(number_of(cell) in (1, 2, 3, 4) for cell in cells[2:])
    return "flickr8k-expert" if grades else "flickr8k-crowd"


def graded_table(path: Path) -> Iterator[Judgement]:
    r"""A CSV or TSV with the columns ``image``, ``caption`` and a grade, as CxC's ``sits_*.csv`` is.

    Raises:
        UserError: As :func:`read_graded`.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "grades.csv"
    >>> _ = file.write_text("image,caption,grade\na.jpg,a.jpg#0,3.5\n")
    >>> [judgement[1:] for judgement in graded_table(file)]
    [('a.jpg', 'a.jpg#0', 3.5)]
    """
    table = table_rows(path)
    graded = next((name for name in GRADE_COLUMNS if name in table.columns), None)
    if graded is None or not {"image", "caption"} <= set(table.columns):
        raise UserError(
            f"{path}: needs the columns image, caption and grade (or agg_score, score, rating, relevance), found"
            f" {', '.join(table.columns) or 'none'}; rename or add them"
        )
    for where, cells in table.rows:
        image, caption = (text_of(cells, (name,), where) for name in ("image", "caption"))
        yield where, image, caption, grade_of(cells.get(graded), where)


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
    for where, image, caption, (_, yes, no) in flickr8k_rows(path):
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
    for where, image, caption, grades in flickr8k_rows(path):
        yield where, image, caption, sum(grades) / len(grades)


def flickr8k_rows(path: Path) -> Iterator[tuple[str, str, str, list[float]]]:
    r"""The lines of one of Flickr8K's files: place, image id, caption id, three numbers.

    Raises:
        UserError: If a line has another form.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "experts.txt"
    >>> _ = file.write_text("a.jpg\ta.jpg#0\t4\t3\t2\n")
    >>> [row[1:] for row in flickr8k_rows(file)]
    [('a.jpg', 'a.jpg#0', [4.0, 3.0, 2.0])]
    """
    for number, line in read_lines(path):
        where = f"{path}, line {number}"
        cells = line.split("\t")
        if len(cells) != 2 + _NUMBERS:
            raise UserError(f"{where}: not image, caption and {_NUMBERS} numbers between tabs; give the published file")
        yield where, cells[0], cells[1], [grade_of(cell, where) for cell in cells[2:]]


def _share(yes: float, no: float, where: str) -> float | None:
    if min(yes, no) < 0:
        raise UserError(f"{where}: {yes:g} yes and {no:g} no votes; correct the counts")
    return yes / (yes + no) if yes + no else None
