"""Rows of a LanceDB table that are all compared: held in memory where they are few, else read block by block."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rungwise.index.lance_rows import ID, LENGTH, SEAL_OF_VECTOR, SEQ, VECTOR
from rungwise.index.scan import inverse_lengths
from rungwise.index.store import Vectors
from rungwise.index.where import Where

if TYPE_CHECKING:
    from rungwise.index.lance_view import View


class Held:
    """All rows of one version of a table, in order of rows; a :class:`rungwise.index.scan.Rows`.

    Args:
        view: The version.
        before: What was held of an earlier version; only other rows are read.

    Attributes:
        view: As given.
        keys: Ids as the engine has them.
        shape: (rows, D).
    """

    def __init__(self, view: View, before: Held | None = None) -> None:
        self.view = view
        listed = view.rows_of(True, [SEQ, SEAL_OF_VECTOR])
        marks = np.stack([listed[name].to_numpy() for name in (SEQ, SEAL_OF_VECTOR)], axis=1)
        order = np.argsort(marks[:, 0], kind="stable")
        self._marks, numbers = marks[order], listed["_rowid"].to_numpy()[order]
        self.shape = (len(order), view.description.dimension)
        self.keys: list[str] = [""] * len(order)
        self._vectors = np.empty(self.shape, np.float32)
        known = {tuple(mark): at for at, mark in enumerate(before._marks.tolist())} if before is not None else {}
        places = np.array([known.get(tuple(mark), -1) for mark in self._marks.tolist()], np.int64)
        if before is not None:
            kept = np.flatnonzero(places >= 0)
            self._vectors[kept] = before._vectors[places[kept]]
            for at in kept.tolist():
                self.keys[at] = before.keys[places[at]]
        self._read(np.flatnonzero(places < 0), numbers)
        self._passing = lru_cache(maxsize=32)(self._looked_up)

    def __len__(self) -> int:
        """How many rows."""
        return len(self.keys)

    def __getitem__(self, block: slice) -> Vectors:
        """Vectors at consecutive positions."""
        return self._vectors[block]

    def gathered(self, positions: NDArray[np.int64]) -> Vectors:
        """Vectors at positions."""
        return np.asarray(self._vectors[positions])

    @cached_property
    def inverse_lengths(self) -> Vectors:
        """(rows,) 1 / length of each vector."""
        return inverse_lengths(self._vectors)

    def keys_at(self, positions: NDArray[np.int64]) -> list[str]:
        """Ids, as the engine has them, at positions."""
        return [self.keys[at] for at in positions.tolist()]

    @cached_property
    def positions(self) -> dict[str, int]:
        """The position of each id, as the engine has it."""
        return {key: at for at, key in enumerate(self.keys)}

    def kept(self, where: Where | None, without: frozenset[str]) -> NDArray[np.bool_] | None:
        """(rows,) which rows pass a filter and are none of these; None if all are."""
        conditions = where.conditions if where else ()
        left = [self.positions[key] for key in without if key in self.positions]
        if not conditions and not left:
            return None
        kept = self._passing(Where(conditions)).copy() if conditions else np.ones(len(self), bool)
        kept[left] = False
        return kept

    def _looked_up(self, where: Where) -> NDArray[np.bool_]:
        found = self.view.rows_of(self.view.compiled(where), [SEQ])[SEQ].to_numpy()
        kept = np.zeros(len(self), bool)
        kept[np.searchsorted(self._marks[:, 0], found)] = True
        return kept

    def _read(self, places: NDArray[np.int64], numbers: NDArray[np.uint64]) -> None:
        names = [ID, VECTOR, SEAL_OF_VECTOR]
        if len(places) == len(self.keys):
            found = self.view.rows_of(True, [*names, SEQ]).sort_by(SEQ)
        elif len(places):
            found = self.view.taken(numbers[places].astype(np.int64), names)
        else:
            return
        self._vectors[places] = self.view.vectors(found)
        for at, key in zip(places.tolist(), found[ID].to_pylist(), strict=True):
            self.keys[at] = key


class Streamed:
    """Some rows of a table, read from it block by block; a :class:`rungwise.index.scan.Rows`.

    Args:
        view: The version.
        numbers: (rows,) the engine's numbers of the rows, in order of rows.

    Attributes:
        shape: (rows, D).
    """

    def __init__(self, view: View, numbers: NDArray[np.int64]) -> None:
        self._view, self._numbers = view, numbers
        self.shape = (len(numbers), view.description.dimension)

    def __len__(self) -> int:
        """How many rows."""
        return len(self._numbers)

    def __getitem__(self, block: slice) -> Vectors:
        """Vectors at consecutive positions."""
        return self.gathered(np.arange(len(self))[block])

    def gathered(self, positions: NDArray[np.int64]) -> Vectors:
        """Vectors at positions that rise."""
        found = self._view.taken(self._numbers[positions], [ID, VECTOR, SEAL_OF_VECTOR])
        return np.asarray(self._view.vectors(found), np.float32)

    @cached_property
    def inverse_lengths(self) -> Vectors:
        """(rows,) 1 / length of each vector."""
        found = self._view.taken(self._numbers, [LENGTH])[LENGTH].to_numpy()
        return np.asarray(np.divide(1, found, out=np.zeros_like(found), where=found > 0), np.float32)

    def keys_at(self, positions: NDArray[np.int64]) -> list[str]:
        """Ids, as the engine has them, at positions."""
        rising, back = np.unique(positions, return_inverse=True)
        keys = self._view.taken(self._numbers[rising], [ID])[ID].to_pylist() if len(rising) else []
        return [keys[at] for at in back.tolist()]
