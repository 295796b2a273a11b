"""Single cells of large Parquet columns, such as the bytes of pictures, read in any order.

A row group can only be read from its beginning. So the cells that a reader passes on its way to a row are kept for a
while, and it goes on from where it stands: reading rows in their order unpacks each once, and a few neighbours of a row
are there already.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from rungwise.core import UserError, limits, require_regular, stamp, too_large
from rungwise.data.files._parquet import explained, parquet_file

_KEPT_BYTES = 128 << 20
"""Bytes of the cells that are kept; those unused for longest are dropped first."""
_STREAMS = 8
"""Number of row groups that are read at the same time."""
_BATCH_BYTES = 4 << 20
_MOST_ROWS = 1024
_READ_BYTES = 1 << 20

_Place = tuple[Path, tuple[int, ...] | None, int, str]


def read_cell(path: Path, row_group: int, row: int, column: str) -> bytes:
    """The bytes in one cell.

    Args:
        path: Path of the Parquet file.
        row_group: Number of the row group, from 0.
        row: Number of the row in its row group, from 0.
        column: Column of bytes, or of structures whose field ``bytes`` holds them.

    Raises:
        UserError: If the file cannot be read, has no such place, the cell is empty, or larger than a picture may be.
    """
    return _SHELF.get((path, stamp(path), row_group, column), row)


def cell_digests(path: Path, row_group: int, rows: Collection[int], column: str) -> dict[int, bytes | None]:
    """SHA-256 of the bytes in some cells of a row group, by row; None for an empty cell.

    One cell after another is read from the file, and none is kept. A cell larger than a picture may be equals no other.

    Args:
        path: Path of the Parquet file.
        row_group: Number of the row group, from 0.
        rows: Numbers of rows in the row group, from 0.
        column: Column of bytes, or of structures whose field ``bytes`` holds them.

    Raises:
        UserError: For the reasons of :func:`read_cell`, empty and large cells excepted.
    """
    wanted = sorted(set(rows))
    found: dict[int, bytes | None] = {}
    with closing(_Stream(path, row_group, column, shared=True)) as stream:
        at = 0
        while at < len(wanted) and (batch := stream.batch()) is not None:
            first = stream.next_row - len(batch)
            # A value that many rows share stands in the batch once.
            known: dict[int | None, bytes | None] = {None: None}
            while at < len(wanted) and wanted[at] < stream.next_row:
                row = wanted[at]
                value = batch.indices[row - first].as_py()
                if value not in known:
                    cell = batch.dictionary[value].as_buffer()
                    too_long = cell.size > limits().picture_bytes
                    content = (
                        f"{path}, row {row} of row group {row_group}".encode(errors="replace") if too_long else cell
                    )
                    known[value] = hashlib.sha256(content).digest() if cell.size else None
                found[row] = known[value]
                at += 1
    return found


def leaf(schema: Any, column: str) -> str | None:
    """The path within the file of a column's bytes, such as ``image.bytes``; None where it holds no bytes."""
    import pyarrow.types as types

    if schema.names.count(column) != 1:
        return None
    kind = schema.field(column).type
    if types.is_struct(kind):
        inside = kind.get_field_index("bytes")
        return f"{column}.bytes" if inside >= 0 and _is_bytes(kind.field(inside).type) else None
    return column if _is_bytes(kind) else None


def _is_bytes(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_binary(kind) or types.is_large_binary(kind))


class _Stream:
    """The cells of one column of one row group, in their order; ``next_row`` is the first row that was not read yet.

    With ``shared``, a value that stands in several rows of a batch is in memory once, behind indices.
    """

    def __init__(self, path: Path, row_group: int, column: str, *, shared: bool = False) -> None:
        require_regular(path)
        self._path, self._column = path, column
        with explained(path):
            file = parquet_file(path, buffer_size=_READ_BYTES, pre_buffer=False)
            found, where = file.metadata, leaf(file.schema_arrow, column)
            if where is None or not 0 <= row_group < found.num_row_groups:
                file.close()
                raise UserError(
                    f"{path}: has no row group {row_group} with bytes in a column {column!r}; the file was replaced"
                    " since it was listed: read the collection again"
                )
            group = found.row_group(row_group)
            sizes = [group.column(at) for at in range(group.num_columns)]
            size = sum(one.total_uncompressed_size for one in sizes if one.path_in_schema == where)
            rows = min(_MOST_ROWS, max(1, _BATCH_BYTES * group.num_rows // max(1, size)))
            if shared:
                file.close()
                file = parquet_file(path, buffer_size=_READ_BYTES, pre_buffer=False, read_dictionary=[where])
            self._file = file
            self._batches: Iterator[Any] = file.iter_batches(rows, [row_group], [where], use_threads=False)
        self.next_row = 0

    def batch(self) -> Any:
        """The next cells as an array of Arrow; None at the end. A UserError if the file is damaged."""
        from pyarrow.types import is_struct

        with explained(self._path):
            batch = next(self._batches, None)
            if batch is None:
                return None
            cells = batch.column(0)
            found = cells.field("bytes") if is_struct(cells.type) else cells
        self.next_row += len(found)
        return found

    def advance(self) -> list[bytes | None]:
        """The next cells; none at the end. A UserError if the file is damaged."""
        batch = self.batch()
        with explained(self._path):
            return [] if batch is None else list(batch.to_pylist())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass
class _Slot:
    """One row group that is being read; the reader holds the lock."""

    lock: Lock = field(default_factory=Lock)
    stream: _Stream | None = None


class _Shelf:
    """Cells that were read lately, and the row groups that they came from."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._cells: OrderedDict[tuple[_Place, int], bytes] = OrderedDict()
        self._size = 0
        self._slots: OrderedDict[_Place, _Slot] = OrderedDict()

    def get(self, place: _Place, row: int) -> bytes:
        if (kept := self._kept(place, row)) is not None:
            return kept
        slot = self._slot(place)
        with slot.lock:
            if (kept := self._kept(place, row)) is not None:  # read by another thread meanwhile
                return kept
            path, _, row_group, column = place
            if slot.stream is None or row < slot.stream.next_row:
                self._restart(slot, _Stream(path, row_group, column))
            assert slot.stream is not None
            try:
                while True:
                    first, cells = slot.stream.next_row, slot.stream.advance()
                    self._keep(place, first, cells)
                    if not cells or row < slot.stream.next_row:
                        break
            except UserError:
                self._restart(slot, None)
                raise
        cell = cells[row - first] if cells else None
        if not cell:
            raise UserError(
                f"{path}, row {row} of row group {row_group}, column {column!r}: holds no picture; re-create the file"
            )
        if len(cell) > limits().picture_bytes:
            raise too_large(f"{path}, row {row} of row group {row_group}", len(cell), "picture_bytes")
        return cell

    def _kept(self, place: _Place, row: int) -> bytes | None:
        with self._lock:
            cell = self._cells.get((place, row))
            if cell is not None:
                self._cells.move_to_end((place, row))
        # A limit may have been lowered since.
        return cell if cell is not None and len(cell) <= limits().picture_bytes else None

    def _slot(self, place: _Place) -> _Slot:
        """The slot of a row group; the one that was used longest ago is dropped for a new one."""
        with self._lock:
            slot = self._slots.setdefault(place, _Slot())
            self._slots.move_to_end(place)
            dropped = [self._slots.popitem(last=False)[1] for _ in range(len(self._slots) - _STREAMS)]
        for one in dropped:
            with one.lock:
                self._restart(one, None)
        return slot

    @staticmethod
    def _restart(slot: _Slot, stream: _Stream | None) -> None:
        if slot.stream is not None:
            slot.stream.close()
        slot.stream = stream

    def _keep(self, place: _Place, first: int, cells: list[bytes | None]) -> None:
        with self._lock:
            for row, cell in enumerate(cells, start=first):
                if cell and (place, row) not in self._cells:
                    self._cells[place, row] = cell
                    self._size += len(cell)
            while self._size > _KEPT_BYTES:
                self._size -= len(self._cells.popitem(last=False)[1])


_SHELF = _Shelf()
