"""Rows of features in place of picture files: one vector, or the vectors of some regions, for each image."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, digest_of_parts, opened_file
from rungwise.core.formats import mapped
from rungwise.core.output import some_of

_READ_BYTES = 1 << 24
_MAGIC = np.lib.format.MAGIC_PREFIX


class FeatureRows:
    """Rows of one or more arrays, usually memory-mapped files: chosen by position, read only on access.

    Choosing rows (:meth:`take`) keeps the arrays and notes positions, so that a split of a large file costs nothing.

    Args:
        parts: Arrays of equal row shape, (rows, D) for vectors or (rows, R, D) for R regions, of any floating-point
            type. Rows are counted through all of them: those of the first array, then those of the second, and so on.
        positions: (images,) the row of each image; a row may stand several times. None takes all rows.
        places: Name of each array in messages; by default the file that it is mapped from.

    Raises:
        UserError: If an array has another rank, no floating-point type, or rows of another shape than the first.

    >>> rows = FeatureRows(np.arange(8, dtype=np.float32).reshape(4, 2))
    >>> chosen = rows.take([3, 1])
    >>> len(chosen), chosen.shape, chosen.dtype
    (2, (2, 2), dtype('float32'))
    >>> chosen
    FeatureRows(2 x 2 float32)
    >>> chosen[0], chosen[:].tolist()
    (array([6., 7.], dtype=float32), [[6.0, 7.0], [2.0, 3.0]])
    """

    def __init__(
        self,
        *parts: NDArray[np.floating[Any]],
        positions: Sequence[int] | NDArray[np.int64] | None = None,
        places: Sequence[str] = (),
    ) -> None:
        if not parts:
            raise UserError("features: no array of rows was given; give at least one")
        for part in parts:
            _check(part, parts[0])
        self.parts = parts
        self._places = places or [place_of(part) for part in parts]
        self._starts = np.cumsum([0, *(len(part) for part in parts)])
        total = int(self._starts[-1])
        self.positions = np.arange(total) if positions is None else np.asarray(positions, np.int64).reshape(-1)
        if self.positions.size and not (self.positions.min() >= 0 and self.positions.max() < total):
            raise UserError(
                f"{self._places[0]}: positions run {self.positions.min()}..{self.positions.max()} but there are"
                f" {total} rows, so positions must lie in 0..{total - 1}"
            )

    def __repr__(self) -> str:
        files = [str(one) for part in self.parts if (one := getattr(part, "filename", None))]
        where = f", {some_of(files)}" if files else ""
        return f"FeatureRows({' x '.join(f'{one:,}' for one in self.shape)} {self.dtype}{where})"

    def __len__(self) -> int:
        """Number of images."""
        return len(self.positions)

    @property
    def shape(self) -> tuple[int, ...]:
        """(images, D) for vectors, (images, R, D) for regions."""
        return (len(self), *self.parts[0].shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers that are read: that of the arrays, in this machine's byte order."""
        return np.result_type(*self.parts).newbyteorder("=")

    def __getitem__(self, which: int | slice | Sequence[int] | NDArray[Any]) -> NDArray[np.floating[Any]]:
        """A copy of one row (for an int) or of several (for a slice or positions)."""
        chosen = self.positions[which]
        rows = np.atleast_1d(chosen)
        found = np.empty((len(rows), *self.shape[1:]), self.dtype)
        part_of_row = np.searchsorted(self._starts, rows, side="right") - 1
        for number, part in enumerate(self.parts):
            inside = part_of_row == number
            found[inside] = part[rows[inside] - self._starts[number]]
        return found if np.ndim(chosen) else found[0]

    def take(self, positions: Sequence[int] | NDArray[np.int64]) -> FeatureRows:
        """The images at these positions, in this order; nothing is read, so a split of a large file costs nothing."""
        chosen = self.positions[np.asarray(positions, np.int64)]
        return FeatureRows(*self.parts, positions=chosen, places=self._places)

    def place(self, position: int) -> str:
        """File and row of the image at a position, for messages."""
        row = self.positions[position]
        part = self._part(row)
        return f"{self._places[part]}, row {row - self._starts[part]}"

    @property
    def file(self) -> str:
        """File of the first image here, for messages about all of them."""
        return self._places[self._part(self.positions[0]) if len(self) else 0]

    def _part(self, row: np.int64) -> int:
        return int(np.searchsorted(self._starts, row, side="right")) - 1

    def digest(self, position: int) -> str:
        """SHA-256 of one row with its type and shape, as 64 hexadecimal digits; reads only that row."""
        return self.take([position]).content_hash()

    def content_hash(self) -> str:
        """SHA-256 of all rows in order, with type and shape; reads each once, some megabytes at a time."""
        bytes_of_row = self.dtype.itemsize * int(np.prod(self.shape[1:]))
        together = max(1, _READ_BYTES // max(bytes_of_row, 1))
        little = self.dtype.newbyteorder("<")
        runs = (self[start : start + together].astype(little, copy=False) for start in range(0, len(self), together))
        return digest_of_parts(chain([f"{self.dtype} {self.shape}"], runs))


def map_rows(path: Path) -> NDArray[np.floating[Any]]:
    """Map a NumPy file (``.npy``) of rows into memory; only its header is read.

    The file must stay as it is for as long as its rows are read. Where another program cuts it short meanwhile, the
    operating system ends this one (SIGBUS); to replace a file, write another one and rename it.

    Raises:
        UserError: If the file cannot be read, is no NumPy file, is cut short, holds Python objects, is empty, or holds
            what :class:`FeatureRows` refuses.
    """
    rows = map_array(path)
    _check(rows, rows)
    if not rows.size:
        raise UserError(f"{path}: an array of shape {rows.shape} holds no features; write it again")
    return rows


def map_array(path: Path) -> NDArray[Any]:
    """Map any array of a NumPy file (``.npy``) into memory; only its header is read.

    Raises:
        UserError: If the file cannot be read, is no NumPy file, is cut short, or holds Python objects.
    """
    with opened_file(path, None) as file:
        is_numpy = file.peek(len(_MAGIC))[: len(_MAGIC)] == _MAGIC
    if not is_numpy:
        raise UserError(f"{path}: not a NumPy file; write it with numpy.save")
    try:
        return mapped(path)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        remedy = "save an array of numbers" if "objects" in reason else "it may be cut short: copy or write it again"
        raise UserError(f"{path}: cannot be mapped into memory ({reason}); {remedy}") from error


def place_of(part: NDArray[Any]) -> str:
    """The file that an array is mapped from, for messages; ``"features"`` if there is none."""
    return str(getattr(part, "filename", None) or "features")


def _check(part: NDArray[Any], first: NDArray[Any]) -> None:
    where = place_of(part)
    if part.ndim not in (2, 3):
        raise UserError(
            f"{where}: an array of shape {part.shape}, but features are (images, D) vectors or (images, R, D) regions;"
            " save one row for each image"
        )
    if part.dtype.kind != "f":
        raise UserError(f"{where}: numbers of type {part.dtype}, but features are floating-point; save them as float32")
    if part.shape[1:] != first.shape[1:]:
        raise UserError(
            f"{where}: rows of shape {part.shape[1:]}, but {place_of(first)} has rows of shape {first.shape[1:]};"
            " features of one collection come from one extractor"
        )
