"""Vectors, ids and inverted lists of one version of a table in files beside it, which every process maps.

They repeat what the table holds: where they are missing, all rows are compared. A folder of them is written once and
never changed; ``rungwise.json`` names the one that counts. Rows that were written later are compared beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rungwise.core import STRICT, MissingFileError, Size, UserError, digest_of_parts, from_plain, require_regular
from rungwise.core.disk import explained, make_folder
from rungwise.core.formats import NpyWriter, mapped
from rungwise.index.stores._base import ROWS_AT_ONCE, Vectors
from rungwise.index.stores._engine_rows import ID, LENGTH, SEAL_OF_VECTOR, SEQ, VECTOR, seals
from rungwise.index.stores._vector_files import read_description, write_description
from rungwise.index.stores.lance._table_rows import TableRows
from rungwise.index.stores.lance.vectors._inverted_lists import InvertedLists, ListArrays, code_bytes, make_lists

UNIT = 1e-4
"""Largest distance of a vector's length from 1 at which its inner product is its cosine for choosing candidates."""

_DESCRIPTION, _CODES = "lists.json", "codes.bin"
_FORMAT, _VERSION = "rungwise-lists", 1
_HEAD = ("format", "version")
_Count = Annotated[int, Field(ge=1, le=1 << 48)]

_LISTS = ("centroids", "ranges", "sizes")
"""Arrays that are compared with their checksum whenever the files are opened."""


@dataclass(frozen=True)
class _Description:
    """What the files hold; ``digest`` is the SHA-256 of the arrays of :data:`_LISTS`."""

    __pydantic_config__ = STRICT

    table_version: _Count
    rows: _Count
    dimension: Size
    half: bool
    unit: bool
    lists: _Count
    id_bytes: _Count
    digest: str

    def arrays(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Type and shape of each array, by name."""
        rows, dimension = (self.rows,), self.dimension
        return {
            "vectors": (np.float16 if self.half else np.float32, (self.rows, dimension)),
            "lengths": (np.float32, rows),
            "places": (np.int64, rows),
            "seals": (np.int64, rows),
            "ends": (np.int64, rows),
            "ids": (np.uint8, (self.id_bytes,)),
            "hashes": (np.uint64, rows),
            "by_hash": (np.int64, rows),
            "list_of_row": (np.int32, rows),
            "centroids": (np.float32, (self.lists, dimension)),
            "ranges": (np.float32, (2 * dimension,)),
            "sizes": (np.int64, (self.lists,)),
        }


class MappedFiles:
    """Files that :func:`write_files` wrote, in order of rows; a :class:`~rungwise.index.stores._scan.VectorRows`.

    Args:
        folder: Folder of the files.

    Raises:
        UserError: If a file is missing or is not what was written, as far as that is told without reading all of it. Of
            each row that is found, id and vector are compared with their checksum.

    Attributes:
        folder: Folder of the files.
        shape: (rows, D).
        table_version: Version of the table that they were made of.
        unit: Whether each vector has length 1, or 0.
        places: (rows,) places in the order of rows, rising.
        seals: (rows,) checksums of ids with their vectors.
        lengths: (rows,) lengths of the vectors.
        lists: Their inverted lists.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            described = _described(folder / _DESCRIPTION)
            arrays = {name: _opened(folder, name, *one) for name, one in described.arrays().items()}
            require_regular(folder / _CODES)
            size = (folder / _CODES).stat().st_size
        except (MissingFileError, FileNotFoundError) as error:
            raise _damaged(folder, "a file is missing") from error
        sizes = arrays["sizes"]
        if described.digest != digest_of_parts(np.asarray(arrays[name]) for name in _LISTS):
            raise _damaged(folder, "its content is not what was written: the checksums differ")
        if size != code_bytes(described.rows, described.dimension) or sizes.min() < 0 or sizes.sum() != described.rows:
            raise _damaged(folder, "its files do not fit each other")
        self.shape = described.rows, described.dimension
        self.table_version, self.unit = described.table_version, described.unit
        self.places, self.seals, self.lengths = arrays["places"], arrays["seals"], arrays["lengths"]
        self._vectors, self._ends, self._ids = arrays["vectors"], arrays["ends"], arrays["ids"]
        self._hashes, self._by_hash = arrays["hashes"], arrays["by_hash"]
        made = ListArrays(arrays["centroids"], arrays["ranges"], sizes, arrays["list_of_row"])
        self.lists = InvertedLists(made, folder / _CODES)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, block: slice) -> Vectors:
        """Vectors at consecutive positions."""
        return np.asarray(self._vectors[block], np.float32)

    def gathered(self, positions: NDArray[np.int64]) -> Vectors:
        """Vectors at positions."""
        return np.asarray(self._vectors[positions], np.float32)

    @cached_property
    def inverse_lengths(self) -> Vectors:
        """(rows,) 1 / length of each vector; 0 for a vector of zeros."""
        return np.asarray(np.divide(1, self.lengths, out=np.zeros_like(self.lengths), where=self.lengths > 0))

    def keys_at(self, positions: NDArray[np.int64]) -> list[str]:
        """Ids, in the engine's form, at positions, compared with their checksums as the vectors are."""
        keys = self._read_keys(positions)
        wrong = np.flatnonzero(seals(keys, self._vectors[positions]) != self.seals[positions])
        if wrong.size:
            raise _damaged(self.folder, f"the row {keys[wrong[0]]!r} is not as it was written"[:200])
        return keys

    def positions_of(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """(keys,) position of each id, in the engine's form; -1 where there is none."""
        hashes = _hashes(keys)
        low, high = (np.searchsorted(self._hashes, hashes, side) for side in ("left", "right"))
        found = np.full(len(keys), -1, np.int64)
        for place, (key, first, last) in enumerate(zip(keys, low.tolist(), high.tolist(), strict=True)):
            same = np.clip(self._by_hash[first:last], 0, len(self) - 1)
            at = [position for position, one in zip(same, self._read_keys(same), strict=True) if one == key]
            found[place] = at[0] if at else -1
        return found

    def _read_keys(self, positions: NDArray[np.int64]) -> list[str]:
        ends = self._ends[positions]
        begins = np.where(positions > 0, self._ends[np.maximum(positions - 1, 0)], 0)
        ends, begins = ends.tolist(), begins.tolist()
        parts = (self._ids[max(0, low) : max(0, high)] for low, high in zip(begins, ends, strict=True))
        return [part.tobytes().decode(errors="replace") for part in parts]  # what is no id differs from its checksum


def write_files(folder: Path, rows: TableRows) -> None:
    """Write the files of all rows of a version, at least one, into a new folder; nothing is synced.

    Raises:
        UserError: If a row is damaged, or the disk is full.
    """
    described = rows.description
    with explained(folder):
        make_folder(folder)
        places, lengths, keys = _write_rows(folder, rows)
        encoded = [key.encode() for key in keys]
        _write(folder, "ids", np.frombuffer(b"".join(encoded), np.uint8))
        _write(folder, "ends", np.cumsum([len(one) for one in encoded]))
        hashes = _hashes(keys)
        by_hash = np.argsort(hashes, kind="stable")
        _write(folder, "hashes", hashes[by_hash])
        _write(folder, "by_hash", by_hash)
        unit = bool((np.abs(lengths[lengths > 0] - 1) <= UNIT).all())
        lists = make_lists(mapped(_path(folder, "vectors")), folder / _CODES, unit=unit)
        for name in (*_LISTS, "list_of_row"):
            _write(folder, name, getattr(lists, name))
        fields = _Description(
            int(rows.table.version), len(places), described.dimension, described.half, unit, len(lists.sizes),
            sum(map(len, encoded)), digest_of_parts(getattr(lists, name) for name in _LISTS),
        )  # fmt: skip
        write_description(folder / _DESCRIPTION, {"format": _FORMAT, "version": _VERSION, **asdict(fields)})


def _write_rows(folder: Path, rows: TableRows) -> tuple[NDArray[np.int64], Vectors, list[str]]:
    """Write vectors, places, lengths and checksums of all rows in their order; gives places, lengths and ids."""
    described, numbers = rows.description, rows.in_order(None)
    number = np.float16 if described.half else np.float32
    keys: list[str] = []
    with ExitStack() as files:

        def writer(name: str, row: tuple[int, ...], dtype: Any) -> NpyWriter:
            return files.enter_context(NpyWriter(_path(folder, name), row, dtype))

        vectors = writer("vectors", (described.dimension,), number)
        columns = {SEQ: ("places", np.int64), LENGTH: ("lengths", np.float32), SEAL_OF_VECTOR: ("seals", np.int64)}
        others = {column: writer(name, (), dtype) for column, (name, dtype) in columns.items()}
        for start in range(0, len(numbers), ROWS_AT_ONCE):
            found = rows.taken(numbers[start : start + ROWS_AT_ONCE], [ID, VECTOR, LENGTH, SEAL_OF_VECTOR])
            vectors.append(rows.vectors(found))
            keys += found[ID].to_pylist()
            for column, other in others.items():
                other.append(found[column].to_numpy())
    return mapped(_path(folder, "places")), mapped(_path(folder, "lengths")), keys


def _write(folder: Path, name: str, array: NDArray[Any]) -> None:
    with NpyWriter(_path(folder, name), array.shape[1:], array.dtype) as writer:
        writer.append(array)


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.npy"


def _hashes(keys: Iterable[str]) -> NDArray[np.uint64]:
    """(keys,) hashes of ids."""
    return np.frombuffer(b"".join(blake2b(one.encode(), digest_size=8).digest() for one in keys), np.uint64)


def _described(path: Path) -> _Description:
    try:
        stored = read_description(path, _FORMAT, _VERSION)
        return from_plain(_Description, {name: stored[name] for name in stored if name not in _HEAD}, str(path))
    except MissingFileError:
        raise
    except UserError as error:
        raise _damaged(path, "it is not what was written") from error


def _damaged(where: Path, what: str) -> UserError:
    return UserError(f"{where}: damaged ({what}); `rungwise index compact` makes these files anew")


def _opened(folder: Path, name: str, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    path = _path(folder, name)
    try:
        array = mapped(path)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error).splitlines()[0] if str(error) else "unreadable") from error
    if array.shape != shape or array.dtype != dtype:
        raise _damaged(path, f"{array.dtype} of shape {array.shape} where {np.dtype(dtype)} of {shape} is expected")
    return array.view(np.ndarray)
