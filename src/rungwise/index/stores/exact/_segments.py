"""The files of an exact store: ``store.json``, which names the parts, and two files for each part.

``store.json`` holds the checksums of each part's files and one of itself. So whoever has read it knows whether a part
is the one that was written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rungwise.core import STRICT, MissingFileError, Size, UserError, from_plain, limits, to_plain
from rungwise.core.disk import sync_file, sync_folder
from rungwise.core.disk.staging import sweep
from rungwise.core.formats import NpyWriter
from rungwise.index.stores._base import Record, Side, StoreBatch
from rungwise.index.stores._vector_files import (
    damaged,
    digest_of_vectors,
    open_vectors,
    read_description,
    read_lines,
    write_description,
    write_lines,
)
from rungwise.index.stores.exact._snapshot import ExactSnapshot, Segment
from rungwise.similarity import AnySimilarity

DESCRIPTION = "store.json"
FORMAT = "rungwise-exact-store"
VERSION = 1

_FILE = re.compile(r"(vectors|rows)-(\d+)\.(npy|jsonl)")


@dataclass(frozen=True)
class SegmentEntry:
    """Entry of a part in ``store.json``.

    Attributes:
        number: Number of its files, ``vectors-NUMBER.npy`` and ``rows-NUMBER.jsonl``.
        rows: Number of rows in the files.
        deleted: Positions of rows that no longer count.
        vectors_sha256: SHA-256 of the numbers in the file of vectors.
        rows_sha256: SHA-256 of the file of rows.
    """

    __pydantic_config__ = STRICT

    number: int
    rows: int
    deleted: tuple[int, ...] = ()
    vectors_sha256: str = ""
    rows_sha256: str = ""


@dataclass(frozen=True)
class SegmentsDescription:
    """Content of ``store.json``.

    Attributes:
        parts: Entries of the parts, in order of rows.
        following: Number of the next part.
        identity: Differs from that of every other store, also of one that was in this folder before.
        version: Version of the layout of the folder.
    """

    __pydantic_config__ = STRICT

    dimension: Size
    similarity: AnySimilarity
    side: Side
    parts: tuple[SegmentEntry, ...]
    following: int = 0
    identity: str = ""
    format: str = FORMAT
    version: int = VERSION


@dataclass(frozen=True)
class State:
    """One state of a store: its description and the rows of the parts that it names."""

    description: SegmentsDescription
    snapshot: ExactSnapshot


def read_state(folder: Path, known: State | None = None, *, all_vectors: bool = False) -> State:
    """The present state of a store; parts that ``known``, an earlier state, has are not read again.

    ``all_vectors`` reads the numbers of every part, also where its file is larger than the limit ``checked_bytes`` (see
    :class:`rungwise.core.Limits`). A missing, damaged or altered store is refused.
    """
    while True:
        description = read_store_description(folder)
        if known is not None and known.description == description:
            return known
        same = known is not None and known.description.identity == description.identity
        parts = {part.number: part for part in known.snapshot.parts} if same and known is not None else {}
        try:
            state = State(description, _snapshot(folder, description, parts, all_vectors))
        except UserError:
            # A part that another process has merged meanwhile is gone, and the description names its successor.
            if read_store_description(folder) == description:
                raise
        else:
            # Parts never change, so that all of them are as the description said, unless the whole store was replaced.
            if read_store_description(folder).identity == description.identity:
                return state


def _snapshot(
    folder: Path, description: SegmentsDescription, known: Mapping[int, Segment], all_vectors: bool
) -> ExactSnapshot:
    parts = []
    for entry in description.parts:
        look = all_vectors or 4 * entry.rows * description.dimension <= limits().checked_bytes
        part = known.get(entry.number) or _read_part(folder, entry, description.dimension, look)
        if entry.deleted and not 0 <= min(entry.deleted) <= max(entry.deleted) < entry.rows:
            raise damaged(folder / DESCRIPTION, f"deletes a row of {entry.rows} that is not there")
        parts.append(replace(part, deleted=frozenset(entry.deleted)))
    snapshot = ExactSnapshot(description.dimension, tuple(parts))
    if len(snapshot.positions) != sum(part.live for part in parts):
        double, _ = Counter(one for one, _ in snapshot.records()).most_common(1)[0]
        raise damaged(folder / DESCRIPTION, f"id {double!r} stands twice")
    return snapshot


def _read_part(folder: Path, entry: SegmentEntry, dimension: int, look: bool) -> Segment:
    """Open the files of a part, and read its numbers if asked to."""
    vectors, rows = _files(folder, entry.number)
    lines = list(read_lines(rows, entry.rows_sha256))
    if len(lines) != entry.rows:
        raise damaged(rows, f"{len(lines)} rows where {entry.rows} are expected")
    if odd := [
        line for line in lines if not isinstance(line.get("id"), str) or not isinstance(line.get("record"), dict)
    ]:
        raise damaged(rows, f"a row lacks id or record: {odd[0]!r}"[:200])
    return Segment(
        entry.number,
        tuple(line["id"] for line in lines),
        open_vectors(vectors, entry.rows, dimension, entry.vectors_sha256 if look else None),
        tuple(line["record"] for line in lines),
        vectors_sha256=entry.vectors_sha256,
        rows_sha256=entry.rows_sha256,
    )


def write_part(folder: Path, number: int, dimension: int, batches: Iterable[StoreBatch]) -> Segment:
    """Write the files of a part, which belongs to nothing until :func:`write_store_description` names it.

    A full disk raises an OSError, a record that holds what JSON cannot a UserError.
    """
    vectors, rows = _files(folder, number)
    ids: list[str] = []
    records: list[Record] = []
    with NpyWriter(vectors, (dimension,), np.float32) as writer:
        for batch in batches:
            writer.append(np.asarray(batch.vectors))
            ids.extend(batch.ids)
            records.extend(batch.records or ())
    lines = ({"id": one, "record": record} for one, record in zip(ids, records, strict=True))
    entry = SegmentEntry(number, len(ids), rows_sha256=write_lines(rows, lines))
    for file in (vectors, rows):
        sync_file(file)
    part = _read_part(folder, entry, dimension, look=False)
    return replace(part, vectors_sha256=digest_of_vectors(part.vectors))


def entry_of(part: Segment) -> SegmentEntry:
    """Entry of a part for ``store.json``."""
    return SegmentEntry(part.number, len(part.ids), tuple(sorted(part.deleted)), part.vectors_sha256, part.rows_sha256)


def clear(folder: Path, description: SegmentsDescription) -> None:
    """Remove the files that belong to no part: of a process that died, of a refused write, or merged ones."""
    sweep(folder / DESCRIPTION)
    kept = {part.number for part in description.parts}
    for file in folder.iterdir():
        named = _FILE.fullmatch(file.name)
        if named and int(named[2]) not in kept and not file.is_dir():
            file.unlink(missing_ok=True)


def require_store(folder: Path) -> None:
    """Refuse a folder without a store, in which nothing shall be made."""
    if not (folder / DESCRIPTION).is_file():
        raise UserError(f"{folder}: no store here; make one first")


def read_store_description(folder: Path) -> SegmentsDescription:
    """Read ``store.json``; refuses a missing, damaged or altered one."""
    path = folder / DESCRIPTION
    try:
        stored = read_description(path, FORMAT, VERSION)
    except MissingFileError:
        raise UserError(f"{folder}: no store here ({DESCRIPTION} is missing); build the index again") from None
    return from_plain(SegmentsDescription, stored, str(path))


def write_store_description(folder: Path, description: SegmentsDescription) -> None:
    """Write ``store.json``, by which the store becomes what it describes."""
    sync_folder(folder)  # the files of new parts must be there before anything names them
    write_description(folder / DESCRIPTION, to_plain(description))


def _files(folder: Path, number: int) -> tuple[Path, Path]:
    return folder / f"vectors-{number}.npy", folder / f"rows-{number}.jsonl"
