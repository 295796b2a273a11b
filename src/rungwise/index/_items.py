"""The pictures of an index: ids, files, captions, columns, and how they are written down."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, overload

import numpy as np

from rungwise.core import UserError
from rungwise.core.network import address_of
from rungwise.core.output import short_repr
from rungwise.data import CollectionSource, ImageCaptions, Value
from rungwise.data.files import PackedPicture, Picture, packed_picture
from rungwise.index.filters import OWN
from rungwise.index.stores import WORDS, Record

ITEM = f"{OWN}item"
"""Entry of a record with the fields of a picture that no filter sees."""
CAPTIONS = "captions"
"""Entry of a record that lists the captions, for filters."""
RESERVED = ("id", "path", "score", CAPTIONS)
"""Names that a column cannot have, because answers use them."""
FACTS = frozenset(
    {
        "file",
        "folder",
        "bytes",
        "modified",
        "taken",
        "year",
        "width",
        "height",
        "format",
        "latitude",
        "longitude",
        "camera_make",
        "camera_model",
        "lens",
        "hash",
    }
)
"""Columns that are known of a picture without its owner's help."""
_FACTS_WITH_WORDS = frozenset({"file", "folder"})


@dataclass(frozen=True, slots=True)
class ItemSource:
    """The file and the fields from which a row was made, by which an update sees whether the row is still valid.

    Attributes:
        size: Size of the picture's file in bytes; -1 where size and time do not tell whether it is the same.
        modified: Time of the file's last change, in nanoseconds since 1970.
        said: Digest of place, captions and columns in the collection.
        content: SHA-256 of the picture's file, or of its row of features; empty where it is not known.
    """

    size: int
    modified: int
    said: str
    content: str = ""

    def same_file(self, other: ItemSource) -> bool:
        """Whether size and time say that the file is the same."""
        return self.size >= 0 and (self.size, self.modified) == (other.size, other.modified)


@dataclass(frozen=True, slots=True)
class Item:
    """A picture of the collection.

    Attributes:
        id: The user's id.
        path: The picture's file, or its place in a larger one; None where the collection has features in place of
            files.
        captions: Captions of the picture, any number.
        caption_ids: Id of each caption.
        columns: The user's columns and what is known of the file, by name.
        fallbacks: Columns of the collection that count only where the file does not say the same.
        folder: Folder of the file within the collection; empty at its root, and where the file lies outside of it.
    """

    id: str
    path: Picture | None
    captions: tuple[str, ...] = ()
    caption_ids: tuple[str, ...] = ()
    columns: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    fallbacks: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    folder: str = ""

    __repr__ = short_repr


class Items(Sequence[Item]):
    """The items of a collection with its own columns, by position, with absolute paths.

    Each is put together when it is asked for: all of them at once would take more memory than the collection does.
    """

    def __init__(self, data: ImageCaptions) -> None:
        self._data = data
        self._captions = np.argsort(data.image_of_caption, kind="stable")
        counts = np.bincount(data.image_of_caption, minlength=len(data))
        self._starts = np.concatenate(([0], np.cumsum(counts)))
        self._roots = _roots(data.source)

    def __len__(self) -> int:
        return len(self._data)

    @overload
    def __getitem__(self, at: int) -> Item: ...

    @overload
    def __getitem__(self, at: slice) -> list[Item]: ...

    def __getitem__(self, at: int | slice) -> Item | list[Item]:
        """The item at a position, or those at some."""
        if isinstance(at, slice):
            return [self[one] for one in range(len(self))[at]]
        at = range(len(self))[at]
        data = self._data
        captions = self._captions[self._starts[at] : self._starts[at + 1]].tolist()
        columns, fallbacks = (
            {name: value for name, column in some.items() if (value := column[at]) is not None}
            for some in (data.columns, data.fallbacks)
        )
        path = _absolute(data.paths[at]) if data.paths else None
        return Item(
            id=data.image_ids[at],
            path=path,
            captions=tuple(data.captions[caption] for caption in captions),
            caption_ids=tuple(data.caption_ids[caption] for caption in captions),
            columns=columns,
            fallbacks=fallbacks,
            folder=_folder_within(self._roots, path),
        )


def _roots(source: CollectionSource | None) -> list[tuple[str, str]]:
    """Folders of a collection, with a slash at their ends, and the names that stand before the ids of each."""
    if source is None:
        return []
    names = source.names or ("",) * len(source.paths)
    roots = (_absolute(root).as_posix().rstrip("/") for root in source.folders)
    return [(f"{root}/", name) for root, name in zip(roots, names, strict=True)]


def _folder_within(roots: Sequence[tuple[str, str]], path: Picture | None) -> str:
    if path is None or isinstance(path, PackedPicture):
        return ""
    file = path.as_posix()
    for root, name in roots:
        if file.startswith(root):
            below = file[len(root) :].rpartition("/")[0]
            return f"{name}/{below}".strip("/")
    return ""


@overload
def _absolute(picture: Path) -> Path: ...


@overload
def _absolute(picture: Picture) -> Picture: ...


def _absolute(picture: Picture) -> Picture:
    file = picture.file if isinstance(picture, PackedPicture) else picture
    if file.is_absolute() and ".." not in file.parts:
        return picture
    if address_of(file) is None:
        # Links are not followed: people arrange pictures by them.
        file = Path(os.path.abspath(file))  # noqa: PTH100
    return replace(picture, file=file) if isinstance(picture, PackedPicture) else file


def ids_of_texts(items: Iterable[Item]) -> dict[str, tuple[str, ...]]:
    """Ids of the items that have each distinct caption, in order of first appearance.

    Equal texts share one vector and one place in a ranking; blank ones have none.

    >>> two = Item("a", Path("a.jpg"), ("a dog", "a pet")), Item("b", Path("b.jpg"), ("a dog", " "))
    >>> ids_of_texts(two)
    {'a dog': ('a', 'b'), 'a pet': ('a',)}
    """
    bearers: dict[str, dict[str, None]] = {}
    for item in items:
        for text in item.captions:
            if text.strip():
                bearers.setdefault(text, {})[item.id] = None
    return {text: tuple(ids) for text, ids in bearers.items()}


def item_digest(item: Item, folder: Path | None) -> str:
    """Digest of place, captions and columns of a picture; the same wherever pictures and index stand together.

    The names of what is known of a file belong to it: where a new version knows more, files are opened once again.

    >>> item = Item("a", Path("/photos/a.jpg"), ("a dog",), ("a#0",), {"year": 2021})
    >>> item_digest(item, Path("/photos/index")) == item_digest(replace(item, path=Path("/b/a.jpg")), Path("/b/index"))
    True
    """
    said = [
        *(_place_of(item, folder), item.captions, sorted(item.columns.items()), sorted(item.fallbacks.items())),
        *(sorted(FACTS), item.folder),
    ]
    return hashlib.blake2b(json.dumps(said).encode(), digest_size=12).hexdigest()


def source_of(record: Record) -> ItemSource | None:
    """Source of a row; None where the record has none, or a damaged one."""
    own = record.get(ITEM)
    said = own.get("source") if isinstance(own, dict) else None
    if not isinstance(said, list) or [type(one) for one in said] != [int, int, str, str]:
        return None
    return ItemSource(*said)


def to_record(item: Item, folder: Path | None, source: ItemSource | None = None) -> dict[str, Any]:
    """Record of an item for a store; its path is relative to the index folder if both lie in the same one.

    A picture in a larger file has the path of that file and its place in it. Columns and captions stand where filters
    see them, and all words together where full text finds them.

    Raises:
        UserError: If a column has a name that answers use.

    >>> item = Item("a", Path("/photos/dogs/a.jpg"), ("a dog",), ("a#0",), {"year": 2021})
    >>> record = to_record(item, Path("/photos/index"))
    >>> record["year"], record["captions"], record["rungwise.item"]
    (2021, ['a dog'], {'path': '../dogs/a.jpg', 'caption_ids': ['a#0']})
    """
    own = _place_of(item, folder)
    if source is not None:
        own["source"] = [source.size, source.modified, source.said, source.content]
    if odd := [name for name in item.columns if name in RESERVED or name.startswith(OWN)]:
        raise UserError(f"{item.id}: no column can be called {odd[0]!r}; call it {odd[0].removeprefix(OWN)}_")
    columns = {name: list(value) if isinstance(value, tuple) else value for name, value in item.columns.items()}
    return {**columns, CAPTIONS: list(item.captions), ITEM: own, WORDS: "\n".join(_words(item))}


def _place_of(item: Item, folder: Path | None) -> dict[str, Any]:
    path = item.path.file if isinstance(item.path, PackedPicture) else item.path
    stored = None if path is None else (_stored_folder(path.parent, _absolute_folder(folder)) / path.name).as_posix()
    own: dict[str, Any] = {"path": stored, "caption_ids": list(item.caption_ids)}
    return own | {"place": item.path.place} if isinstance(item.path, PackedPicture) else own


def stored_path(path: Path, folder: Path | None) -> Path:
    """An absolute path as an index in ``folder`` stores it: relative to that, if both lie in the same folder.

    >>> stored_path(Path("/photos/dogs"), Path("/photos.index")), stored_path(Path("/b/dogs"), Path("/a/index"))
    (PosixPath('../photos/dogs'), PosixPath('/b/dogs'))
    """
    folder = _absolute_folder(folder)
    inside = folder is not None and path.is_relative_to(folder.parent)
    return Path(os.path.relpath(path, folder)) if inside else path


@lru_cache(maxsize=1024)
def _stored_folder(parent: Path, folder: Path | None) -> Path:
    """The folder of a picture as an index in ``folder`` stores it; many pictures lie in one."""
    return stored_path(parent, folder)


def path_of_stored(path: str, folder: Path | None) -> Path:
    """The absolute path of one that :func:`stored_path` gave; an address stays as it is."""
    if address_of(path):
        return Path(path)
    return Path(os.path.normpath((_absolute_folder(folder) or Path.cwd()) / path))


def added_folder(folder: Path) -> Path:
    """Folder, beside that of an index (resolved), of the pictures that clients of a server added."""
    return folder.with_name(f"{folder.name}.added")


def _absolute_folder(folder: Path | None) -> Path | None:
    """Follow the links of a folder, which takes longer than all else; callers with many items do it once before."""
    return folder if folder is None or folder.is_absolute() else folder.resolve()


def _words(item: Item) -> Iterable[str]:
    """All words about a picture: captions, the user's columns, and the name of its file."""
    yield from item.captions
    captions = set(item.captions)
    for name, value in item.columns.items():
        if name in FACTS - _FACTS_WITH_WORDS:
            continue
        if isinstance(value, str) and value not in captions:
            yield Path(value).stem if name == "file" else value
        elif isinstance(value, tuple):
            yield from value


def from_record(item_id: str, record: Record, folder: Path | None) -> Item:
    """Item of a record that :func:`to_record` made; a KeyError or TypeError says that a field is missing or another."""
    own = record[ITEM]
    if not isinstance(own, dict):
        raise TypeError(f"{ITEM} is {own!r}")
    captions, ids = record[CAPTIONS], own["caption_ids"]
    if not isinstance(captions, list) or not isinstance(ids, list) or len(captions) != len(ids):
        raise TypeError(f"captions are {captions!r}")
    columns = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in record.items()
        if not name.startswith(OWN) and name != CAPTIONS
    }
    return Item(
        id=item_id,
        path=_place(own["path"], own.get("place"), folder),
        captions=tuple(map(str, captions)),
        caption_ids=tuple(map(str, ids)),
        columns=columns,
    )


def _place(path: object, place: object, folder: Path | None) -> Picture | None:
    if not (path is None or isinstance(path, str)) or "\0" in (path or ""):
        raise TypeError(f"the path is {path!r}")
    file = None if path is None else path_of_stored(path, folder)
    if not (place is None or (isinstance(place, dict) and file is not None)):
        raise TypeError(f"the place is {place!r}")
    return file if place is None or file is None else packed_picture(file, place)
