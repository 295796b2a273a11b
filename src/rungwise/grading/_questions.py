"""Questions for graders: pairs of a picture and a caption from a table, in an order that reveals no rank."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from rungwise.core import UserError
from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, Issue
from rungwise.data.layouts import Table, read_table
from rungwise.data.pictures import small_image
from rungwise.relevance.human import Finder

Direction = Literal["", "i2t", "t2i"]

_SIDE = 64
"""Side in pixels to which a picture is decoded to test whether it can be."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of texts before which tables put an apostrophe, so that no spreadsheet computes them."""


@dataclass(frozen=True)
class Question:
    """One pair to grade.

    Attributes:
        image: Position of the picture.
        caption: Position of the caption.
        direction: Which of the two was the query; empty where the table does not say.
    """

    image: int
    caption: int
    direction: Direction = ""


@dataclass(frozen=True)
class Questions:
    """All pairs to grade, in the order in which they are asked.

    Attributes:
        data: The collection that positions refer to.
        asked: Pairs to grade.
        issues: Rows of the table that were left out, and pictures that cannot be shown.

    >>> data = ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1]))
    >>> questions = Questions(data, (Question(0, 1),))
    >>> questions.ids(0), questions.find("a", "b#0"), questions.find("b", "b#0")
    (('a', 'b#0'), 0, None)
    """

    data: ImageCaptions
    asked: tuple[Question, ...]
    issues: tuple[Issue, ...] = ()

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.asked)

    def ids(self, place: int) -> tuple[str, str]:
        """Ids of the picture and the caption of one pair."""
        one = self.asked[place]
        return self.data.image_ids[one.image], self.data.caption_ids[one.caption]

    def text(self, place: int) -> str:
        """The caption of one pair."""
        return self.data.captions[self.asked[place].caption]

    def text_hash(self, place: int) -> str:
        """Hash by which a judgement says which text was read."""
        return hash_of_text(self.text(place))

    def find(self, image: str, caption: str) -> int | None:
        """The place of a pair; None for a pair that is not asked."""
        return self._place.get((image, caption))

    @cached_property
    def version(self) -> str:
        """Hash by which a page knows whether its places still name the same pairs with the same texts."""
        named = [(*self.ids(place), self.text(place)) for place in range(len(self))]
        return hash_of_text(json.dumps(named))[:16]

    @cached_property
    def _place(self) -> dict[tuple[str, str], int]:
        return {self.ids(place): place for place in range(len(self))}


def read_questions(path: Path, data: ImageCaptions, *, shuffle: bool = True, seed: int = 0) -> Questions:
    r"""Read the pairs of a table.

    Args:
        path: Table with columns ``image`` and ``caption`` (ids), such as the false negatives that ``rungwise evaluate``
            writes. A column ``direction`` says which of the two was the query, and a column ``text`` holds the caption,
            by which rows of another collection are found.
        data: Collection of the pairs.
        shuffle: Whether to shuffle the pairs, so that the order does not reveal the ranks.
        seed: Seed of the order; graders who are to be compared early need the same one.

    Raises:
        UserError: If the table cannot be read, columns are missing, or it names pairs of another collection.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "wrong.csv"
    >>> _ = file.write_text("direction,image,caption\nt2i,a,b#0\ni2t,a,c#0\n")
    >>> data = ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1]))
    >>> questions = read_questions(file, data)
    >>> questions.asked, questions.issues[0].kind
    ((Question(image=0, caption=1, direction='t2i'),), 'row of an unknown caption')
    """
    table = read_table(path)
    asked: dict[tuple[int, int], Question] = {}
    issues: list[Issue] = []
    for found in _found(table, data):
        if isinstance(found, Issue):
            issues.append(found)
        else:
            asked.setdefault((found.image, found.caption), found)
    if len(issues) > len(table.rows) / 2:
        raise UserError(
            f"{path}: {len(issues)} of its {len(table.rows)} rows are not of {data.name}, the first at"
            f" {issues[0].where.rpartition(', ')[2]} ({issues[0].kind}, {issues[0].detail}); give the collection that"
            " it was made from"
        )
    if not asked:
        raise UserError(f"{path}: names no pair of a picture and a caption; give a table with rows")
    every = list(asked.values())
    order: Sequence[int] = range(len(every))
    if shuffle:
        order = np.random.default_rng(seed).permutation(len(every)).tolist()
    return Questions(data, tuple(every[place] for place in order), tuple(issues))


def with_pictures(
    questions: Questions, limit: int | None = None, tell: Callable[[int], None] = lambda _: None
) -> Questions:
    """The pairs whose pictures can be shown; the others become issues.

    Args:
        questions: Pairs in the order in which they are asked.
        limit: Number of pairs to keep; None keeps all.
        tell: Callback with the number of pairs that were looked at.

    Raises:
        UserError: If the collection has no picture files, or none of them can be shown.

    >>> data = ImageCaptions(("a",), ("a dog",), np.array([0]), paths=(Path("nowhere.jpg"),))
    >>> with_pictures(Questions(data, (Question(0, 0),)))
    Traceback (most recent call last):
    rungwise.core.UserError: collection: none of the 1 pictures can be shown, such as a (nowhere.jpg: no such...
    """
    data = questions.data
    if not data.paths:
        raise UserError(f"{data.name}: has no picture files for people to look at; give the folder with pictures")
    shown: dict[int, Issue | None] = {}
    kept: list[Question] = []
    for looked_at, one in enumerate(questions.asked):
        if limit is not None and len(kept) == limit:
            break
        if one.image not in shown:
            shown[one.image] = _why_not(data, one.image)
        if shown[one.image] is None:
            kept.append(one)
        tell(looked_at + 1)
    missing = tuple(issue for issue in shown.values() if issue is not None)
    if not kept:
        first = f"{missing[0].where} ({missing[0].detail})"
        raise UserError(f"{data.name}: none of the {len(shown)} pictures can be shown, such as {first}")
    return replace(questions, asked=tuple(kept), issues=(*questions.issues, *missing))


def _found(table: Table, data: ImageCaptions) -> Iterator[Question | Issue]:
    """Each row as a question, or as the issue that prevents it."""
    image_column, caption_column = table.column(("image",)), table.column(("caption",))
    if image_column is None or caption_column is None:
        raise UserError(
            f"{table.path}: needs the columns image and caption, which hold ids, found"
            f" {', '.join(table.columns[:10]) or 'none'}; give the file that rungwise evaluate --false-negatives wrote"
        )
    direction_column, text_column = table.column(("direction",)), table.column(("text",))
    find_image, find_caption = Finder(data.image_ids), Finder(data.caption_ids)
    for place, cells in table.rows:
        where = f"{table.path}, {place}"
        if isinstance(cells, str):
            yield Issue("row that is no pair", where, cells)
            continue
        image, caption = _position(find_image, cells[image_column]), _position(find_caption, cells[caption_column])
        if image is None:
            yield Issue("row of an unknown picture", where, repr(_text(cells[image_column])))
        elif caption is None:
            yield Issue("row of an unknown caption", where, repr(_text(cells[caption_column])))
        elif text_column is not None and not _same(_text(cells.get(text_column)), data.captions[caption]):
            detail = f"{_text(cells[text_column])[:80]!r}, where the data have {data.captions[caption][:80]!r}"
            yield Issue("row of another caption", where, detail)
        else:
            said = _text(cells.get(direction_column)) if direction_column is not None else ""
            yield Question(image, caption, said if said in ("i2t", "t2i") else "")  # type: ignore[arg-type]


def _position(find: Finder, cell: object) -> int | None:
    text = _text(cell)
    found = find(text)
    return find(_bare(text)) if found is None else found


def _bare(text: str) -> str:
    """The text without the apostrophe that keeps a spreadsheet from computing it."""
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def _same(cell: str, text: str) -> bool:
    """Whether a cell holds a text, as tables write it; an empty cell matches any text."""
    written = " ".join(text.encode("utf-8", "replace").decode().split())
    return not cell.strip() or written in (" ".join(one.split()) for one in (cell, _bare(cell)))


def _text(cell: object) -> str:
    if cell is None:
        return ""
    # Whole numbers become floats where a column of a data frame had gaps.
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def _why_not(data: ImageCaptions, image: int) -> Issue | None:
    try:
        small_image(data.paths[image], _SIDE)
    except UserError as error:
        return Issue("picture that cannot be shown", data.image_ids[image], str(error))
    return None
