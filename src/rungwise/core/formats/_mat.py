"""Arrays of numbers in MAT files of version 5, as MATLAB and SciPy write them.

This is our own code because the reader of SciPy takes numbers of a file for places in its tables: a damaged file ends
the process. It reads full real arrays of numbers; :mod:`rungwise.core.formats._mat_values` reads texts, cells and
structures. The format is that of "MAT-File Format" of The MathWorks.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.core._errors import UserError
from rungwise.core._limits import limits, too_large
from rungwise.core._untrusted_files import opened_file, unreadable

_HEADER_BYTES = 128
_VERSION = 0x0100
_VERSION_OF_HDF5 = 0x0200
MATRIX, _COMPRESSED = 14, 15
INT8, INT32, UINT32 = 1, 5, 6
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_COMPLEX = 0x0800
MOST_DIMENSIONS = 8
_LONGEST_NAME = 256
_PIECE = 1 << 16

Order = Literal["<", ">"]


class _Source(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Inflated:
    """The content of a zlib stream, unpacked no further than it is read."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left = file, size
        self._inflate = zlib.decompressobj()

    def read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0 and not self._inflate.eof:
            packed = self._inflate.unconsumed_tail
            if not packed:
                packed = self._file.read(min(_PIECE, self._left))
                self._left -= len(packed)
                if not packed:
                    break
            parts.append(self._inflate.decompress(packed, size))
            size -= len(parts[-1])
        return b"".join(parts)


@dataclass(frozen=True)
class _Variable:
    """The description of an array, and the place of its numbers."""

    name: str
    kind: int
    is_complex: bool
    shape: tuple[int, ...]
    source: _Source
    order: Order

    @property
    def is_numeric(self) -> bool:
        return self.kind in CLASSES and not self.is_complex


def variable_names(path: Path) -> list[str]:
    """The names of the variables of a MAT file, in their order; no number is read.

    Raises:
        UserError: If it cannot be read or is no MAT file of version 5.
    """
    with damage_explained(path), opened_file(path, None) as file:
        return [variable.name for variable in _variables(file, path)]


def read_arrays(path: Path, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Some arrays of a MAT file by name, in the types of the file; names that are not there are left out.

    Raises:
        UserError: If the file cannot be read or is no MAT file of version 5, one of these is no full array of real
            numbers, or its numbers are more than may be unpacked.

    >>> import tempfile, scipy.io
    >>> file = Path(tempfile.mkdtemp()) / "features.mat"
    >>> scipy.io.savemat(file, {"I_tr": np.ones((2, 3)), "note": "a text"}, do_compression=True)
    >>> read_arrays(file, ["I_tr", "T_tr"])
    {'I_tr': array([[1., 1., 1.],
           [1., 1., 1.]])}
    """
    found: dict[str, NDArray[Any]] = {}
    with damage_explained(path), opened_file(path, None) as file:
        for variable in _variables(file, path):
            if variable.name not in names:
                continue
            if variable.name in found:
                raise UserError(f"{path}: {variable.name!r} stands twice; save the file anew")
            if not variable.is_numeric:
                raise UserError(f"{path}: {variable.name!r} is no full array of real numbers; save it as one")
            found[variable.name] = _numbers(variable, path)
    return found


def read_only_array(path: Path) -> NDArray[Any]:
    """The one array of numbers in a MAT file; texts and other things beside it do not matter.

    Raises:
        UserError: For the reasons of :func:`read_arrays`, and if the file holds no array of numbers, or several.
    """
    with damage_explained(path), opened_file(path, None) as file:
        names = [variable.name for variable in _variables(file, path) if variable.is_numeric]
    if len(names) != 1:
        found = f"{len(names)} full arrays of real numbers" + (f" ({', '.join(names[:4])})" if names else "")
        raise UserError(f"{path}: holds {found}; save it with one")
    return read_arrays(path, names)[names[0]]


@contextmanager
def damage_explained(path: Path) -> Iterator[None]:
    """Turn errors that mean damage into one line."""
    try:
        yield
    except OSError as error:
        raise unreadable(path, error) from error
    except (struct.error, zlib.error, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path}: a damaged MAT file ({reason}); copy it again, or save it anew") from error


def read_bodies(path: Path) -> Iterator[tuple[bytes, Order]]:
    """The bytes of each array of a MAT file, of any kind, and their order.

    Raises:
        UserError: If the file cannot be read, is no MAT file of version 5, or passes the limit ``text_bytes``.
    """
    with damage_explained(path), opened_file(path, None) as file:
        left = limits().text_bytes
        for source, size, order in _bodies(file, path):
            if size > left:
                raise too_large(str(path), size, "text_bytes")
            left -= size
            yield _exactly(source, size), order


def _variables(file: IO[bytes], path: Path) -> Iterator[_Variable]:
    """The variables of the file, each with the file positioned at its numbers."""
    for source, _, order in _bodies(file, path):
        yield _variable(source, order)


def _bodies(file: IO[bytes], path: Path) -> Iterator[tuple[_Source, int, Order]]:
    """Beginning, claimed size in bytes and byte order of each array."""
    order = _byte_order(file.read(_HEADER_BYTES), path)
    at = _HEADER_BYTES
    while tag := file.read(8):
        kind, size = struct.unpack(f"{order}II", tag)
        at += 8
        source: _Source = file
        if kind == _COMPRESSED:
            source = _Inflated(file, size)
            kind, inside = struct.unpack(f"{order}II", _exactly(source, 8))
        else:
            inside = size
        if kind != MATRIX:
            raise ValueError(f"an element of type {kind} where an array should be")
        yield source, inside, order
        at += size
        file.seek(at)


def _byte_order(header: bytes, path: Path) -> Order:
    mark = header[126:128]
    if mark not in (b"IM", b"MI"):
        raise UserError(f"{path}: not a MAT file of version 5; save it with scipy.io.savemat, or in MATLAB with -v7")
    order: Order = "<" if mark == b"IM" else ">"
    (version,) = struct.unpack(f"{order}H", header[124:126])
    if version == _VERSION_OF_HDF5:
        raise UserError(f"{path}: a MAT file of version 7.3, which is not read; save it in MATLAB with -v7")
    if version != _VERSION:
        raise UserError(f"{path}: a MAT file of version {version:#x}, which is not read; save it with -v7")
    return order


def _variable(source: _Source, order: Order) -> _Variable:
    flags = _element(source, order, UINT32, 8)
    sizes = _element(source, order, INT32, 4 * MOST_DIMENSIONS)
    name = _element(source, order, INT8, _LONGEST_NAME)
    (said,) = struct.unpack(f"{order}I", flags[:4])
    shape = struct.unpack(f"{order}{len(sizes) // 4}i", sizes)
    if any(size < 0 for size in shape):
        raise ValueError(f"an array of shape {shape}")
    return _Variable(name.decode("ascii", "backslashreplace"), said & 0xFF, bool(said & _COMPLEX), shape, source, order)


def _numbers(variable: _Variable, path: Path) -> NDArray[Any]:
    kind, size, inside = _tag(variable.source, variable.order)
    if kind not in STORED:
        raise ValueError(f"numbers of type {kind}")
    stored = np.dtype(STORED[kind]).newbyteorder(variable.order)
    count, dtype = math.prod(variable.shape), np.dtype(CLASSES[variable.kind])
    if size != count * stored.itemsize:
        raise ValueError(f"{size} bytes of {stored.name} for an array of shape {variable.shape}")
    if (needed := count * max(stored.itemsize, dtype.itemsize)) > limits().unpacked_bytes:
        raise too_large(f"{path}, {variable.name}", needed, "unpacked_bytes")
    data = inside if inside is not None else _exactly(variable.source, size)
    return np.frombuffer(data, stored).reshape(variable.shape, order="F").astype(dtype, order="C")


def _element(source: _Source, order: Order, kind: int, most: int) -> bytes:
    """One of the short elements at the beginning of an array, without the padding to eight bytes."""
    found, size, inside = _tag(source, order)
    if found != kind or size > most:
        raise ValueError(f"an element of type {found} and {size} bytes at the beginning of an array")
    return inside if inside is not None else _exactly(source, size + -size % 8)[:size]


def _tag(source: _Source, order: Order) -> tuple[int, int, bytes | None]:
    """Type and size of an element, and its bytes where they lie in the tag itself."""
    tag = _exactly(source, 8)
    kind, size = struct.unpack(f"{order}II", tag)
    if not kind >> 16:
        return kind, size, None
    kind, size = kind & 0xFFFF, kind >> 16
    if size > 4:
        raise ValueError(f"a short element of {size} bytes")
    return kind, size, tag[4 : 4 + size]


def _exactly(source: _Source, size: int) -> bytes:
    """Read exactly so many bytes, without reserving memory for bytes that are not there."""
    parts, left = [], size
    while left:
        part = source.read(min(left, _PIECE))
        if not part:
            raise ValueError(f"it ends {left} bytes early")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
