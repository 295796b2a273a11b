"""All of CVSE as loops over numbers, from features and token numbers to similarities and the loss of a batch.

The equations are those of Wang et al. 2020 as the authors' program computes them. Nothing of the package is imported:
weights are nested lists by their names in a saved model. A vector is a list of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Vector = list[float]
Weights = dict[str, Any]
EPSILON = 1e-5
"""What batch norm adds to a variance."""


def dot(one: Sequence[float], other: Sequence[float]) -> float:
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total += a * b
    return total


def unit(vector: Vector) -> Vector:
    length = math.sqrt(dot(vector, vector))
    return [number / length for number in vector]


def mixture(shares: Sequence[float], vectors: Sequence[Vector]) -> Vector:
    found = [0.0] * len(vectors[0])
    for share, vector in zip(shares, vectors, strict=True):
        for place, number in enumerate(vector):
            found[place] += share * number
    return found


def softmax(numbers: Sequence[float]) -> Vector:
    powers = [math.exp(number - max(numbers)) for number in numbers]
    return [power / sum(powers) for power in powers]


def layer(weights: Weights, name: str, vector: Vector) -> Vector:
    """W x + b."""
    rows, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
    return [dot(row, vector) + more for row, more in zip(rows, bias, strict=True)]


def normed(weights: Weights, name: str, channel: int, values: list[float], training: bool) -> list[float]:
    """Batch norm of the values of one channel."""
    mean, variance = weights[f"{name}.running_mean"][channel], weights[f"{name}.running_var"][channel]
    if training:
        mean = sum(values) / len(values)
        variance = sum((value - mean) ** 2 for value in values) / len(values)
    scale, shift = weights[f"{name}.weight"][channel], weights[f"{name}.bias"][channel]
    return [scale * (value - mean) / math.sqrt(variance + EPSILON) + shift for value in values]


def normed_rows(weights: Weights, name: str, rows: list[Vector], training: bool) -> list[Vector]:
    """Batch norm whose channels are the numbers of a vector."""
    columns = [
        normed(weights, name, channel, [row[channel] for row in rows], training) for channel in range(len(rows[0]))
    ]
    return [[column[number] for column in columns] for number in range(len(rows))]


def gru(weights: Weights, inputs: list[Vector], ending: str) -> list[Vector]:
    """States of a GRU, whose gates stand in the order reset, update, new."""
    width = len(weights[f"text_encoder.recurrent.weight_hh_l0{ending}"][0])
    state, states = [0.0] * width, []
    for given in inputs:
        parts = []
        for kind, vector in (("ih", given), ("hh", state)):
            rows = weights[f"text_encoder.recurrent.weight_{kind}_l0{ending}"]
            bias = weights[f"text_encoder.recurrent.bias_{kind}_l0{ending}"]
            parts.append([dot(row, vector) + more for row, more in zip(rows, bias, strict=True)])
        new_state = []
        for place in range(width):
            reset = 1 / (1 + math.exp(-parts[0][place] - parts[1][place]))
            update = 1 / (1 + math.exp(-parts[0][width + place] - parts[1][width + place]))
            new = math.tanh(parts[0][2 * width + place] + reset * parts[1][2 * width + place])
            new_state.append((1 - update) * new + update * state[place])
        state = new_state
        states.append(state)
    return states


def words_of(weights: Weights, tokens: list[int]) -> list[Vector]:
    """Words of length 1: the average of both directions of the GRU."""
    inputs = [weights["text_encoder.words.weight"][number] for number in tokens]
    onward, back = gru(weights, inputs, ""), gru(weights, inputs[::-1], "_reverse")[::-1]
    return [unit([(a + b) / 2 for a, b in zip(*both, strict=True)]) for both in zip(onward, back, strict=True)]


def pooled(weights: Weights, name: str, sets: list[list[Vector]], training: bool) -> list[Vector]:
    """One vector for each set, by self-attention; those of pictures have batch norm, those of texts a unit mean."""
    pictures = name == "image_attention"
    local = [[layer(weights, f"{name}.local", member) for member in members] for members in sets]
    whole = []
    for members in sets:
        mean = mixture([1 / len(members)] * len(members), members)
        whole.append(layer(weights, f"{name}.whole", mean if pictures else unit(mean)))
    if pictures:
        whole = normed_rows(weights, f"{name}.whole_norm", whole, training)
        width = len(local[0][0])
        for region in range(len(local[0])):  # a region of all pictures, with all of its numbers, is one channel
            values = normed(
                weights, f"{name}.local_norm", region, [number for one in local for number in one[region]], training
            )
            for number, one in enumerate(local):
                one[region] = values[number * width : (number + 1) * width]
    found = []
    for members, rows, gate in zip(sets, local, whole, strict=True):
        scores = []
        for row in rows:
            product = [math.tanh(a) * math.tanh(b) for a, b in zip(row, gate, strict=True)]
            scores.append(layer(weights, f"{name}.common", product)[0])
        found.append(unit(mixture(softmax(scores), members)))
    return found


def concepts_of(weights: Weights) -> list[Vector]:
    """Vectors of concepts: G leaky_relu(G E W_1) W_2, whose rows have length 1."""
    graph, vectors = weights["graph.adjacency"], weights["graph.nodes.weight"]
    for name in ("graph.first", "graph.second"):
        columns = list(zip(*weights[name], strict=True))
        moved = [[dot(vector, column) for column in columns] for vector in vectors]
        vectors = [mixture(edges, moved) for edges in graph]
        if name == "graph.first":
            vectors = [[number if number > 0 else 0.2 * number for number in vector] for vector in vectors]
    return [unit(vector) for vector in vectors]


def scores_of(
    weights: Weights, name: str, instances: list[Vector], concepts: list[Vector], training: bool
) -> list[Vector]:
    """p: how likely each concept is for each item, with smoothing 10."""
    local = normed_rows(
        weights, f"{name}.concept_norm", [layer(weights, f"{name}.concept", one) for one in concepts], training
    )
    whole = normed_rows(
        weights, f"{name}.instance_norm", [layer(weights, f"{name}.instance", one) for one in instances], training
    )
    found = []
    for item in whole:
        logits = []
        for concept in local:
            product = [math.tanh(a) * math.tanh(b) for a, b in zip(concept, item, strict=True)]
            logits.append(10 * layer(weights, f"{name}.common", product)[0])
        found.append(softmax(logits))
    return found


@dataclass
class Numbers:
    """The levels of some items: vectors of length 1, and scores of concepts."""

    fused: list[Vector]
    instance: list[Vector]
    consensus: list[Vector]
    scores: list[Vector]


def levels(
    weights: Weights, name: str, sets: list[list[Vector]], labels: list[list[int]] | None, training: bool
) -> Numbers:
    """Levels of pictures, or of texts with labels; alpha 0.85 and a share of labels of 0.35."""
    instance, concepts = pooled(weights, f"{name}_attention", sets, training), concepts_of(weights)
    scores = scores_of(weights, f"{name}_concepts", instance, concepts, training)
    if labels is not None:
        own = [softmax([10 * label for label in one]) for one in labels]
        scores = [[0.35 * a + 0.65 * b for a, b in zip(*both, strict=True)] for both in zip(own, scores, strict=True)]
    consensus = [unit(mixture(one, concepts)) for one in scores]
    fused = [unit(mixture([0.85, 0.15], list(both))) for both in zip(instance, consensus, strict=True)]
    return Numbers(fused, instance, consensus, scores)


def pictures(weights: Weights, features: list[list[Vector]], training: bool = False) -> Numbers:
    """Levels of pictures from the features of their regions."""
    regions = [[unit(layer(weights, "image_projection", region)) for region in some] for some in features]
    return levels(weights, "image", regions, None, training)


def texts(weights: Weights, tokens: list[list[int]], labels: list[list[int]], training: bool = False) -> Numbers:
    """Levels of texts from their token numbers and labels."""
    return levels(weights, "text", [words_of(weights, one) for one in tokens], labels, training)


def block(images: list[Vector], captions: list[Vector]) -> list[Vector]:
    """Cosines of all pairs."""
    return [[dot(image, caption) for caption in captions] for image in images]


def hardest_hinges(similarities: list[Vector]) -> float:
    """[0.2 + S of the hardest negative - S of the pair]+ of both directions; all but the pair are negatives."""
    total = 0.0
    for rows in (similarities, [list(column) for column in zip(*similarities, strict=True)]):
        for query, row in enumerate(rows):
            worst = max(0.2 + number - row[query] for other, number in enumerate(row) if other != query)
            total += max(0.0, worst)
    return total


def loss(images: Numbers, captions: Numbers) -> float:
    """3, 5 and 1 times the hinges of the levels, and twice the divergence KL(q || p), summed over pairs."""
    divergence = 0.0
    for p, q in zip(images.scores, captions.scores, strict=True):
        for a, b in zip(p, q, strict=True):
            divergence += b * (math.log(b) - math.log(a))
    return (
        3 * hardest_hinges(block(images.fused, captions.fused))
        + 5 * hardest_hinges(block(images.instance, captions.instance))
        + hardest_hinges(block(images.consensus, captions.consensus))
        + 2 * divergence
    )


def evaluated(images: Numbers, captions: Numbers) -> list[Vector]:
    """0.95 S_fused + 0.05 S_consensus of all pairs."""
    fused, consensus = block(images.fused, captions.fused), block(images.consensus, captions.consensus)
    return [mixture([0.95, 0.05], list(rows)) for rows in zip(fused, consensus, strict=True)]


def derivative(value: Callable[[], float], numbers: list[float], place: int, step: float = 1e-5) -> float:
    """Change of ``value`` with one number, by a central difference; the number is put back."""
    before, found = numbers[place], []
    for one in (before + step, before - step):
        numbers[place] = one
        found.append(value())
    numbers[place] = before
    return (found[0] - found[1]) / (2 * step)
