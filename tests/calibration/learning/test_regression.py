"""Tests of what is learnt from judged queries: against slow references, and what comes from a file.

Also tests rungwise.calibration._logistic, rungwise.calibration.learning._belief and
rungwise.calibration.learning._rate.
"""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from rungwise.calibration import Calibration
from rungwise.calibration.learning._belief import Belief
from rungwise.calibration.learning._rate import RelevantShare
from rungwise.calibration.learning._regression import Regression, isotonic
from rungwise.core import UserError

NAMES = ("position", "rate", "caption")


def hits(queries: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, degrees, queries, and the true probability of being relevant, with a product of features in it."""
    draw = np.random.default_rng(seed)
    groups = np.repeat(np.arange(queries), 20)
    features = draw.normal(size=(len(groups), 3))
    features[:, 1] = draw.normal(size=queries)[groups]
    logit = features[:, 0] + features[:, 1] * (1 + 0.5 * features[:, 0]) + features[:, 2] - 1
    probability = 1 / (1 + np.exp(-logit))
    return features, (draw.random(len(groups)) < probability).astype(float), groups, probability


@pytest.fixture(scope="module")
def fitted() -> Regression:
    features, degrees, groups, _ = hits(400)
    features[::3, 2] = np.nan
    return Regression.fit(features, degrees, groups, relevant_from=1, names=NAMES, views=(NAMES, NAMES[:2]))[0]


def test_probabilities_with_products_of_features_are_found() -> None:
    features, degrees, groups, _ = hits(400)
    fitted = Regression.fit(features, degrees, groups, relevant_from=1, names=NAMES)[0]
    others, _, _, probability = hits(50, seed=1)
    assert np.abs(fitted.predict(others).probability - probability).mean() < 0.03


def test_few_queries_get_a_logistic_regression_without_products() -> None:
    features, degrees, groups, _ = hits(30)
    fitted = Regression.fit(features, degrees, groups, relevant_from=1, names=NAMES)[0]
    model = fitted._views[0].probability.model
    assert model.weights.shape == (4,)
    scaled = fitted._views[0].scale.of(features)

    def loss(weights: np.ndarray, ridge: float) -> float:
        logit = weights[0] + scaled @ weights[1:]
        return float(np.logaddexp(0, logit).sum() - degrees @ logit + ridge / 2 * (weights[1:] ** 2).sum())

    references = [minimize(loss, np.zeros(4), (ridge,)).x for ridge in (1.0, 10.0, 100.0)]
    assert min(np.abs(model.weights - reference).max() for reference in references) < 1e-3


def test_a_feature_that_must_not_fall_does_not_with_few_queries() -> None:
    draw = np.random.default_rng(0)
    features = draw.normal(size=(400, 2))
    degrees = (features[:, 0] - features[:, 1] + draw.normal(size=400) > 1).astype(float)
    fitted, _ = Regression.fit(
        features, degrees, np.arange(400) // 20, relevant_from=1, names=("a", "b"), rising=("a", "b")
    )
    low, high = fitted.predict(np.array([[0.0, -1.0], [0.0, 1.0]])).probability
    assert low == pytest.approx(high)
    low, high = fitted.predict(np.array([[-1.0, 0.0], [1.0, 0.0]])).probability
    assert high > low


def test_expected_degrees_are_on_the_scale_of_the_degrees() -> None:
    features, degrees, groups, _ = hits(400)
    fitted = Regression.fit(features, 5 * degrees, groups, relevant_from=5, names=NAMES)[0]
    predicted = fitted.predict(features)
    assert predicted.degree.min() >= 0
    assert 4 < predicted.degree.max() <= 5
    assert predicted.degree.mean() == pytest.approx(5 * degrees.mean(), abs=0.05)


def test_each_hit_is_judged_by_what_is_known_of_it(fitted: Regression) -> None:
    rich = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, -2.0]])
    poor = rich.copy()
    poor[:, 2] = np.nan
    high, low = fitted.predict(rich).probability
    first, second = fitted.predict(poor).probability
    assert low < first == second < high
    both = fitted.predict(np.concatenate([rich, poor])).probability
    assert both.tolist() == pytest.approx([high, low, first, second])


def test_a_view_that_no_row_knows_is_left_out() -> None:
    features, degrees, groups, _ = hits(30)
    features[:, 2] = np.nan
    fitted = Regression.fit(features, degrees, groups, relevant_from=1, names=NAMES, views=(NAMES, NAMES[:2]))[0]
    assert len(fitted._views) == 1
    assert np.isfinite(fitted.predict(features).probability).all()


@pytest.mark.parametrize(("degrees", "says"), [(0.0, "none of the judged hits"), (1.0, "all of the judged hits")])
def test_degrees_on_one_side_are_refused(degrees: float, says: str) -> None:
    with pytest.raises(UserError, match=says):
        Regression.fit(np.zeros((40, 1)), np.full(40, degrees), np.arange(40), relevant_from=0.5, names=("a",))


def test_a_belief_does_not_fall_in_a_column_that_must_not() -> None:
    draw = np.random.default_rng(0)
    features = draw.normal(size=(500, 2))
    something = features[:, 0] - features[:, 1] + draw.normal(size=500) > 0
    free, bound = (Belief.fit(features, something, ("a", "b"), rising) for rising in ((), ("a", "b")))
    low, high = np.array([0.0, -1.0]), np.array([0.0, 1.0])
    assert free.predict(low) > free.predict(high)
    assert bound.predict(low) == pytest.approx(bound.predict(high))
    assert bound.predict(np.array([1.0, 0.0])) > bound.predict(np.array([-1.0, 0.0]))


def test_unrelated_texts_teach_what_nothing_looks_like() -> None:
    draw = np.random.default_rng(0)
    relevance = (draw.random((100, 200)) < 0.05).astype(float)
    # What is relevant stands out little, so that queries without it look the same; captions score high with anything.
    level = draw.normal(0.3, 0.05, (100, 1))
    similarity = draw.normal(0, 1, relevance.shape) * level + 0.02 * relevance
    unrelated = draw.normal(0, 0.1, (20, 200))
    others = draw.normal(0, 0.1, (30, 200))
    taught = Calibration.fit(similarity, relevance, 1, unrelated=unrelated)
    beliefs = np.array([taught.belief(row) for row in similarity])
    assert np.median(beliefs) > max(taught.belief(row) for row in others)


def test_what_is_stored_answers_the_same(fitted: Regression) -> None:
    features, something, _, _ = hits(20)
    read = Regression.from_json(json.loads(json.dumps(fitted.to_json())))
    assert np.array_equal(read.predict(features).degree, fitted.predict(features).degree)
    belief = Belief.fit(features, something == 1, NAMES)
    assert Belief.from_json(json.loads(json.dumps(belief.to_json()))).predict(features[0]) == belief.predict(
        features[0]
    )
    rate = RelevantShare.fit(features, something, 100, np.arange(len(features)))
    assert RelevantShare.from_json(json.loads(json.dumps(rate.to_json()))).predict(features[0]) == rate.predict(
        features[0]
    )


SPOILT = {
    ("lowest",): [None, "0", float("nan"), 2.0, True],
    ("names",): [[], ["a"], [1, 2, 3], "abc", ["a"] * 65],
    ("views",): [[], {}, [1], None],
    ("views", 0, "columns"): [[], [0, 0, 1], [0, 1, 7], [0.5, 1, 2], ["0"], [-1, 0, 1]],
    ("views", 0, "scale", "spread"): [[1.0], [0.0, 1.0, 1.0], [-1.0, 1.0, 1.0], [float("inf"), 1.0, 1.0], None],
    ("views", 0, "degree", "weights"): [[], [1.0], [1e40] * 10, [[1.0]]],
    ("views", 1, "probability", "given"): [[], [0.5, 0.1], [0.0]],
    ("views", 1, "probability", "meant"): [[2.0], ["x"], [float("nan")]],
    ("views", 1, "probability"): [None, {}, {"weights": []}],
}


@pytest.mark.parametrize(("place", "value"), [(place, value) for place, values in SPOILT.items() for value in values])
def test_a_damaged_file_is_refused_in_one_line(fitted: Regression, place: tuple[str | int, ...], value: object) -> None:
    stored = copy.deepcopy(fitted.to_json())
    inner = stored
    for step in place[:-1]:
        inner = inner[step]  # type: ignore[index]
    inner[place[-1]] = value  # type: ignore[index]
    with pytest.raises(UserError) as error:
        Regression.from_json(stored, "calibration.json")
    assert "calibration.json" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_rate_is_found_and_left_out_predictions_are_honest() -> None:
    draw = np.random.default_rng(0)
    vectors, direction = draw.normal(size=(300, 8)), draw.normal(size=8)
    noise = draw.normal(size=300)
    wanted = vectors @ direction / 4 - 4 + noise
    rate = RelevantShare.fit(vectors, 1000 * np.exp(wanted) - 0.5, 1000, np.arange(300))
    assert rate.weights == pytest.approx(direction / 4, abs=0.2)
    seen = np.array([rate.predict(vector) for vector in vectors])
    assert np.square(rate.crossed - wanted).mean() > np.square(seen - wanted).mean()


def test_a_vector_of_another_length_is_refused() -> None:
    rate = RelevantShare(np.zeros(3), 0.0, np.zeros(0))
    with pytest.raises(UserError, match="length 3"):
        rate.predict(np.zeros(4))


@given(st.lists(st.tuples(st.floats(0, 1), st.sampled_from([0.0, 1.0])), min_size=1, max_size=40))
def test_the_isotonic_map_rises_and_keeps_the_mean_of_every_part(pairs: list[tuple[float, float]]) -> None:
    given_, wanted = np.array(pairs).T
    places, means = isotonic(given_, wanted)
    assert (np.diff(places) > 0).all()
    assert (np.diff(means) >= 0).all()
    assert means.min() >= wanted.min()
    assert means.max() <= wanted.max()
