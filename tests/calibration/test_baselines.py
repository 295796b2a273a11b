import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.calibration import FlatThreshold, LargestGap, Oracle, ShareOfBest, TopK
from rungwise.calibration._baselines import f1_of_cuts
from rungwise.core import UserError
from tests.calibration.conftest import planted

METHODS = (FlatThreshold, ShareOfBest, LargestGap, TopK)


def slow_f1(scores, degrees, cut, least):
    """CutF1 of one query, by its definition."""
    order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    shown = [at for at in order[:cut] if not np.isnan(degrees[at])]
    relevant = {at for at in range(len(scores)) if degrees[at] >= least}
    if not shown and not relevant:
        return 100.0
    return 100.0 * 2 * len(relevant.intersection(shown)) / (len(shown) + len(relevant))


def mean_f1(method, scores, degrees, least):
    cuts = method.judge(scores, "t2i", np.arange(len(scores))).cuts
    return np.mean([slow_f1(*row, least) for row in zip(scores, degrees, cuts, strict=True)])


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 9999), decimals=st.sampled_from([1, 3, 9]))
def test_the_number_is_the_best_of_all_that_make_a_difference(seed, decimals):
    rng = np.random.default_rng(seed)
    scores, degrees = planted(rng, 20, 12, share=0.2, lift=2.0)
    scores = scores.round(decimals)
    degrees[0, :2], degrees[1, :2] = (0, 1), (1, np.nan)
    scores[2] = (scores[2] + 0.001 * np.arange(12)).round(9)  # equal scores are equal to the last bit
    each = {
        FlatThreshold: [FlatThreshold(one) for one in np.append(np.unique(scores), 9.0)],
        ShareOfBest: [ShareOfBest(one) for one in np.unique(scores / scores.max(axis=1, keepdims=True))],
        LargestGap: [LargestGap(one) for one in range(1, 12)],
        TopK: [TopK(one) for one in range(13)],
    }
    for kind, others in each.items():
        if kind is ShareOfBest and (scores.max(axis=1) <= 0).any():
            continue
        chosen = mean_f1(kind.fit(scores, degrees, 1), scores, degrees, 1)
        assert chosen == pytest.approx(max(mean_f1(one, scores, degrees, 1) for one in others))
        assert chosen <= mean_f1(Oracle(degrees, 1), scores, degrees, 1) + 1e-9


def test_values_of_all_cuts_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    scores, degrees = rng.random((6, 9)).round(1), rng.random((6, 9)).round(1)
    degrees[degrees < 0.2] = np.nan
    degrees[5] = 0.0
    values = f1_of_cuts(scores, degrees, 0.5)
    for row in range(6):
        for cut in range(10):
            assert values[row, cut] == pytest.approx(slow_f1(scores[row], degrees[row], cut, 0.5))


def test_the_oracle_shows_nothing_where_nothing_is_relevant():
    degrees = np.array([[0.0, 1.0], [0.0, 0.0]])
    judged = Oracle(degrees, 1).judge(np.array([[0.2, 0.1], [0.2, 0.1]]), "t2i", np.array([0, 1]))
    assert judged.cuts.tolist() == [2, 0]
    assert judged.beliefs.tolist() == [1, 0]
    with pytest.raises(UserError, match="one row of degrees for each query"):
        Oracle(degrees, 1).judge(np.zeros((1, 3)), "t2i", np.array([0]))


@pytest.mark.parametrize("kind", METHODS)
def test_too_few_queries_get_one_line(kind):
    with pytest.raises(UserError, match="give at least 20"):
        kind.fit(np.random.default_rng(0).random((19, 5)), np.eye(19, 5), 1)


def test_one_candidate_and_scores_below_zero_are_no_mistakes():
    one = np.array([[0.3], [-0.2]])
    assert LargestGap(3).judge(one, "t2i", np.arange(2)).cuts.tolist() == [1, 1]
    assert ShareOfBest(0.5).judge(one, "t2i", np.arange(2)).cuts.tolist() == [1, 0]
    assert TopK(5).judge(one, "t2i", np.arange(2)).cuts.tolist() == [1, 1]


def test_a_score_at_the_threshold_is_shown():
    scores, queries = np.array([[0.9, 0.5, 0.1]]), np.array([0])
    assert FlatThreshold(0.5).judge(scores, "t2i", queries).cuts == [2]


def test_they_print_their_number():
    methods = (FlatThreshold(0.41234), ShareOfBest(0.5), LargestGap(7), TopK(10), Oracle(np.zeros((1, 2)), 0.5))
    assert [str(one) for one in methods] == [
        "FlatThreshold(0.4123)",
        "ShareOfBest(0.5)",
        "LargestGap(7)",
        "TopK(10)",
        "Oracle(0.5)",
    ]
