"""Files of stores and indexes: JSON lines and memory-mapped vectors, checked when they are opened."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core.errors import UserError
from rungwise.core.npy import mapped


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    r"""Write one JSON object a line, all in ASCII, so that file names in no known encoding survive.

    Raises:
        UserError: If a record holds what JSON cannot.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "items.jsonl"
    >>> write_lines(file, [{"id": "Käse"}, {"id": "\udcff"}])
    >>> [record["id"] for record in read_lines(file)]
    ['Käse', '\udcff']
    """
    with path.open("w", encoding="ascii", newline="\n") as file:
        for record in records:
            try:
                line = json.dumps(record, allow_nan=False)
            except (TypeError, ValueError) as error:
                raise UserError(
                    f"the record of {record.get('id')!r} cannot be stored ({error}); give texts, finite numbers, truth"
                    " values, and lists and mappings of them"
                ) from error
            file.write(line + "\n")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read what :func:`write_lines` wrote.

    Raises:
        UserError: If the file is missing or a line is damaged; the message gives the line.

    >>> list(read_lines(Path("nowhere.jsonl")))
    Traceback (most recent call last):
    rungwise.core.errors.UserError: nowhere.jsonl: damaged (the file is missing); build the index again
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    record = json.loads(line)
                except ValueError as error:
                    raise damaged(f"{path}, line {number}", "not JSON") from error
                if not isinstance(record, dict):
                    raise damaged(f"{path}, line {number}", "not a JSON object")
                yield record
    except FileNotFoundError as error:
        raise damaged(path, "the file is missing") from error


def open_vectors(path: Path, rows: int, dimension: int) -> NDArray[np.float32]:
    """Memory-map (rows, dimension) float32.

    Raises:
        UserError: If the file is missing, truncated or of another shape.

    >>> open_vectors(Path("nowhere.npy"), rows=1, dimension=2)
    Traceback (most recent call last):
    rungwise.core.errors.UserError: nowhere.npy: damaged (...); build the index again
    """
    if not rows:  # which cannot be mapped
        return np.empty((0, dimension), np.float32)
    try:
        vectors: NDArray[np.float32] = mapped(path)
    except (OSError, ValueError) as error:
        raise damaged(path, str(error).splitlines()[0] if str(error) else "unreadable") from error
    if vectors.shape != (rows, dimension) or vectors.dtype != np.float32:
        found = f"{vectors.dtype} of shape {vectors.shape}"
        raise damaged(path, f"{found} where float32 of shape {(rows, dimension)} is expected")
    return vectors


def read_description(path: Path, form: str, version: int | tuple[int, ...]) -> dict[str, Any]:
    """The JSON object that says what a folder holds.

    Args:
        path: Of the file.
        form: What its ``format`` must be.
        version: What its ``version`` must be, or may be.

    Raises:
        FileNotFoundError: If there is none.
        NotADirectoryError: If its folder is a file.
        UserError: If it is damaged, of another format, or of another version.
    """
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
    except ValueError as error:
        raise damaged(path, f"not JSON ({error})") from error
    if not isinstance(stored, dict) or stored.get("format") != form:
        raise UserError(f"{path}: not the description of a {form!r}; name a folder that `rungwise index` made")
    known = version if isinstance(version, tuple) else (version,)
    if stored.get("version") not in known:
        raise UserError(
            f"{path}: of version {stored.get('version')}, but this rungwise reads version"
            f" {' and '.join(map(str, known))}; use the rungwise that made it, or build the index again"
        )
    return stored


def damaged(where: Path | str, what: str) -> UserError:
    """The error of a file that is not as it was written.

    >>> str(damaged("vectors.npy", "cut off"))
    'vectors.npy: damaged (cut off); build the index again'
    """
    return UserError(f"{where}: damaged ({what}); build the index again")
