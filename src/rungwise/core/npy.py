"""Arrays in ``.npy`` files: written row by row, read as memory maps."""

from __future__ import annotations

import tokenize
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray


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

    Unlike ``numpy.load`` it takes no archive and no pickle.

    Raises:
        OSError: If there is no such file, or it may not be read.
        ValueError: If it is no ``.npy`` file, or was cut off.

    >>> mapped(Path("nowhere.npy"))
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.npy'
    """
    try:
        array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except (EOFError, KeyError, TypeError, SyntaxError, tokenize.TokenError) as error:
        raise ValueError(f"{path.name}: no header of an array ({error})") from error
    return array
