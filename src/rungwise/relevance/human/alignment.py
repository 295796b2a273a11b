"""Judgements of people placed in a collection: those of a judgement file, and the grades of searches of an index.

Ids say which picture and which caption; the hash of the text says whether it is still the one that was judged. A grade
of a search says which words were typed: where a caption of the collection has just these, it is a judgement of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core.disk import sealed_lines
from rungwise.core.disk.seals import digest_of
from rungwise.core.errors import UserError
from rungwise.core.untrusted_files import user_path
from rungwise.data.collection import ImageCaptions, Issue
from rungwise.relevance.human.ids import Finder
from rungwise.relevance.human.log import RIGHT_FROM, is_judgement_line, read_judgements

DEGREES = {"right": 1.0, "close": 0.5, "wrong": 0.0}
"""What the grades of a search stand for; ``rungwise.index.layout.feedback`` writes them."""
_SEARCH_RIGHT_FROM = 1.0

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Placed:
    """Judgements by positions in a collection.

    Attributes:
        images: (n,) position of each judgement's picture.
        captions: (n,) position of its caption.
        grades: (n,) float64: 1 to 4 of a judgement file, 0 to 1 of searches.
        graders: Who gave them, in alphabetical order; somebody without a name is not among them.
        right_from: The mean grade from which a pair counts as right, unless somebody says otherwise.
        issues: Judgements that were left out, and damaged lines.
        hashes: SHA-256 of each file they came from, by its name; with folders, where two files have one name.
    """

    images: Positions
    captions: Positions
    grades: NDArray[np.float64]
    graders: tuple[str, ...]
    right_from: float
    issues: tuple[Issue, ...]
    hashes: dict[str, str]

    def means(self) -> tuple[Positions, NDArray[np.float64]]:
        """(pairs, 2) positions (picture, caption), ascending, and (pairs,) the mean grade of each over its graders.

        >>> none: NDArray[np.int64] = np.zeros(3, np.int64)
        >>> placed = Placed(np.array([1, 0, 1]), none, np.array([4.0, 1.0, 3.0]), ("Ada", "Bo"), 3.0, (), {})
        >>> placed.means()
        (array([[0, 0],
               [1, 0]]), array([1. , 3.5]))
        """
        pairs, place = np.unique(np.stack([self.images, self.captions], axis=1), axis=0, return_inverse=True)
        place = place.reshape(-1)
        counts = np.bincount(place, minlength=len(pairs))
        sums = np.bincount(place, weights=self.grades, minlength=len(pairs))
        return pairs, sums / np.maximum(counts, 1)

    def right(self, right_from: float | None = None) -> Positions:
        """(pairs, 2) positions (picture, caption) of the pairs that people called right, ascending.

        Args:
            right_from: The mean grade from which a pair is right; that of the file's own scale unless given.
        """
        pairs, means = self.means()
        # Means of whole grades may miss a bound by the last bit.
        return pairs[means >= (self.right_from if right_from is None else right_from) - 1e-9]


def is_of_people(path: Path) -> bool:
    """Whether a file is one of judgements or of grades of searches, known by what it holds.

    Raises:
        UserError: If it cannot be read.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "grades.csv"
    >>> _ = file.write_text("image,caption,grade")
    >>> is_of_people(file)
    False
    """
    return sealed_lines.a_sealed_line(path) is not None


def refuse_other_captions(path: Path | str, other: Sequence[Issue], same: int, judgements: int) -> None:
    """Refuse a file of which most judgements are of captions with another text: it belongs to another collection.

    Args:
        path: The file.
        other: Judgements of captions with another text.
        same: How many are of captions with the same text.
        judgements: How many there are.

    Raises:
        UserError: If there are more of the former.

    >>> refuse_other_captions("judgements.jsonl", [Issue("", "it, line 1", "'a#0' had another text")], 0, 1)
    Traceback (most recent call last):
    rungwise.core.errors.UserError: judgements.jsonl: 1 of its 1 judgements are of other captions, the first at line...
    """
    if len(other) > same:
        raise UserError(
            f"{path}: {len(other)} of its {judgements} judgements are of other captions, the first at"
            f" {other[0].where.rpartition(', ')[2]} ({other[0].detail}); give the collection that was judged"
        )


def place_judgements(paths: Path | str | Sequence[Path | str], data: ImageCaptions) -> Placed:
    """The judgements of one file, or of several of one kind, placed in a collection.

    Judgements of pictures or captions that the collection lacks are listed, and so are those of captions that have
    another text by now. Grades of searches that are no caption are listed as well. Of one person and one pair, the
    latest judgement counts, in whichever file it is.

    Raises:
        UserError: If a file cannot be read or is of another kind, most of its judgements are of captions with another
            text, or none is of this collection.

    >>> import tempfile
    >>> from rungwise.relevance.human.log import Judgement, add_judgement, now
    >>> file = Path(tempfile.mkdtemp()) / "judgements.jsonl"
    >>> for who, grade in (("Ada", 4), ("Bo", 3)):
    ...     add_judgement(file, Judgement("b", "a#0", grade, who, now(), sealed_lines.hash_of_text("a dog")))
    >>> data = ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1]))
    >>> placed = place_judgements(file, data)
    >>> placed.right(), placed.grades, placed.graders
    (array([[1, 0]]), array([4., 3.]), ('Ada', 'Bo'))
    """
    several = [user_path(path) for path in ([paths] if isinstance(paths, Path | str) else paths)]
    found = {digest_of(path): (path, _place(path, data)) for path in several}  # a copy says nothing more
    parts = [part for _, part in found.values()]
    if len({part.right_from for part in parts}) > 1:
        raise UserError(
            f"{several[0]} and {several[-1]}: judgements of pairs (1 to 4) and grades of searches (0 to 1) have no"
            " common scale; give files of one kind"
        )
    kept = _latest([one for part in parts for one in part.given])
    names = _told_apart([path for path, _ in found.values()])
    return Placed(
        np.array([one.image for one in kept], np.int64),
        np.array([one.caption for one in kept], np.int64),
        np.array([one.grade for one in kept], np.float64),
        tuple(sorted({one.who for one in kept} - {""})),
        parts[0].right_from,
        tuple(issue for part in parts for issue in part.issues),
        dict(zip(names, found, strict=True)),
    )


@dataclass(frozen=True)
class _Given:
    """A judgement by positions: who gave it, empty for nobody in particular, and when."""

    image: int
    caption: int
    grade: float
    who: str
    when: str


@dataclass(frozen=True)
class _Part:
    """What one file holds, as :class:`Placed` has it."""

    given: tuple[_Given, ...]
    right_from: float
    issues: tuple[Issue, ...]


def _latest(given: Sequence[_Given]) -> list[_Given]:
    """Of one person and one pair the latest; all of those without a name, who may be several."""
    last: dict[tuple[int, int, str, int], _Given] = {}
    for number, one in enumerate(given):
        key = one.image, one.caption, one.who, -1 if one.who else number
        if key not in last or one.when >= last[key].when:
            last[key] = one
    return list(last.values())


def _told_apart(paths: Sequence[Path]) -> list[str]:
    """Names of files, with as many of their folders as tell all of them apart."""
    whole = [path.absolute().parts for path in paths]
    parts = next(
        (count for count in range(1, max(map(len, whole)) + 1) if len({one[-count:] for one in whole}) == len(whole)), 1
    )
    return ["/".join(one[-parts:]) for one in whole]


def _place(path: Path, data: ImageCaptions) -> _Part:
    line = sealed_lines.a_sealed_line(path)
    if line is None:
        raise UserError(f"{path}: is no file of judgements; give one that rungwise grade wrote, or an index's grades")
    return _of_pairs(path, data) if is_judgement_line(line) else _of_searches(path, data)


class _Gathered:
    """What is found of a file, one judgement after the other."""

    def __init__(self, path: Path, data: ImageCaptions) -> None:
        self.path, self.data = path, data
        self.rows: list[_Given] = []
        self.issues: list[Issue] = []
        self._image = Finder(data.image_ids)

    def image(self, image_id: str, line: int) -> int | None:
        """Position of a picture; None where it is unknown, which is listed."""
        found = self._image(image_id)
        if found is None:
            self.issue("judgement of an unknown image", line, repr(image_id))
        return found

    def issue(self, kind: str, line: int, detail: str) -> None:
        self.issues.append(Issue(kind, f"{self.path}, line {line}", detail))

    def part(self, right_from: float, damaged: Sequence[Issue]) -> _Part:
        issues = (*damaged, *self.issues)
        if not self.rows:
            first = f", such as {issues[0].detail} ({issues[0].where})" if issues else ""
            raise UserError(
                f"{self.path}: none of its {len(issues)} judgements is of {self.data.name}{first}; give the collection"
                " that was judged, with its ids"
            )
        return _Part(tuple(self.rows), right_from, issues)


def _of_pairs(path: Path, data: ImageCaptions) -> _Part:
    found, of_caption = _Gathered(path, data), Finder(data.caption_ids)
    judgements = read_judgements(path)
    other: list[Issue] = []
    for line, one in zip(judgements.lines, judgements, strict=True):
        image, caption = found.image(one.image, line), of_caption(one.caption)
        if image is None:
            continue
        if caption is None:
            found.issue("judgement of an unknown caption", line, repr(one.caption))
        elif sealed_lines.hash_of_text(data.captions[caption]) != one.text_hash:
            found.issue("judgement of another caption", line, f"{one.caption!r} had another text")
            other.append(found.issues[-1])
        else:
            assert one.grade is not None  # what was taken back is not kept
            found.rows.append(_Given(image, caption, float(one.grade), one.who, one.when))
    refuse_other_captions(path, other, len(found.rows), len(judgements))
    return found.part(RIGHT_FROM, judgements.issues)


def _of_searches(path: Path, data: ImageCaptions) -> _Part:
    found = _Gathered(path, data)
    captions: dict[str, list[int]] = {}
    for position, text in enumerate(data.captions):
        captions.setdefault(sealed_lines.hash_of_text(text.strip()), []).append(position)
    lines, damaged = sealed_lines.read_sealed(path, _search)
    last = {(query, item, who): (line, said, when) for line, (query, item, who, said, when) in lines}
    for (query, item, who), (line, said, when) in last.items():
        if said not in DEGREES:
            continue  # taken back
        own = captions.get(sealed_lines.hash_of_text(query))
        if own is None:
            found.issue("grade of a search that is no caption", line, repr(query[:80]))
        elif (image := found.image(item, line)) is not None:
            found.rows += [_Given(image, caption, DEGREES[said], who, when) for caption in own]
    issues = [Issue("damaged judgement", f"{path}, line {line}", detail) for line, detail in damaged]
    return found.part(_SEARCH_RIGHT_FROM, issues)


def _search(plain: dict[str, Any]) -> tuple[str, str, str, str, str]:
    """Query, picture, person, grade and time of a line of an index's grades."""
    query, item, who, said, when = (plain.get(name, "") for name in ("query", "id", "who", "grade", "when"))
    if not all(isinstance(one, str) for one in (query, item, who, said, when)) or not (query and item):
        raise TypeError("it does not say query, id and grade")
    if said not in (*DEGREES, "none"):
        raise ValueError("its grade is none of right, close and wrong")
    return query, item, who, said, when
