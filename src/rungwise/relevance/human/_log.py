"""The judgement file: people's grades of how well captions describe pictures, a line each.

Grades are those of Flickr8K's experts (Hodosh, Young, Hockenmaier 2013). A line says which picture and which caption,
the grade, who gave it and when, and the hash of the text that was read, so that a judgement is never taken for one of
another caption. It ends with a checksum of the rest: a line that was cut off or damaged is counted and listed, and the
others count. A person may change their mind: of one person's judgements of one pair, the last one counts.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, is_regular
from rungwise.core.disk import appending, explained, make_folder, sealed_lines
from rungwise.core.disk.locks import writing_alone
from rungwise.core.output import short_repr
from rungwise.data import Issue

GRADES: dict[int, str] = {
    4: "describes the picture without errors",
    3: "describes the picture with minor errors",
    2: "has something to do with the picture",
    1: "has nothing to do with the picture",
}
"""Meaning of each grade."""
RIGHT_FROM = 3.0
"""Default mean grade from which a pair counts as right."""

MOST_BYTES = 64 << 20
"""Largest size of the file: some two hundred thousand judgements."""
_LONGEST_ID, _LONGEST_NAME, _LONGEST_TIME = 8_000, 200, 40
_FIELDS = {"image", "caption", "grade", "who", "when", "text_hash"}
_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Judgement:
    """One person's judgement of one caption and one picture.

    Attributes:
        image: Id of the picture.
        caption: Id of the caption.
        grade: A key of :data:`GRADES`; None takes back the person's earlier judgement.
        who: The person's name.
        when: Time in UTC, in ISO 8601.
        text_hash: SHA-256 of the caption's text.
        direction: Which of both was the query, ``"i2t"`` the picture and ``"t2i"`` the caption; empty where unknown.
    """

    image: str
    caption: str
    grade: int | None
    who: str
    when: str
    text_hash: str
    direction: Literal["", "i2t", "t2i"] = ""

    def __post_init__(self) -> None:
        if self.grade is not None and (isinstance(self.grade, bool) or self.grade not in GRADES):
            raise UserError(f"grade {str(self.grade)[:40]}: give a whole number from {min(GRADES)} to {max(GRADES)}")
        for name, value, most in (
            ("image id", self.image, _LONGEST_ID),
            ("caption id", self.caption, _LONGEST_ID),
            ("grader's name", self.who, _LONGEST_NAME),
            ("time", self.when, _LONGEST_TIME),
        ):
            if not value.strip():
                raise UserError(f"the {name} of a judgement is empty; give one")
            if len(value) > most:
                raise UserError(f"the {name} of a judgement has {len(value)} characters; at most {most} are kept")
        if not _HASH.fullmatch(self.text_hash):
            raise UserError("the text_hash of a judgement is no SHA-256; give 64 hexadecimal digits")
        if self.direction not in ("", "i2t", "t2i"):
            raise UserError(f"the direction of a judgement is {str(self.direction)[:40]!r}; give i2t, t2i, or none")

    @property
    def pair(self) -> tuple[str, str]:
        """Ids of picture and caption."""
        return self.image, self.caption

    @property
    def meaning(self) -> str:
        """The grade in words; empty for a judgement that takes one back."""
        return "" if self.grade is None else GRADES[self.grade]

    def line(self) -> bytes:
        """The judgement as a line of the file, with its checksum."""
        plain = {
            "image": self.image,
            "caption": self.caption,
            "grade": self.grade,
            "who": self.who,
            "when": self.when,
            "text_hash": self.text_hash,
        }
        return sealed_lines.sealed({**plain, "direction": self.direction} if self.direction else plain)


@dataclass(frozen=True)
class Judgements:
    """The judgements that count.

    Attributes:
        kept: One judgement for each person and pair, the oldest first.
        lines: (kept,) line number of each in the file, from 1.
        issues: Damaged lines.
    """

    kept: tuple[Judgement, ...]
    lines: tuple[int, ...] = ()
    issues: tuple[Issue, ...] = ()

    __repr__ = short_repr

    def __iter__(self) -> Iterator[Judgement]:
        """Iterate over the judgements that count."""
        return iter(self.kept)

    def __len__(self) -> int:
        """Number of judgements that count."""
        return len(self.kept)

    @property
    def graders(self) -> tuple[str, ...]:
        """Names of the graders, in alphabetical order."""
        return tuple(sorted({one.who for one in self.kept}))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Ids of the judged pairs, by first appearance."""
        return tuple(dict.fromkeys(one.pair for one in self.kept))

    def by(self, who: str) -> dict[tuple[str, str], int]:
        """One person's grades by pair."""
        return {one.pair: one.grade for one in self.kept if one.who == who and one.grade is not None}

    def ratings(self, *, texts_apart: bool = False) -> NDArray[np.float64]:
        """(graders, pairs) grades, NaN where a grader did not grade a pair.

        With ``texts_apart``, a pair whose caption was changed in between counts as two, since its graders read
        different texts.
        """
        row = {who: at for at, who in enumerate(self.graders)}
        read = [(one.pair, one.text_hash if texts_apart else "") for one in self.kept]
        column = {key: at for at, key in enumerate(dict.fromkeys(read))}
        found = np.full((len(row), len(column)), math.nan)
        for one, key in zip(self.kept, read, strict=True):
            found[row[one.who], column[key]] = math.nan if one.grade is None else one.grade
        return found


def now() -> str:
    """The present time, as a judgement holds it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_judgements(path: Path) -> Judgements:
    """The judgements of a file; none where there is no file. A UserError if it cannot be read."""
    lines, damaged = sealed_lines.read_sealed(path, _parsed)
    found: dict[tuple[str, str, str], tuple[int, Judgement]] = {}
    for number, one in lines:
        key = one.image, one.caption, one.who
        found.pop(key, None)
        if one.grade is not None:
            found[key] = number, one
    issues = tuple(Issue("damaged judgement", f"{path}, line {number}", detail) for number, detail in damaged)
    return Judgements(tuple(one for _, one in found.values()), tuple(number for number, _ in found.values()), issues)


def add_judgement(path: Path, judgement: Judgement) -> None:
    """Add a judgement to the file; once this returns it survives a power cut. Other processes may add at the same time.

    Raises:
        UserError: If the file has :data:`MOST_BYTES` already or holds something else, or the place cannot be written.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "judgements.jsonl"
    >>> text = sealed_lines.hash_of_text("a dog")
    >>> for grade in (4, 3):
    ...     add_judgement(file, Judgement("a", "a#0", grade, "Ada", now(), text))
    >>> [one.grade for one in read_judgements(file)]
    [3]
    """
    with _adding_alone(path):
        sealed_lines.append(
            path, judgement.line(), MOST_BYTES, lambda: (one.line() for one in read_judgements(path)), "judgements"
        )


def require_place(path: Path) -> None:
    """Refuse a place where no judgement could be written, before anybody is asked; the file is not made."""
    with _adding_alone(path):
        if os.path.lexists(path):
            with appending(path):
                pass


def refuse_other_file(path: Path) -> None:
    """Refuse a file that holds something else than judgements, or cannot be read; a missing or empty one passes."""
    if not is_regular(path) or not path.stat().st_size:
        return
    line = sealed_lines.a_sealed_line(path)
    if line is None or not is_judgement_line(line):
        raise UserError(f"{path}: holds something else than judgements; name another file")


@contextmanager
def _adding_alone(path: Path) -> Iterator[None]:
    """Lock a judgement file against other writers; what cannot be written becomes an error of one line."""
    with explained(path):
        make_folder(path.parent)
        with writing_alone(path.parent, name=f".{path.name}.lock"):
            refuse_other_file(path)
            yield


def is_judgement_line(line: bytes) -> bool:
    """Whether a line belongs to a judgement file, be it damaged or not."""
    return sealed_lines.is_sealed(line) and b'"image"' in line and b'"caption"' in line


def _parsed(plain: dict[str, Any]) -> Judgement:
    known = {key: value for key, value in plain.items() if key not in ("grade", "direction")}
    if plain.keys() - {"direction"} != _FIELDS or not all(isinstance(value, str) for value in known.values()):
        raise TypeError("it does not say image, caption, grade, who, when and text_hash")
    if not isinstance(plain["grade"], int | None) or not isinstance(plain.get("direction", ""), str):
        raise TypeError("its grade is no whole number, or its direction no text")
    return Judgement(**plain)
