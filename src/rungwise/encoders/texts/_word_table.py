"""Tables of word vectors that start from a file such as GloVe's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from rungwise.core import STRICT, UserError
from rungwise.language import WordVectors

Missing = Literal["uniform", "mean"]


@dataclass(frozen=True)
class WordCoverage:
    """The share of a vocabulary that a file of word vectors covers.

    Attributes:
        file: Name of the file.
        words: Number of words in the vocabulary, without special tokens.
        found: Number of these words in the file.

    >>> print(WordCoverage("glove.txt", words=1200, found=900))
    glove.txt: vectors for 900 of 1,200 words (75.0 %)
    """

    __pydantic_config__ = STRICT

    file: str
    words: int
    found: int

    def __str__(self) -> str:
        share = 100 * self.found / max(1, self.words)
        return f"{self.file}: vectors for {self.found:,} of {self.words:,} words ({share:.1f} %)"


def initialise(
    table: nn.Embedding,
    vocabulary: Mapping[str, int],
    vectors: WordVectors,
    missing: Missing = "uniform",
    special: Collection[str] = (),
) -> WordCoverage:
    """Fill a table with the vectors of its words.

    Args:
        table: The table; where the file lacks a word, its row is unchanged.
        vocabulary: The row of each word.
        vectors: Vectors of the file.
        missing: ``"mean"`` gives missing words the mean of the vectors that were found.
        special: Special tokens, which are not counted.

    Raises:
        UserError: If the file holds none of the words, or vectors of another length.

    >>> import numpy as np
    >>> table = nn.Embedding(2, 3)
    >>> initialise(table, {"dog": 0, "zyx": 1}, WordVectors({"dog": 0}, np.eye(1, 3, dtype=np.float32)), "mean")
    WordCoverage(file='word vectors', words=2, found=1)
    >>> table.weight.tolist()
    [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    """
    if vectors.dimension != table.embedding_dim:
        raise UserError(
            f"{vectors.name}: vectors of {vectors.dimension} numbers, where word_dimension is {table.embedding_dim}"
        )
    coverage = covered([word for word in vocabulary if word not in special], vectors)
    known = [word for word in vocabulary if word in vectors.row]
    rows = torch.from_numpy(vectors.table[[vectors.row[word] for word in known]])
    with torch.no_grad():
        if missing == "mean":
            table.weight[:] = rows.mean(dim=0)
        table.weight[[vocabulary[word] for word in known]] = rows
    return coverage


def covered(words: Collection[str], vectors: WordVectors) -> WordCoverage:
    """Count the words, each given once, that a file of word vectors holds."""
    found = sum(word in vectors.row for word in words)
    if not found:
        raise UserError(
            f"{vectors.name}: holds none of the {len(words):,} words of the captions; give word vectors of their"
            " language"
        )
    return WordCoverage(vectors.name, len(words), found)
