"""Arrays in ``.npy`` files: written row by row, read as memory maps."""

from __future__ import annotations

import math
import os
import stat
import tokenize
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

_LONGEST_HEADER = 1 << 16
_MAGIC = np.lib.format.MAGIC_PREFIX
_READERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class NpyWriter:
    """Appends rows to a ``.npy`` file whose length is known only at the end.

    Rows go through ordinary writes: a full disk under a memory map would kill the process instead of raising. A file
    is whole once the ``with`` block has ended well.

    Args:
        path: The file, replaced if it is there.
        row: Shape of a row; ``()`` for a list of numbers.
        dtype: Of the numbers, which are stored with their lowest byte first.

    Attributes:
        rows: How many were written.

    Raises:
        OSError: If it cannot be written.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "vectors.npy"
    >>> with NpyWriter(file, (2,), np.float32) as writer:
    ...     writer.append(np.ones((3, 2)))
    ...     writer.append(np.zeros((1, 2)))
    >>> mapped(file).shape
    (4, 2)
    """

    def __init__(self, path: Path, row: tuple[int, ...], dtype: DTypeLike) -> None:
        self._row = row
        self._dtype = np.dtype(dtype).newbyteorder("<")
        self.rows = 0
        self._file = path.open("wb")
        self._header()
        self._header_size = self._file.tell()

    def append(self, rows: NDArray[Any]) -> None:
        """Write (n, *row) rows.

        Raises:
            ValueError: If rows have another shape.
            OSError: If the disk is full.
        """
        values = np.ascontiguousarray(rows, dtype=self._dtype)
        if values.shape[1:] != self._row:
            raise ValueError(f"expected rows of shape {self._row}, got {values.shape[1:]}")
        self._file.write(values.data)
        self.rows += len(values)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the final shape over the first header, which numpy pads so that the first axis can grow; close."""
        with self._file:
            if error is None:
                self._file.seek(0)
                self._header()
                if self._file.tell() != self._header_size:
                    raise RuntimeError("this version of numpy writes headers that grow with the shape")

    def _header(self) -> None:
        shape = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self.rows, *self._row),
        }
        np.lib.format.write_array_header_1_0(self._file, shape)


def mapped(path: Path) -> NDArray[Any]:
    """The array of a ``.npy`` file, memory-mapped and read-only.

    Unlike ``numpy.load`` it takes no archive, no pickle, no pipe and no device, and reads no header of a size that no
    array has.

    Raises:
        OSError: If there is no such file, or it may not be read.
        ValueError: If it is no ``.npy`` file, is cut off, or holds Python objects.

    >>> mapped(Path("nowhere.npy"))
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.npy'
    """
    try:
        _check_header(path)
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except _NO_HEADER as error:
        raise ValueError(f"{path.name}: no header of an array ({_first_line(error)})") from error
    return array


# What the parsers of numpy and Python say of a header that is none.
_NO_HEADER = (
    EOFError,
    KeyError,
    TypeError,
    SyntaxError,
    RecursionError,
    MemoryError,
    OverflowError,
    AttributeError,
    tokenize.TokenError,
)


def _check_header(path: Path) -> None:
    """Look at what numpy trusts: how long a header says it is, and whether the file holds what its shape says."""
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):
        raise ValueError(f"{path.name}: not a regular file")
    with path.open("rb") as file:
        if not file.read(len(_MAGIC)).startswith(_MAGIC):
            raise ValueError(f"{path.name}: no header of an array")
        file.seek(0)
        version = np.lib.format.read_magic(file)
        if version not in _READERS:
            raise ValueError(f"{path.name}: an array file of version {version[0]}.{version[1]}, which is not read")
        width = 2 if version == (1, 0) else 4
        size = int.from_bytes(file.read(width), "little")
        if size > _LONGEST_HEADER:
            raise ValueError(f"{path.name}: a header of {size:,} bytes")
        file.seek(-width, os.SEEK_CUR)
        shape, _, dtype = _READERS[version](file)
        start = file.tell()
    # In Python's own numbers: those of numpy overflow, and a small product of large sides would be mapped.
    if any(side < 0 for side in shape) or start + math.prod(shape) * dtype.itemsize > about.st_size:
        raise ValueError(f"{path.name}: cut off: its header says {dtype} of shape {shape}, the file is too short")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
