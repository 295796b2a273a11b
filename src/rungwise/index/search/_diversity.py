"""Rankings in which pictures much like an earlier hit are folded under it, or come later."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.compute import steady_products
from rungwise.index._answers import check_diversity
from rungwise.similarity import unit_rows

NEAR_DUPLICATE = 0.98
"""Cosine from which on two pictures count as near-duplicates; benchmarks/queries.py duplicates shows why."""

_FEW = 64 * 64
"""Number of products up to which a loop takes less than a library for matrices."""
_AT_ONCE = 64
"""Number of rows that are compared with the rows before them, and then with each other."""


def _products(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n, m) inner products of hundreds of rows at most, on one thread.

    Libraries for matrices put even a page of rows on threads. Where others want the processors, as in a server, waiting
    for these takes many times as long as multiplying.
    """
    if len(first) * len(second) <= _FEW:
        found: NDArray[np.float32] = np.einsum("id,jd->ij", first, second)
        return found
    return steady_products(first, second)


class Folding:
    """Near-duplicates of a ranking put under the first of them, as the ranking becomes known part by part.

    A row joins the first row before it that stands by itself and has the same hash, or a cosine of at least
    ``least_cosine``, which is 0 or more, with it. Later rows of the ranking change nothing before them.

    Attributes:
        groups: For each row that stands by itself its position, and after it the positions of those that joined it.

    >>> folding = Folding()
    >>> folding.add([[1, 0], [0, 1]], [None, "e3"])
    >>> folding.add([[1, 0.01], [5, 5]], [None, "e3"])
    >>> folding.groups
    [[0, 2], [1, 3]]
    """

    def __init__(self, least_cosine: float = NEAR_DUPLICATE) -> None:
        self.groups: list[list[int]] = []
        self._least = least_cosine
        self._rows = 0
        self._firsts: NDArray[np.float32] | None = None
        self._of_hash: dict[str, int] = {}

    def add(self, vectors: ArrayLike, hashes: Sequence[str | None]) -> None:
        """Add the next rows of the ranking, (n, D), best first, with the hashes of their contents, None if unknown."""
        units = unit_rows(vectors)
        # Some at a time: where hundreds are alike, all but the first few are compared with a few rows alone.
        for start in range(0, len(units), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            self._add(units[some], hashes[some])

    def _add(self, units: NDArray[np.float32], hashes: Sequence[str | None]) -> None:
        group_of = np.full(len(units), -1)  # of the first row before that each is like
        if self._firsts is not None:
            alike = _products(units, self._firsts) >= self._least
            group_of = np.where(alike.any(axis=1), alike.argmax(axis=1), -1)
        left = np.flatnonzero(group_of < 0)
        to_each_other = _products(units[left], units[left]) >= self._least
        all_differ = not np.triu(to_each_other, 1).any()  # as most do
        place_of = dict(zip(left.tolist(), range(len(left)), strict=True))
        new: list[int] = []  # rows of these that stand by themselves
        for row, content in enumerate(hashes):
            alike_to = int(group_of[row])
            same = -1 if content is None else self._of_hash.get(content, -1)
            if alike_to >= 0 or same >= 0:
                joined = max(alike_to, same) if min(alike_to, same) < 0 else min(alike_to, same)
                self.groups[joined].append(self._rows + row)
                continue
            if content is not None:
                self._of_hash[content] = len(self.groups)
            if not all_differ:
                like_it = left[to_each_other[place_of[row]]]
                group_of[like_it[group_of[like_it] < 0]] = len(self.groups)
            new.append(row)
            self.groups.append([self._rows + row])
        if new:
            self._firsts = units[new] if self._firsts is None else np.concatenate([self._firsts, units[new]])
        self._rows += len(units)


def diversified(relevance: ArrayLike, vectors: ArrayLike, diversity: float) -> list[int]:
    """Order by maximal marginal relevance (Carbonell and Goldstein 1998): relevant, and unlike what came before.

    The next is the one with the largest (1 - diversity) * relevance - diversity * (highest cosine to those before).
    Relevance, (n,), is brought to 0..1 first. Diversity 0 keeps its order, 1 counts nothing but unlikeness after the
    first.

    >>> diversified([0.9, 0.89, 0.5], [[1, 0], [1, 0.1], [0, 1]], 0.5)
    [0, 2, 1]
    """
    check_diversity(diversity)
    given, rows = np.asarray(relevance, np.float64), unit_rows(vectors)
    spread = float(np.ptp(given)) if len(given) else 0.0
    scaled = (given - given.min()) / spread if spread else np.ones_like(given)
    order: list[int] = []
    left = np.ones(len(given), bool)
    nearest = np.zeros(len(given))
    for _ in range(len(given)):
        value = np.where(left, (1 - diversity) * scaled - (diversity * nearest if order else 0), -np.inf)
        chosen = int(value.argmax())
        order.append(chosen)
        left[chosen] = False
        alike = rows @ rows[chosen]
        nearest = np.maximum(nearest, alike) if len(order) > 1 else alike
    return order
