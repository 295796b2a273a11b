"""Degrees that were saved, as a source like any other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.core.formats import NpyRows, in_file, mapped
from rungwise.data import ImageCaptions
from rungwise.relevance._base import Block, Degrees, Direction, Frequencies, Positions
from rungwise.relevance._captions import hash_of_captions
from rungwise.relevance.storage import saved

MOST_PAIRS = 10_000_000
"""Largest number of pairs that are listed for a source with gaps: people's judgements, and not half a matrix."""


def load(path: Path | str, expected: str | Degrees | None = None, *, data: ImageCaptions | None = None) -> SavedDegrees:
    """Map saved degrees into memory.

    Args:
        path: The folder that :meth:`~rungwise.relevance.Degrees.save` made.
        expected: The source, or its content hash, that the file must come from; None takes any.
        data: The collection whose captions the degrees must be of; not checked where the folder does not name its
            captions, as with degrees of labels or judgements.

    Raises:
        UserError: If the folder holds no degrees, is damaged, or comes from other captions, another source or other
            options than expected; the message names both hashes.

    >>> import tempfile
    >>> from rungwise.relevance.lexical import CIDErD
    >>> source = CIDErD(["a dog runs", "a cat", "a dog"], [0, 1, 2])
    >>> folder = Path(tempfile.mkdtemp()) / "degrees"
    >>> source.save(folder)
    >>> bool((load(folder, expected=source).dense() == source.dense()).all())
    True
    """
    folder = Path(path)
    stored = SavedDegrees(*saved.read(folder))
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
                f" {wanted[:16]} is expected); save the degrees of these data and this split (--split)"
            )
    return stored


class SavedDegrees(Degrees):
    """Saved degrees: all pairs, or the best of each query with 0 for others, NaN where the source has gaps.

    Args:
        header: Content of ``relevance.json``.
        values: (images, captions), or (queries, k) with ``indices``; usually memory-mapped.
        indices: (queries, k) which candidate each value belongs to; None where all pairs are there.
        image_of_caption: (captions,) the position of each caption's image; None where it is not known.

    >>> from rungwise.relevance._base import saved_header
    >>> from rungwise.relevance.human import Labels
    >>> header = saved_header(Labels("ab", [0, 1, 1]), 1, "i2t")
    >>> SavedDegrees(header, np.array([[0.5], [0.25]], np.float32), np.array([[2], [0]])).dense()
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
        self.captions_hash = header["captions_hash"]
        self.complete = header["complete"]
        self.reference = header["reference"]
        self.header = header
        self.direction: Direction = header["direction"]
        self._values = values
        self._indices = indices

    def __getstate__(self) -> dict[str, Any]:
        """State for another process: arrays that are mapped from files go as the names of these files."""
        arrays = {name: in_file(self.__dict__[name]) for name in ("_values", "_indices")}
        return self.__dict__ | arrays

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Map the files again."""
        self.__dict__.update(
            {name: mapped(one.path) if isinstance(one, NpyRows) else one for name, one in state.items()}
        )

    def options(self) -> Mapping[str, Any]:
        """Options of the source that was saved."""
        options: Mapping[str, Any] = self.header["options"]
        return options

    @property
    def called(self) -> str:
        """Name and choices of the source that was saved."""
        return str(self.header["called"])

    @property
    def frequencies_from(self) -> Frequencies | None:
        """Whose captions the saved source counted words in."""
        said: Frequencies | None = self.header["frequencies_from"]
        return said

    @property
    def models(self) -> frozenset[str]:
        """Picture models of the source that was saved."""
        return frozenset(self.header["models"])

    def known_pairs(self) -> Positions | None:
        """The pairs that have a degree, as in the base class; a folder with gaps is read through for it."""
        if self.complete:
            return None
        if self._indices is None:
            found, count = [], 0
            for rows, part in self.chunks():
                at, captions = np.nonzero(~np.isnan(part))
                found.append(np.stack([rows[at], captions], axis=1))
                if (count := count + len(at)) > MOST_PAIRS:
                    return None
            return np.concatenate(found) if found else np.empty((0, 2), np.int64)
        queries, places = np.nonzero(~np.isnan(self._values))
        candidates = np.asarray(self._indices, np.int64)[queries, places]
        pairs = (queries, candidates) if self.direction == "i2t" else (candidates, queries)
        return np.unique(np.stack(pairs, axis=1), axis=0)

    @property
    def source_name(self) -> str:
        """Name of the source that was saved."""
        return str(self.header["source"])

    def title(self) -> str:
        """Title of the source that was saved, and how much of it was kept."""
        kept = "" if self._indices is None else f", best {self.header['k']} {self.direction}"
        return f"{self.header['source']}, hash {self.content_hash()[:16]}{kept}"

    def content_hash(self) -> str:
        """Content hash of the source that was saved."""
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

    def topk(self, k: int, direction: Direction = "i2t", queries: range | None = None) -> tuple[Positions, Block]:
        """The best candidates, read and not computed where only the best were saved.

        Raises:
            UserError: If more is asked than was kept, or the best of the other direction.
        """
        if self._indices is None:
            return super().topk(k, direction, queries)
        asked, candidates = self.queries(k, direction, queries)
        kept = self._indices.shape[1]
        if direction != self.direction or min(k, candidates) > kept:
            raise UserError(
                f"only the best {kept} of each query were kept, {self.direction}; asked were {k}, {direction}:"
                " save the source with them"
            )
        part = slice(asked.start, asked.stop)
        return self._indices[part, :k].astype(np.int64), np.array(self._values[part, :k])


def _gathered(matrix: Block, rows: Positions, columns: Positions) -> Block:
    """Entries of a memory-mapped matrix, by whole rows where that reads less than a gather would."""
    if len(columns) == matrix.shape[1] and (columns == np.arange(len(columns))).all():
        return np.asarray(matrix[rows], np.float32)
    return np.asarray(matrix[rows[:, None], columns[None, :]], np.float32)
