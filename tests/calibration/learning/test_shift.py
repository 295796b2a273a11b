import numpy as np
import pytest

from rungwise.calibration._f1_cut import expected_f1
from rungwise.calibration.learning._shift import JudgedHits, best_shift

HITS = 0.8 / np.sqrt(np.arange(1, 101))


def example(relevant, judged=None, total=None):
    flags = np.arange(100) < relevant
    return JudgedHits(HITS, 0.0, flags, np.ones(100, bool) if judged is None else judged, total or relevant)


def test_f1_is_of_what_is_shown():
    cut = int(np.argmax(expected_f1(HITS)))
    assert example(5).f1(0.0) == pytest.approx(2 * 5 / (cut + 5))
    assert example(5, total=12).f1(0.0) == pytest.approx(2 * 5 / (cut + 12))


def test_hits_that_nobody_judged_do_not_count():
    judged = np.arange(100) % 2 == 0
    relevant = judged & (np.arange(100) < 6)
    cut = int(np.argmax(expected_f1(HITS)))
    assert JudgedHits(HITS, 0.0, relevant, judged, 3).f1(0.0) == pytest.approx(2 * 3 / (-(-cut // 2) + 3))


def test_few_queries_cannot_choose():
    assert best_shift([]) == best_shift([example(2)] * 49) == 1.0


def test_queries_that_agree_with_their_probabilities_need_no_shift():
    draw = np.random.default_rng(0)
    drawn = [draw.random(100) < HITS for _ in range(400)]
    assert best_shift([JudgedHits(HITS, 0.0, one, np.ones(100, bool), int(one.sum())) for one in drawn]) <= 0.5


def test_a_difference_that_is_chance_chooses_nothing():
    """These queries agree with their probabilities, but 60 are few: a shift of 1 happens to be a little better."""
    draw = np.random.default_rng(1)
    drawn = [draw.random(100) < HITS for _ in range(60)]
    examples = [JudgedHits(HITS, 0.0, one * 1.0, np.ones(100, bool), int(one.sum())) for one in drawn]
    f1 = [np.mean([one.f1(shift) for one in examples]) for shift in (0.0, 1.0, 2.0, 3.0)]
    assert int(np.argmax(f1)) == 1
    assert best_shift(examples) == 0.0


def test_queries_with_few_or_many_relevant_need_one():
    assert best_shift([example(2)] * 60 + [example(60)] * 20) >= 2.0
