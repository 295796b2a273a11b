"""The rows of an index in one file that other programs read: Parquet, or numpy with JSON lines beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.core import UserError
from rungwise.core.disk import replacing, require_writable_file
from rungwise.core.formats import NpyWriter
from rungwise.data import Column, typed
from rungwise.index._index import Index
from rungwise.index._items import Item
from rungwise.index.stores import read_lines
from rungwise.index.update import file_of

SUFFIXES = (".parquet", ".npy")
_ROWS_AT_ONCE = 1024
_BESIDE = ("id", "path", "captions", "caption_ids")
"""First fields of each line of the file beside ``.npy``."""
_OWN = (*_BESIDE, "vector")


def export(index: Index, path: Path) -> int:
    """Write ids, paths, captions, columns and vectors of all pictures; gives their number.

    Args:
        index: The index.
        path: ``.parquet`` gets a row for each picture; ``.npy`` gets (pictures, D) float32 vectors, and a file of the
            same name with the ending ``.jsonl`` the rest, a line for each.

    Raises:
        UserError: If the ending is another, the index holds no picture, the place cannot be written, or a ``.jsonl``
            that no export wrote stands beside it.
    """
    require_writable_export(path)
    items = list(index.items())
    if not items:
        raise UserError(f"{index.folder}: holds no pictures, so there is nothing to export")
    with replacing(path) as draft:
        if path.suffix.lower() == ".parquet":
            _write_parquet(draft, index, items)
            return len(items)
        with replacing(_rows_beside(path)) as lines:
            _write_npy(draft, lines, index, items)
    return len(items)


def require_writable_export(path: Path) -> None:
    """Refuse a file that :func:`export` could not write, before any row is read.

    Beside ``.npy`` stands a file that nobody named: only that of an earlier export is replaced.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(
            f"{path}: cannot be written as {path.suffix!r}; give a name that ends with {' or '.join(SUFFIXES)}"
        )
    require_writable_file(path)
    if path.suffix.lower() == ".npy":
        rows = _rows_beside(path)
        require_writable_file(rows)
        if os.path.lexists(rows) and not _is_of_an_export(rows):
            raise UserError(
                f"{rows}: is no part of an export, and {path.name} needs a file of this name beside it; choose another"
                " name"
            )


def _rows_beside(path: Path) -> Path:
    return path.with_suffix(".jsonl")


def _is_of_an_export(rows: Path) -> bool:
    try:
        return tuple(next(read_lines(rows), {}))[: len(_BESIDE)] == _BESIDE
    except UserError:
        return False


def _batches(index: Index, items: list[Item]) -> Iterator[tuple[list[Item], np.ndarray[Any, np.dtype[np.float32]]]]:
    for start in range(0, len(items), _ROWS_AT_ONCE):
        rows = index.picture_store.get([item.id for item in items[start : start + _ROWS_AT_ONCE]])
        some = [item for item in items[start : start + _ROWS_AT_ONCE] if item.id in rows]
        if some:
            yield some, np.stack([rows[item.id].vector for item in some])


def _write_npy(vectors: Path, lines: Path, index: Index, items: list[Item]) -> None:
    with NpyWriter(vectors, (index.manifest.dimension,), np.float32) as writer, lines.open("wb") as file:
        for some, block in _batches(index, items):
            writer.append(block)
            for item in some:
                file.write(json.dumps(_plain(item)).encode("ascii") + b"\n")


def _plain(item: Item) -> dict[str, Any]:
    own = {"id": item.id, "path": _path(item), "captions": item.captions, "caption_ids": item.caption_ids}
    return own | {name: value for name, value in item.columns.items() if name not in own}


def _path(item: Item) -> str | None:
    file = file_of(item.path)
    return None if file is None else str(file)


def _write_parquet(path: Path, index: Index, items: list[Item]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = dict.fromkeys(name for item in items for name in item.columns)
    columns: dict[str, Column] = {
        name + "_" * (name in _OWN): typed(name, [item.columns.get(name) for item in items], parse=False)
        for name in names
    }
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("path", pa.string()),
            ("captions", pa.list_(pa.string())),
            ("caption_ids", pa.list_(pa.string())),
            *((_readable(name), _type(column)) for name, column in columns.items()),
            ("vector", pa.list_(pa.float32(), index.manifest.dimension)),
        ]
    )
    place = {item.id: position for position, item in enumerate(items)}
    with path.open("wb") as file, pq.ParquetWriter(file, schema) as writer:
        for some, block in _batches(index, items):
            rows = [place[item.id] for item in some]
            own = [
                [_readable(item.id) for item in some],
                [None if (found := _path(item)) is None else _readable(found) for item in some],
                [[_readable(text) for text in item.captions] for item in some],
                [[_readable(text) for text in item.caption_ids] for item in some],
            ]
            cells = [[_cell(column[row]) for row in rows] for column in columns.values()]
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), index.manifest.dimension)
            arrays = [pa.array(one, type=kind) for one, kind in zip([*own, *cells], schema.types[:-1], strict=True)]
            writer.write_table(pa.Table.from_arrays([*arrays, vectors], schema=schema))


def _type(column: Column) -> Any:
    """Arrow's type of the values of a column, which are all of one kind."""
    import pyarrow as pa

    first = next((value for value in column if value is not None), None)
    if isinstance(first, tuple):
        return pa.list_(pa.string())
    return {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}.get(type(first), pa.string())


def _cell(value: object) -> object:
    if isinstance(value, tuple):
        return [_readable(one) for one in value]
    return _readable(value) if isinstance(value, str) else value


def _readable(text: str) -> str:
    r"""Write half characters, as in names of files that are no UTF-8, as ``\udcff``."""
    return text.encode("utf-8", "backslashreplace").decode()
