"""What models of regions are compared with: one caption after the other with all images, as the authors' programs do.

Written after the papers' equations (Lee et al. 2018; Diao et al. 2021) in the shape of their evaluation: a caption's
words are repeated for every image, every attended vector is made, and nothing is kept from one caption to the next.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def _unit(vectors: Tensor, axis: int) -> Tensor:
    return vectors / (vectors.square().sum(dim=axis, keepdim=True).sqrt() + 1e-8)


def _attended(queries: Tensor, context: Tensor, smoothing: float) -> Tensor:
    """(n, Q, D) queries and (n, C, D) context to the (n, Q, D) vectors that they attend to."""
    scores = _unit(F.leaky_relu(context @ queries.transpose(1, 2), 0.1), 2)
    weights = (scores.transpose(1, 2) * smoothing).softmax(dim=2)
    return weights @ context


def scan(regions: Tensor, words: Tensor, lengths: list[int], attend: str, smoothing: float, lse: float) -> Tensor:
    """(n, R, D) and padded (m, W, D) to (n, m), with log-sum-exp."""
    columns = []
    for caption, length in enumerate(lengths):
        own = words[caption, :length].expand(len(regions), -1, -1).contiguous()
        queries, context = (own, regions) if attend == "t2i" else (regions, own)
        attended = _attended(queries, context, smoothing)
        along = (queries * attended).sum(dim=2)
        answers = along / (queries.norm(dim=2) * attended.norm(dim=2)).clamp(min=1e-8)
        columns.append((answers * lse).exp().sum(dim=1).log() / lse)
    return torch.stack(columns, dim=1)
