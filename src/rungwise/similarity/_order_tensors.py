"""Order similarity (Vendrov et al. 2016; VSE++ section 3.7): how far a caption's vector exceeds the image's.

For an image vector f and a text vector g::

    S(f, g) = -||max(0, g - f)||^2             (the authors' program takes the root: -||max(0, g - f)||)
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rungwise.similarity._arrays import tiles
from rungwise.similarity._vectors import HALF


class _Order(torch.autograd.Function):
    """Order similarity by tiles, forward and backward, so that an (n, m, D) array never exists."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, texts: Tensor, root: bool, chunk: int) -> Tensor:
        """(n, m) block, from (n, D) and (m, D)."""
        block = images.new_empty(len(images), len(texts))
        for rows, columns in tiles(len(images), len(texts), images.shape[1], chunk):
            excess = _excess(images[rows], texts[columns])
            block[rows, columns] = -excess.square_().sum(dim=2)
        if root:
            block = -block.neg_().sqrt_()
        ctx.save_for_backward(images, texts, block)
        ctx.root, ctx.chunk = root, chunk
        return block

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """(n, D) and (m, D) gradients, from (n, m)."""
        images, texts, block = ctx.saved_tensors
        # The slope of -||x||^2 is -2 x, that of -||x|| is -x / ||x||, taken as 0 at 0.
        scale = upstream / -block.masked_fill(block == 0, -torch.inf) if ctx.root else 2 * upstream
        to_images, to_texts = torch.zeros_like(images), torch.zeros_like(texts)
        for rows, columns in tiles(len(images), len(texts), images.shape[1], ctx.chunk):
            excess = _excess(images[rows], texts[columns])
            excess *= scale[rows, columns].unsqueeze(2)
            to_images[rows] += excess.sum(dim=1)
            to_texts[columns] -= excess.sum(dim=0)
        return to_images, to_texts, None, None


def _excess(images: Tensor, texts: Tensor) -> Tensor:
    """(a, b, D) excess of each text vector over each image vector, entry by entry."""
    return (texts.unsqueeze(0) - images.unsqueeze(1)).clamp_(min=0)


def order(image_vectors: Tensor, text_vectors: Tensor, root: bool = False, chunk: int = 1 << 21) -> Tensor:
    """(n, m) order similarity of each image and text vector: at most 0, and 0 where no entry of the text's is larger.

    It is float32 for half-precision vectors, and differentiable once.

    Args:
        image_vectors: (n, D).
        text_vectors: (m, D), of the same type.
        root: Whether to take the root, as the authors' program does; its gradient at 0 is 0.
        chunk: Number of differences held at a time, forward and backward; memory beyond vectors and result is O(chunk).

    >>> order(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 4.0], [1.0, 1.0]]))
    tensor([[-4., -0.]])
    """
    if image_vectors.shape[1:] != text_vectors.shape[1:]:
        raise ValueError(
            f"image vectors are {tuple(image_vectors.shape)} but text vectors are {tuple(text_vectors.shape)}: "
            "pass vectors of equal length"
        )
    images = image_vectors.float() if image_vectors.dtype in HALF else image_vectors
    texts = text_vectors.float() if text_vectors.dtype in HALF else text_vectors
    block: Tensor = _Order.apply(images, texts, root, chunk)  # type: ignore[no-untyped-call]
    return block
