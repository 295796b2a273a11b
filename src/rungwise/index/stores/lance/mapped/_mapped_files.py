"""The rows of one version of a table in files beside it, which every process maps; lists of near rows and of words.

They repeat what the table holds: where they are missing, the table is asked. A folder of them is written once and never
changed; ``rungwise.json`` names the one that counts. What was written later is looked at beside them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rungwise.core import STRICT, MissingFileError, Size, UserError, digest_of_parts, from_plain, require_regular
from rungwise.core.disk import explained, make_folder
from rungwise.core.formats import NpyWriter, mapped
from rungwise.index.stores._base import ROWS_AT_ONCE, Record, Vectors
from rungwise.index.stores._engine_rows import (
    ID,
    LENGTH,
    RECORD,
    SEAL_OF_RECORD,
    SEAL_OF_VECTOR,
    SEQ,
    TEXT,
    VECTOR,
    seals,
)
from rungwise.index.stores._scan import inverted
from rungwise.index.stores._vector_files import read_description, write_description
from rungwise.index.stores.lance._table_rows import TableRows
from rungwise.index.stores.lance.mapped._inverted_lists import InvertedLists, ListArrays, code_bytes, make_lists
from rungwise.index.stores.lance.mapped._word_lists import WordArrays, WordLists, hashes_of, word_lists

UNIT = 1e-4
"""Largest distance of a vector's length from 1 at which its inner product is its cosine for choosing candidates."""

_DESCRIPTION, _CODES = "rows.json", "codes.bin"
_FORMAT, _VERSION = "rungwise-mapped-rows", 1
_HEAD = ("format", "version")
_COLUMNS = {
    SEQ: ("places", np.int64),
    LENGTH: ("lengths", np.float32),
    SEAL_OF_VECTOR: ("seals", np.int64),
    SEAL_OF_RECORD: ("record_seals", np.int64),
}
"""Columns of the table that are written as they are: the name and the type of each array."""
_WORDS = ("word_hashes", "word_ends", "word_rows", "word_weights")
_LISTS = ("centroids", "ranges", "sizes")
"""Arrays of the inverted lists that are compared with their checksum whenever the files are opened."""
_FOUND = 1 << 16
"""Rows that were found and whose positions are remembered: a search asks for what it has found once more."""
_PARSED = 1 << 12
"""Records that are remembered: the parts of one search ask for the same ones."""
_Count = Annotated[int, Field(ge=0, le=1 << 48)]


@dataclass(frozen=True)
class _Description:
    """What the files hold; ``lists`` is 0 without inverted lists, ``digest`` the SHA-256 of the arrays of theirs."""

    __pydantic_config__ = STRICT

    table_version: _Count
    rows: Annotated[int, Field(ge=1, le=1 << 48)]
    dimension: Size
    half: bool
    unit: bool
    id_bytes: _Count
    record_bytes: _Count
    text_bytes: _Count
    words: _Count
    entries: _Count
    texts: _Count
    words_of_text: Annotated[float, Field(ge=1)]
    lists: _Count
    digest: str

    def arrays(self) -> dict[str, tuple[Any, tuple[int, ...]]]:
        """Type and shape of each array, by name."""
        rows, dimension = (self.rows,), self.dimension
        found: dict[str, tuple[Any, tuple[int, ...]]] = {
            "vectors": (np.float16 if self.half else np.float32, (self.rows, dimension)),
            **{name: (dtype, rows) for name, dtype in _COLUMNS.values()},
            "sums": (np.uint64, rows),
            **dict.fromkeys(("id_ends", "record_ends", "text_ends"), (np.int64, rows)),
            "ids": (np.uint8, (self.id_bytes,)),
            "records": (np.uint8, (self.record_bytes,)),
            "texts": (np.uint8, (self.text_bytes,)),
            "hashes": (np.uint64, rows),
            "by_hash": (np.int64, rows),
            "word_hashes": (np.uint64, (self.words,)),
            "word_ends": (np.int64, (self.words,)),
            "word_rows": (np.int32, (self.entries,)),
            "word_weights": (np.float32, (self.entries,)),
        }
        if self.lists:
            found |= {
                "list_of_row": (np.int32, rows),
                "centroids": (np.float32, (self.lists, dimension)),
                "ranges": (np.float32, (2 * dimension,)),
                "sizes": (np.int64, (self.lists,)),
            }
        return found


class MappedFiles:
    """Files that :func:`write_files` wrote, in order of rows; a :class:`~rungwise.index.stores._scan.VectorRows`.

    Args:
        folder: Folder of the files.

    Raises:
        UserError: If a file is missing or is not what was written, as far as that is told without reading all of it. Of
            each row that is given back, vector and record are compared with their checksums.

    Attributes:
        folder: Folder of the files.
        shape: (rows, D).
        table_version: Version of the table that they were made of.
        unit: Whether each vector has length 1, or 0.
        places: (rows,) places in the order of rows, rising.
        seals: (rows,) checksums of ids with their vectors.
        record_seals: (rows,) checksums of ids with their records.
        lists: Inverted lists; None where there are none.
        words: Lists of the rows of each word.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            described = _described(folder / _DESCRIPTION)
            arrays = {name: _opened(folder, name, *one) for name, one in described.arrays().items()}
            self.lists = self._lists(described, arrays) if described.lists else None
        except (MissingFileError, FileNotFoundError) as error:
            raise _damaged(folder, "a file is missing") from error
        self.shape = described.rows, described.dimension
        self.table_version, self.unit = described.table_version, described.unit
        self.places, self.seals, self.record_seals = arrays["places"], arrays["seals"], arrays["record_seals"]
        self._vectors, self._lengths, self._sums = arrays["vectors"], arrays["lengths"], arrays["sums"]
        self._keys = _Texts(arrays["ids"], arrays["id_ends"])
        self._records = _Texts(arrays["records"], arrays["record_ends"])
        self._texts = _Texts(arrays["texts"], arrays["text_ends"])
        self._hashes, self._by_hash = arrays["hashes"], arrays["by_hash"]
        words = {name: arrays[name] for name in _WORDS}
        self.words = WordLists(WordArrays(**words, texts=described.texts, mean=described.words_of_text), described.rows)
        self._found: dict[str, int] = {}
        self._parsed: dict[int, Record] = {}

    def _lists(self, described: _Description, arrays: dict[str, NDArray[Any]]) -> InvertedLists:
        require_regular(self.folder / _CODES)
        size, sizes = (self.folder / _CODES).stat().st_size, arrays["sizes"]
        if described.digest != digest_of_parts(arrays[name] for name in _LISTS):
            raise _damaged(self.folder, "its content is not what was written: the checksums differ")
        if size != code_bytes(described.rows, described.dimension) or sizes.min() < 0 or sizes.sum() != described.rows:
            raise _damaged(self.folder, "its files do not fit each other")
        try:
            return InvertedLists(
                ListArrays(**{name: arrays[name] for name in (*_LISTS, "list_of_row")}), self.folder / _CODES
            )
        except RuntimeError as error:  # of faiss
            raise _damaged(self.folder / _CODES, "it cannot be mapped") from error

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
        return inverted(self._lengths)

    def keys_at(self, positions: NDArray[np.int64]) -> list[str]:
        """Ids, in the engine's form, at positions; the vectors there are compared with their sums."""
        keys = self._keys.at(positions)
        self.summed(positions)
        if len(self._found) > _FOUND:
            self._found = {}
        self._found.update(zip(keys, positions.tolist(), strict=True))
        return keys

    def summed(self, positions: NDArray[np.int64]) -> Vectors:
        """Vectors at positions, compared with their sums, which takes less time than with their checksums."""
        vectors = self._vectors[positions]
        if (sums_of(vectors) != self._sums[positions]).any():
            self._require_sealed(self._keys.at(positions), self.seals[positions], vectors)
            raise _damaged(self.folder, "a sum is not as it was written")
        return np.asarray(vectors, np.float32)

    def vectors_at(self, positions: NDArray[np.int64]) -> Vectors:
        """Vectors at positions; they and their ids are compared with their checksums."""
        vectors = self._vectors[positions]
        self._require_sealed(self._keys.at(positions), self.seals[positions], vectors)
        return np.asarray(vectors, np.float32)

    def texts_at(self, positions: NDArray[np.int64]) -> list[str]:
        """Words of the texts at positions, with blanks between them."""
        return self._texts.at(positions)

    def records_at(self, positions: NDArray[np.int64]) -> list[Record]:
        """Records at positions, compared with their checksums; the last ones are remembered."""
        known, asked = self._parsed, positions.tolist()
        if missing := [at for at in asked if at not in known]:
            at = np.array(missing, np.int64)
            texts = self._records.at(at)
            self._require_sealed(self._keys.at(at), self.record_seals[at], texts)
            if len(known) > _PARSED:
                self._parsed = known = {one: known[one] for one in asked if one in known}
            known.update(zip(missing, map(json.loads, texts), strict=True))
        return [known[at] for at in asked]

    def positions_of(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """(keys,) position of each id, in the engine's form; -1 where there is none."""
        known = self._found
        found = np.array([known.get(key, -1) for key in keys], np.int64)
        if (found < 0).any():
            sought = np.flatnonzero(found < 0)
            found[sought] = self._looked_up([keys[at] for at in sought.tolist()])
        return found

    def _looked_up(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """The same, by the hashes of the ids."""
        found, hashes = np.full(len(keys), -1, np.int64), hashes_of(keys)
        low, high = (np.searchsorted(self._hashes, hashes, side) for side in ("left", "right"))
        first = np.clip(self._by_hash[np.minimum(low, len(self) - 1)], 0, len(self) - 1)
        for place, (key, there) in enumerate(zip(keys, self._keys.at(first), strict=True)):
            if there == key:
                found[place] = first[place]
            else:  # hashes of two ids may be the same
                others = np.clip(self._by_hash[low[place] : high[place]], 0, len(self) - 1)
                found[place] = next(
                    (at for at, one in zip(others, self._keys.at(others), strict=True) if one == key), -1
                )
        return found

    def _require_sealed(
        self, keys: Sequence[str], wanted: NDArray[np.int64], contents: Sequence[str] | NDArray[Any]
    ) -> None:
        wrong = np.flatnonzero(seals(keys, contents) != wanted)
        if wrong.size:
            raise _damaged(self.folder, f"the row {keys[wrong[0]]!r} is not as it was written"[:200])


class _Texts:
    """Texts that stand one after the other, by where each ends."""

    def __init__(self, data: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self._data, self._ends = data.data, ends  # of a view, slices are made fastest

    def at(self, positions: NDArray[np.int64]) -> list[str]:
        """Texts at positions; of damaged files they are others, which their checksums tell."""
        ends = np.maximum(self._ends[positions], 0).tolist()
        begins = np.where(positions > 0, np.maximum(self._ends[np.maximum(positions - 1, 0)], 0), 0).tolist()
        return [str(self._data[begin:end], "utf-8", "replace") for begin, end in zip(begins, ends, strict=True)]


def write_files(folder: Path, rows: TableRows, *, lists: bool) -> None:
    """Write the files of all rows of a version, at least one, into a new folder; nothing is synced.

    Args:
        folder: Folder of the files, which is made.
        rows: Rows of the version.
        lists: Make inverted lists of near rows.

    Raises:
        UserError: If a row is damaged, or the disk is full.
    """
    described, keys = rows.description, list[str]()
    with explained(folder):
        make_folder(folder)
        words = word_lists(_written_rows(folder, rows, keys))
        for name in _WORDS:
            _write(folder, name, getattr(words, name))
        hashes = hashes_of(keys)
        by_hash = np.argsort(hashes, kind="stable")
        _write(folder, "hashes", hashes[by_hash])
        _write(folder, "by_hash", by_hash)
        lengths = mapped(_path(folder, "lengths"))
        unit, made, digest = bool((np.abs(lengths[lengths > 0] - 1) <= UNIT).all()), 0, ""
        if lists:
            found = make_lists(mapped(_path(folder, "vectors")), folder / _CODES, unit=unit)
            for name in (*_LISTS, "list_of_row"):
                _write(folder, name, getattr(found, name))
            made, digest = len(found.sizes), digest_of_parts(getattr(found, name) for name in _LISTS)
        ids, records, texts = (len(mapped(_path(folder, name))) for name in ("ids", "records", "texts"))
        fields = _Description(
            int(rows.table.version), len(keys), described.dimension, described.half, unit, ids, records, texts,
            len(words.word_hashes), len(words.word_rows), words.texts, words.mean, made, digest,
        )  # fmt: skip
        write_description(folder / _DESCRIPTION, {"format": _FORMAT, "version": _VERSION, **asdict(fields)})


def _written_rows(folder: Path, rows: TableRows, keys: list[str]) -> Iterator[list[str]]:
    """Write all rows in their order, and give the words of each; ids are added to ``keys``."""
    described, numbers = rows.description, rows.in_order(None)
    names = [ID, VECTOR, RECORD, TEXT, LENGTH, SEAL_OF_VECTOR, SEAL_OF_RECORD]
    with ExitStack() as files:

        def writer(name: str, row: tuple[int, ...], dtype: Any) -> NpyWriter:
            return files.enter_context(NpyWriter(_path(folder, name), row, dtype))

        vectors = writer("vectors", (described.dimension,), np.float16 if described.half else np.float32)
        columns = {column: writer(name, (), dtype) for column, (name, dtype) in _COLUMNS.items()}
        sums = writer("sums", (), np.uint64)
        texts = {column: _texts_writer(writer, one) for column, one in ((ID, "id"), (RECORD, "record"), (TEXT, "text"))}
        for start in range(0, len(numbers), ROWS_AT_ONCE):
            found = rows.taken(numbers[start : start + ROWS_AT_ONCE], names)
            stored = rows.vectors(found)
            vectors.append(stored)
            sums.append(sums_of(stored))
            for column, other in columns.items():
                other.append(found[column].to_numpy())
            for column, write in texts.items():
                write(found[column].to_pylist())
            keys += found[ID].to_pylist()
            for text in found[TEXT].to_pylist():
                yield text.split()


def sums_of(vectors: NDArray[Any]) -> NDArray[np.uint64]:
    """(rows,) sums of the bits of (rows, D) numbers, which tell damage and cost next to nothing."""
    bits = np.ascontiguousarray(vectors).view(np.uint16 if vectors.dtype == np.float16 else np.uint32)
    return np.asarray(bits.sum(axis=1, dtype=np.uint64))


def _texts_writer(writer: Callable[[str, tuple[int, ...], Any], NpyWriter], name: str) -> Callable[[list[str]], None]:
    data, ends, end = writer(f"{name}s", (), np.uint8), writer(f"{name}_ends", (), np.int64), 0

    def write(texts: list[str]) -> None:
        nonlocal end
        encoded = [text.encode() for text in texts]
        data.append(np.frombuffer(b"".join(encoded), np.uint8))
        places = end + np.cumsum([len(part) for part in encoded])
        ends.append(places)
        end = int(places[-1])

    return write


def _write(folder: Path, name: str, array: NDArray[Any]) -> None:
    with NpyWriter(_path(folder, name), array.shape[1:], array.dtype) as writer:
        writer.append(array)


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.npy"


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
    if 0 in shape:  # which cannot be mapped
        return np.empty(shape, dtype)
    try:
        array = mapped(path)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error).splitlines()[0] if str(error) else "unreadable") from error
    if array.shape != shape or array.dtype != dtype:
        raise _damaged(path, f"{array.dtype} of shape {array.shape} where {np.dtype(dtype)} of {shape} is expected")
    return array.view(np.ndarray)
