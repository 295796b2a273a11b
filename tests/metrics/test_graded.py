"""Tests rungwise.metrics._graded: the measure whose values are curves; the others are tested with the pass."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from rungwise.core import UserError
from rungwise.evaluation import Result, compare, evaluate
from rungwise.metrics import NDCG, CheckedDegrees, MatrixSource, MeanDegree, measure_all, parse, rank_all

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
