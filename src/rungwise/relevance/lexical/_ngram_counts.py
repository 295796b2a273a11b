"""N-grams of a collection, counted in parts of some images each, so that other processes can count parts.

Words and n-grams get the numbers that they would have if all captions were counted at once: words by first appearance,
n-grams by prefix and last word. So the result does not depend on the number of parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rungwise.core.compute import Share, in_turn
from rungwise.language.tokenisers import Tokeniser
from rungwise.relevance.lexical._ngrams import DocumentFrequencies, Integers, NgramCounts

CAPTIONS = 1 << 15
"""Number of captions that are counted at a time, roughly."""


@dataclass(frozen=True)
class Texts:
    """All captions of some images.

    Attributes:
        captions: (captions,) ascending positions in the collection.
        texts: (captions,) the captions themselves.
        owners: (captions,) the image of each caption.
    """

    captions: Integers
    texts: Sequence[str]
    owners: Integers


@dataclass(frozen=True)
class Counts:
    """Tokens and n-grams of some captions.

    Attributes:
        words: Different words, by first appearance.
        lengths: (captions,) number of tokens.
        tokens: (tokens,) int32 positions in ``words``, one caption after the other.
        keys: Per order, (n-grams,) as in :class:`~rungwise.relevance.lexical._ngrams.NgramCounts`.
        frequencies: Per order, (n-grams,) number of images that have each.
        most: Per order, (n-grams,) the highest count of each in a single caption.
    """

    words: Sequence[str]
    lengths: Integers
    tokens: NDArray[np.int32]
    keys: Sequence[Integers]
    frequencies: Sequence[Integers]
    most: Sequence[Integers]


@dataclass(frozen=True)
class CountedTexts(Counts):
    """Counts of one part, with what is needed to merge parts.

    Attributes:
        first: (words,) the caption in which each word stands first.
        captions: (captions,) ascending positions in the collection.
    """

    first: Integers
    captions: Integers


@dataclass(frozen=True)
class Vocabulary(Counts):
    """The n-grams of a whole collection, with its tokens and the number of ``images`` that have a caption."""

    images: int

    def document_frequencies(self, origin: str = "") -> DocumentFrequencies:
        """In how many images each n-gram occurs."""
        return DocumentFrequencies(self.images, tuple(self.words), tuple(self.keys), tuple(self.frequencies), origin)

    def hashed(self) -> Iterator[bytes]:
        """The tokens themselves, so that a tokeniser that splits differently gives another hash."""
        for word in self.words:
            yield word.encode("utf-8", "surrogatepass") + b"\0"
        yield self.lengths.astype("<i8").tobytes()
        yield self.tokens.astype("<i8").tobytes()


def vocabulary(
    captions: Sequence[str],
    image_of_caption: Integers,
    tokeniser: Tokeniser,
    orders: int,
    share: Share = in_turn,
) -> Vocabulary:
    """Count a collection.

    Args:
        captions: (captions,) texts.
        image_of_caption: (captions,) the image of each caption.
        tokeniser: Text to tokens.
        orders: Length of the longest n-gram.
        share: Executor that counts the parts.
    """
    texts = _texts(captions, image_of_caption)
    parts = dict(share(count, (tokeniser, orders), texts))
    return merged([parts[number] for number in sorted(parts)], len(captions), orders, image_of_caption)


def _texts(captions: Sequence[str], image_of_caption: Integers) -> Iterator[Texts]:
    order = np.argsort(image_of_caption, kind="stable")
    ends = np.flatnonzero(np.diff(image_of_caption[order], append=-1)) + 1  # where the captions of an image end
    marks = np.searchsorted(ends, np.arange(CAPTIONS, len(order), CAPTIONS))
    for low, high in pairwise(np.unique([0, *ends[marks], len(order)]).tolist()):
        here = np.sort(order[low:high])
        yield Texts(here, [captions[caption] for caption in here], image_of_caption[here])


def count(how: tuple[Tokeniser, int], part: Texts) -> CountedTexts:
    """Count all captions of some images; ``how`` is the tokeniser and the length of the longest n-gram."""
    counts = NgramCounts(part.texts, *how)
    most = [np.zeros(len(keys), np.int64) for keys in counts.keys]
    for one, ngram, times in zip(most, counts.ngram, counts.count, strict=True):
        np.maximum.at(one, ngram, times)
    _, places = np.unique(counts.tokens, return_index=True)
    return CountedTexts(
        counts.words,
        counts.lengths,
        counts.tokens.astype(np.int32),
        counts.keys,
        DocumentFrequencies.counted(counts, part.owners).counts,
        most,
        first=part.captions[np.repeat(np.arange(len(part.captions)), counts.lengths)[places]],
        captions=part.captions,
    )


def merged(parts: Sequence[CountedTexts], captions: int, orders: int, image_of_caption: Integers) -> Vocabulary:
    """Join the counts of all parts, with the result as if everything had been counted at once.

    Args:
        parts: Counts in which every caption stands once.
        captions: Number of captions.
        orders: Length of the longest n-gram.
        image_of_caption: (captions,) the image of each caption.
    """
    # A caption is in one part, where words that stand first in it are numbered in order.
    firsts: dict[str, tuple[int, int]] = {}
    for part in parts:
        for number, (word, caption) in enumerate(zip(part.words, part.first.tolist(), strict=True)):
            if word not in firsts or (caption, number) < firsts[word]:
                firsts[word] = caption, number
    words = sorted(firsts, key=firsts.__getitem__)
    numbers = {word: number for number, word in enumerate(words)}
    own = [np.array([numbers[word] for word in part.words], np.int64) for part in parts]
    lengths = np.zeros(captions, np.int64)
    for part in parts:
        lengths[part.captions] = part.lengths
    starts = np.cumsum(lengths) - lengths
    tokens = np.empty(int(lengths.sum()), np.int32)
    for part, renumbered in zip(parts, own, strict=True):
        before = np.cumsum(part.lengths) - part.lengths
        places = np.repeat(starts[part.captions] - before, part.lengths) + np.arange(len(part.tokens))
        tokens[places] = renumbered[part.tokens]
    keys, frequencies, most = [], [], []
    prefixes = [np.zeros(1, np.int64) for _ in parts]
    for order in range(orders):
        here = []
        for part, renumbered, prefix in zip(parts, own, prefixes, strict=True):
            before, last = np.divmod(part.keys[order], max(1, len(part.words)))
            here.append(prefix[before] * len(words) + renumbered[last])
        keys.append(np.unique(np.concatenate([np.empty(0, np.int64), *here])))
        prefixes = [np.searchsorted(keys[-1], one) for one in here]
        frequencies.append(np.zeros(len(keys[-1]), np.int64))
        most.append(np.zeros(len(keys[-1]), np.int64))
        for part, place in zip(parts, prefixes, strict=True):
            frequencies[-1][place] += part.frequencies[order]
            most[-1][place] = np.maximum(most[-1][place], part.most[order])
    images = len(np.unique(image_of_caption))
    return Vocabulary(words, lengths, tokens, keys, frequencies, most, images)
