"""One version of a LanceDB table, and the search in it: in mapped files, in memory, or by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from rungwise.index.filters import Where
from rungwise.index.stores._approximation import HELD_BYTES, Approximation, IndexKind, partitions_of, usual
from rungwise.index.stores._base import LabelledVector, Metric, Row, Vectors
from rungwise.index.stores._engine_rows import VECTOR, to_engine
from rungwise.index.stores._scan import compare_all
from rungwise.index.stores.lance._description import described
from rungwise.index.stores.lance._engine_search import EngineSearch
from rungwise.index.stores.lance._table_rows import EngineFilter, TableRows
from rungwise.index.stores.lance._version_file import Counting
from rungwise.index.stores.lance.mapped import Held, MappedFiles, MappedRows, StreamedTable

if TYPE_CHECKING:
    from lancedb.table import Table

_MANY = 4
"""Queries from which on they are compared with the rows in one pass, block by block."""


class LanceSnapshot:
    """One version of a table, which never changes, and what has been learnt of it.

    Args:
        table: The table, opened at the version.
        label: Name of the table in messages.
        counting: Version, and name of the mapped files.
        before: An earlier version, most of whose rows are the same.
        files: Its mapped files; None where it has none.

    Attributes:
        counting: Version, and name of the mapped files.
        rows: Rows of the version.
        files: Mapped files of this version or another one; None where there are none.
        known: Rows in memory, of this version or an earlier one.
    """

    def __init__(
        self,
        table: Table,
        label: str,
        counting: Counting,
        before: LanceSnapshot | None = None,
        files: MappedFiles | None = None,
    ) -> None:
        description, chosen = described(table, label)
        self.counting = counting
        self.rows = TableRows(table, label, description)
        self._engine = EngineSearch(self.rows)
        kinds = [str(config.index_type) for config in table.list_indices() if config.columns == [VECTOR]]
        self._engines: IndexKind | None = None
        if kinds:
            self._engines = "graph" if "hnsw" in kinds[0].lower() else "codes"
        self._chosen = chosen
        self.known: Held | None = before.known if before is not None else None
        self.files = files
        self._mapped: MappedRows | None = before._mapped if before is not None and before.files is files else None
        self._is_mapped = False
        self._up_to_date = False
        self._holding = Lock()

    @property
    def kind(self) -> IndexKind | None:
        """Kind of the approximate index; None where it has none."""
        if self.files is not None:
            return "lists" if self.files.lists is not None else None
        return self._engines

    @property
    def approximation(self) -> Approximation:
        """Setting of the approximate index."""
        default = usual(len(self.rows), self.kind or "graph")
        return self._chosen if self._chosen is not None and self._chosen.kind == default.kind else default

    def with_approximation(self, settings: Approximation) -> LanceSnapshot:
        """The same version with another setting of the approximate index."""
        other = copy(self)
        other._chosen = settings
        return other

    def nearest(
        self, queries: Vectors, k: int, where: Where | None, metric: Metric | None, exact: bool
    ) -> list[tuple[list[str], Vectors]]:
        """Ids, in the engine's form, and scores of the k rows most alike to each of (queries, D)."""
        without, description, mapped = _left_out(where), self.rows.description, self.mapped
        if mapped is not None and self.kind == "lists" and not exact:
            answers = [mapped.nearest(query, k, metric, where, without, self.approximation) for query in queries]
            return [(mapped.keys_at(places), found) for places, found in answers]
        at_hand = mapped if mapped is not None else self._held if self.in_memory else None
        if at_hand is not None or (len(queries) >= _MANY and (exact or self.kind is None)):
            rows = at_hand if at_hand is not None else StreamedTable(self.rows, self.rows.in_order(where))
            kept = None if at_hand is None else at_hand.kept(where, without)
            positions, scores = compare_all(rows, queries, k, description.similarity, description.side, metric, kept)
            return [(rows.keys_at(places), found) for places, found in zip(positions, scores, strict=True)]
        chosen = self.rows.filter(where)
        if chosen.only is False or not len(self.rows):
            return [([], np.empty(0, np.float32))] * len(queries)
        best = [self._nearest(query, k, chosen, cosine=metric == "cosine", exact=exact) for query in queries]
        if metric is not None:
            return best
        return [(ids, description.similarity.of_metric(found)) for ids, found in best]

    def by_words(self, words: str, k: int, where: Where | None) -> tuple[list[str], Vectors, list[str]]:
        """Ids, in the engine's form, scores and words of the k rows that fit words best by BM25."""
        if (mapped := self.mapped) is not None:
            return mapped.by_words(words, k, where, _left_out(where))
        return self._engine.by_words(words, k, self.rows.filter(where))

    def labelled(self, keys: Sequence[str], entry: str) -> dict[str, LabelledVector]:
        """Vectors and texts of an entry of the rows with ids in the engine's form: from memory where they are there."""
        if (mapped := self.mapped) is not None:
            return mapped.labelled(keys, entry)
        return (self._held if self.in_memory else self.rows).labelled(keys, entry)

    def with_ids(self, keys: Sequence[str]) -> dict[str, Row]:
        """Rows by ids in the engine's form."""
        return self.rows.with_ids(list(keys)) if (mapped := self.mapped) is None else mapped.with_ids(keys)

    @property
    def in_memory(self) -> bool:
        """Whether all vectors are held in memory and compared there."""
        return (
            self.files is None
            and self._engines is None
            and 4 * len(self.rows) * self.rows.description.dimension <= HELD_BYTES
        )

    @property
    def mapped(self) -> MappedRows | None:
        """Rows in mapped files, and those that were written later; None where there are no such files."""
        if self.files is None:
            return None
        with self._holding:
            if not self._is_mapped:
                self._mapped, self._is_mapped = MappedRows(self.files, self.rows, self._mapped), True
            return self._mapped

    @property
    def _held(self) -> Held:
        with self._holding:
            if self.known is None or not self._up_to_date:
                self.known, self._up_to_date = Held(self.rows, self.known), True
            return self.known

    def _nearest(
        self, vector: Vectors, k: int, chosen: EngineFilter, *, cosine: bool, exact: bool
    ) -> tuple[list[str], Vectors]:
        """Ids and scores of the k rows most alike to one query, by the engine."""
        if not vector.any():
            return self._engine.all_zero(chosen.only).best(k, chosen.without)
        query, found = self._engine.query(vector, k, chosen, cosine=cosine), None
        if self.kind is not None and not exact and query.distance == "dot":
            settings = self._settings_under(chosen.conditions)
            found = None if settings is None else self._engine.near(query, settings, graph=self.kind == "graph")
        return (found or self._engine.compared(query)).best(k, chosen.without)

    def _settings_under(self, conditions: Where | None) -> Approximation | None:
        """Setting of the approximate index under conditions; None where the rows that pass are quickly compared.

        A walk through a graph may miss few rows. Of codes, more partitions are looked into, as few rows that pass may
        stand in the first ones.
        """
        passing = len(self.rows) if conditions is None else self.rows.passing(conditions)
        if conditions is not None and passing <= self.approximation.flat:
            return None
        if self.kind == "graph":
            return self.approximation
        probes = self.approximation.probes * len(self.rows) // max(1, passing)
        return replace(self.approximation, probes=max(1, min(probes, partitions_of(len(self.rows)))))


def _left_out(where: Where | None) -> frozenset[str]:
    """Ids, in the engine's form, that a filter leaves out."""
    return frozenset() if where is None else frozenset(map(to_engine, where.without))
