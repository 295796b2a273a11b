"""The rows of a Milvus collection that fulfil a filter.

Milvus is asked for at least those rows; where its expression lets through more, their records are checked here (see
:mod:`rungwise.index.stores.milvus._filters`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rungwise.index.filters import Both, Where
from rungwise.index.stores._base import Record
from rungwise.index.stores._engine_rows import ID, RECORD, SEAL_OF_RECORD, SEQ, TEXT, from_engine
from rungwise.index.stores.milvus._collection import KEYS_AT_ONCE, ROWS_AT_ONCE, Collection, StreamedCollection
from rungwise.index.stores.milvus._filters import Filter, both, compiled, either, literal, without
from rungwise.index.stores.milvus._order import first_places, in_order, last_places
from rungwise.index.stores.milvus._rows import COLUMNS, CUT

_EVERYTHING = Filter(True, True)
_FIRST = 8192
"""Number of rows that are listed at first: enough for those who only look what an index holds."""


class FilteredRows:
    """Rows of a collection that fulfil a filter; all where it is None.

    Attributes:
        only: Filter that Milvus is asked for.
    """

    def __init__(self, kept: Collection, where: Where | None) -> None:
        self.kept, self._where = kept, where
        self._conditions = _EVERYTHING
        if where is not None and where.conditions:
            found = compiled(Both(where.conditions), kept.description.fields)
            cut = self._or_cut
            self._conditions = Filter(either(found.text, cut), found.whole and cut is False)
        left_out = True if where is None else without(where.without)
        self.only = Filter(both(self._conditions.text, left_out), self._conditions.whole)

    @property
    def whole(self) -> bool:
        """Whether Milvus finds these rows and no others."""
        return self.only.whole

    @property
    def none(self) -> bool:
        """Whether no row can fulfil the filter."""
        return self.only.text is False

    @cached_property
    def share(self) -> tuple[int, int]:
        """Number of rows that fulfil the conditions, ids that are left out among them, and number of all rows."""
        return self.kept.passing(self._conditions.text), self.kept.passing(True)

    @property
    def number(self) -> int:
        """Number of rows that Milvus finds, counted once until somebody writes."""
        return 0 if self.none else self.kept.passing(self.only.text)

    @property
    def all(self) -> bool:
        """Whether the filter has no condition."""
        return self._conditions.text is True

    def with_words(self, words: Iterable[str], *, every: bool = False) -> FilteredRows:
        """Rows of these whose text holds one of the words, or every one."""
        found = copy(self)
        found.only = Filter(both(self.only.text, self._holding(words, every=every)), self.whole)
        return found

    def bearers(self, word: str) -> int:
        """Number of rows that hold a word, whether they fulfil the filter or not."""
        return self.kept.passing(self._holding([word], every=False))

    def _holding(self, words: Iterable[str], *, every: bool) -> str | bool:
        values = ", ".join(map(literal, words))
        return either(f'json_contains_{"all" if every else "any"}({COLUMNS}["{TEXT}"], [{values}])', self._or_cut)

    def holds(self, id_: str, record: Record) -> bool:
        """Whether a row that Milvus found fulfils the filter."""
        return self.whole or self._where is None or self._where.holds(id_, record)

    def count(self) -> int:
        """Number of rows that fulfil the filter."""
        if self.none:
            return 0
        return self.kept.counted(self.only.text) if self.whole else sum(1 for _ in self.records())

    def places(self) -> NDArray[np.int64]:
        """Places of the rows that Milvus finds, in their order."""
        return in_order(self.kept, self.only.text)

    def records(self) -> Iterator[tuple[str, Record]]:
        """Ids and records, in the order of rows; the first ones come before all are found."""
        first = first_places(self.kept, self.only.text, _FIRST)
        yield from self._each(first)
        if len(first) >= _FIRST:
            yield from self._each(in_order(self.kept, both(self.only.text, f"{SEQ} > {first[-1]}")))

    def newest(self, count: int, offset: int) -> list[str]:
        """Ids of at most ``count`` rows that were written last, the last first, after ``offset`` passed over."""
        found: list[str] = []
        earlier: str | bool = True
        wanted = offset + count
        while len(found) < wanted:
            places = last_places(self.kept, both(self.only.text, earlier), max(wanted - len(found), ROWS_AT_ONCE))
            if not len(places):
                break
            earlier = f"{SEQ} < {places[0]}"
            # Where each place is a row that is asked for, those before the offset need not be read.
            passed = min(offset, len(places)) if self.whole and not found else 0
            found += [""] * passed
            for end in range(len(places) - passed, 0, -KEYS_AT_ONCE):
                found += [one for one, _ in self.taken(places[max(0, end - KEYS_AT_ONCE) : end])][::-1]
                if len(found) >= wanted:
                    break
        return found[offset:wanted]

    def _each(self, places: NDArray[np.int64]) -> Iterator[tuple[str, Record]]:
        for start in range(0, len(places), KEYS_AT_ONCE):
            yield from self.taken(places[start : start + KEYS_AT_ONCE])

    def taken(self, places: NDArray[np.int64]) -> list[tuple[str, Record]]:
        """Ids and records of the rows at rising places that fulfil the filter."""
        rows = self.kept.at(places, [RECORD, SEAL_OF_RECORD])
        pairs = zip((from_engine(row[ID]) for row in rows), self.kept.parsed(rows), strict=True)
        return [pair for pair in pairs if self.holds(*pair)]

    def streamed(self) -> StreamedCollection:
        """Vectors of the rows, fetched block by block."""
        if self.whole:
            return StreamedCollection(self.kept, self.places())
        fit = {one for one, _ in self.records()}
        listed = sorted((row[SEQ], row[ID]) for row in self.kept.every(self.only.text, [ID, SEQ]))
        return StreamedCollection(
            self.kept, np.array([seq for seq, key in listed if from_engine(key) in fit], np.int64)
        )

    @property
    def _or_cut(self) -> str | bool:
        """Expression for rows whose columns are too large for the engine; False where there are none."""
        return f"{CUT} == true" if self.kept.has_cut else False
