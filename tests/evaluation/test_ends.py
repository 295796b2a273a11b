"""Where relevance ends, from evaluate to files, comparisons, tables and reports.

Also tests rungwise.evaluation.report._cutoffs.
"""

import io
import json
from dataclasses import dataclass

import numpy as np
import pytest
from rich.console import Console

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.evaluation import (
    EvaluationSettings,
    Provenance,
    RankedLists,
    Result,
    compare,
    comparison_text,
    diagnose,
    evaluate,
    render_table,
    report_page,
)
from rungwise.evaluation._protocols import ConsecutiveFolds
from rungwise.metrics import ECE, Brier, CutF1, JudgedQueries, NoneAUROC

MEASURES = ("CutF1(0.5)", "CutPrecision(0.5)", "CutRecall(0.5)", "NoneAUROC(0.5)", "ECE", "ECE@3", "Brier", "R@1")


@dataclass(frozen=True)
class Above:
    """Shows what scores higher than a number."""

    least: float
    seen: tuple = ()

    def judge(self, scores, direction, queries):
        self.seen and self.seen[0].append((direction, queries.tolist()))
        return JudgedQueries((scores > self.least).sum(axis=1), scores.max(axis=1), np.clip(scores, 0, 1))


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    relevance = (rng.random((12, 36)) < 0.08) * 1.0
    scores = np.clip(0.6 * relevance + 0.4 * rng.random(relevance.shape), 0, 1)
    return {"similarity": scores, "relevance": relevance, "image_of_caption": np.repeat(np.arange(12), 3)}


@pytest.fixture(scope="module")
def result(world):
    return evaluate(
        **world,
        measures=MEASURES,
        provenance=Provenance(image_ids=[f"i{n}" for n in range(12)]),
        settings=EvaluationSettings(ends=Above(0.5)),
    )


def test_a_good_method_is_told_from_a_bad_one(world, result):
    assert result["t2i/CutF1(t=0.5)"] == 100
    assert result["t2i/NoneAUROC(t=0.5)"] == 1
    assert result.units["t2i/ECE"] == "fraction"
    worse = evaluate(**world, measures=MEASURES, settings=EvaluationSettings(ends=Above(0.3)))
    assert worse["t2i/CutPrecision(t=0.5)"] < result["t2i/CutPrecision(t=0.5)"]
    assert result.remarks["t2i/NoneAUROC(t=0.5)"]["have nothing relevant"] > 0


def test_a_result_says_which_method_it_is_of(world, result):
    assert result.ends == "Above(least=0.5, seen=())"
    assert evaluate(**world, measures=["R@1"], settings=EvaluationSettings(ends=Above(0.5))).ends == ""


def test_values_that_are_rows_survive_a_file(result, tmp_path):
    result.to_json(tmp_path / "r.json")
    again = Result.from_json(tmp_path / "r.json")
    np.testing.assert_equal(dict(again.numbers), dict(result.numbers))
    assert again.ends == result.ends
    for name in result.numbers:
        np.testing.assert_array_equal(again.per_query(name), result.per_query(name))
    assert again.per_query("t2i/ECE").shape == (36, 10)
    np.testing.assert_equal(again.intervals(), result.intervals())
    interval = result.interval("t2i/ECE")
    assert interval.low <= result["t2i/ECE"] <= interval.high


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("t2i/ECE", [[0.0] * 9] * 36, "10 numbers for each query"),
        ("t2i/ECE", [[0.0] * 10] * 35 + [0.5], "rows of different lengths"),
        ("t2i/ECE", [[0.0] * 10] * 35 + [[0.0]], "rows of different lengths"),
        ("t2i/ECE", [[0.1] * 10] * 36, "its values per query give"),
        ("t2i/ECE", [[9.0] * 10] * 36, "where -2..2 is possible"),
        ("t2i/R@1", [[0.0]] * 36, "1 numbers for each query"),
    ],
)
def test_rows_that_do_not_fit_are_found(result, tmp_path, name, values, words):
    file = tmp_path / "r.json"
    result.to_json(file)
    content = json.loads(file.read_text())
    content["per_query"][name] = values
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match="the result is damaged") as caught:
        Result.from_json(file)
    assert words in str(caught.value)


def test_errors_that_fall_are_better(world, result):
    worse = evaluate(
        **world,
        measures=MEASURES,
        provenance=Provenance(image_ids=[f"i{n}" for n in range(12)]),
        settings=EvaluationSettings(ends=Above(0.3)),
    )
    blurred = dict(world, similarity=np.sqrt(world["similarity"]))
    louder = evaluate(
        **blurred,
        measures=MEASURES,
        provenance=Provenance(image_ids=[f"i{n}" for n in range(12)]),
        settings=EvaluationSettings(ends=Above(0.75)),
    )
    assert louder["t2i/ECE"] > result["t2i/ECE"]
    found = compare([result, louder], draws=200)
    assert found["t2i/ECE"].verdict == "worse"
    assert found["t2i/Brier"].verdict == "worse"
    assert found["t2i/ECE"].pictures.p < 0.05
    found = compare([worse, result], ["t2i/CutF1(t=0.5)", "t2i/NoneAUROC(t=0.5)"], draws=200, by="CutF1(t=0.5)")
    assert found["t2i/CutF1(t=0.5)"].difference > 0
    assert found["t2i/NoneAUROC(t=0.5)"].difference == 0
    assert not found.changes[0].worse["t2i"]
    assert found.ends == {"A": worse.ends, "B": result.ends}
    assert "relevance ends in A by Above" in " ".join(comparison_text(found).split())


@pytest.mark.parametrize("by", ["ECE", "NoneAUROC(t=0.5)"])
def test_queries_are_listed_by_one_number_each(world, result, by):
    blurred = dict(world, similarity=np.sqrt(world["similarity"]))
    louder = evaluate(
        **blurred,
        measures=MEASURES,
        provenance=Provenance(image_ids=[f"i{n}" for n in range(12)]),
        settings=EvaluationSettings(ends=Above(0.75)),
    )
    found = compare([result, louder], [f"t2i/{by}"], draws=50, by=by)
    if by == "ECE":
        assert len(found.changes[0].worse["t2i"]) == 36
    else:
        assert not found.changes[0].better["t2i"]  # the order of beliefs is the same
        assert not found.changes[0].worse["t2i"]


def test_beliefs_on_another_scale_are_no_difference(world):
    """A method that believes by similarity beside one that believes by probability, which orders queries alike."""

    class Louder(Above):
        def judge(self, scores, direction, queries):
            judged = super().judge(scores, direction, queries)
            return JudgedQueries(judged.cuts, 1000 + 5 * judged.beliefs, judged.degrees)

    noisy = dict(world, similarity=np.random.default_rng(1).random(world["relevance"].shape) + world["relevance"] / 2)
    one, other = (
        evaluate(**noisy, measures=[NoneAUROC(0.5)], settings=EvaluationSettings(ends=method(0.5)))
        for method in (Above, Louder)
    )
    found = compare([one, other], draws=99)
    for name in found.differences:
        assert name.pictures.p == 1.0
        assert name.pictures.interval == (0.0, 0.0)


def test_a_method_is_told_where_queries_stand_in_all_of_the_data(world):
    seen = []
    rule = ConsecutiveFolds("halves", 2, 6)
    result = evaluate(
        **world,
        measures=["CutF1(0.5)"],
        protocol=rule,
        settings=EvaluationSettings(ends=Above(0.5, (seen,)), chunk=100),
    )
    assert [(way, queries[0], queries[-1]) for way, queries in seen] == [
        ("i2t", 0, 5),
        ("t2i", 0, 17),
        ("i2t", 6, 11),
        ("t2i", 18, 35),
    ]
    assert result["t2i/CutF1(t=0.5)"] == 100


def test_judgements_with_gaps_are_taken_by_measures_that_can(world):
    gappy = dict(world, relevance=np.where(np.random.default_rng(0).random((12, 36)) < 0.5, world["relevance"], np.nan))
    result = evaluate(**gappy, measures=[CutF1(0.5), Brier()], settings=EvaluationSettings(ends=Above(0.5)))
    assert result["t2i/CutF1(t=0.5)"] == 100
    with pytest.raises(UserError, match="every value must be a finite number"):
        evaluate(**gappy, measures=["CutF1(0.5)", "nDCG@5"], settings=EvaluationSettings(ends=Above(0.5)))


def test_ranked_lists_have_no_similarities_to_judge(world):
    lists = RankedLists({"t2i": [list(range(12))] * 36}, (12, 36))
    with pytest.raises(UserError, match=r"CutF1\(t=0.5\) reads similarities, and ranked lists have none"):
        evaluate(**dict(world, similarity=lists), measures=["CutF1(0.5)"], settings=EvaluationSettings(ends=Above(0.5)))


def test_tables_say_that_errors_are_best_at_0(result):
    shown = Console(width=80, record=True, file=io.StringIO())
    shown.print(render_table(result))
    text = shown.export_text()
    assert "fraction, 0 is best" in text
    assert "relevance ends by: Above(least=0.5" in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_a_report_shows_cuts_and_calibration(world, result):
    data = ImageCaptions(
        tuple(f"i{n}" for n in range(12)), tuple(f"c{n}" for n in range(36)), world["image_of_caption"]
    )
    found = diagnose({"similarity": world["similarity"]}, data, relevance=world["relevance"])
    page = report_page(result, found)
    assert "CutF1(t=0.5) of queries" in page
    assert "Expected less true degree" in page
    assert "CutF1(t=0.5) of queries" not in report_page(evaluate(**world, measures=["R@1"]), found)
    assert ECE().of_query(result.per_query("t2i/ECE")).shape == (36,)
