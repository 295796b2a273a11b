"""Full text and vectors joined to one ranking."""

from __future__ import annotations

from collections.abc import Sequence

RANK_CONSTANT = 60
"""Constant of reciprocal rank fusion, as its authors found it."""
MOST_OF = 0.5
"""Least share of the words of a query, by rarity, that a text must hold; benchmarks/queries.py words shows why."""


def fused(rankings: Sequence[Sequence[str]]) -> list[str]:
    """Reciprocal rank fusion (Cormack, Clarke and Buettcher 2009): by the sum of 1 / (60 + rank) over the rankings.

    Scores are not compared, so that a similarity and BM25 need no common scale. Equal sums stand in the order in which
    the rankings, each of distinct ids, best first, name them.

    >>> fused([["a", "b", "c"], ["c", "d"]])
    ['c', 'a', 'b', 'd']
    """
    sums: dict[str, float] = {}
    for ranking in rankings:
        for rank, one in enumerate(ranking, start=1):
            sums[one] = sums.get(one, 0.0) + 1 / (RANK_CONSTANT + rank)
    return sorted(sums, key=lambda one: -sums[one])
