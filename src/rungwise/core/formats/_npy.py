"""Arrays in ``.npy`` files: written row by row, read as memory maps."""

from __future__ import annotations

import errno
import math
import os
import sys
import threading
import tokenize
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rungwise.core._errors import UserError
from rungwise.core._untrusted_files import MissingFileError, opened_file

_LONGEST_HEADER = 10_000
"""Largest header in bytes; numpy's own limit for a harmless one."""

_MOST_AXES = 64
"""Most axes of a numpy array."""

_PARSING = threading.Lock()
"""Held while a header is parsed: Python 3.11 counts the depth of all threads' parsers together, and fails."""


class NpyWriter:
    """Appends rows to a ``.npy`` file whose length is known only at the end.

    Rows go through ordinary writes: a full disk under a memory map would kill the process instead of raising. A file
    is whole once the ``with`` block has ended well.

    Args:
        path: The file, replaced if it is there.
        row: Shape of a row; ``()`` for a list of numbers.
        dtype: Type of the numbers, which are stored in little-endian order.

    Attributes:
        rows: Number of rows written.

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
        """Write rows of shape ``(n, *row)``."""
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

    Unlike ``numpy.load`` it takes no archive, no pickle and no records, and it compares the claims of the header with
    the size of the file before it maps anything.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it is no regular file, may not be read, is no ``.npy`` file of plain values, or was cut off.
    """
    try:
        with opened_file(path, None) as file:
            header = read_header(file)
            header.check(os.fstat(file.fileno()).st_size)
            order: Literal["F", "C"] = "F" if header.fortran else "C"
            # Mapped through the file that was looked at, so that no other can take its place in between.
            array = np.memmap(file, header.dtype, "r", header.start, header.shape, order)
    # Folders of arrays say in their own words what is missing or damaged.
    except MissingFileError as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
    except UserError as error:
        raise ValueError(str(error)) from error
    array.filename = str(path.absolute())
    return array


class NpyRows:
    """The array of a ``.npy`` file of which nothing stays in memory: each access reads the file.

    It may be larger than memory, and it is sent to another process as its path alone.

    Args:
        path: The file, which must stay as it is.

    Attributes:
        path: Absolute path of the file.
        shape: Shape of the array.
        dtype: Type of its values.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: For the reasons of :func:`mapped`.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "vectors.npy"
    >>> np.save(file, np.eye(3))
    >>> rows = NpyRows(file)
    >>> len(rows), rows.shape, rows[1:], rows[np.array([2, 0]), 0]
    (3, (3, 3), array([[0., 1., 0.],
           [0., 0., 1.]]), array([0., 1.]))
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        whole = mapped(path)
        self.shape, self.dtype = whole.shape, whole.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.shape[0])

    def __getitem__(self, where: Any) -> NDArray[Any]:
        """A copy of a part, read from the file; a UserError if the file was replaced."""
        try:
            whole = mapped(self.path)
        except (OSError, ValueError) as error:
            raise UserError(f"{self.path}: cannot be read any more ({_in_one_line(error)}); run again") from error
        if (whole.shape, whole.dtype) != (self.shape, self.dtype):
            raise UserError(f"{self.path}: another file stands there by now; leave it as it is, and run again")
        return np.array(whole[where])


def in_file(array: Any) -> Any:
    """The :class:`NpyRows` of an array that is the whole of a mapped ``.npy`` file; anything else as it is."""
    # What is cut from a map has that map as its base, and the whole map has the file.
    if not isinstance(array, np.memmap) or isinstance(array.base, np.ndarray) or array.filename is None:
        return array
    try:
        rows = NpyRows(Path(array.filename))
    except (OSError, ValueError):
        return array
    return rows if (rows.shape, rows.dtype) == (array.shape, array.dtype) else array


@dataclass(frozen=True)
class Header:
    """Claims of the header of a ``.npy`` file.

    Attributes:
        shape: Shape of the array.
        fortran: Whether the first axis runs fastest.
        dtype: Type of the values, plain ones.
        start: Position of the first value, in bytes.
    """

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int

    def check(self, size: int) -> None:
        """Raise a ValueError if the header claims more values than a file of ``size`` bytes can hold."""
        needed = self.start + math.prod(self.shape) * self.dtype.itemsize
        if size < needed:
            raise ValueError(
                f"cut off: an array of shape {self.shape} and type {self.dtype} needs {needed} bytes,"
                f" the file has {size}"
            )


def read_header(file: IO[bytes]) -> Header:
    """The header at the beginning of a ``.npy`` file of any origin.

    Raises:
        ValueError: If there is none, it is too long to be one, or it describes objects or records.
    """
    try:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            with _PARSING:
                found = np.lib.format.read_array_header_1_0(file, _LONGEST_HEADER)
        elif version == (2, 0):
            # numpy reads all of a header before it finds it too long, and the length is 32 bits of the file's choice.
            length = file.read(4)
            if int.from_bytes(length, "little") > _LONGEST_HEADER:
                raise ValueError(f"its header claims {int.from_bytes(length, 'little')} bytes")
            file.seek(-len(length), os.SEEK_CUR)
            with _PARSING:
                found = np.lib.format.read_array_header_2_0(file, _LONGEST_HEADER)
        else:
            raise ValueError(f"version {version} of the format, which is for records")
    except _NO_HEADER as error:
        raise ValueError(f"no header of an array ({_in_one_line(error)})") from error
    shape, fortran, dtype = found
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if dtype.names is not None or dtype.subdtype is not None or not dtype.itemsize:
        raise ValueError(f"it holds records of type {dtype}, not numbers")
    if any(type(size) is not int or size < 0 for size in shape):  # numpy lets True pass for 1
        raise ValueError(f"its header claims the shape {str(shape)[:80]}")
    # An array without a number may still be longer than any number that the system counts with.
    if len(shape) > _MOST_AXES or math.prod(size or 1 for size in shape) * dtype.itemsize > sys.maxsize:
        raise ValueError(f"its header claims the shape {str(shape)[:80]}, which is larger than any array")
    return Header(shape, fortran, dtype, file.tell())


# What the parsers of numpy and Python say of a header that is none; the last two of one that is nested too deeply.
_NO_HEADER = (
    ValueError, EOFError, KeyError, TypeError, SyntaxError, OverflowError, AttributeError, tokenize.TokenError,
    RecursionError, MemoryError,
)  # fmt: skip


def _in_one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
