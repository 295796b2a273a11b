import numpy as np
import pytest

from rungwise.calibration import UNRELATED
from rungwise.calibration._unrelated_standard import Standard
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
