"""Errors of pairs to fit by are tested in test_calibration.py, as a user meets them."""

import numpy as np
import pytest

from rungwise.calibration import SHORT, Calibration, Known
from rungwise.calibration.learning import checked_pairs, learn
from rungwise.calibration.learning._features import QUERY_VIEWS
from rungwise.core import UserError
from tests.calibration.conftest import planted


def learnt_from(known_of, queries=30):
    rng = np.random.default_rng(0)
    scores, relevance = planted(rng, queries, 80, share=0.05)
    known = None if known_of is None else [known_of(rng) for _ in range(queries)]
    return learn(*checked_pairs(scores, relevance, 1), 1, known)


def test_there_is_a_belief_for_each_kind_of_what_is_known():
    scores = QUERY_VIEWS[-1]
    assert [one.names for one in learnt_from(None).beliefs] == [scores]
    vectors = learnt_from(lambda rng: Known(vector=rng.normal(size=2)))
    assert [one.names for one in vectors.beliefs] == [(*scores, "log_rate"), scores]
    captions = learnt_from(lambda rng: Known(caption_scores=rng.random(80)))
    assert [one.names for one in captions.beliefs] == [(*scores, "caption_best_ten"), scores]
    whole = learnt_from(
        lambda rng: Known(vector=rng.normal(size=2), unknown_share=rng.random(), words=2, caption_scores=rng.random(80))
    )
    assert [one.names for one in whole.beliefs] == list(QUERY_VIEWS)
    assert (vectors.rate is None, captions.rate is None) == (False, True)


def test_there_is_a_rule_for_each_view():
    for known_of in (None, lambda rng: Known(vector=rng.normal(size=2)), lambda rng: Known(stated=rng.random(80))):
        learnt = learnt_from(known_of)
        assert len(learnt.rules) == learnt.regression.views
        assert all(rule.exactly >= rule.close for rule in learnt.rules)


def test_a_rate_needs_the_vector_of_every_query():
    assert learnt_from(lambda rng: Known(vector=rng.normal(size=2) if rng.random() < 0.9 else None)).rate is None


def test_queries_with_constant_scores_are_left_out():
    scores, relevance = planted(np.random.default_rng(0), 30, 80, share=0.05)
    scores[4] = 0.5
    others = np.delete(np.arange(30), 4)
    given = learn(*checked_pairs(scores, relevance, 1), 1, None)
    alone = learn(*checked_pairs(scores[others], relevance[others], 1), 1, None)
    assert given.to_json()["curve"] == alone.to_json()["curve"]


def test_who_knows_how_likely_pairs_were_overlooked_learns_what_is_true():
    """Half of the relevant pairs were not noticed; with the chance of each that it is one of these, all is as if."""
    rng = np.random.default_rng(3)
    scores, relevance = planted(rng, 200, 200, share=0.05)
    noticed = np.where(rng.random(relevance.shape) < 0.5, relevance, 0.0)
    # Among pairs of about one score that nobody noticed, the share that is relevant all the same.
    edges = np.quantile(scores, np.linspace(0, 1, 200))
    place = np.searchsorted(edges, scores)
    unnoticed = np.bincount(place.ravel(), (1 - noticed).ravel(), minlength=201)
    left = np.bincount(place.ravel(), ((noticed == 0) & (relevance == 1)).ravel(), minlength=201)
    overlooked = np.where(noticed == 1, 0.0, np.minimum(0.99, (left / np.maximum(unnoticed, 1))[place]))
    true, naive, informed = (
        np.concatenate([fitted.degrees(one) for one in scores])
        for fitted in (
            Calibration.fit(scores, relevance, 1),
            Calibration.fit(scores, noticed, 1),
            Calibration.fit(scores, noticed, 1, overlooked=overlooked),
        )
    )
    assert abs(informed - true).mean() < 0.2 * abs(naive - true).mean()
    for wrong in (np.ones(scores.shape), -overlooked - 0.1, overlooked[:3]):
        with pytest.raises(UserError, match="overlooked: give numbers from 0 to below 1"):
            Calibration.fit(scores, noticed, 1, overlooked=wrong)


def test_short_and_long_queries_are_learnt_apart():
    """Of short queries many candidates are relevant, of long ones few: each is cut by its own kind."""
    rng = np.random.default_rng(5)
    short, of_short = planted(rng, 80, 300, share=0.1)
    long, of_long = planted(rng, 80, 300, share=0.01)
    known = [Known(words=2)] * 80 + [Known(words=9)] * 80
    scores, relevance = np.concatenate([short, long]), np.concatenate([of_short, of_long])
    calibration = Calibration.fit(scores, relevance, 1, known=known)
    assert len(calibration.learnt) == 2
    as_short = np.mean([calibration.cut(one, Known(words=SHORT)) for one in long])
    as_long = np.mean([calibration.cut(one, Known(words=SHORT + 1)) for one in long])
    assert as_long < as_short
    assert len(Calibration.fit(scores, relevance, 1).learnt) == 1
    assert len(Calibration.fit(scores[:110], relevance[:110], 1, known=known[:110]).learnt) == 1


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
