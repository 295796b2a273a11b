"""Search in Milvus: its approximate index with exact scores, and every row compared.

A walk through a graph of near neighbours (HNSW) loses its way where few rows pass a filter. Milvus itself compares all
rows that pass where these are less than 7 % of a segment. So rows are looked through in parts of about that size
(:func:`parts_of`) where a filter lets through up to a quarter of them, or a number of rows that is soon compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rungwise.index.stores._approximation import Approximation
from rungwise.index.stores._base import Metric, Side, Vectors
from rungwise.index.stores._candidates import EngineCandidates, exact_scores
from rungwise.index.stores._engine_rows import ID, RECORD, SEAL_OF_RECORD, SEAL_OF_VECTOR, SEQ, VECTOR, from_engine
from rungwise.index.stores._scan import compare_all
from rungwise.index.stores.milvus._filtered_rows import FilteredRows
from rungwise.similarity import Similarity

BYTES_AT_ONCE = 16 << 20
"""Bytes of vectors in one request or answer."""
_MORE = 16
"""Rows beyond k that are fetched at first, which nearly always shows that no equal score was cut off."""
_MOST, _MOST_EF = 16_384, 32_768
"""The largest k and ef that Milvus takes."""
_COMPARED_SHARE, _LOSING_SHARE = 0.06, 0.25
"""Share of rows up to which Milvus compares all that pass a filter, and share from which on its graph finds them."""
_ROUNDING = 4e-6
"""Largest difference of the engine's scores of vectors of length 1 from exact ones."""

Best = tuple[tuple[str, ...], Vectors]
"""Ids and scores of what was found for a query, best first."""


@dataclass(frozen=True)
class _Hits:
    """Rows that Milvus found for one query.

    Attributes:
        candidates: Rows that fulfil the filter.
        asked: Number of rows that Milvus found in all.
        reached: The engine's score of the last one.
        longest: Length of the longest vector among the candidates.
    """

    candidates: EngineCandidates
    asked: int
    reached: float
    longest: float


def near(rows: FilteredRows, queries: Vectors, k: int, settings: Approximation, *, cosine: bool) -> list[Best | None]:
    """The k best for each of (queries, D) by the approximate index; None where only :func:`compared` can tell.

    ``cosine`` compares by the cosine, else by the inner product.
    """
    if k + _MORE > _MOST or (cosine and not rows.kept.unit):
        return [None] * len(queries)
    found: list[Best | None] = []
    at_once = max(1, BYTES_AT_ONCE // (4 * rows.kept.dimension * (k + _MORE)))
    for start in range(0, len(queries), at_once):
        some = queries[start : start + at_once]
        lengths = np.linalg.norm(some.astype(np.float64), axis=1, keepdims=True)
        sought = np.divide(some, lengths, out=np.zeros_like(some), where=lengths > 0) if cosine else some
        for query, hits in zip(sought, _asked(rows, sought, k + _MORE, settings, cosine=cosine), strict=True):
            found.append(_best(rows, query, k, hits, settings, cosine=cosine) if query.any() else None)
    return found


def compared(
    rows: FilteredRows, queries: Vectors, k: int, similarity: Similarity, side: Side, metric: Metric | None
) -> list[Best]:
    """The k best for each query by comparing every row, whose vectors are fetched block by block."""
    streamed = rows.streamed()
    positions, scores = compare_all(streamed, queries, k, similarity, side, metric)
    return [(streamed.ids_at(places), found) for places, found in zip(positions, scores, strict=True)]


def parts_of(rows: FilteredRows, settings: Approximation) -> int:
    """Number of parts in which rows are looked through, so that Milvus compares all rows of each that pass the filter.

    Up to ``settings.flat`` rows that pass are always compared.
    """
    if rows.all:
        return 1
    passing, of = rows.share
    share = passing / max(1, of)
    return max(1, math.ceil(share / _COMPARED_SHARE)) if share <= _LOSING_SHARE or passing <= settings.flat else 1


def _best(
    rows: FilteredRows, query: Vectors, k: int, hits: _Hits, settings: Approximation, *, cosine: bool
) -> Best | None:
    """The k best of what was found, and of more of it until no equal score can have been cut off."""
    wanted = k + _MORE
    while True:
        if hits.asked < wanted:  # the graph led no further, or there are no more rows
            if hits.asked < min(wanted, rows.kept.counted(rows.only.text)):
                return None
            break
        longest = float(np.linalg.norm(query)) * hits.longest
        if hits.candidates.whole(k, frozenset(), hits.reached + _ROUNDING * max(longest, 1e-30)):
            break
        if wanted == _MOST:
            return None
        wanted = min(_MOST, wanted * 4)
        (hits,) = _asked(rows, query[None], wanted, settings, cosine=cosine)
    keys, scores = hits.candidates.best(k, frozenset())
    return tuple(map(from_engine, keys)), scores


def _asked(rows: FilteredRows, queries: Vectors, wanted: int, settings: Approximation, *, cosine: bool) -> list[_Hits]:
    """Rows that Milvus finds, with exact scores, without those that turn out not to fulfil the filter."""
    kept = rows.kept
    names = [SEQ, VECTOR, SEAL_OF_VECTOR, *([] if rows.whole else [RECORD, SEAL_OF_RECORD])]
    ef = min(_MOST_EF, max(settings.ef, wanted))
    answers = []
    for query, hits in zip(
        queries, kept.nearest(queries, wanted, rows.only.text, names, ef, parts_of(rows, settings)), strict=True
    ):
        found = [row for row, _ in hits]
        reached = min((score for _, score in hits), default=0.0)
        if not rows.whole:
            pairs = zip(found, kept.parsed(found), strict=True)
            found = [row for row, record in pairs if rows.holds(from_engine(row[ID]), record)]
        vectors = kept.vectors(found)
        longest = float(np.linalg.norm(vectors, axis=1).max(initial=0))
        order = np.array([row[SEQ] for row in found], np.int64)
        scores = exact_scores(vectors, query, cosine=cosine)
        answers.append(_Hits(EngineCandidates([row[ID] for row in found], order, scores), len(hits), reached, longest))
    return answers
