"""Ids in files of TREC's programs, whose columns stand between blanks, so that an id may have none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from rungwise.core import UserError
from rungwise.metrics import DIRECTIONS, Direction
from rungwise.relevance.human import Finder


def trec_ids(ids: Sequence[str], what: str) -> tuple[str, ...]:
    """Ids as a TREC file has them: unchanged, or with percent signs where an id has blanks.

    Args:
        ids: (items,) ids of a collection.
        what: What the items are, such as ``"image"``, for messages.

    Raises:
        UserError: If an id is empty, or two of them would be one.

    >>> trec_ids(["a.jpg", "a dog 50%.jpg"], "image")
    ('a.jpg', 'a%20dog%2050%25.jpg')
    >>> trec_ids(["a b", "a%20b"], "image")
    Traceback (most recent call last):
    rungwise.core.UserError: image ids 'a b' and 'a%20b' are both a%20b in a TREC file, which has no blanks in ids;...
    """
    written = tuple(map(_without_blanks, ids))
    first: dict[str, str] = {}
    for one, own in zip(ids, written, strict=True):
        if not own:
            raise UserError(f"{what} ids: one is empty, which a TREC file has no place for; give every {what} an id")
        if (other := first.setdefault(own, one)) != one:
            raise UserError(
                f"{what} ids {other!r} and {one!r} are both {own} in a TREC file, which has no blanks in ids; rename"
                " one of them"
            )
    return written


class WrittenIds:
    """Finds the position of an id of a file: as it is, as :func:`trec_ids` writes it, or by the name of a picture.

    >>> find = WrittenIds(("a dog.jpg", "b.jpg"))
    >>> find("a%20dog.jpg"), find("a dog.jpg"), find("b"), find("c")
    (0, 0, 1, None)
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self._places = {_without_blanks(one): place for place, one in enumerate(ids)}
        self._places |= {one: place for place, one in enumerate(ids)}  # an id as it is comes before a written one
        self._finder = Finder(tuple(ids))

    def __call__(self, one: str) -> int | None:
        """The position; None where no item matches, or several do."""
        place = self._places.get(one)
        return self._finder(one) if place is None else place


def file_of_direction(path: Path, way: Direction) -> Path:
    """The file of one direction beside the name that a person gave for both.

    >>> file_of_direction(Path("out/run.trec"), "t2i").as_posix()
    'out/run.t2i.trec'
    """
    return path.with_name(f"{path.stem}.{way}{path.suffix}")


def direction_in_name(path: Path | str) -> Direction | None:
    """The direction that the name of a file ends with, before its ending; None without one.

    >>> direction_in_name("run.t2i.trec"), direction_in_name("run.trec")
    ('t2i', None)
    """
    names = Path(path).name.split(".")[-2:]
    return next((way for way in DIRECTIONS if way in names), None)


def _without_blanks(one: str) -> str:
    if one.isprintable() and not any(letter.isspace() for letter in one):
        return one
    return "".join(
        quote(letter, safe="", errors="surrogatepass")
        if letter == "%" or letter.isspace() or not letter.isprintable()
        else letter
        for letter in one
    )
