"""The consensus level as nested loops over scalars, and how they are compared with a module."""

import torch
from torch import Tensor, nn

from tests.models.regions.loops import Vector as Row
from tests.models.regions.loops import affine, batch_norm, dot, row, softmax, unit, weighted


def mixed_up(module: nn.Module, seed: int = 0) -> nn.Module:
    """In float64, with weights, biases and statistics that are all different."""
    torch.manual_seed(seed)
    module.double()
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_floating_point():
            tensor.data = torch.rand_like(tensor) + 0.2
    return module


def stacked(rows: list[Row]) -> Tensor:
    return torch.stack([torch.stack(one) for one in rows])


def compare(found: Tensor, expected: Tensor, *inputs: Tensor) -> None:
    """Values, and gradients of a sum with weights that all differ."""
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)
    direction = torch.rand_like(found)
    ours, loops = (
        torch.autograd.grad((one * direction).sum(), inputs, allow_unused=True, retain_graph=True)
        for one in (found, expected)
    )
    for mine, theirs in zip(ours, loops, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)
    assert any(mine is not None and mine.abs().max() > 1e-6 for mine in ours)


def graph_loops(graph: nn.Module) -> list[Row]:
    """C, from G, E, W_1 and W_2."""

    def propagated(vectors: list[Row], weight: Tensor) -> list[Row]:
        moved = [[dot(one, row(column)) for column in weight.T] for one in vectors]
        return [weighted(row(edges), moved) for edges in graph.adjacency]

    hidden = propagated([row(one) for one in graph.nodes.weight], graph.first)
    bent = [[one if one > 0 else 0.2 * one for one in vector] for vector in hidden]
    return [unit(one) for one in propagated(bent, graph.second)]


def score_loops(module: nn.Module, instances: list[Row], concepts: list[Row], training: bool) -> list[Row]:
    """p of each instance."""

    def side(layer: nn.Module, norm: nn.Module, vectors: list[Row]) -> list[Row]:
        columns = zip(*[affine(layer, one) for one in vectors], strict=True)
        normed = [batch_norm(norm, number, list(column), training) for number, column in enumerate(columns)]
        return [[one.tanh() for one in vector] for vector in zip(*normed, strict=True)]

    local = side(module.concept, module.concept_norm, concepts)
    whole = side(module.instance, module.instance_norm, instances)
    found = []
    for one in whole:
        logits = []
        for concept in local:
            product = [a * b for a, b in zip(concept, one, strict=True)]
            logits.append(module.smoothing * affine(module.common, product)[0])
        found.append(softmax(logits))
    return found


def label_loops(scores: list[Row], labels: Tensor, share: float, smoothing: float) -> list[Row]:
    """q of each text."""
    found = []
    for attended, said in zip(scores, labels, strict=True):
        own = softmax([smoothing * one for one in row(said)])
        found.append([share * a + (1 - share) * b for a, b in zip(own, attended, strict=True)])
    return found


def divergence_loops(images: list[Row], texts: list[Row]) -> Tensor:
    """Sum of KL(q || p)."""
    total = images[0][0].new_zeros(())
    for p, q in zip(images, texts, strict=True):
        for a, b in zip(p, q, strict=True):
            total = total + b * (b.log() - a.log())
    return total
