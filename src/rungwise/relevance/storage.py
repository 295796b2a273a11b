"""Degrees on disk: a folder of plain arrays that are mapped into memory, known by the hash of what made them.

``relevance.json`` says what the folder holds. A dense matrix is ``values.npy``, (images, captions) float32. The k best
of each query are ``indices.npy``, (queries, k) int32, and ``values.npy``, (queries, k) float32, best first. Where the
source knows whose captions they are, ``image_of_caption.npy`` says it.
"""

from __future__ import annotations

import json
import os
import shutil
import tokenize
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.errors import UserError
from rungwise.core.files import explained
from rungwise.data.collection import ImageCaptions
from rungwise.relevance.base import Block, Degrees, Direction, Frequencies, Positions, hash_of_captions

HEADER = "relevance.json"
VALUES = "values.npy"
INDICES = "indices.npy"
OWNERS = "image_of_caption.npy"
VERSION = 1


def refuse_other(path: Path) -> None:
    """Refuse a place that holds something else than saved degrees, which nobody asked to replace.

    Raises:
        UserError: If it does.

    >>> refuse_other(Path("no such place"))
    """
    if path.exists() and not (path / HEADER).is_file():
        raise UserError(f"{path}: is there and holds no relevance degrees; choose another place")


def write(source: Degrees, path: Path, *, k: int | None, direction: Direction) -> None:
    """Write a source's degrees in chunks; see :meth:`rungwise.relevance.base.Degrees.save`."""
    refuse_other(path)
    header = {
        "version": VERSION,
        "source": type(source).__name__,
        "options": dict(source.options()),
        "content_hash": source.content_hash(),
        "captions_hash": source.captions_hash,
        "complete": source.complete,
        "frequencies_from": source.frequencies_from,
        "shape": list(source.shape),
        "k": k,
        "direction": direction,
    }
    draft = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with explained(path):
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            if k is None:
                _write_array(draft / VALUES, source.shape, np.float32, (part for _, part in source.chunks()))
            else:
                indices, values = source.topk(k, direction)
                _write_array(draft / INDICES, indices.shape, np.int32, [indices])
                _write_array(draft / VALUES, values.shape, np.float32, [values])
            if (owners := source.image_of_caption) is not None:
                _write_array(draft / OWNERS, owners.shape, np.int64, [owners])
            (draft / HEADER).write_text(json.dumps(header, indent=1, ensure_ascii=False), encoding="utf-8")
            shutil.rmtree(path, ignore_errors=True)
            draft.replace(path)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def _write_array(path: Path, shape: tuple[int, ...], kind: type[np.generic], parts: Iterable[NDArray[Any]]) -> None:
    """Write an array's rows, part by part, as ``.npy``.

    By plain writes, since they say when the disk is full: numpy's own name no reason, and in a mapped file it kills the
    process.
    """
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": shape}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for part in parts:
            file.write(np.ascontiguousarray(part, kind).data)


def load(path: Path | str, expected: str | Degrees | None = None, *, data: ImageCaptions | None = None) -> Stored:
    """Map degrees that were saved into memory.

    Args:
        path: The folder that :meth:`~rungwise.relevance.base.Degrees.save` made.
        expected: The source, or its content hash, that the file must come from; None takes any.
        data: The collection whose captions the degrees must be of, where the folder says of which they are; degrees of
            labels or judgements do not.

    Raises:
        UserError: If the folder holds no degrees, is damaged, or comes from other captions, another source or other
            options than expected; the message names both hashes.

    >>> import tempfile
    >>> from rungwise.relevance import CIDErD
    >>> source = CIDErD(["a dog runs", "a cat", "a dog"], [0, 1, 2])
    >>> folder = Path(tempfile.mkdtemp()) / "degrees"
    >>> source.save(folder)
    >>> bool((load(folder, expected=source).dense() == source.dense()).all())
    True
    >>> load(folder, expected=CIDErD(["a dog runs", "a cat", "a fox"], [0, 1, 2]))
    Traceback (most recent call last):
    rungwise.core.errors.UserError: ...degrees: made from other captions or options (hash ... where ... is expected)...
    """
    folder = Path(path)
    try:
        header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
        if header["version"] != VERSION:
            raise UserError(
                f"{folder}: relevance degrees of version {header['version']}, where this program reads {VERSION}; save"
                " the source again"
            )
        values = _mapped(folder / VALUES)
        indices = None if header["k"] is None else _mapped(folder / INDICES)
        owners = np.array(_mapped(folder / OWNERS)) if (folder / OWNERS).is_file() else None
        _check(header, values, indices, owners)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(
            f"{folder}: no relevance degrees here ({Path(error.filename).name} is missing); save a source first"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, SyntaxError, tokenize.TokenError) as error:
        raise UserError(f"{folder}: the relevance degrees are damaged ({error}); save the source again") from error
    stored = Stored(header, values, indices, owners)
    found, wanted = stored.content_hash(), expected.content_hash() if isinstance(expected, Degrees) else expected
    if wanted is not None and wanted != found:
        raise UserError(
            f"{folder}: made from other captions or options (hash {found[:16]} where {wanted[:16]} is expected);"
            " save the source again"
        )
    if data is not None and stored.captions_hash is not None:
        wanted = hash_of_captions(data.captions, data.image_of_caption)
        if wanted != stored.captions_hash:
            raise UserError(
                f"{folder}: degrees of {stored.shape[0]} images and {stored.shape[1]} captions, but {data.name} has"
                f" {len(data)} and {len(data.captions)}, or other ones (hash {stored.captions_hash[:16]} where"
                f" {wanted[:16]} is expected); save the degrees of these data"
            )
    return stored


def _mapped(path: Path) -> NDArray[Any]:
    """A ``.npy`` file; ``numpy.load`` would also take what is none."""
    array: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    return array


def _check(
    header: Mapping[str, Any], values: NDArray[Any], indices: NDArray[Any] | None, owners: NDArray[Any] | None
) -> None:
    """Raise a ValueError, KeyError or TypeError that says what is missing or does not fit together."""
    if missing := {"source", "options", "content_hash"} - header.keys():
        raise ValueError(f"{HEADER} has no {', '.join(sorted(missing))}")
    (images, captions), k, direction = header["shape"], header["k"], header["direction"]
    if direction not in ("i2t", "t2i"):
        raise ValueError(f"{HEADER} says direction {direction!r}")
    queries, candidates = (images, captions) if direction == "i2t" else (captions, images)
    shape = (images, captions) if k is None else (queries, min(k, candidates))
    expected: list[tuple[str, NDArray[Any], tuple[int, ...], str, int | None]] = [(VALUES, values, shape, "f", None)]
    if indices is not None:
        expected.append((INDICES, indices, shape, "i", candidates))
    if owners is not None:
        expected.append((OWNERS, owners, (captions,), "i", images))
    for name, array, wanted, kind, count in expected:
        if array.shape != wanted or array.dtype.kind != kind:
            raise ValueError(f"{name} has shape {array.shape} of {array.dtype}, which does not fit {HEADER}")
        if count is not None and array.size and not 0 <= array.min() <= array.max() < count:
            raise ValueError(f"{name} names {array.min()}..{array.max()}, which does not lie in 0..{count - 1}")


class Stored(Degrees):
    """Degrees that were saved: all pairs, or the best of each query with 0 for others, NaN where the source has gaps.

    Args:
        header: What ``relevance.json`` says.
        values: (images, captions), or (queries, k) with ``indices``; usually memory-mapped.
        indices: (queries, k) which candidate each value belongs to; None where all pairs are there.
        image_of_caption: (captions,) the position of each caption's image; None where it is not known.

    >>> kept = {"content_hash": "0", "shape": [2, 3], "k": 1, "direction": "i2t", "source": "Human", "options": {}}
    >>> Stored(kept, np.array([[0.5], [0.25]], np.float32), np.array([[2], [0]])).dense()
    array([[0.  , 0.  , 0.5 ],
           [0.25, 0.  , 0.  ]], dtype=float32)
    """

    def __init__(
        self,
        header: Mapping[str, Any],
        values: Block,
        indices: NDArray[Any] | None = None,
        image_of_caption: Positions | None = None,
    ) -> None:
        images, captions = header["shape"]
        super().__init__((images, captions))
        self.image_of_caption = image_of_caption
        self.captions_hash = header.get("captions_hash")
        self.complete = header.get("complete", True)
        self.header = header
        self.direction: Direction = header["direction"]
        self._values = values
        self._indices = indices

    def options(self) -> Mapping[str, Any]:
        """Those of the source that was saved."""
        options: Mapping[str, Any] = self.header["options"]
        return options

    @property
    def frequencies_from(self) -> Frequencies | None:
        """That of the source that was saved, as far as the folder tells."""
        if "frequencies_from" in self.header:
            said: Frequencies | None = self.header["frequencies_from"]
            return said
        # Folders of the first programs do not say it; what counts words counted its own captions unless it says so.
        if self.header["source"] in ("CIDEr", "CIDErD", "TfIdf"):
            return "unknown" if "document_frequencies" in self.options() else "collection"
        return "unknown" if self.header["source"] in ("Weighted", "Maximum", "Calibrated", "Cascade") else None

    def title(self) -> str:
        """That of the source that was saved, and how much of it was kept."""
        kept = "" if self._indices is None else f", best {self.header['k']} {self.direction}"
        return f"{self.header['source']}, hash {self.content_hash()[:16]}{kept}"

    def content_hash(self) -> str:
        """That of the source that was saved."""
        return str(self.header["content_hash"])

    def block(self, images: ArrayLike, captions: ArrayLike) -> Block:
        """(len(images), len(captions)) float32 degrees; 0 or NaN for pairs that were not kept."""
        rows, columns = self.positions(images, captions)
        if self._indices is None:
            return _gathered(self._values, rows, columns)
        if self.direction == "i2t":
            return self._kept(rows, columns, self.shape[1])
        return np.ascontiguousarray(self._kept(columns, rows, self.shape[0]).T)

    def _kept(self, queries: Positions, candidates: Positions, count: int) -> Block:
        assert self._indices is not None
        rest = np.float32(0 if self.complete else np.nan)
        if len(candidates) == count and (candidates == np.arange(count)).all():
            rows = np.full((len(queries), count), rest)
            np.put_along_axis(rows, np.asarray(self._indices[queries], np.int64), self._values[queries], axis=1)
            return rows
        asked, place = np.unique(candidates, return_inverse=True)
        column = np.full(count, -1, np.int64)
        column[asked] = np.arange(len(asked))
        found = column[self._indices[queries]]
        row, entry = np.nonzero(found >= 0)
        block = np.full((len(queries), len(asked)), rest)
        block[row, found[row, entry]] = self._values[queries][row, entry]
        return block if len(asked) == len(candidates) and (asked == candidates).all() else block[:, place]

    def topk(self, k: int, direction: Direction = "i2t") -> tuple[Positions, Block]:
        """See :meth:`Degrees.topk`.

        Raises:
            UserError: If more is asked than was kept, or the best of the other direction.
        """
        if self._indices is None:
            return super().topk(k, direction)
        _, candidates = self.asked(k, direction)
        kept = self._indices.shape[1]
        if direction != self.direction or min(k, candidates) > kept:
            raise UserError(
                f"only the best {kept} of each query were kept, {self.direction}; asked were {k}, {direction}:"
                " save the source with them"
            )
        return self._indices[:, :k].astype(np.int64), np.array(self._values[:, :k])


def _gathered(matrix: Block, rows: Positions, columns: Positions) -> Block:
    """Entries of a memory-mapped matrix, by whole rows where that reads less than a gather would."""
    if len(columns) == matrix.shape[1] and (columns == np.arange(len(columns))).all():
        return np.asarray(matrix[rows], np.float32)
    return np.asarray(matrix[rows[:, None], columns[None, :]], np.float32)
