"""The rows whose text holds each word, in arrays, and the best of them by BM25.

Of a frequent word no row is looked at that could not come among the best any more (MaxScore, Turtle and Flood 1995).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from rungwise.core.output import short_repr
from rungwise.index.stores._base import Vectors
from rungwise.index.stores._bm25 import LENGTH, SATURATION, rarity

_FEW = 64
"""If at most one row in so many was looked at, sorting these costs less than going through all scores."""
_FREQUENT = 4096
"""Rows of a word from which on it pays to find out whether all of them must be looked at."""


@dataclass(frozen=True)
class WordArrays:
    """Lists of words as arrays.

    Attributes:
        word_hashes: (words,) uint64 hashes of the words, rising.
        word_ends: (words,) int64 ends of each word's rows among all.
        word_rows: (entries,) int32 rows that hold a word, rising for each word.
        word_weights: (entries,) float32 weight of the word in the row's text by BM25, without the word's rarity.
        texts: Number of rows whose text holds a word.
        mean: Mean number of words of these.
    """

    word_hashes: NDArray[np.uint64]
    word_ends: NDArray[np.int64]
    word_rows: NDArray[np.int32]
    word_weights: NDArray[np.float32]
    texts: int
    mean: float

    __repr__ = short_repr


def hashes_of(texts: Iterable[str]) -> NDArray[np.uint64]:
    """(texts,) hashes of texts."""
    return np.frombuffer(b"".join(blake2b(one.encode(), digest_size=8).digest() for one in texts), np.uint64)


def word_lists(texts: Iterable[Sequence[str]]) -> WordArrays:
    """Lists of the rows of each word; ``texts`` are the words of each row."""
    number_of: dict[str, int] = {}
    counts: list[int] = []
    parts: list[NDArray[np.int32]] = []
    some: list[int] = []
    for words in texts:
        counts.append(len(words))
        some += [number_of.setdefault(word, len(number_of)) for word in words]
        if len(some) > 1 << 16:
            parts.append(np.array(some, np.int32))
            some = []
    numbers = np.concatenate([*parts, np.array(some, np.int32)])
    hashes = hashes_of(number_of)
    order = np.argsort(hashes)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    entries = place[numbers] * len(counts) + np.repeat(np.arange(len(counts)), counts)
    entries, times = np.unique(entries, return_counts=True)
    numbers, rows = np.divmod(entries, max(1, len(counts)))
    lengths = np.array(counts, np.float64)
    bearing = int(np.count_nonzero(lengths))
    mean = max(1.0, float(lengths.sum()) / max(1, bearing))
    weights = times * (SATURATION + 1) / (times + SATURATION * (1 - LENGTH + LENGTH * lengths[rows] / mean))
    return WordArrays(
        hashes[order],
        np.cumsum(np.bincount(numbers, minlength=len(order))).astype(np.int64),
        rows.astype(np.int32),
        weights.astype(np.float32),
        bearing,
        mean,
    )


class WordLists:
    """Search in lists of words: BM25 as :class:`~rungwise.index.stores._bm25.WordIndex` counts it.

    Args:
        arrays: The lists.
        rows: Number of rows.

    Attributes:
        texts: Number of rows whose text holds a word.
        mean: Mean number of words of these.
    """

    def __init__(self, arrays: WordArrays, rows: int) -> None:
        self._arrays, self._number = arrays, rows
        self.texts, self.mean = arrays.texts, arrays.mean

    def bearers(self, word: str) -> int:
        """Number of rows that hold a word."""
        return len(self._of([word])[0][0])

    def best(
        self, words: Sequence[str], k: int, kept: NDArray[np.bool_] | None, later: int = 0
    ) -> tuple[NDArray[np.int64], Vectors]:
        """Positions and scores of the k rows that hold at least one of the words, best first.

        Equal scores stand in the order of rows.

        Args:
            words: Different words.
            k: Number of rows, at least 1.
            kept: (rows,) whether a row may be found; all if None.
            later: Number of texts elsewhere, among which words are rare as well.
        """
        lists = [
            (rarity(self.texts + later, len(rows)), rows, weights) for rows, weights in self._of(words) if len(rows)
        ]
        lists.sort(key=lambda one: -one[0])
        # What the words from each on can add at most.
        most = np.cumsum([0.0, *((SATURATION + 1) * one for one, _, _ in reversed(lists))])[::-1]
        scores, looked_at = np.zeros(self._number, np.float32), list[NDArray[np.int32]]()
        candidates: NDArray[np.int64] | None = None  # rows that may be among the best; None while any row may be
        for (rare, rows, weights), can_add in zip(lists, most, strict=False):
            if candidates is None and len(rows) > _FREQUENT:
                reached = _reached(scores, looked_at)
                bar = float(np.partition(scores[reached], -k)[-k]) if len(reached) >= k else 0.0
                candidates = reached[scores[reached] >= bar - can_add] if bar > can_add else None
            if candidates is not None:
                place = np.minimum(np.searchsorted(rows, candidates), len(rows) - 1)
                same = rows[place] == candidates
                scores[candidates[same]] += np.float32(rare) * weights[place[same]]
                continue
            if kept is not None:
                chosen = np.flatnonzero(kept[rows])
                rows, weights = rows[chosen], weights[chosen]
            scores[rows] += np.float32(rare) * weights
            looked_at.append(rows)
        reached = _reached(scores, looked_at) if candidates is None else candidates
        if len(reached) > k:  # the k best, and those that are as good as the last of them
            reached = reached[scores[reached] >= np.partition(scores[reached], -k)[-k]]
        best = reached[np.argsort(-scores[reached], kind="stable")][:k]
        return best, scores[best]

    def _of(self, words: Sequence[str]) -> list[tuple[NDArray[np.int32], NDArray[np.float32]]]:
        """Rows that hold each word, and its weights in them."""
        held, ends = self._arrays.word_hashes, self._arrays.word_ends
        sought = hashes_of(words)
        places = np.searchsorted(held, sought)
        found = []
        for place, one in zip(places.tolist(), sought, strict=True):
            if place == len(held) or held[place] != one:
                entries = slice(0, 0)
            else:
                entries = slice(int(ends[place - 1]) if place else 0, int(ends[place]))
            found.append((self._arrays.word_rows[entries], self._arrays.word_weights[entries]))
        return found


def _reached(scores: Vectors, looked_at: Sequence[NDArray[np.int32]]) -> NDArray[np.int64]:
    """Rows with a score, rising, which are those that were looked at."""
    if _FEW * sum(map(len, looked_at)) > len(scores):
        return np.flatnonzero(scores)
    return np.unique(np.concatenate([np.empty(0, np.int32), *looked_at])).astype(np.int64)
