"""The cheapest setting of an approximate index that loses no more than one allows, measured on the index itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.index.filters import Where
from rungwise.index.stores import ApproximateIndex, Approximation, Store
from rungwise.metrics import NDCG
from rungwise.quality._check import Latency, Progress, StoreAnswers, answered, graded_values, recalls_of
from rungwise.quality._degrees import Grading
from rungwise.quality._queries import Queries

LossIn = Literal["recall", "ndcg"]


@dataclass(frozen=True)
class Trial:
    """Measurement of one setting.

    Attributes:
        settings: Setting of the approximate index.
        recall: Percent of the exact hits that are found; the least under any filter.
        ndcg_loss: Percent of the exact ranking's nDCG that is lost; the most under any filter.
        latency: Latency of a search; the mean over filters.
    """

    settings: Approximation
    recall: float
    ndcg_loss: float
    latency: Latency

    def loss(self, measure: LossIn) -> float:
        """Loss by a measure, as a share from 0 to 1."""
        return round((100 - self.recall if measure == "recall" else max(0.0, self.ndcg_loss)) / 100, 9)


@dataclass(frozen=True)
class Tuning:
    """Result of :func:`tune`.

    Attributes:
        trials: Measurements of all settings, the fastest first.
        before: The setting that the index had.
        measure: Measure in which the loss is stated.
        allowed: The loss that is allowed, as a share.
        chosen: The fastest setting within it; None where none is.
    """

    trials: tuple[Trial, ...]
    before: Approximation
    measure: LossIn
    allowed: float
    chosen: Trial | None

    __repr__ = short_repr

    def frontier(self) -> tuple[Trial, ...]:
        """The settings for which no faster one loses less or as little, the fastest first."""
        kept: list[Trial] = []
        for trial in self.trials:
            if not kept or trial.loss(self.measure) < kept[-1].loss(self.measure):
                kept.append(trial)
        return tuple(kept)

    def plain(self) -> dict[str, Any]:
        """The result as JSON can hold it."""
        return {**asdict(self), "frontier": [asdict(one) for one in self.frontier()]}


def approximate_index(store: Store) -> ApproximateIndex:
    """The approximate index of a store; refuses a store that compares every picture."""
    if (index := store.approximate_index) is None:
        raise UserError(f"there is nothing to tune: {store.about().why}")
    return index


def candidates(worth: Sequence[Approximation], passing: Sequence[int]) -> list[Approximation]:
    """The settings that are tried, the present one first.

    Args:
        worth: Settings that the store proposes, the present one first.
        passing: Number of rows that each filter lets through: for each above ``flat``, comparing them all is tried.

    >>> [one.flat for one in candidates([Approximation(flat=10)], [50, 5])]
    [10, 50]
    """
    more = sorted({count for count in passing if count > worth[0].flat})
    return [*worth, *(replace(one, flat=flat) for flat in more for one in worth)]


def trials_of(store: Store, filters: Mapping[str, Where | None]) -> list[Approximation]:
    """The settings that :func:`tune` will try under these filters."""
    passing = [store.count(where) for where in filters.values() if where is not None]
    return candidates(approximate_index(store).alternatives, passing)


def tune(
    store: Store,
    queries: Queries,
    grading: Grading,
    *,
    k: int = 10,
    filters: Mapping[str, Where | None] | None = None,
    measure: LossIn = "recall",
    allowed: float = 0.001,
    progress: Progress | None = None,
) -> Tuning:
    """Try settings of an approximate index; nothing is written.

    Args:
        store: Store of the pictures.
        queries: Queries to ask.
        grading: Gives the relevance of pictures to the queries.
        k: Length of the lists.
        filters: Filters to ask under, by name; a setting must hold under each. Without a filter if None.
        measure: Measure in which the loss is stated.
        allowed: Loss that is allowed, as a share: 0.001 is one in a thousand.
        progress: Called with 1 after each search; there are ``len(queries) * len(filters) * (1 +
            len(trials_of(...)))``.

    Raises:
        UserError: If there is nothing to tune, or the loss is no share.
    """
    if not 0 <= allowed < 1:
        raise UserError(f"a loss of {allowed} was allowed; it is a share from 0 to below 1, such as 0.001")
    filters = filters or {"": None}
    tried, index = trials_of(store, filters), approximate_index(store)
    measured: list[list[tuple[float, float, StoreAnswers]]] = [[] for _ in tried]
    for where in filters.values():
        exact = answered(store, queries, k, where, exact=True, progress=progress)
        served = [answered(index.trying(settings), queries, k, where, progress=progress) for settings in tried]
        searches = [exact.found, *(one.found for one in served)]
        graded = grading.grade(searches, exact.found, where, k)
        ndcg = [
            NDCG(k).aggregate(graded_values(NDCG(k), found, degrees, graded.ideal))
            for found, degrees in zip(searches, graded.found, strict=True)
        ]
        for own, one, value in zip(measured, served, ndcg[1:], strict=True):
            lost = 100 * (ndcg[0] - value) / ndcg[0] if ndcg[0] else 0.0
            own.append((float(np.nanmean(recalls_of(one.found, exact.found, k))), lost, one))
    trials = sorted(
        (_trial(settings, own) for settings, own in zip(tried, measured, strict=True)),
        key=lambda trial: (trial.latency.p50, trial.loss(measure)),
    )
    within = [trial for trial in trials if trial.loss(measure) <= allowed]
    return Tuning(tuple(trials), tried[0], measure, allowed, within[0] if within else None)


def _trial(settings: Approximation, measured: Sequence[tuple[float, float, StoreAnswers]]) -> Trial:
    latencies = [Latency.of(one.seconds) for _, _, one in measured]
    return Trial(
        settings,
        min(recall for recall, _, _ in measured),
        max(lost for _, lost, _ in measured),
        Latency(float(np.mean([one.p50 for one in latencies])), float(np.mean([one.p99 for one in latencies]))),
    )
