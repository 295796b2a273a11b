import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rungwise.core import UserError
from rungwise.runs.study import StudySearch, best_trial, study_of, trials_of


def searched(**search):
    return study_of({"base": "vsepp", "arms": [{"name": "one"}, {"name": "two"}], "search": search})


@given(st.integers(1, 12), st.integers(0, 5), st.floats(1e-3, 1e3), st.floats(1.01, 100))
def test_random_values_lie_in_their_ranges_and_grow_with_the_budget(trials, draws, low, factor):
    ranges = {
        "loss.margin": {"uniform": [low, low * factor]},
        "loss.temperature": {"log_uniform": [low, low * factor]},
        "loss.kind": ["a", "b"],
    }
    study = searched(trials=trials, draws=draws, ranges=ranges)
    found = trials_of(study, study.arms[0])
    assert [one.number for one in found] == list(range(1, trials + 1))
    for one in found:
        assert low <= one.values["loss.margin"] <= low * factor
        assert low <= one.values["loss.temperature"] <= low * factor
        assert one.values["loss.kind"] in ("a", "b")
    assert found == trials_of(study, study.arms[1])
    more = searched(trials=trials + 1, draws=draws, ranges=ranges)
    assert trials_of(more, more.arms[0])[:trials] == found


def test_draws_are_spread_as_their_range_says():
    study = searched(trials=4000, ranges={"a": {"uniform": [0, 1]}, "b": {"log_uniform": [1e-4, 1]}, "c": [1, 2, 3, 4]})
    found = [one.values for one in trials_of(study, study.arms[0])]
    assert sum(one["a"] < 0.25 for one in found) / 4000 == pytest.approx(0.25, abs=0.03)
    assert sum(one["b"] < 1e-3 for one in found) / 4000 == pytest.approx(0.25, abs=0.03)
    assert sum(one["c"] == 1 for one in found) / 4000 == pytest.approx(0.25, abs=0.03)
    assert all(one["a"] == float(f"{one['a']:.4g}") for one in found)
    other = searched(trials=4000, draws=1, ranges={"a": {"uniform": [0, 1]}})
    assert [one["a"] for one in found] != [one.values["a"] for one in trials_of(other, other.arms[0])]


def test_a_grid_tries_all_combinations():
    study = searched(by="grid", ranges={"a": [1, 2], "b": [3, 4]})
    assert [tuple(one.values.values()) for one in trials_of(study, study.arms[0])] == [(1, 3), (1, 4), (2, 3), (2, 4)]


def test_an_arm_may_have_its_own_ranges_or_none():
    study = study_of(
        {
            "arms": [{"name": "a"}, {"name": "b", "ranges": {"y": [5]}}, {"name": "c", "ranges": {}}],
            "search": {"trials": 1, "ranges": {"x": [4]}},
        }
    )
    assert [[one.values for one in trials_of(study, arm)] for arm in study.arms] == [[{"x": 4}], [{"y": 5}], []]
    assert trials_of(study_of({}), study_of({}).all_arms[0]) == ()


def test_the_best_trial_has_the_best_measure():
    search = StudySearch(trials=2)
    assert best_trial(search, [1.0, 3.0, 3.0]) == 1
    assert best_trial(search, [math.nan, -1.0]) == 1
    with pytest.raises(UserError, match="no trial has a value of rsum"):
        best_trial(search, [math.nan])
