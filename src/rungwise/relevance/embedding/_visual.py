"""Relevance by the eyes of an encoder of pictures: pictures that look alike share their captions.

With v(i) the vector of image i and o(c) the image that caption c was written for::

    R(i, c) = cos(v(i), v(o(c)))                                            of pictures alone
    R(i, c) = max over the k nearest j of  cos+(v(i), v(j)) T(j, c)         through a source T of captions ("max")
    R(i, c) = sum_j cos+(v(i), v(j)) T(j, c) / sum_j cos+(v(i), v(j))       ("mean")

so that the neighbours of a picture lend it their captions. A picture is its own nearest neighbour, with cosine 1; cos+
is 0 where the cosine is less, so that what is unlike lends nothing.

This is a model's opinion. Degrees that a model gave say nothing about how good that model is: they carry its
fingerprint (:attr:`~rungwise.relevance.Degrees.models`), and an evaluation of the same model refuses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.core.compute import steady_products, taken, top_columns
from rungwise.relevance._base import CHUNK_BYTES, Block, Degrees, Frequencies, Positions
from rungwise.relevance._caption_pairs import caption_positions
from rungwise.relevance._captions import hash_of_captions
from rungwise.similarity import unit_rows

Lending = Literal["max", "mean"]

NEIGHBOURS = 10


@runtime_checkable
class ImagePairs(Protocol):
    """A source that compares images with images, as people do in CxC's image-image ratings."""

    def image_block(self, first: ArrayLike, second: ArrayLike) -> NDArray[np.float32]:
        """(len(first), len(second)) float32 degrees, by positions of images."""
        ...


class Visual(Degrees):
    """Similarity of pictures by the vectors of any picture encoder, with the formulas of the module.

    Args:
        vectors: (images, D) vectors of any lengths; a picture without one is a row of zeros.
        image_of_caption: (captions,) the position of each caption's image.
        through: Source of the same images and captions whose degrees the neighbours lend; None compares pictures alone.
        neighbours: Number of pictures that lend, the picture itself included.
        lending: The best that one of them lends (max), or the mean of all (mean).
        model: Fingerprint of the model that made the vectors; empty where it is not known.
        captions: (captions,) texts, whose hash ties the degrees to their collection; None leaves that open.

    Raises:
        UserError: If vectors are no finite (images, D) numbers, an image position does not exist, the source is of
            other data or has gaps, or ``neighbours`` is not positive.

    >>> photos = Visual(np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32), [0, 0, 1, 2])
    >>> photos.dense().round(2)
    array([[1. , 1. , 0.6, 0. ],
           [0.6, 0.6, 1. , 0.8],
           [0. , 0. , 0.8, 1. ]], dtype=float32)
    >>> photos.image_block([0], [1, 2]).round(2)
    array([[0.6, 0. ]], dtype=float32)
    """

    def __init__(
        self,
        vectors: ArrayLike,
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        through: Degrees | None = None,
        neighbours: int = NEIGHBOURS,
        lending: Lending = "max",
        model: str = "",
        captions: Sequence[str] | None = None,
    ) -> None:
        rows, owners = np.asarray(vectors), np.asarray(image_of_caption, np.int64)
        if rows.ndim != 2 or rows.dtype.kind not in "fiu" or not rows.size:
            raise UserError(f"visual: vectors of shape {rows.shape}, {rows.dtype}; give (images, D) numbers")
        with np.errstate(over="ignore"):  # to infinity, which is refused
            rows = rows.astype(np.float32)
        if not np.isfinite(rows).all():
            place = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise UserError(f"visual: vector {place} (from 0) holds NaN or infinity; make it anew, or give zeros")
        if owners.ndim != 1 or (owners.size and not 0 <= owners.min() <= owners.max() < len(rows)):
            raise UserError(
                f"visual: image_of_caption names other images than the {len(rows)} that have vectors; give one vector"
                " for each image"
            )
        super().__init__((len(rows), len(owners)))
        if through is not None and through.shape != self.shape:
            raise UserError(
                f"visual: {through.source_name} has degrees of {through.shape} images and captions, and here are"
                f" {self.shape}; build it from the same data"
            )
        if through is not None and not through.complete:
            raise UserError(f"visual: {through.source_name} knows some pairs only; lend by a source that knows all")
        if neighbours < 1 or lending not in ("max", "mean"):
            raise UserError(
                f"visual: {neighbours} neighbours, lending {lending!r}; give at least 1, and 'max' or 'mean'"
            )
        self.image_of_caption = owners
        self.captions_hash = None if captions is None else hash_of_captions(captions, owners)
        if self.captions_hash is None and through is not None:
            self.captions_hash = through.captions_hash
        self.vectors: NDArray[np.float32] = unit_rows(rows)
        self.through = through
        self.reference = None if through is None else through.reference
        self.neighbours = min(neighbours, len(rows))
        self.lending = lending
        self.model = model
        self._near: tuple[Positions, Block] | None = None

    @property
    def models(self) -> frozenset[str]:
        """The model of the vectors, where it is known, and the models of the lending source."""
        own = frozenset((self.model,)) if self.model else frozenset()
        return own if self.through is None else own | self.through.models

    @property
    def frequencies_from(self) -> Frequencies | None:
        """Whose captions the lending source counted words in."""
        return None if self.through is None else self.through.frequencies_from

    @property
    def of_caption_pairs(self) -> bool:
        """Whether captions can be compared by their pictures: only without a lending source."""
        return self.through is None

    def image_block(self, first: ArrayLike, second: ArrayLike) -> Block:
        """(len(first), len(second)) float32 cosines of images, -1..1; 1 of an image with itself."""
        rows, _ = self.positions(first, ())
        columns, _ = self.positions(second, ())
        found = steady_products(self.vectors[rows], self.vectors[columns])
        found[rows[:, None] == columns[None, :]] = 1
        return found

    def pair_block(self, first: ArrayLike, second: ArrayLike) -> Block:
        """(len(first), len(second)) float32 cosines of the captions' images."""
        assert self.image_of_caption is not None
        rows, columns = caption_positions(first, second, self.shape[1])
        return self.image_block(self.image_of_caption[rows], self.image_of_caption[columns])

    def block(self, images: ArrayLike, captions: ArrayLike) -> Block:
        """(len(images), len(captions)) float32 degrees."""
        assert self.image_of_caption is not None
        rows, columns = self.positions(images, captions)
        if self.through is None:
            owners, place = np.unique(self.image_of_caption[columns], return_inverse=True)
            return self.image_block(rows, owners)[:, place]
        places, cosines = self._nearest()
        lenders, of = np.unique(places[rows], return_inverse=True)
        of, cosines = of.reshape(len(rows), self.neighbours), cosines[rows]
        out = np.empty((len(rows), len(columns)), np.float32)
        # All lenders are asked for some captions at a time: sources of words keep an index of the images asked last.
        run = max(1, CHUNK_BYTES // max(1, 4 * len(lenders)))
        for start in range(0, len(columns), run):
            lent = self.through.block(lenders, columns[start : start + run])
            out[:, start : start + run] = self._lent(lent, of, cosines)
        return out

    def _lent(self, lent: Block, of: Positions, cosines: Block) -> Block:
        """(images, captions) degrees from (lenders, captions) degrees.

        Args:
            lent: Degrees of the lenders.
            of: (images, neighbours) positions of each image's lenders.
            cosines: (images, neighbours) cosines of each image with its lenders.
        """
        weights = np.maximum(cosines, 0)
        total = weights[:, :1] * lent[of[:, 0]]
        for place in range(1, of.shape[1]):
            part = weights[:, place : place + 1] * lent[of[:, place]]
            total = np.maximum(total, part) if self.lending == "max" else total + part
        return total if self.lending == "max" else total / weights.sum(axis=1, keepdims=True)

    def _nearest(self) -> tuple[Positions, Block]:
        """(images, neighbours) positions of the nearest images, and their cosines; computed on first use."""
        if self._near is None:
            images = self.shape[0]
            places = np.empty((images, self.neighbours), np.int64)
            cosines = np.empty((images, self.neighbours), np.float32)
            run = max(1, CHUNK_BYTES // (4 * images))
            for start in range(0, images, run):
                rows = np.arange(start, min(start + run, images))
                found = self.image_block(rows, np.arange(images))
                found[np.arange(len(rows)), rows] = np.inf  # itself, whoever else is as near
                places[rows] = top_columns(found, self.neighbours)
                cosines[rows] = np.minimum(taken(found, places[rows]), 1)
            self._near = places, cosines
        return self._near

    def options(self) -> Mapping[str, Any]:
        """The model, and how captions are lent."""
        if self.through is None:
            return {"model": self.model}
        lends = {"neighbours": self.neighbours, "lending": self.lending, "source": self.through.content_hash()}
        return {"model": self.model, **lends}

    def choices(self) -> Mapping[str, Any]:
        """The source's own choices, and what the lending source is called."""
        return {**super().choices(), **({} if self.through is None else {"of": self.through.called})}

    def hashed(self) -> Iterator[bytes]:
        """Vectors, and the image of each caption."""
        yield np.ascontiguousarray(self.vectors).tobytes()
        yield np.ascontiguousarray(self.image_of_caption, "<i8").tobytes()
