"""What the interface of the grading page answers, as typed data; the OpenAPI document follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rungwise.grading.agreement import GraderAgreement
from rungwise.grading.questions import Direction


@dataclass(frozen=True)
class GradingAbout:
    """What is graded, and how.

    Attributes:
        name: Of the collection.
        file: Name of the table.
        out: Name of the file where judgements are kept.
        pairs: How many people are asked about.
        left_out: What of the table is not asked, a line each; the first ones.
        left_out_count: How many in all.
        grades: What each grade means, the best first.
        grader: Whose name the command line gave; empty if it gave none.
        next: A command that uses the judgements.
        version: Of the pairs and their order; a page that was made for another one grades nothing.
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
        place: From 0.
        image: Id of the picture.
        caption: Id of the caption.
        direction: ``"i2t"`` where the picture was the query, ``"t2i"`` where the caption was; or empty.
        text: The caption.
        text_hash: To be sent back with the grade, so that nobody grades a text that was not read.
        own: The captions that were written for the picture.
        version: As of :class:`GradingAbout`.
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
    """How far one grader is.

    Attributes:
        who: The grader.
        given: (pairs,) the grade of each pair, None where there is none yet.
        history: Places of the pairs that were graded, the last one last.
        counts: How often each grade was given to these pairs, by its name.
        agreement: Of all graders.
        summary: The same in words, a line each.
        version: As of :class:`GradingAbout`.
    """

    who: str
    given: tuple[int | None, ...]
    history: tuple[int, ...]
    counts: Mapping[str, int]
    agreement: GraderAgreement
    summary: tuple[str, ...]
    version: str
