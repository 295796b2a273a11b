from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import pairwise

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.index import Condition, Where
from rungwise.index.stores import ApproximateIndex, Approximation, StoreFacts, StoreHits
from rungwise.index.stores._approximation import IndexKind, alternatives
from rungwise.quality import ModelGrading, own_captions, own_pictures, trials_of, tune
from rungwise.quality._tuning import candidates
from tests.index.toy_store import ToyStore
from tests.quality.test_check import made

FOUND_ALL = 100
"""From this ef on, the store below finds everything."""


class Tuned(ToyStore):
    """Finds more, and takes longer, the larger ef is; a filter under which few rows pass is answered exactly."""

    settings = Approximation(ef=400, flat=2)

    def __init__(self, *arguments, **options) -> None:
        super().__init__(*arguments, **options)
        self.asked: list[int] = []

    @property
    def approximate_index(self) -> ApproximateIndex:
        def trying(settings: Approximation) -> Tuned:
            tried = copy(self)
            tried.settings = settings
            return tried

        others = alternatives(self.settings, len(self.rows))
        return ApproximateIndex(self.settings, others, trying, lambda settings: setattr(self, "settings", settings))

    def search(self, vectors, k=10, where=None, *, metric=None, exact=False) -> StoreHits:
        where = where or Where()
        exact = exact or bool(where.conditions and super().count(where) <= self.settings.flat)
        if not exact:
            self.asked.append(self.settings.ef)
            if self.settings.ef < FOUND_ALL:
                missed = frozenset(list(self.rows)[:: 1 + self.settings.ef])
                where = where.and_without(missed)
        return super().search(vectors, k, where, metric=metric)

    def about(self) -> StoreFacts:
        return StoreFacts("tuned", exact=False, why="for tests")


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search takes as many milliseconds as ef and refine say together."""
    from rungwise.quality import _tuning as tuning

    real = tuning.answered

    def answered(store, queries, k, where=None, *, exact=False, progress=None):
        found = real(store, queries, k, where, exact=exact, progress=progress)
        took = (store.settings.ef + store.settings.refine) / 1000
        return type(found)(found.found, (took,) * len(queries))

    monkeypatch.setattr(tuning, "answered", answered)


def efs(trials: Sequence) -> list[int]:
    return [trial.settings.ef for trial in trials]


@pytest.mark.usefixtures("steady")
@pytest.mark.parametrize("measure", ["recall", "ndcg"])
def test_the_fastest_setting_within_the_loss_is_chosen(measure) -> None:
    index = made(Tuned)
    queries = own_pictures(index, 30)
    done: list[int] = []
    found = tune(
        index.picture_store, queries, ModelGrading(index, queries), measure=measure, allowed=0.0, progress=done.append
    )
    assert found.chosen is not None
    assert (found.chosen.settings.ef, found.chosen.settings.refine) == (FOUND_ALL, 1)
    assert found.chosen.loss(measure) == 0
    assert found.before == Tuned.settings
    assert len(done) == 30 * (1 + len(found.trials)) == 30 * (1 + len(trials_of(index.picture_store, {"": None})))
    assert efs(found.trials) == sorted(efs(found.trials))
    frontier = found.frontier()
    assert all(one.loss(measure) > other.loss(measure) for one, other in pairwise(frontier))
    assert frontier[-1] == found.chosen
    worse = tune(index.picture_store, queries, ModelGrading(index, queries), measure=measure, allowed=0.5)
    assert worse.chosen is not None
    assert worse.chosen.settings.ef == 16


@pytest.mark.usefixtures("steady")
def test_a_loss_that_nothing_keeps_within_leaves_nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.quality.test_tuning.FOUND_ALL", 1 << 30)
    index = made(Tuned)
    queries = own_pictures(index, 30)
    assert tune(index.picture_store, queries, ModelGrading(index, queries), allowed=0.0).chosen is None


@pytest.mark.usefixtures("steady")
def test_a_setting_must_hold_under_the_filter_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.quality.test_tuning.FOUND_ALL", 1 << 30)
    index = made(Tuned)
    queries = own_captions(index, 20)
    where = Where((Condition("year", "<", 2003),))
    passing = index.picture_store.count(where)
    found = tune(index.picture_store, queries, ModelGrading(index, queries), filters={"y": where}, allowed=0.0)
    assert found.chosen is not None
    assert found.chosen.settings.flat == passing > Tuned.settings.flat


@pytest.mark.parametrize("kind", ["graph", "codes", "lists"])
def test_the_present_setting_is_tried_first_and_none_twice(kind: IndexKind) -> None:
    before = Approximation(ef=100, refine=4, flat=10, kind=kind)
    tried = candidates(alternatives(before, 1_000_000), [5, 50, 50])
    assert tried[0] == before
    assert len(set(tried)) == len(tried)
    assert {one.flat for one in tried} == {10, 50}
    assert ({one.probes for one in tried} == {before.probes}) == (kind == "graph")
    assert ({one.ef for one in tried} == {before.ef}) != (kind == "graph")
    assert {one.kind for one in tried} == {kind}


def test_what_cannot_be_tuned_is_refused() -> None:
    exact = made(ToyStore)
    queries = own_captions(exact, 2)
    with pytest.raises(UserError, match="nothing to tune"):
        tune(exact.picture_store, queries, ModelGrading(exact, queries))
    index = made(Tuned)
    with pytest.raises(UserError, match="a share from 0"):
        tune(index.picture_store, queries, ModelGrading(index, queries), allowed=1.0)


def test_everything_is_plain_for_json() -> None:
    index = made(Tuned)
    queries = own_captions(index, 2)
    plain = tune(index.picture_store, queries, ModelGrading(index, queries)).plain()
    assert plain["before"] == {"probes": 4, "ef": 400, "refine": 4, "flat": 2, "kind": "graph"}
    assert plain["frontier"][0]["settings"]["ef"] in (16, 32, 64, 100, 150, 250, 400)
    np.testing.assert_array_less(0, [one["latency"]["p50"] for one in plain["trials"]])
