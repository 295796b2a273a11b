"""One version of a LanceDB table, and the search in it: exact scores, and equal ones in the order of rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rungwise.index.filters import Both, Where
from rungwise.index.stores._approximation import HELD_BYTES, Approximation, partitions_of, usual
from rungwise.index.stores._base import Metric, Record, Row, Vectors
from rungwise.index.stores._candidates import EngineCandidates, exact_scores
from rungwise.index.stores._engine_rows import (
    ID,
    LENGTH,
    RECORD,
    SEAL_OF_RECORD,
    SEAL_OF_VECTOR,
    SEQ,
    TEXT,
    VECTOR,
    from_engine,
    seals,
    to_engine,
)
from rungwise.index.stores._scan import compare_all
from rungwise.index.stores._vector_files import damaged
from rungwise.index.stores.lance._description import described
from rungwise.index.stores.lance._filters import Compiled, all_of, compiled
from rungwise.index.stores.lance._memory import Held, StreamedTable
from rungwise.index.stores.lance._rows import vectors_of

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb.table import Table

_MORE = 16
"""Rows beyond k that are fetched at first, which nearly always shows that no equal score was cut off."""
_MANY = 4
"""Queries from which on they are compared with the rows in one pass, block by block."""
_ASKED = 1000
"""Ids left out by a filter up to which they are left out here, and more of them by the engine."""
_UNIT = 1e-4
"""Largest distance of a vector's length from 1 at which its inner product is its cosine for choosing candidates."""
_ROUNDING, _ROUNDING_OF_HALVES = 4e-6, 2e-3
"""Largest difference of the engine's scores of vectors of length 1 from exact ones."""


class LanceSnapshot:
    """One version of a table, which never changes, and what has been learnt of it.

    Most rows of ``before``, an earlier version, are the same; ``label`` names the table in messages.

    Attributes:
        known: Rows in memory, of this version or an earlier one.
        description: Description of the table.
        approximation: Setting of its approximate index.
        approximate: Whether it has one.
        graph: Whether that is a graph; else it is made of codes.
        rows: Number of rows.
    """

    def __init__(self, table: Table, label: str, before: LanceSnapshot | None = None) -> None:
        self.table, self.label = table, label
        self.description, chosen = described(table, label)
        self.columns = frozenset(table.schema.names)
        self.rows = int(table.count_rows())
        kinds = [str(config.index_type) for config in table.list_indices() if config.columns == [VECTOR]]
        self.approximate, self.graph = bool(kinds), not kinds or "hnsw" in kinds[0].lower()
        self.approximation = chosen or usual(self.rows, graph=self.graph)
        # Pages of one search ask for the same filter again and again.
        self._passing = lru_cache(maxsize=64)(self._counted)
        self.known: Held | None = before.known if before is not None else None
        self._up_to_date = False
        self._holding = Lock()

    @property
    def dimension(self) -> int:
        """D, the length of a vector."""
        return self.description.dimension

    def with_approximation(self, settings: Approximation) -> LanceSnapshot:
        """The same version with another setting of the approximate index."""
        other = copy(self)
        other.approximation = settings
        return other

    def compiled(self, where: Where | None) -> Compiled:
        """Compile a filter without the ids that it leaves out."""
        return True if where is None else compiled(Both(where.conditions), self.columns)

    def chosen(self, where: Where | None) -> Compiled:
        """Compile a filter with the ids that it leaves out."""
        from lancedb.expr import col

        only = self.compiled(where)
        if where is None or not where.without or only is False:
            return only
        return all_of([only, ~col(ID).isin(sorted(map(to_engine, where.without)))])

    def count(self, where: Where) -> int:
        """Number of rows that fulfil a filter."""
        if not where.without:
            return self._passing(where)
        return int(self.rows_of(self.chosen(where), [SEQ]).num_rows)

    def in_order(self, where: Where | None) -> NDArray[np.int64]:
        """The engine's numbers of the rows that fulfil a filter, in order of rows."""
        found = self.rows_of(self.chosen(where), [SEQ])
        order = np.argsort(found[SEQ].to_numpy(), kind="stable")
        return np.asarray(found["_rowid"].to_numpy().astype(np.int64)[order])

    def all_ids(self) -> tuple[str, ...]:
        """Ids of all rows, in order."""
        found = self.rows_of(True, [ID, SEQ])
        return ids_of(found[ID].take(np.argsort(found[SEQ].to_numpy(), kind="stable")).to_pylist())

    def taken(self, rows: NDArray[np.int64], names: list[str]) -> pa.Table:
        """Columns of rows by the engine's numbers, in order of rows."""
        if not len(rows):
            return self.rows_of(False, [*names, SEQ])
        found = self.table.take_row_ids(rows.tolist()).select([*names, SEQ]).to_arrow().sort_by(SEQ)
        if found.num_rows != len(rows):
            raise damaged(self.label, f"{len(rows) - found.num_rows} rows are missing")
        return found

    def nearest(
        self, queries: Vectors, k: int, where: Where | None, metric: Metric | None, exact: bool
    ) -> list[tuple[list[str], Vectors]]:
        """Ids, in the engine's form, and scores of the k rows most alike to each of (queries, D)."""
        only, without = self._left(where)
        if only is False or not self.rows:
            return [([], np.empty(0, np.float32))] * len(queries)
        if self.in_memory or (len(queries) >= _MANY and (exact or not self.approximate)):
            rows = self._held if self.in_memory else StreamedTable(self, self.in_order(where))
            kept = self._held.kept(where, without) if self.in_memory else None
            positions, scores = compare_all(
                rows, queries, k, self.description.similarity, self.description.side, metric, kept
            )
            return [(rows.keys_at(places), found) for places, found in zip(positions, scores, strict=True)]
        return [self._nearest(query, k, where, only, without, metric, exact) for query in queries]

    @property
    def in_memory(self) -> bool:
        """Whether all vectors are held in memory and compared there."""
        return not self.approximate and 4 * self.rows * self.description.dimension <= HELD_BYTES

    def _nearest(
        self,
        query: Vectors,
        k: int,
        where: Where | None,
        only: Compiled,
        without: frozenset[str],
        metric: Metric | None,
        exact: bool,
    ) -> tuple[list[str], Vectors]:
        cosine = metric == "cosine"
        length = float(np.linalg.norm(query.astype(np.float64)))
        if not length:
            hits = self._all_zero(only)
        else:
            sought = (query / np.float32(length)) if cosine else query
            engine: Literal["dot", "cosine"] = "cosine" if cosine and not self._lengths.unit else "dot"
            near = self.approximate and not exact and engine == "dot" and self._worth_it(where)
            found = self._near(sought, k, where, only, without, cosine) if near else None
            hits = found or self._compared(sought, k, only, without, cosine, engine)
        ids, scores = hits.best(k, without)
        return ids, (self.description.similarity.of_metric(scores) if metric is None else scores)

    def rows_with(self, keys: list[str]) -> dict[str, Row]:
        """Rows by ids, which are in the engine's form."""
        from lancedb.expr import col

        rows: dict[str, Row] = {}
        names = [ID, VECTOR, RECORD, SEAL_OF_VECTOR, SEAL_OF_RECORD]
        for start in range(0, len(keys), _ASKED):
            found = self.table.search().where(col(ID).isin(keys[start : start + _ASKED])).select(names).to_arrow()
            whole = zip(found[ID].to_pylist(), self.vectors(found), self.records(found), strict=True)
            rows.update({key: Row(np.array(vector, np.float32), record) for key, vector, record in whole})
        return rows

    def by_words(self, words: str, k: int, where: Where | None) -> tuple[list[str], Vectors]:
        """Ids, in the engine's form, and scores of the k rows that fit words best, by the engine's BM25."""
        from lancedb.query import MatchQuery

        find: Any = self.table.search
        only, without = self._left(where)
        if only is False or not words or not self.rows:
            return [], np.empty(0, np.float32)
        wanted = k + len(without) + _MORE
        while True:
            query = find(MatchQuery(words, TEXT), query_type="fts").limit(wanted)  # type: ignore[call-arg]
            if not isinstance(only, bool):
                query = query.where(only)
            found = query.select([ID, SEQ, "_score"]).to_arrow()
            scores = found["_score"].to_numpy().astype(np.float32)
            hits = EngineCandidates(found[ID].to_pylist(), found[SEQ].to_numpy(), scores)
            if len(scores) < wanted or hits.whole(k, without, float(scores.min())):
                return hits.best(k, without)
            wanted *= 4

    def vectors(self, found: pa.Table) -> NDArray[Any]:
        """(rows, D) vectors of rows, compared with their checksums."""
        vectors = vectors_of(found[VECTOR], self.description.dimension)
        self._check(found, SEAL_OF_VECTOR, vectors)
        return vectors

    def records(self, found: pa.Table) -> list[Record]:
        """Records of rows, compared with their checksums."""
        texts = found[RECORD].to_pylist()
        self._check(found, SEAL_OF_RECORD, texts)
        return [json.loads(text) for text in texts]

    def _check(self, found: pa.Table, column: str, contents: Any) -> None:
        keys = found[ID].to_pylist()
        wrong = np.flatnonzero(seals(keys, contents) != found[column].to_numpy())
        if wrong.size:
            raise damaged(self.label, f"the row {keys[wrong[0]]!r} is not as it was written"[:200])

    def _counted(self, where: Where) -> int:
        only = self.compiled(where)
        if isinstance(only, bool):
            return self.rows if only else 0
        return int(self.rows_of(only, [SEQ]).num_rows)

    def rows_of(self, only: Compiled, names: list[str]) -> pa.Table:
        """Columns of the rows that a filter lets through, with the engine's numbers of them (``_rowid``)."""
        query = self.table.search().with_row_id(True).select(names)
        if only is False:
            return query.limit(1).to_arrow().slice(0, 0)
        return (query if only is True else query.where(only)).to_arrow()

    def _left(self, where: Where | None) -> tuple[Compiled, frozenset[str]]:
        """The filter for the engine, and the ids in its form that are to be left out of what it finds."""
        if where is None or len(where.without) > _ASKED:
            return self.chosen(where), frozenset()
        return self.compiled(where), frozenset(map(to_engine, where.without))

    @property
    def _held(self) -> Held:
        with self._holding:
            if self.known is None or not self._up_to_date:
                self.known, self._up_to_date = Held(self, self.known), True
            return self.known

    @cached_property
    def _lengths(self) -> _Lengths:
        found = self.rows_of(True, [LENGTH])[LENGTH].to_numpy()
        within = np.abs(found[found > 0] - 1) <= _UNIT
        return _Lengths(bool(within.all()), float(found.max(initial=0)), bool((found == 0).any()))

    def _worth_it(self, where: Where | None) -> bool:
        """Whether more rows pass a filter than are quickly compared; a walk through a graph may miss few ones."""
        if where is None or not where.conditions:
            return True
        return self._passing(Where(where.conditions)) > self.approximation.flat

    def _probes(self, where: Where | None) -> int:
        """Number of partitions to look into; more under a filter, as few rows that pass may stand in the first ones."""
        probes = self.approximation.probes
        if where is not None and where.conditions:
            probes = probes * self.rows // max(1, self._passing(Where(where.conditions)))
        return max(1, min(probes, partitions_of(self.rows)))

    def _all_zero(self, only: Compiled) -> EngineCandidates:
        """Candidates of a query of zeros, which has the score 0 with all rows."""
        found = self.rows_of(only, [ID, SEQ])
        return EngineCandidates(found[ID].to_pylist(), found[SEQ].to_numpy(), np.zeros(found.num_rows, np.float32))

    def _near(
        self, sought: Vectors, k: int, where: Where | None, only: Compiled, without: frozenset[str], cosine: bool
    ) -> EngineCandidates | None:
        """Candidates of the approximate index; None if it finds fewer rows than there may be."""
        wanted, chosen = k + len(without), self.approximation
        query = self._query(sought, "dot", wanted, only).refine_factor(chosen.refine)
        if self.graph:
            query = query.nprobes(chosen.probes).ef(max(chosen.ef, wanted * chosen.refine))
        else:
            query = query.nprobes(self._probes(where))
        found = query.to_arrow()
        return self._scored(found, sought, cosine) if found.num_rows == wanted else None

    def _compared(
        self,
        sought: Vectors,
        k: int,
        only: Compiled,
        without: frozenset[str],
        cosine: bool,
        engine: Literal["dot", "cosine"],
    ) -> EngineCandidates:
        """Candidates among all rows: at least the k best, and whatever is equal to the last of them."""
        wanted = min(self.rows, k + len(without) + _MORE)
        rounding = _ROUNDING_OF_HALVES if self.description.half else _ROUNDING
        if cosine:
            rounding += _UNIT if engine == "dot" else 0
        else:
            rounding *= float(np.linalg.norm(sought)) * self._lengths.longest
        while True:
            found = self._query(sought, engine, wanted, only).bypass_vector_index().to_arrow()
            hits = self._scored(found, sought, cosine)
            if engine == "cosine" and self._lengths.zeros:
                hits = hits.and_those(self._without_direction(only))
            reached = 1 - found["_distance"].to_numpy()
            if found.num_rows < wanted or wanted == self.rows:
                return hits
            if hits.whole(k, without, float(np.nanmin(reached)) + rounding):
                return hits
            wanted = min(self.rows, wanted * 4)

    def _query(self, sought: Vectors, engine: Literal["dot", "cosine"], wanted: int, only: Compiled) -> Any:
        search: Any = self.table.search(sought, vector_column_name=VECTOR)
        query = search.distance_type(engine).limit(wanted)
        query = query.select([ID, SEQ, VECTOR, SEAL_OF_VECTOR, "_distance"])
        return query if isinstance(only, bool) else query.where(only)

    def _scored(self, found: pa.Table, sought: Vectors, cosine: bool) -> EngineCandidates:
        """Found rows with exact scores."""
        scores = exact_scores(self.vectors(found), sought, cosine=cosine)
        return EngineCandidates(found[ID].to_pylist(), found[SEQ].to_numpy(), scores)

    def _without_direction(self, only: Compiled) -> EngineCandidates:
        """Rows of zeros, which the engine cannot compare by cosine; theirs is 0."""
        from lancedb.expr import col, lit

        return self._all_zero(all_of([only, col(LENGTH) == lit(0.0)]))


@dataclass(frozen=True)
class _Lengths:
    """Lengths of a table's vectors: whether each is 1 or 0, the longest, and whether there are zeros."""

    unit: bool
    longest: float
    zeros: bool


def ids_of(keys: Iterable[str]) -> tuple[str, ...]:
    """Ids in the user's form."""
    return tuple(map(from_engine, keys))
