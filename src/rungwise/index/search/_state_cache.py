"""Properties of an index that a searcher remembers: they are slow to find out and hardly change."""

from __future__ import annotations

from functools import cached_property

from rungwise.index._index import Index
from rungwise.index.query import Rarity, frequent_words
from rungwise.index.stores import WORDS


class StateCache:
    """Properties of an index, each read when it is first asked for.

    The index may have changed since; for what this is used, that does no harm.
    """

    def __init__(self, index: Index) -> None:
        self._index = index

    @cached_property
    def rarity(self) -> Rarity:
        """Rarity of words in captions and columns."""
        texts = (record.get(WORDS) for _, record in self._index.picture_store.records())
        return Rarity(text for text in texts if isinstance(text, str) and text)

    @cached_property
    def frequent_words(self) -> tuple[str, ...]:
        """Words of the captions, the most frequent first."""
        return frequent_words(self._index.captions())
