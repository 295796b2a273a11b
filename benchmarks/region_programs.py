"""What models of regions are compared with: one caption after the other with all images, as the authors' programs do.

Written after the papers' equations (Lee et al. 2018; Diao et al. 2021) in the shape of their evaluation: a caption's
words are repeated for every image, every attended vector is made, and nothing is kept from one caption to the next.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _unit(vectors: Tensor, axis: int) -> Tensor:
    return vectors / (vectors.square().sum(dim=axis, keepdim=True).sqrt() + 1e-8)


def _attended(queries: Tensor, context: Tensor, smoothing: float) -> Tensor:
    """(n, Q, D) queries and (n, C, D) context to the (n, Q, D) vectors that they attend to."""
    scores = _unit(F.leaky_relu(context @ queries.transpose(1, 2), 0.1), 2)
    weights = (scores.transpose(1, 2) * smoothing).softmax(dim=2)
    return weights @ context


def scan(regions: Tensor, words: Tensor, lengths: list[int], attend: str, smoothing: float, lse: float) -> Tensor:
    """SCAN (Lee et al. 2018) with log-sum-exp: (n, R, D) and padded (m, W, D) to (n, m)."""
    columns = []
    for caption, length in enumerate(lengths):
        own = words[caption, :length].expand(len(regions), -1, -1).contiguous()
        queries, context = (own, regions) if attend == "t2i" else (regions, own)
        attended = _attended(queries, context, smoothing)
        along = (queries * attended).sum(dim=2)
        answers = along / (queries.norm(dim=2) * attended.norm(dim=2)).clamp(min=1e-8)
        columns.append((answers * lse).exp().sum(dim=1).log() / lse)
    return torch.stack(columns, dim=1)


def sgraf(model: Any, regions: Tensor, words: Tensor, lengths: list[int]) -> Tensor:
    """Similarities of SGR or SAF (Diao et al. 2021), in evaluation mode.

    Args:
        model: Of either kind; its weights are read.
        regions: (n, R, D), each of length 1.
        words: (m, W, D), likewise, padded.
        lengths: Words of each caption.

    Returns:
        (n, m).
    """
    vectors, images = model.vectors, len(regions)
    pictures = _pooled(vectors.region_attention, regions)
    columns = []
    for caption, length in zip(words, lengths, strict=True):
        own = caption[None, :length]
        text = _pooled(vectors.word_attention, own)
        repeated = own.repeat(images, 1, 1)
        differences = (_unit(_attended(repeated, regions, 9.0), 2) - repeated).pow(2)
        parts = F.normalize(vectors.local(differences), dim=-1)
        whole = F.normalize(vectors.whole((pictures - text).pow(2)), dim=-1)
        nodes = torch.cat([whole.unsqueeze(1), parts], dim=1)
        vector = _reasoned(model.nodes, nodes) if model.kind == "sgr" else _filtered(model.nodes, nodes)
        columns.append(model.nodes.score(vector).sigmoid())
    return torch.cat(columns, dim=1)


def _pooled(attention: nn.Module, sets: Tensor) -> Tensor:
    local = torch.tanh(attention.local_norm(attention.local(sets)))
    whole = torch.tanh(attention.whole_norm(attention.whole(sets.mean(dim=1))))
    weights = attention.common(local * whole.unsqueeze(1).repeat(1, sets.shape[1], 1)).squeeze(2).softmax(dim=1)
    return F.normalize((weights.unsqueeze(2) * sets).sum(dim=1), dim=-1)


def _reasoned(reasoning: nn.Module, nodes: Tensor) -> Tensor:
    for step in reasoning.steps:
        edges = torch.bmm(step.query(nodes), step.key(nodes).transpose(1, 2)).softmax(dim=-1)
        nodes = torch.relu(step.update(torch.bmm(edges, nodes)))
    return nodes[:, 0]


def _filtered(filtration: nn.Module, nodes: Tensor) -> Tensor:
    norm = filtration.norm
    logits = (filtration.gate(nodes) - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    gates = torch.sigmoid(logits * norm.weight + norm.bias).transpose(1, 2)
    gates = gates / (gates.sum(dim=-1, keepdim=True) + 1e-8)
    return F.normalize(torch.matmul(gates, nodes).squeeze(1), dim=-1)
