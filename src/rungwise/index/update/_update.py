"""Bringing the stores of an index up to date with a collection: what changed is found by content, batch by batch.

A file whose size and time are those that were noted is not opened. Of others the content decides, by its SHA-256: only
content that no row has goes through the model. Every batch is whole in both stores before the next one begins, so that
a process which dies leaves an index of all that was acknowledged, and the next run goes on from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rungwise.core.network import address_of
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, Issue
from rungwise.data.pictures import MISSING
from rungwise.index._items import Item, Items, ItemSource, added_folder, from_record, item_digest, source_of, to_record
from rungwise.index.stores import Store
from rungwise.index.update._encoding import Progress, encoded_texts, require_finite, results_of
from rungwise.index.update._file_reader import FileContent, FileReader, FilesOfItems, ToLookAt, file_of, stamp_of
from rungwise.index.update._removals import is_away, is_empty, why_withheld
from rungwise.index.update._skipped import Skipped
from rungwise.index.update._thumbnails import Thumbnails

if TYPE_CHECKING:
    from rungwise.models import IndexEncoder

_IDS_AT_ONCE = 4096

Vector = NDArray[np.float32]
Stored = Callable[[Sequence[str]], None]
"""Called with the ids of the rows of a batch once they are in the stores and survive the end of the process."""


@dataclass(frozen=True)
class Changes:
    """Counts of what an update did, in pictures.

    Attributes:
        added: Pictures that are new in the index.
        changed: Pictures whose content, captions or columns are others than before.
        removed: Pictures that are no longer in the collection, or whose file is no picture any more.
        unchanged: The other pictures of the index.
        withheld: Those among them that are gone like the removed ones, but stay for the reason that ``why`` gives.
        encoded: Pictures that went through the model.
        issues: One issue for each picture of the collection that cannot be read, also from earlier runs.
        why: Why pictures were withheld from removal.
        notes: One issue for each kind of metadata that was left out, of the files that were opened.

    >>> str(Changes(added=2, changed=0, removed=1, unchanged=40))
    '2 added, 0 changed, 1 removed, 40 unchanged'
    """

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    encoded: int = 0
    issues: tuple[Issue, ...] = ()
    withheld: int = 0
    why: str = ""
    notes: tuple[Issue, ...] = ()

    __repr__ = short_repr

    def __str__(self) -> str:
        return f"{self.added} added, {self.changed} changed, {self.removed} removed, {self.unchanged} unchanged"

    def withheld_line(self) -> str:
        """One line about pictures that are gone and stay in the index."""
        return f"{self.withheld} pictures are gone and stay in the index: {self.why}; --allow-removals removes them"

    def __bool__(self) -> bool:
        """Whether pictures were added, changed or removed."""
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True)
class Target:
    """The stores and folder that an update writes.

    Attributes:
        pictures: Store with a row for each picture.
        captions: Store with a row for each distinct caption.
        folder: Folder of the index, to which paths of pictures are relative where they can be.
        writing: Context of every change, within which nobody else changes the index.
        thumbnails: Store of small copies; None keeps none.
    """

    pictures: Store
    captions: Store
    folder: Path | None
    writing: Callable[[], AbstractContextManager[None]]
    thumbnails: Thumbnails | None = None


class Update:
    """One update of the stores of an index.

    Args:
        target: Stores and folder that are brought up to date.
        data: The collection.
        model: Encoder of what is new.
        left_out: Pictures that earlier runs could not read; those whose file is the same are not tried again.
        whole: The index is to hold this collection and nothing else. If false, every picture of the collection is
            written, and what else there is stays.
        rehash: Compare the content also of files whose size and time are as they were.
        allow_removals: Remove all that is gone, however much it is.
        mounts: Folders that were mounted at the last update; nothing is removed where one that held something is away.
        roots: Folders of the collection; nothing is removed where one that held something is empty or gone.
        progress: Called with the number of pictures that are done since the last call.
        stored: Called with the ids of each batch that is in the stores.
        files: Opens the files, and may encode what it finds; threads of this process if None.

    Attributes:
        left_out: Pictures of the collection that cannot be read, after :meth:`run`.
        moved: New ids of pictures that were renamed or moved, by their old ids, after :meth:`run`.
    """

    def __init__(
        self,
        target: Target,
        data: ImageCaptions,
        model: IndexEncoder,
        *,
        left_out: Sequence[Skipped] = (),
        whole: bool = True,
        rehash: bool = False,
        allow_removals: bool = False,
        mounts: Sequence[Path] = (),
        roots: Sequence[Path] = (),
        progress: Progress | None = None,
        stored: Stored | None = None,
        files: FilesOfItems | None = None,
    ) -> None:
        self._allow_removals, self._mounts, self._roots = allow_removals, mounts, roots
        self._files = files or FileReader
        self._target, self._data, self._model = target, data, model
        self._whole, self._rehash = whole, rehash
        self._progress = progress or (lambda done: None)
        self._stored = stored or (lambda ids: None)
        self._before = {one.id: one for one in left_out}
        self._texts = set(target.captions.ids())
        self._known = {one: source_of(record) for one, record in target.pictures.records()}
        self._bearer = {source.content: one for one, source in self._known.items() if source and source.content}
        self._row_of_text = _first_rows(data)
        self._unreadable: dict[str, Skipped] = {}
        self._gone: set[str] = set()
        self._lost: set[str] = set()
        self._notes: dict[str, list[str]] = {}
        self._new: dict[str, str] = {}
        self.moved: dict[str, str] = {}
        self._added = self._changed = self._removed = self._unchanged = self._encoded = 0
        self.left_out: tuple[Skipped, ...] = ()

    @property
    def known(self) -> Iterable[str]:
        """Ids of the pictures that stand in the index."""
        return self._known.keys()

    @property
    def unclaimed(self) -> tuple[str, ...]:
        """Captions of the index that no picture of the collection brought; only these may be without a picture."""
        data = self._data
        left_out = [one in self._unreadable for one in data.image_ids] if self._unreadable else []
        brought = (
            text
            for text, image in zip(data.captions, data.image_of_caption.tolist(), strict=True)
            if not (left_out and left_out[image])
        )
        return tuple(self._texts.difference(brought))

    @property
    def is_settled(self) -> bool:
        """Whether another update with the same collection has no file to open and no row to look at, after :meth:`run`.

        Files that were written meanwhile are opened again, and so are those that the system did not let be read. Rows
        that stay although the collection does not have their pictures depend on files elsewhere.
        """
        own = set(self._data.image_ids)
        rows = (one in own and source is not None and source.size >= 0 for one, source in self._known.items())
        return all(one.source.size >= 0 for one in self.left_out) and all(rows)

    def run(self) -> Changes:
        """Write what is new or changed, batch by batch, then remove what is gone, and set :attr:`left_out`."""
        looker = self._files(self._data, self._target.thumbnails, self._bearer.keys())
        for batch in looker.batches(self._to_look_at()):
            readable = [one for one in batch if isinstance(one, FileContent)]
            for one in readable:
                for note in one.notes:
                    self._notes.setdefault(note, []).append(one.item.id)
            for left in batch:
                if isinstance(left, Skipped):
                    self._leave_out(left, content_is_none=left.issue.kind == MISSING)
                    self._progress(1)
            self._write(readable)
        withheld, why = 0, ""
        if self._whole:
            before = len(self._known) - self._added
            gone = self._gone_now(sorted(self._gone.union(self._known.keys() - set(self._data.image_ids))))
            stays, why = ([], "") if self._allow_removals else self._withheld(gone, before)
            withheld = len(stays)
            self._unchanged += withheld
            goes = [one for one in gone if one not in stays]
            self.moved = {one: new for one in goes if (new := self._new.get(self._content(one))) is not None}
            self._remove(goes)
        if self._target.thumbnails is not None:
            borne = {source.content for source in self._known.values() if source is not None}
            self._target.thumbnails.remove(self._lost - borne)
        self.left_out = tuple(self._unreadable[one] for one in self._data.image_ids if one in self._unreadable)
        issues = tuple(one.issue for one in self.left_out)
        notes = tuple(_counted(kind, ids) for kind, ids in self._notes.items())
        counts = self._added, self._changed, self._removed, self._unchanged, self._encoded
        return Changes(*counts, issues, withheld, why, notes)

    def _to_look_at(self) -> ToLookAt:
        """The pictures whose files must be opened, with their stamps and the digests of what the collection says."""
        items = Items(self._data)
        found = ToLookAt(items)
        stamps: dict[Path, tuple[int, int]] = {}
        for position, item in enumerate(items):
            size, modified = stamp_of(item.path, stamps)
            source = ItemSource(size, modified, item_digest(item, self._target.folder))
            before = self._before.get(item.id)
            if before is not None and before.source.same_file(source) and not self._rehash:
                self._unreadable[item.id] = before
                self._unchanged += item.id in self._known
            elif self._stands(item.id, source):
                self._unchanged += 1
            else:
                found.add(position, source)
        if rest := len(self._data) - len(found):
            self._progress(rest)
        return found

    def _stands(self, item_id: str, source: ItemSource) -> bool:
        """Whether a row is up to date, as far as can be told without opening its file."""
        known, small = self._known.get(item_id), self._target.thumbnails
        if known is None or self._rehash or not self._whole:
            return False
        return known.same_file(source) and known.said == source.said and (small is None or small.has(known.content))

    def _write(self, batch: Sequence[FileContent]) -> None:
        """Encode the new pictures of a batch and store it, captions first: no search finds captions without picture."""
        vectors = self._vectors(batch)
        stamps: dict[Path, tuple[int, int]] = {}
        batch = [_forgetting_if_written(one, stamps) for one in batch if one.item.id in vectors]
        rows = [one for one in batch if self._count(one) or not self._whole]
        for one in batch:
            if one.thumbnail is not None and self._target.thumbnails is not None:
                self._target.thumbnails.put(one.source.content, one.thumbnail)
        if not rows:
            return
        texts = list(dict.fromkeys(text for one in rows for text in one.item.captions if text.strip()))
        new = [text for text in texts if text not in self._texts]
        features = self._data.text_features
        read = None if features is None else features.take([self._row_of_text[text] for text in new])
        captions = list(encoded_texts(new, self._model, read))
        with self._target.writing():
            self._target.captions.upsert_batches(captions)
            self._target.pictures.upsert(
                [one.item.id for one in rows],
                np.stack([vectors[one.item.id] for one in rows]),
                [self._record(one) for one in rows],
            )
        self._texts.update(new)
        for one in rows:
            self._forget(one.item.id)
            self._known[one.item.id] = one.source
            if one.source.content:
                self._bearer[one.source.content] = one.item.id
        self._stored([one.item.id for one in rows])

    def _count(self, one: FileContent) -> bool:
        """Count a picture, and tell whether its row must be written."""
        if one.item.id not in self._known:
            self._added += 1
            if one.source.content:
                self._new.setdefault(one.source.content, one.item.id)
            return True
        known = self._known[one.item.id]
        if known is None or (known.content, known.said) != (one.source.content, one.source.said):
            self._changed += 1
        else:
            self._unchanged += 1
        return known != one.source

    def _forget(self, item_id: str) -> None:
        """Take a row out of what is known of the index."""
        known = self._known.pop(item_id, None)
        if known is not None and known.content:
            self._lost.add(known.content)
            if self._bearer.get(known.content) == item_id:
                del self._bearer[known.content]

    def _record(self, one: FileContent) -> dict[str, object]:
        columns = {**one.item.fallbacks, **one.facts, **one.item.columns}
        return to_record(replace(one.item, columns=columns), self._target.folder, one.source)

    def _vectors(self, batch: Sequence[FileContent]) -> dict[str, Vector]:
        """The vector of each picture: of a row that has the same content, else from the model."""
        bearers = {one.item.id: self._bearer.get(one.source.content) for one in batch}
        rows = self._target.pictures.get(sorted({bearer for bearer in bearers.values() if bearer is not None}))
        found = {one: rows[bearer].vector for one, bearer in bearers.items() if bearer in rows}
        with_content: dict[str, list[FileContent]] = {}
        for one in batch:
            if one.item.id not in found:
                with_content.setdefault(one.source.content, []).append(one)
        for content, alike in list(with_content.items()):
            if (given := alike[0].encoded) is not None:
                self._take(given, with_content.pop(content), found)
        new = [alike[0] for alike in with_content.values()]
        self._progress(len(batch) - len(new))
        if not new:
            return found
        if self._data.features is not None:
            pictures = self._data.features.take([one.position for one in new])
            encoded = self._model.encode_image(pictures, progress=self._progress)
        else:
            paths = [self._data.paths[one.position] for one in new]
            encoded = self._model.encode_image(paths, progress=self._progress)
        for one, result in zip(new, results_of(encoded, len(new)), strict=True):
            self._take(result, with_content[one.source.content], found)
        return found

    def _take(self, result: Vector | Issue, alike: Sequence[FileContent], found: dict[str, Vector]) -> None:
        """Note the vector of the first of some pictures with the same content for all of them, or the issue."""
        first = alike[0]
        if not isinstance(result, Issue):
            self._encoded += 1
            require_finite(result[None], [str(first.item.path or first.item.id)])
            found |= {one.item.id: result for one in alike}
            return
        for one in alike:
            where = result.where if one is first else str(one.item.path)
            self._leave_out(Skipped(one.item.id, replace(result, where=where), one.source), content_is_none=True)

    def _leave_out(self, left: Skipped, *, content_is_none: bool) -> None:
        """Note a picture that cannot be read; its row goes if ``content_is_none``, and stays otherwise."""
        self._unreadable[left.id] = left
        if left.id in self._known:
            if content_is_none and self._whole:
                self._gone.add(left.id)
            else:
                self._unchanged += 1

    def _gone_now(self, ids: Sequence[str]) -> dict[str, Path | None]:
        """Those of these rows, each with its file, that are gone in truth.

        The system keeps away what lies in a folder that cannot be read, and what clients of a server added was never
        part of the collection.
        """
        found: dict[str, Path | None] = {}
        for start in range(0, len(ids), _IDS_AT_ONCE):
            rows = self._target.pictures.get(ids[start : start + _IDS_AT_ONCE])
            items = [from_record(one, row.record, self._target.folder) for one, row in rows.items()]
            found |= {one.id: file_of(one.path) for one in items if one.id in self._gone or not self._stays(one)}
            self._unchanged += len(items)
        self._unchanged -= len(found)
        return found

    def _stays(self, item: Item) -> bool:
        """Whether a row stays although the collection does not have its picture."""
        file = file_of(item.path)
        there = _is_there(file)
        own = None if self._target.folder is None else added_folder(self._target.folder)
        return there is None or (there and file is not None and file.parent == own)

    def _content(self, item_id: str) -> str:
        source = self._known.get(item_id)
        return "" if source is None else source.content

    def _withheld(self, gone: Mapping[str, Path | None], before: int) -> tuple[Collection[str], str]:
        """Rows that stay although their pictures are gone, and why; none where all of them go.

        A picture that was renamed or moved is not lost: its content came under another id in this update, and its old
        row goes. One of which there is a copy from before is gone like any other. Below a folder that is away, all of
        it stays.
        """
        lost = {one for one in gone if self._content(one) not in self._new}
        away = [one for one in self._mounts if is_away(one)] + [one for one in self._roots if is_empty(one)]
        below = {one for one, file in gone.items() if file and any(file.is_relative_to(folder) for folder in away)}
        away = [one for one in away if any(file and file.is_relative_to(one) for file in gone.values())]
        why = why_withheld(len(lost), before, len(self._data), self._data.name, away)
        return (lost | below, why) if why else ((), "")

    def _remove(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), _IDS_AT_ONCE):
            some = ids[start : start + _IDS_AT_ONCE]
            with self._target.writing():
                self._removed += self._target.pictures.delete(some)
            for one in some:
                self._forget(one)
            self._stored(())


def _counted(kind: str, ids: Sequence[str]) -> Issue:
    """One issue for all pictures of which something was left out."""
    return Issue(kind, ids[0], f"left out of the columns, of {len(ids)} in all" if len(ids) > 1 else "left out")


def _first_rows(data: ImageCaptions) -> dict[str, int]:
    """Position of the first caption of each text, where rows of features stand for texts."""
    if data.text_features is None:
        return {}
    return {text: position for position, text in reversed(list(enumerate(data.captions)))}


def _forgetting_if_written(one: FileContent, stamps: dict[Path, tuple[int, int]]) -> FileContent:
    """Drop the content of a file that was written meanwhile: the model may have seen another; it is read again."""
    if one.stamp == stamp_of(one.item.path, stamps):
        return one
    facts = {name: value for name, value in one.facts.items() if name != "hash"}
    return replace(one, source=replace(one.source, size=-1, content=""), facts=facts, thumbnail=None)


def _is_there(file: Path | None) -> bool | None:
    """Whether a file on the disk is there; None where the system does not tell."""
    try:
        if file is None or address_of(file) is not None:
            return False
        os.stat(file)  # noqa: PTH116  # as Path.stat, which is slower
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return None
    return True
