"""Cosine for losses that push few pairs: the same values and gradients without a dense product in the backward pass.

The gradient of a block S = F G^T is dF = dS G and dG = dS^T F: two products as large as the forward one. A loss that
takes one hardest negative of each query leaves at most 3 nonzero entries a pair in dS (one row may have many, where an
item is the hardest negative of many), so that 2 x 3 x B x D multiplications suffice instead of 2 x B x B x D.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rungwise.similarity._vectors import HALF, l2_normalise

FEW = 32  # entries a row: beyond, the dense product is as quick


class _SparseBackward(torch.autograd.Function):
    """Product of (n, D) and (m, D) vectors whose gradient is computed from the nonzero entries of dS."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, texts: Tensor) -> Tensor:
        """(n, m) block, from (n, D) and (m, D)."""
        ctx.save_for_backward(images, texts)
        return images @ texts.T

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, Tensor]:
        """(n, D) and (m, D) gradients, from (n, m)."""
        images, texts = ctx.saved_tensors
        entries = upstream.nonzero()
        if len(entries) > FEW * max(upstream.shape):
            # Under autocast the block, and so its gradient, has another type than the vectors.
            return upstream.to(texts.dtype) @ texts, upstream.T.to(images.dtype) @ images
        rows, columns = entries.unbind(dim=1)
        slopes = upstream[rows, columns].unsqueeze(1)
        return _sums(images, rows, slopes, texts[columns]), _sums(texts, columns, slopes, images[rows])


def _sums(like: Tensor, place: Tensor, slopes: Tensor, vectors: Tensor) -> Tensor:
    """Vectors times slopes, added up by place in float32 at least: a hub receives a term from every query."""
    kind = torch.float32 if like.dtype in HALF else like.dtype
    total = torch.zeros_like(like, dtype=kind)
    return total.index_add_(0, place, slopes.to(kind) * vectors.to(kind)).to(like.dtype)


def sparse_backward_cosine(image_vectors: Tensor, text_vectors: Tensor) -> Tensor:
    """:func:`~rungwise.similarity.cosine` for losses that give few pairs a gradient; exact for all others too.

    It is faster with :class:`~rungwise.losses.MaxOfHinges`, :class:`~rungwise.losses.ContrastiveMax`,
    :class:`~rungwise.losses.SemanticAdaptiveMargin` and the hard contrastive :class:`~rungwise.losses.Ladder` on large
    blocks, and differentiable once. In the backward pass a GPU waits for the host, which counts the entries: it cannot
    be captured in a graph.

    >>> from rungwise.losses import MaxOfHinges
    >>> images, texts = torch.randn(4, 3, requires_grad=True), torch.randn(4, 3)
    >>> MaxOfHinges()(sparse_backward_cosine(images, texts)).backward()
    >>> images.grad.shape
    torch.Size([4, 3])
    """
    block: Tensor = _SparseBackward.apply(l2_normalise(image_vectors), l2_normalise(text_vectors))  # type: ignore[no-untyped-call]
    return block
