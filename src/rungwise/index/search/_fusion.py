"""Full text and vectors joined to one ranking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from rungwise.index.stores import word_set, words_of

RANK_CONSTANT = 60
"""Constant of reciprocal rank fusion, as its authors found it."""
MOST_OF = 0.5
"""Least share of the words of a query, by rarity, that a text must hold; benchmarks/queries.py words shows why."""
_TEXTS_LOOKED_AT = 5_000


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


class Rarity:
    """Rarity of words in the texts of a collection, of which at most 5,000 are read.

    The rarity of a word is the inverse document frequency of BM25, ln(1 + (N - n + 0.5) / (n + 0.5)).

    >>> rarity = Rarity(["a dog", "a cat", "a red boat"])
    >>> [round(share, 2) for share in rarity.shares("a red dog", ["a dog", "a red dog", "the sea"])]
    [0.53, 1.0, 0.0]
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._bearers: Counter[str] = Counter()
        self._texts = 0
        for text in islice(texts, _TEXTS_LOOKED_AT):
            self._texts += 1
            self._bearers.update(set(words_of(text)))

    def shares(self, words: str, texts: Iterable[str]) -> list[float]:
        """Share of the words that each text holds, weighted by rarity, 0..1; 0 where there are no words."""
        rarities = {word: self._rarity(word) for word in set(words_of(words))}
        whole = sum(rarities.values()) or 1.0
        return [sum(rarity for word, rarity in rarities.items() if word in word_set(text)) / whole for text in texts]

    def _rarity(self, word: str) -> float:
        bearers = self._bearers[word]
        return float(np.log1p((self._texts - bearers + 0.5) / (bearers + 0.5)))
