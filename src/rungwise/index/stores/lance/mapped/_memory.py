"""Rows of a LanceDB table that are all compared: held in memory where they are few, else read block by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from rungwise.core.output import short_repr
from rungwise.index.filters import Where
from rungwise.index.stores._base import LabelledVector, Vectors
from rungwise.index.stores._engine_rows import ID, LENGTH, SEAL_OF_VECTOR, SEQ, VECTOR
from rungwise.index.stores._scan import inverse_lengths, inverted
from rungwise.index.stores.lance._table_rows import TableRows, texts_of

_SPARE = 256


@dataclass(frozen=True)
class Listed:
    """Rows of one version of a table, in order of rows.

    Attributes:
        places: (rows,) places in the order, rising.
        seals: (rows,) checksums of ids with their vectors.
        numbers: (rows,) the engine's numbers.
    """

    places: NDArray[np.int64]
    seals: NDArray[np.int64]
    numbers: NDArray[np.int64]

    __repr__ = short_repr

    @classmethod
    def of(cls, rows: TableRows) -> Listed:
        """All rows of a version."""
        listed = rows.of(True, [SEQ, SEAL_OF_VECTOR])
        columns = [listed[name].to_numpy() for name in (SEQ, SEAL_OF_VECTOR, "_rowid")]
        order = np.argsort(columns[0], kind="stable")
        return cls(*(column.astype(np.int64)[order] for column in columns))

    def only(self, chosen: NDArray[np.bool_]) -> Listed:
        """Some of the rows, of a mask over them."""
        return Listed(self.places[chosen], self.seals[chosen], self.numbers[chosen])


class Held:
    """Rows of one version of a table in memory, in their order; a :class:`rungwise.index.stores._scan.VectorRows`.

    Args:
        rows: All rows of the version.
        before: Rows in memory of an earlier version; only what it does not hold is read.
        listed: The rows that are held; all if None.

    Attributes:
        shape: (rows, D).
        keys: (rows,) ids in the engine's form.
        places: (rows,) places in the order of rows, rising.
    """

    def __init__(self, rows: TableRows, before: Held | None = None, listed: Listed | None = None) -> None:
        self._rows, some = rows, listed is not None
        listed = listed or Listed.of(rows)
        self.places, self._seals = listed.places, listed.seals
        self.shape = (len(listed.places), rows.description.dimension)
        at, known = self._known(before)
        room = before._room if before is not None else None
        if room is not None and before is not None and known == len(before) and room.take(known, len(listed.places)):
            self._room: _Room = room
        else:
            self._room = _Room(self.shape)
            if room is not None:
                # Straight to its place: a copy between would be as large as the table.
                np.take(room.vectors, at[:known], axis=0, out=self._room.vectors[:known], mode="clip")
                self._room.keys[:known] = room.keys[at[:known]]
        rows_held = slice(len(listed.places))
        self._vectors, self.keys = self._room.vectors[rows_held], self._room.keys[rows_held]
        self._read(known, listed.numbers, all_rows=not some and not known)
        self._passing = lru_cache(maxsize=32)(self._looked_up)
        self._labels = lru_cache(maxsize=2)(self._read_labels)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, block: slice) -> Vectors:
        """Vectors at consecutive positions."""
        return np.asarray(self._vectors[block])

    def gathered(self, positions: NDArray[np.int64]) -> Vectors:
        """Vectors at positions."""
        return np.asarray(self._vectors[positions])

    @cached_property
    def inverse_lengths(self) -> Vectors:
        """(rows,) 1 / length of each vector."""
        return inverse_lengths(self._vectors)

    def keys_at(self, positions: NDArray[np.int64]) -> list[str]:
        """Ids, in the engine's form, at positions."""
        return list(self.keys[positions])

    @cached_property
    def positions(self) -> dict[str, int]:
        """Position of each id, in the engine's form."""
        return {key: at for at, key in enumerate(self.keys)}

    def labelled(self, keys: Sequence[str], entry: str) -> dict[str, LabelledVector]:
        """Vectors and texts of an entry of the rows with ids in the engine's form; the texts are read once."""
        there = [key for key in keys if key in self.positions]
        at = np.array([self.positions[key] for key in there], np.int64)
        labels, vectors = self._labels(entry)[at].tolist(), self.gathered(at)
        return {key: LabelledVector(vectors[place], labels[place]) for place, key in enumerate(there)}

    def kept(self, where: Where | None, without: frozenset[str]) -> NDArray[np.bool_] | None:
        """(rows,) whether a row passes a filter and is none of these ids; None if all are kept."""
        conditions = where.conditions if where else ()
        left = [self.positions[key] for key in without if key in self.positions]
        if not conditions and not left:
            return None
        kept = self._passing(Where(conditions)).copy() if conditions else np.ones(len(self), bool)
        kept[left] = False
        return kept

    def _read_labels(self, entry: str) -> NDArray[np.object_]:
        labels = np.full(len(self), None, object)
        column = self._rows.text_column(entry)
        if column is not None:
            found = self._rows.of(True, [SEQ, column])
            labels[np.searchsorted(self.places, found[SEQ].to_numpy())] = texts_of(found[column])
        return labels

    def _looked_up(self, where: Where) -> NDArray[np.bool_]:
        return np.isin(self.places, self._rows.places(where), assume_unique=True)

    def _known(self, before: Held | None) -> tuple[NDArray[np.int64], int]:
        """Positions of the rows before, and the number of first rows that are known; new rows stand last."""
        if before is None or not len(before):
            return np.empty(0, np.int64), 0
        at = np.minimum(np.searchsorted(before.places, self.places), len(before) - 1)
        # A place in the order may be taken anew after its row was deleted; the checksum tells.
        other = (before.places[at] != self.places) | (before._seals[at] != self._seals)
        return at, int(other.argmax()) if other.any() else len(other)

    def _read(self, known: int, numbers: NDArray[np.int64], *, all_rows: bool) -> None:
        """Read the rows after the first ``known``; ``all_rows`` if they are all of the table."""
        names = [ID, VECTOR, SEAL_OF_VECTOR]
        found = self._rows.of(True, [*names, SEQ]) if all_rows else self._rows.taken(numbers[known:], names)
        at = np.searchsorted(self.places, found[SEQ].to_numpy())
        self._vectors[at] = self._rows.vectors(found)
        self.keys[at] = found[ID].to_pylist()


class _Room:
    """Memory for rows, and for some more, so that rows which are added later need no copy of all others."""

    def __init__(self, shape: tuple[int, int]) -> None:
        rows = shape[0] + shape[0] // 8 + _SPARE
        self.vectors, self.keys = np.empty((rows, shape[1]), np.float32), np.empty(rows, object)
        self._used, self._door = shape[0], Lock()

    def take(self, used: int, wanted: int) -> bool:
        """Take the room for more rows after those in use; false if there is too little, or others took it."""
        with self._door:
            if self._used != used or not used <= wanted <= len(self.keys):
                return False
            self._used = wanted
            return True


class StreamedTable:
    """Some rows of a table, read from it block by block; a :class:`rungwise.index.stores._scan.VectorRows`.

    ``numbers``, (rows,), are the engine's numbers of the rows, in order of rows.
    """

    def __init__(self, rows: TableRows, numbers: NDArray[np.int64]) -> None:
        self._rows, self._numbers = rows, numbers
        self.shape = (len(numbers), rows.description.dimension)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, block: slice) -> Vectors:
        """Vectors at consecutive positions."""
        return self.gathered(np.arange(len(self))[block])

    def gathered(self, positions: NDArray[np.int64]) -> Vectors:
        """Vectors at positions that rise."""
        found = self._rows.taken(self._numbers[positions], [ID, VECTOR, SEAL_OF_VECTOR])
        return np.asarray(self._rows.vectors(found), np.float32)

    @cached_property
    def inverse_lengths(self) -> Vectors:
        """(rows,) 1 / length of each vector."""
        return inverted(self._rows.taken(self._numbers, [LENGTH])[LENGTH].to_numpy())

    def keys_at(self, positions: NDArray[np.int64]) -> list[str]:
        """Ids, in the engine's form, at positions."""
        rising, back = np.unique(positions, return_inverse=True)
        keys = self._rows.taken(self._numbers[rising], [ID])[ID].to_pylist() if len(rising) else []
        return [keys[at] for at in back.tolist()]
