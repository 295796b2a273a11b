"""Sources that a pass reads S and R from: arrays, memory-maps, embeddings, or anything that returns blocks.

Every source yields the same bits for a pair whatever the size of the blocks. A matrix does so by itself. A matrix
product does not (its rounding depends on the shape of the operands), so computed similarities always come from the same
tiles, and blocks of any size are cut from those.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.metrics._blocks import Block, Positions, as_floats, as_slice, checked_block, refuse_gaps
from rungwise.metrics._rankings import Direction, Scores

Norms = tuple[float, float]
"""Smallest and largest norm of some vectors."""

TILE = (1024, 4096)
"""Number of images x captions scored at a time, unless a row or column of tiles would be too large."""

_STRIPE_VALUES = 1 << 28
"""Largest number of scores in a row or column of tiles: 1 GB of float32."""

_UNIT = 0.01
"""Tolerance of a norm around 1 to count as normalised: half precision rounds."""

_KEPT_TILES = 1 << 26
"""Largest number of products kept from looking up pairs until the pass reaches them: 256 MB."""


class SimilaritySource(Protocol):
    """Similarities S of every image with every caption.

    Attributes:
        shape: Number of images and captions.
        rank_only: Whether values only give the order of candidates. They are then no similarities, and image queries
            and caption queries are ranked separately, so that a row and a column need not agree on a pair.
    """

    shape: tuple[int, int]
    rank_only: ClassVar[bool]

    def rows(self, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Positions of at most ``chunk`` images in order, with (images, all captions), valid until the next."""
        ...

    def columns(self, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Positions of at most ``chunk`` captions in any order, with (captions, all images), valid until the next."""
        ...

    def pairs(self, images: Positions, captions: Positions) -> Scores:
        """(pairs,) similarities of single pairs, bit for bit as in the blocks."""
        ...

    def select(self, images: Positions, captions: Positions) -> SimilaritySource:
        """The source restricted to these images and captions, in this order."""
        ...


Run = tuple[int, int]
"""Range of queries (start, stop), in the order in which a source counts them."""


class Divisible(SimilaritySource, Protocol):
    """A source of which a run of queries can be read by itself, bit for bit as among all."""

    def runs(self, direction: Direction, count: int) -> list[Run]:
        """At most ``count`` runs of about the same length that together hold all queries."""
        ...

    def queries(self, direction: Direction, run: Run, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Positions of at most ``chunk`` queries of a run, with (queries, all candidates), valid until the next."""
        ...

    def captions_of(self, run: Run) -> Positions:
        """(captions,) positions of the caption queries of a run."""
        ...

    def passing(self, run: Run) -> Iterator[tuple[Positions, Scores]]:
        """Positions of images in order, with (images, captions of a run); a block is valid until the next."""
        ...


class MatrixSource:
    """Source for an existing matrix, in memory or memory-mapped.

    Args:
        matrix: (images, captions), sliceable; half precision is read as float32, integers as float64.

    >>> source = MatrixSource(np.array([[0.1, 0.2], [0.3, 0.4]]))
    >>> [(captions.tolist(), block.tolist()) for captions, block in source.columns(1)]
    [([0], [[0.1, 0.3]]), ([1], [[0.2, 0.4]])]
    """

    rank_only: ClassVar[bool] = False

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))

    def rows(self, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Rows of the matrix, at most ``chunk`` at a time."""
        return self.queries("i2t", (0, self.shape[0]), chunk)

    def columns(self, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Columns of the matrix, at most ``chunk`` at a time."""
        return self.queries("t2i", (0, self.shape[1]), chunk)

    def runs(self, direction: Direction, count: int) -> list[Run]:
        """Runs of about the same number of queries."""
        return _divided(self.shape[direction == "t2i"], 1, count)

    def queries(self, direction: Direction, run: Run, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Rows or columns of a run, at most ``chunk`` at a time."""
        for which in _runs(run[1], chunk, run[0]):
            if direction == "i2t":
                block = as_floats(self._matrix[as_slice(which)])
                refuse_gaps(block, "similarity", which)
                yield which, block
            else:
                block = as_floats(self._matrix[:, as_slice(which)])
                refuse_gaps(block, "similarity", np.arange(self.shape[0]))
                yield which, np.ascontiguousarray(block.T)

    def captions_of(self, run: Run) -> Positions:
        """Positions of the run itself, since captions are counted in their order."""
        return np.arange(*run)

    def passing(self, run: Run) -> Iterator[tuple[Positions, Scores]]:
        """Columns of a run in blocks of images."""
        for images in _runs(self.shape[0], TILE[0]):
            block = as_floats(self._matrix[as_slice(images), slice(*run)])
            refuse_gaps(block, "similarity", images)
            yield images, block

    def pairs(self, images: Positions, captions: Positions) -> Scores:
        """(pairs,) entries of the matrix."""
        scores = as_floats(self._matrix[images, captions])
        refuse_gaps(scores[:, None], "similarity", images)
        return scores

    def select(self, images: Positions, captions: Positions) -> SimilaritySource:
        """The matrix of these images and captions: a view of neighbouring ones, a copy of others."""
        return MatrixSource(self._matrix[as_slice(images)][:, as_slice(captions)])


class TiledSource:
    """Source of similarities that are computed on request, tile by tile.

    Args:
        block: Function that scores a tile, given positions of images and captions.
        shape: Number of images and captions.
        order: (captions,) the order of captions in the tiles. Captions of one image should stand together: a pass first
            looks up every positive pair, and then computes few tiles twice.

    >>> source = TiledSource(lambda images, captions: np.add.outer(images, captions / 10), (2, 3), np.arange(3))
    >>> source.pairs(np.array([1]), np.array([2]))
    array([1.2])
    """

    rank_only: ClassVar[bool] = False

    def __init__(self, block: Block, shape: tuple[int, int], order: Positions) -> None:
        self._block = block
        self._order = order
        self.shape = shape
        # No product depends on how it is read, but all depend on the tiles: these are fixed by the data's size alone.
        self._tile_size = (
            max(1, min(TILE[0], _STRIPE_VALUES // max(1, shape[1]))),
            max(1, min(TILE[1], _STRIPE_VALUES // max(1, shape[0]))),
        )

    def rows(self, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Image queries, cut from rows of tiles."""
        return self.queries("i2t", (0, self.shape[0]), chunk)

    def columns(self, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Caption queries in tile order, cut from columns of tiles."""
        return self.queries("t2i", (0, self.shape[1]), chunk)

    def runs(self, direction: Direction, count: int) -> list[Run]:
        """Runs of whole tiles; captions are counted in tile order."""
        side = int(direction == "t2i")
        return _divided(self.shape[side], self._tile_size[side], count)

    def queries(self, direction: Direction, run: Run, chunk: int) -> Iterator[tuple[Positions, Scores]]:
        """Queries of a run, computed one row or column of tiles at a time."""
        if direction == "i2t":
            for images in _runs(run[1], self._tile_size[0], run[0]):
                yield from _cut(images, self._stripe(images), chunk)
            return
        buffer: Scores = np.empty((0, 0))
        for at in _runs(run[1], self._tile_size[1], run[0]):
            for images in _runs(self.shape[0], self._tile_size[0]):
                tile = self._tile(images, at)
                if not buffer.size:  # one for all, since a block is valid until the next
                    buffer = np.empty((len(at), self.shape[0]), dtype=tile.dtype)
                buffer[: len(at), as_slice(images)] = tile.T
            yield from _cut(self._order[at], buffer[: len(at)], chunk)

    def captions_of(self, run: Run) -> Positions:
        """Positions of the captions of a run in tile order."""
        return self._order[slice(*run)]

    def passing(self, run: Run) -> Iterator[tuple[Positions, Scores]]:
        """Captions of a run in blocks of one row of tiles."""
        buffer: Scores = np.empty((0, 0))
        for images in _runs(self.shape[0], self._tile_size[0]):
            for at in _runs(run[1], self._tile_size[1], run[0]):
                tile = self._tile(images, at)
                if not buffer.size:
                    buffer = np.empty((len(images), run[1] - run[0]), dtype=tile.dtype)
                buffer[: len(images), as_slice(at - run[0])] = tile
            yield images, buffer[: len(images)]

    def pairs(self, images: Positions, captions: Positions) -> Scores:
        """(pairs,) similarities; every tile that holds a pair is computed."""
        place = np.argsort(self._order)[captions]
        across = -(-self.shape[1] // self._tile_size[1])
        tile_of_pair = images // self._tile_size[0] * across + place // self._tile_size[1]
        by_tile = np.argsort(tile_of_pair, kind="stable")
        numbers, starts = np.unique(tile_of_pair[by_tile], return_index=True)
        found = []
        for number, pairs in zip(numbers, np.split(by_tile, starts[1:]), strict=True):
            first = number // across * self._tile_size[0], number % across * self._tile_size[1]
            tile_images = np.arange(first[0], min(first[0] + self._tile_size[0], self.shape[0]))
            tile_at = np.arange(first[1], min(first[1] + self._tile_size[1], self.shape[1]))
            tile = self._tile(tile_images, tile_at)
            self._keep(tile_images, tile_at, tile)
            found.append(tile[images[pairs] - first[0], place[pairs] - first[1]])
        scores = np.concatenate(found) if found else np.empty(0, dtype=np.float32)
        return np.asarray(scores[np.argsort(by_tile)])

    def select(self, images: Positions, captions: Positions) -> SimilaritySource:
        """The source restricted to these images and captions, with captions in the same tile order."""
        rank = np.argsort(self._order)[captions]
        return TiledSource(
            lambda some_images, some_captions: self._block(images[some_images], captions[some_captions]),
            (len(images), len(captions)),
            np.argsort(rank),
        )

    def _stripe(self, images: Positions) -> Scores:
        """(len(images), all captions) similarities."""
        tiles = [(self._order[at], self._tile(images, at)) for at in _runs(self.shape[1], self._tile_size[1])]
        stripe = np.empty((len(images), self.shape[1]), dtype=tiles[0][1].dtype)
        for captions, tile in tiles:
            stripe[:, as_slice(captions)] = tile
        return stripe

    def _tile(self, images: Positions, at: Positions) -> Scores:
        """Tile of a run of images and a run of places in the order."""
        return checked_block(self._block, images, self._order[at], "similarity")

    def _keep(self, images: Positions, at: Positions, tile: Scores) -> None:
        """Keep nothing: a scorer is asked again, which shows whether it returns the same."""


class EmbeddingSource(TiledSource):
    """Source for a similarity function of embeddings, computed tile by tile.

    Args:
        image: (images, D) embeddings, sliceable.
        text: (captions, D) embeddings, sliceable.
        order: (captions,) the order of captions in the tiles.
        function: Function of two blocks of embeddings, (a, D) and (b, D) of the given kind, that returns (a, b).

    >>> source = EmbeddingSource(np.eye(2), np.ones((1, 2)), np.arange(1), lambda a, b: -(a @ b.T))
    >>> [block.tolist() for _, block in source.rows(2)]
    [[[-1.0], [-1.0]]]
    """

    def __init__(self, image: Any, text: Any, order: Positions, function: Callable[[Any, Any], Any]) -> None:
        self.image = image
        self.text = text
        super().__init__(
            lambda images, captions: function(image[as_slice(images)], text[as_slice(captions)]),
            (len(image), len(text)),
            order,
        )


class ProductSource(EmbeddingSource):
    """Source for float32 inner products of embeddings, which are finite without a check of each tile.

    Args:
        image: (images, D) embeddings, sliceable.
        text: (captions, D) embeddings, sliceable.
        order: (captions,) the order of captions in the tiles.
        image_norms: Smallest and largest norm of ``image``, where every value has already been read.
        text_norms: Smallest and largest norm of ``text``, likewise.

    Raises:
        UserError: If an embedding has a value that is not finite, or products may overflow.

    >>> source = ProductSource(np.eye(2), np.array([[3.0, 4.0]]), np.arange(1))
    >>> [block.tolist() for _, block in source.rows(2)]
    [[[3.0], [4.0]]]
    """

    def __init__(
        self, image: Any, text: Any, order: Positions, image_norms: Norms | None = None, text_norms: Norms | None = None
    ) -> None:
        self._kept: dict[tuple[int, int], Scores] = {}
        self._buffer: Scores = np.empty((0, 0))
        super().__init__(image, text, order, lambda a, b: np.matmul(_single(a), _single(b).T))
        self._norms = {
            "image_embeddings": image_norms or _norms(image, "image_embeddings"),
            "text_embeddings": text_norms or _norms(text, "text_embeddings"),
        }
        longest = math.prod(norms[1] for norms in self._norms.values())
        if longest > float(np.finfo(np.float32).max):
            raise UserError(
                "image_embeddings and text_embeddings are so long that products overflow; normalise them",
                parameters={"image_embeddings": "image_embeddings", "text_embeddings": "text_embeddings"},
            )

    def warnings(self) -> tuple[str, ...]:
        """One line for each side whose embeddings are not normalised, with the range of their norms."""
        return tuple(
            f"{what} are not normalised (norms {least:.3g} to {most:.3g}): S is an inner product, not a cosine;"
            " normalise them unless the model means it so"
            for what, (least, most) in self._norms.items()
            if max(abs(least - 1), abs(most - 1)) > _UNIT
        )

    def _product(self, images: Positions, captions: Positions, out: Scores | None = None) -> Scores:
        a, b = (_single(x[as_slice(at)]) for x, at in ((self.image, images), (self.text, captions)))
        return np.matmul(a, b.T, out=out)

    def _stripe(self, images: Positions) -> Scores:
        if not self._buffer.size:  # one for all stripes: fresh memory costs as much as a tenth of the product
            self._buffer = np.empty((self._tile_size[0], self.shape[1]), dtype=np.float32)
        stripe = self._buffer[: len(images)]
        for at in _runs(self.shape[1], self._tile_size[1]):
            kept = self._kept.get((int(images[0]), int(at[0])))
            place = as_slice(self._order[at])
            if kept is None and isinstance(place, slice):
                self._product(images, self._order[at], out=stripe[:, place])
            else:
                stripe[:, place] = self._product(images, self._order[at]) if kept is None else kept
        return stripe

    def _tile(self, images: Positions, at: Positions) -> Scores:
        kept = self._kept.get((int(images[0]), int(at[0])))
        return self._product(images, self._order[at]) if kept is None else kept

    def _keep(self, images: Positions, at: Positions, tile: Scores) -> None:
        if sum(kept.size for kept in self._kept.values()) + tile.size <= _KEPT_TILES:
            self._kept[int(images[0]), int(at[0])] = tile


def _single(block: Any) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # to infinity, which is refused
        return as_floats(block).astype(np.float32, copy=False)


def _norms(embeddings: Any, what: str) -> Norms:
    """Smallest and largest norm; values that are not finite are refused."""
    squares = []
    for rows in _runs(len(embeddings), 4096):
        block = _single(embeddings[as_slice(rows)])
        refuse_gaps(block, what, rows)
        own = np.einsum("nd,nd->n", block, block)
        if not np.isfinite(own).all():
            own = np.einsum("nd,nd->n", block, block, dtype=np.float64)
        squares.append((own.min(initial=np.inf), own.max(initial=0)))
    least, most = min(low for low, _ in squares), max(high for _, high in squares)
    return float(np.sqrt(least)), float(np.sqrt(most))


def _runs(stop: int, length: int, start: int = 0) -> Iterator[Positions]:
    for first in range(start, stop, length):
        yield np.arange(first, min(first + length, stop))


def _divided(queries: int, tile: int, count: int) -> list[Run]:
    """At most ``count`` runs of whole tiles."""
    tiles = -(-queries // tile)
    edges = [tiles * part // min(count, tiles) for part in range(min(count, tiles) + 1)] if tiles else []
    return [(tile * low, min(tile * high, queries)) for low, high in itertools.pairwise(edges)]


def _cut(positions: Positions, stripe: Scores, chunk: int) -> Iterator[tuple[Positions, Scores]]:
    for start in range(0, len(stripe), chunk):
        yield positions[start : start + chunk], stripe[start : start + chunk]
