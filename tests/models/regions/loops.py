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


def similarity_nodes(
    module: nn.Module, regions: Tensor, texts: list[Tensor], training: bool
) -> list[list[list[Vector]]]:
    """Nodes of each image with each caption, s_0 first: [image][caption][node].

    Args:
        module: Similarity vectors of SGR and SAF.
        regions: (n, R, D).
        texts: (L, D) each.
        training: As for batch norm.
    """
    pictures = self_attention(module.region_attention, regions, training)
    wholes = [self_attention(module.word_attention, text.unsqueeze(0), training)[0] for text in texts]
    found = []
    for image, picture in zip(regions, pictures, strict=True):
        v, of_captions = [row(one) for one in image], []
        for text, whole in zip(texts, wholes, strict=True):
            w = [row(one) for one in text]
            differences = [(a - b) ** 2 for a, b in zip(picture, whole, strict=True)]
            nodes = [unit(affine(module.whole, differences))]
            attention = attention_over_words(v, w)
            for j, word in enumerate(w):
                b = softmax([9 * attention[i][j] for i in range(len(v))])
                context = unit(weighted(b, v))
                differences = [(a - b) ** 2 for a, b in zip(context, word, strict=True)]
                nodes.append(unit(affine(module.local, differences)))
            of_captions.append(nodes)
        found.append(of_captions)
    return found


def attention_over_words(v: list[Vector], w: list[Vector]) -> list[Vector]:
    """a_ij: LeakyReLU(0.1) of inner products, each region's over the words of length 1 but for the program's 1e-8."""
    attention = []
    for region in v:
        s = [dot(region, word) for word in w]
        clipped = [one if one > 0 else 0.1 * one for one in s]
        length = norm_of(clipped) + 1e-8
        attention.append([one / length for one in clipped])
    return attention


def sigmoid(value: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + (-value).exp())


def reasoned(module: nn.Module, nodes: list[Vector]) -> Tensor:
    """S of SGR from the nodes of a pair."""
    for step in module.steps:
        asked = [affine(step.query, one) for one in nodes]
        keys = [affine(step.key, one) for one in nodes]
        heard = []
        for query in asked:
            message = weighted(softmax([dot(query, key) for key in keys]), nodes)
            heard.append([one.clamp(min=0) for one in affine(step.update, message)])
        nodes = heard
    return sigmoid(affine(module.score, nodes[0])[0])


def filtered(module: nn.Module, of_images: list[list[Vector]], training: bool) -> list[Tensor]:
    """S of SAF of each image with one caption, from the nodes [image][node]."""
    count = len(of_images[0])
    logits = [affine(module.gate, node)[0] for nodes in of_images for node in nodes]
    normed = batch_norm(module.norm, 0, logits, training)
    found = []
    for image, nodes in enumerate(of_images):
        gates = [sigmoid(one) for one in normed[image * count : (image + 1) * count]]
        total = sum(gates[1:], start=gates[0]) + 1e-8
        kept = unit(weighted([one / total for one in gates], nodes))
        found.append(sigmoid(affine(module.score, kept)[0]))
    return found


def sgr(model: nn.Module, regions: Tensor, texts: list[Tensor], training: bool) -> list[list[Tensor]]:
    """S of every image with every caption."""
    nodes = similarity_nodes(model.vectors, regions, texts, training)
    return [[reasoned(model.nodes, pair) for pair in of_captions] for of_captions in nodes]


def saf(model: nn.Module, regions: Tensor, texts: list[Tensor], training: bool) -> list[list[Tensor]]:
    """S of every image with every caption."""
    nodes = similarity_nodes(model.vectors, regions, texts, training)
    columns = [
        filtered(model.nodes, [of_captions[caption] for of_captions in nodes], training)
        for caption in range(len(texts))
    ]
    return [list(of_image) for of_image in zip(*columns, strict=True)]
