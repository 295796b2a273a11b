"""Rankings in which pictures much like an earlier hit are folded under it, or come later."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.compute import steady_products
from rungwise.index._answers import check_diversity
from rungwise.similarity import unit_rows

NEAR_DUPLICATE = 0.98
"""Cosine from which on two pictures count as near-duplicates; benchmarks/queries.py duplicates shows why."""

_FEW = 64 * 64
"""Number of products up to which a loop takes less than a library for matrices."""


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
        self._firsts: list[NDArray[np.float32]] = []
        self._of_hash: dict[str, int] = {}

    def add(self, vectors: ArrayLike, hashes: Sequence[str | None]) -> None:
        """Add the next rows of the ranking, (n, D), best first, with the hashes of their contents, None if unknown."""
        units = unit_rows(vectors)
        before = len(self._firsts)
        alike = _products(units, np.concatenate([np.stack(self._firsts), units] if before else [units])) >= self._least
        to_firsts, to_each_other = alike[:, :before], alike[:, before:]
        if not to_firsts.any() and np.count_nonzero(to_each_other) <= len(units) and self._are_new(hashes):
            self._stand_alone(range(len(units)), units, hashes)  # as most rows do
        else:
            self._join(to_firsts, to_each_other, units, hashes)
        self._rows += len(units)

    def _are_new(self, hashes: Sequence[str | None]) -> bool:
        known = [one for one in hashes if one is not None]
        return len(set(known)) == len(known) and self._of_hash.keys().isdisjoint(known)

    def _stand_alone(self, rows: Iterable[int], units: NDArray[np.float32], hashes: Sequence[str | None]) -> None:
        for row in rows:
            if (content := hashes[row]) is not None:
                self._of_hash[content] = len(self.groups)
            self._firsts.append(units[row])
            self.groups.append([self._rows + row])

    def _join(
        self,
        to_firsts: NDArray[np.bool_],
        to_each_other: NDArray[np.bool_],
        units: NDArray[np.float32],
        hashes: Sequence[str | None],
    ) -> None:
        before = len(self._firsts)
        new: list[int] = []  # rows of these that stand by themselves
        alike = np.any(to_firsts, axis=1)  # for all rows at once: where all are alike there are hundreds
        for row, content in enumerate(hashes):
            joined = [self._of_hash[content]] if content is not None and content in self._of_hash else []
            if alike[row]:
                joined.append(int(to_firsts[row].argmax()))
            elif new and to_each_other[row, new].any():
                joined.append(before + int(to_each_other[row, new].argmax()))
            if joined:
                self.groups[min(joined)].append(self._rows + row)
            else:
                new.append(row)
                self._stand_alone([row], units, hashes)


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
