"""One state of an exact store in memory: its parts, which of their rows count, and the search among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.products import lengths, products
from rungwise.core.topk import Scorer, rank
from rungwise.index.store import (
    WORDS,
    Found,
    Metric,
    Record,
    Row,
    Side,
    Store,
    StoreFacts,
    Vectors,
    check_k,
    checked_queries,
)
from rungwise.index.where import Where
from rungwise.index.words import WordIndex
from rungwise.similarity import Similarity


@dataclass(frozen=True)
class Part:
    """Rows that were written together; never changed, but rows of it may be deleted.

    Attributes:
        number: Of its files.
        ids: (rows,).
        vectors: (rows, D), usually memory-mapped.
        records: (rows,).
        deleted: Positions of rows that no longer count.
        vectors_sha256: Checksum of the numbers in the file of vectors; empty where none was written down.
        rows_sha256: Checksum of the file of ids and records; empty where none was written down.
    """

    number: int
    ids: tuple[str, ...]
    vectors: Vectors
    records: tuple[Record, ...]
    deleted: frozenset[int] = frozenset()
    vectors_sha256: str = ""
    rows_sha256: str = ""

    @property
    def live(self) -> int:
        """How many rows count."""
        return len(self.ids) - len(self.deleted)

    def rows(self) -> NDArray[np.int64]:
        """(live,) positions of the rows that count."""
        kept = np.ones(len(self.ids), dtype=bool)
        kept[list(self.deleted)] = False
        return np.flatnonzero(kept)


@dataclass(frozen=True)
class Snapshot:
    """Parts one after the other. A position counts through all of their rows, deleted ones included.

    Attributes:
        dimension: D.
        parts: Each with its deleted rows; an id counts in one of them only.
    """

    dimension: int
    parts: tuple[Part, ...] = ()
    _starts: list[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        sizes = [len(part.ids) for part in self.parts]
        object.__setattr__(self, "_starts", np.cumsum([0, *sizes]).tolist())

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each id, in order of rows."""
        return {
            part.ids[row]: start + row
            for part, start in zip(self.parts, self._starts, strict=False)
            for row in part.rows().tolist()
        }

    def __len__(self) -> int:
        """How many positions there are."""
        return self._starts[-1]

    @property
    def shape(self) -> tuple[int, int]:
        """(positions, D)."""
        return len(self), self.dimension

    def __getitem__(self, block: slice) -> Vectors:
        """Vectors at consecutive positions; copied only where parts meet."""
        pieces = []
        for part, start in zip(self.parts, self._starts, strict=False):
            low, high = max(block.start - start, 0), min(block.stop - start, len(part.ids))
            if low < high:
                pieces.append(part.vectors[low:high])
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate(pieces) if pieces else np.empty((0, self.dimension), np.float32)

    def at(self, position: int) -> tuple[Part, int]:
        """The part that holds a position, and the row in it."""
        number = int(np.searchsorted(self._starts, position, side="right")) - 1
        return self.parts[number], position - self._starts[number]

    def left_out(self, where: Where | None) -> list[int]:
        """Positions that do not count, or that a filter leaves out."""
        gone = [
            start + row for part, start in zip(self.parts, self._starts, strict=False) for row in sorted(part.deleted)
        ]
        if where is None:
            return gone
        if not where.conditions:
            return gone + [self.positions[one] for one in where.without if one in self.positions]
        return gone + [self.positions[one] for one, record in self.records() if not where.holds(one, record)]

    def records(self) -> Iterator[tuple[str, Record]]:
        """Id and record of every row that counts, in order."""
        for part in self.parts:
            for row in part.rows().tolist():
                yield part.ids[row], part.records[row]

    @cached_property
    def words(self) -> WordIndex:
        """Which rows hold which words."""
        texts = ((one, record.get(WORDS)) for one, record in self.records())
        return WordIndex((one, text) for one, text in texts if isinstance(text, str))

    def without(self, ids: Iterable[str]) -> Snapshot:
        """The snapshot after these rows were deleted."""
        gone: dict[int, set[int]] = {}
        for one in ids:
            if one in self.positions:
                part, row = self.at(self.positions[one])
                gone.setdefault(part.number, set()).add(row)
        parts = [
            replace(part, deleted=part.deleted | gone[part.number]) if part.number in gone else part
            for part in self.parts
        ]
        return Snapshot(self.dimension, tuple(parts))


class SnapshotStore(Store):
    """The reading half of an exact store: every candidate is compared, in one pass.

    Scores of rows do not depend on how the rows are divided into parts. A search that runs while the store is written
    to keeps the snapshot with which it began.
    """

    def __init__(self, snapshot: Snapshot, similarity: Similarity, side: Side) -> None:
        self.dimension = snapshot.dimension
        self.similarity = similarity
        self.side = side
        self.snapshot = snapshot

    def search(
        self,
        vectors: ArrayLike,
        k: int = 10,
        where: Where | None = None,
        *,
        metric: Metric | None = None,
        exact: bool = False,
    ) -> Found:
        """See :meth:`Store.search`; exact in any case, whatever the similarity."""
        queries, snapshot = checked_queries(vectors, self.dimension, k), self.snapshot
        positions, scores = rank(
            snapshot, self._scorer(queries, metric), len(queries), k, exclude=snapshot.left_out(where)
        )
        found = [[snapshot.at(position) for position in row] for row in positions.tolist()]
        return Found(tuple(tuple(part.ids[row] for part, row in hits) for hits in found), tuple(scores))

    def find_words(self, words: str, k: int = 10, where: Where | None = None) -> Found:
        """See :meth:`Store.find_words`; how rare a word is counts in all rows, whatever the filter."""
        check_k(k)
        snapshot = self.snapshot

        def fits(one: str) -> bool:
            part, row = snapshot.at(snapshot.positions[one])
            return where is None or where.holds(one, part.records[row])

        ids, scores = snapshot.words.best(words, k, fits)
        return Found((ids,), (scores,))

    def get(self, ids: Sequence[str]) -> dict[str, Row]:
        """See :meth:`Store.get`."""
        snapshot, rows = self.snapshot, {}
        for one in ids:
            if one in snapshot.positions:
                part, row = snapshot.at(snapshot.positions[one])
                rows[one] = Row(np.array(part.vectors[row]), part.records[row])
        return rows

    def count(self, where: Where | None = None) -> int:
        """See :meth:`Store.count`."""
        return len(self.snapshot) - len(self.snapshot.left_out(where))

    def records(self, where: Where | None = None) -> Iterator[tuple[str, Record]]:
        """See :meth:`Store.records`."""
        rows = self.snapshot.records()
        return rows if where is None else ((one, record) for one, record in rows if where.holds(one, record))

    def about(self) -> StoreFacts:
        """See :meth:`Store.about`."""
        return StoreFacts("exact", exact=True, why="every row is compared, from a memory-mapped file")

    def _scorer(self, queries: Vectors, metric: Metric | None) -> Scorer:
        if metric == "cosine":
            return _cosine(queries)
        if metric == "inner" or self.similarity.product:
            return partial(products, queries)
        if self.side == "image":
            return lambda rows: self.similarity.array(rows, queries).T
        return lambda rows: self.similarity.array(queries, rows)


def _cosine(queries: Vectors) -> Scorer:
    length = np.linalg.norm(queries, axis=1, keepdims=True)
    queries = np.divide(queries, length, out=np.zeros_like(queries), where=length > 0)

    def cosine(rows: Vectors) -> Vectors:
        norms = lengths(rows)
        # A vector of zeros has no direction; its cosine is 0 with everything.
        return np.asarray(products(queries, rows) / np.where(norms > 0, norms, 1), dtype=np.float32)

    return cosine
