import numpy as np
import pytest

from rungwise.calibration import UNRELATED
from rungwise.calibration.unrelated import UNJUDGED_BOUNDARIES, Standard
from rungwise.core import UserError


def noise(texts, candidates, seed=0):
    return np.random.default_rng(seed).normal(0.1, 0.05, (texts, candidates))


def test_it_measures_the_heights_of_best_hits():
    scores = noise(200, 1000)
    standard = Standard.of(scores)
    best = [row.max() - np.median(row) for row in scores]
    assert standard.best == pytest.approx(np.mean(best))
    assert standard.deviation == pytest.approx(np.std(best))
    assert standard.spread == pytest.approx(0.05, rel=0.1)
    half = standard.standing_out(np.array([standard.best]), 1000)
    assert half == pytest.approx([0.5])


def test_of_more_candidates_more_is_asked():
    few, many = Standard.of(noise(300, 500)), noise(300, 20_000, seed=1)
    best = many.max(axis=1) - np.median(many, axis=1)
    shares = few.standing_out(best, 20_000)
    assert abs(np.mean(shares >= 0.5) - 0.5) < 0.2
    assert np.mean(few.standing_out(best, 500) >= 0.5) > 0.9


def test_a_degree_is_the_share_of_the_height_above_what_unrelated_texts_reach():
    standard = Standard(best=0.2, deviation=0.02, spread=0.05, total=1000)
    heights = np.array([0.8, 0.4, 0.25, 0.2, 0.1, 0.0, -0.3])
    np.testing.assert_allclose(standard.degrees(heights, 1000), [0.75, 0.5, 0.2, 0, 0, 0, 0], atol=1e-12)
    assert (standard.degrees(heights, 100_000)[:3] < [0.75, 0.5, 0.2]).all(), "the best of more comes higher"


def test_degrees_do_not_depend_on_the_other_hits_of_a_query_or_on_the_unit():
    scores = noise(200, 1000)
    standard, tripled = Standard.of(scores), Standard.of(3 * scores)
    heights = np.array([0.5, 0.3, 0.22])
    degrees = standard.degrees(heights, 1000)
    np.testing.assert_allclose(standard.degrees(heights[1:], 1000), degrees[1:])
    np.testing.assert_allclose(tripled.degrees(3 * heights, 1000), degrees)


def test_unrelated_texts_seldom_reach_a_good_degree():
    scores = noise(400, 1000)
    standard = Standard.of(scores[:48])
    degrees = standard.degrees(scores[48:].max(axis=1) - np.median(scores[48:], axis=1), 1000)
    assert np.mean(degrees >= UNJUDGED_BOUNDARIES[1]) < 0.05
    assert np.mean(degrees >= UNJUDGED_BOUNDARIES[0]) < 0.005


def test_it_does_not_depend_on_what_is_added_to_the_scores_of_a_text():
    scores = noise(20, 100)
    assert Standard.of(scores + np.arange(20)[:, None]).best == pytest.approx(Standard.of(scores).best)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (noise(9, 100), "10 or more texts"),
        (noise(20, 1), "10 or more texts"),
        (np.zeros(20), "10 or more texts"),
        (np.zeros((20, 30)), "all scores of each text are the same"),
        (np.full((20, 30), np.nan), "not finite"),
    ],
)
def test_what_is_no_standard_gets_one_line(scores, message):
    with pytest.raises(UserError, match=message):
        Standard.of(scores)


def test_the_texts_are_different_sentences():
    assert len(set(UNRELATED)) == len(UNRELATED) >= 40
    assert all(text.strip() == text and text[-1] in ".?" for text in UNRELATED)
