"""Values that search and cutoff share: the pictures that a query may find, and the judgement of the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.calibration import BEYOND, RUNGS, QueryJudgement
from rungwise.index.filters import Where
from rungwise.index.stores import LabelledVector, Metric, Row, Store, label_of
from rungwise.similarity import unit_rows

POOL = 200
"""Number of pictures nearest by their vectors that full text, reranking and diversity may put in another order."""
MOST_BY_WORDS = 50
"""Number of pictures that full text may bring."""
HASH = "hash"
"""Column with the hash of a picture's content."""
_STEP = 16
"""Depths are multiples of this, so that pages of an approximate index come from few different searches."""
_ROUNDING = 1e-6
"""Relative difference by which the same score may vary between two ways of computing it."""


@dataclass(frozen=True)
class RankedGroup:
    """A picture of the ranking, and the near-duplicates that are folded under it.

    Attributes:
        id: Id of the picture.
        folded: Ids of the near-duplicates, best first.
        rung: 1 to 3, or 4 after the end of relevance; 0 where it was not judged.
        degree: Expected degree of relevance; 0 where it was not judged.
    """

    id: str
    folded: tuple[str, ...] = ()
    rung: int = 0
    degree: float = 0.0


class PictureCandidates:
    """The pictures that a query may find, by their vectors.

    Attributes:
        vector: (1, D) vector of the query.
        metric: How vectors are compared; None for the store's similarity.
        where: Filter of the pictures that may be found.
    """

    def __init__(
        self, store: Store, vector: NDArray[np.float32], metric: Metric | None, where: Where, exact: bool
    ) -> None:
        self.store = store
        self.where = where
        self.vector = vector
        self.metric: Metric | None = metric
        self._exact = exact
        self._nearest: tuple[str, ...] = ()
        self._nearest_scores: NDArray[np.float32] = np.empty(0, np.float32)
        self._depth = 0
        self._scores: dict[str, float] = {}
        self._rows: dict[str, Row] = {}
        self._labelled: dict[str, LabelledVector] = {}
        self._by_words: dict[str, dict[str, frozenset[str]]] = {}

    def nearest(self, depth: int) -> tuple[str, ...]:
        """Ids of the ``depth`` nearest pictures, best first; fewer where there are fewer."""
        if depth > self._depth:
            self._depth = -(-depth // _STEP) * _STEP
            found = self.store.search(self.vector, self._depth, self.where, metric=self.metric, exact=self._exact)
            self._nearest, self._nearest_scores = found.ids[0], found.scores[0]
            self._scores |= dict(zip(found.ids[0], found.scores[0].tolist(), strict=True))
        return self._nearest[:depth]

    def nearest_scores(self, depth: int) -> NDArray[np.float32]:
        """Scores of the ``depth`` nearest pictures, best first; fewer where there are fewer."""
        self.nearest(depth)
        return self._nearest_scores[:depth]

    def found_by_words(self, words: str) -> Mapping[str, frozenset[str]]:
        """At most :data:`MOST_BY_WORDS` pictures whose texts hold one of these words, best first, and their words."""
        if words not in self._by_words:
            found = self.store.find_words(words, MOST_BY_WORDS, self.where)
            self._by_words[words] = dict(zip(found.ids[0], found.words, strict=True))
        return self._by_words[words]

    @property
    def identity(self) -> tuple[object, ...]:
        """Key that is equal for searches of one version of a store that find the same."""
        return self.vector.tobytes(), self.metric, self.where, self._exact

    def without_filter(self) -> PictureCandidates:
        """The same query over all pictures but those that the query names."""
        if not self.where.conditions:
            return self
        where = Where().and_without(self.where.without)
        return PictureCandidates(self.store, self.vector, self.metric, where, self._exact)

    def rows(self, ids: Sequence[str]) -> dict[str, Row]:
        """Vectors and records by id; ids that are gone meanwhile are left out."""
        self._rows |= self.store.get([one for one in ids if one not in self._rows])
        return {one: self._rows[one] for one in ids if one in self._rows}

    def labelled(self, ids: Sequence[str]) -> dict[str, LabelledVector]:
        """Vectors with the hashes of pictures by id; ids that are gone meanwhile are left out."""
        known = self._labelled
        known |= {one: label_of(self._rows[one], HASH) for one in ids if one in self._rows and one not in known}
        if missing := [one for one in ids if one not in known]:
            known |= self.store.labelled(missing, HASH)
        return {one: known[one] for one in ids if one in known}

    def scores(self, ids: Sequence[str]) -> list[float]:
        """Similarity of each picture with the query, also of pictures that its vector did not find."""
        rows = self.labelled([one for one in ids if one not in self._scores])
        if rows:
            vectors = vectors_of(rows.values())
            if self.metric is None:
                similar = self.store.similarity.array(vectors, self.vector)[:, 0]
            else:
                similar = unit_rows(vectors) @ unit_rows(self.vector)[0]
            self._scores |= dict(zip(rows, similar.tolist(), strict=True))
        return [self._scores[one] for one in ids]


def vectors_of(rows: Iterable[LabelledVector]) -> NDArray[np.float32]:
    """(n, D) vectors of at least one row."""
    vectors = [row.vector for row in rows]
    return np.concatenate(vectors).reshape(len(vectors), -1)  # a third of the time of np.stack


@dataclass(frozen=True)
class JudgedRanking:
    """The best hits of the whole index, judged.

    Attributes:
        ids: Ids of these hits.
        scores: (hits,) scores, falling.
        judgement: Judgement of these hits.
        relevant_from: The least degree that counts as relevant.
        source: One line that names what they were judged by.
        names: Names of the rungs 1, 2 and 3.
        by_hit: Whether the judgement knows each hit by more than its score.
    """

    ids: tuple[str, ...]
    scores: NDArray[np.floating]
    judgement: QueryJudgement
    relevant_from: float
    source: str
    names: tuple[str, str, str] = RUNGS
    by_hit: bool = False

    @property
    def cut(self) -> int:
        """Number of hits of the whole index that are relevant."""
        return self.judgement.cut

    @cached_property
    def _places(self) -> dict[str, int]:
        return {one: place for place, one in enumerate(self.ids)}

    def of(self, ids: Sequence[str], scores: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Rungs and degrees, (hits,) each, of hits with these scores.

        A hit that was not judged itself is taken for the best judged one that scores no higher. A score below all that
        were judged stands after the end.
        """
        given = np.asarray(scores, np.float64)
        if not len(self.scores):
            return np.full(len(given), BEYOND, np.int64), np.zeros(len(given))
        near = given + _ROUNDING * np.maximum(1.0, np.abs(given))
        places = np.searchsorted(-self.scores.astype(np.float64), -near, side="left")
        places = np.array([self._places.get(one, place) for one, place in zip(ids, places.tolist(), strict=True)], int)
        within = np.minimum(places, len(self.scores) - 1)
        rungs = np.where(places < len(self.scores), self.judgement.rungs[within], BEYOND)
        return rungs.astype(np.int64), np.asarray(self.judgement.degrees[within], np.float64)
