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

from rungwise.core import UserError, user_path
from rungwise.core.disk import digest_of, sealed_lines
from rungwise.data import ImageCaptions, Issue
from rungwise.relevance.human._ids import Finder
from rungwise.relevance.human._log import RIGHT_FROM, is_judgement_line, read_judgements

DEGREES = {"right": 1.0, "close": 0.5, "wrong": 0.0}
"""Degree of each grade of a search, by the words that ``rungwise.index.layout._feedback`` writes."""
_SEARCH_RIGHT_FROM = 1.0

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Placed:
    """Judgements by positions in a collection.

    Attributes:
        images: (n,) position of each judgement's picture.
        captions: (n,) position of each judgement's caption.
        grades: (n,) float64: 1 to 4 from a judgement file, 0 to 1 from searches.
        graders: Names of the graders in alphabetical order; graders without a name are not among them.
        right_from: Default mean grade from which a pair counts as right.
        issues: Judgements that were left out, and damaged lines.
        hashes: SHA-256 of each file, by its name; with folders where two files have one name.
    """

    images: Positions
    captions: Positions
    grades: NDArray[np.float64]
    graders: tuple[str, ...]
    right_from: float
    issues: tuple[Issue, ...]
    hashes: dict[str, str]

    def means(self) -> tuple[Positions, NDArray[np.float64]]:
        """(pairs, 2) ascending positions (picture, caption), and (pairs,) the mean grade of each over its graders."""
        pairs, place = np.unique(np.stack([self.images, self.captions], axis=1), axis=0, return_inverse=True)
        place = place.reshape(-1)
        counts = np.bincount(place, minlength=len(pairs))
        sums = np.bincount(place, weights=self.grades, minlength=len(pairs))
        return pairs, sums / np.maximum(counts, 1)

    def right(self, right_from: float | None = None) -> Positions:
        """(pairs, 2) ascending positions (picture, caption) of the pairs that people called right.

        ``right_from`` is the mean grade from which a pair is right; by default that of the file's own scale.
        """
        pairs, means = self.means()
        # Means of whole grades may miss a bound by the last bit.
        return pairs[means >= (self.right_from if right_from is None else right_from) - 1e-9]


def is_of_people(path: Path) -> bool:
    """Whether a file holds judgements or grades of searches, known by its content; a UserError if it cannot be read."""
    return sealed_lines.a_sealed_line(path) is not None


def refuse_other_captions(path: Path | str, other: Sequence[Issue], same: int, judgements: int) -> None:
    """Refuse a file of which most judgements are of captions with another text: it belongs to another collection.

    Args:
        path: The file, for the message.
        other: Judgements of captions with another text.
        same: Number of judgements of captions with the same text.
        judgements: Number of all judgements.

    Raises:
        UserError: If ``other`` has more judgements than ``same``.
    """
    if len(other) > same:
        raise UserError(
            f"{path}: {len(other)} of its {judgements} judgements are of other captions, the first at"
            f" {other[0].where.rpartition(', ')[2]} ({other[0].detail}); give the collection that was judged"
        )


def place_judgements(paths: Path | str | Sequence[Path | str], data: ImageCaptions) -> Placed:
    """Read the judgements of one file, or of several of one kind, and place them in a collection.

    These become issues: judgements of pictures or captions that the collection lacks, judgements of captions whose text
    has changed, and grades of searches that are no caption. Of one person and one pair, the latest judgement counts, in
    whichever file it is.

    Raises:
        UserError: If a file cannot be read or is of another kind, most of its judgements are of captions with another
            text, or none is of this collection.
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
    """Judgements of one file, with issues and scale as in :class:`Placed`."""

    given: tuple[_Given, ...]
    right_from: float
    issues: tuple[Issue, ...]


def _latest(given: Sequence[_Given]) -> list[_Given]:
    """The latest judgement of each person and pair; all judgements without a name, which may be of several people."""
    last: dict[tuple[int, int, str, int], _Given] = {}
    for number, one in enumerate(given):
        key = one.image, one.caption, one.who, -1 if one.who else number
        if key not in last or one.when >= last[key].when:
            last[key] = one
    return list(last.values())


def _told_apart(paths: Sequence[Path]) -> list[str]:
    """Names of files, with as many of their folders as it takes to make all names different."""
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
    """Judgements and issues of one file, collected line by line."""

    def __init__(self, path: Path, data: ImageCaptions) -> None:
        self.path, self.data = path, data
        self.rows: list[_Given] = []
        self.issues: list[Issue] = []
        self._image = Finder(data.image_ids)

    def image(self, image_id: str, line: int) -> int | None:
        """Position of a picture; an unknown one becomes an issue and None."""
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
