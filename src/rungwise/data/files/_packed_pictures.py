"""Pictures inside larger files: file, place in it, and bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rungwise.core import UserError, limits, opened_file, too_large, unreadable
from rungwise.data.files._parquet_cells import read_cell


@dataclass(frozen=True)
class PackedPicture(ABC):
    """A picture inside a larger ``file``.

    It is a value: equal places are equal pictures, and a set or a dictionary takes it. As text it names file and place.
    """

    file: Path

    @abstractmethod
    def read(self) -> bytes:
        """The bytes of the picture's own file.

        Raises:
            UserError: If they cannot be read, are not there, or are more than a picture may have.
        """

    @property
    def place(self) -> dict[str, int | str]:
        """The place in the file, as plain values by name; :func:`packed_picture` takes them back."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "file"}


@dataclass(frozen=True)
class TarMember(PackedPicture):
    """A file in an uncompressed tar archive.

    Attributes:
        offset: Position of its first byte in the archive.
        size: Size in bytes.
        name: Name in the archive, only for messages; nothing is ever written to it.

    >>> str(TarMember(Path("00000.tar"), 512, 6102, "dog.jpg"))
    '00000.tar, dog.jpg'
    """

    offset: int
    size: int
    name: str

    def __str__(self) -> str:
        return f"{self.file}, {self.name}"

    def read(self) -> bytes:
        """The bytes of the member; a UserError if the archive ends within it."""
        if self.size > limits().picture_bytes:
            raise too_large(self, self.size, "picture_bytes")
        with opened_file(self.file, None) as file:
            try:
                file.seek(self.offset)
                data = file.read(self.size)
            except OSError as error:
                raise unreadable(self.file, error) from error
        if len(data) < self.size:
            raise UserError(f"{self}: the archive ends within it; copy the archive again")
        return data


@dataclass(frozen=True)
class ParquetCell(PackedPicture):
    """The bytes in a cell of a Parquet file.

    Attributes:
        row_group: Number of the row group, from 0.
        row: Number of the row in its row group, from 0.
        column: Column of bytes, or of structures whose field ``bytes`` holds them.

    >>> str(ParquetCell(Path("train-00000-of-00002.parquet"), 1, 17, "image"))
    'train-00000-of-00002.parquet, row 17 of row group 1'
    """

    row_group: int
    row: int
    column: str

    def __str__(self) -> str:
        return f"{self.file}, row {self.row} of row group {self.row_group}"

    def read(self) -> bytes:
        """The bytes in the cell."""
        return read_cell(self.file, self.row_group, self.row, self.column)


Picture = Path | PackedPicture
"""A picture on the disk: a file of its own, or a place in a larger one."""

_KINDS: tuple[type[PackedPicture], ...] = (TarMember, ParquetCell)
_TYPES: dict[str, type] = {"int": int, "str": str}
_FARTHEST = 1 << 62


def packed_picture(file: Path, place: Mapping[str, Any]) -> PackedPicture:
    """The picture at a place that :attr:`PackedPicture.place` gave; a TypeError for anything else."""
    for kind in _KINDS:
        expected = {field.name: _TYPES[str(field.type)] for field in fields(kind) if field.name != "file"}
        if place.keys() == expected.keys():
            # Exactly: True would pass for a number, and no place is negative or beyond what a file can have.
            sound = all(type(place[name]) is expected[name] for name in expected)
            if sound and all(0 <= value < _FARTHEST for value in place.values() if isinstance(value, int)):
                return kind(file, **place)
    raise TypeError(f"the place of a picture is {dict(place)!r}")
