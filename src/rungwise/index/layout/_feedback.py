"""People's grades of hits (right, close or wrong), kept in ``grades.jsonl`` of an index, a line each.

A line ends with a checksum of the rest. One that was cut off or damaged is counted and listed, and the others count. A
person may change their mind: of one person's grades of one query and one picture, the last one counts. Grades of
pictures that are gone stay, for they may come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from rungwise.core import UserError, check_length
from rungwise.core.disk import explained, sealed_lines
from rungwise.core.disk.locks import GRADES_LOCK
from rungwise.core.output import short_repr
from rungwise.data import Issue
from rungwise.index.layout import location
from rungwise.index.layout.manifest import GRADES

GradeName = Literal["right", "close", "wrong"]
_TAKEN_BACK = "none"
"""Grade of a line by which a person takes a grade back."""
DEGREES: dict[GradeName, float] = {"right": 1.0, "close": 0.5, "wrong": 0.0}
"""Degree of relevance that each grade stands for."""

MOST_BYTES = 32 << 20
"""Bytes of the largest file: some hundred thousand grades."""
_LONGEST_ID, _LONGEST_NAME = 8_000, 200
_FIELDS = {"query", "id", "grade", "when", "who", "text_hash"}


@dataclass(frozen=True)
class Grade:
    """A person's grade of one picture for one query.

    Attributes:
        query: The query as it was typed.
        id: Id of the picture.
        grade: How well the picture fits.
        when: Time in UTC, as ISO 8601 has it.
        who: Name of the person; empty where nobody gave one.

    Raises:
        UserError: If the query is empty, a part is too long, or the grade is none of the three.

    >>> Grade("a red boat", "boat-7", "nice", "")
    Traceback (most recent call last):
    rungwise.core.UserError: grade 'nice': give one of right, close, wrong
    """

    query: str
    id: str
    grade: GradeName
    when: str
    who: str = ""

    def __post_init__(self) -> None:
        if self.grade not in DEGREES:
            raise UserError(f"grade {str(self.grade)[:40]!r}: give one of {', '.join(get_args(GradeName))}")
        if not self.query.strip():
            raise UserError("the query of a grade is empty; name the words that were searched for")
        check_length(self.query, "the query of a grade")
        for name, value, most in (
            ("id", self.id, _LONGEST_ID),
            ("grader's name", self.who, _LONGEST_NAME),
        ):
            if len(value) > most:
                raise UserError(f"the {name} of a grade has {len(value)} characters; at most {most} are kept")

    @property
    def degree(self) -> float:
        """Degree of relevance, 0..1."""
        return DEGREES[self.grade]


@dataclass(frozen=True)
class Grades:
    """The grades of an index.

    Attributes:
        kept: The grades that count, one for each query, picture and person, the oldest first.
        issues: One issue for each damaged line.
    """

    kept: tuple[Grade, ...]
    issues: tuple[Issue, ...] = ()

    __repr__ = short_repr

    def __iter__(self) -> Iterator[Grade]:
        return iter(self.kept)

    def __len__(self) -> int:
        return len(self.kept)

    def by_query(self) -> dict[str, dict[str, Grade]]:
        """Grades by query and picture's id; the newest where several people graded a picture."""
        found: dict[str, dict[str, Grade]] = {}
        for one in self.kept:
            found.setdefault(one.query, {})[one.id] = one
        return found


def now() -> str:
    """The time of a grade that is given now."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_grades(folder: Path) -> Grades:
    """The grades of an index folder; none where nobody gave any; an UnavailableError where the folder is gone."""
    location.require_there(folder, "grades")
    with location.at_hand(folder, [GRADES]) as at_hand:
        return _read(at_hand / GRADES)


def add_grade(folder: Path, grade: Grade) -> None:
    """Keep a grade; it survives a power cut once this returns. Others may add some at the same time.

    Raises:
        UserError: If the file has :data:`MOST_BYTES` already, or the place cannot be written.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for said in ("right", "wrong"):
    ...     add_grade(folder, Grade("boats", "a", said, now()))
    >>> [one.grade for one in read_grades(folder)]
    ['wrong']
    """
    _append(folder, _line(grade))


def take_back(folder: Path, query: str, item_id: str, who: str = "") -> None:
    """Write that a person's grade of a picture for a query no longer counts; raises as :func:`add_grade`."""
    _append(folder, _sealed(query, item_id, _TAKEN_BACK, now(), who))


def _append(folder: Path, line: bytes) -> None:
    location.require_there(folder, "grades")
    with (
        explained(folder / GRADES),
        location.writing_alone(folder, GRADES_LOCK),
        location.at_hand(folder, [GRADES], writing=True) as at_hand,
    ):
        path = at_hand / GRADES
        sealed_lines.append(path, line, MOST_BYTES, lambda: map(_line, _read(path).kept), "grades")


def _line(grade: Grade) -> bytes:
    return _sealed(grade.query, grade.id, grade.grade, grade.when, grade.who)


def _sealed(query: str, item_id: str, said: str, when: str, who: str) -> bytes:
    text_hash = sealed_lines.hash_of_text(query)
    plain = {"query": query, "id": item_id, "grade": said, "when": when, "who": who, "text_hash": text_hash}
    return sealed_lines.sealed(plain)


def _read(path: Path) -> Grades:
    lines, damaged = sealed_lines.read_sealed(path, _parsed)
    found: dict[tuple[str, str, str], Grade] = {}
    for _, (key, grade) in lines:
        found.pop(key, None)
        if grade is not None:
            found[key] = grade
    issues = (Issue("damaged grade", f"{path}, line {number}", detail) for number, detail in damaged)
    return Grades(tuple(found.values()), tuple(issues))


def _parsed(plain: dict[str, Any]) -> tuple[tuple[str, str, str], Grade | None]:
    """Query, id and name of the person; and the grade, None where it was taken back."""
    if plain.keys() != _FIELDS or not all(isinstance(value, str) for value in plain.values()):
        raise TypeError(f"it does not say {', '.join(sorted(_FIELDS))}")
    said = dict(plain)
    if said.pop("text_hash") != sealed_lines.hash_of_text(said["query"]):
        raise ValueError("its text_hash is that of another query")
    key = said["query"], said["id"], said["who"]
    return key, None if said["grade"] == _TAKEN_BACK else Grade(**said)
