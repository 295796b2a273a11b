"""Programs of models of regions as their authors lay them out: one caption after the other, with all images of a shard.

They show what the equations compute, in another arrangement than the package's, and what that arrangement costs.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.models.regions.aligned import AlignedScorer


def sgraf_program(model: AlignedScorer, regions: Tensor, words: Tensor, lengths: list[int], shard: int = 100) -> Tensor:
    """Similarities of SGR or SAF by the loop of Diao et al. 2021, in evaluation mode.

    Args:
        model: Its weights are read.
        regions: (images, R, D), each of length 1.
        words: (captions, W, D), likewise, padded.
        lengths: Words of each caption.
        shard: Images, and captions, that are taken together.

    Returns:
        (images, captions).
    """
    found = torch.zeros(len(regions), len(words), dtype=regions.dtype)
    with torch.inference_mode():
        for first in range(0, len(regions), shard):
            for begin in range(0, len(words), shard):
                some = words[begin : begin + shard]
                block = _shard(model, regions[first : first + shard], some, lengths[begin : begin + shard])
                found[first : first + shard, begin : begin + shard] = block
    return found


def _shard(model: AlignedScorer, regions: Tensor, words: Tensor, lengths: list[int]) -> Tensor:
    vectors, images = model.vectors, len(regions)
    pictures = _pooled(vectors.region_attention, regions)
    columns = []
    for caption, length in zip(words, lengths, strict=True):
        own = caption[None, :length]
        text = _pooled(vectors.word_attention, own)
        repeated = own.repeat(images, 1, 1)
        differences = (_attended(repeated, regions) - repeated).pow(2)
        parts = F.normalize(vectors.local(differences), dim=-1)
        whole = F.normalize(vectors.whole((pictures - text).pow(2)), dim=-1)
        nodes = torch.cat([whole.unsqueeze(1), parts], dim=1)
        vector = _reasoned(model.nodes, nodes) if model.kind == "sgr" else _filtered(model.nodes, nodes)
        columns.append(torch.sigmoid(model.nodes.score(vector)))
    return torch.cat(columns, dim=1)


def _pooled(attention: nn.Module, sets: Tensor) -> Tensor:
    local = torch.tanh(attention.local_norm(attention.local(sets)))
    whole = torch.tanh(attention.whole_norm(attention.whole(sets.mean(dim=1))))
    weights = attention.common(local * whole.unsqueeze(1).repeat(1, sets.shape[1], 1)).squeeze(2).softmax(dim=1)
    return F.normalize((weights.unsqueeze(2) * sets).sum(dim=1), dim=-1)


def _attended(words: Tensor, regions: Tensor) -> Tensor:
    raw = F.leaky_relu(torch.bmm(regions, words.transpose(1, 2)), 0.1)
    weights = (F.normalize(raw, dim=2).transpose(1, 2).contiguous() * 9).softmax(dim=2)
    contexts = torch.bmm(regions.transpose(1, 2), weights.transpose(1, 2).contiguous()).transpose(1, 2)
    return F.normalize(contexts, dim=-1)


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
