"""Also tests rungwise.calibration._kind_comparison and rungwise.calibration.unrelated._unrelated_texts."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.calibration import (
    NOTHING,
    OTHER_UNRELATED,
    UNRELATED,
    UNRELATED_PHRASES,
    Calibration,
    CalibrationComparison,
    KindComparison,
    Known,
    TrainingQueries,
    compared,
)
from rungwise.calibration._kind_comparison import interval
from rungwise.core import UserError

CANDIDATES = 300


def made(queries: int = 90, lift: float = 3.0, seed: int = 0, unrelated: int = 20) -> TrainingQueries:
    """Queries of two kinds, each with some relevant candidates that score higher, and texts that fit nothing."""
    rng = np.random.default_rng(seed)
    relevance = (rng.random((queries, CANDIDATES)) < 0.03).astype(np.float32)
    relevance[:, 0] = 1
    scores = rng.normal(0.1, 0.05, relevance.shape) + lift * 0.05 * relevance
    nothing = rng.normal(0.1, 0.05, (unrelated, CANDIDATES))
    whole = queries + unrelated
    return TrainingQueries(
        tuple(f"query {at}" for at in range(whole)),
        (*("phrase", "caption") * (queries // 2), *(NOTHING,) * unrelated),
        np.arange(whole),
        np.concatenate([scores, nothing]),
        np.concatenate([relevance, np.zeros_like(nothing)]),
        np.zeros((whole, CANDIDATES)),
        (Known(),) * whole,
        1.0,
        rng.normal(0.1, 0.05, (len(UNRELATED), CANDIDATES)),
        (Known(),) * len(UNRELATED),
    )


class Shows:
    """Judges so many of the best hits to be shown, on the first rung."""

    learnt = ()

    def __init__(self, count: int) -> None:
        self.count = count

    def judge_all(self, scores: np.ndarray, known: Known | None):
        order = np.argsort(-scores, kind="stable")
        rungs = np.where(np.arange(len(scores)) < self.count, 1, 4)
        return order, type("Judged", (), {"rungs": rungs, "belief": 0.5})()


def test_what_is_shown_is_measured_as_loops_measure_it():
    queries = made(20)
    rng = np.random.default_rng(1)
    relevance = np.where(rng.random(queries.relevance.shape) < 0.1, np.nan, queries.relevance)
    overlooked = rng.choice([0.0, 0.25, 0.5], relevance.shape)
    stated = (rng.random(relevance.shape) < 0.02).astype(float)
    known = tuple(Known(stated=row) for row in stated)
    queries = replace(queries, relevance=relevance, overlooked=overlooked, known=known)
    found = queries.judged_by(Shows(5))
    for at in range(len(queries)):
        best = sorted(range(CANDIDATES), key=lambda one: (-queries.similarity[at, one], one))[:5]
        holding = [one for one in range(CANDIDATES) if stated[at, one] == 1][:50]
        shown = set(best) | set(holding)
        right = sum(relevance[at, one] == 1 for one in shown)
        true = [
            0.0 if math.isnan(degree) else 1.0 if degree == 1 else overlooked[at, one]
            for one, degree in enumerate(relevance[at])
        ]
        judged = sum(not math.isnan(relevance[at, one]) for one in shown)
        assert found.f1[at] == pytest.approx(200 * sum(true[one] for one in shown) / (judged + sum(true)))
        assert found.shown[at] == len(shown)
        assert found.named[at].tolist() == [5, 0, len(shown) - 5]
        assert found.right[at].sum() == right


def test_nothing_shown_where_nothing_is_relevant_is_right():
    queries = made(20).only(np.arange(20, 40))
    assert queries.judged_by(Shows(0)).f1.tolist() == [100.0] * 20
    assert queries.judged_by(Shows(1)).f1.tolist() == [0.0] * 20


def test_a_better_calibration_takes_the_place_of_a_worse_one_and_not_the_other_way_round():
    queries = made()
    new, found = compared(queries, Shows(60), source="made", model_fingerprint="ab")
    assert found.harmless
    assert {kind.kind for kind in found.kinds} == {"phrase", "caption", NOTHING}
    assert {kind.kind: kind.queries for kind in found.kinds} == {"phrase": 45, "caption": 45, NOTHING: 20}
    assert all(kind.before < kind.after and kind.low <= kind.after - kind.before <= kind.high for kind in found.kinds)
    assert new.kinds == found.kinds
    assert not new.needs_texts
    assert (new.source, new.model_fingerprint) == ("made", "ab")
    assert sum(found.named_after) == pytest.approx(1)
    assert len(found.examples) == 110
    _, worse = compared(queries, Oracle(queries), source="", model_fingerprint="")
    assert not worse.harmless
    assert all(kind.high < 0 for kind in worse.kinds if kind.kind != NOTHING)
    assert worse.reason == ""


def test_what_is_the_same_does_no_harm():
    values = np.random.default_rng(0).random(30) * 100
    same = KindComparison.of("phrase", values, values, np.arange(30), 0.5, math.nan)
    assert (same.low, same.high, same.before) == (0, 0, same.after)
    assert same.harmless
    for loss, harmless in ((0.9, True), (1.1, False)):
        assert KindComparison.of("phrase", values, values - loss, np.arange(30), 0.5, 0.5).harmless == harmless


class Oracle:
    """Shows what is relevant, or a share of it."""

    learnt = ()

    def __init__(self, queries: TrainingQueries, share: float = 1.0) -> None:
        kept = np.random.default_rng(99).random(queries.relevance.shape) < share
        rows = zip(queries.similarity, queries.relevance * kept, strict=True)
        self.of = {row.tobytes(): relevant for row, relevant in rows}

    def judge_all(self, scores: np.ndarray, known: Known | None):
        rungs = np.where(self.of[scores.tobytes()] == 1, 1, 4)
        return np.arange(len(scores)), type("Judged", (), {"rungs": rungs, "belief": 0.5})()


def test_a_single_kind_that_loses_is_enough_to_keep_what_judges_now():
    def kind(name: str, low: float) -> KindComparison:
        return KindComparison(name, 30, 50.0, 60.0, low, 20.0, math.nan, 0.5)

    assert CalibrationComparison((kind("phrase", -1.0), kind(NOTHING, -5.0))).harmless
    assert not CalibrationComparison((kind("phrase", -1.1), kind("caption", 9.0))).harmless
    assert not CalibrationComparison((kind("phrase", 5.0), kind(NOTHING, -5.1))).harmless
    assert not CalibrationComparison().harmless


def test_with_too_few_queries_nothing_is_compared():
    few = made(20, unrelated=10).only(np.arange(0, 20))
    lone = replace(few, relevance=np.where(np.arange(20)[:, None] < 19, np.nan, few.relevance))
    lone.relevance[0, :] = 0
    with pytest.raises(UserError, match="2 queries with a judged candidate"):
        compared(lone, Shows(3), source="", model_fingerprint="")
    _, found = compared(few, Shows(3), source="", model_fingerprint="")
    assert sum(kind.queries for kind in found.kinds) == 20
    grouped = replace(few, groups=np.zeros(20, int))
    _, found = compared(grouped, Shows(3), source="", model_fingerprint="")
    assert found.reason == "the queries are too few, or too alike, to compare by them"
    assert not found.harmless


def test_an_interval_holds_the_mean_and_groups_are_drawn_whole():
    rng = np.random.default_rng(0)
    values = np.repeat(rng.normal(size=30), 5)
    alone, together = interval(values, np.arange(150)), interval(values, np.repeat(np.arange(30), 5))
    assert alone[0] < values.mean() < alone[1]
    assert together[1] - together[0] > 1.5 * (alone[1] - alone[0])
    assert interval(np.zeros(9), np.arange(9)) == (0.0, 0.0)


def test_a_calibration_that_harms_without_texts_says_that_it_needs_them():
    """Texts of the hits tell everything here and scores nothing: without texts, what is shown is as good as drawn."""
    queries = made(90, lift=0.0)
    rng = np.random.default_rng(5)
    known, foreign = (
        tuple(Known(stated=np.zeros(CANDIDATES), caption_scores=row + rng.normal(0, 0.05, CANDIDATES)) for row in of)
        for of in (0.5 * queries.relevance, np.zeros(queries.unrelated.shape))
    )
    told = replace(queries, known=known, unrelated_known=foreign)
    new, found = compared(told, Oracle(told, 0.1), source="", model_fingerprint="")
    assert found.harmless
    assert new.needs_texts


def test_what_is_kept_of_a_comparison_is_read_back(tmp_path: Path):
    new, _ = compared(made(), Shows(60), source="made", model_fingerprint="")
    kinds = (*new.kinds, KindComparison("given", 3, 1.5, 2.5, -1.0, 2.0, math.nan, 1 / 3))
    replace(new, kinds=kinds, needs_texts=True).save(tmp_path / "c.json")
    read = Calibration.load(tmp_path / "c.json")
    assert repr(read.kinds) == repr(kinds)  # NaN is not equal to itself
    assert read.needs_texts
    for wrong in ([], {"kind": 3}, {**kinds[0].to_json(), "queries": 1.5}, {**kinds[0].to_json(), "low": "x"}):
        with pytest.raises(UserError, match="'kinds'"):
            KindComparison.from_json(wrong)


def test_shapes_that_do_not_fit_are_refused():
    queries = made(20)
    with pytest.raises(UserError, match="give one kind, group"):
        replace(queries, kinds=queries.kinds[1:])


def test_unrelated_texts_are_each_there_once():
    every = (*UNRELATED, *UNRELATED_PHRASES, *OTHER_UNRELATED)
    assert len(set(every)) == len(every)
    assert all(text == text.strip() and text for text in every)


def test_a_kind_of_which_there_are_few_counts_to_the_most_frequent():
    queries = made()
    rare = replace(queries, kinds=("value", "pair", *queries.kinds[2:]))
    _, found = compared(rare, Shows(60), source="", model_fingerprint="")
    assert {kind.kind for kind in found.kinds} == {"phrase", "caption", NOTHING}
    assert sum(kind.queries for kind in found.kinds) == 110
