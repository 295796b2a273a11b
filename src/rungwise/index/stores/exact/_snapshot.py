"""One state of an exact store in memory: its parts, and which of their rows count."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rungwise.index.filters import Columns, Where
from rungwise.index.stores._base import WORDS, Record, Vectors, date_of, newest_first
from rungwise.index.stores._bm25 import WordIndex
from rungwise.index.stores._scan import inverse_lengths

_ROWS_AT_ONCE = 4096
_HELD_ELEMENTS = 16 << 20
"""Numbers in vectors of several parts that are kept in memory side by side, in place of a copy at every search."""
_NONE = np.empty(0, np.float32)


@dataclass(frozen=True)
class Segment:
    """Rows that were written together. They never change, but may be deleted.

    Attributes:
        number: Number of the part's files.
        ids: (rows,) ids.
        vectors: (rows, D), usually memory-mapped.
        records: (rows,) records.
        deleted: Positions of rows that no longer count.
        vectors_sha256: Checksum of the numbers in the file of vectors; empty where there is none.
        rows_sha256: Checksum of the file of ids and records; empty where there is none.
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
        """Number of rows that count."""
        return len(self.ids) - len(self.deleted)

    @cached_property
    def columns(self) -> Columns:
        """Columns of the records for filters."""
        return Columns(self.records)

    @cached_property
    def inverse_lengths(self) -> Vectors:
        """(rows,) 1 / length of each vector."""
        blocks = range(0, len(self.ids), _ROWS_AT_ONCE)
        return np.concatenate([inverse_lengths(self.vectors[at : at + _ROWS_AT_ONCE]) for at in blocks] or [_NONE])

    def rows(self) -> NDArray[np.int64]:
        """(live,) positions of the rows that count."""
        kept = np.ones(len(self.ids), dtype=bool)
        kept[list(self.deleted)] = False
        return np.flatnonzero(kept)


@dataclass(frozen=True)
class ExactSnapshot:
    """Parts one after the other; an id counts in one of them only.

    A position counts through all of their rows, deleted ones included.
    """

    dimension: int
    parts: tuple[Segment, ...] = ()
    _starts: list[int] = field(init=False, repr=False)
    _newest: dict[tuple[str, ...], NDArray[np.int64]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        sizes = [len(part.ids) for part in self.parts]
        object.__setattr__(self, "_starts", np.cumsum([0, *sizes]).tolist())

    @cached_property
    def positions(self) -> dict[str, int]:
        """Position of each id, in order of rows."""
        return {
            part.ids[row]: start + row
            for part, start in zip(self.parts, self._starts, strict=False)
            for row in part.rows().tolist()
        }

    def __len__(self) -> int:
        """Number of positions."""
        return self._starts[-1]

    @property
    def shape(self) -> tuple[int, int]:
        """(positions, D)."""
        return len(self), self.dimension

    def __getitem__(self, block: slice) -> Vectors:
        """Vectors at consecutive positions; copied only where parts meet, and where there are few rows once for all."""
        pieces = []
        for part, start in zip(self.parts, self._starts, strict=False):
            low, high = max(block.start - start, 0), min(block.stop - start, len(part.ids))
            if low < high:
                pieces.append(part.vectors[low:high])
        if len(pieces) == 1:
            return pieces[0]
        if pieces and len(self) * self.dimension <= _HELD_ELEMENTS:
            return self._whole[block]
        return np.concatenate(pieces) if pieces else np.empty((0, self.dimension), np.float32)

    @cached_property
    def _whole(self) -> Vectors:
        return np.concatenate([part.vectors for part in self.parts])

    def at(self, position: int) -> tuple[Segment, int]:
        """The part that holds a position, and the row in it."""
        number, row = self.place(position)
        return self.parts[number], row

    def place(self, position: int) -> tuple[int, int]:
        """The number of the part that holds a position, and the row in it."""
        number = bisect_right(self._starts, position) - 1
        return number, position - self._starts[number]

    def ids_at(self, positions: Sequence[int]) -> tuple[str, ...]:
        """Ids at positions."""
        if len(self.parts) == 1:  # as after every compaction
            return tuple(map(self.parts[0].ids.__getitem__, positions))
        return tuple(part.ids[row] for part, row in map(self.at, positions))

    def gathered(self, positions: NDArray[np.int64]) -> Vectors:
        """(positions, D) vectors at positions that rise."""
        edges = np.searchsorted(positions, self._starts)
        pieces = [
            part.vectors[positions[low:high] - start]
            for part, start, low, high in zip(self.parts, self._starts, edges, edges[1:], strict=False)
            if low < high
        ]
        return np.concatenate(pieces) if pieces else np.empty((0, self.dimension), np.float32)

    @cached_property
    def inverse_lengths(self) -> Vectors:
        """(positions,) 1 / length of each vector; 0 for a vector of zeros."""
        pieces = [part.inverse_lengths for part in self.parts]
        return np.concatenate(pieces) if pieces else np.empty(0, np.float32)

    def kept(self, where: Where | None) -> NDArray[np.bool_] | None:
        """(positions,) whether a row counts and passes a filter; None if all do."""
        deleted = any(part.deleted for part in self.parts)
        if not deleted and (where is None or not (where.conditions or where.without)):
            return None
        pieces = []
        for part in self.parts:
            passing = (
                part.columns.holding(where.conditions) if where and where.conditions else np.ones(len(part.ids), bool)
            )
            passing[list(part.deleted)] = False
            pieces.append(passing)
        kept = np.concatenate(pieces) if pieces else np.empty(0, bool)
        kept[[self.positions[one] for one in (where.without if where else ()) if one in self.positions]] = False
        return kept

    def records(self) -> Iterator[tuple[str, Record]]:
        """Id and record of every row that counts, in order."""
        for part in self.parts:
            for row in part.rows().tolist():
                yield part.ids[row], part.records[row]

    def newest(self, by: tuple[str, ...]) -> NDArray[np.int64]:
        """(rows,) positions of the rows that count, the newest first; found once for each choice of columns."""
        if by not in self._newest:
            rows = zip(self.positions.items(), self.records(), strict=True)
            dated = (((one, position), date_of(record, by)) for (one, position), (_, record) in rows)
            found = np.array([position for (_, position), _ in newest_first(dated)], np.int64)
            self._newest[by] = found
        return self._newest[by]

    @cached_property
    def words(self) -> WordIndex:
        """Index of the words of all rows."""
        texts = ((one, record.get(WORDS)) for one, record in self.records())
        return WordIndex((one, text) for one, text in texts if isinstance(text, str))

    def without(self, ids: Iterable[str]) -> ExactSnapshot:
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
        return ExactSnapshot(self.dimension, tuple(parts))
