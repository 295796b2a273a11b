"""Favourites and saved searches, kept in ``favourites.jsonl`` of an index, a line each.

A line ends with a checksum of the rest. One that was cut off or damaged is counted and listed, and the others count.
Of lines about one picture, or about one name of a search, the last one counts. Favourites whose pictures are gone
stay, for they may come back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rungwise.core import UserError, check_length, read_bytes
from rungwise.core.disk import explained, sealed_lines, staging
from rungwise.core.disk.locks import GRADES_LOCK
from rungwise.core.network import address_of
from rungwise.core.output import short_repr
from rungwise.data import Issue
from rungwise.index.layout import location
from rungwise.index.layout._feedback import add_grade, now, read_grades, take_back
from rungwise.index.layout.manifest import GRADES

FAVOURITES = "favourites.jsonl"
"""Name of the file in the folder of an index."""
_WHAT = "favourites and saved searches"
MOST_BYTES = 32 << 20
MOST_FAVOURITES, MOST_SEARCHES = 10_000, 1_000
LONGEST_SEARCH_NAME = 100
_LONGEST_ID = 8_000
_OF_A_PICTURE = {"kind", "id", "kept", "when"}
_OF_A_SEARCH = {"kind", "name", "query", "where", "kept", "when"}


@dataclass(frozen=True)
class Favourite:
    """A picture that somebody marked.

    Attributes:
        id: Id of the picture.
        when: Time of the mark in UTC, as ISO 8601 has it.
    """

    id: str
    when: str

    def __post_init__(self) -> None:
        if not 0 < len(self.id) <= _LONGEST_ID:
            raise UserError(f"the id of a favourite has {len(self.id)} characters; give 1 to {_LONGEST_ID}")


@dataclass(frozen=True)
class SavedSearch:
    """A search under a name.

    Attributes:
        name: Name of the search, one for each.
        query: Query as it was typed; empty where a filter is all.
        where: Filter as it was typed; empty for none.
        when: Time at which it was saved, in UTC, as ISO 8601 has it.

    Raises:
        UserError: If the name has no visible character, there is neither a query nor a filter, or one is too long.

    >>> SavedSearch("beach", "", "", "")
    Traceback (most recent call last):
    rungwise.core.UserError: the search 'beach' has neither words nor a filter; give one of them
    """

    name: str
    query: str
    where: str
    when: str

    def __post_init__(self) -> None:
        if not self.name.strip() or len(self.name) > LONGEST_SEARCH_NAME:
            raise UserError(f"the name of a search has {len(self.name)} characters; give 1 to {LONGEST_SEARCH_NAME}")
        check_length(self.query, "the query of a saved search")
        check_length(self.where, "the filter of a saved search")
        if not (self.query.strip() or self.where.strip()):
            raise UserError(f"the search {self.name!r} has neither words nor a filter; give one of them")


@dataclass(frozen=True)
class Favourites:
    """What people keep beside an index.

    Attributes:
        pictures: Favourites, the oldest first.
        searches: Saved searches, the oldest first.
        issues: One issue for each damaged line.
    """

    pictures: tuple[Favourite, ...] = ()
    searches: tuple[SavedSearch, ...] = ()
    issues: tuple[Issue, ...] = ()

    __repr__ = short_repr


def why_not_kept(folder: Path | None) -> str:
    """Why favourites, saved searches and queries are not kept with an index; empty where they are.

    >>> why_not_kept(Path("photos.index"))
    ''
    """
    if folder is None:
        return "this index is in no folder"
    if address_of(folder):
        return "this index is not in a folder of this machine"
    return ""


def read_favourites(folder: Path | None) -> Favourites:
    """The favourites and saved searches of an index folder; none where nobody keeps any, or they are not kept.

    Raises:
        UnavailableError: If the folder is gone.
    """
    if folder is None or why_not_kept(folder):
        return Favourites()
    location.require_there(folder, _WHAT)
    return _read(folder / FAVOURITES)


def keep_favourite(folder: Path, item_id: str, *, kept: bool = True) -> None:
    """Mark a picture as a favourite, or take the mark away; it survives a power cut once this returns.

    Raises:
        UserError: If there are :data:`MOST_FAVOURITES` already, or the place cannot be written.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> keep_favourite(folder, "dog-7")
    >>> [one.id for one in read_favourites(folder).pictures]
    ['dog-7']
    """
    favourite = Favourite(item_id, now())
    with _writing(folder) as path:
        before = _read(path).pictures
        if kept and len(before) >= MOST_FAVOURITES and all(one.id != item_id for one in before):
            raise UserError(f"there are {MOST_FAVOURITES:,} favourites; remove some before you add others")
        _append(path, _line_of_picture(favourite, kept=kept))


def save_search(folder: Path, search: SavedSearch) -> None:
    """Save a search, in place of the one with its name; raises as :func:`keep_favourite`."""
    with _writing(folder) as path:
        before = _read(path).searches
        if len(before) >= MOST_SEARCHES and all(one.name != search.name for one in before):
            raise UserError(f"there are {MOST_SEARCHES:,} saved searches; remove some before you add others")
        _append(path, _line_of_search(search))


def forget_search(folder: Path, name: str) -> bool:
    """Remove a saved search; returns whether there was one."""
    with _writing(folder) as path:
        for one in _read(path).searches:
            if one.name == name:
                _append(path, _line_of_search(one, kept=False))
                return True
    return False


def carry_over(before: Path, after: Path) -> None:
    """Copy what people keep, asked and said of hits from an index to the one that takes its place."""
    if address_of(before):
        return
    for name in (FAVOURITES, GRADES, "queries.jsonl"):
        if os.path.lexists(before / name):
            with location.writing_alone(before, GRADES_LOCK):
                (after / name).write_bytes(read_bytes(before / name, "text_bytes"))


def move_marks(folder: Path, moved: Mapping[str, str]) -> None:
    """Let favourites and grades of pictures that were renamed or moved go with them.

    Args:
        folder: Folder of the index.
        moved: New ids of pictures by their old ones.
    """
    for mark in read_favourites(folder).pictures:
        if (new := moved.get(mark.id)) is not None:
            keep_favourite(folder, mark.id, kept=False)
            keep_favourite(folder, new)
    for grade in read_grades(folder):
        if (new := moved.get(grade.id)) is not None:
            add_grade(folder, replace(grade, id=new))
            take_back(folder, grade.query, grade.id, grade.who)


@contextmanager
def _writing(folder: Path) -> Iterator[Path]:
    """The file, for one who may append to it."""
    if reason := why_not_kept(folder):
        raise UserError(f"{_WHAT} are not kept: {reason}; serve a copy in a folder")
    location.require_there(folder, _WHAT)
    path = folder / FAVOURITES
    with explained(path), location.writing_alone(folder, GRADES_LOCK):
        staging.sweep(path)  # of a process that died while it wrote the file anew
        yield path


def _append(path: Path, line: bytes) -> None:
    def kept() -> Iterator[bytes]:
        found = _read(path)
        yield from map(_line_of_picture, found.pictures)
        yield from map(_line_of_search, found.searches)

    sealed_lines.append(path, line, MOST_BYTES, kept, _WHAT)


def _line_of_picture(one: Favourite, *, kept: bool = True) -> bytes:
    return sealed_lines.sealed({"kind": "picture", "id": one.id, "kept": kept, "when": one.when})


def _line_of_search(one: SavedSearch, *, kept: bool = True) -> bytes:
    return sealed_lines.sealed({"kind": "search", **asdict(one), "kept": kept})


def _read(path: Path) -> Favourites:
    lines, damaged = sealed_lines.read_sealed(path, _parsed)
    pictures: dict[str, Favourite] = {}
    searches: dict[str, SavedSearch] = {}
    for _, (one, kept) in lines:
        if isinstance(one, Favourite):
            before = pictures.pop(one.id, one)
            pictures |= {one.id: before} if kept else {}
        else:
            searches.pop(one.name, None)
            searches |= {one.name: one} if kept else {}
    issues = (Issue("damaged favourite", f"{path}, line {number}", detail) for number, detail in damaged)
    return Favourites(tuple(pictures.values()), tuple(searches.values()), tuple(issues))


def _parsed(plain: dict[str, Any]) -> tuple[Favourite | SavedSearch, bool]:
    """What a line is about, and whether it is kept from then on."""
    fields = {"picture": _OF_A_PICTURE, "search": _OF_A_SEARCH}.get(str(plain.get("kind")), set())
    texts = (value for name, value in plain.items() if name != "kept")
    if plain.keys() != fields or not isinstance(plain["kept"], bool) or not all(isinstance(one, str) for one in texts):
        raise TypeError("it is neither a favourite nor a saved search")
    said = {name: value for name, value in plain.items() if name not in ("kind", "kept")}
    return (Favourite if plain["kind"] == "picture" else SavedSearch)(**said), plain["kept"]
