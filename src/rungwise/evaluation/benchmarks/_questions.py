"""A benchmark as questions: a query, which is a text, a picture or both, its own candidates, and which are right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, digest_of_parts
from rungwise.core.output import short_repr
from rungwise.data import Issue
from rungwise.data.files import PackedPicture, Picture
from rungwise.data.layouts import PictureFolder, clean_caption, readable_name

Positions = NDArray[np.int32]

NONE = -1
"""Position of the text, or of the picture, of an item that has none."""

UNUSABLE, NO_PICTURE, UNREADABLE = "unusable entry", "missing picture", "unreadable picture"
"""Reasons why examples are left out."""


@dataclass(frozen=True)
class BenchmarkQuestion:
    """One query with its candidates.

    Attributes:
        example: Id of the example that it belongs to; an example may have several questions.
        group: Name of the data set, category or direction that it is counted under.
        query: Position of the query among the items.
        candidates: (candidates,) positions of items; questions of one gallery share the array.
        right: (right,) positions among the candidates; the first is the target.
        tags: Names under which the example is counted too.
    """

    example: str
    group: str
    query: int
    candidates: Positions
    right: Positions
    tags: tuple[str, ...] = ()

    __repr__ = short_repr


@dataclass(frozen=True)
class Benchmark:
    """Questions over texts and pictures, each of which is there once.

    Attributes:
        layout: Name of the layout.
        name: Name of the folder.
        texts: (texts,) texts.
        pictures: (pictures,) files of the pictures, or their places in larger files.
        picture_ids: (pictures,) names of the pictures below the folder.
        items: (items, 2) position of the text and of the picture of each item; -1 for none.
        questions: The questions, those of an example one after another.
        one_gallery: Whether all questions have one gallery, from which a wrong candidate may be missing.
        left_out: Number of examples that were left out, by reason.
        issues: What was skipped or doubted.
        warnings: What makes the numbers other than published ones, one line each.
    """

    layout: str
    name: str
    texts: tuple[str, ...]
    pictures: tuple[Picture, ...]
    picture_ids: tuple[str, ...]
    items: Positions
    questions: tuple[BenchmarkQuestion, ...]
    one_gallery: bool = False
    left_out: Mapping[str, int] = field(default_factory=dict)
    issues: tuple[Issue, ...] = ()
    warnings: tuple[str, ...] = ()

    __repr__ = short_repr

    @property
    def crosses(self) -> bool:
        """Whether every question is of pictures with texts, which a scorer of pairs can answer."""
        has_text, has_picture = (self.items != NONE).T
        return not (has_text & has_picture).any() and all(
            bool((has_text[one.candidates] != has_text[one.query]).all()) for one in self.questions
        )

    def content_hash(self) -> str:
        """Hash of texts, names of pictures and questions, not of pixels."""
        parts: list[str | bytes | NDArray[np.int64]] = [f"{self.layout}\0"]
        for names in (self.texts, self.picture_ids):
            parts += [f"{len(names)}\0", *(f"{name}\0" for name in names)]
        parts.append(np.asarray(self.items, "<i8"))
        for one in self.questions:
            said = "\0".join([one.example, one.group, str(one.query), str(len(one.candidates)), *one.tags])
            parts += [f"{said}\0", np.asarray(one.right, "<i8")]
            if not self.one_gallery or one is self.questions[0]:
                parts.append(np.asarray(one.candidates, "<i8"))
        return digest_of_parts(parts)

    def without_pictures(self, lost: Collection[int], issues: Sequence[Issue] = ()) -> Benchmark:
        """The benchmark without the examples that need one of these pictures.

        From a gallery that all questions share, a picture that is no right answer is taken away, and a warning says so.

        Raises:
            UserError: If no question is left.
        """
        if not lost:
            return self
        gone = np.isin(self.items[:, 1], list(lost))
        needed = [
            gone[one.query] or gone[one.candidates[one.right] if self.one_gallery else one.candidates].any()
            for one in self.questions
        ]
        dropped = {one.example for one, lacks in zip(self.questions, needed, strict=True) if lacks}
        kept = [one for one in self.questions if one.example not in dropped]
        warnings = self.warnings
        if self.one_gallery and kept:
            stays = ~gone[kept[0].candidates]
            if not stays.all():
                place = np.cumsum(stays) - 1
                gallery = kept[0].candidates[stays]
                kept = [replace(one, candidates=gallery, right=place[one.right].astype(np.int32)) for one in kept]
                warnings = (*warnings, f"{int((~stays).sum())} pictures of the gallery could not be read")
        if not kept:
            raise UserError(f"{self.name}: no question is left, because its pictures cannot be read; copy them again")
        return replace(
            self,
            questions=tuple(kept),
            left_out=dict(Counter(self.left_out) + Counter({UNREADABLE: len(dropped)})),
            issues=(*self.issues, *issues),
            warnings=warnings,
        )


class ScoreQuestion(Protocol):
    """What scores the candidates of a question."""

    def __call__(self, question: BenchmarkQuestion) -> NDArray[np.floating]:
        """(candidates,) scores; higher is more alike."""
        ...


class Gathered:
    """Collects texts, pictures and questions in the order in which a reader meets them."""

    def __init__(self, files: PictureFolder) -> None:
        self.files = files
        self.questions: list[BenchmarkQuestion] = []
        self.issues: list[Issue] = []
        self.left_out: Counter[str] = Counter()
        self.warnings: list[str] = []
        self._texts: dict[str, int] = {}
        self._pictures: dict[Picture, int] = {}
        self._ids: list[str] = []
        self._items: dict[tuple[int, int], int] = {}

    def refuse(self, reason: str, where: str, detail: str) -> None:
        """Note an example that is left out."""
        self.left_out[reason] += 1
        self.issues.append(Issue(reason, where, detail))

    def text(self, value: object) -> str:
        """A text of a file without control characters; a ValueError if it is none, or blank."""
        if not isinstance(value, str):
            raise ValueError(f"{type(value).__name__} where a text is needed")
        cleaned, odd = clean_caption(value)
        if not cleaned:
            raise ValueError(odd or "an empty text")
        return cleaned

    def named(self, name: object) -> Picture:
        """The picture that a file calls so; a LookupError if there is none, or no single one."""
        found = self.files.find(str(name))
        if len(found) != 1:
            known = f"{len(found)} pictures of this name" if found else "no picture of this name"
            raise LookupError(f"{name!s:.200}: {known}")
        return found[0]

    def item(self, text: str = "", picture: Picture | None = None) -> int:
        """Position of the item of a text, a picture or both; the same ones have one position."""
        pair = NONE, NONE
        if text:
            pair = self._texts.setdefault(text, len(self._texts)), NONE
        if picture is not None:
            if (place := self._pictures.get(picture)) is None:
                place = self._pictures[picture] = len(self._pictures)
                self._ids.append(self._id(picture))
            pair = pair[0], place
        return self._items.setdefault(pair, len(self._items))

    def _id(self, picture: Picture) -> str:
        root = self.files.root
        file, place = (picture.file, picture.place) if isinstance(picture, PackedPicture) else (picture, {})
        name = readable_name(file.relative_to(root) if file.is_relative_to(root) else file)
        return " ".join([name, *map(str, place.values())])

    def ask(
        self,
        example: str,
        group: str,
        query: int,
        candidates: Sequence[int] | Positions,
        right: Sequence[int],
        tags: Sequence[str] = (),
    ) -> None:
        """Add a question."""
        self.questions.append(
            BenchmarkQuestion(
                example,
                group,
                query,
                np.asarray(candidates, dtype=np.int32),
                np.asarray(right, dtype=np.int32),
                tuple(tags),
            )
        )

    def benchmark(self, layout: str, name: str, *, one_gallery: bool = False) -> Benchmark:
        """What was collected; a UserError if there is no question."""
        if not self.questions:
            if not self.issues:
                raise UserError(f"{name}: its files hold no questions; download them again")
            first = self.issues[0]
            counted = "; ".join(f"{count:,} with {reason}" for reason, count in self.left_out.items())
            raise UserError(
                f"{name}: none of its questions can be asked ({counted}); the first: {first.where}: {first.detail};"
                " put or link the pictures into the folder, or correct the file"
            )
        used = _used(self.questions, len(self._items))
        items, texts, pictures = list(self._items), list(self._texts), list(self._pictures)
        kept = [items[at] for at in np.flatnonzero(used).tolist()]
        own_texts, own_pictures = (sorted({pair[side] for pair in kept} - {NONE}) for side in (0, 1))
        of_text, of_picture = ({old: new for new, old in enumerate(own)} for own in (own_texts, own_pictures))
        place = (np.cumsum(used) - 1).astype(np.int32)
        placed: dict[int, Positions] = {}  # questions of one gallery go on sharing its array
        questions = tuple(
            replace(
                one,
                query=int(place[one.query]),
                candidates=placed.setdefault(id(one.candidates), place[one.candidates]),
            )
            for one in self.questions
        )
        return Benchmark(
            layout,
            name,
            tuple(texts[at] for at in own_texts),
            tuple(pictures[at] for at in own_pictures),
            tuple(self._ids[at] for at in own_pictures),
            np.array([(of_text.get(text, NONE), of_picture.get(one, NONE)) for text, one in kept], dtype=np.int32),
            questions,
            one_gallery,
            dict(self.left_out),
            (*self.issues, *self.files.issues),
            tuple(self.warnings),
        )


def _used(questions: Sequence[BenchmarkQuestion], items: int) -> NDArray[np.bool_]:
    """(items,) whether a question has the item; those of examples that were left out need not be encoded."""
    used = np.zeros(items, dtype=np.bool_)
    for one in questions:
        used[one.query] = True
        used[one.candidates] = True
    return used
