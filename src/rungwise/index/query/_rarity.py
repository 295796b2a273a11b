"""Rarity of words in the texts of a collection, and how many texts hold the words of a query."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

import numpy as np

from rungwise.index.stores import word_set, words_of

_TEXTS_LOOKED_AT = 5_000


class Rarity:
    """Rarity of words in the texts of a collection, of which at most 5,000 are read.

    The rarity of a word is the inverse document frequency of BM25, ln(1 + (N - n + 0.5) / (n + 0.5)).

    Attributes:
        texts: Number of texts that were read.

    >>> rarity = Rarity(["a dog", "a cat", "a red boat"])
    >>> [round(share, 2) for share in rarity.shares("a red dog", ["a dog", "a red dog", "the sea"])]
    [0.53, 1.0, 0.0]
    >>> rarity.bearers("a dog"), rarity.bearers("a red dog")
    (1, 0)
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._holders: dict[str, set[int]] = {}
        self.texts = 0
        for text in islice(texts, _TEXTS_LOOKED_AT):
            for word in set(words_of(text)):
                self._holders.setdefault(word, set()).add(self.texts)
            self.texts += 1

    def shares(self, words: str, texts: Iterable[str]) -> list[float]:
        """Share of the words that each text holds, weighted by rarity, 0..1; 0 where there are no words."""
        return self.shares_of_sets(words, map(word_set, texts))

    def shares_of_sets(self, words: str, held: Iterable[Collection[str]]) -> list[float]:
        """The same for texts whose words are known."""
        weights = self.weights(words)
        return [sum((weight for word, weight in weights.items() if word in own), 0.0) for own in held]

    def __contains__(self, word: str) -> bool:
        """Whether one of the texts holds a word."""
        return word in self._holders

    def weights(self, words: str) -> dict[str, float]:
        """Weight of each word by its rarity; together they are 1."""
        rarities = {word: self._rarity(word) for word in set(words_of(words))}
        whole = sum(rarities.values()) or 1.0
        return {word: rarity / whole for word, rarity in rarities.items()}

    def bearers(self, words: str) -> int:
        """Number of texts that hold all of these words."""
        holders = sorted((self._holders.get(word, set()) for word in set(words_of(words))), key=len)
        return len(set.intersection(*holders)) if holders else 0

    def _rarity(self, word: str) -> float:
        bearers = len(self._holders.get(word, ()))
        return float(np.log1p((self.texts - bearers + 0.5) / (bearers + 0.5)))
