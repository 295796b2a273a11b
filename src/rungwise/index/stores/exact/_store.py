"""The exact store: a folder of memory-mapped vectors, searched without approximation by one process or many.

Rows are written in parts, each a file of vectors and a file of ids and records, which are never changed. The file
``store.json`` names the parts and the deleted rows. It is replaced in one step once the new parts are on the disk, so
that a process which dies, or a disk which is full, leaves the store as it was. A process that has the store open keeps
the state it was opened with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core import UserError
from rungwise.core.disk import explained, make_folder
from rungwise.core.disk.locks import writing_alone
from rungwise.index.filters import Where
from rungwise.index.stores._base import (
    ROWS_AT_ONCE,
    WORDS,
    LabelledVector,
    Metric,
    Record,
    Row,
    Side,
    Store,
    StoreBatch,
    StoreFacts,
    StoreHits,
    StoreSpace,
    WordHits,
    check_k,
    checked_queries,
    checked_rows,
)
from rungwise.index.stores._bm25 import word_set
from rungwise.index.stores._scan import compare_all
from rungwise.index.stores.exact._segments import (
    DESCRIPTION,
    SegmentsDescription,
    State,
    clear,
    entry_of,
    read_state,
    require_store,
    write_part,
    write_store_description,
)
from rungwise.index.stores.exact._snapshot import ExactSnapshot, Segment
from rungwise.similarity import Similarity


class ExactStore(Store):
    """A :class:`rungwise.index.Store` in a folder, made with :meth:`create` and opened with :meth:`open`.

    Every candidate is compared, in one pass; scores of rows do not depend on how the rows are divided into parts. One
    process writes at a time and others wait; any number may read meanwhile. A search that runs while the store is
    written to keeps the snapshot with which it began.

    Attributes:
        folder: Folder of the store.
        snapshot: Rows as they were when the store was last written, opened or refreshed here.

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

    def __init__(self, folder: Path, state: State) -> None:
        self.folder, self.snapshot, self._description = folder, state.snapshot, state.description
        self.dimension = state.description.dimension
        self.similarity, self.side = state.description.similarity, state.description.side
        self.identity = state.description.identity

    @classmethod
    def create(cls, folder: Path, dimension: int, similarity: Similarity, side: Side = "image") -> Self:
        """Make an empty store, and its folder with its parents.

        Raises:
            UserError: If a store stands there already, or the place cannot be written.
        """
        folder = Path(folder)
        if (folder / DESCRIPTION).exists():
            raise UserError(f"{folder}: a store stands here already; open it, or choose another place")
        description = SegmentsDescription(dimension, similarity, side, (), identity=uuid4().hex)  # type: ignore[arg-type]  # a union
        with explained(folder):
            make_folder(folder)
            write_store_description(folder, description)
        return cls(folder, State(description, ExactSnapshot(dimension)))

    @classmethod
    def open(cls, folder: Path, *, all_vectors: bool = False) -> Self:
        """Open a store. The opened state stays as it is, whatever others do to the folder meanwhile.

        All checksums are compared, except those of vectors in files that are larger than the limit ``checked_bytes``
        (see :class:`rungwise.core.Limits`), which ``all_vectors`` adds. A damaged or altered store is refused.
        """
        folder = Path(folder)
        return cls(folder, read_state(folder, all_vectors=all_vectors))

    def search(
        self,
        vectors: ArrayLike,
        k: int = 10,
        where: Where | None = None,
        *,
        metric: Metric | None = None,
        exact: bool = False,
    ) -> StoreHits:
        """Find the k rows most alike to each query; exact in any case, whatever the similarity."""
        queries, snapshot = checked_queries(vectors, self.dimension, k), self.snapshot
        kept = snapshot.kept(where)
        positions, scores = compare_all(snapshot, queries, k, self.similarity, self.side, metric, kept)
        return StoreHits(tuple(snapshot.ids_at(row) for row in positions.tolist()), tuple(scores))

    def find_words(self, words: str, k: int = 10, where: Where | None = None) -> WordHits:
        """Find rows by words; the rarity of a word is that in all rows, whatever the filter."""
        check_k(k)
        snapshot, where = self.snapshot, where or Where()

        def fits(one: str) -> bool:
            part, row = snapshot.at(snapshot.positions[one])
            return where.holds(one, part.records[row])

        ids, scores = snapshot.words.best(words, k, fits if where.conditions or where.without else None)
        texts = (row.record.get(WORDS, "") for row in self.get(ids).values())
        return WordHits((ids,), (scores,), tuple(map(word_set, texts)))

    def get(self, ids: Sequence[str]) -> dict[str, Row]:
        """The rows with these ids, their vectors copied from the memory-mapped files."""
        snapshot, rows = self.snapshot, {}
        for one in ids:
            if one in snapshot.positions:
                part, row = snapshot.at(snapshot.positions[one])
                # A row of the plain array: one of a memory-mapped array costs ten times as much.
                rows[one] = Row(np.asarray(part.vectors)[row].copy(), part.records[row])
        return rows

    def labelled(self, ids: Sequence[str], column: str) -> dict[str, LabelledVector]:
        """Vectors and texts of a column; the vectors are not copied."""
        snapshot, found = self.snapshot, {}
        plain = [np.asarray(part.vectors) for part in snapshot.parts]
        positions, parts = snapshot.positions, snapshot.parts
        is_one = len(parts) == 1
        for one in ids:
            if (position := positions.get(one)) is not None:
                number, row = (0, position) if is_one else snapshot.place(position)
                label = parts[number].records[row].get(column)
                found[one] = LabelledVector(plain[number][row], label if isinstance(label, str) else None)
        return found

    def count(self, where: Where | None = None) -> int:
        """Number of rows, or of those that fulfil ``where``."""
        kept = self.snapshot.kept(where)
        return len(self.snapshot) if kept is None else int(kept.sum())

    def records(self, where: Where | None = None) -> Iterator[tuple[str, Record]]:
        """Id and record of every row, or of those that fulfil ``where``, in order."""
        rows = self.snapshot.records()
        return rows if where is None else ((one, record) for one, record in rows if where.holds(one, record))

    def ids(self) -> Iterator[str]:
        """Ids of all rows, in order; no record is read."""
        return iter(self.snapshot.positions)

    def rows(self) -> Iterator[StoreBatch]:
        """All rows of the state that is open, in order."""
        return _rows_of(self.snapshot.parts)

    def space(self) -> StoreSpace:
        """Bytes of the files of the store."""
        return StoreSpace(sum(one.stat().st_size for one in self.folder.iterdir() if one.is_file()))

    def newest(
        self, count: int, offset: int = 0, where: Where | None = None, *, by: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Ids of the newest rows; their order is found once for each state of the store."""
        snapshot = self.snapshot
        order, kept = snapshot.newest(tuple(by)), snapshot.kept(where)
        passing = order if kept is None else order[kept[order]]
        return snapshot.ids_at(passing[offset : offset + count].tolist())

    def about(self) -> StoreFacts:
        """Say that every row is compared."""
        return StoreFacts("exact", exact=True, why="every row is compared, from a memory-mapped file")

    def verified(self) -> str:
        """Check every row, and name the number of parts."""
        return f"{super().verified()} in {len(self.snapshot.parts)} parts: ids, finite numbers"

    def verified_files(self) -> str:
        """Name the files, which were compared when the store was opened with ``all_vectors``."""
        return f"{DESCRIPTION} and {2 * len(self.snapshot.parts)} files, each as it was written"

    def refresh(self) -> None:
        """Read the newest state; parts that are known are not read again."""
        state = read_state(self.folder, State(self._description, self.snapshot))
        self._description, self.snapshot = state.description, state.snapshot

    def upsert(self, ids: Sequence[str], vectors: ArrayLike, records: Sequence[Record] | None = None) -> None:
        """Insert or replace rows, written as a part of their own."""
        self.upsert_batches([StoreBatch(ids, vectors, records)])

    def upsert_batches(self, batches: Iterable[StoreBatch]) -> None:
        """Insert or replace rows; all batches appear at once, and no id may stand twice in them."""
        with self._writing():
            new = write_part(
                self.folder,
                self._description.following,
                self.dimension,
                _refusing_doubles(batches, self.dimension),
            )
            if new.ids:
                self._commit((*self.snapshot.without(new.ids).parts, new), new.number + 1)

    def delete(self, ids: Sequence[str]) -> int:
        """Delete rows by a new ``store.json``; gives the number of rows deleted."""
        with self._writing():
            after, before = self.snapshot.without(ids), self.count()
            if gone := before - sum(part.live for part in after.parts):
                self._commit(after.parts, self._description.following)
        return gone

    def compact(self) -> None:
        """Write all rows anew as one part, which frees the space of deleted ones."""
        with self._writing():
            if len(self.snapshot.parts) > 1 or any(part.deleted for part in self.snapshot.parts):
                self._commit(self.snapshot.parts, self._description.following, merge_from=0)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the lock of those that write, start from the newest state, and clear away what is left unfinished."""
        require_store(self.folder)
        with writing_alone(self.folder):
            self.refresh()
            clear(self.folder, self._description)
            try:
                yield
            finally:
                # The disk alone knows whether a change that failed has happened. What cannot be cleared away now is
                # cleared by the next who writes.
                with suppress(OSError, UserError):
                    self.refresh()
                    clear(self.folder, self._description)

    def _commit(self, parts: Sequence[Segment], following: int, merge_from: int | None = None) -> None:
        """Make these parts the store, some of them merged."""
        parts = [part for part in parts if part.live]
        first = _first_to_merge(parts) if merge_from is None else merge_from
        if first < len(parts):
            merged = write_part(self.folder, following, self.dimension, _rows_of(parts[first:]))
            parts, following = [*parts[:first], merged], following + 1
        description = replace(self._description, parts=tuple(map(entry_of, parts)), following=following)
        write_store_description(self.folder, description)
        self._description, self.snapshot = description, ExactSnapshot(self.dimension, tuple(parts))


def _first_to_merge(parts: Sequence[Segment]) -> int:
    """Index of the first part that is merged with all after it; the number of parts if none are.

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


def _rows_of(parts: Iterable[Segment]) -> Iterator[StoreBatch]:
    """The rows that count, some thousands at a time."""
    for part in parts:
        rows = part.rows()
        for start in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[start : start + ROWS_AT_ONCE]
            chosen = some.tolist()
            yield StoreBatch(
                [part.ids[row] for row in chosen], part.vectors[some], [part.records[row] for row in chosen]
            )


def _refusing_doubles(batches: Iterable[StoreBatch], dimension: int) -> Iterator[StoreBatch]:
    seen: set[str] = set()
    for batch in batches:
        checked = StoreBatch(*checked_rows(batch, dimension))
        if double := next((one for one in checked.ids if one in seen), None):
            raise UserError(f"id {double!r} stands twice; give every row an id of its own")
        seen.update(checked.ids)
        yield checked
