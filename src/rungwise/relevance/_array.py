"""Degrees that a caller brings along: an array, or any object with ``block``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.relevance._base import Block, Degrees, Positions
from rungwise.relevance._captions import hash_of_captions

_ROWS = 1024
"""Number of rows of a matrix that are hashed at a time."""


class ArrayRelevance(Degrees):
    """Degrees of a collection that somebody else computed.

    Args:
        relevance: (images, captions) numbers, such as an array or a tensor, or an object whose ``block`` takes
            positions of images and of captions.
        image_of_caption: (captions,) the position of each caption's image.
        images: Number of images.
        named: Name of the degrees in messages.

    >>> ArrayRelevance(np.eye(2), np.array([0, 1]), 2).block([1], [0, 1])
    array([[0., 1.]], dtype=float32)
    >>> ArrayRelevance(np.eye(3), np.array([0, 1]), 2)
    Traceback (most recent call last):
    rungwise.core.UserError: relevance has shape (3, 3) for 2 images x 2 captions; give degrees of these data
    """

    complete = False

    def __init__(self, relevance: Any, image_of_caption: Positions, images: int, named: str = "relevance") -> None:
        super().__init__((images, len(image_of_caption)))
        self.image_of_caption = image_of_caption
        self._named = named
        self._asked = relevance if callable(getattr(relevance, "block", None)) else None
        self._matrix: NDArray[Any] | None = None
        if self._asked is None:
            self._matrix = _matrix(relevance, named)
        shape = getattr(self._asked if self._matrix is None else self._matrix, "shape", self.shape)
        if tuple(shape) != self.shape:
            turned = ": it is transposed; give its .T" if tuple(shape) == self.shape[::-1] else ""
            raise UserError(
                f"{named} has shape {tuple(shape)} for {self.shape[0]} images x {self.shape[1]} captions"
                f"{turned or '; give degrees of these data'}"
            )

    def block(self, images: ArrayLike, captions: ArrayLike) -> Block:
        """(len(images), len(captions)) float32 degrees; a UserError if the object answers a block of another shape."""
        rows, columns = self.positions(images, captions)
        if self._matrix is not None:
            return np.asarray(self._matrix[np.ix_(rows, columns)], np.float32)
        assert self._asked is not None
        found = _matrix(self._asked.block(rows, columns), self._named)
        if found.shape != (len(rows), len(columns)):
            raise UserError(
                f"{self._named}: asked for {len(rows)} images x {len(columns)} captions, its block has shape"
                f" {found.shape}; answer (images, captions)"
            )
        return np.asarray(found, np.float32)

    def options(self) -> Mapping[str, Any]:
        """Empty: nothing is known of how the degrees came about."""
        return {}

    def hashed(self) -> Iterator[bytes]:
        """The numbers, where they are a matrix; an object with ``block`` is not asked for all of them."""
        if self._matrix is not None:
            for start in range(0, len(self._matrix), _ROWS):
                yield np.ascontiguousarray(self._matrix[start : start + _ROWS], np.float32).tobytes()

    def title(self) -> str:
        """The type of what was given, and the start of the hash of a matrix."""
        if self._matrix is None:
            return f"given as {type(self._asked).__name__}"
        return f"given as {type(self._matrix).__name__}, hash {self.content_hash()[:16]}"


def as_degrees(relevance: Any, data: ImageCaptions, named: str = "relevance") -> Degrees:
    """Degrees of a collection from a source, an array or an object with ``block``; those of other data are refused.

    Args:
        relevance: A source, saved degrees, (images, captions) numbers, or an object with ``block``.
        data: The collection.
        named: Name of the degrees in messages.
    """
    if not isinstance(relevance, Degrees):
        return ArrayRelevance(relevance, data.image_of_caption, len(data), named)
    own = hash_of_captions(data.captions, data.image_of_caption)
    if relevance.shape != (len(data), len(data.captions)) or relevance.captions_hash not in (None, own):
        raise UserError(
            f"{named} has degrees of {relevance.shape[0]} images and {relevance.shape[1]} captions, but {data.name} has"
            f" {len(data)} and {len(data.captions)}, or other ones; give degrees of these data"
        )
    return relevance


def _matrix(values: Any, named: str) -> NDArray[Any]:
    """Numbers as an array, without a copy where possible."""
    if hasattr(values, "detach"):  # a torch tensor, known by what it can do so that torch is not imported
        values = values.detach().cpu()
        values = (values.float() if values.is_floating_point() else values).numpy()
    try:
        array = np.asanyarray(values)
    except ValueError as error:
        raise UserError(f"{named}: rows of different lengths; give as many values in every row") from error
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise UserError(
            f"{named}: {type(values).__name__} is no (images, captions) table of numbers and has no block; give a"
            " source of rungwise.relevance, an array, or an object with block(images, captions)"
        )
    table: NDArray[Any] = array
    return table
