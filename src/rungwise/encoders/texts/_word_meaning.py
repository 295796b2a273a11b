"""Vectors of single words under a sentence model, for finding words of similar meaning."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rungwise.language.sentence_models import PACKAGED_MODEL

if TYPE_CHECKING:
    from rungwise.encoders._sides import TextSide


class WordMeanings:
    """A sentence model that reads words; it is loaded when first needed.

    Args:
        model: Model as in :class:`rungwise.encoders.texts.TransformerConfig`.
        cache: Folder where vectors of known words are cached; the default one if None.
    """

    def __init__(self, model: str = PACKAGED_MODEL, cache: Path | None = None) -> None:
        self.model = model
        self._cache = cache

    @classmethod
    def installed(cls) -> WordMeanings | None:
        """Use the sentence model that is a package, if it is installed; nothing is loaded yet."""
        packages = ("sentence_transformers", PACKAGED_MODEL.replace("-", "_"))
        return cls() if all(map(importlib.util.find_spec, packages)) else None

    def encode(self, words: Sequence[str]) -> NDArray[np.float32]:
        """(n, D) vectors of words, without a cache."""
        from rungwise.encoders.texts._text_rows import encode_texts

        return encode_texts(self._side, words)

    def encode_known(self, words: Sequence[str]) -> NDArray[np.float32]:
        """(n, D) vectors of many words, cached on disk."""
        from rungwise.encoders.texts._text_rows import text_rows

        rows = text_rows(self._side, words, self._cache)
        return np.asarray(rows.take(np.arange(len(rows))), np.float32)

    @cached_property
    def _side(self) -> TextSide:
        from rungwise.encoders.texts._transformer import TransformerConfig

        return TransformerConfig(model=self.model).build((), 0)
