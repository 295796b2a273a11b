"""Backup of an index: a folder of files in known formats, which :mod:`rungwise.index.maintenance._restore` reads.

It holds ``backup.json``, which describes it; ``pictures.parquet`` and ``captions.parquet``, a row for each row of the
two stores, in their order; ``thumbnails.parquet`` where there are small copies; and the small files of the index as
they are. ``SHA256SUMS`` has the SHA-256 of each file, as ``sha256sum -c`` reads it.

A backup is of one state of an index. The rows come from one version; in Milvus, which has none, from a time in which
nobody wrote.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.core import UserError, from_plain, parse_json, read_bytes, to_plain
from rungwise.core.disk import check_seal, folders, locks, names_below
from rungwise.core.network import address_of
from rungwise.core.output import short_repr
from rungwise.data.files import opened_parquet
from rungwise.index._index import Index
from rungwise.index._items import source_of
from rungwise.index.layout import FAVOURITES, QUERIES, location, now
from rungwise.index.layout import manifest as storage
from rungwise.index.stores import (
    ROWS_AT_ONCE,
    Approximation,
    Record,
    StoreBatch,
    from_engine,
    is_milvus,
    named,
    read_description,
    to_engine,
    write_description,
    write_lines,
)
from rungwise.index.update import Thumbnails, can_keep
from rungwise.similarity import AnySimilarity

DESCRIPTION = "backup.json"
FORMAT, VERSION = "rungwise-backup", 1
PICTURES, CAPTIONS, SMALL = "pictures.parquet", "captions.parquet", "thumbnails.parquet"
SMALL_FILES = (storage.CALIBRATION, storage.GRADES, FAVOURITES, QUERIES)
"""Files of an index that are kept as they are; each may be missing."""
PARTS = frozenset({DESCRIPTION, PICTURES, CAPTIONS, SMALL, storage.ISSUES, *SMALL_FILES})
MOST_DIMENSIONS = 1 << 20
"""Most numbers of a vector that stores keep."""
_ATTEMPTS = 3
_SMALL_AT_ONCE = 256
_TYPES: dict[type, str] = {bool: "truth", int: "number", float: "number", str: "text"}


@dataclass(frozen=True)
class BackupDescription:
    """Content of ``backup.json``.

    Attributes:
        place: Folder or address of the index.
        taken: Time at which the backup was begun, in UTC, as ISO 8601 has it.
        manifest: Manifest of the index.
        similarity: How queries and rows are compared.
        pictures: Number of rows of pictures.
        captions: Number of rows of captions.
        thumbnails: Number of small copies of pictures.
        half: Whether vectors were kept in half precision.
        columns: Columns of the records, each with its type, where all values are of one (``number``, ``text``,
            ``truth``).
        approximation: Setting of the approximate index of pictures; None where there is none.
        format: Always :data:`FORMAT`.
        version: Version of the layout of the folder.
    """

    place: str
    taken: str
    manifest: storage.Manifest
    similarity: AnySimilarity
    pictures: int
    captions: int
    thumbnails: int = 0
    half: bool = False
    columns: dict[str, str] = field(default_factory=dict)
    approximation: Approximation | None = None
    format: str = FORMAT
    version: int = VERSION

    __repr__ = short_repr


def backup_index(place: Path, out: Path, *, overwrite: bool = False) -> BackupDescription:
    """Write a backup of an index into a folder, which appears whole or not at all; the index may be used meanwhile.

    Args:
        place: Folder or address of the index.
        out: Folder of the backup.
        overwrite: Replace a backup that stands there; it stays until the new one is on the disk.

    Raises:
        UserError: If there is no index, one of its rows is damaged, the folder is taken or cannot be written, or others
            keep writing to Milvus.
    """
    require_writable_backup(out, overwrite=overwrite)
    with folders.replacing_folder(out, PARTS, "a backup", header=DESCRIPTION) as draft:
        index, description = _quiet_state(place, draft)
        write_lines(draft / storage.ISSUES, (one.to_plain() for one in index.left_out))
        _copy_small_files(place, draft)
        write_description(draft / DESCRIPTION, to_plain(description), indent=2)
    return description


def _quiet_state(place: Path, draft: Path) -> tuple[Index, BackupDescription]:
    """Write the rows of one state of an index; gives the index, opened in this state, and their description.

    Folders and object stores have versions. In Milvus the rows are read again where somebody wrote meanwhile.
    """
    for _ in range(_ATTEMPTS):
        taken, index = now(), Index.open(place)
        try:
            description = _write_rows(draft, index, taken)
        except UserError:
            if not _has_changed(place, index):
                raise
            continue
        if not is_milvus(place) or not _has_changed(place, index):
            return index, description
    raise UserError(
        f"{named(place)}: others wrote here while its rows were read, {_ATTEMPTS} times; run it again once the update"
        " has ended"
    )


def require_writable_backup(out: Path, *, overwrite: bool) -> None:
    """Refuse a place where :func:`backup_index` could not write, before any row is read."""
    if address := address_of(out):
        raise UserError(f"{address}: a backup is a folder; write it to this machine and copy it there")
    folders.require_writable_folder(out)
    folders.refuse_strangers(out, PARTS, "a backup")
    if not overwrite and out.is_dir() and any(names_below(out)):
        raise UserError(
            f"{out}: a backup stands here already; name another folder, or replace it with overwrite=True",
            parameters={"overwrite=True": "overwrite"},
        )


def read_backup(folder: Path) -> BackupDescription:
    """Read the description of a backup whose files are all as they were written.

    Raises:
        UserError: Naming the first file that is damaged, missing, or no part of the backup.
    """
    if not is_backup(folder):
        raise UserError(f"{named(folder)}: no backup here; name a folder that rungwise index backup made")
    check_seal(folder)
    folders.refuse_strangers(folder, PARTS, "a backup")
    path = folder / DESCRIPTION
    said = from_plain(BackupDescription, read_description(path, FORMAT, VERSION), str(path))
    if (fault := _fault_of(said.manifest)) is not None:
        raise _damaged(path, fault)
    return said


def _fault_of(manifest: storage.Manifest) -> str | None:
    """Why no index can have this manifest; None where one can."""
    if (manifest.format, manifest.version) != (storage.FORMAT, storage.VERSION):
        return f"of an index of version {manifest.version}, where this rungwise reads {storage.VERSION}"
    if not 1 <= manifest.dimension <= MOST_DIMENSIONS:
        return f"vectors of {manifest.dimension} numbers"
    source = manifest.source
    if source is not None and not len(source.paths) == len(source.layouts) == len(source.names or source.paths):
        return "as many folders as layouts and names are expected"
    places = () if source is None else (*source.paths, source.captions)
    if any("\0" in one for one in (*places, *manifest.mounts)):
        return "a path holds a character that none can have"
    return None


def is_backup(folder: Path) -> bool:
    """Whether a backup stands in a folder, be it whole or not."""
    return (folder / DESCRIPTION).is_file()


def rows_of(path: Path, dimension: int, count: int) -> Iterator[StoreBatch]:
    """Rows of a Parquet file of a backup, in order, some thousands at a time.

    Args:
        path: The file.
        dimension: D, the length of a vector.
        count: Number of rows that the backup says it has.

    Raises:
        UserError: If it holds other columns, more or fewer rows, or a record that is none; the message names the row.
    """
    import pyarrow as pa

    wanted = _schema(dimension)
    with opened_parquet(path) as file:
        if file.schema.names != wanted.names or file.schema.types != wanted.types:
            raise _damaged(path, f"its columns are not {', '.join(wanted.names)} for {dimension} numbers")
        if sum(file.group_sizes) != count or max(file.group_sizes, default=0) > ROWS_AT_ONCE:
            raise _damaged(path, f"it has {sum(file.group_sizes)} rows where {DESCRIPTION} says {count}")
        at = 0
        for batch in file.batches(wanted.names):
            if any(column.null_count for column in batch.columns):
                raise _damaged(path, f"a value is missing after row {at}")
            ids = [from_engine(one) for one in file.values(batch.column("id"))]
            records = [_record(path, at + row, one) for row, one in enumerate(file.values(batch.column("record")), 1)]
            numbers = pa.concat_arrays([batch.column("vector")]).flatten()
            vectors = np.array(numbers.to_numpy(zero_copy_only=False), np.float32).reshape(-1, dimension)
            if not np.isfinite(vectors).all():
                raise _damaged(path, f"a vector after row {at} holds NaN or infinity")
            at += len(ids)
            yield StoreBatch(ids, vectors, records)


def thumbnails_of(path: Path, count: int) -> Iterator[tuple[str, bytes]]:
    """Small copies of pictures in a backup: the SHA-256 of a picture's file, and the JPEG.

    Raises:
        UserError: If the file holds something else.
    """
    wanted = _schema_of_thumbnails()
    with opened_parquet(path) as file:
        if file.schema.names != wanted.names or file.schema.types != wanted.types or sum(file.group_sizes) != count:
            raise _damaged(path, f"it does not hold {count} small copies of pictures")
        for batch in file.batches(wanted.names):
            if any(column.null_count for column in batch.columns):
                raise _damaged(path, "a value is missing")
            for content, small in zip(*(file.values(one) for one in batch.columns), strict=True):
                if not can_keep(content, small):
                    raise _damaged(path, f"{content[:70]!r} of {len(small)} bytes is no small copy of a picture")
                yield content, small


def _record(path: Path, row: int, text: str) -> Record:
    found = parse_json(text.encode(), f"{path}, row {row}")
    if not isinstance(found, dict):
        raise _damaged(path, f"row {row} holds no record")
    return found


def _damaged(path: Path, what: str) -> UserError:
    return UserError(f"{path}: damaged ({what}); take another backup")


def _has_changed(place: Path, index: Index) -> bool:
    if address := address_of(place):
        location.forget_stamps(address)
    return index.is_replaced()


def _write_rows(draft: Path, index: Index, taken: str) -> BackupDescription:
    dimension, store = index.manifest.dimension, index.picture_store
    kinds: dict[str, set[str]] = {}
    contents: dict[str, None] = {}

    def noted() -> Iterator[StoreBatch]:
        for batch in store.rows():
            for record in batch.records or ():
                for name, value in record.items():
                    kinds.setdefault(name, set()).add(_TYPES.get(type(value), ""))
                if (source := source_of(record)) is not None and source.content:
                    contents[source.content] = None
            yield batch

    pictures = _write_parquet(draft / PICTURES, dimension, noted())
    captions = _write_parquet(draft / CAPTIONS, dimension, index.caption_store.rows())
    folder, small = index.folder, 0
    if index.manifest.thumbnails and folder is not None:
        small = _write_thumbnails(draft / SMALL, Thumbnails(folder), contents)
    columns = {name: kind for name, (kind, *others) in kinds.items() if kind and not others and "." not in name}
    approximate = store.approximate_index
    return BackupDescription(
        str(address_of(folder) or folder.resolve()) if folder is not None else "",
        taken,
        index.manifest,
        index.similarity,  # type: ignore[arg-type]  # a union
        pictures,
        captions,
        small,
        store.half,
        columns,
        None if approximate is None else approximate.settings,
    )


def _write_parquet(path: Path, dimension: int, batches: Iterator[StoreBatch]) -> int:
    """Write rows batch by batch; gives their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema, count = _schema(dimension), 0
    # Numbers of vectors hardly shrink, and no two records are the same.
    compression = {"id": "zstd", "record": "zstd", "vector": "none"}
    with path.open("wb") as file, pq.ParquetWriter(file, schema, compression=compression, use_dictionary=False) as out:
        for ids, vectors, records in batches:
            numbers = pa.array(np.ascontiguousarray(vectors, np.float32).ravel())
            texts = [json.dumps(one, allow_nan=False) for one in records or ()]
            columns = [
                pa.array([to_engine(one) for one in ids], pa.string()),
                pa.array(texts, pa.string()),
                pa.FixedSizeListArray.from_arrays(numbers, dimension),
            ]
            out.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=ROWS_AT_ONCE)
            count += len(ids)
    return count


def _write_thumbnails(path: Path, kept: Thumbnails, contents: dict[str, None]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema, count, names = _schema_of_thumbnails(), 0, list(contents)
    with path.open("wb") as file, pq.ParquetWriter(file, schema, compression="none", use_dictionary=False) as out:
        for start in range(0, len(names), _SMALL_AT_ONCE):
            some = [(one, small) for one in names[start : start + _SMALL_AT_ONCE] if (small := kept.read(one))]
            found: Any = list(zip(*some, strict=True)) or [(), ()]
            arrays = [pa.array(one, kind) for one, kind in zip(found, schema.types, strict=True)]
            out.write_table(pa.Table.from_arrays(arrays, schema=schema))
            count += len(some)
    return count


def _copy_small_files(place: Path, draft: Path) -> None:
    # Of a place where nothing may be written, nobody takes the lock.
    locked = address_of(place) is None and os.access(place, os.W_OK)
    with (
        location.writing_alone(place, locks.GRADES_LOCK) if locked else nullcontext(),
        location.at_hand(place, SMALL_FILES) as at_hand,
    ):
        for name in SMALL_FILES:
            if os.path.lexists(at_hand / name):
                (draft / name).write_bytes(read_bytes(at_hand / name, "text_bytes"))


def _schema(dimension: int) -> Any:
    import pyarrow as pa

    return pa.schema([("id", pa.string()), ("record", pa.string()), ("vector", pa.list_(pa.float32(), dimension))])


def _schema_of_thumbnails() -> Any:
    import pyarrow as pa

    return pa.schema([("content", pa.string()), ("picture", pa.binary())])
