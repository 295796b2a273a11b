"""Files of people's judgements of image-caption pairs: tables with a header, and Flickr8K's experts and crowd.

Each is known by its content, never by its name. A reader gives one judgement a line and knows no collection;
:class:`rungwise.relevance.human.HumanJudgements` finds the items that the ids name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from rungwise.core import UserError
from rungwise.data.files import read_lines
from rungwise.relevance.human._rows import grade_of, number_of, table_rows, text_of

JudgementRow = tuple[str, str, str, float | None]
"""Place in the file, image id, caption id, grade; None where nobody voted."""

GRADE_COLUMNS = ("grade", "agg_score", "score", "rating", "relevance")
"""Names of the column of grades; the first present one counts."""

_NUMBERS = 3
"""Number of cells after image and caption: three experts' grades, or the share of yes with both counts of votes."""


def read_graded(path: Path) -> Iterator[JudgementRow]:
    """The judgements of a file, known by its content: Flickr8K's experts or crowd, or a table with a header.

    Raises:
        UserError: If the file cannot be read, a column is missing, or a line has another form; the line is named.
    """
    match flickr8k_layout(path):
        case "flickr8k-expert":
            return flickr8k_experts(path)
        case "flickr8k-crowd":
            return flickr8k_crowd(path)
    return graded_table(path)


def flickr8k_layout(path: Path) -> Literal["flickr8k-expert", "flickr8k-crowd"] | None:
    r"""Which of Flickr8K's files this is, by its first line; None for another one."""
    _, first = next(read_lines(path))
    cells = first.split("\t")
    if len(cells) != 2 + _NUMBERS or any(number_of(cell) is None for cell in cells[2:]):
        return None
    # The crowd's share of votes is 1 only where nobody said no, so its three numbers are never all grades.
    grades = all(number_of(cell) in (1, 2, 3, 4) for cell in cells[2:])
    return "flickr8k-expert" if grades else "flickr8k-crowd"


def graded_table(path: Path) -> Iterator[JudgementRow]:
    r"""A CSV or TSV with the columns ``image``, ``caption`` and a grade, such as CxC's ``sits_*.csv``."""
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


def flickr8k_crowd(path: Path) -> Iterator[JudgementRow]:
    r"""Flickr8K's ``CrowdFlowerAnnotations.txt`` (Hodosh et al. 2013): the share of people who said yes, 0..1."""
    for where, image, caption, (_, yes, no) in flickr8k_rows(path):
        yield where, image, caption, _share(yes, no, where)


def flickr8k_experts(path: Path) -> Iterator[JudgementRow]:
    r"""Flickr8K's ``ExpertAnnotations.txt`` (Hodosh et al. 2013): the mean of three experts' grades, 1..4."""
    for where, image, caption, grades in flickr8k_rows(path):
        yield where, image, caption, sum(grades) / len(grades)


def flickr8k_rows(path: Path) -> Iterator[tuple[str, str, str, list[float]]]:
    r"""The lines of one of Flickr8K's files: place, image id, caption id, three numbers; others are a UserError."""
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
