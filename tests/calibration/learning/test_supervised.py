"""Its form in a file is tested in test_storage.py."""

import numpy as np
import pytest
from scipy import stats

from rungwise.calibration import Background, Known
from rungwise.calibration._null_distribution import Null
from rungwise.calibration.learning._features import DEPTH
from rungwise.calibration.learning._supervised import PositionCurve
from tests.calibration.conftest import planted


def test_a_curve_is_read_between_its_points():
    curve = PositionCurve((0.0, 2.0), (0.1, 0.5), (0.0, 1.0))
    assert curve.degrees_at(np.array([-9.0, 1.0, 9.0])) == pytest.approx([0.1, 0.3, 0.5])
    assert curve.probabilities_at(np.array([0.5])) == pytest.approx([0.25])


def test_relevant_candidates_below_a_position_are_counted_under_the_normal_distribution():
    curve = PositionCurve((-8.0, 8.0), (0.0, 1.0), (0.25, 0.25))
    for position in (-1.0, 0.0, 1.5):
        assert curve.relevant_below(position) == pytest.approx(0.25 * stats.norm.cdf(position), abs=0.005)


def test_hits_after_the_best_are_never_judged_higher(fitted):
    (scores,), _ = planted(np.random.default_rng(1), 1, 900)
    falling = np.sort(scores)[::-1]
    null = Null.of(Background(falling, 900))
    (learnt,) = fitted.learnt
    found = learnt.judged(falling, null, None)
    degrees, probabilities = found.degrees, found.probabilities
    assert len(degrees) == 900 > DEPTH
    assert (np.diff(degrees) <= 0).all()
    assert (np.diff(probabilities) <= 0).all()
    assert found.beyond == 0
    assert 0 <= found.belief <= 1
    assert (learnt.judged(falling[:300], null, None).degrees == degrees[:300]).all()
    assert learnt.judged(falling[:5], null, None).beyond > 1


def test_what_was_not_learnt_is_not_read(fitted):
    """A calibration without captions and vectors judges alike with and without them."""
    (scores,), _ = planted(np.random.default_rng(2), 1, 300)
    known = Known(vector=np.ones(7), caption_scores=np.linspace(0, 1, 300))
    assert fitted.belief(scores, known) == fitted.belief(scores)
