"""Words of texts, and the texts that hold them: BM25 over a collection in memory."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"[^\W_]+")
_SATURATION, _LENGTH = 1.2, 0.75
"""k1 and b of BM25, as most engines set them."""


def words_of(text: str) -> list[str]:
    """The words of a text, without case and accents; what is not a letter or a digit parts them.

    >>> words_of("Zwei CAFÉS, t-shirt")
    ['zwei', 'cafes', 't', 'shirt']
    """
    plain = unicodedata.normalize("NFKD", text.casefold())
    return _WORD.findall("".join(one for one in plain if not unicodedata.combining(one)))


def best_by_words(words: str, texts: Mapping[str, str], k: int) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """Ids of the k texts that hold at least one of the words, best first, and their scores.

    Scores are BM25 with k1 = 1.2 and b = 0.75 (Robertson and Zaragoza 2009), and the inverse document frequency
    ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative. Equal scores stand in the order of the texts.

    Args:
        words: What is looked for.
        texts: By id.
        k: How many at most.

    >>> best_by_words("red boat", {"a": "a red car", "b": "a red boat", "c": "the sea"}, 5)[0]
    ('b', 'a')
    """
    sought = set(words_of(words))
    counted = {one: Counter(words_of(text)) for one, text in texts.items()}
    lengths = {one: counts.total() for one, counts in counted.items()}
    mean = sum(lengths.values()) / max(len(lengths), 1)
    scores: dict[str, float] = {}
    for word in sorted(sought):
        bearers = [one for one, counts in counted.items() if word in counts]
        rarity = float(np.log1p((len(counted) - len(bearers) + 0.5) / (len(bearers) + 0.5)))
        for one in bearers:
            times = counted[one][word]
            weight = times + _SATURATION * (1 - _LENGTH + _LENGTH * lengths[one] / mean)
            scores[one] = scores.get(one, 0.0) + rarity * times * (_SATURATION + 1) / weight
    order = {one: place for place, one in enumerate(texts)}
    best = sorted(scores, key=lambda one: (-scores[one], order[one]))[:k]
    return tuple(best), np.array([scores[one] for one in best], np.float32)
