"""Schemas of the grading page's answers, from which the OpenAPI document follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rungwise.grading._agreement import GraderAgreement
from rungwise.grading._questions import Direction


@dataclass(frozen=True)
class GradingAbout:
    """What is graded, and how.

    Attributes:
        name: Name of the collection.
        file: Name of the table.
        out: Name of the file where judgements are kept.
        pairs: Number of pairs to grade.
        left_out: The first issues of the table, one line each.
        left_out_count: Number of issues in all.
        grades: Grades with their meanings, the best first.
        grader: Name that the command line gave; empty without one.
        next: A command that uses the judgements.
        version: Version of the pairs and their order; a page of another version grades nothing.
    """

    name: str
    file: str
    out: str
    pairs: int
    left_out: tuple[str, ...]
    left_out_count: int
    grades: tuple[tuple[int, str], ...]
    grader: str
    next: str
    version: str


@dataclass(frozen=True)
class Pair:
    """One pair.

    Attributes:
        place: Place of the pair, from 0.
        image: Id of the picture.
        caption: Id of the caption.
        direction: ``"i2t"`` where the picture was the query, ``"t2i"`` where the caption was; or empty.
        text: Text of the caption.
        text_hash: Hash to be sent back with the grade, so that nobody grades a text that was not read.
        own: The captions that were written for the picture.
        version: Version of the pairs and their order.
    """

    place: int
    image: str
    caption: str
    direction: Direction
    text: str
    text_hash: str
    own: tuple[str, ...]
    version: str


@dataclass(frozen=True)
class GradingProgress:
    """Progress of one grader.

    Attributes:
        who: Name of the grader.
        given: (pairs,) the grade of each pair, None where there is none yet.
        history: Places of the pairs that were graded, the last one last.
        counts: Number of times that each grade was given to these pairs, by its name.
        agreement: Agreement of all graders.
        summary: The agreement in words, one line each.
        version: Version of the pairs and their order.
    """

    who: str
    given: tuple[int | None, ...]
    history: tuple[int, ...]
    counts: Mapping[str, int]
    agreement: GraderAgreement
    summary: tuple[str, ...]
    version: str
