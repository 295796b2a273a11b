"""Rows of unit length, and order similarity, of numpy arrays, for searching without torch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.compute import in_threads

_CHUNK = 1 << 17
"""Number of differences held at a time on a thread, which fit into its cache."""


def order_array(images: NDArray[np.float32], texts: NDArray[np.float32], root: bool = False) -> NDArray[np.float32]:
    """(n, m) order similarity of each image and text vector: at most 0, and 0 where no entry of the text's is larger.

    ``root`` takes the root, as the authors' program does.

    >>> order_array(np.array([[1, 2]], np.float32), np.array([[0, 4], [1, 1]], np.float32)).tolist()
    [[-4.0, -0.0]]
    """
    block = np.empty((len(images), len(texts)), np.float32)

    def fill(low: int, high: int) -> None:
        for rows, columns in tiles(high - low, len(texts), images.shape[1], _CHUNK):
            excess = texts[columns][None] - images[low:high][rows][:, None]
            np.maximum(excess, 0, out=excess)
            block[low:high][rows, columns] = np.einsum("ijk,ijk->ij", excess, excess)

    in_threads(fill, len(images), block.size * images.shape[1])
    return -np.sqrt(block) if root else -block


def tiles(rows: int, columns: int, dimension: int, chunk: int) -> Iterator[tuple[slice, slice]]:
    """Slices of rows and columns whose differences hold at most ``chunk`` entries (at least one pair)."""
    pairs = max(1, chunk // max(1, dimension))
    width = max(1, min(columns, pairs))
    height = max(1, pairs // width)
    for row in range(0, rows, height):
        for column in range(0, columns, width):
            yield slice(row, row + height), slice(column, column + width)


def unit_rows(vectors: ArrayLike) -> NDArray[np.float32]:
    """Bring (n, D) vectors to length 1; zeros are unchanged.

    >>> unit_rows([[3, 4], [0, 0]]).tolist()
    [[0.600..., 0.800...], [0.0, 0.0]]
    """
    rows = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units: NDArray[np.float32] = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return units
