"""The files of an exact store: ``store.json``, which names the parts, and two files for each part.

What ``store.json`` says of a part includes the checksums of its files, and ``store.json`` has one of itself. So whoever
has read it knows whether a part is the one that was written.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rungwise.core.configuration import STRICT, Size, from_plain, to_plain
from rungwise.core.disk.staging import sweep
from rungwise.core.disk.syncing import sync_file, sync_folder
from rungwise.core.errors import UserError
from rungwise.core.formats.npy import NpyWriter
from rungwise.core.limits import limits
from rungwise.core.untrusted_files import MissingFileError
from rungwise.index.stores.base import Record, Side, StoreBatch
from rungwise.index.stores.exact.snapshot import ExactSnapshot, Segment
from rungwise.index.stores.vector_files import (
    damaged,
    digest_of_vectors,
    open_vectors,
    read_description,
    read_lines,
    write_description,
    write_lines,
)
from rungwise.similarity import AnySimilarity

DESCRIPTION = "store.json"
FORMAT = "rungwise-exact-store"
VERSION = 1

_FILE = re.compile(r"(vectors|rows)-(\d+)\.(npy|jsonl)")


@dataclass(frozen=True)
class SegmentEntry:
    """What ``store.json`` says of a part.

    Attributes:
        number: Of its files, ``vectors-NUMBER.npy`` and ``rows-NUMBER.jsonl``.
        rows: How many it holds.
        deleted: Positions of those that no longer count.
        vectors_sha256: Of the numbers in the file of vectors.
        rows_sha256: Of the file of rows.

    >>> SegmentEntry(3, rows=2, deleted=(1,)).number
    3
    """

    __pydantic_config__ = STRICT

    number: int
    rows: int
    deleted: tuple[int, ...] = ()
    vectors_sha256: str = ""
    rows_sha256: str = ""


@dataclass(frozen=True)
class SegmentsDescription:
    """What ``store.json`` says.

    Attributes:
        dimension: D.
        similarity: Of queries and rows.
        side: Which side of it the rows are.
        parts: In order of rows.
        following: Number of the next part.
        identity: Of the store: differs from that of every other, also of one that was in this folder before.
        format: Always :data:`FORMAT`.
        version: Of the layout of the folder.

    >>> from rungwise.similarity import Cosine
    >>> SegmentsDescription(2, Cosine(), "image", parts=()).format
    'rungwise-exact-store'
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
    """One state of a store: what its description says, and the rows.

    Attributes:
        description: What ``store.json`` says.
        snapshot: The parts that it names.
    """

    description: SegmentsDescription
    snapshot: ExactSnapshot


def read_state(folder: Path, known: State | None = None, *, all_vectors: bool = False) -> State:
    """The state of a store now; parts that are known from a state before are not read again.

    Args:
        folder: Of the store.
        known: A state before.
        all_vectors: Look at the numbers of every part, also where its file is larger than the limit ``checked_bytes``
            (see :class:`rungwise.core.limits.Limits`).

    Raises:
        UserError: If there is no store, or it is damaged or was altered.
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
    """Open the files of a part, and look at its numbers if asked to."""
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

    Raises:
        UserError: If a record holds what JSON cannot.
        OSError: If the disk is full.
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
    """What ``store.json`` says of a part.

    >>> entry_of(Segment(3, ("a",), np.zeros((1, 2), np.float32), ({},))).rows
    1
    """
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
    """Refuse a folder without a store, in which nothing shall be made.

    Raises:
        UserError: If there is none.

    >>> require_store(Path("nowhere"))
    Traceback (most recent call last):
    rungwise.core.errors.UserError: nowhere: no store here; make one first
    """
    if not (folder / DESCRIPTION).is_file():
        raise UserError(f"{folder}: no store here; make one first")


def read_store_description(folder: Path) -> SegmentsDescription:
    """What ``store.json`` says.

    Raises:
        UserError: If it is missing, damaged, or was altered.
    """
    path = folder / DESCRIPTION
    try:
        stored = read_description(path, FORMAT, VERSION)
    except MissingFileError:
        raise UserError(f"{folder}: no store here ({DESCRIPTION} is missing); build the index again") from None
    return from_plain(SegmentsDescription, stored, str(path))


def write_store_description(folder: Path, description: SegmentsDescription) -> None:
    """Write ``store.json``: from now on, what it says is the store.

    Raises:
        UserError: If the disk is full or the folder may not be written.
    """
    sync_folder(folder)  # the files of new parts must be there before anything names them
    write_description(folder / DESCRIPTION, to_plain(description))


def _files(folder: Path, number: int) -> tuple[Path, Path]:
    return folder / f"vectors-{number}.npy", folder / f"rows-{number}.jsonl"
