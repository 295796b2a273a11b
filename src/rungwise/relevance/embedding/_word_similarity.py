"""Likeness of two words by their vectors, which lets scene graphs see that a pup is nearly a dog."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, user_path
from rungwise.core.disk import digest_of
from rungwise.core.output import short_repr
from rungwise.language import WordVectors, load_word_vectors
from rungwise.language.sentence_models import PACKAGED_MODEL, load_sentence_model
from rungwise.similarity import unit_rows

LEAST_OF_SENTENCES = 0.4
"""Lowest cosine of words that are alike by the packaged model: on caption pairs that people rated (CxC), correlations
are within .01 of the best from .2 to .5, and rows of alike facts are thirty times shorter than from .2.
"""
LEAST_OF_WORDS = 0.6
"""Lowest cosine of words that are alike by GloVe's vectors of 50 dimensions."""


@dataclass(frozen=True)
class WordSimilarity:
    """Vectors of words, whose cosine is their likeness.

    Attributes:
        vectors: Words to (words, dimension) float32 vectors of length 1, or 0 where a word has none.
        least: Cosine that becomes a degree of 0, below 1; a cosine of 1 becomes 1.
        fingerprint: Hash of what decides the vectors.
    """

    vectors: Callable[[Sequence[str]], NDArray[np.float32]]
    least: float
    fingerprint: str

    __repr__ = short_repr

    def __post_init__(self) -> None:
        _check_least(self.least)


def _check_least(least: float) -> None:
    if not -1 <= least < 1:
        raise UserError(f"least must be a cosine below 1, got {least}")


def by_word_vectors(vectors: Path | str | WordVectors, *, least: float = LEAST_OF_WORDS) -> WordSimilarity:
    """Likeness by word vectors; a term of several words has the sum of theirs.

    ``vectors`` is a file in GloVe's or word2vec's layout, or vectors that are loaded.
    """
    _check_least(least)  # before a file is read
    fingerprint = vectors.fingerprint if isinstance(vectors, WordVectors) else digest_of(user_path(vectors))

    def look_up(words: Sequence[str]) -> NDArray[np.float32]:
        parts = [word.split() for word in words]
        known = vectors
        if not isinstance(known, WordVectors):
            known = load_word_vectors(known, {part for some in parts for part in some})
        table = np.zeros((len(words), known.dimension), np.float32)
        for place, some in enumerate(parts):
            rows = [known.row[part] for part in some if part in known.row]
            if rows:
                table[place] = known.table[rows].sum(axis=0)
        return unit_rows(table)

    return WordSimilarity(look_up, least, fingerprint)


def by_sentences(
    model: Path | str = PACKAGED_MODEL, *, least: float = LEAST_OF_SENTENCES, device: str | None = None
) -> WordSimilarity:
    """Likeness by a sentence model, which knows any word; ``model`` and ``device`` are those of :class:`BiEncoder`."""
    from rungwise.relevance.embedding.bi_encoder import BiEncoder

    _check_least(least)  # before a model is loaded
    loaded = load_sentence_model(model, device)

    def encode(words: Sequence[str]) -> NDArray[np.float32]:
        return BiEncoder(words, np.arange(len(words)), loaded).vectors

    return WordSimilarity(encode, least, BiEncoder((), (), loaded).fingerprint)
