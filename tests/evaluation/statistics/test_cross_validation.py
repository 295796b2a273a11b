import numpy as np
import pytest

from rungwise.calibration import Calibration, Known
from rungwise.core import UserError
from rungwise.evaluation.statistics import cross_validated, has_enough


@pytest.fixture(scope="module")
def world():
    """Scores that say much, of queries of which one in five has nothing relevant."""
    rng = np.random.default_rng(0)
    relevance = (rng.random((100, 150)) < 0.04).astype(float)
    relevance[::5] = 0
    scores = rng.normal(0.1, 0.05, relevance.shape) + 0.25 * relevance
    return scores, relevance, np.arange(100) // 2


def test_every_query_is_judged_by_others(world, monkeypatch):
    scores, relevance, groups = world
    seen = []
    fit = Calibration.fit

    def spied(similarity, degrees, relevant_from, **more):
        seen.append({row.tobytes() for row in similarity})
        return fit(similarity, degrees, relevant_from, **more)

    monkeypatch.setattr(Calibration, "fit", spied)
    found = cross_validated(scores, relevance, 1.0, groups)
    assert len(seen) == 3
    for query in range(len(scores)):
        together = {scores[other].tobytes() for other in np.flatnonzero(groups == groups[query])}
        assert [bool(together & one) for one in seen].count(False) == 1  # with all queries of its group
    assert found.cut_f1["best"] >= found.cut_f1["calibration"] > found.cut_f1["flat"] - 10
    assert found.cut_f1["calibration"] > 80
    assert found.none_auroc > 0.95
    assert 0 <= found.ece[0] < 0.05


def test_what_is_said_of_queries_is_in_their_order(world):
    scores, relevance, groups = world
    found = cross_validated(scores, relevance, 1.0, groups)
    np.testing.assert_array_equal(found.relevant, relevance.sum(axis=1))
    assert (found.right <= np.minimum(found.cuts, found.relevant)).all()
    assert found.shown["calibration"] == found.cuts.mean()
    for query in (0, 3, 98):
        best = np.argsort(-scores[query], kind="stable")[: found.cuts[query]]
        assert found.right[query] == relevance[query][best].sum()


def test_facts_of_queries_go_with_them(world):
    """Unknown words in the queries to which nothing is relevant."""
    scores, relevance, groups = world
    likeness = relevance + 0.1 * scores
    known = [Known(unknown_share=float(query % 5 == 0), caption_scores=likeness[query]) for query in range(100)]
    found = cross_validated(scores, relevance, 1.0, groups, known)
    assert list(found.cut_f1) == ["flat", "calibration", "best", "captions"]
    assert found.cut_f1["captions"] > found.cut_f1["calibration"]


def test_degrees_may_reach_beyond_1_and_have_gaps(world):
    scores, relevance, groups = world
    gaps = np.random.default_rng(1).random(relevance.shape) < 0.5
    found = cross_validated(scores, np.where(gaps, np.nan, 5 * relevance), 5.0, groups)
    assert found.cut_f1["calibration"] > 60
    assert found.ece[0] < 0.1


def test_too_few_queries_are_known_before(world):
    scores, relevance, groups = world
    assert has_enough(relevance, 1.0, groups)
    assert not has_enough(relevance[:20], 1.0, groups[:20])
    assert not has_enough(relevance, 1.0, np.zeros(100, int))
    assert not has_enough(np.zeros((100, 5)), 1.0, groups)
    one = np.zeros((100, 5))
    one[7, 2] = 1  # a fold must do without it
    assert not has_enough(one, 1.0, groups)
    with pytest.raises(UserError, match="all queries are of one group"):
        cross_validated(scores, relevance, 1.0, np.zeros(100, int))
