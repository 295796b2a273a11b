"""Files of stores and indexes: descriptions, JSON lines and memory-mapped vectors, checked when they are opened."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import (
    MissingFileError,
    UserError,
    digest_of_json,
    digest_of_parts,
    limits,
    opened_file,
    parse_json,
    read_bytes,
    require_regular,
)
from rungwise.core.disk import replacing
from rungwise.core.formats import mapped

CHECKSUM = "checksum"
"""Field of a description that holds the SHA-256 of the others."""

_BYTES_AT_ONCE = 8 * 2**20


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> str:
    """Write one JSON object a line, all in ASCII, so that file names in no known encoding survive.

    Gives the SHA-256 of the file, for :func:`read_lines`; a record that holds what JSON cannot is refused.
    """
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for record in records:
            try:
                line = json.dumps(record, allow_nan=False).encode("ascii") + b"\n"
            except (TypeError, ValueError) as error:
                raise UserError(
                    f"the record of {record.get('id')!r} cannot be stored ({error}); give texts, finite numbers, truth"
                    " values, and lists and mappings of them"
                ) from error
            file.write(line)
            digest.update(line)
    return digest.hexdigest()


def read_lines(path: Path, digest: str | None = None) -> Iterator[dict[str, Any]]:
    """Read what :func:`write_lines` wrote; its SHA-256 is not compared if None.

    Raises:
        UserError: If the file is missing, has another digest, or a line is damaged; the message gives the line. Another
            digest is found out after the last line.
    """
    found, most = hashlib.sha256(), limits().line_bytes
    try:
        with opened_file(path, None) as file:
            for number, line in enumerate(iter(lambda: file.readline(most), b""), start=1):
                found.update(line)
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise damaged(f"{path}, line {number}", "not JSON") from error
                if not isinstance(record, dict):
                    raise damaged(f"{path}, line {number}", "not a JSON object")
                yield record
    except MissingFileError as error:
        raise damaged(path, "the file is missing") from error
    if digest is not None and found.hexdigest() != digest:
        raise altered(path)


def open_vectors(path: Path, rows: int, dimension: int, digest: str | None = None) -> NDArray[np.float32]:
    """Memory-map (rows, dimension) float32.

    With a ``digest`` all numbers are read: none may be NaN or infinite, and their SHA-256 must be this one. With None,
    nothing is read.

    Raises:
        UserError: If the file is missing, truncated or of another shape, or its numbers are not those that were
            written.
    """
    if not rows:  # which cannot be mapped
        return np.empty((0, dimension), np.float32)
    try:
        require_regular(path)
        vectors: NDArray[np.float32] = mapped(path)
        size = path.stat().st_size  # a writer that merges parts may take the file away at any moment
    except MissingFileError as error:
        raise damaged(path, "the file is missing") from error
    except (OSError, ValueError) as error:
        raise damaged(path, str(error).splitlines()[0] if str(error) else "unreadable") from error
    if vectors.shape != (rows, dimension) or vectors.dtype != np.float32:
        found = f"{vectors.dtype} of shape {vectors.shape}"
        raise damaged(path, f"{found} where float32 of shape {(rows, dimension)} is expected")
    if digest is not None:
        if isinstance(vectors, np.memmap) and size != vectors.offset + vectors.nbytes:
            raise damaged(path, "there is more in the file than its numbers")
        _look_through(path, vectors, digest)
    return vectors


def digest_of_vectors(vectors: NDArray[np.float32]) -> str:
    """SHA-256 of (rows, D) numbers as they lie in their file, without the file's head."""
    return digest_of_parts(block for _, block in _blocks(vectors))


def _look_through(path: Path, vectors: NDArray[np.float32], wanted: str) -> None:
    digest = hashlib.sha256()
    for start, block in _blocks(vectors):
        digest.update(block.data)
        # One product is as quick as reading; it is NaN or infinite where a number is, or where numbers are huge.
        with np.errstate(over="ignore"):
            product = np.dot(block.ravel(), block.ravel())
        if not np.isfinite(product):
            odd = np.flatnonzero(~np.isfinite(block).all(axis=1))
            if odd.size:
                raise damaged(path, f"row {start + odd[0]} (from 0) holds NaN or infinity")
    if digest.hexdigest() != wanted:
        raise altered(path)


def _blocks(vectors: NDArray[np.float32]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    run = max(1, _BYTES_AT_ONCE // (4 * vectors.shape[1]))
    for start in range(0, len(vectors), run):
        yield start, np.ascontiguousarray(vectors[start : start + run])


def write_description(path: Path, fields: Mapping[str, Any], indent: int | None = None) -> None:
    """Write the JSON object that describes a folder, with a checksum of itself; whole or not at all.

    ``fields`` hold ``format`` and ``version`` among others; ``indent`` puts one field a line, so many spaces in.
    """
    with replacing(path) as draft:
        draft.write_text(json.dumps({**fields, CHECKSUM: _checksum(fields)}, indent=indent) + "\n", encoding="ascii")


def read_description(path: Path, form: str, version: int) -> dict[str, Any]:
    """Read the JSON object that describes a folder, whose ``format`` must be ``form``; the checksum is left out.

    Raises:
        MissingFileError: If there is none.
        UserError: If it is damaged or was altered, is of another format, or of another version.
    """
    text = read_bytes(path, "json_bytes")
    try:
        stored = parse_json(text, path)
    except UserError as error:
        raise damaged(path, str(error).removeprefix(f"{path}: ")) from error
    if not isinstance(stored, dict) or stored.get("format") != form:
        raise UserError(f"{path}: not the description of a {form!r}; name a folder that `rungwise index` made")
    if stored.get("version") != version:
        raise UserError(
            f"{path}: of version {stored.get('version')}, but this rungwise reads version {version}; use the rungwise"
            " that made it, or build the index again"
        )
    if stored.pop(CHECKSUM, None) != _checksum(stored):
        raise altered(path)
    return stored


def _checksum(fields: Mapping[str, Any]) -> str:
    """SHA-256 of fields, whatever their order and the spaces between them."""
    return digest_of_json(fields)


def damaged(where: Path | str, what: str) -> UserError:
    """The error of a file that is not as it was written."""
    return UserError(f"{where}: damaged ({what}); build the index again")


def altered(where: Path | str) -> UserError:
    """The error of a file whose checksum is not the recorded one."""
    return damaged(where, "its content is not what was written: the checksums differ")
