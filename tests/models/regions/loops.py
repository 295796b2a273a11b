"""Equations of models of regions as nested loops over scalars, of which autograd makes the gradients too.

A vector is a list of 0-dimensional tensors. Modules are read for their numbers alone.
"""

from torch import Tensor, nn

Vector = list[Tensor]


def row(vector: Tensor) -> Vector:
    """A vector as a list of scalars."""
    return list(vector.unbind())


def dot(first: Vector, second: Vector) -> Tensor:
    """Inner product."""
    return sum((a * b for a, b in zip(first, second, strict=True)), start=first[0].new_zeros(()))


def norm_of(vector: Vector) -> Tensor:
    """Euclidean length."""
    return dot(vector, vector).sqrt()


def unit(vector: Vector) -> Vector:
    """Of length 1."""
    length = norm_of(vector)
    return [one / length for one in vector]


def affine(layer: nn.Module, vector: Vector) -> Vector:
    """W x + b."""
    return [dot(row(weights), vector) + bias for weights, bias in zip(layer.weight, layer.bias, strict=True)]


def softmax(logits: Vector) -> Vector:
    """Exponentials that add up to 1."""
    powers = [one.exp() for one in logits]
    total = sum(powers[1:], start=powers[0])
    return [one / total for one in powers]


def weighted(weights: Vector, vectors: list[Vector]) -> Vector:
    """Sum of vectors, each times its weight."""
    return [dot(weights, list(column)) for column in zip(*vectors, strict=True)]


def batch_norm(norm: nn.Module, channel: int, values: Vector, training: bool) -> Vector:
    """One channel's values over a batch."""
    if training:
        mean = sum(values[1:], start=values[0]) / len(values)
        squares = [(one - mean) ** 2 for one in values]
        variance = sum(squares[1:], start=squares[0]) / len(values)
    else:
        mean, variance = norm.running_mean[channel], norm.running_var[channel]
    deviation = (variance + norm.eps).sqrt()
    return [(one - mean) / deviation * norm.weight[channel] + norm.bias[channel] for one in values]


def self_attention(module: nn.Module, sets: Tensor, training: bool) -> list[Vector]:
    """One vector for each set of vectors (n, k, D), without dropout."""
    members = [[row(one) for one in some] for some in sets]
    n, k, width = sets.shape
    means = [[sum(column[1:], start=column[0]) / k for column in zip(*some, strict=True)] for some in members]
    means = [unit(mean) for mean in means] if module.unit_mean else means
    local = [[affine(module.local, one) for one in some] for some in members]
    whole = [affine(module.whole, mean) for mean in means]
    if module.regions is not None:
        for region in range(k):
            values = [one for some in local for one in some[region]]
            normed = batch_norm(module.local_norm, region, values, training)
            for index in range(n):
                local[index][region] = normed[index * width : (index + 1) * width]
        for number in range(width):
            normed = batch_norm(module.whole_norm, number, [one[number] for one in whole], training)
            for index in range(n):
                whole[index][number] = normed[index]
    found = []
    for index in range(n):
        g = [one.tanh() for one in whole[index]]
        logits = []
        for one in local[index]:
            product = [a.tanh() * b for a, b in zip(one, g, strict=True)]
            logits.append(affine(module.common, product)[0])
        found.append(unit(weighted(softmax(logits), members[index])))
    return found
