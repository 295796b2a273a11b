"""Index folders of version 1: one file of vectors for pictures and one for captions, read as two stores."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core.configuration import from_plain
from rungwise.core.errors import UserError
from rungwise.core.seals import digest_of
from rungwise.index import storage
from rungwise.index.exact import ExactStore
from rungwise.index.files import damaged, open_vectors, read_description, read_lines
from rungwise.index.items import from_record, ids_of_texts, to_record
from rungwise.index.snapshot import Part, Snapshot, SnapshotStore
from rungwise.index.store import Batch, Record
from rungwise.similarity import AnySimilarity

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class _Counts:
    """What ``index.json`` of version 1 says beside a :class:`~rungwise.index.storage.Manifest`."""

    similarity: AnySimilarity
    dimension: int
    pictures: int
    captions: int


class ReadOnlyStore(SnapshotStore):
    """A store of version 1, which is rewritten as a whole before anything in it changes."""

    def upsert(self, ids: Sequence[str], vectors: ArrayLike, records: Sequence[Record] | None = None) -> NoReturn:
        """Refused."""
        self._refuse()

    def delete(self, ids: Sequence[str]) -> NoReturn:
        """Refused."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UserError("the stores of an index of version 1 are read-only; change it through Index.upsert or remove")


def open_stores(folder: Path) -> tuple[ReadOnlyStore, ReadOnlyStore]:
    """The pictures and the captions of a folder of version 1.

    Raises:
        UserError: If the folder is damaged.
    """
    place, path = folder.resolve(), folder / storage.DESCRIPTION
    counts = from_plain(_Counts, read_description(path, storage.FORMAT, 1, unchecked=(1,)), str(path))
    path = folder / storage.ITEMS_1
    records = list(read_lines(path))
    try:
        items = [from_record(str(record["id"]), record, place) for record in records]
    except (KeyError, TypeError) as error:
        raise damaged(path, "an item lacks id, path or captions") from error
    if len(items) != counts.pictures:
        raise damaged(path, f"{len(items)} items where index.json says {counts.pictures}")
    ids = tuple(item.id for item in items)
    columns = tuple({name: value for name, value in record.items() if name != "id"} for record in records)
    pictures = Part(0, ids, open_vectors(folder / storage.VECTORS_1, counts.pictures, counts.dimension), columns)
    texts = tuple(ids_of_texts(items))
    if len(texts) != counts.captions:
        raise damaged(path, f"{len(texts)} captions where index.json says {counts.captions}")
    vectors = open_vectors(folder / storage.CAPTION_VECTORS_1, counts.captions, counts.dimension)
    captions = Part(0, texts, vectors, ({},) * len(texts))
    return (
        ReadOnlyStore(Snapshot(counts.dimension, (pictures,)), counts.similarity, "image"),
        ReadOnlyStore(Snapshot(counts.dimension, (captions,)), counts.similarity, "text"),
    )


def bring_up_to_date(folder: Path) -> None:
    """Rewrite a folder of an earlier version in the present layout; nothing happens to others.

    Until ``index.json`` is replaced, which is the last step but clearing away, the folder is one of its version.

    Raises:
        UserError: If the folder is damaged or cannot be written.
    """
    manifest = storage.read_manifest(folder)
    if manifest.version == storage.VERSION:
        return
    if manifest.version == 1:
        storage.refuse_strangers(folder)  # such as photographs in a folder with the name of a store
        for name, old in zip((storage.PICTURES, storage.CAPTIONS), open_stores(folder), strict=True):
            shutil.rmtree(folder / name, ignore_errors=True)  # of a process that died on the way
            new = ExactStore.create(folder / name, old.dimension, old.similarity, old.side)
            new.upsert_batches(Batch(part.ids, part.vectors, part.records) for part in old.snapshot.parts)
    stores = [ExactStore.open(folder / name) for name in (storage.PICTURES, storage.CAPTIONS)]
    _rewrite_records(stores[0], folder)
    pictures, captions = (store.identity for store in stores)
    issues = folder / storage.ISSUES
    storage.write_manifest(
        folder,
        replace(
            manifest,
            identity=uuid4().hex,
            picture_store=pictures,
            caption_store=captions,
            issues_sha256=digest_of(issues),
        ),
    )
    for name in (storage.VECTORS_1, storage.CAPTION_VECTORS_1, storage.ITEMS_1):
        (folder / name).unlink(missing_ok=True)


def _rewrite_records(pictures: ExactStore, folder: Path) -> None:
    """Put captions and columns where filters see them; rows stand in the same order afterwards."""
    pictures.upsert_batches(_with_new_records(pictures, folder))


def _with_new_records(pictures: ExactStore, folder: Path) -> Iterator[Batch]:
    ids, place = list(pictures.snapshot.positions), folder.resolve()
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        rows = pictures.get(ids[start : start + _ROWS_AT_ONCE])
        records = [to_record(from_record(one, row.record, place), place) for one, row in rows.items()]
        yield Batch(list(rows), np.stack([row.vector for row in rows.values()]), records)
