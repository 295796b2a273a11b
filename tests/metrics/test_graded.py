"""Tests rungwise.metrics._graded: the measure whose values are curves; the others are tested with the pass."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from rungwise.core import UserError
from rungwise.evaluation import Result, compare, evaluate
from rungwise.metrics import (
    NDCG,
    CheckedDegrees,
    JudgedAP,
    JudgedNDCG,
    MatrixSource,
    MeanDegree,
    measure_all,
    parse,
    rank_all,
)

from . import slow_metrics

OWNERS = np.repeat(np.arange(9), 3)


def degrees_of(matrix):
    return CheckedDegrees(lambda i, c: matrix[i][:, c], *(np.arange(length) for length in matrix.shape))


def evaluated(seed, measures=("MeanDegree@4", "R@1"), **given):
    rng = np.random.default_rng(seed)
    relevance = np.random.default_rng(99).random((9, 27))
    similarity = relevance + rng.normal(size=relevance.shape) * given.pop("noise", 0.3)
    return evaluate(
        similarity=similarity, image_of_caption=OWNERS, relevance=relevance, measures=list(measures), **given
    )


def test_the_number_is_the_mean_of_the_degrees_at_the_first_ranks():
    result = evaluated(0)
    for way, gallery in (("i2t", 27), ("t2i", 9)):
        rows = result.per_query(f"{way}/MeanDegree@4")
        curves = MeanDegree(4).curves(rows)
        assert rows.shape == (result.queries[way], 9)
        assert result[f"{way}/MeanDegree@4"] == pytest.approx(curves.retrieved.mean())
        assert (np.diff(curves.ideal, axis=1) <= 0).all()
        assert (np.cumsum(curves.ideal - curves.retrieved, axis=1) >= -1e-12).all()
        assert (curves.chance < curves.ideal.mean(axis=1)).all()
        assert result.gallery[way] == (gallery,)
        low, high = result.interval(f"{way}/MeanDegree@4")
        assert low < result[f"{way}/MeanDegree@4"] < high
    assert result.units["i2t/MeanDegree@4"] == "degree"


def test_a_random_order_has_the_mean_of_all_degrees_on_average():
    rng = np.random.default_rng(3)
    relevance = rng.random((1, 12))
    rows = np.concatenate(
        [MeanDegree(5).per_query(rank_all(rng.random((1, 12)), [[0]], relevance)) for _ in range(4000)]
    )
    curves = MeanDegree(5).curves(rows)
    np.testing.assert_allclose(curves.retrieved.mean(axis=0), curves.chance[0], atol=0.02)


def test_results_are_kept_read_and_compared(tmp_path):
    worse, better = evaluated(1, noise=2.0), evaluated(1, noise=0.05)
    worse.to_json(tmp_path / "a.json")
    again = Result.from_json(tmp_path / "a.json")
    assert again == worse
    np.testing.assert_array_equal(again.per_query("t2i/MeanDegree@4"), worse.per_query("t2i/MeanDegree@4"))
    found = {one.name: one for one in compare([again, better], ["t2i/MeanDegree@4"]).differences}
    assert found["t2i/MeanDegree@4"].verdict == "better"


@pytest.mark.parametrize("k", [1, 9, 27, 40])
def test_a_gallery_may_be_shorter_than_k(k, tmp_path):
    result = evaluated(0, [f"MeanDegree@{k}"])
    for way, gallery in (("i2t", 27), ("t2i", 9)):
        rows = result.per_query(f"{way}/MeanDegree@{k}")
        known = ~np.isnan(MeanDegree(k).curves(rows).retrieved)
        assert (known.sum(axis=1) == min(k, gallery)).all()
        if k >= gallery:
            assert result[f"{way}/MeanDegree@{k}"] == pytest.approx(MeanDegree(k).curves(rows).chance.mean())
    result.to_json(tmp_path / "a.json")
    assert Result.from_json(tmp_path / "a.json") == result


@given(st.integers(0, 1000), st.integers(1, 12), st.sampled_from([1, 2, 5, 100]))
def test_no_number_depends_on_the_blocks_or_on_the_lists_of_the_pass(seed, k, chunk):
    rng = np.random.default_rng(seed)
    scores, relevance = rng.random((9, 27), np.float32), rng.random((9, 27), np.float32)
    measure = parse(f"MeanDegree@{k}")

    def measured(**given):
        return measure_all(MatrixSource(scores), OWNERS, [measure], degrees_of(relevance), **given).values

    whole, blocks = measured(), measured(chunk=chunk)
    for way, other in (("i2t", scores), ("t2i", scores.T)):
        np.testing.assert_array_equal(whole[way, measure], blocks[way, measure])
        degrees = relevance if way == "i2t" else relevance.T
        alone = measure.per_query(rank_all(other, [[]] * len(other), degrees, way))
        np.testing.assert_array_equal(whole[way, measure], alone)


def test_negative_degrees_have_no_ideal():
    with pytest.raises(UserError, match="negative"):
        MeanDegree(2).per_query(rank_all([[0.1, 0.2]], [[0]], [[-0.5, 0.2]]))


@st.composite
def tied_queries(draw):
    """Scores of a query, many of them equal and some negative, and degrees."""
    size = draw(st.integers(2, 6))
    scores = draw(st.lists(st.sampled_from([-1.5, -0.5, 0.0, 0.25]), min_size=size, max_size=size))
    degrees = draw(st.lists(st.floats(0, 5, width=32), min_size=size, max_size=size))
    return scores, degrees


@settings(max_examples=40)
@given(tied_queries(), st.integers(1, 7))
def test_expected_ndcg_is_the_mean_over_every_order_of_ties(query, k):
    scores, degrees = query
    for kind in (np.float32, np.float64):
        rankings = rank_all(np.array([scores], kind), [[0]], np.array([degrees], kind))
        (got,) = NDCG(k, ties="expected").per_query(rankings)
        wanted = slow_metrics.discounted_over_orders(scores, [float(kind(one)) for one in degrees], k)
        assert got == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@settings(max_examples=40)
@given(tied_queries(), st.integers(1, 7))
def test_expected_ndcg_is_that_of_scikit_learn(query, k):
    scores, degrees = (np.array([one]) for one in query)
    (got,) = NDCG(k, ties="expected").per_query(rank_all(scores, [[0]], degrees))
    assert got == pytest.approx(100 * ndcg_score(degrees, scores, k=k), rel=1e-9, abs=1e-9)


def test_without_ties_both_are_one_to_the_bit():
    result = evaluated(5, ("nDCG@3", "nDCG@3(ties=expected)"))
    for way in ("i2t", "t2i"):
        np.testing.assert_array_equal(
            result.per_query(f"{way}/nDCG@3"), result.per_query(f"{way}/nDCG@3(ties=expected)")
        )


def judged_rows(seed, queries=40, candidates=17):
    """Scores with ties, and degrees of which most are missing: some rows have none, and some are all 0."""
    draw = np.random.default_rng(seed)
    scores = draw.integers(0, 9, (queries, candidates)) / 7
    relevance = draw.integers(0, 4, (queries, candidates)) / 3.0
    relevance[draw.random((queries, candidates)) < 0.6] = np.nan
    relevance[0], relevance[1] = np.nan, 0.0
    return scores, relevance


@pytest.mark.parametrize("seed", range(5))
def test_judged_measures_are_those_of_the_candidates_with_a_degree(seed):
    scores, relevance = judged_rows(seed)
    rankings = rank_all(scores, [[0]] * len(scores), relevance=relevance)
    for k in (1, 3, 100):
        slow = [slow_metrics.judged_ndcg(s, r, k) for s, r in zip(scores, relevance, strict=True)]
        np.testing.assert_allclose(JudgedNDCG(k).per_query(rankings), slow, rtol=1e-12)
    for t in (0.3, 1.0, 7.0):
        slow = [slow_metrics.judged_ap(s, r, t) for s, r in zip(scores, relevance, strict=True)]
        np.testing.assert_allclose(JudgedAP(t).per_query(rankings), slow, rtol=1e-12)


def test_judged_measures_are_those_of_scikit_learn_where_no_scores_tie():
    scores, relevance = judged_rows(7)
    scores = scores + np.arange(scores.shape[1]) * 1e-6
    rankings = rank_all(scores, [[0]] * len(scores), relevance=relevance)
    ndcg, ap = JudgedNDCG(5).per_query(rankings), JudgedAP(0.5).per_query(rankings)
    for row, (own, degrees) in enumerate(zip(scores, relevance, strict=True)):
        known = ~np.isnan(degrees)
        if known.sum() > 1 and np.nansum(degrees):
            assert ndcg[row] == pytest.approx(100 * ndcg_score([degrees[known]], [own[known]], k=5))
        if (degrees >= 0.5).any():
            assert ap[row] == pytest.approx(100 * average_precision_score(degrees[known] >= 0.5, own[known]))


def test_what_nobody_judged_changes_nothing_and_is_counted():
    scores, relevance = judged_rows(3)
    wider = np.hstack([scores, np.full((len(scores), 2), 9.0)])
    unknown = np.hstack([relevance, np.full((len(scores), 2), np.nan)])
    for measure in (JudgedNDCG(4), JudgedAP(0.5)):
        one, other = (rank_all(s, [[0]] * len(s), relevance=r) for s, r in ((scores, relevance), (wider, unknown)))
        np.testing.assert_array_equal(measure.per_query(one), measure.per_query(other))
        missing = np.isnan(measure.per_query(one)).sum()
        assert measure.remarks(one) == {"nothing relevant among what was judged, left out": missing}


def test_judged_gains_are_not_negative():
    with pytest.raises(UserError, match=r"a degree of -1 is negative, which no gain can be; add a number to all"):
        JudgedNDCG(3).per_query(rank_all([[0.9, 0.8]], [[0]], relevance=[[np.nan, -1.0]]))


def test_judged_measures_of_an_evaluation_take_gaps():
    degrees = np.array([[np.nan, 1.0], [0.5, 0.0]])
    result = evaluate(
        similarity=np.array([[0.9, 0.1], [0.8, 0.2]]),
        image_of_caption=[0, 1],
        relevance=degrees,
        measures=["JudgedNDCG@10", "JudgedAP(0.5)"],
    )
    assert result.numbers == {
        "i2t/JudgedNDCG@10": 100.0,
        "t2i/JudgedNDCG@10": pytest.approx((100 + 100 / np.log2(3)) / 2),
        "i2t/JudgedAP(t=0.5)": 100.0,
        "t2i/JudgedAP(t=0.5)": pytest.approx((100 + 50) / 2),
    }
