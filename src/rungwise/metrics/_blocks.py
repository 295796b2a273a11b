"""Checks of blocks of similarities and degrees that a caller's function returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.metrics._rankings import Scores

Positions = NDArray[np.int64]

Block = Callable[[Positions, Positions], Any]
"""Function that maps positions (images, captions) to a (len(images), len(captions)) block."""


class CheckedDegrees:
    """Degrees R of a collection or a part of it, asked for exactly the blocks that a pass reads, which are checked.

    Args:
        block: Function that returns a block of degrees, such as ``Relevance.block``.
        images: Positions of the images.
        captions: Positions of the captions.
        gaps: Whether degrees may be NaN, for pairs without one.

    >>> degrees = CheckedDegrees(lambda images, captions: np.add.outer(images, captions), np.arange(2), np.arange(3))
    >>> degrees.block(np.array([1]), np.array([0, 2]))
    array([[1., 3.]])
    >>> degrees.select(np.array([1]), np.array([2, 0])).block(np.array([0]), np.array([0, 1]))
    array([[3., 1.]])
    """

    def __init__(self, block: Block, images: Positions, captions: Positions, gaps: bool = False) -> None:
        self._block = block
        self._images = images
        self._captions = captions
        self._gaps = gaps

    def block(self, images: Positions, captions: Positions) -> Scores:
        """(len(images), len(captions)) checked degrees."""
        return checked_block(self._block, self._images[images], self._captions[captions], "relevance", self._gaps)

    def select(self, images: Positions, captions: Positions) -> CheckedDegrees:
        """The degrees of these images and captions, in this order."""
        return CheckedDegrees(self._block, self._images[images], self._captions[captions], self._gaps)


def checked_block(block: Block, images: Positions, captions: Positions, what: str, gaps: bool = False) -> Scores:
    """Block that a caller's function returns, as floats of the right shape.

    >>> checked_block(lambda i, c: np.zeros((len(c), len(i))), np.arange(2), np.arange(3), "similarity")
    Traceback (most recent call last):
    rungwise.core.UserError: similarity: asked for 2 images x 3 captions, got shape (3, 2); answer ...
    """
    scores = as_floats(block(images, captions))
    if scores.shape != (len(images), len(captions)):
        raise UserError(
            f"{what}: asked for {len(images)} images x {len(captions)} captions, got shape {scores.shape};"
            " answer (images, captions)"
        )
    if not gaps:
        refuse_gaps(scores, what, images)
    return scores


def as_floats(values: Any) -> Scores:
    """Values as a float32 or float64 array: these unchanged, half precision widened, anything else as float64.

    Raises:
        UserError: If values are no real numbers, or rows differ in length.

    >>> as_floats(np.array([1, 2])).dtype, as_floats(np.array([1, 2], dtype=np.float16)).dtype
    (dtype('float64'), dtype('float32'))
    """
    if hasattr(values, "detach"):  # a torch tensor, known by what it can do so that torch is not imported
        values = values.detach().cpu()
        values = (values.float() if values.is_floating_point() and values.element_size() == 2 else values).numpy()
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of unequal length
        raise UserError(f"scores, degrees and vectors must be a table of numbers ({error}); give an array") from error
    if array.dtype.kind not in "fiub":
        raise UserError(f"scores, degrees and vectors must be real numbers, got {array.dtype}; give floats or integers")
    if array.dtype in (np.float32, np.float64):
        return array
    return array.astype(np.float32 if array.dtype == np.float16 else np.float64)


def as_slice(positions: Positions) -> slice | Positions:
    """The slice of the same positions, where there is one, since slices do not copy; else the positions.

    >>> as_slice(np.array([3, 4, 5])), as_slice(np.array([3, 5]))
    (slice(3, 6, None), array([3, 5]))
    """
    count = len(positions)
    if count and positions[-1] - positions[0] == count - 1 and (count == 1 or (np.diff(positions) == 1).all()):
        return slice(int(positions[0]), int(positions[-1]) + 1)
    return positions


def refuse_gaps(block: Scores, what: str, images: Positions) -> None:
    """Refuse NaN and infinities, naming the first row that has one.

    >>> refuse_gaps(np.array([[1.0], [float("nan")]]), "similarity", np.array([10, 11]))
    Traceback (most recent call last):
    rungwise.core.UserError: similarity, row 11: a value is nan; every value must be a finite number
    """
    finite = np.isfinite(block)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise UserError(
            f"{what}, row {images[row]}: a value is {block[row, column]}; every value must be a finite number"
        )
