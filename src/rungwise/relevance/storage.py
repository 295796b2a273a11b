"""Degrees on disk: a folder of plain arrays that are mapped into memory, known by the hash of what made them.

``relevance.json`` says what the folder holds. A dense matrix is ``values.npy``, (images, captions) float32. The k best
of each query are ``indices.npy``, (queries, k) int32, and ``values.npy``, (queries, k) float32, best first. Where the
source knows whose captions they are, ``image_of_caption.npy`` says it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.errors import UserError
from rungwise.files import explained
from rungwise.relevance.base import Block, Degrees, Direction, Positions

HEADER = "relevance.json"
VALUES = "values.npy"
INDICES = "indices.npy"
OWNERS = "image_of_caption.npy"
VERSION = 1


def write(source: Degrees, path: Path, *, k: int | None, direction: Direction) -> None:
    """Write a source's degrees in chunks; see :meth:`rungwise.relevance.base.Degrees.save`."""
    if path.exists() and not (path / HEADER).is_file():
        raise UserError(f"{path}: is there and holds no relevance degrees; choose another place")
    header = {
        "version": VERSION,
        "source": type(source).__name__,
        "options": dict(source.options()),
        "content_hash": source.content_hash(),
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
                matrix = np.lib.format.open_memmap(draft / VALUES, mode="w+", dtype=np.float32, shape=source.shape)
                for rows, part in source.chunks():
                    matrix[rows] = part
                matrix.flush()
            else:
                indices, values = source.topk(k, direction)
                np.save(draft / INDICES, indices.astype(np.int32))
                np.save(draft / VALUES, values)
            if source.image_of_caption is not None:
                np.save(draft / OWNERS, source.image_of_caption)
            (draft / HEADER).write_text(json.dumps(header, indent=1, ensure_ascii=False), encoding="utf-8")
            shutil.rmtree(path, ignore_errors=True)
            draft.replace(path)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


def load(path: Path | str, expected: str | Degrees | None = None) -> Stored:
    """Map degrees that were saved into memory.

    Args:
        path: The folder that :meth:`~rungwise.relevance.base.Degrees.save` made.
        expected: The source, or its content hash, that the file must come from; None takes any.

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
    rungwise.errors.UserError: ...degrees: made from other captions or options (hash ... where ... is expected)...
    """
    folder = Path(path)
    try:
        header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
        found, shape, k = str(header["content_hash"]), tuple(header["shape"]), header["k"]
        values = np.load(folder / VALUES, mmap_mode="r", allow_pickle=False)
        indices = None if k is None else np.load(folder / INDICES, mmap_mode="r", allow_pickle=False)
        owners = np.load(folder / OWNERS, allow_pickle=False) if (folder / OWNERS).is_file() else None
        images, captions = shape
        queries, candidates = shape if header["direction"] == "i2t" else shape[::-1]
        fits = values.shape == ((images, captions) if k is None else (queries, min(k, candidates)))
    except FileNotFoundError as error:
        raise UserError(
            f"{folder}: no relevance degrees here ({Path(error.filename).name} is missing); save a source first"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder}: the relevance degrees are damaged ({error}); save the source again") from error
    if not fits or (indices is not None and indices.shape != values.shape):
        raise UserError(
            f"{folder}: {VALUES} has shape {values.shape}, which does not fit {HEADER}; save the source again"
        )
    wanted = expected.content_hash() if isinstance(expected, Degrees) else expected
    if wanted is not None and wanted != found:
        raise UserError(
            f"{folder}: made from other captions or options (hash {found[:16]} where {wanted[:16]} is expected);"
            " save the source again"
        )
    return Stored(header, values, indices, owners)


class Stored(Degrees):
    """Degrees that were saved: all pairs, or the best of each query with 0 for all other pairs.

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
        self.header = header
        self.direction: Direction = header["direction"]
        self._values = values
        self._indices = indices

    def options(self) -> Mapping[str, Any]:
        """Those of the source that was saved."""
        options: Mapping[str, Any] = self.header["options"]
        return options

    def title(self) -> str:
        """That of the source that was saved, and how much of it was kept."""
        kept = "" if self._indices is None else f", best {self.header['k']} {self.direction}"
        return f"{self.header['source']}, hash {self.content_hash()[:16]}{kept}"

    def content_hash(self) -> str:
        """That of the source that was saved."""
        return str(self.header["content_hash"])

    def block(self, images: ArrayLike, captions: ArrayLike) -> Block:
        """(len(images), len(captions)) float32 degrees; 0 for pairs that were not kept."""
        rows, columns = np.asarray(images, np.int64), np.asarray(captions, np.int64)
        if self._indices is None:
            return _gathered(self._values, rows, columns)
        if self.direction == "i2t":
            return self._kept(rows, columns, self.shape[1])
        return np.ascontiguousarray(self._kept(columns, rows, self.shape[0]).T)

    def _kept(self, queries: Positions, candidates: Positions, count: int) -> Block:
        assert self._indices is not None
        if len(candidates) == count and (candidates == np.arange(count)).all():
            rows = np.zeros((len(queries), count), np.float32)
            np.put_along_axis(rows, np.asarray(self._indices[queries], np.int64), self._values[queries], axis=1)
            return rows
        asked, place = np.unique(candidates, return_inverse=True)
        column = np.full(count, -1, np.int64)
        column[asked] = np.arange(len(asked))
        found = column[self._indices[queries]]
        row, entry = np.nonzero(found >= 0)
        block = np.zeros((len(queries), len(asked)), np.float32)
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
