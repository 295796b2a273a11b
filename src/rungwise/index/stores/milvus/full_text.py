"""Full text in Milvus, which counts the rows that hold a word but does not rank them.

All rows with one of the words are ranked here while they are few. Words that many rows hold say little, so where they
are many, only rows that hold the rarer words are looked at, and those that hold several of the frequent ones together.
The rarity of a word is counted among all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, takewhile

from rungwise.index.stores._base import WORDS, WordHits
from rungwise.index.stores._bm25 import best_by_words, word_set, words_of
from rungwise.index.stores._engine_rows import ID, RECORD, SEAL_OF_RECORD, SEQ, from_engine
from rungwise.index.stores.milvus._filtered_rows import FilteredRows

__all__ = ["LOOKED_AT", "best"]

LOOKED_AT = 2048
"""Number of rows, about, whose texts are ranked for a query."""
_NAMES = [ID, SEQ, RECORD, SEAL_OF_RECORD]


def best(rows: FilteredRows, words: str, k: int) -> WordHits:
    """The k rows that hold words, best first by BM25."""
    bearers = {word: count for word in sorted(set(words_of(words))) if (count := rows.bearers(word))}
    texts = _to_rank(rows, sorted(bearers, key=lambda word: bearers[word]), bearers, k) if bearers else {}
    in_order = {one: text for one, (_, text) in sorted(texts.items(), key=lambda pair: pair[1][0])}
    ids, scores = best_by_words(words, in_order, k, bearers, rows.kept.passing(True))
    return WordHits((ids,), (scores,), tuple(word_set(in_order[one]) for one in ids))


def _to_rank(
    rows: FilteredRows, words: Sequence[str], bearers: Mapping[str, int], k: int
) -> dict[str, tuple[int, str]]:
    """Places and texts of rows that may be among the k best, by id.

    ``words`` are the words of the query, the rarest first; ``bearers`` are numbers of rows that hold each.
    """
    if rows.none:
        return {}
    if min(rows.number, sum(bearers.values())) <= LOOKED_AT:
        return _texts(rows.with_words(words))
    rare = len(list(takewhile(lambda many: many <= LOOKED_AT, accumulate(bearers[word] for word in words))))
    found = _texts(rows.with_words(words[:rare])) if rare else {}
    if len(found) >= k:
        return found
    frequent = words[rare:]
    wider: FilteredRows | None = None
    for many in range(1, len(frequent) + 1):
        together = rows.with_words(frequent[:many], every=True)
        if together.number <= LOOKED_AT:
            found |= _texts(together)
            break
        wider = together
    if wider is not None and len(found) < k:
        found |= _texts(wider, LOOKED_AT)
    return found


def _texts(rows: FilteredRows, most: int | None = None) -> dict[str, tuple[int, str]]:
    """Places and texts of rows, by id; with ``most``, of a sample of no more rows."""
    kept = rows.kept
    if most is None:
        found = list(kept.every(rows.only.text, _NAMES))
    else:
        found = kept.drawn(rows.only.text, rows.number, most, _NAMES)
    pairs = zip(found, kept.parsed(found), strict=True)
    return {
        one: (row[SEQ], record[WORDS])
        for row, record in pairs
        if isinstance(record.get(WORDS), str) and rows.holds(one := from_engine(row[ID]), record)
    }
