"""Verdicts on claims: the rule, Holm's correction over all of them, and lines for people."""

from dataclasses import replace

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.evaluation import evaluate
from rungwise.runs.study import StudyClaim, claim_table, judged_claims, study_of

PICTURES = 200


def runs(share_right, seeds=5, first=0):
    """Results of a system that ranks this share of its queries rightly, one for each seed."""
    found = []
    for seed in range(first, first + seeds):
        draw = np.random.default_rng(seed)
        scores = draw.random((PICTURES, PICTURES))
        right = draw.random(PICTURES) < share_right
        scores[right, np.flatnonzero(right)] = 2.0
        found.append([replace(evaluate(similarity=scores, image_of_caption=range(PICTURES)), seed=seed)])
    return found


def claim(name, better, than, measure="rsum"):
    return StudyClaim(name, f"{better} beats {than}.", better, than, measure)


@pytest.fixture(scope="module")
def results():
    return {"good": runs(0.8), "bad": runs(0.4), "same": runs(0.8, first=100)}


def test_a_claim_holds_or_is_contradicted_or_does_not_show(results):
    same = {**results, "same": [[replace(run[0], seed=at)] for at, run in enumerate(results["same"])]}
    found = judged_claims(
        [claim("up", "good", "bad"), claim("down", "bad", "good"), claim("level", "good", "same")], same
    )
    assert [one.verdict for one in found] == ["holds", "contradicted here", "does not show"]
    for one in found:
        for test in one.difference.tests:
            low, high = test.interval
            assert (low > 0) is (one.verdict == "holds")
            assert (high < 0) is (one.verdict == "contradicted here")


def test_verdicts_turn_with_a_measure_of_which_less_is_better(results):
    measured = {name: [[evaluate_again(run[0])] for run in own] for name, own in results.items()}
    (found,) = judged_claims([claim("rank", "good", "bad", "t2i/MeanR")], measured)
    assert found.difference.difference < 0
    assert found.verdict == "holds"


def evaluate_again(result):
    """The result as one of mean ranks alone, which follow from its hits: 1 for a hit, and far behind else."""
    ranks = np.where(result.per_query("t2i/R@1") > 0, 1.0, 50.0)
    return replace(
        result,
        numbers={"t2i/MeanR": float(ranks.mean())},
        units={"t2i/MeanR": "rank"},
        _per_query={"t2i/MeanR": ranks},
    )


def test_too_few_draws_show_nothing(results):
    (found,) = judged_claims([claim("up", "good", "bad")], results, draws=20)
    assert found.difference.pictures.interval.low > 0
    assert found.difference.pictures.p == pytest.approx(2 / 21)
    assert found.verdict == "does not show"


def test_p_values_are_corrected_for_all_claims_together(results):
    alone = judged_claims([claim("up", "good", "bad")], results)[0].difference
    both = judged_claims([claim("up", "good", "bad"), claim("recall", "good", "bad", "t2i/R@1")], results)
    assert both[0].difference.pictures.p_holm == pytest.approx(2 * alone.pictures.p)
    assert both[0].difference.pictures.p == alone.pictures.p


def test_a_claim_without_a_number_of_both_is_left_out(results):
    assert judged_claims([claim("none", "good", "missing"), claim("other", "good", "bad", "t2i/MedR")], results) != ()
    assert judged_claims([claim("none", "good", "missing")], results) == ()


def test_lines_say_what_is_claimed_and_what_was_measured(results):
    (found,) = judged_claims([claim("up", "good", "bad")], results)
    first, second = found.lines()
    assert first == "holds: good beats bad."
    assert second.startswith("  up, by rsum: ")
    assert "5 seeds" in second
    assert claim_table([found]).rows[0][-1] == "holds"


ARMS = [{"name": "max"}, {"name": "sum", "loss": "sum_of_hinges"}]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"better": "max", "than": "nobody"}, r"'nobody' is no system; there are max, sum"),
        ({"better": "max", "than": "max"}, "max is compared with itself; name two systems"),
        ({"better": "max", "than": "sum", "measure": "nDCG@10"}, r"write i2t/nDCG@10 or t2i/nDCG@10"),
        ({"better": "max", "than": "sum", "measure": "nothing"}, "there is no measure 'nothing'"),
    ],
)
def test_claims_that_nothing_can_decide_are_refused(given, said):
    with pytest.raises(UserError, match=said):
        study_of({"arms": ARMS, "claims": [{"name": "one", "says": "It is.", **given}]})


def test_two_claims_of_one_name_and_claims_without_a_test_are_refused():
    one = {"name": "one", "says": "It is.", "better": "max", "than": "sum"}
    with pytest.raises(UserError, match="claims: 2 are named 'one'"):
        study_of({"arms": ARMS, "claims": [one, one]})
    with pytest.raises(UserError, match="test: arms is needed"):
        study_of({"arms": ARMS, "claims": [one], "test": "winner"})
