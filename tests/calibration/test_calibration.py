import doctest
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.calibration import BEYOND, RUNGS, UNJUDGED_RUNGS, Background, Calibration, Known
from rungwise.core import UserError
from tests.calibration.conftest import CENTRE, SPREAD, planted


def f1(scores, cut, relevant):
    shown = np.argsort(-scores, kind="stable")[:cut]
    both = cut + relevant.sum()
    return 1.0 if both == 0 else 2 * relevant[shown].sum() / both


def test_what_is_planted_is_found(fitted, by_standard):
    rng = np.random.default_rng(5)
    clear, faint = planted(rng, 40, 1000, share=0.01, lift=6.0), planted(rng, 40, 400)
    for calibration, (scores, relevance), least in (
        (Calibration.unsupervised(), clear, 0.85),
        (by_standard, clear, 0.85),
        (fitted, faint, 0.8),
    ):
        values = [f1(one, calibration.cut(one), right == 1) for one, right in zip(scores, relevance, strict=True)]
        assert np.mean(values) > least


def test_in_pure_noise_nothing_is_found_but_at_the_stated_rate(by_standard):
    """The standard: one query in ten. Without one: about one in sixteen."""
    rng = np.random.default_rng(6)
    noise = rng.normal(CENTRE, SPREAD, (300, 1000))
    for calibration, most in ((by_standard, 0.17), (Calibration.unsupervised(), 0.1)):
        shown = np.array([calibration.cut(one) > 0 for one in noise])
        assert 0.01 < shown.mean() < most


def test_a_query_without_anything_relevant_is_believed_less(any_calibration):
    rng = np.random.default_rng(7)
    scores, _ = planted(rng, 30, 500, share=0.02, lift=6.0)
    noise = rng.normal(CENTRE, SPREAD, (30, 500))
    with_some = [any_calibration.belief(one) for one in scores]
    without = [any_calibration.belief(one) for one in noise]
    assert np.median(with_some) > np.median(without)
    assert np.mean(np.subtract.outer(with_some, without) > 0) > 0.95


def test_expected_degrees_hold_on_other_queries(fitted):
    scores, relevance = planted(np.random.default_rng(8), 60, 400)
    expected = np.stack([fitted.degrees(one) for one in scores])
    assert abs(expected.mean() - relevance.mean()) < 0.005
    sure = expected > 0.5
    assert abs(expected[sure].mean() - relevance[sure].mean()) < 0.08


def test_all_scores_and_the_best_with_a_background_are_judged_alike(any_calibration):
    rng = np.random.default_rng(9)
    for _ in range(5):
        (scores,), _ = planted(rng, 1, 4000, share=0.01, lift=7.0)
        best = np.argsort(-scores, kind="stable")[:200]
        sample = Background(rng.choice(scores, 2000, replace=False), len(scores))
        judged = any_calibration.judge_hits(scores[best], sample)
        whole = any_calibration.cut(scores)
        by_all = any_calibration.judge_hits(scores[best], Background(scores, len(scores)))
        assert abs(by_all.cut - whole) <= 1
        assert abs(judged.cut - whole) <= max(3, 0.2 * whole)
        assert np.abs(judged.degrees - any_calibration.degrees(scores)[best]).mean() < 0.05
        assert judged.belief == pytest.approx(any_calibration.belief(scores), abs=0.1)


def test_a_picture_that_is_in_the_index_changes_nothing_for_the_others():
    rng = np.random.default_rng(10)
    (cosines,), _ = planted(rng, 1, 4000, share=0.003, lift=7.0)
    without = np.sort(cosines)[::-1][:200]
    itself = np.concatenate([[1.0, 0.995], without])
    calibration = Calibration.unsupervised()
    alone = calibration.judge_hits(without, Background(cosines, 4000))
    together = calibration.judge_hits(itself, Background(np.concatenate([cosines, [1.0, 0.995]]), 4002))
    assert abs(together.cut - 2 - alone.cut) <= 2
    assert np.abs(together.degrees[2:] - alone.degrees).mean() < 0.02
    assert together.rungs[0] == 1


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), shift=st.sampled_from([0.0, -0.5, 3.0]), factor=st.sampled_from([1.0, 0.25, 8.0]))
def test_order_shift_and_scale_of_scores_do_not_matter_to_the_null(seed, shift, factor):
    rng = np.random.default_rng(seed)
    (scores,), _ = planted(rng, 1, 300)
    order = rng.permutation(len(scores))
    calibration = Calibration.unsupervised()
    moved = (scores * factor + shift)[order]
    assert np.allclose(calibration.degrees(moved), calibration.degrees(scores)[order], atol=1e-6)
    assert calibration.cut(moved) == calibration.cut(scores)
    assert (calibration.rungs(moved) == calibration.rungs(scores)[order]).all()


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    candidates=st.sampled_from([2, 3, 30, 999, 1500]),
    share=st.sampled_from([0, 0.02, 0.4]),
)
def test_rungs_cuts_and_degrees_fit_together(fitted, by_standard, seed, candidates, share):
    (scores,), _ = planted(np.random.default_rng(seed), 1, candidates, share=share)
    scores = np.round(scores, 3)  # with ties
    for calibration in (Calibration.unsupervised(), by_standard, fitted):
        degrees, rungs, cut = calibration.degrees(scores), calibration.rungs(scores), calibration.cut(scores)
        order = np.argsort(-scores, kind="stable")
        assert (np.diff(degrees[order]) <= 1e-12).all()
        assert (np.diff(rungs[order]) >= 0).all()
        assert (rungs[order][:cut] < BEYOND).all()
        assert (rungs[order][cut:] == BEYOND).all()
        assert degrees.min() >= calibration.scale[0]
        assert degrees.max() <= calibration.scale[1]
        assert 0 <= calibration.belief(scores) <= 1


@pytest.fixture(scope="module")
def knowing():
    """A calibration that learnt of scores, captions and words, with which some hits are told better than by scores."""
    rng = np.random.default_rng(12)
    scores, relevance = planted(rng, 60, 300, share=0.05, lift=2.0)
    return Calibration.fit(scores, relevance, 1, known=[texts_of(rng, row) for row in relevance])


def texts_of(rng, relevant):
    """Knowledge of the captions of hits: most relevant ones have a caption that says so."""
    told = (rng.random(len(relevant)) < np.where(relevant == 1, 0.8, 0.02)).astype(float)
    scores = rng.normal(0.2, 0.1, len(relevant)) + 0.4 * told
    none = rng.random(len(relevant)) < 0.1
    return Known(
        words=2,
        bearers=int(told.sum()),
        texts=len(relevant),
        caption_scores=np.where(none, np.nan, scores),
        stated=np.where(none, np.nan, np.maximum(told, 0.5 * (rng.random(len(relevant)) < 0.1))),
        counts=np.where(none, 0, 1 + (rng.random(len(relevant)) < 0.5)),
    )


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000), candidates=st.sampled_from([2, 30, 260, 900]), share=st.sampled_from([0, 0.02, 0.4])
)
def test_with_texts_of_hits_rungs_cuts_and_degrees_fit_together(knowing, seed, candidates, share):
    """Hits are shown by what is known of each: a lower score may stand above a higher one."""
    rng = np.random.default_rng(seed)
    (scores,), (relevant,) = planted(rng, 1, candidates, share=share)
    known = texts_of(rng, relevant)
    degrees, rungs = knowing.degrees(scores, known), knowing.rungs(scores, known)
    shown = rungs < BEYOND
    assert shown.sum() == knowing.cut(scores, known)
    assert (degrees >= knowing.scale[0]).all()
    assert (degrees <= knowing.scale[1]).all()
    assert 0 <= knowing.belief(scores, known) <= 1
    for better in (1, 2):  # a name says at least so much
        if (rungs == better).any() and (rungs == better + 1).any():
            assert degrees[rungs == better].min() >= degrees[rungs == better + 1].max()
    order = rng.permutation(candidates)
    np.testing.assert_array_equal(knowing.rungs(scores[order], known.of_hits(order)), rungs[order])
    judged = knowing.judge(scores[None], "t2i", np.zeros(1, int), [known])
    np.testing.assert_array_equal(judged.shown[0], shown)
    np.testing.assert_array_equal(judged.degrees[0], degrees)
    best = np.argsort(-scores, kind="stable")
    hits = knowing.judge_hits(scores[best], Background(scores, candidates), known.of_hits(best))
    np.testing.assert_array_equal(hits.rungs, rungs[best])


def test_a_hit_whose_captions_say_so_is_shown_before_one_with_a_higher_score(knowing):
    rng = np.random.default_rng(1)
    scores, relevance = planted(rng, 40, 300, share=0.05, lift=2.0)
    raised, passed = [], []
    for one, relevant in zip(scores, relevance, strict=True):
        shown = knowing.rungs(one, texts_of(rng, relevant)) < BEYOND
        if shown.any():
            raised += relevant[shown & (one < one[~shown].max())].tolist()
            passed += relevant[~shown & (one > one[shown].min())].tolist()
    assert min(len(raised), len(passed)) > 20
    assert np.mean(raised) > 0.5 > 5 * np.mean(passed)


def test_duplicates_of_all_candidates_double_the_cut_of_a_standard(by_standard):
    """Twice as many candidates raise what unrelated queries reach a little; what is far above stays."""
    scores = np.concatenate([np.random.default_rng(3).normal(CENTRE, SPREAD, 990), np.full(10, 0.6)])
    assert by_standard.cut(scores) == 10
    assert by_standard.cut(np.tile(scores, 2)) == 20


def test_equal_scores_of_a_query_show_nothing_and_warn_of_nothing(any_calibration):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scores in (np.zeros(50), np.full(2, 0.7), np.full(5000, -3.0)):
            assert any_calibration.cut(scores) == 0
            assert any_calibration.belief(scores) == 0
            assert (any_calibration.rungs(scores) == BEYOND).all()
        assert any_calibration.judge_hits(np.zeros(0), Background(np.zeros(5), 5)).cut == 0
        assert any_calibration.judge_hits(np.full(3, 0.5), Background(np.full(5, 0.5), 5)).belief == 0


def test_one_hit_among_equal_scores_stands_out():
    scores = np.append(np.zeros(500), 1.0)
    assert Calibration.unsupervised().cut(scores) == 1


def test_a_block_is_judged_as_its_queries_are(any_calibration, world):
    scores = world[0][:4]
    judged = any_calibration.judge(scores, "t2i", np.arange(4))
    for row, one in enumerate(scores):
        assert judged.cuts[row] == any_calibration.cut(one)
        assert judged.beliefs[row] == any_calibration.belief(one)
        assert (judged.degrees[row] == any_calibration.degrees(one)).all()


def test_captions_of_hits_and_vectors_of_queries_help_where_they_tell_more():
    rng = np.random.default_rng(11)
    scores, relevance = planted(rng, 80, 300, lift=2.0)
    captions = rng.normal(0.2, 0.1, scores.shape) + 0.4 * relevance
    vectors = rng.normal(size=(80, 4))
    known = [Known(vector=vector, caption_scores=row) for vector, row in zip(vectors, captions, strict=True)]
    informed = Calibration.fit(scores[:60], relevance[:60], 1, known=known[:60])
    knowing = informed.informed(known)
    after = knowing.judge(scores[60:], "t2i", np.arange(60, 80))
    without = informed.judge(scores[60:], "t2i", np.arange(60, 80))

    def mean_f1(shown):
        right = relevance[60:] == 1
        return np.mean(2 * (shown & right).sum(axis=1) / (shown.sum(axis=1) + right.sum(axis=1)))

    def error(degrees):
        return ((degrees - relevance[60:]) ** 2).mean()

    assert error(after.degrees) < 0.8 * error(without.degrees)
    assert mean_f1(after.shown) > mean_f1(without.shown)
    assert "with what is known" in str(knowing)


def test_most_pairs_may_be_unjudged(world):
    scores, relevance = world
    sparse = np.full(relevance.shape, np.nan)
    best = np.argsort(-scores, axis=1)[:, :6]
    np.put_along_axis(sparse, best, np.take_along_axis(relevance, best, axis=1), axis=1)
    calibration = Calibration.fit(scores, sparse, 1)
    assert 0 < np.mean([calibration.cut(one) for one in scores]) < 30


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, r: (s[:19], r[:19]), "19 queries with a judged candidate; give at least 20"),
        (lambda s, r: (s, np.where(np.arange(60)[:, None] < 5, r, np.nan)), "5 queries with a judged candidate"),
        (lambda s, r: (np.ones_like(s), r), "constant"),
        (lambda s, r: (s[:, :1], r[:, :1]), "1 candidates"),
        (lambda s, r: (np.where(s == s[3, 4], np.nan, s), r), "query 3, candidate 4 is nan"),
        (lambda s, r: (s, r * 0), "every degree is 0"),
        (lambda s, r: (s, r * 0.5), "relevant_from: 1, but degrees are 0 to 0.5"),
        (lambda s, r: (s, np.where(r == 1, np.inf, r)), "a degree is infinite"),
        (lambda s, r: (s, r[:, 1:]), r"shape \(60, 399\), similarity \(60, 400\)"),
        (lambda s, r: (s[0], r[0]), "1 dimensions"),
        (lambda s, r: (s, np.full(r.shape, "x")), "give numbers"),
    ],
)
def test_what_nothing_can_be_learnt_from_gets_one_line(world, change, message):
    with pytest.raises(UserError, match=message) as error:
        Calibration.fit(*change(*world), 1)
    assert "\n" not in str(error.value)


def test_facts_are_one_a_query(world):
    with pytest.raises(UserError, match="3 queries, but similarity has 60"):
        Calibration.fit(*world, 1, known=[Known()] * 3)


@pytest.mark.parametrize(
    ("scores", "message"),
    [([0.5], "1 candidates"), ([0.5, np.nan], "not finite"), ([[0.5, 0.1]], "2 dimensions"), (0.5, "0 dimensions")],
)
def test_scores_that_cannot_be_judged_get_one_line(any_calibration, scores, message):
    with pytest.raises(UserError, match=message):
        any_calibration.cut(scores)


def test_hits_come_in_falling_order(any_calibration):
    with pytest.raises(UserError, match="falling order"):
        any_calibration.judge_hits(np.array([0.1, 0.2]), Background(np.zeros(4), 4))


def test_a_calibration_of_another_model_is_refused(fitted):
    fitted.check("anything")
    bound = replace(fitted, model_fingerprint="a" * 64)
    bound.check("a" * 64)
    with pytest.raises(UserError, match="of another model"):
        bound.check("b" * 64)


def test_its_text_is_one_line_that_tells_calibrations_apart(fitted):
    texts = {str(one) for one in (fitted, Calibration.unsupervised(), replace(fitted, relevant_from=0.9))}
    assert len(texts) == 3
    assert all("\n" not in text and text.startswith("calibration by ") for text in texts)


def test_the_examples_of_the_page_that_explains_it_run():
    page = Path(__file__).parents[2] / "docs" / "explanation" / "ends" / "relevance-ends.md"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    outcome = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert outcome.attempted > 10
    assert outcome.failed == 0


def test_names_say_whether_judgements_stand_behind_them(fitted, by_standard):
    assert fitted.names == RUNGS
    assert by_standard.names == Calibration.unsupervised().names == UNJUDGED_RUNGS
    assert not set(RUNGS) & set(UNJUDGED_RUNGS)


def test_without_judgements_a_poor_best_hit_is_no_best_match(by_standard):
    """It is shown all the same: the cut does not depend on the names."""
    scores = np.random.default_rng(11).normal(CENTRE, SPREAD, 1000)
    reached = np.median(scores) + by_standard.standard.best_of(1000)
    poor, clear = np.append(scores, reached + 0.05), np.append(scores, reached + 0.4)
    assert by_standard.cut(poor) >= 1
    assert by_standard.rungs(poor)[-1] == 2 or by_standard.rungs(poor)[-1] == 3
    assert by_standard.rungs(clear)[-1] == 1
    assert 0 < by_standard.degrees(poor)[-1] < by_standard.degrees(clear)[-1] < 1
