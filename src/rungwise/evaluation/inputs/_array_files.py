"""Readers of arrays in files of numpy, safetensors, Parquet and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, opened_file, parse_json, require_regular
from rungwise.core.formats import NpyRows, mapped, opened_npz
from rungwise.data.files import opened_parquet, read_lines, read_text

_VECTOR_COLUMNS = ("embedding", "embeddings", "vector", "vectors", "emb", "features")
_ID_COLUMNS = ("id", "ids", "image_id", "caption_id", "key", "name")
_ARCHIVE = b"PK"


def read_numpy(path: Path, key: str | None, stays_in_file: bool = False) -> Any:
    """The array of a ``.npy`` file, mapped into memory, or one of an ``.npz`` file.

    With ``stays_in_file``, rows of a ``.npy`` file are read anew whenever they are asked for. ``key`` names the array
    where there are several.
    """
    try:
        with opened_file(path, None) as file:
            is_archive = file.peek(2)[:2] == _ARCHIVE
        if is_archive:
            with opened_npz(path) as archive:
                return archive[_one_key(path, archive.names, key)]
        if key is not None:
            raise UserError(f"{path}: holds one array without a name; leave out {key!r}")
        return NpyRows(path) if stays_in_file else mapped(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as numpy's ({_first_line(error)}); write it with numpy") from error


def read_safetensors(path: Path, key: str | None) -> NDArray[Any]:
    """A tensor of a safetensors file, as an array; ``key`` names it where there are several."""
    from safetensors import SafetensorError, safe_open

    require_regular(path)
    try:
        with safe_open(path, framework="pt") as file:  # torch, since numpy has no bfloat16
            tensor = file.get_tensor(_one_key(path, list(file.keys()), key))
        vectors: NDArray[Any] = (tensor.float() if tensor.is_floating_point() else tensor).numpy()
    # Its reader raises the last three on types of numbers that this version of torch does not have.
    except (OSError, SafetensorError, ValueError, TypeError, RuntimeError) as error:
        raise UserError(f"{path}: cannot be read as safetensors ({_first_line(error)}); save it again") from error
    return vectors


def read_parquet(path: Path, key: str | None) -> tuple[NDArray[Any], tuple[str, ...]]:
    """(items, D) vectors in a column of lists, and the ids beside them; no ids where no column is named like ids.

    ``key`` names the column of vectors, where it is not one of the usual names.

    Raises:
        UserError: If the file cannot be read, has no such column, or its lists differ in length.

    >>> import tempfile
    >>> import pyarrow, pyarrow.parquet
    >>> file = Path(tempfile.mkdtemp()) / "images.parquet"
    >>> pyarrow.parquet.write_table(pyarrow.table({"id": ["a"], "embedding": [[0.5, 1.0]]}), file)
    >>> read_parquet(file, None)
    (array([[0.5, 1. ]]), ('a',))
    """
    with opened_parquet(path) as file:
        names = file.schema.names
        by_name = {name.lower(): name for name in reversed(names)}
        if key is None:
            known = [by_name[name] for name in _VECTOR_COLUMNS if name in by_name]
            lists = [name for name in names if _holds_lists(file.schema.types[names.index(name)])]
            key = known[0] if known else _one_key(path, lists or names, None)
        key = _one_key(path, names, key)
        if not _holds_lists(file.schema.types[names.index(key)]):
            raise UserError(f"{path}: column {key!r} holds no lists of numbers; name another with FILE:KEY")
        ids = next((by_name[name] for name in _ID_COLUMNS if name in by_name and by_name[name] != key), None)
        blocks: list[NDArray[Any]] = []
        rows: list[str] = []
        count = 0
        for batch in file.batches([key, *([ids] if ids else [])]):
            blocks.append(_vectors_of(batch.column(key), path, key, count, blocks[0].shape[1] if blocks else None))
            rows += [str(one) for one in file.values(batch.column(ids))] if ids else []
            count += batch.num_rows
    if not count:
        raise UserError(f"{path}: column {key!r} is empty or has gaps; give every item a vector")
    return np.concatenate(blocks), tuple(rows)


def _vectors_of(column: Any, path: Path, key: str, start: int, length: int | None) -> NDArray[Any]:
    """(items, D) vectors of a column of lists; ``start`` is its first row, ``length`` the D of earlier rows."""
    import pyarrow as pa

    values = column.flatten()
    if column.null_count or values.null_count:
        raise UserError(f"{path}: column {key!r} is empty or has gaps; give every item a vector")
    if pa.types.is_fixed_size_list(column.type):
        lengths = np.full(len(column), column.type.list_size)
    else:
        lengths = np.asarray(column.value_lengths())
    first = int(lengths[0]) if length is None else length
    if (lengths != first).any():
        row = int(np.argmax(lengths != first))
        raise UserError(
            f"{path}, row {start + row}: a vector of {lengths[row]} where row 0 has {first}; give one length"
        )
    return np.asarray(values).reshape(len(lengths), first)


def _holds_lists(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    is_list = types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind)
    return bool(is_list and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type)))


def read_json_rows(path: Path) -> NDArray[np.float64]:
    r"""A matrix from JSON: a list of lists of numbers, or with the suffix ``.jsonl`` one list in each line.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "scores.jsonl"
    >>> _ = file.write_text("[1, 2]\n[3, 4]")
    >>> read_json_rows(file).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    rows = (  # a row that is not finite is named by whoever reads it
        [parse_json(line, f"{path}, line {n}", finite=False) for n, line in read_lines(path)]
        if path.suffix.lower() == ".jsonl"
        else parse_json(read_text(path), path, finite=False)
    )
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        raise UserError(f"{path}: is not a list of rows; write one list of numbers an image")
    for number, row in enumerate(rows):  # before any memory is taken, which a single long row could make huge
        if len(row) != len(rows[0]):
            raise UserError(
                f"{path}, row {number}: has {len(row)} values where row 0 has {len(rows[0])}; give every pair a value"
            )
    matrix = np.empty((len(rows), len(rows[0])))
    for number, row in enumerate(rows):
        if not all(type(one) in (int, float) for one in row):
            raise UserError(f"{path}, row {number}: a value is no number; write numbers")
        try:
            matrix[number] = row
        except OverflowError as error:
            raise UserError(f"{path}, row {number}: a value is beyond the range of floats; write numbers") from error
    return matrix


def _one_key(path: Path, keys: Sequence[str], key: str | None) -> str:
    if key is not None and key not in keys:
        raise UserError(f"{path}: has no {key!r}; there are {', '.join(keys) or 'none'}")
    if key is None and len(keys) != 1:
        raise UserError(f"{path}: holds {len(keys)} arrays ({', '.join(keys)}); say which with FILE:KEY")
    return keys[0] if key is None else key


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
