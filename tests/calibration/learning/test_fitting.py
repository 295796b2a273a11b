"""Errors of pairs to fit by are tested in test_calibration.py, as a user meets them."""

import numpy as np
import pytest

from rungwise.calibration import Calibration, Known
from rungwise.calibration.learning import checked_pairs, learn, of_hits
from rungwise.calibration.learning._features import QUERY_VIEWS
from rungwise.core import UserError
from tests.calibration.conftest import planted


def learnt_from(known_of, queries=30):
    rng = np.random.default_rng(0)
    scores, relevance = planted(rng, queries, 80, share=0.05)
    known = None if known_of is None else [known_of(rng) for _ in range(queries)]
    return learn(*checked_pairs(scores, relevance, 1), 1, known)


def test_there_is_a_belief_for_each_kind_of_what_is_known():
    nothing, _, _ = learnt_from(None)
    assert [one.names for one in nothing.beliefs] == [QUERY_VIEWS[7]]
    vectors, _, _ = learnt_from(lambda rng: Known(vector=rng.normal(size=2)))
    assert [one.names for one in vectors.beliefs] == [QUERY_VIEWS[6], QUERY_VIEWS[7]]
    captions, _, _ = learnt_from(lambda rng: Known(caption_scores=rng.random(80)))
    assert [one.names for one in captions.beliefs] == [QUERY_VIEWS[5], QUERY_VIEWS[7]]
    both, _, _ = learnt_from(lambda rng: Known(vector=rng.normal(size=2), caption_scores=rng.random(80)))
    assert [one.names for one in both.beliefs] == [QUERY_VIEWS[4], QUERY_VIEWS[6], QUERY_VIEWS[7]]
    assert (nothing.rate is None, vectors.rate is None, captions.rate is None) == (True, False, True)


def test_a_rate_needs_the_vector_of_every_query():
    learnt, _, _ = learnt_from(lambda rng: Known(vector=rng.normal(size=2) if rng.random() < 0.9 else None))
    assert learnt.rate is None


def test_expected_and_true_degrees_are_those_of_the_same_hits():
    _, expected, true = learnt_from(None)
    assert len(expected) == len(true) == 30 * 80
    assert np.corrcoef(expected, true)[0, 1] > 0.5


def test_queries_with_constant_scores_are_left_out():
    scores, relevance = planted(np.random.default_rng(0), 30, 80, share=0.05)
    scores[4] = 0.5
    _, expected, _ = learn(*checked_pairs(scores, relevance, 1), 1, None)
    assert len(expected) == 29 * 80


def test_facts_follow_the_hits():
    known = Known(vector=np.ones(2), caption_scores=np.arange(5.0))
    chosen = of_hits(known, np.array([3, 0]))
    assert chosen.caption_scores.tolist() == [3, 0]
    assert chosen.vector is known.vector
    assert of_hits(None, np.array([0])) is None


def test_what_is_known_of_unrelated_texts_is_learnt():
    """Their words are unknown: by this alone a query is told from others with the same scores."""
    rng = np.random.default_rng(0)
    scores, relevance = planted(rng, 60, 200, share=0.05)
    unrelated = scores[:20]
    calibration = Calibration.fit(
        scores,
        relevance,
        1,
        known=[Known(unknown_share=0.1 * (at % 2)) for at in range(60)],
        unrelated=unrelated,
        unrelated_known=[Known(unknown_share=0.8)] * 20,
    )
    known, unknown = (calibration.belief(scores[30], Known(unknown_share=share)) for share in (0.0, 0.9))
    assert unknown < 0.5 < known
    # Who knows nothing of a query is told by the scores alone.
    assert calibration.belief(scores[40][relevance[40] == 0]) < calibration.belief(scores[40])


def test_unrelated_texts_and_what_is_known_of_them_are_as_many():
    scores, relevance = planted(np.random.default_rng(0), 30, 80, share=0.05)
    with pytest.raises(UserError, match="unrelated_known: 3 texts, unrelated 12"):
        Calibration.fit(scores, relevance, 1, unrelated=scores[:12], unrelated_known=[Known()] * 3)
    with pytest.raises(UserError, match="unrelated_known: 1 texts, unrelated 0"):
        Calibration.fit(scores, relevance, 1, unrelated_known=[Known()])
