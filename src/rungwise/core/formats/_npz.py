"""Arrays in ``.npz`` archives of unknown origin: unpacked one by one, and never beyond the limit."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core._limits import limits, too_large
from rungwise.core._untrusted_files import opened_file
from rungwise.core.formats._npy import read_header

_DAMAGED = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, KeyError, NotImplementedError, RuntimeError, struct.error,
)  # fmt: skip
"""Errors besides ValueError and OSError that Python's reader raises on damaged, encrypted or made-up archives."""


class Npz:
    """The arrays of an open archive, made by :func:`opened_npz`.

    Args:
        archive: Archive open for reading.
        path: Path for messages.

    Attributes:
        names: Names of the arrays.
    """

    def __init__(self, archive: zipfile.ZipFile, path: Path) -> None:
        self._archive = archive
        self._path = path
        self._unpacked = 0
        self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        self.names = tuple(self._members)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Unpack one array.

        Raises:
            KeyError: If there is none of this name.
            UserError: If all arrays read so far pass the limit ``unpacked_bytes``.
            ValueError: If it is damaged, holds objects or records, or its header claims more than there is.
        """
        member = self._members[name]
        self._unpacked += member.file_size
        if self._unpacked > limits().unpacked_bytes:
            raise too_large(f"{self._path}, array {name!r}", self._unpacked, "unpacked_bytes")
        with _as_value_error(), self._archive.open(member) as file:
            # The header claims a size, and numpy would take that much memory before it reads a byte.
            read_header(file).check(member.file_size)
        with _as_value_error(), self._archive.open(member) as file:
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        return array


@contextmanager
def opened_npz(path: Path) -> Iterator[Npz]:
    """An archive of arrays, such as ``numpy.savez`` writes.

    Raises:
        UserError: If there is no such file, it is no regular file, or it may not be read.
        ValueError: If it is no archive.
    """
    with opened_file(path, None) as file:
        with _as_value_error():
            archive = zipfile.ZipFile(file)
        with archive:
            yield Npz(archive, path)


@contextmanager
def _as_value_error() -> Iterator[None]:
    try:
        yield
    except _DAMAGED as error:
        raise ValueError(str(error) or type(error).__name__) from error
