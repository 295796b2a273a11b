"""Search by LanceDB's engine: what it finds has exact scores, and equal ones stand in the order of rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rungwise.index.stores._approximation import Approximation
from rungwise.index.stores._base import Vectors
from rungwise.index.stores._candidates import EngineCandidates, exact_scores
from rungwise.index.stores._engine_rows import ID, LENGTH, SEAL_OF_VECTOR, SEQ, TEXT, VECTOR
from rungwise.index.stores.lance._filters import Compiled, all_of
from rungwise.index.stores.lance._table_rows import EngineFilter, TableRows
from rungwise.index.stores.lance.mapped import UNIT

if TYPE_CHECKING:
    import pyarrow as pa

COMPARED = 4096
"""Candidates of one search that are compared by their whole vectors, which lie anywhere on the disk; or k, if more."""
_MORE = 16
"""Rows beyond k that are fetched at first, which nearly always shows that no equal score was cut off."""
_ROUNDING, _ROUNDING_OF_HALVES = 4e-6, 2e-3
"""Largest difference of the engine's scores of vectors of length 1 from exact ones."""


@dataclass(frozen=True)
class EngineQuery:
    """One query as the engine is asked.

    Attributes:
        vector: (D,) vector, not of zeros; brought to length 1 for cosines.
        k: Number of rows that are wanted.
        filter: Filter of the rows that may be found.
        cosine: Whether rows are ranked by the cosine; else by the inner product.
        distance: The engine's own comparison, by which it chooses candidates.
    """

    vector: Vectors
    k: int
    filter: EngineFilter
    cosine: bool
    distance: Literal["dot", "cosine"]


class EngineSearch:
    """Searches in the rows of one version of a table."""

    def __init__(self, rows: TableRows) -> None:
        self._rows = rows

    def query(self, vector: Vectors, k: int, only: EngineFilter, *, cosine: bool) -> EngineQuery:
        """The query of a (D,) vector that is not all zeros."""
        if not cosine:
            return EngineQuery(vector, k, only, cosine, "dot")
        vector = vector / np.float32(np.linalg.norm(vector.astype(np.float64)))
        return EngineQuery(vector, k, only, cosine, "dot" if self._lengths.unit else "cosine")

    def near(self, query: EngineQuery, settings: Approximation, *, graph: bool) -> EngineCandidates | None:
        """Candidates of the approximate index, a graph or codes; None if it finds fewer rows than there may be."""
        wanted = query.k + len(query.filter.without)
        refine = max(1, min(settings.refine, COMPARED // wanted))
        asked = self._asked(query, wanted).refine_factor(refine).nprobes(settings.probes)
        found = (asked.ef(max(settings.ef, wanted * refine)) if graph else asked).to_arrow()
        return self._scored(found, query) if found.num_rows == wanted else None

    def compared(self, query: EngineQuery) -> EngineCandidates:
        """Candidates among all rows: at least the k best, and whatever is equal to the last of them."""
        rows, without = len(self._rows), query.filter.without
        wanted = min(rows, query.k + len(without) + _MORE)
        rounding = _ROUNDING_OF_HALVES if self._rows.description.half else _ROUNDING
        if query.cosine:
            rounding += UNIT if query.distance == "dot" else 0
        else:
            rounding *= float(np.linalg.norm(query.vector)) * self._lengths.longest
        while True:
            found = self._asked(query, wanted).bypass_vector_index().to_arrow()
            hits = self._scored(found, query)
            if query.distance == "cosine" and self._lengths.zeros:
                hits = hits.and_those(self._without_direction(query.filter.only))
            reached = 1 - found["_distance"].to_numpy()
            if found.num_rows < wanted or wanted == rows:
                return hits
            if hits.whole(query.k, without, float(np.nanmin(reached)) + rounding):
                return hits
            wanted = min(rows, wanted * 4)

    def all_zero(self, only: Compiled) -> EngineCandidates:
        """Candidates of a query of zeros, which has the score 0 with all rows."""
        found = self._rows.of(only, [ID, SEQ])
        return EngineCandidates(found[ID].to_pylist(), found[SEQ].to_numpy(), np.zeros(found.num_rows, np.float32))

    def by_words(self, words: str, k: int, chosen: EngineFilter) -> tuple[list[str], Vectors, list[str]]:
        """Ids, in the engine's form, scores and words of the k rows that fit words best, by the engine's BM25.

        The words of a row are one text, with blanks between them.
        """
        from lancedb.query import MatchQuery

        find: Any = self._rows.table.search
        only, without = chosen.only, chosen.without
        if only is False or not words or not len(self._rows):
            return [], np.empty(0, np.float32), []
        wanted = k + len(without) + _MORE
        while True:
            query = find(MatchQuery(words, TEXT), query_type="fts").limit(wanted)  # type: ignore[call-arg]
            if not isinstance(only, bool):
                query = query.where(only)
            found = query.select([ID, SEQ, TEXT, "_score"]).to_arrow()
            scores = found["_score"].to_numpy().astype(np.float32)
            hits = EngineCandidates(found[ID].to_pylist(), found[SEQ].to_numpy(), scores)
            if len(scores) < wanted or hits.whole(k, without, float(scores.min())):
                keys, best = hits.best(k, without)
                texts = dict(zip(hits.ids, found[TEXT].to_pylist(), strict=True))
                return keys, best, [texts[key] for key in keys]
            wanted *= 4

    @cached_property
    def _lengths(self) -> _Lengths:
        found = self._rows.of(True, [LENGTH])[LENGTH].to_numpy()
        within = np.abs(found[found > 0] - 1) <= UNIT
        return _Lengths(bool(within.all()), float(found.max(initial=0)), bool((found == 0).any()))

    def _asked(self, query: EngineQuery, wanted: int) -> Any:
        search: Any = self._rows.table.search(query.vector, vector_column_name=VECTOR)
        asked = search.distance_type(query.distance).limit(wanted)
        asked = asked.select([ID, SEQ, VECTOR, SEAL_OF_VECTOR, "_distance"])
        return asked if isinstance(query.filter.only, bool) else asked.where(query.filter.only)

    def _scored(self, found: pa.Table, query: EngineQuery) -> EngineCandidates:
        """Found rows with exact scores."""
        scores = exact_scores(self._rows.vectors(found), query.vector, cosine=query.cosine)
        return EngineCandidates(found[ID].to_pylist(), found[SEQ].to_numpy(), scores)

    def _without_direction(self, only: Compiled) -> EngineCandidates:
        """Rows of zeros, which the engine cannot compare by cosine; theirs is 0."""
        from lancedb.expr import col, lit

        return self.all_zero(all_of([only, col(LENGTH) == lit(0.0)]))


@dataclass(frozen=True)
class _Lengths:
    """Lengths of a table's vectors: whether each is 1 or 0, the longest, and whether there are zeros."""

    unit: bool
    longest: float
    zeros: bool
