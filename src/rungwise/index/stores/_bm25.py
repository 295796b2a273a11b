"""Words of texts, and the texts that hold them: BM25 over a collection in memory."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from rungwise.core.text import normalised

_WORD = re.compile(r"[^\W_]+")
SATURATION, LENGTH = 1.2, 0.75
"""k1 and b of BM25, as most engines set them."""


def words_of(text: str) -> list[str]:
    """The words of a text, without case and accents; whatever is not a letter or a digit parts them.

    >>> words_of("Zwei CAFÉS, t-shirt")
    ['zwei', 'cafes', 't', 'shirt']
    """
    if text.isascii():
        return _WORD.findall(text.lower())
    plain = normalised(text.casefold(), "NFKD")
    return _WORD.findall("".join(one for one in plain if not unicodedata.combining(one)))


@lru_cache(maxsize=8192)
def word_set(text: str) -> frozenset[str]:
    """The distinct words of a text, cached: many searches ask for those of the same texts."""
    return frozenset(words_of(text))


def rarity(texts: int, bearers: int) -> float:
    """Inverse document frequency of a word that ``bearers`` of so many texts hold; never negative.

    >>> rarity(10, 10) < rarity(10, 1)
    True
    """
    return float(np.log1p((max(texts, bearers) - bearers + 0.5) / (bearers + 0.5)))


class WordIndex:
    """The words that texts hold, indexed once for many searches.

    Scores are BM25 with k1 = 1.2 and b = 0.75 (Robertson and Zaragoza 2009). The inverse document frequency is ln(1 +
    (N - n + 0.5) / (n + 0.5)), which is never negative. Equal scores stand in the order of the texts.

    Where ``texts`` are some of ``total`` texts, ``bearers`` gives the number of all texts that hold a word. ``mean`` is
    the mean number of words of all.

    >>> index = WordIndex([("a", "a red car"), ("b", "a red boat"), ("c", "the sea")])
    >>> index.best("red boat", 5)[0]
    ('b', 'a')
    """

    def __init__(
        self,
        texts: Iterable[tuple[str, str]],
        bearers: Callable[[str], int] = lambda word: 0,
        total: int = 0,
        mean: float | None = None,
    ) -> None:
        self._of_all, self._total = bearers, total
        ids: list[str] = []
        lengths: list[int] = []
        rows_of_word: dict[str, tuple[list[int], list[int]]] = {}
        for row, (one, text) in enumerate(texts):
            counts = Counter(words_of(text))
            ids.append(one)
            lengths.append(counts.total())
            for word, times in counts.items():
                rows, often = rows_of_word.setdefault(word, ([], []))
                rows.append(row)
                often.append(times)
        self._ids = tuple(ids)
        self._bearers = {
            word: (np.array(rows, np.int32), np.array(often, np.float32))
            for word, (rows, often) in rows_of_word.items()
        }
        length = np.array(lengths, np.float64)
        mean = max(length.mean() if len(ids) else 1.0, 1.0) if mean is None else mean
        self._weight = SATURATION * (1 - LENGTH + LENGTH * length / mean)

    def best(
        self, words: str, k: int, fits: Callable[[str], bool] | None = None
    ) -> tuple[tuple[str, ...], NDArray[np.float32]]:
        """Ids of the k texts that hold at least one of the words, best first, and their scores.

        ``fits`` says whether the text with an id may be found.
        """
        scores = np.zeros(len(self._ids))
        for word in sorted(set(words_of(words)) & self._bearers.keys()):
            rows, times = self._bearers[word]
            rare = rarity(max(len(self._ids), self._total), max(len(rows), self._of_all(word)))
            scores[rows] += rare * times * (SATURATION + 1) / (times + self._weight[rows])
        found = np.flatnonzero(scores)
        if fits is None and len(found) > k:  # the k best, and those that are as good as the last of them
            found = found[scores[found] >= np.partition(scores[found], -k)[-k]]
        order = found[np.argsort(-scores[found], kind="stable")]
        best: list[int] = []
        for row in order.tolist():
            if len(best) == k:
                break
            if fits is None or fits(self._ids[row]):
                best.append(row)
        return tuple(self._ids[row] for row in best), scores[best].astype(np.float32)


def best_by_words(
    words: str,
    texts: Mapping[str, str],
    k: int,
    bearers: Mapping[str, int] = MappingProxyType({}),
    total: int = 0,
) -> tuple[tuple[str, ...], NDArray[np.float32]]:
    """:meth:`WordIndex.best` of texts that are looked through once, or of some of many."""
    return WordIndex(texts.items(), lambda word: bearers.get(word, 0), total).best(words, k)
