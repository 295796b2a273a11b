"""Cost in quality of the approximate search of an index: its answers beside the exact ones, on the index as it is.

Each query is answered twice by the store, as it is served and by comparing every picture. Reported are the share of
exact hits that are found (recall), what that does to graded measures of the ranking (nDCG@k and CS@k by degrees of
relevance), and how long both take.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.evaluation.statistics import Interval, bootstrap, interval_of
from rungwise.index.filters import Where
from rungwise.index.stores import Store, StoreFacts, StoreHits, Vectors
from rungwise.metrics import CS, NDCG, KeptLists, Measure, Positives, Rankings, Recall
from rungwise.quality._degrees import DegreeRows, GradedHits, Grading
from rungwise.quality._queries import Queries

Progress = Callable[[int], None]

_WARM_UP = 3
"""Number of queries that are answered before time is taken: the first ones read from the disk."""

_EQUAL = 1e-6
"""Relative difference up to which two similarities count as equal, as they may be computed in two ways."""

_NOWHERE = 1 << 40
"""Rank of a hit that was not found."""


@dataclass(frozen=True)
class Number:
    """A mean over queries, with its 95 % bootstrap interval over the pictures that queries belong to."""

    value: float
    interval: Interval


@dataclass(frozen=True)
class Latency:
    """Median and 99th percentile of the milliseconds that the store takes for one query, encoding not included."""

    p50: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Latency:
        """Latency by the seconds of queries that were asked one after the other."""
        p50, p99 = 1000 * np.quantile(seconds, [0.5, 0.99])
        return cls(float(p50), float(p99))


@dataclass(frozen=True)
class DegreeLoss:
    """A graded measure of the ranking that is served, and of the exact one.

    Attributes:
        name: Name of the measure: nDCG@k in percent, CS@k from -1 to 1.
        served: Mean over queries of the ranking that is served.
        exact: Mean over queries of the exact ranking.
        difference: Mean over queries of served minus exact.
    """

    name: str
    served: float
    exact: float
    difference: Number


@dataclass(frozen=True)
class Case:
    """Results under one filter.

    Attributes:
        where: The filter as it was asked for; empty where there is none.
        pictures: Number of pictures that may be found.
        latency: Latency of the search as it is served.
        exact_latency: Latency of the exact search; None where the store has no other.
        recall: Percent of the exact first k that are served; None where the store is exact.
        incomplete: Number of queries that miss one of the exact first k.
        ungraded: Number of queries to which no picture is relevant; they count 0 in nDCG.
        losses: Losses of graded measures.
    """

    where: str
    pictures: int
    latency: Latency
    exact_latency: Latency | None
    recall: Number | None
    incomplete: int
    ungraded: int
    losses: tuple[DegreeLoss, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class IndexCheck:
    """Results of :func:`check`.

    Attributes:
        store: Description of the engine.
        queries: Number of queries.
        kind: Captions or pictures of the index, or texts.
        k: Length of the lists.
        grades: Description of the degrees of relevance.
        cases: Results without a filter, and under the filter that was asked for.
    """

    store: StoreFacts
    queries: int
    kind: str
    k: int
    grades: str
    cases: tuple[Case, ...]

    __repr__ = short_repr

    def plain(self) -> dict[str, Any]:
        """The results as JSON can hold them; NaN becomes None."""
        found: dict[str, Any] = as_plain(asdict(self))
        return found


@dataclass(frozen=True)
class StoreAnswers:
    """Hits of all queries, asked one at a time, and the (queries,) seconds that each took."""

    found: StoreHits
    seconds: tuple[float, ...]


def check(
    store: Store,
    queries: Queries,
    grading: Grading,
    *,
    k: int = 10,
    filters: Mapping[str, Where | None] | None = None,
    progress: Progress | None = None,
) -> IndexCheck:
    """Compare what a store serves with what an exact search finds.

    Args:
        store: Store of the pictures.
        queries: Queries to ask.
        grading: Gives the relevance of pictures to the queries.
        k: Length of the lists.
        filters: Filters to ask under, by name; without a filter if None.
        progress: Called with the number of searches done since the last call, out of :func:`searches`.

    Raises:
        UserError: If no picture fulfils a filter, or k is less than 1.

    >>> from rungwise.index import Index
    >>> from rungwise.quality._degrees import ModelGrading
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rungwise.index.stores.exact import ExactStore
    >>> from rungwise.index.layout.manifest import Manifest
    >>> from rungwise.similarity import Cosine
    >>> place = Path(tempfile.mkdtemp())
    >>> pets = ExactStore.create(place / "pictures", 2, Cosine())
    >>> pets.upsert(["dog", "cat", "wolf"], [[1, 0], [0, 1], [0.8, 0.6]])
    >>> index = Index(Manifest("pets", "", "", 2), pets, ExactStore.create(place / "captions", 2, Cosine(), "text"))
    >>> dogs = Queries("texts", ("a dog",), np.array([[1, 0]], np.float32))
    >>> found = check(pets, dogs, ModelGrading(index, dogs), k=2)
    >>> found.cases[0].pictures, found.cases[0].recall, found.cases[0].losses[0].served
    (3, None, 100.0)
    """
    cases = []
    for name, where in (filters or {"": None}).items():
        pictures = store.count(where)
        if not pictures:
            raise UserError(f"no picture fulfils {name}: there is nothing to find" if name else "the index is empty")
        served = answered(store, queries, k, where, progress=progress)
        exact = served if store.about().exact else answered(store, queries, k, where, exact=True, progress=progress)
        searches = (served.found, exact.found)
        graded = grading.grade(searches, exact.found, where, k)
        other = None if exact is served else Latency.of(exact.seconds)
        recalls = None if exact is served else recalls_of(served.found, exact.found, k)
        cases.append(
            Case(
                name,
                pictures,
                Latency.of(served.seconds),
                other,
                None if recalls is None else mean_of(Recall(k), recalls, queries.clusters),
                0 if recalls is None else int((recalls < 100).sum()),
                int((graded.ideal.sum(axis=1) == 0).sum()),
                losses_of(searches, graded, queries.clusters, k),
            )
        )
    return IndexCheck(store.about(), len(queries), queries.kind, k, grading.title, tuple(cases))


def searches(store: Store, queries: Queries, filters: int = 1) -> int:
    """Number of searches that :func:`check` makes, for a bar of progress."""
    return len(queries) * filters * (1 if store.about().exact else 2)


def answered(
    store: Store,
    queries: Queries,
    k: int,
    where: Where | None = None,
    *,
    exact: bool = False,
    progress: Progress | None = None,
) -> StoreAnswers:
    """Ask a store one query at a time, as a server does; ``progress`` is called with 1 after each."""

    def ask(number: int) -> tuple[tuple[str, ...], Vectors]:
        found = store.search(
            queries.vectors[number : number + 1],
            k,
            queries.where(number, where),
            metric=queries.metric,
            exact=exact,
        )
        return found.ids[0], found.scores[0]

    for number in range(min(_WARM_UP, len(queries))):
        ask(number)
    ids, scores, seconds = [], [], []
    for number in range(len(queries)):
        start = time.perf_counter()
        hits, values = ask(number)
        seconds.append(time.perf_counter() - start)
        ids.append(hits)
        scores.append(values)
        if progress:
            progress(1)
    return StoreAnswers(StoreHits(tuple(ids), tuple(scores)), tuple(seconds))


def recalls_of(served: StoreHits, exact: StoreHits, k: int) -> NDArray[np.float64]:
    """(queries,) percent of the exact hits that are served: Recall@k, where the exact hits are the right ones.

    A picture that is served in place of another that is just as alike, such as its copy, is right too.

    >>> served = StoreHits((("b", "c"),), (np.array([0.8, 0.7], np.float32),))
    >>> exact = StoreHits((("a", "b"),), (np.array([0.9, 0.8], np.float32),))
    >>> recalls_of(served, exact, 2)
    array([50.])
    """
    ranks = [rank for number in range(len(exact.ids)) for rank in _ranks(served, exact, number)]
    counts = [len(right) for right in exact.ids]
    positives = Positives(np.cumsum([0, *counts]), np.concatenate([np.arange(count) for count in counts]))
    return Recall(k).per_query(Rankings(positives, direction="t2i", ranks=np.array(ranks, np.int64)))


def mean_of(measure: Measure, values: NDArray[np.float64], clusters: NDArray[np.int64]) -> Number:
    """Mean of a measure's (queries,) values with its interval; queries of one cluster are drawn together."""
    name = f"t2i/{measure}"
    drawn = bootstrap([_PerQuery({name: values}, clusters)], [name])[name]
    return Number(measure.aggregate(values), interval_of(drawn[0]))


def _ranks(served: StoreHits, exact: StoreHits, number: int) -> list[int]:
    """Rank at which each exact hit of a query is served, or another that is just as alike; else one too far."""
    right, scores = exact.ids[number], exact.scores[number]
    places = {one: place for place, one in enumerate(served.ids[number], start=1)}
    if not right:
        return []
    bar = float(scores[-1]) - _EQUAL * max(1.0, abs(float(scores[-1])))
    others = [
        place
        for (one, place), score in zip(places.items(), served.scores[number], strict=True)
        if one not in right and score >= bar
    ]
    return [places[one] if one in places else others.pop(0) if others else _NOWHERE for one in right]


def losses_of(
    searches: Sequence[StoreHits], graded: GradedHits, clusters: NDArray[np.int64], k: int
) -> tuple[DegreeLoss, ...]:
    """nDCG@k and CS@k of what is served beside the exact ranking, by the hits and degrees of both in this order.

    ``clusters``, (queries,), are numbers of the pictures that queries belong to.
    """
    found = []
    for measure in (NDCG(k), CS(k)):
        name = f"t2i/{measure}"
        both = [
            _PerQuery({name: graded_values(measure, hits, degrees, graded.ideal)}, clusters)
            for hits, degrees in zip(searches, graded.found, strict=True)
        ]
        served, exact = (measure.aggregate(one.per_query(name)) for one in both)
        drawn = bootstrap(both, [name])[name]
        difference = Number(served - exact, interval_of(drawn[0] - drawn[1]))
        found.append(DegreeLoss(str(measure), served, exact, difference))
    return tuple(found)


def graded_values(
    measure: Measure, found: StoreHits, degrees: DegreeRows, ideal: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(queries,) values of a graded measure, nDCG@k or CS@k; NaN where nothing was found.

    ``degrees`` are those of the hits; ``ideal``, (queries, k), are the largest that there are.

    >>> found = StoreHits((("a",),), (np.ones(1, np.float32),))
    >>> graded_values(NDCG(1), found, [np.array([0.5])], np.array([[1.0]]))
    array([50.])
    """
    # Queries whose lists are equally long are measured together.
    values = np.full(len(found.ids), np.nan)
    lengths = np.array([len(ids) for ids in found.ids], np.int64)
    for length in np.unique(lengths):
        which = np.flatnonzero(lengths == length)
        width = ideal.shape[1] if isinstance(measure, NDCG) else length
        if not width:
            continue
        kept = KeptLists(
            top=np.tile(np.arange(width), (len(which), 1)),
            scores=_stacked([found.scores[query] for query in which], width),
            degrees=_stacked([degrees[query] for query in which], width),
            best=np.tile(np.arange(width), (len(which), 1)),
            best_degrees=ideal[which, :width],
            lowest_degree=0.0,
            gallery=int(width),
        )
        none = Positives(np.zeros(len(which) + 1, np.int64), np.empty(0, np.int64))
        values[which] = measure.per_query(Rankings(none, direction="t2i", lists=kept))
    return values


def _stacked(rows: Sequence[NDArray[Any]], width: int) -> NDArray[np.float64]:
    """(rows, width), with 0 at a place without a hit."""
    return np.stack([np.pad(row.astype(np.float64), (0, width - len(row))) for row in rows])


@dataclass(frozen=True)
class _PerQuery:
    """Values in the form that the bootstrap reads of a result: all queries are captions of the one fold."""

    values: Mapping[str, NDArray[np.float64]]
    clusters: NDArray[np.int64]

    @property
    def gallery(self) -> Mapping[str, tuple[int, ...]]:
        return {"t2i": (0,), "i2t": (len(self.clusters),)}

    def __getitem__(self, name: str) -> float:
        return float(np.mean(self.values[name]))

    def per_query(self, name: str) -> NDArray[np.float64]:
        return self.values[name]

    def image_of_query(self, direction: str) -> NDArray[np.int64]:
        return self.clusters if direction == "t2i" else np.empty(0, np.int64)


def as_plain(value: Any) -> Any:
    """A value of dataclasses as JSON can hold it; NaN becomes None."""
    if isinstance(value, dict):
        return {key: as_plain(one) for key, one in value.items()}
    if isinstance(value, Interval):
        return {"low": as_plain(value.low), "high": as_plain(value.high)}
    if isinstance(value, list | tuple):
        return [as_plain(one) for one in value]
    return None if isinstance(value, float) and np.isnan(value) else value
