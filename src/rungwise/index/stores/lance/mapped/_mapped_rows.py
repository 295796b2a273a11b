"""The rows of one version of a table: most of them mapped from files, and in memory those that were written later."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from rungwise.core.compute import ROW_MULTIPLE
from rungwise.index.filters import Where
from rungwise.index.stores._approximation import Approximation
from rungwise.index.stores._base import LabelledVector, Metric, Row, Vectors, label_of
from rungwise.index.stores._bm25 import WordIndex
from rungwise.index.stores._engine_rows import TEXT
from rungwise.index.stores._scan import compare_all, compare_some
from rungwise.index.stores.lance._table_rows import TableRows
from rungwise.index.stores.lance.mapped._inverted_lists import Kept
from rungwise.index.stores.lance.mapped._mapped_files import MappedFiles
from rungwise.index.stores.lance.mapped._memory import Held, Listed

_FILTERS = 16
"""Filters of which it is remembered which rows pass."""
_REFINED = 256
"""Most candidates beyond k that are compared by their whole vectors: of a large k, codes err near its end alone."""


class MappedRows:
    """Rows of one version in order: those of files, among them rows that are gone, then all others in memory.

    It is a :class:`rungwise.index.stores._scan.VectorRows` whose rows that are gone must be left out by a mask.

    Args:
        files: Files of this version or of an earlier one.
        rows: Rows of the version.
        before: Those of an earlier version, whose rows in memory are taken over.

    Attributes:
        shape: (rows, D), those that are gone among them.
        changed: Number of rows of the files that are gone, and of rows that are not in the files.
    """

    def __init__(self, files: MappedFiles, rows: TableRows, before: MappedRows | None = None) -> None:
        self.files, self._rows = files, rows
        self._there: NDArray[np.bool_] | None = None
        none = np.empty(0, np.int64)
        listed = Listed(none, none, none)
        if files.table_version != rows.table.version:
            listed, there = _apart(files, Listed.of(rows))
            self._there = None if there.all() else there
        self._later: Held = Held(rows, before._later if before is not None else None, listed)
        self._later_numbers = listed.numbers
        self.shape = len(files) + len(self._later), files.shape[1]
        self.changed = len(self._later) + (0 if self._there is None else int((~self._there).sum()))
        self._passing = lru_cache(maxsize=_FILTERS)(self._looked_up)
        self._packed = lru_cache(maxsize=_FILTERS)(self._pack)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, block: slice) -> Vectors:
        """Vectors at consecutive positions."""
        start, stop, _ = block.indices(len(self))
        first = len(self.files)
        if stop <= first:
            return self.files[start:stop]
        later = self._later[max(0, start - first) : stop - first]
        return later if start >= first else np.concatenate([self.files[start:first], later])

    def gathered(self, positions: NDArray[np.int64]) -> Vectors:
        """Vectors at positions that rise."""
        split = np.searchsorted(positions, len(self.files))
        mapped, later = positions[:split], positions[split:] - len(self.files)
        if not len(later):
            return self.files.gathered(mapped)
        return np.concatenate([self.files.gathered(mapped), self._later.gathered(later)])

    @property
    def inverse_lengths(self) -> Vectors:
        """(rows,) 1 / length of each vector; 0 for a vector of zeros."""
        if not len(self._later):
            return self.files.inverse_lengths
        return np.concatenate([self.files.inverse_lengths, self._later.inverse_lengths])

    def keys_at(self, positions: NDArray[np.int64]) -> list[str]:
        """Ids, in the engine's form, at positions; those of files are compared with their checksums."""
        of_files = positions < len(self.files)
        found = np.empty(len(positions), object)
        found[of_files] = self.files.keys_at(positions[of_files])
        found[~of_files] = self._later.keys_at(positions[~of_files] - len(self.files))
        return list(found)

    def with_ids(self, keys: Sequence[str]) -> dict[str, Row]:
        """Rows by ids in the engine's form; the table is asked for those that do not stand in the files."""
        found, others = self._of_files(keys, self.files.vectors_at)
        return {**found, **self._rows.with_ids(others)} if others else found

    def labelled(self, keys: Sequence[str], entry: str) -> dict[str, LabelledVector]:
        """Vectors and texts of an entry of the rows with ids in the engine's form."""
        rows, others = self._of_files(keys, self.files.summed)
        found = {key: label_of(row, entry) for key, row in rows.items()}
        return {**found, **self._rows.labelled(others, entry)} if others else found

    def _of_files(
        self, keys: Sequence[str], vectors_at: Callable[[NDArray[np.int64]], Vectors]
    ) -> tuple[dict[str, Row], list[str]]:
        """Rows that stand in the files, by id, and the ids that the table is asked for."""
        at = self._positions_of(keys)
        places = {key: place for key, place in zip(keys, at.tolist(), strict=True) if 0 <= place < len(self.files)}
        positions = np.array(list(places.values()), np.int64)
        rows = map(Row, vectors_at(positions), self.files.records_at(positions))
        return dict(zip(places, rows, strict=True)), [key for key in keys if key not in places]

    def by_words(
        self, words: str, k: int, where: Where | None, without: frozenset[str]
    ) -> tuple[list[str], Vectors, list[str]]:
        """Ids, in the engine's form, scores and words of the k rows that fit words best by BM25.

        How rare a word is, the files say; rows that were written later are looked through.
        """
        lists, of_files = self.files.words, len(self.files)
        sought = list(dict.fromkeys(words.split()))
        kept = self.kept(where, without)
        later = [(str(at), text) for at, text in enumerate(self._later_texts) if kept is None or kept[of_files + at]]
        mask = None if kept is None else kept[:of_files]
        positions, scores = lists.best(sought, k, mask, len(later))
        texts, keys = self.files.texts_at(positions), self.files.keys_at(positions)
        if not later:
            return keys, scores, texts
        index = WordIndex(later, lists.bearers, lists.texts + len(later), lists.mean)
        others, own = index.best(words, k)
        at = np.array([int(one) for one in others], np.int64)
        keys = [*keys, *self._later.keys_at(at)]
        texts += [self._later_texts[one] for one in at]
        best = np.argsort(-np.concatenate([scores, own]), kind="stable")[:k]
        return [keys[one] for one in best], np.concatenate([scores, own])[best], [texts[one] for one in best]

    @cached_property
    def _later_texts(self) -> list[str]:
        """Words of each row that is not in the files, with blanks between them."""
        return [] if not len(self._later) else self._rows.taken(self._later_numbers, [TEXT])[TEXT].to_pylist()

    def kept(self, where: Where | None, without: frozenset[str]) -> NDArray[np.bool_] | None:
        """(rows,) whether a row passes a filter and is none of these ids; None if all are kept."""
        conditions = where.conditions if where else ()
        if not conditions and not without and self._there is None:
            return None
        of_files, later = self._passing(Where(conditions))
        kept = np.concatenate([np.ones(len(self.files), bool) if of_files is None else of_files, later])
        kept[self._positions(without)] = False
        return kept

    def nearest(
        self,
        query: Vectors,
        k: int,
        metric: Metric | None,
        where: Where | None,
        without: frozenset[str],
        settings: Approximation,
    ) -> tuple[NDArray[np.int64], Vectors]:
        """Positions and scores of the k rows nearest to a query, best first; the lists may miss some.

        Args:
            query: (D,) vector.
            k: Number of rows, at least 1.
            metric: Metric that replaces the similarity; None for the similarity.
            where: Filter of the rows that may be found; all if None.
            without: Ids, in the engine's form, of rows that are left out.
            settings: How thoroughly the lists are looked through.
        """
        queries, described = query[None], self._rows.description
        how = described.similarity, described.side, metric
        gone, mapped = self._positions(without), len(self.files)
        only = Where(where.conditions if where else ())
        found = self._listed(query, k, settings, only, gone[gone < mapped])
        # Codes choose by the inner product, which is the cosine only of vectors of length 1.
        if found is None or (metric == "cosine" and not self.files.unit) or not query.any():
            positions, scores = compare_all(self, queries, k, *how, self.kept(where, without))
            return positions[0], scores[0]
        if len(self._later):
            later = self._passing(only)[1].copy()
            later[gone[gone >= mapped] - mapped] = False
            others, _ = compare_all(self._later, queries, k, *how, later)
            found = np.concatenate([found, mapped + np.sort(others[0])])
        positions, scores = compare_some(self, found, queries, k, *how)
        return positions[0], scores[0]

    def _listed(
        self, query: Vectors, k: int, settings: Approximation, only: Where, gone: NDArray[np.int64]
    ) -> NDArray[np.int64] | None:
        """Positions, in rising order, of candidates in the files; None if all that pass should be compared."""
        if (lists := self.files.lists) is None:
            return None
        kept = self._packed(only)
        passing = len(self.files) if kept is None else kept.count
        if passing - len(gone) <= max(k, settings.flat if kept is not None else 0):
            return None
        if len(gone):
            kept = lists.without(kept, gone)
        wanted = min(k * settings.refine, k + _REFINED)
        count = max(k, -(-wanted // ROW_MULTIPLE) * ROW_MULTIPLE)
        found = lists.near(query, count, settings.probes, settings.flat, kept)
        return found if len(found) >= k else None

    def _pack(self, only: Where) -> Kept | None:
        mask, _ = self._passing(only)
        return None if mask is None or self.files.lists is None else self.files.lists.kept(mask)

    def _positions(self, keys: Collection[str]) -> NDArray[np.int64]:
        """Positions, in any order, of the rows with these ids, in the engine's form."""
        at = self._positions_of(list(keys))
        return at[at >= 0]

    def _positions_of(self, keys: Sequence[str]) -> NDArray[np.int64]:
        """(keys,) position of each id, in the engine's form; -1 where there is none."""
        at = self.files.positions_of(keys)
        if self._there is not None:
            at[(at >= 0) & ~self._there[at]] = -1
        later = self._later.positions if len(self._later) else {}
        for place, key in enumerate(keys):
            if key in later:
                at[place] = len(self.files) + later[key]
        return at

    def _looked_up(self, where: Where) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_]]:
        """(rows of the files,) whether each passes, None if all do, and the same of the others."""
        if not where.conditions:
            return self._there, np.ones(len(self._later), bool)
        found = self._rows.places(where)
        mask = np.isin(self.files.places, found, assume_unique=True)
        if self._there is not None:
            mask &= self._there
        return mask, np.isin(self._later.places, found, assume_unique=True)


def _apart(files: MappedFiles, listed: Listed) -> tuple[Listed, NDArray[np.bool_]]:
    """Rows that are not in the files, and (rows of the files,) whether each is still there."""
    at = np.minimum(np.searchsorted(files.places, listed.places), len(files) - 1)
    # A place in the order may be taken anew after its row was deleted; the checksum tells.
    same = (files.places[at] == listed.places) & (files.seals[at] == listed.seals)
    there = np.zeros(len(files), bool)
    there[at[same]] = True
    return listed.only(~same), there
