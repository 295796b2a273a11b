"""Continuous bag of words (Mikolov et al. 2013): the cosine of averaged word vectors.

    v(t) = sum over tokens of weight * vector          R = cos(v(a), v(b))

The ladder paper (Zhou et al. 2020) averages the vectors of all tokens: every weight is 1, which is the default here.
Its authors' program gives nouns the weight 2. Neither leaves stop words out; here they can be (weight 0). Sum and
average differ by a factor that the cosine does not see.

The source sees that "pup" is near "dog". It does not see order: "a man bites a dog" equals "a dog bites a man".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError, digest_of_parts, user_path
from rungwise.core.disk import digest_of
from rungwise.language import WordVectors, load_word_vectors
from rungwise.language.tokenisers import ptb, unicode_words, whitespace
from rungwise.relevance._captions import References
from rungwise.relevance.embedding._base import VectorSource
from rungwise.similarity import unit_rows

Nouns = Collection[str] | Callable[[Sequence[str]], Sequence[bool]]
"""Words that are nouns, or a function that marks the nouns among the tokens of a caption."""


class CBoW(VectorSource):
    """R by the cosine of averaged word vectors.

    Words without a vector count nothing; ``unknown_share`` says how many tokens that were. A caption of such words only
    has 0 with every other.

    Args:
        captions: (captions,) texts.
        image_of_caption: (captions,) the position of each caption's image.
        vectors: A file in GloVe's or word2vec's layout, or vectors that are loaded.
        tokenizer: Text to tokens; the words of ``vectors`` must look like them (lower case, say).
        stop_words: Words that are left out. The ladder paper and its authors' program leave none out.
        nouns: Words that are nouns, or a callable that marks them; :func:`rungwise.language._word_vectors.nouns_from`
            makes one of a part-of-speech tagger.
        noun_weight: Weight of a noun; the authors take 2.
        reference: Which captions stand for an image, as in :class:`~rungwise.relevance.CaptionPairSource`.
        leave_one_out: A caption is no reference for itself.
        images: Number of images, where the last ones have no caption.

    Attributes:
        unknown_share: Share of the tokens, stop words aside, that have no vector, 0..1.
        unknown_words: Words without a vector and their counts, the most frequent first.

    >>> words = WordVectors({"dog": 0, "pup": 1, "car": 2}, np.array([[1, 0], [0.8, 0.6], [0, 1]], np.float32))
    >>> source = CBoW(["a dog", "a pup", "a car"], [0, 1, 2], words)
    >>> source.dense().round(2)
    array([[1. , 0.8, 0. ],
           [0.8, 1. , 0.6],
           [0. , 0.6, 1. ]], dtype=float32)
    >>> source.unknown_share, source.unknown_words
    (0.5, {'a': 3})
    """

    def __init__(
        self,
        captions: Sequence[str],
        image_of_caption: Sequence[int] | ArrayLike,
        vectors: Path | str | WordVectors,
        *,
        tokenizer: Callable[[str], Sequence[str]] = ptb,
        stop_words: Collection[str] = (),
        nouns: Nouns = (),
        noun_weight: float = 2.0,
        reference: References = "max",
        leave_one_out: bool = False,
        images: int | None = None,
    ) -> None:
        super().__init__(captions, image_of_caption, reference=reference, leave_one_out=leave_one_out, images=images)
        stopped = frozenset(stop_words)
        self._given = vectors
        # What a function of the user's does with other texts is not known.
        known = tokenizer in (ptb, unicode_words, whitespace)
        self._choices = (
            None
            if callable(nouns) or not known
            else [tokenizer.__name__, sorted(stopped), sorted(nouns), float(noun_weight)]
        )
        marked = nouns if callable(nouns) else _among(frozenset(nouns))
        tokens = [list(tokenizer(text)) for text in self.captions]
        weights = [
            [
                0.0 if token in stopped else noun_weight if noun else 1.0
                for token, noun in zip(some, marked(some), strict=True)
            ]
            for some in tokens
        ]
        counts = Counter(token for some in tokens for token in some if token not in stopped)
        self._stamp = None if isinstance(vectors, WordVectors) else _stamp(vectors)
        words = vectors if isinstance(vectors, WordVectors) else load_word_vectors(vectors, counts)
        unknown = Counter({token: count for token, count in counts.items() if token not in words.row})
        self.unknown_words = dict(unknown.most_common())
        self.unknown_share = unknown.total() / counts.total() if counts else 0.0
        if counts and self.unknown_share == 1:
            raise UserError(
                f"{words.name}: has a vector for none of the {len(counts)} words of the captions, such as"
                f" {next(iter(counts))!r}; give vectors of their language and a tokenizer that fits them"
            )
        self._vectors = _embedded(tokens, weights, words)

    @property
    def vectors(self) -> NDArray[np.float32]:
        """(captions, dimension) vectors of length 1, or 0 where no word has a vector."""
        return self._vectors

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the words' vectors and of what picks and weighs words, whatever the collection.

        With a tokenizer or a tagger of the user's own it is the hash of these captions' vectors.

        Raises:
            UserError: If the file of vectors is no longer the one that was read.
        """
        if self._choices is None:
            return self._content
        given = self._given.fingerprint if isinstance(self._given, WordVectors) else digest_of(user_path(self._given))
        if not isinstance(self._given, WordVectors) and _stamp(self._given) != self._stamp:
            raise UserError(f"{self._given}: was changed after its vectors were read; start again")
        return digest_of_parts([json.dumps(self._choices), given])

    @cached_property
    def _content(self) -> str:
        """Hash of the captions' vectors: whatever changes a degree changes them."""
        return digest_of_parts([np.asarray(self._vectors, "<f4")])

    def options(self) -> Mapping[str, Any]:
        """The choice of references, and the hash of the captions' vectors."""
        return {**super().options(), "vectors": self._content}


def _stamp(path: Path | str) -> tuple[int, int, int] | None:
    """Inode, size and time of a file, which change when it is replaced or written to; None where there is none."""
    try:
        about = user_path(path).stat()
    except (OSError, ValueError):
        return None
    return about.st_ino, about.st_size, about.st_mtime_ns


def _among(words: frozenset[str]) -> Callable[[Sequence[str]], list[bool]]:
    return lambda tokens: [token in words for token in tokens]


def _embedded(tokens: list[list[str]], weights: list[list[float]], words: WordVectors) -> NDArray[np.float32]:
    """(captions, dimension) normalised sums of weighted vectors."""
    from scipy import sparse

    places = [
        (caption, words.row[token], weight)
        for caption, (some, heavy) in enumerate(zip(tokens, weights, strict=True))
        for token, weight in zip(some, heavy, strict=True)
        if token in words.row
    ]
    rows, columns, values = zip(*places, strict=True) if places else ((), (), ())
    bags = sparse.csr_array(
        (np.array(values, np.float32), (np.array(rows, np.int64), np.array(columns, np.int64))),
        shape=(len(tokens), len(words.row)),
    )
    return unit_rows(np.asarray(bags @ words.table, np.float32))
