"""Opening the files of a collection in threads, one batch ahead of the model: content, metadata and thumbnails."""

from __future__ import annotations

import time
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, overload

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, digest_of_parts, is_settled
from rungwise.core.compute import cores, thread_pool
from rungwise.core.network import address_of, object_stamp
from rungwise.data import ImageCaptions, Issue, Value
from rungwise.data.files import PackedPicture, Picture
from rungwise.data.pictures import read_picture
from rungwise.index._items import Item, Items, ItemSource
from rungwise.index.update._image_metadata import facts_of_file, facts_of_picture
from rungwise.index.update._skipped import Skipped
from rungwise.index.update._thumbnails import Thumbnails

_FIRST = 64
"""Number of pictures of the first batch."""
MOST = 4096
"""Number of pictures of the largest batch."""
_SECONDS = 10.0
"""Seconds that a batch takes about, which is what a killed run has to do again."""

Stamp = tuple[int, int]
"""Size in bytes and time of a file in nanoseconds since 1970; (-1, 0) where there are none."""


@dataclass(frozen=True)
class FileToRead:
    """A picture whose file is to be opened: position in the collection, item, and source without content."""

    position: int
    item: Item
    source: ItemSource


class ToLookAt(Sequence[FileToRead]):
    """Pictures whose files are to be opened, in order; each is put together when it is asked for."""

    def __init__(self, items: Items) -> None:
        self._items = items
        self._positions = array("q")
        self._sources: list[ItemSource] = []

    def add(self, position: int, source: ItemSource) -> None:
        """Append a picture by its position in the collection and its source, still without content."""
        self._positions.append(position)
        self._sources.append(source)

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, at: int) -> FileToRead: ...

    @overload
    def __getitem__(self, at: slice) -> list[FileToRead]: ...

    def __getitem__(self, at: int | slice) -> FileToRead | list[FileToRead]:
        """One of them, or some."""
        if isinstance(at, slice):
            return [self[one] for one in range(len(self))[at]]
        position = self._positions[at]
        return FileToRead(position, self._items[position], self._sources[at])


@dataclass(frozen=True)
class FileContent:
    """Content of a picture's file.

    Attributes:
        position: Position in the collection.
        item: The picture in the collection.
        source: Source of the row, with content.
        stamp: Stamp of the file before it was opened.
        facts: Metadata of the file, by column.
        thumbnail: A small copy, where one is wanted and none is kept.
        encoded: The model's vector, (D,), or why there is none; None where the model was not asked yet.
        notes: What was left out of the metadata though the file says it.
    """

    position: int
    item: Item
    source: ItemSource
    stamp: Stamp
    facts: Mapping[str, Value]
    thumbnail: bytes | None = None
    encoded: NDArray[np.float32] | Issue | None = None
    notes: tuple[str, ...] = ()


class OpenedBatch(Protocol):
    """Opens the files of a collection."""

    def batches(self, asked: Sequence[FileToRead]) -> Iterator[list[FileContent | Skipped]]:
        """Batches of what the pictures hold, in their order."""
        ...


class FilesOfItems(Protocol):
    """Makes an :class:`OpenedBatch` of a collection."""

    def __call__(self, data: ImageCaptions, thumbnails: Thumbnails | None, known: Collection[str], /) -> OpenedBatch:
        """Prepare to open a collection's files; contents in ``known`` have vectors, None keeps no thumbnails."""
        ...


class FileReader:
    """Opens the files of a collection in threads of this process, and encodes nothing."""

    def __init__(
        self, data: ImageCaptions, thumbnails: Thumbnails | None = None, known: Collection[str] = frozenset()
    ) -> None:
        self._data = data
        self._thumbnails = thumbnails

    def batches(self, asked: Sequence[FileToRead]) -> Iterator[list[FileContent | Skipped]]:
        """Batches of what the pictures hold, in their order.

        While the caller works on a batch, threads open the files of the next one. Batches grow until the caller takes
        some seconds for one, so that the first one is done soon.
        """
        pool = thread_pool(cores())

        def begin(some: Sequence[FileToRead]) -> list[Future[FileContent | Skipped]]:
            return [pool.submit(self.look, one) for one in some]

        try:
            size = at = min(_FIRST, len(asked))
            ahead = begin(asked[:at])
            while ahead:
                jobs, ahead = ahead, begin(asked[at : at + size])
                at += len(ahead)
                found = [job.result() for job in jobs]
                started = time.perf_counter()
                yield found
                seconds = max(time.perf_counter() - started, 1e-3)
                size = max(_FIRST, min(int(len(found) * _SECONDS / seconds), 4 * len(found), MOST))
        finally:
            pool.shutdown(cancel_futures=True)

    def look(self, asked: FileToRead) -> FileContent | Skipped:
        """Read one picture, or its row of features."""
        if asked.item.path is not None:
            return look_at(asked, asked.item.path, self._thumbnails)
        assert self._data.features is not None
        row = np.ascontiguousarray(self._data.features[np.array([asked.position])])
        content, stamp = digest_of_parts([row]), (asked.source.size, asked.source.modified)
        source = replace(asked.source, content=content)
        return FileContent(asked.position, asked.item, source, stamp, {"hash": content})


def look_at(asked: FileToRead, picture: Picture, thumbnails: Thumbnails | None) -> FileContent | Skipped:
    """Read a picture's file: its content, metadata and, unless ``thumbnails`` is None or has it, a small copy."""
    item, source = asked.item, asked.source
    stamp = source.size, source.modified
    data = read_picture(picture)
    if isinstance(data, Issue):
        # Who may read it can change without the file, so that it is tried again.
        return Skipped(item.id, data, replace(source, size=-1))
    content = digest_of_parts([data])
    notes: list[str] = []
    facts = facts_of_file(picture, item.id, len(data), source.modified / 1e9, item.folder)
    facts |= facts_of_picture(data, notes.append)
    small = None
    if thumbnails is not None and not thumbnails.has(content):
        small = thumbnails.make(data)
    source = replace(source, content=content, size=source.size if is_settled(source.modified) else -1)
    return FileContent(asked.position, item, source, stamp, facts | {"hash": content}, small, notes=tuple(notes))


def file_of(picture: Picture | None) -> Path | None:
    """File on the disk in which a picture lies; None for a row of features."""
    return picture.file if isinstance(picture, PackedPicture) else picture


def stamp_of(picture: Picture | None, known: dict[Path, Stamp]) -> Stamp:
    """Size and time of a picture's file; (-1, 0) where there is none, as of a row of features (None).

    ``known`` collects stamps of larger files, each of which is asked for once.
    """
    file = file_of(picture)
    if file is None:
        return -1, 0
    if file not in known:
        try:
            if address := address_of(file):
                stamp = object_stamp(address)
            else:
                about = file.stat()
                stamp = about.st_size, about.st_mtime_ns
        except (OSError, UserError):
            stamp = -1, 0
        if not isinstance(picture, PackedPicture):
            return stamp
        known[file] = stamp
    return known[file]
