"""Properties of an index that a searcher remembers: they are slow to find out and hardly change."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import islice

from rungwise.index._index import Index
from rungwise.index.filters import OWN
from rungwise.index.query import frequent_words
from rungwise.index.search._fusion import Rarity
from rungwise.index.stores import WORDS, Record

_ROWS_LOOKED_AT = 1000


class StateCache:
    """Properties of an index, each read when it is first asked for.

    The index may have changed since; for what this is used, that does no harm.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._every_column: frozenset[str] | None = None

    @cached_property
    def rarity(self) -> Rarity:
        """Rarity of words in captions and columns."""
        texts = (record.get(WORDS) for _, record in self._index.picture_store.records())
        return Rarity(text for text in texts if isinstance(text, str) and text)

    @cached_property
    def frequent_words(self) -> tuple[str, ...]:
        """Words of the captions, the most frequent first."""
        return frequent_words(self._index.captions())

    @property
    def columns(self) -> frozenset[str]:
        """Columns of the first pictures, or of all once those were looked through."""
        return self._first_columns if self._every_column is None else self._every_column

    @property
    def all_columns(self) -> frozenset[str]:
        """Columns of all pictures, which are looked through."""
        if self._every_column is None:
            self._every_column = _columns_of(self._index.picture_store.records())
        return self._every_column

    @cached_property
    def _first_columns(self) -> frozenset[str]:
        return _columns_of(islice(self._index.picture_store.records(), _ROWS_LOOKED_AT))


def _columns_of(records: Iterable[tuple[str, Record]]) -> frozenset[str]:
    return frozenset(name for _, record in records for name in record if not name.startswith(OWN))
