"""Unscored pairs of texts, near ones and random ones, drawn for a model that learns from another one."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from rungwise.core.compute import top_columns

NEAR = 0.75
"""Share of near pairs: of random pairs hardly any are alike at all."""
NEIGHBOURS = 10
"""Number of nearest texts from which each text's partner is drawn."""

_CELLS = 1 << 24
"""Number of cosines in memory at a time."""
_TRIES = 4
"""Number of rounds of random draws, after which hardly any new pairs are left."""


def drawn_pairs(
    texts: Sequence[str],
    vectors: NDArray[np.float32],
    count: int,
    *,
    seed: int,
    without: Collection[tuple[str, str]] = (),
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Draw distinct pairs of different texts.

    Args:
        texts: (texts,) distinct texts.
        vectors: (texts, D) of length 1; near texts have a large cosine.
        count: Number of pairs; fewer are drawn where there are not so many.
        seed: Seed of the draw.
        without: Pairs to leave out, in either order.

    Returns:
        First and second texts, the near pairs first.

    >>> vectors = np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32)
    >>> drawn_pairs(["a", "b", "c"], vectors, 9, seed=0, without={("c", "b")})
    (('a', 'a'), ('c', 'b'))
    """
    generator = np.random.default_rng(seed)
    number = {text: place for place, text in enumerate(texts)}
    seen = {(min(number[a], number[b]), max(number[a], number[b])) for a, b in without if a in number and b in number}
    if len(texts) < 2 or count < 1:
        return (), ()
    chosen: list[tuple[int, int]] = []

    def take(first: NDArray[np.int64], second: NDArray[np.int64], most: int) -> None:
        for one, other in zip(first.tolist(), second.tolist(), strict=True):
            pair = (min(one, other), max(one, other))
            if len(chosen) < most and one != other and pair not in seen:
                seen.add(pair)
                chosen.append(pair)

    wanted = round(NEAR * count)
    each = -(-wanted // len(texts)) + 1  # one more, since a text is near to itself
    anchors, run = generator.permutation(len(texts)), max(1, _CELLS // len(texts))
    for start in range(0, len(anchors), run):
        if len(chosen) < wanted:
            some = anchors[start : start + run]
            near = generator.permuted(top_columns(vectors[some] @ vectors.T, NEIGHBOURS + 1), axis=1)[:, :each]
            take(np.repeat(some, near.shape[1]), near.ravel(), wanted)
    for _ in range(_TRIES):
        first, second = generator.integers(len(texts), size=(2, count))
        take(first, second, count)
    return tuple(texts[one] for one, _ in chosen), tuple(texts[other] for _, other in chosen)
