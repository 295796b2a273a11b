"""Also tests rungwise.runs.curves._measured."""

import math
from dataclasses import replace

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.evaluation import evaluate
from rungwise.runs.curves import draw
from rungwise.runs.curves._by_rank import best_ranks, chance_of_recall, degree_part, recall_part
from rungwise.runs.curves._measured import chosen, measured_of

from .worlds import OWNERS, RELEVANCE, result, run, systems


def part(kind, *runs, **given):
    found = chosen(measured_of(systems(*runs), {}), kind, graded=kind == "degrees")
    return (recall_part if kind == "recall" else degree_part)(found, **given)


def curve_of(drawn, panel, name):
    return next(one for one in drawn.panels[panel].curves if one.name == name)


@pytest.mark.parametrize("measures", [("MedR",), ("MeanR",), ("MRR",)])
def test_recall_at_every_k_is_what_the_measure_says(tmp_path, measures):
    ks = (1, 2, 3, 7, 20)
    drawn, _ = part("recall", run(tmp_path / "a", results=[result(measures=measures)]), draws=0)
    direct = result(measures=[f"R@{k}" for k in ks])
    for panel, way in enumerate(("i2t", "t2i")):
        curve = curve_of(drawn, panel, "a")
        values = dict(zip(curve.x, curve.y, strict=True))
        assert {k: values[k] for k in ks} == pytest.approx({k: direct[f"{way}/R@{k}"] for k in ks})
        assert curve.y[-1] == 100
        assert curve.x[-1] == (60 if way == "i2t" else 20)


def test_seeds_make_a_mean_with_students_interval(tmp_path):
    runs = [run(tmp_path / f"a/seed-{seed}", results=[result(seed)], seed=seed) for seed in range(3)]
    drawn, left_out = part("recall", *runs)
    curve = curve_of(drawn, 0, "a")
    place = curve.x.index(5)
    values = [result(seed, measures=["R@5"])["i2t/R@5"] for seed in range(3)]
    half = 4.302652729911275 * np.std(values, ddof=1) / math.sqrt(3)  # the 97.5 % point of t with 2 degrees of freedom
    assert curve.y[place] == pytest.approx(np.mean(values))
    assert curve.low[place] == pytest.approx(max(0, np.mean(values) - half))
    assert curve.high[place] == pytest.approx(min(100, np.mean(values) + half))
    assert drawn.notes[0] == "bands: 95 % interval of the mean over 3 seeds, by Student's t"
    assert left_out == []


def test_one_seed_has_a_band_over_pictures(tmp_path):
    one = result()
    drawn, _ = part("recall", run(tmp_path / "a", results=[one]), draws=2000)
    for panel, way in enumerate(("i2t", "t2i")):
        curve = curve_of(drawn, panel, "a")
        place = curve.x.index(5)
        low, high = one.interval(f"{way}/R@5", draws=2000)
        assert curve.low[place] == pytest.approx(low, abs=3)
        assert curve.high[place] == pytest.approx(high, abs=3)
    assert drawn.notes[0] == "bands: 95 % interval over pictures, by 2,000 bootstrap draws"


def test_chance_is_exact(tmp_path):
    owners = np.array([0, 0, 0, 1, 2, 2, 4])
    rng = np.random.default_rng(0)
    one = evaluate(similarity=rng.normal(size=(5, 7)), image_of_caption=owners, measures=["MedR"])
    ks = np.arange(1, 8)
    rights = [3, 1, 2, 1]  # picture 3 has no caption, and no value
    wanted = [100 * np.mean([1 - math.comb(7 - r, k) / math.comb(7, k) for r in rights]) for k in range(1, 8)]
    np.testing.assert_allclose(chance_of_recall(one, "i2t", ks), wanted, atol=1e-9)
    np.testing.assert_allclose(chance_of_recall(one, "t2i", ks[:5]), 20 * ks[:5], atol=1e-9)


def test_chance_is_what_random_orders_reach():
    ks = np.array([1, 5, 20])
    found = [result(seed, noise=1e9) for seed in range(150)]
    for way in ("i2t", "t2i"):
        reached = np.mean([[(best_ranks(one, way) <= k).mean() for k in ks] for one in found], axis=0)
        np.testing.assert_allclose(100 * reached, chance_of_recall(found[0], way, ks), atol=2)


def test_folds_are_averaged(tmp_path):
    one = result()
    folded = replace(one, gallery={"i2t": (30, 30), "t2i": (10, 10)}, protocol="two-folds")
    drawn, _ = part("recall", run(tmp_path / "a", results=[folded]), draws=50)
    curve = curve_of(drawn, 1, "a")
    ranks = one.per_query("t2i/MedR")
    wanted = np.mean([(ranks[:30] <= 3).mean(), (ranks[30:] <= 3).mean()]) * 100
    assert curve.y[curve.x.index(3)] == pytest.approx(wanted)
    assert curve.x[-1] == 10
    assert "mean of 2 folds" in drawn.notes
    chance = curve_of(drawn, 1, "chance")
    assert chance.y[chance.x.index(3)] == pytest.approx(30)


def test_other_right_answers_have_no_chance(tmp_path):
    one = evaluate(similarity=RELEVANCE, image_of_caption=OWNERS, measures=["MedR"])
    drawn, _ = part("recall", run(tmp_path / "a", results=[replace(one, right="shares a class label")]), draws=0)
    assert [[one.role for one in panel.curves] for panel in drawn.panels] == [["system"], ["system"]]
    assert any(note.startswith("right is: shares a class label; chance is not drawn") for note in drawn.notes)


def test_degrees_by_rank_are_those_of_the_sorted_lists(tmp_path):
    one = result(graded=True, measures=["MeanDegree@6"])
    drawn, left_out = part("degrees", run(tmp_path / "a", results=[one]), draws=200)
    rng = np.random.default_rng(0)
    scores = (np.arange(20)[:, None] == OWNERS) + rng.normal(size=(20, 60))
    for panel, (s, r) in enumerate(((scores, RELEVANCE), (scores.T, RELEVANCE.T))):
        by_model = np.mean([own[np.argsort(-row, kind="stable")][:6] for row, own in zip(s, r, strict=True)], axis=0)
        ideal = np.mean([np.sort(own)[::-1][:6] for own in r], axis=0)
        np.testing.assert_allclose(curve_of(drawn, panel, "a").y, by_model)
        np.testing.assert_allclose(curve_of(drawn, panel, "best possible order").y, ideal)
        np.testing.assert_allclose(curve_of(drawn, panel, "chance").y, np.full(6, r.mean()))
        curve = curve_of(drawn, panel, "a")
        assert all(low <= y <= high for low, y, high in zip(curve.low, curve.y, curve.high, strict=True))
    assert left_out == []
    assert (
        drawn.title
        == "Degree of relevance by rank\ntoy, split test, protocol full, 20 images x 60 captions (3 an image)"
    )


def test_a_result_without_ranks_says_how_it_gets_them(tmp_path):
    folder = tmp_path / "a"
    with pytest.raises(UserError, match=f"evaluate {folder} DATA --protocol full --measures R@1 R@5 R@10 MedR"):
        draw(systems(run(folder, results=[result(measures=["R@1"])])), ["recall"])
    with pytest.raises(UserError, match="--relevance DEGREES --measures R@1 R@5 R@10 MeanDegree@50"):
        draw(systems(run(folder, results=[result()])), ["degrees"])


def test_a_seed_without_ranks_is_said(tmp_path):
    runs = [run(tmp_path / f"a/seed-{seed}", results=[result(seed)], seed=seed) for seed in range(2)]
    runs.append(run(tmp_path / "a/seed-2", results=[result(2, measures=["R@1"])], seed=2))
    drawn, left_out = part("recall", *runs)
    assert left_out == ["recall: a: 1 of 3 seeds keep no MedR of single queries, and are not in the mean"]
    assert curve_of(drawn, 0, "a").band.seeds == 2


def test_the_question_of_most_systems_is_drawn_and_the_other_is_said(tmp_path):
    alone = result(protocol="one-caption-per-image")
    runs = [
        run(tmp_path / "a", results=[alone, result()]),
        run(tmp_path / "b", results=[result(1)], ema=0.5),
        run(tmp_path / "c", results=[], ema=0.6),
    ]
    drawn, left_out = part("recall", *runs)
    assert [one.name for one in drawn.panels[0].curves] == ["a", "b", "chance"]
    assert left_out == [
        f"recall: c: has no result of split test, protocol full, data dddddddd; rungwise evaluate {tmp_path / 'c'} DATA"
        " --protocol full"
    ]
    assert any("not drawn: results of split test, protocol one-caption-per-image" in note for note in drawn.notes)
    other = draw(systems(*runs), ["recall"], protocol="one-caption-per-image")
    assert [one.name for one in other.parts[0].panels[0].curves] == ["a", "chance"]
    with pytest.raises(UserError, match="recall: no result of --protocol labels, --split any; there are split test, "):
        draw(systems(*runs), ["recall"], protocol="labels")


def test_degrees_of_a_result_do_not_part_it_from_those_without(tmp_path):
    runs = [
        run(tmp_path / "a", results=[result(measures=["nDCG@2", "MedR"], graded=True)]),
        run(tmp_path / "b", results=[result(1)], ema=0.5),
    ]
    drawn, left_out = part("recall", *runs)
    assert [one.name for one in drawn.panels[0].curves] == ["a", "b", "chance"]
    assert left_out == []
