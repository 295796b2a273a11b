"""Blocks that a loss is given as arrays or lists, such as degrees of a relevance source, as tensors."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rungwise.losses._pairs import HALF


def degrees_like(
    similarity: Tensor, name: str, given: Tensor | ArrayLike | None, shape: tuple[int, int]
) -> Tensor | None:
    """A block of numbers on the device of the similarities, in the type in which a loss computes them.

    Args:
        similarity: Block of any float type; of half precision a loss is computed in float32.
        name: Name of the argument, for messages.
        given: A tensor, which stays as it is; an array or lists; or None.
        shape: Rows and columns that the block must have.

    Raises:
        ValueError: If it holds no numbers, has another shape, or a finite number is beyond that type.

    >>> degrees_like(torch.zeros(1, 2), "relevance", np.array([[0.5, 1.0]]), (1, 2))
    tensor([[0.5000, 1.0000]])
    """
    if given is None or isinstance(given, Tensor):
        return given
    block = _block(name, given, shape)
    if block.dtype.kind not in "iufb":
        raise _no_block(name, given, "numbers")
    kind = torch.float32 if similarity.dtype in HALF else similarity.dtype
    most = torch.finfo(kind).max
    if np.any(np.isfinite(block) & (np.abs(block.astype(np.float64)) > most)):
        raise ValueError(f"{name} holds a number beyond {most:.3g}, the largest of {kind}: divide the degrees")
    return torch.tensor(block.astype(np.float64), dtype=kind, device=similarity.device)


def positives_like(
    similarity: Tensor, name: str, given: Tensor | ArrayLike | None, shape: tuple[int, int]
) -> Tensor | None:
    """A block of truth values on the device of the similarities; other arguments and errors as :func:`degrees_like`.

    >>> positives_like(torch.zeros(1, 2), "positives", [[1, 0]], (1, 2))
    tensor([[ True, False]])
    """
    if given is None or isinstance(given, Tensor):
        return given
    block = _block(name, given, shape)
    if block.dtype.kind not in "iufb" or not np.isin(block, (0, 1)).all():
        raise _no_block(name, given, "truth values")
    return torch.tensor(block.astype(np.bool_), device=similarity.device)


def _block(name: str, given: object, shape: tuple[int, int]) -> NDArray[np.generic]:
    try:
        block = np.asarray(given)
    except (ValueError, TypeError):  # rows of several lengths
        raise _no_block(name, given, "rows of one length") from None
    if block.dtype.kind == "O":
        raise _no_block(name, given, "numbers")
    if block.shape != shape:
        raise ValueError(f"{name} is {block.shape} but the block needs {shape}: pass equal shapes")
    return block


def _no_block(name: str, given: object, what: str) -> ValueError:
    return ValueError(
        f"{name} ({type(given).__name__}) holds no {what}: pass a tensor, a numpy array or lists, such as what"
        " relevance.block(images, captions) gives"
    )
