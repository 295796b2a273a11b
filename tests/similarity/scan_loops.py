"""SCAN's similarity of every pair, number by number (Lee et al. 2018, Eq. 1 to 9, and its program)."""

import torch
from torch import Tensor


def _sum(values: list[Tensor]) -> Tensor:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _dot(one: Tensor, other: Tensor) -> Tensor:
    return _sum([one[d] * other[d] for d in range(len(one))])


def _root(value: Tensor) -> Tensor:
    """Whose slope at 0 is taken to be 0."""
    return value.sqrt() if value > 0 else value * 0


def _raw(products: list[list[Tensor]], normalise: str) -> list[list[Tensor]]:
    """``products[a][q]``, of what is attended to with what attends, over all q of one a."""
    found = []
    for row in products:
        if normalise.startswith("clipped"):
            row = [value if value > 0 else 0.1 * value for value in row]
        if normalise == "softmax":
            total = _sum([value.exp() for value in row])
            row = [value.exp() / total for value in row]
        elif normalise.endswith("l2norm"):
            norm = _root(_sum([value * value for value in row])) + 1e-8
            row = [value / norm for value in row]
        elif normalise.endswith("l1norm"):
            norm = _sum([value.abs() for value in row]) + 1e-8
            row = [value / norm for value in row]
        found.append(row)
    return found


def scan_of_pair(
    regions: Tensor, words: Tensor, attend: str, smoothing: float, pooling: str, lse: float, normalise: str
) -> Tensor:
    """(R, D) regions and (L, D) words, without padding, to one similarity."""
    queries, context = (words, regions) if attend == "t2i" else (regions, words)
    products = [[_dot(c, q) for q in queries] for c in context]
    raw = _raw(products, normalise)
    answers = []
    for at, query in enumerate(queries):
        weights = [(smoothing * raw[a][at]).exp() for a in range(len(context))]
        total = _sum(weights)
        attended = _sum([weight / total * context[a] for a, weight in enumerate(weights)])
        along = _dot(query, attended)
        lengths = _root(_dot(query, query)) * _root(_dot(attended, attended))
        answers.append(along / max(lengths, torch.tensor(1e-8, dtype=lengths.dtype)))
    if pooling == "mean":
        return _sum(answers) / len(answers)
    return _sum([(lse * answer).exp() for answer in answers]).log() / lse


def scan_loops(regions: Tensor, words: Tensor, lengths: list[int], **options) -> Tensor:
    """(images, R, D) and (captions, W, D) to (images, captions)."""
    asked = {
        "attend": "t2i", "smoothing": 9.0, "pooling": "lse", "lse": 6.0, "normalise": "clipped_l2norm", **options
    }  # fmt: skip
    rows = []
    for image in regions:
        row = [scan_of_pair(image, words[c, : lengths[c]], **asked) for c in range(len(words))]
        rows.append(torch.stack(row))
    return torch.stack(rows)
