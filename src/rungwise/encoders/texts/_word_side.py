"""The base of text sides over a vocabulary of words."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property

from tokenizers import Tokenizer

from rungwise.encoders._sides import TEXT_ENCODER, TOKENIZER, TextSide
from rungwise.encoders.texts._word_table import WordCoverage
from rungwise.encoders.vocabulary import tokenise, unknown_words, whole_words


class WordSide(TextSide):
    """A text side that cuts texts into the words of a vocabulary.

    Args:
        tokenizer: The vocabulary.

    Attributes:
        coverage: Coverage of the vocabulary by the file of word vectors; None without one.
    """

    coverage: WordCoverage | None = None

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self.tokenizer = tokenizer

    def tokenise(self, texts: Sequence[str]) -> list[list[int]]:
        """Token numbers of each text."""
        return tokenise(self.tokenizer, texts)

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """The words of a text that the vocabulary lacks."""
        return unknown_words(self.tokenizer, text)

    @cached_property
    def known_words(self) -> Collection[str]:
        """Whole words of the vocabulary."""
        return whole_words(self.tokenizer)

    def remarks(self) -> Sequence[str]:
        """The number of words that the file of word vectors held."""
        return () if self.coverage is None else (str(self.coverage),)

    def identity(self) -> str:
        """The vocabulary, as text."""
        return str(self.tokenizer.to_str())

    def files(self) -> Mapping[str, str]:
        """The vocabulary, and its coverage by a file of word vectors, as files."""
        texts = {TOKENIZER: self.tokenizer.to_str(pretty=True)}
        if self.coverage is not None:
            texts[TEXT_ENCODER] = json.dumps(asdict(self.coverage), indent=2)
        return texts
