"""Measures of where relevance ends, against nested loops and scikit-learn."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.metrics import (
    DIRECTIONS,
    ECE,
    Brier,
    CheckedDegrees,
    CutF1,
    CutPrecision,
    CutRecall,
    JudgedQueries,
    MatrixSource,
    NoneAUROC,
    measure_all,
    parse,
    rank_all,
)

from . import slow_metrics

T = 0.5
CUTS = (CutF1(T), CutPrecision(T), CutRecall(T))
ALL = (*CUTS, NoneAUROC(T), ECE(), ECE(3), Brier(), Brier(3))


@dataclass(frozen=True)
class Method:
    """A method that reads nothing but one query's scores, so that no order of blocks or candidates matters to it."""

    above: float = 0.4

    def judge(self, scores, direction, queries):
        return JudgedQueries((scores > self.above).sum(axis=1), np.round(scores.max(axis=1), 1), np.clip(scores, 0, 1))


def world(seed=0, images=7, captions=11, gaps=0.0):
    rng = np.random.default_rng(seed)
    scores = rng.random((images, captions)).round(2)
    relevance = rng.choice([0.0, 0.2, 0.5, 1.0], size=scores.shape, p=[0.6, 0.2, 0.1, 0.1])
    relevance[:, 0] = 0
    relevance[rng.random(scores.shape) < gaps] = np.nan
    return scores, relevance


def measured(scores, relevance, measures=ALL, chunk=None, method=None):
    images, captions = scores.shape
    degrees = CheckedDegrees(lambda i, c: relevance[i][:, c], np.arange(images), np.arange(captions), gaps=True)
    owners = np.arange(captions) % images
    source = MatrixSource(scores)
    return measure_all(source, owners, measures, degrees, chunk, ends=method or Method()).values


def rows_of(matrix, direction):
    return matrix if direction == "i2t" else matrix.T


@pytest.mark.parametrize("gaps", [0.0, 0.4])
@pytest.mark.parametrize("chunk", [None, 1, 3])
def test_every_measure_is_what_nested_loops_say(gaps, chunk):
    scores, relevance = world(gaps=gaps)
    found = measured(scores, relevance, chunk=chunk)
    for direction in DIRECTIONS:
        judged = Method().judge(rows_of(scores, direction), direction, None)
        for query, (row, degrees) in enumerate(
            zip(rows_of(scores, direction), rows_of(relevance, direction), strict=True)
        ):
            cut = int(judged.cuts[query])
            expected = judged.degrees[query]
            for measure, reference in (
                (CutF1(T), slow_metrics.cut_f1(row, degrees, cut, T)),
                (CutPrecision(T), slow_metrics.cut_precision(row, degrees, cut, T)),
                (CutRecall(T), slow_metrics.cut_recall(row, degrees, cut, T)),
                (Brier(), slow_metrics.brier(row, degrees, expected, len(row))),
                (Brier(3), slow_metrics.brier(row, degrees, expected, 3)),
                (ECE(), slow_metrics.signed_bins(row, degrees, expected, len(row))),
                (ECE(3), slow_metrics.signed_bins(row, degrees, expected, 3)),
            ):
                np.testing.assert_allclose(found[direction, measure][query], reference, atol=1e-12)


@pytest.mark.parametrize("k", [None, 4])
def test_the_calibration_error_of_all_pairs_is_that_of_one_long_list(k):
    """Every query has as many pairs, so that weighing queries alike is weighing pairs alike."""
    scores, relevance = world(3, images=9, captions=40)
    measure = ECE(k)
    got = measure.aggregate(measured(scores, relevance, [measure])["i2t", measure])
    kept = [slow_metrics.ranking(row)[:k] for row in scores]
    expected = np.concatenate([row[own] for row, own in zip(scores, kept, strict=True)])
    actual = np.concatenate([row[own] for row, own in zip(relevance, kept, strict=True)])
    assert got == pytest.approx(slow_metrics.calibration_error(expected, actual), abs=1e-12)


def test_scores_of_a_scale_are_those_of_shares_of_it():
    scores, relevance = world(4)

    class Stretched:
        def judge(self, scores, direction, queries):
            judged = Method().judge(scores, direction, queries)
            return JudgedQueries(judged.cuts, judged.beliefs, 10 * judged.degrees)

    plain = measured(scores, relevance)
    wide = measured(scores, 10 * relevance, [ECE(scale=10), Brier(3, scale=10)], method=Stretched())
    np.testing.assert_allclose(wide["t2i", ECE(scale=10)], plain["t2i", ECE()], atol=1e-12)
    np.testing.assert_allclose(wide["t2i", Brier(3, scale=10)], plain["t2i", Brier(3)], atol=1e-12)
    with pytest.raises(UserError, match=r"ECE: a degree is .*, beyond its scale of 1; .* such as ECE\(scale=10\)"):
        measured(scores, 10 * relevance, [ECE()], method=Stretched())


@pytest.mark.parametrize("seed", range(5))
def test_the_area_and_the_squared_error_are_those_of_scikit_learn(seed):
    from sklearn.metrics import brier_score_loss, roc_auc_score

    rng = np.random.default_rng(seed)
    beliefs, something = rng.random(60).round(1), rng.random(60) < 0.6
    rows = np.stack([beliefs, something], axis=1)
    assert NoneAUROC(T).aggregate(rows) == pytest.approx(roc_auc_score(something, beliefs), abs=1e-12)
    weights = rng.integers(0, 4, (3, 60)).astype(float)
    drawn = NoneAUROC(T).aggregate_draws(rows, weights)
    for own, area in zip(weights, drawn, strict=True):
        assert area == pytest.approx(roc_auc_score(something, beliefs, sample_weight=own), abs=1e-12)

    binary = (rng.random((1, 60)) < 0.3).astype(float)
    expected = rng.random((1, 60))
    said = JudgedQueries(np.array([0]), np.array([0.0]), expected)
    [got] = Brier().per_query(rank_all(expected, [[]], binary, judged=said))
    assert got == pytest.approx(brier_score_loss(binary[0], expected[0]), abs=1e-12)


def test_the_area_has_no_value_without_both_kinds_of_queries():
    assert math.isnan(NoneAUROC(T).aggregate(np.array([[0.5, 1.0], [0.7, 1.0]])))
    assert math.isnan(NoneAUROC(T).aggregate(np.full((2, 2), np.nan)))
    [draw] = NoneAUROC(T).aggregate_draws(np.array([[0.5, 1.0], [0.4, 0.0]]), np.array([[2.0, 0.0]]))
    assert math.isnan(draw)
    assert math.isnan(ECE().aggregate(np.full((2, 10), np.nan)))


def test_beliefs_of_any_sign_and_size_are_compared():
    """Some methods believe by the best score, which an order similarity keeps below 0."""
    rows = np.array([[-1e-30, 1.0], [0.0, 1.0], [-3.0, 0.0], [-1e-30, 0.0]])
    assert NoneAUROC(T).aggregate(rows) == (1 + 0.5 + 1 + 1) / 4


@pytest.mark.parametrize("measure", [NoneAUROC(T), ECE()])
def test_numbers_of_single_queries_come_to_the_whole(measure):
    """For the area their mean over the queries of one kind is the area; for the error each is that of one query."""
    rng = np.random.default_rng(1)
    if isinstance(measure, NoneAUROC):
        values = np.stack([rng.random(30).round(1), rng.random(30) < 0.5], axis=1)
        own = measure.of_query(values)
        for kind in (0, 1):
            assert own[values[:, 1] == kind].mean() == pytest.approx(measure.aggregate(values))
    else:
        values = rng.normal(size=(30, 10)) / 100
        alone = [measure.aggregate(row[None]) for row in values]
        np.testing.assert_allclose(measure.of_query(values), alone)


def test_what_is_empty_counts_as_the_definition_says():
    nothing = JudgedQueries(np.array([0]), np.array([0.1]))
    one = JudgedQueries(np.array([1]), np.array([0.1]))
    no_degree, right = [[0.1, 0.2]], [[0.9, 0.2]]
    table = [
        (nothing, no_degree, (100, 100, 100)),
        (one, no_degree, (0, 0, 100)),
        (nothing, right, (0, 100, 0)),
        (one, right, (100, 100, 100)),
    ]
    for judged, relevance, wanted in table:
        rankings = rank_all([[0.9, 0.8]], [[]], relevance, judged=judged)
        assert tuple(measure.per_query(rankings)[0] for measure in CUTS) == wanted
    rankings = rank_all([[0.9, 0.8]], [[]], no_degree, judged=nothing)
    assert CutF1(T).remarks(rankings) == {"nothing relevant and nothing shown, counted 100": 1}
    assert CutPrecision(T).remarks(rankings) == {"nothing shown, counted 100": 1}
    assert CutRecall(T).remarks(rankings) == {"nothing relevant, counted 100": 1}
    assert NoneAUROC(T).remarks(rankings) == {"have nothing relevant": 1}


def test_hits_that_nobody_judged_are_neither_right_nor_wrong():
    nan = float("nan")
    rankings = rank_all(
        [[0.9, 0.8, 0.7, 0.1]],
        [[]],
        [[nan, 1.0, nan, 0.6]],
        judged=JudgedQueries(np.array([3]), np.array([0.5]), np.full((1, 4), 0.5)),
    )
    assert [round(float(m.per_query(rankings)[0]), 2) for m in CUTS] == [66.67, 100.0, 50.0]
    assert Brier().per_query(rankings)[0] == pytest.approx((0.25 + 0.01) / 2)
    nobody = rank_all(
        [[0.9, 0.8]], [[]], [[nan, nan]], judged=JudgedQueries(np.array([1]), np.ones(1), np.zeros((1, 2)))
    )
    for measure in ALL:
        assert np.isnan(measure.per_query(nobody)).all()
        assert measure.remarks(nobody)["not judged, left out"] == 1


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), chunk=st.integers(1, 12))
def test_neither_blocks_nor_the_order_of_candidates_matter(seed, chunk):
    rng = np.random.default_rng(seed)
    scores, relevance = world(seed)
    scores = rng.permutation(scores.size).reshape(scores.shape) / scores.size  # no ties
    whole = measured(scores, relevance, chunk=100)
    for key, values in measured(scores, relevance, chunk=chunk).items():
        np.testing.assert_array_equal(values, whole[key])
    order = rng.permutation(scores.shape[1])
    shuffled = measured(scores[:, order], relevance[:, order])
    for measure in ALL:
        np.testing.assert_allclose(shuffled["i2t", measure], whole["i2t", measure], atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_doubling_every_query_changes_no_number(seed):
    scores, relevance = world(seed)
    found = measured(scores, relevance)
    for measure in ALL:
        values = found["i2t", measure]
        once, twice = measure.aggregate(values), measure.aggregate(np.concatenate([values, values]))
        [drawn] = measure.aggregate_draws(values, np.full((1, len(values)), 2.0))
        assert once == pytest.approx(twice, nan_ok=True)
        assert once == pytest.approx(drawn, nan_ok=True)


def test_the_best_cut_of_each_query_is_the_limit():
    scores, relevance = world(6, images=20, captions=15)

    class Best:
        def judge(self, scores, direction, queries):
            cuts = []
            for row, degrees in zip(scores, rows_of(relevance, direction)[queries], strict=True):
                values = [slow_metrics.cut_f1(row, degrees, cut, T) for cut in range(len(row) + 1)]
                cuts.append(int(np.argmax(values)))
            return JudgedQueries(np.array(cuts), np.zeros(len(cuts)))

    best = measured(scores, relevance, [CutF1(T)], method=Best())["t2i", CutF1(T)]
    for above in (-1, 0.2, 0.5, 0.9, 2):
        assert (measured(scores, relevance, [CutF1(T)], method=Method(above))["t2i", CutF1(T)] <= best + 1e-9).all()


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("CutF1(0.5)", "CutF1(t=0.5)"),
        ("CutF1( t = 0.50 )", "CutF1(t=0.5)"),
        ("CutPrecision(1)", "CutPrecision(t=1)"),
        ("CutRecall(-0.25)", "CutRecall(t=-0.25)"),
        ("NoneAUROC", "NoneAUROC(t=0.5)"),
        ("NoneAUROC(1e-3)", "NoneAUROC(t=0.001)"),
        ("ECE", "ECE"),
        ("ECE@10", "ECE@10"),
        ("Brier@10(scale=5)", "Brier@10(scale=5)"),
        ("ECE(10)", "ECE(scale=10)"),
    ],
)
def test_names_are_read_and_printed(text, printed):
    assert str(parse(text)) == printed
    assert parse(printed) == parse(text)


def test_thresholds_written_alike_are_the_same_measure():
    assert parse("CutF1(0.5)") == parse("CutF1(t=0.50)") == CutF1(np.float32(0.5))
    assert len({parse("CutF1(1)"), CutF1(1.0), CutF1(1)}) == 1


@pytest.mark.parametrize(
    "text",
    [
        *("CutF1", "CutF1()", "CutF1@5(0.5)", "CutF1(inf)", "CutF1(t=nan)", "CutF1(t=x)", "CutF1(0.5,t=0.6)"),
        *("CutF1(t=1_0)", "CutF1(t=٣)", "ECE@0", "ECE(scale=0)", "ECE(scale=-1)", "ECE(5,6)", "CutF1(t=1,non_gt)"),
    ],
)
def test_what_is_no_threshold_is_refused_in_one_line(text):
    with pytest.raises(UserError) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


def test_what_a_method_must_say_is_asked_for():
    scores, relevance = world()
    images, captions = scores.shape
    degrees = CheckedDegrees(lambda i, c: relevance[i][:, c], np.arange(images), np.arange(captions))
    with pytest.raises(UserError, match="needs a method that says where relevance ends; give ends="):
        measure_all(MatrixSource(scores), np.arange(captions) % images, [CutF1(T)], degrees)
    with pytest.raises(UserError, match="this one only cuts; give a Calibration as ends"):
        ECE().per_query(rank_all(scores, [[]] * images, relevance, judged=JudgedQueries(np.zeros(7, int), np.zeros(7))))
    with pytest.raises(UserError, match="give ends="):
        CutF1(T).per_query(rank_all(scores, [[]] * images, relevance))
