"""An index made again from its backup, in a store of any kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from rungwise.core import Check, UserError, checked, read_bytes
from rungwise.core.network import address_of
from rungwise.core.output import short_repr
from rungwise.index._items import ITEM, from_record, path_of_stored, stored_path
from rungwise.index.layout import FAVOURITES, QUERIES, location
from rungwise.index.layout import manifest as storage
from rungwise.index.maintenance._backup import (
    CAPTIONS,
    PICTURES,
    SMALL,
    SMALL_FILES,
    BackupDescription,
    read_backup,
    rows_of,
    thumbnails_of,
)
from rungwise.index.maintenance._verify import calibration_of
from rungwise.index.stores import Record, Store, StoreBatch, factory, read_lines
from rungwise.index.update import Skipped, Thumbnails
from rungwise.parts import recorded

_IN_FOLDERS_ONLY = (FAVOURITES, QUERIES, SMALL)


@dataclass(frozen=True)
class Restoration:
    """What restoring a backup has done.

    Attributes:
        pictures: Number of pictures of the index.
        captions: Number of its distinct captions.
        store: Kind of store that keeps the rows.
        left: Files of the backup that the place cannot hold: an index under an address keeps no favourites, saved
            searches, asked queries and small copies of pictures.
        moved: The pictures are looked for where they were, and no more beside the index.
    """

    pictures: int
    captions: int
    store: str
    left: tuple[str, ...] = ()
    moved: bool = False

    __repr__ = short_repr


def restore_index(backup: Path, out: Path, *, store: str = "auto", overwrite: bool = False) -> Restoration:
    """Make an index of a backup; it appears whole or not at all.

    Rows have the vectors, records and order of those of the backup. Pictures that lay beside the index are looked for
    beside the new one, where that is a folder, and they lie there or are no longer where they were; else where they
    were.

    Args:
        backup: Folder that :func:`rungwise.index.maintenance.backup_index` made.
        out: Folder or address of the new index.
        store: Kind of store that keeps the rows; ``"auto"`` takes the kind of the backup where the place can have it.
        overwrite: Replace an index that stands there; it stays until the new one is whole.

    Raises:
        UserError: If the backup is damaged, naming the file; the place is taken or cannot be written; or it cannot keep
            such rows.
    """
    said = read_backup(backup)
    kind = _kind(store, out, said)
    moved = _moving(said, out)
    stands = not address_of(out) and storage.is_index(out)
    with (
        location.writing_alone(out) if overwrite and stands else nullcontext(),
        storage.replacing_folder(out, overwrite=overwrite) as draft,
    ):
        left = _restore_files(backup, draft)
        pictures = _restored(backup / PICTURES, said, draft, kind, _checked(backup / PICTURES, said, moved))
        captions = _restored(backup / CAPTIONS, said, draft, kind, None)
        if said.thumbnails and not address_of(draft):
            kept = Thumbnails(draft)
            for content, small in thumbnails_of(backup / SMALL, said.thumbnails):
                kept.put(content, small)
        found, kept_setting = pictures.approximate_index, said.approximation
        if kind == said.manifest.store and found and kept_setting and found.settings.kind == kept_setting.kind:
            found.keep(kept_setting)
        manifest = replace(
            _moved_manifest(said.manifest, moved),
            identity=uuid4().hex,
            picture_store=pictures.identity,
            caption_store=captions.identity,
            store=kind,
            thumbnails=said.manifest.thumbnails and not address_of(draft),
            rows_in_order=said.pictures,
            listing="",  # the next update reads the collection: what lies at this place now, nobody has looked at
        )
        storage.write_issues(draft, manifest, _left_out(backup / storage.ISSUES))
    return Restoration(said.pictures, said.captions, kind, left, moved is not None)


def verify_backup(folder: Path) -> Iterator[Check]:
    """Check everything in a backup: that each file is as it was written, and that all rows can be read."""
    found: list[BackupDescription] = []

    def described() -> str:
        found.append(read_backup(folder))
        return f"of {found[0].place}, taken {found[0].taken}; each file is as it was written"

    yield checked("backup", described)
    for said in found:
        yield from _rows_checked(folder, said)


def _rows_checked(folder: Path, said: BackupDescription) -> Iterator[Check]:
    captions, dimension = folder / CAPTIONS, said.manifest.dimension
    borne: set[str] = set()
    yield checked(
        PICTURES, lambda: _counted(folder / PICTURES, _noting(_checked(folder / PICTURES, said, None), borne))
    )
    yield checked(CAPTIONS, lambda: _counted(captions, rows_of(captions, dimension, said.captions), borne))
    yield checked(storage.ISSUES, lambda: f"{len(_left_out(folder / storage.ISSUES))} pictures left out")
    if os.path.lexists(folder / storage.CALIBRATION):
        yield checked(storage.CALIBRATION, lambda: calibration_of(folder, said.manifest))
    if said.thumbnails:
        yield checked(SMALL, lambda: f"{sum(1 for _ in thumbnails_of(folder / SMALL, said.thumbnails))} small copies")


def _noting(batches: Iterator[StoreBatch], borne: set[str]) -> Iterator[StoreBatch]:
    """Rows of pictures, whose captions are noted."""
    for batch in batches:
        for one, record in zip(batch.ids, batch.records or (), strict=True):
            borne.update(text for text in from_record(one, record, Path("/")).captions if text.strip())
        yield batch


def _counted(path: Path, batches: Iterator[StoreBatch], wanted: Collection[str] = ()) -> str:
    """Count rows with ids that differ, all that are wanted among them."""
    ids: set[str] = set()
    rows = 0
    for batch in batches:
        ids.update(batch.ids)
        rows += len(batch.ids)
    if len(ids) < rows:
        raise UserError(f"{path}: damaged ({rows} rows, and {len(ids)} different ids); take another backup")
    if lacking := next((one for one in wanted if one not in ids), None):
        raise UserError(f"{path}: damaged (no vector of the caption {lacking[:60]!r}); take another backup")
    return f"{rows} rows"


def _kind(store: str, out: Path, said: BackupDescription) -> str:
    if store == "auto" and said.manifest.store != "milvus" and not address_of(out):
        with recorded(said.manifest.origins):
            return factory.choose(said.manifest.store, out, said.similarity)
    return factory.choose(store, out, said.similarity)


def _restored(
    path: Path, said: BackupDescription, draft: Path, kind: str, batches: Iterator[StoreBatch] | None
) -> Store:
    """A new store with the rows of a file."""
    of_pictures = batches is not None
    name, side, count = (
        (storage.PICTURES, "image", said.pictures) if of_pictures else (storage.CAPTIONS, "text", said.captions)
    )
    dimension, half = said.manifest.dimension, said.half and kind == "lance"
    columns = said.columns if of_pictures else {}
    made = factory.create_store(kind, draft, name, dimension, said.similarity, side, half=half, columns=columns)  # type: ignore[arg-type]  # one of two
    made.upsert_batches(rows_of(path, dimension, count) if batches is None else batches)
    if (number := made.count()) != count:
        raise UserError(f"{path}: damaged ({count} rows, and {number} different ids); take another backup")
    made.compact()
    return made


def _checked(path: Path, said: BackupDescription, moved: Callable[[str], str] | None) -> Iterator[StoreBatch]:
    """Rows of pictures, each of which has a path and captions; paths are moved."""
    for batch in rows_of(path, said.manifest.dimension, said.pictures):
        for one, record in zip(batch.ids, batch.records or (), strict=True):
            try:
                from_record(one, record, Path("/"))
            except (KeyError, TypeError) as error:
                raise UserError(
                    f"{path}: damaged (the picture {one[:60]!r} lacks path or captions); take another backup"
                ) from error
        yield batch if moved is None else batch._replace(records=[_moved(one, moved) for one in batch.records or ()])


def _moved(record: Record, moved: Callable[[str], str]) -> Record:
    own: dict[str, Any] = record[ITEM]
    return record if own["path"] is None else {**record, ITEM: {**own, "path": moved(own["path"])}}


def _moving(said: BackupDescription, out: Path) -> Callable[[str], str] | None:
    """Gives a stored path as the new place stores it; None where the paths stay as they are."""
    old, new = Path(said.place), out.resolve()
    paths = () if said.manifest.source is None else said.manifest.source.paths
    beside = next((one for one in paths if not address_of(one) and not Path(one).is_absolute()), None)
    if old == new or address_of(said.place):
        return None
    if not address_of(out) and (
        beside is None or path_of_stored(beside, new).exists() or not path_of_stored(beside, old).exists()
    ):
        return None

    def moved(path: str) -> str:
        return path if address_of(path) else stored_path(path_of_stored(path, old), new).as_posix()

    return moved


def _moved_manifest(manifest: storage.Manifest, moved: Callable[[str], str] | None) -> storage.Manifest:
    if moved is None:
        return manifest
    mounts, source = tuple(map(moved, manifest.mounts)), manifest.source
    if source is not None:
        captions = source.captions and moved(source.captions)
        source = replace(source, paths=tuple(map(moved, source.paths)), captions=captions)
    return replace(manifest, mounts=mounts, source=source)


def _restore_files(backup: Path, draft: Path) -> tuple[str, ...]:
    """Copy the small files of the index; gives the names of those that the place cannot hold."""
    left = [one for one in _IN_FOLDERS_ONLY if address_of(draft) and os.path.lexists(backup / one)]
    with location.at_hand(draft, SMALL_FILES, writing=True) as at_hand:
        for name in SMALL_FILES:
            if name not in left and os.path.lexists(backup / name):
                (at_hand / name).write_bytes(read_bytes(backup / name, "text_bytes"))
    return tuple(left)


def _left_out(path: Path) -> tuple[Skipped, ...]:
    found = []
    for number, record in enumerate(read_lines(path), start=1):
        try:
            found.append(Skipped.of_plain(record))
        except TypeError as error:
            raise UserError(f"{path}, line {number}: damaged ({error}); take another backup") from error
    return tuple(found)
