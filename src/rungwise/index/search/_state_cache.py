"""Properties of an index that a searcher remembers: they are slow to find out and hardly change."""

from __future__ import annotations

from functools import cached_property

from rungwise.index._index import Index
from rungwise.index.query import Rarity, frequent_words
from rungwise.index.stores import WORDS, words_of

_WORDS_HELD = 8192
"""Number of words of which it is remembered whether the collection has them."""


class StateCache:
    """Properties of an index, each read when it is first asked for.

    The index may have changed since; for what this is used, that does no harm.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._has_word: dict[str, bool] = {}

    @cached_property
    def rarity(self) -> Rarity:
        """Rarity of words in captions and columns."""
        texts = (record.get(WORDS) for _, record in self._index.picture_store.records())
        return Rarity(text for text in texts if isinstance(text, str) and text)

    def has_word(self, word: str) -> bool:
        """Whether a caption or a column has one of the words of a text; the answers for most words are remembered."""
        found = self._has_word.get(word)
        if found is None:
            found = any(one in self.rarity for one in words_of(word))
            found = found or bool(self._index.picture_store.find_words(word, 1).ids[0])
            if len(self._has_word) >= _WORDS_HELD:
                self._has_word.clear()
            self._has_word[word] = found
        return found

    @cached_property
    def frequent_words(self) -> tuple[str, ...]:
        """Words of the captions, the most frequent first."""
        return frequent_words(self._index.captions())
