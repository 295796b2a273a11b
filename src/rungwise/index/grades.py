"""What people said of hits: right, close or wrong, kept in ``grades.jsonl`` of an index, a line each.

A line ends with a checksum of the rest. One that was cut off or damaged is counted and listed, and the others count. A
person may change their mind: of the grades of one query and one picture, the last one counts. Grades of pictures that
are gone stay, for they may come back.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

from rungwise.core.errors import UserError
from rungwise.core.files import appending, explained, replacing
from rungwise.core.limits import readable
from rungwise.core.locks import GRADES_LOCK
from rungwise.core.reading import MissingFileError, opened, require_regular
from rungwise.data.collection import Issue
from rungwise.index import places
from rungwise.index.storage import GRADES

GradeName = Literal["right", "close", "wrong"]
_TAKEN_BACK = "none"
"""What is written where a person takes a grade back."""
DEGREES: dict[GradeName, float] = {"right": 1.0, "close": 0.5, "wrong": 0.0}
"""The degree of relevance that each grade stands for."""

MOST_BYTES = 32 << 20
"""Of the file: some hundred thousand grades."""
_LONGEST_QUERY, _LONGEST_ID = 10_000, 8_000
_LONGEST_LINE = 1 << 18
_SEAL = "seal"
_FIELDS = {"query", "id", "grade", "when"}


@dataclass(frozen=True)
class Grade:
    """What a person said of one picture for one query.

    Attributes:
        query: As it was typed.
        id: Of the picture.
        grade: How well it fits.
        when: In UTC, as ISO 8601 has it.

    Raises:
        UserError: If a part is empty, too long, or no grade.

    >>> Grade("a red boat", "boat-7", "close", "2024-05-01T12:00:00Z").degree
    0.5
    >>> Grade("a red boat", "boat-7", "nice", "")
    Traceback (most recent call last):
    rungwise.core.errors.UserError: grade 'nice': give one of right, close, wrong
    """

    query: str
    id: str
    grade: GradeName
    when: str

    def __post_init__(self) -> None:
        if self.grade not in DEGREES:
            raise UserError(f"grade {str(self.grade)[:40]!r}: give one of {', '.join(get_args(GradeName))}")
        if not self.query.strip():
            raise UserError("the query of a grade is empty; name the words that were searched for")
        for name, value, most in (("query", self.query, _LONGEST_QUERY), ("id", self.id, _LONGEST_ID)):
            if len(value) > most:
                raise UserError(f"the {name} of a grade has {len(value)} characters; at most {most} are kept")

    @property
    def degree(self) -> float:
        """Of relevance, 0..1."""
        return DEGREES[self.grade]


@dataclass(frozen=True)
class Grades:
    """The grades of an index.

    Attributes:
        kept: One for each query and picture, the oldest first.
        issues: Lines that are damaged, one each.

    >>> len(Grades(()))
    0
    """

    kept: tuple[Grade, ...]
    issues: tuple[Issue, ...] = ()

    def __iter__(self) -> Iterator[Grade]:
        """Over the grades that count."""
        return iter(self.kept)

    def __len__(self) -> int:
        """How many count."""
        return len(self.kept)

    def by_query(self) -> dict[str, dict[str, Grade]]:
        """Grades by the query, and by the picture's id.

        >>> Grades((Grade("boats", "a", "right", ""),)).by_query()["boats"]["a"].degree
        1.0
        """
        found: dict[str, dict[str, Grade]] = {}
        for one in self.kept:
            found.setdefault(one.query, {})[one.id] = one
        return found


def now() -> str:
    """The time of a grade that is given now."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_grades(folder: Path) -> Grades:
    """The grades of an index; none where nobody gave any.

    Args:
        folder: Of the index.

    Raises:
        UserError: If the file cannot be read.

    >>> len(read_grades(Path("nowhere")))
    0
    """
    with places.at_hand(folder, [GRADES]) as at_hand:
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


def take_back(folder: Path, query: str, item_id: str) -> None:
    """Let what was said of a picture for a query count no more; errors as :func:`add_grade`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> add_grade(folder, Grade("boats", "a", "right", now()))
    >>> take_back(folder, "boats", "a")
    >>> len(read_grades(folder))
    0
    """
    _append(folder, _sealed({"query": query, "id": item_id, "grade": _TAKEN_BACK, "when": now()}))


def _append(folder: Path, line: bytes) -> None:
    with (
        explained(folder / GRADES),
        places.writing_alone(folder, GRADES_LOCK),
        places.at_hand(folder, [GRADES], writing=True) as at_hand,
    ):
        path = at_hand / GRADES
        if _size(path) >= MOST_BYTES:
            _write(path, _read(path).kept)  # without those that no longer count
            if _size(path) >= MOST_BYTES:
                raise UserError(f"{path}: full of grades ({readable(MOST_BYTES)}); move the file away to begin another")
        cut_off = _is_cut_off(path)
        with appending(path) as file:
            file.write(b"\n" * cut_off + line)


def _write(path: Path, grades: Iterable[Grade]) -> None:
    with replacing(path) as draft:
        draft.write_bytes(b"".join(map(_line, grades)))


def _line(grade: Grade) -> bytes:
    return _sealed({"query": grade.query, "id": grade.id, "grade": grade.grade, "when": grade.when})


def _sealed(plain: dict[str, Any]) -> bytes:
    return json.dumps({**plain, _SEAL: _seal(plain)}).encode("ascii") + b"\n"


def _seal(plain: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode("ascii")).hexdigest()[:16]


def _size(path: Path) -> int:
    try:
        return require_regular(path)
    except MissingFileError:
        return 0


def _is_cut_off(path: Path) -> bool:
    """Whether a process died while it wrote the last line."""
    if not _size(path):
        return False
    with opened(path, None) as file:
        file.seek(-1, io.SEEK_END)
        return file.read(1) != b"\n"


def _read(path: Path) -> Grades:
    found: dict[tuple[str, str], Grade] = {}
    issues: list[Issue] = []
    try:
        with opened(path, "text_bytes") as file:
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), start=1):
                if not line.strip():
                    continue
                try:
                    key, grade = _parsed(line)
                except (ValueError, TypeError, RecursionError, UserError) as error:
                    issues.append(Issue("damaged grade", f"{path}, line {number}", " ".join(str(error).split())[:200]))
                else:
                    found.pop(key, None)
                    if grade is not None:
                        found[key] = grade
    except MissingFileError:
        return Grades(())
    return Grades(tuple(found.values()), tuple(issues))


def _parsed(line: bytes) -> tuple[tuple[str, str], Grade | None]:
    """Query and id, and what was said of them; None where it was taken back."""
    plain = json.loads(line)
    if not isinstance(plain, dict):
        raise TypeError("no JSON object")
    seal = plain.pop(_SEAL, None)
    if plain.keys() != _FIELDS or not all(isinstance(value, str) for value in plain.values()):
        raise TypeError("it does not say query, id, grade and when")
    if seal != _seal(plain):
        raise ValueError("its checksum is another")
    key = plain["query"], plain["id"]
    return key, None if plain["grade"] == _TAKEN_BACK else Grade(**plain)
