"""Rows of features or pixels on disk: computed once, memory-mapped from then on.

A store is a folder of two files that only grow. ``rows.bin`` holds rows of one size. ``keys.bin`` begins with a line
that gives this size. Then comes a record for each row: the SHA-256 of the picture's file, the CRC-32 of the row, and
the CRC-32 of both. The folder's name is the hash of all else that a row depends on, so a row can never be stale.

A row is on the disk before its record is written. A record or a row that is damaged all the same, as by a disk that
loses acknowledged writes, is found by its checksum, and the row is computed again.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rungwise.core import (
    Check,
    MissingFileError,
    RungwiseWarning,
    UncheckedError,
    UserError,
    checked,
    checksums,
    opened_file,
    require_regular,
    unreadable,
)
from rungwise.core.compute import cores, thread_pool
from rungwise.core.disk import appending, explained
from rungwise.core.disk.locks import writing_alone

__all__ = ["KEYS", "KEY_BYTES", "LAYOUT", "ROWS", "Progress", "RowStore", "is_cache", "sound_positions", "verify"]

KEY_BYTES = 32
KEYS, ROWS = "keys.bin", "rows.bin"
Progress = Callable[[int], None]

_RECORD = np.dtype([("key", "V32"), ("row", "<u4"), ("check", "<u4")])
_COVERED = _RECORD.itemsize - 4
"""Number of bytes of a record that its checksum covers."""
_BEGINNING = b"rungwise rows"
_HEADER = re.compile(_BEGINNING + rb" 2 (\d{12}) ([<|][fiu]\d) +\n")


class RowStore:
    """Rows of one shape and type, found by a picture's digest.

    Rows are appended under a lock and a row counts only once its record is written, so a process killed in between
    leaves a store that is merely shorter.

    Attributes:
        folder: Folder of the store.
        damaged: Number of records that were skipped because their checksum failed.

    >>> import tempfile
    >>> store = RowStore(Path(tempfile.mkdtemp()) / "f", (2,), np.float32)
    >>> store.append([b"a" * 32], np.array([[1.0, 2.0]]))
    >>> store.find([b"b" * 32, b"a" * 32]).tolist()
    [-1, 0]
    >>> store.rows()[0].tolist(), store.sound([0]).tolist()
    ([1.0, 2.0], [True])
    """

    def __init__(self, folder: Path, shape: tuple[int, ...], dtype: DTypeLike) -> None:
        self.folder = folder
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.row_bytes = int(np.prod(shape)) * self.dtype.itemsize
        self.damaged = 0
        self._header = (
            f"rungwise rows 2 {self.row_bytes:012d} {self.dtype.str}".ljust(_RECORD.itemsize - 1).encode() + b"\n"
        )
        self._positions: dict[bytes, int] = {}
        self._checks = np.empty(0, "<u4")

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open an existing store, with its rows flattened."""
        try:
            with opened_file(folder / KEYS, None) as file:
                found = _HEADER.fullmatch(file.read(_RECORD.itemsize))
        except MissingFileError:
            raise UserError(f"{folder}: no cache of rows here ({KEYS} is missing)") from None
        if found is None or not int(found[1]) or int(found[1]) % np.dtype(found[2].decode()).itemsize:
            raise _strange(folder)
        dtype = np.dtype(found[2].decode())
        return cls(folder, (int(found[1]) // dtype.itemsize,), dtype)

    @staticmethod
    def is_old(folder: Path) -> bool:
        """Whether the keys of a store lack the header line."""
        with opened_file(folder / KEYS, None) as file:
            head = file.read(len(_BEGINNING))
        return any(head) and not _BEGINNING.startswith(head)

    def __len__(self) -> int:
        """Number of rows, with damaged and replaced ones."""
        self._read_keys()
        return len(self._checks)

    def find(self, keys: Sequence[bytes]) -> NDArray[np.int64]:
        """(keys,) position of each key's newest row, -1 where there is none."""
        self._read_keys()
        return np.array([self._positions.get(key, -1) for key in keys], dtype=np.int64)

    def keys(self) -> frozenset[bytes]:
        """Keys of all rows."""
        self._read_keys()
        return frozenset(self._positions)

    def in_use(self) -> NDArray[np.int64]:
        """(keys,) positions of the rows that some key finds, ascending."""
        self._read_keys()
        return np.sort(np.fromiter(self._positions.values(), np.int64, len(self._positions)))

    def rows(self) -> NDArray[Any]:
        """All rows, memory-mapped read-only; of shape ``(rows, *shape)``."""
        count = self._count()
        if count == 0:
            return np.zeros((0, *self.shape), self.dtype)
        require_regular(self.folder / ROWS)
        try:
            return np.memmap(self.folder / ROWS, self.dtype, mode="r", shape=(count, *self.shape))
        except PermissionError as error:
            raise unreadable(self.folder / ROWS, error) from error

    def sound(self, positions: Sequence[int] | NDArray[np.int64]) -> NDArray[np.bool_]:
        """(positions,) bool: whether each of these rows matches its checksum; all of them are read."""
        self._read_keys()
        asked, place = np.unique(np.asarray(positions, np.int64), return_inverse=True)
        rows, found = self.rows(), np.zeros(len(asked), np.bool_)

        def look(part: NDArray[np.int64]) -> None:
            for at in part.tolist():
                found[at] = (
                    checksums(rows[asked[at]].tobytes(), self.row_bytes, self.row_bytes)[0] == self._checks[asked[at]]
                )

        with thread_pool(cores()) as pool:
            list(pool.map(look, np.array_split(np.arange(len(asked)), 1 + len(asked) // _ROWS_A_JOB)))
        return found[place]

    def append(self, keys: Sequence[bytes], rows: NDArray[Any]) -> None:
        """Add rows under their keys; they are on the disk when this returns.

        Raises:
            UserError: If the disk is full, or the folder holds something else; earlier rows stay unchanged.
        """
        values = np.ascontiguousarray(rows, self.dtype)
        if values.shape != (len(keys), *self.shape):
            raise ValueError(f"expected rows of shape {(len(keys), *self.shape)}, got {values.shape}")
        if not keys:
            return
        data = values.tobytes()
        records = np.zeros(len(keys), _RECORD)
        records["key"] = np.frombuffer(b"".join(keys), "V32")
        records["row"] = checksums(data, self.row_bytes)
        records["check"] = checksums(records.tobytes(), _RECORD.itemsize, _COVERED)
        with explained(self.folder), writing_alone(self.folder):
            self._require_own()
            start = self._count()
            # The rows first: a record says that its row is there.
            with appending(self.folder / ROWS) as file:
                file.truncate(start * self.row_bytes)
                file.write(data)
            with appending(self.folder / KEYS) as file:
                file.truncate((1 + start) * _RECORD.itemsize if start else 0)
                file.write((b"" if start else self._header) + records.tobytes())

    def _require_own(self) -> None:
        """Refuse to write into another kind of file; a file that was cut off is started anew."""
        try:
            with opened_file(self.folder / KEYS, None) as file:
                head = file.read(_RECORD.itemsize)
        except MissingFileError:
            return
        if head != self._header:
            if not self._header.startswith(head) and any(head):
                raise _strange(self.folder)
            for name in (KEYS, ROWS):  # others may still read the old ones
                (self.folder / name).unlink(missing_ok=True)

    def _count(self) -> int:
        keys, rows = (self.folder / KEYS, self.folder / ROWS)
        if not (keys.exists() and rows.exists()):
            return 0
        return max(0, min(keys.stat().st_size // _RECORD.itemsize - 1, rows.stat().st_size // self.row_bytes))

    def _read_keys(self) -> None:
        known, count = len(self._checks), self._count()
        if count <= known:
            return
        with opened_file(self.folder / KEYS, None) as file:
            if file.read(_RECORD.itemsize) != self._header:
                return  # nothing that is known to be sound; whoever appends next sees to it
            file.seek((1 + known) * _RECORD.itemsize)
            data = file.read((count - known) * _RECORD.itemsize)
        records = np.frombuffer(data, _RECORD)
        sound = records["check"] == checksums(data, _RECORD.itemsize, _COVERED)
        self.damaged += int(np.count_nonzero(~sound))
        for offset in np.flatnonzero(sound).tolist():
            start = offset * _RECORD.itemsize
            # A row that was computed again stands after the damaged one.
            self._positions[data[start : start + KEY_BYTES]] = known + offset
        self._checks = np.concatenate([self._checks, records["row"]])


_ROWS_A_JOB = 256
LAYOUT = "-2"
"""Suffix of the names of stores; those without it have the first layout, which had no checksums."""


def _strange(folder: Path) -> UserError:
    return UserError(f"{folder / KEYS}: is no cache of such rows; remove the folder, and the rows are computed again")


def sound_positions(store: RowStore, digests: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(digests,) position of each undamaged row, -1 for others; and the positions of damaged rows."""
    found = store.find(digests)
    asked = np.unique(found[found >= 0])
    unsound = asked[~store.sound(asked)]
    damaged = len(unsound) + (store.damaged if (found < 0).any() else 0)
    if damaged:
        line = f"{store.folder}: {damaged} cached rows are damaged and are computed again"
        warnings.warn(line, RungwiseWarning, stacklevel=2)
    return np.where(np.isin(found, unsound), -1, found), unsound


def verify(folder: Path) -> Iterator[Check]:
    """Check every row of a store, or of all stores in a folder of the cache.

    >>> import tempfile
    >>> store = RowStore(Path(tempfile.mkdtemp()) / "f", (2,), np.float32)
    >>> store.append([b"a" * 32], np.array([[1.0, 2.0]]))
    >>> [str(check) for check in verify(store.folder)]
    ['ok: ...f: 1 rows of 8 bytes, each as it was written']
    """
    for keys in sorted(folder.rglob(KEYS)):
        yield checked(str(keys.parent), lambda place=keys.parent: _looked_through(place))  # type: ignore[misc]


def is_cache(folder: Path) -> bool:
    """Whether a folder is a store of rows, or contains one."""
    return next(folder.rglob(KEYS), None) is not None


def _looked_through(folder: Path) -> str:
    if not folder.name.endswith(LAYOUT) and RowStore.is_old(folder):
        raise UncheckedError("of an earlier version, without checksums, and used no more; it may be removed")
    store = RowStore.open(folder)
    said, there = ((folder / name).stat().st_size if (folder / name).exists() else 0 for name in (KEYS, ROWS))
    if (missing := said // _RECORD.itemsize - 1 - there // store.row_bytes) > 0:
        raise UserError(
            f"{folder / ROWS}: lacks {missing} rows that {KEYS} names; remove the folder, and they are computed again"
        )
    if not len(store):
        raise UncheckedError("it holds no rows")
    count, used = len(store), store.in_use()
    sound = store.sound(used)
    if store.damaged or not sound.all():
        raise UserError(
            f"{folder}: {store.damaged + np.count_nonzero(~sound)} of {count} rows are damaged; whoever needs them"
            " computes them again"
        )
    rows = store.rows()
    odd = sum(not np.isfinite(rows[at]).all() for at in used.tolist())
    if odd:
        raise UserError(f"{folder}: {odd} rows hold NaN or infinity; remove the folder, and they are computed again")
    again = f", {count - len(used)} of them computed again since" if len(used) < count else ""
    return f"{count} rows of {store.row_bytes} bytes, each as it was written{again}"
