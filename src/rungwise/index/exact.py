"""The exact store: a folder of memory-mapped vectors, searched without approximation by one process or many.

Rows are written in parts, each a file of vectors and a file of ids and records, which are never changed. The file
``store.json`` names the parts and the deleted rows. It is replaced in one step once the new parts are on the disk, so
that a process which dies, or a disk which is full, leaves the store as it was. A process that has the store open keeps
the state it was opened with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core.configuration import STRICT, from_plain, to_plain
from rungwise.core.errors import UserError
from rungwise.core.files import replacing, sync_file, sync_folder
from rungwise.core.locks import writing_alone
from rungwise.core.npy import NpyWriter
from rungwise.index.files import damaged, open_vectors, read_description, read_lines, write_lines
from rungwise.index.snapshot import Part, Snapshot, SnapshotStore
from rungwise.index.store import Batch, Record, Side, checked_rows
from rungwise.similarity import AnySimilarity, Similarity

DESCRIPTION = "store.json"
FORMAT = "rungwise-exact-store"
VERSION = 1

_ROWS_AT_ONCE = 4096
_PART_FILE = re.compile(r"(vectors|rows)-(\d+)\.(npy|jsonl)")


@dataclass(frozen=True)
class PartEntry:
    """What ``store.json`` says of a part.

    Attributes:
        number: Of its files, ``vectors-NUMBER.npy`` and ``rows-NUMBER.jsonl``.
        rows: How many it holds.
        deleted: Positions of those that no longer count.

    >>> PartEntry(3, rows=2, deleted=(1,)).number
    3
    """

    __pydantic_config__ = STRICT

    number: int
    rows: int
    deleted: tuple[int, ...] = ()


@dataclass(frozen=True)
class Description:
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
    >>> Description(2, Cosine(), "image").format
    'rungwise-exact-store'
    """

    __pydantic_config__ = STRICT

    dimension: int
    similarity: AnySimilarity
    side: Side
    parts: tuple[PartEntry, ...] = field(default=())
    following: int = 0
    identity: str = ""
    format: str = FORMAT
    version: int = VERSION


class ExactStore(SnapshotStore):
    """A store in a folder; see :class:`rungwise.index.Store` for what it does.

    One process writes at a time and others wait; any number may read meanwhile. Make one with :meth:`create`, open one
    with :meth:`open`.

    Attributes:
        folder: Where it is.

    >>> import tempfile
    >>> from rungwise.similarity import Cosine
    >>> store = ExactStore.create(Path(tempfile.mkdtemp()) / "pets", 2, Cosine())
    >>> store.upsert(["dog", "cat", "wolf"], [[1, 0], [0, 1], [0.8, 0.6]], [{"legs": 4}] * 3)
    >>> found = store.search([[1, 0]], k=2)
    >>> found.ids, found.scores[0].tolist()
    ((('dog', 'wolf'),), [1.0, 0.800000...])
    >>> store.delete(["dog", "fox"]), store.count()
    (1, 2)
    >>> ExactStore.open(store.folder).get(["cat"])["cat"].record
    {'legs': 4}
    """

    def __init__(self, folder: Path, description: Description, snapshot: Snapshot) -> None:
        super().__init__(snapshot, description.similarity, description.side)
        self.folder = folder
        self._description = description

    @classmethod
    def create(cls, folder: Path, dimension: int, similarity: Similarity, side: Side = "image") -> Self:
        """Make an empty store.

        Args:
            folder: Made, together with its parents.
            dimension: D, the length of a vector.
            similarity: How queries and rows are compared.
            side: Which side of it the rows are.

        Raises:
            UserError: If a store stands there already, or the place cannot be written.
        """
        folder = Path(folder)
        if (folder / DESCRIPTION).exists():
            raise UserError(f"{folder}: a store stands here already; open it, or choose another place")
        description = Description(dimension, similarity, side, identity=uuid4().hex)  # type: ignore[arg-type]  # a union
        _write_description(folder, description)
        return cls(folder, description, Snapshot(dimension))

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a store; vectors stay on the disk until they are needed.

        Raises:
            UserError: If there is none, or it is damaged.
        """
        folder = Path(folder)
        return cls(folder, *_read(folder))

    def refresh(self) -> None:
        """See :meth:`Store.refresh`."""
        self._description, self.snapshot = _read(self.folder, self._description, self.snapshot)

    def upsert(self, ids: Sequence[str], vectors: ArrayLike, records: Sequence[Record] | None = None) -> None:
        """See :meth:`Store.upsert`."""
        self.upsert_batches([Batch(ids, vectors, records)])

    def upsert_batches(self, batches: Iterable[Batch]) -> None:
        """See :meth:`Store.upsert_batches`; all batches appear at once, and no other process writes meanwhile.

        Raises:
            UserError: As :meth:`upsert`, where an id may not stand in two batches either.
        """
        with self._writing():
            number = self._description.following
            new = self._write_part(number, _refusing_doubles(batches, self.dimension))
            if new.ids:
                self._commit((*self.snapshot.without(new.ids).parts, new), number + 1)

    def delete(self, ids: Sequence[str]) -> int:
        """See :meth:`Store.delete`."""
        with self._writing():
            after, before = self.snapshot.without(ids), self.count()
            if gone := before - sum(part.live for part in after.parts):
                self._commit(after.parts, self._description.following)
        return gone

    def compact(self) -> None:
        """Write all rows anew as one part, which frees the place of deleted ones."""
        with self._writing():
            if len(self.snapshot.parts) > 1 or any(part.deleted for part in self.snapshot.parts):
                self._commit(self.snapshot.parts, self._description.following, merge_from=0)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Alone among those that write, from the newest state; what is left unfinished is cleared away."""
        _require_store(self.folder)
        with writing_alone(self.folder):
            self.refresh()
            self._clear()
            try:
                yield
            finally:
                # The disk alone knows whether a change that failed has happened. What cannot be cleared away now is
                # cleared by the next who writes.
                with suppress(OSError, UserError):
                    self.refresh()
                    self._clear()

    def _commit(self, parts: Sequence[Part], following: int, merge_from: int | None = None) -> None:
        """Make these parts the store, some of them merged."""
        parts = [part for part in parts if part.live]
        first = _first_to_merge(parts) if merge_from is None else merge_from
        if first < len(parts):
            merged = self._write_part(following, _rows_of(parts[first:]))
            parts, following = [*parts[:first], merged], following + 1
        entries = tuple(PartEntry(part.number, len(part.ids), tuple(sorted(part.deleted))) for part in parts)
        old = self._description
        description = replace(old, parts=entries, following=following)
        _write_description(self.folder, description)
        self._description, self.snapshot = description, Snapshot(self.dimension, tuple(parts))

    def _write_part(self, number: int, batches: Iterable[Batch]) -> Part:
        """Write the files of a part, which belongs to nothing yet."""
        vectors, rows = _files(self.folder, number)
        ids: list[str] = []
        records: list[Record] = []
        with NpyWriter(vectors, (self.dimension,), np.float32) as writer:
            for batch in batches:
                writer.append(np.asarray(batch.vectors))
                ids.extend(batch.ids)
                records.extend(batch.records or ())
        write_lines(rows, ({"id": one, "record": record} for one, record in zip(ids, records, strict=True)))
        for file in (vectors, rows):
            sync_file(file)
        return _read_part(self.folder, PartEntry(number, len(ids)), self.dimension)

    def _clear(self) -> None:
        """Remove the files that belong to no part: of a process that died, of a refused write, or merged ones."""
        kept = {part.number for part in self._description.parts}
        for file in self.folder.iterdir():
            named = _PART_FILE.fullmatch(file.name)
            if named and int(named[2]) not in kept:
                file.unlink(missing_ok=True)


def _first_to_merge(parts: Sequence[Part]) -> int:
    """From where on parts are merged into one; their number if none are.

    A part stays if it is more than twice as large as all after it together, and no more than half of it is deleted. So
    there are about log(rows) parts, and a row is written about log(rows) times in the life of a store.
    """
    after = 0
    first = len(parts)
    for place in reversed(range(len(parts))):
        part = parts[place]
        if 0 < part.live <= 2 * after or len(part.deleted) > part.live:
            first = place
        after += part.live
    return first


def _rows_of(parts: Iterable[Part]) -> Iterator[Batch]:
    """The rows that count, some thousands at a time."""
    for part in parts:
        rows = part.rows()
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            some = rows[start : start + _ROWS_AT_ONCE]
            chosen = some.tolist()
            yield Batch([part.ids[row] for row in chosen], part.vectors[some], [part.records[row] for row in chosen])


def _refusing_doubles(batches: Iterable[Batch], dimension: int) -> Iterator[Batch]:
    seen: set[str] = set()
    for batch in batches:
        checked = Batch(*checked_rows(batch, dimension))
        if double := next((one for one in checked.ids if one in seen), None):
            raise UserError(f"id {double!r} stands twice; give every row an id of its own")
        seen.update(checked.ids)
        yield checked


def _read(
    folder: Path, before: Description | None = None, known: Snapshot | None = None
) -> tuple[Description, Snapshot]:
    """The state of a store now; parts that are known from a state before are not read again."""
    while True:
        description = _read_description(folder)
        same = before is not None and known is not None and before.identity == description.identity
        parts = {part.number: part for part in known.parts} if same and known is not None else {}
        try:
            return description, _snapshot(folder, description, parts)
        except UserError:
            # A part that another process has merged meanwhile is gone, and the description names its successor.
            if _read_description(folder) == description:
                raise


def _snapshot(folder: Path, description: Description, known: Mapping[int, Part]) -> Snapshot:
    parts = []
    for entry in description.parts:
        part = known.get(entry.number) or _read_part(folder, entry, description.dimension)
        if entry.deleted and not 0 <= min(entry.deleted) <= max(entry.deleted) < entry.rows:
            raise damaged(folder / DESCRIPTION, f"deletes a row of {entry.rows} that is not there")
        parts.append(Part(part.number, part.ids, part.vectors, part.records, frozenset(entry.deleted)))
    return Snapshot(description.dimension, tuple(parts))


def _read_part(folder: Path, entry: PartEntry, dimension: int) -> Part:
    vectors, rows = _files(folder, entry.number)
    lines = list(read_lines(rows))
    if len(lines) != entry.rows:
        raise damaged(rows, f"{len(lines)} rows where {entry.rows} are expected")
    if odd := [
        line for line in lines if not isinstance(line.get("id"), str) or not isinstance(line.get("record"), dict)
    ]:
        raise damaged(rows, f"a row lacks id or record: {odd[0]!r}"[:200])
    return Part(
        entry.number,
        tuple(line["id"] for line in lines),
        open_vectors(vectors, entry.rows, dimension),
        tuple(line["record"] for line in lines),
    )


def _files(folder: Path, number: int) -> tuple[Path, Path]:
    return folder / f"vectors-{number}.npy", folder / f"rows-{number}.jsonl"


def _require_store(folder: Path) -> None:
    if not (folder / DESCRIPTION).is_file():
        raise UserError(f"{folder}: no store here; make one first")


def _read_description(folder: Path) -> Description:
    path = folder / DESCRIPTION
    try:
        stored = read_description(path, FORMAT, VERSION)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{folder}: no store here ({DESCRIPTION} is missing); build the index again") from None
    return from_plain(Description, stored, str(path))


def _write_description(folder: Path, description: Description) -> None:
    with replacing(folder / DESCRIPTION) as draft:
        sync_folder(folder)  # the files of new parts must be there before anything names them
        draft.write_text(json.dumps(to_plain(description)) + "\n", encoding="utf-8")
