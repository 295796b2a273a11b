"""The files of saved degrees: a folder of plain arrays that appears as a whole and is mapped into memory.

``relevance.json`` says what the folder holds. A dense matrix is ``values.npy``, (images, captions) float32. The k best
of each query are ``indices.npy``, (queries, k) int32, and ``values.npy``, (queries, k) float32, best first. Where the
source knows whose captions they are, ``image_of_caption.npy`` says it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rungwise.core import Check, MissingFileError, UserError, checked, limits, read_json, require_regular, stamp
from rungwise.core.disk import check_seal, explained
from rungwise.core.disk.folders import entries, refuse_strangers, replacing_folder
from rungwise.core.disk.staging import sweep
from rungwise.core.formats import NpyWriter, mapped

__all__ = [
    "HEADER",
    "INDICES",
    "OWNERS",
    "VALUES",
    "VERSION",
    "SavedFolder",
    "read",
    "refuse_other",
    "replacing",
    "verify",
    "write",
]

HEADER = "relevance.json"
VALUES = "values.npy"
INDICES = "indices.npy"
OWNERS = "image_of_caption.npy"
VERSION = 1

_KINDS: Mapping[str, Any] = {
    "source": str,
    "options": Mapping,
    "called": str,
    "content_hash": str,
    "captions_hash": str | None,
    "complete": bool,
    "reference": str | None,
    "frequencies_from": str | None,
    "models": list,
}
_REFERENCES = ("paired", "max", "mean", None)
_PARTS = frozenset({HEADER, VALUES, INDICES, OWNERS})
_WHAT = "saved relevance degrees"
_BYTES_AT_ONCE = 64 * 2**20


class SavedFolder(NamedTuple):
    """The content of a folder of saved degrees.

    Attributes:
        header: Content of ``relevance.json``.
        values: (images, captions), or (queries, k) with ``indices``.
        indices: (queries, k) which candidate each value belongs to; None where all pairs are there.
        image_of_caption: (captions,) the position of each caption's image; None where it is not known.
    """

    header: Mapping[str, Any]
    values: NDArray[Any]
    indices: NDArray[Any] | None
    image_of_caption: NDArray[Any] | None


def refuse_other(path: Path) -> None:
    """Refuse a place that holds anything else than saved degrees, which must not be replaced."""
    with explained(path):
        sweep(path.resolve())  # what a killed run had moved aside comes back
    is_empty = path.is_dir() and not entries(path)
    if path.exists() and not is_empty and not (path / HEADER).is_file():
        raise UserError(f"{path}: is there and holds no relevance degrees; choose another place")
    refuse_strangers(path, _PARTS, _WHAT)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a folder to :func:`write` to; it takes the place of ``path`` only when the block ends well.

    Raises:
        UserError: If the disk is full, the path cannot be written, or it is there and holds something else.
    """
    refuse_other(path)
    with replacing_folder(path, _PARTS, _WHAT, header=HEADER) as draft:
        yield draft


def write(
    folder: Path,
    header: Mapping[str, Any],
    values: Iterable[NDArray[Any]],
    indices: Iterable[NDArray[Any]] | None = None,
    image_of_caption: NDArray[Any] | None = None,
) -> None:
    """Write the files of a :class:`SavedFolder`.

    Args:
        folder: An empty folder.
        header: Header that says what the degrees are, such as their source, shape and hashes.
        values: Consecutive parts of the values, some rows each.
        indices: Consecutive parts of the (queries, k) indices, some rows each.
        image_of_caption: (captions,) the position of each caption's image.
    """
    _write_array(folder / VALUES, np.float32, values, _shape_of_values(header)[1:])
    if indices is not None:
        _write_array(folder / INDICES, np.int32, indices, _shape_of_values(header)[1:])
    if image_of_caption is not None:
        _write_array(folder / OWNERS, np.int64, [image_of_caption], ())
    (folder / HEADER).write_text(json.dumps({"version": VERSION, **header}, indent=1), encoding="ascii")


def _write_array(path: Path, dtype: type[np.generic], parts: Iterable[NDArray[Any]], row: tuple[int, ...]) -> None:
    with NpyWriter(path, row, dtype) as writer:
        for part in parts:
            writer.append(part)


def read(folder: Path) -> SavedFolder:
    """Map what :func:`write` wrote into memory: all of it from one folder, though another may replace it meanwhile.

    Files are compared with the folder's seal: all but those larger than the limit ``checked_bytes`` (see
    :class:`rungwise.core.Limits`).

    Raises:
        UserError: If the folder holds no degrees, is damaged or was altered, or is of another version.
    """
    while True:
        before = stamp(folder / HEADER)
        try:
            saved = _read(folder)
        except UserError:
            if stamp(folder / HEADER) == before:
                raise
        else:
            if stamp(folder / HEADER) == before:
                return saved


def _read(folder: Path) -> SavedFolder:
    try:
        header = _read_header(folder)
        sizes = {name: require_regular(folder / name) for name in _PARTS if (folder / name).exists()}
        check_seal(folder, [name for name, size in sizes.items() if size <= limits().checked_bytes])
        values = mapped(folder / VALUES)
        indices = None if header["k"] is None else mapped(folder / INDICES)
        owners = np.array(mapped(folder / OWNERS)) if (folder / OWNERS).is_file() else None
        _check(header, values, indices, owners)
    except FileNotFoundError as error:
        raise _missing(folder, Path(error.filename).name) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder}: the relevance degrees are damaged ({error}); save the source again") from error
    return SavedFolder(header, values, indices, owners)


def _read_header(folder: Path) -> Mapping[str, Any]:
    try:
        header = read_json(folder / HEADER)
    except MissingFileError:
        raise _missing(folder, HEADER) from None
    except UserError as error:
        raise UserError(f"{error}; the relevance degrees are damaged, save the source again") from error
    if header["version"] != VERSION:
        raise UserError(
            f"{folder}: relevance degrees of version {header['version']}, where this program reads {VERSION}; save"
            " the source again"
        )
    return dict(header)


def _missing(folder: Path, name: str) -> UserError:
    return UserError(f"{folder}: no relevance degrees here ({name} is missing); save a source first")


def _check(
    header: Mapping[str, Any], values: NDArray[Any], indices: NDArray[Any] | None, owners: NDArray[Any] | None
) -> None:
    """Raise a ValueError, KeyError or TypeError that says what is missing or does not fit together."""
    if missing := _KINDS.keys() - header.keys():
        raise ValueError(f"{HEADER} has no {', '.join(sorted(missing))}")
    for name, kinds in _KINDS.items():
        if not isinstance(header[name], kinds):
            raise ValueError(f"{HEADER} says {name} {header[name]!r}"[:200])
    if not all(isinstance(one, str) for one in header["models"]):
        raise ValueError(f"{HEADER} names a model by what is no text")
    if header["reference"] not in _REFERENCES:
        raise ValueError(f"{HEADER} says reference {header['reference']!r}"[:200])
    shape = _shape_of_values(header)
    images, captions = header["shape"]
    candidates = captions if header["direction"] == "i2t" else images
    expected: list[tuple[str, NDArray[Any], tuple[int, ...], str, int | None]] = [(VALUES, values, shape, "f4", None)]
    if indices is not None:
        expected.append((INDICES, indices, shape, "i4", candidates))
    if owners is not None:
        expected.append((OWNERS, owners, (captions,), "i8", images))
    for name, array, wanted, kind, count in expected:
        if array.shape != wanted or array.dtype != kind:
            raise ValueError(f"{name} has shape {array.shape} of {array.dtype}, which does not fit {HEADER}")
        if count is not None and array.size and not 0 <= array.min() <= array.max() < count:
            raise ValueError(f"{name} names {array.min()}..{array.max()}, which does not lie in 0..{count - 1}")


def _shape_of_values(header: Mapping[str, Any]) -> tuple[int, int]:
    """Shape of the values by the header; a ValueError if the direction is unknown."""
    (images, captions), k, direction = header["shape"], header["k"], header["direction"]
    if direction not in ("i2t", "t2i"):
        raise ValueError(f"{HEADER} says direction {direction!r}")
    queries, candidates = (images, captions) if direction == "i2t" else (captions, images)
    return (images, captions) if k is None else (queries, min(k, candidates))


def verify(folder: Path) -> Iterator[Check]:
    """Check everything in a folder of degrees, however large its files are."""
    opened = checked(HEADER, lambda: _described(read(folder)))
    yield opened
    yield checked("seal", lambda: _sealed(folder))
    if not opened.wrong:
        yield checked("values", lambda: _values(folder, read(folder)))


def _described(saved: SavedFolder) -> str:
    images, captions = saved.header["shape"]
    kept = "all pairs" if saved.indices is None else f"the best {saved.header['k']} {saved.header['direction']}"
    return f"{saved.header['source']}, {images} images x {captions} captions, {kept}"


def _sealed(folder: Path) -> str:
    check_seal(folder)
    return "every file is as it was written"


def _values(folder: Path, saved: SavedFolder) -> str:
    complete = saved.header["complete"]
    run = max(1, _BYTES_AT_ONCE // max(1, 4 * saved.values.shape[1]))
    for start in range(0, len(saved.values), run):
        part = np.asarray(saved.values[start : start + run])
        odd = np.isinf(part) | (np.isnan(part) if complete else False)
        if odd.any():
            row = start + int(np.flatnonzero(odd.any(axis=1))[0])
            raise UserError(f"{folder / VALUES}: row {row} (from 0) holds NaN or infinity; save the source again")
        if saved.indices is not None:
            candidates = np.sort(saved.indices[start : start + run], axis=1)
            if (candidates[:, 1:] == candidates[:, :-1]).any():
                raise UserError(f"{folder / INDICES}: names a candidate of a query twice; save the source again")
    return f"{saved.values.size} degrees, none of them NaN or infinite" if complete else f"{saved.values.size} degrees"
