"""Also tests rungwise.evaluation.comparison._comparison, rungwise.evaluation.comparison._comparison_text,
rungwise.evaluation.comparison._system.
"""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from rungwise.core import UserError
from rungwise.evaluation import Comparison, EvaluationSettings, Provenance, System, comparison_text, evaluate
from rungwise.evaluation import compare as compare_systems
from rungwise.evaluation.judgements._positives import positives_from_lists
from rungwise.evaluation.result import compact_result, of_compact
from rungwise.metrics import MRR
from rungwise.relevance import CIDErD, TfIdf

OWNERS = np.repeat(np.arange(30), 3)


def compare(first, second, names=None, **more):
    return compare_systems([first, second], names, **more)


def evaluated(
    noise=1.0,
    seed=0,
    measures=("R@1", "R@5", "R@10", "MedR", "rsum", "CS@5"),
    data_hash="d1",
    caption_ids=tuple(f"c{n}" for n in range(90)),
    training=None,
    model="",
    **more,
):
    world = np.random.default_rng(7)
    image, text = world.standard_normal((30, 6)), world.standard_normal((90, 6))
    generator = np.random.default_rng(seed)
    similarity = image @ (image[OWNERS] + text).T + noise * generator.standard_normal((30, 90))
    return evaluate(
        similarity=similarity,
        image_of_caption=OWNERS,
        relevance=np.abs(image @ text.T),
        measures=measures,
        provenance=Provenance(data_hash=data_hash, caption_ids=caption_ids, seed=training, model_hash=model),
        **more,
    )


def test_a_result_does_not_differ_from_itself():
    found = compare(evaluated(), evaluated())
    for one in found.differences:
        assert (one.difference, one.pictures.p, one.pictures.p_holm) == (0.0, 1.0, 1.0)
        assert one.pictures.interval.low <= 0 <= one.pictures.interval.high
        assert (one.verdict, one.pictures.at_most, one.seeds) == ("no difference shown", False, None)
    assert found.changes[0].better == {"i2t": (), "t2i": ()}
    assert found.same[0].startswith("A and B have equal values for every query")
    assert found.verdicts() == ["no difference shown between A and B: 0.0 by rsum, tested by 30 pictures"]


def test_a_plain_improvement_is_found_and_its_sense_is_right():
    found = compare(evaluated(noise=8), evaluated(noise=0))
    for name in ("t2i/R@1", "rsum"):
        one = found[name]
        assert one.difference == pytest.approx(one.second - one.first)
        assert one.verdict == "better"
        assert one.pictures.interval.low > 0
        assert one.pictures.p_holm < 0.05
    assert found["t2i/MedR"].difference < 0
    assert found["t2i/MedR"].verdict == "better"
    back = compare(evaluated(noise=0), evaluated(noise=8))
    assert back["rsum"].verdict == "worse"
    assert back["rsum"].pictures.p == found["rsum"].pictures.p
    assert back.verdicts()[0].startswith("B is worse than A: -")


def test_the_number_of_draws_bounds_p_and_this_is_said():
    found = compare(evaluated(noise=8), evaluated(noise=0), draws=199)
    assert found["rsum"].pictures.p == 2 / 200
    assert found["rsum"].pictures.at_most
    text = comparison_text(found)
    assert "≤0.0100*" in text
    assert "≤: p is at most this" in text
    assert r"$\leq$0.0100*" in found.to_latex()


def test_too_few_draws_to_show_anything_are_said():
    systems = [
        seeds_of(name, noise, 10 * n, 1) for n, (name, noise) in enumerate(zip("abcd", (9, 0, 0, 0), strict=True))
    ]
    few = compare_systems(systems, ["rsum"], pairs="all", draws=238)
    assert few.too_few_draws() == (
        "238 draws are too few to show a difference: no p-value is below 0.0502, corrected for 6; --draws 240 or more"
    )
    assert few.too_few_draws() in few.said_below()
    assert {one.verdict for one in few.differences} == {"no difference shown"}
    enough = compare_systems(systems, ["rsum"], pairs="all", draws=240)
    assert not enough.too_few_draws()
    assert enough["rsum", "b"].verdict == "better"
    assert compare_systems(systems, ["rsum"]).draws == 2000
    many = [System(f"{n}", systems[n % 4].results) for n in range(12)]
    assert compare_systems(many, ["rsum"], pairs="all").draws == 2 * 2640


def test_noise_alone_is_seldom_called_a_difference():
    found = [compare(evaluated(seed=one), evaluated(seed=one + 100), ["rsum"], draws=199) for one in range(1, 41)]
    assert sum(one["rsum"].verdict != "no difference shown" for one in found) <= 7  # of 40, 2 expected


def test_no_difference_is_shown_where_the_interval_holds_zero():
    for seed in range(12):
        for one in compare(evaluated(seed=seed, noise=4), evaluated(seed=seed + 50, noise=3), draws=300).differences:
            low, high = one.pictures.interval
            assert (one.verdict == "no difference shown") == (low <= 0 <= high or one.pictures.p_holm >= 0.05)


def seeds_of(name, noise, first, count=3, **more):
    return System(
        name,
        tuple(evaluated(noise=noise, seed=first + n, training=n, model=f"{name}{n}" * 4, **more) for n in range(count)),
    )


def test_seeds_are_paired_beside_pictures():
    one, other = seeds_of("one", 6, 0), seeds_of("other", 2, 30)
    found = compare_systems([one, other], ["rsum", "t2i/R@1"])
    for name in ("rsum", "t2i/R@1"):
        a, b = ([result[name] for result in system.results] for system in (one, other))
        test, wanted = found[name].seeds, stats.ttest_rel(b, a)
        assert test.count == 3
        assert test.p == pytest.approx(wanted.pvalue)
        assert test.interval == pytest.approx(wanted.confidence_interval(0.95))
        assert found[name].difference == pytest.approx(np.mean(b) - np.mean(a))
    assert found.systems[1].deviations["rsum"] == pytest.approx(np.std([r["rsum"] for r in other.results], ddof=1))
    assert "p (seeds)" in found.to_markdown()
    assert any(
        re.search(r"3 seeds: their interval of rsum is [\d.]+ wide; .* would show a difference of 1 in", said)
        for said in found.remarks
    )


def test_seeds_are_paired_by_their_number_and_not_by_their_place():
    one, other = seeds_of("one", 6, 0), seeds_of("other", 2, 30)
    turned = System("other", other.results[::-1])
    first, second = compare_systems([one, other], ["rsum"]), compare_systems([one, turned], ["rsum"])
    assert first["rsum"].seeds.p == pytest.approx(second["rsum"].seeds.p)
    apart = System("other", tuple(replace(result, seed=result.seed + 2) for result in other.results))
    found = compare_systems([one, apart], ["rsum"])
    assert found["rsum"].seeds is None
    assert any("fewer than two seeds in common" in said for said in found.remarks)


def test_a_difference_that_only_one_test_shows_is_not_called_better():
    one, other = seeds_of("one", 1, 0), seeds_of("other", 0, 30)
    close = replace(other.results[2], numbers={**other.results[2].numbers, "rsum": one.results[2]["rsum"] - 60})
    other = System("other", (*other.results[:2], close))
    found = compare_systems([one, other], ["rsum"])["rsum"]
    assert found.pictures.shows(0.95)
    assert not found.seeds.shows(0.95)
    assert found.verdict == "no difference shown"
    assert (
        compare_systems([one, other], ["rsum"])
        .verdicts()[0]
        .endswith("30 pictures show one, and other seeds may turn it")
    )


def test_holms_correction_is_within_a_number_over_the_systems():
    systems = [seeds_of(name, noise, 10 * n) for n, (name, noise) in enumerate(zip("abcd", (6, 5, 4, 2), strict=True))]
    for pairs, count in (("first", 3), ("all", 6)):
        found = compare_systems(systems, ["rsum", "t2i/R@1"], pairs=pairs, draws=500)
        for name in ("rsum", "t2i/R@1"):
            own = [one for one in found.differences if one.name == name]
            assert len(own) == count
            for tests in ([one.pictures for one in own], [one.seeds for one in own]):
                p = [test.p for test in tests]
                order = np.argsort(p)
                wanted, running = {}, 0.0
                for rank, at in enumerate(order):
                    running = max(running, min(1.0, p[at] * (count - rank)))
                    wanted[at] = running
                assert [test.p_holm for test in tests] == pytest.approx([wanted[at] for at in range(count)])
    assert found["rsum", "b"].baseline == "a"
    with pytest.raises(KeyError, match="of which system"):
        found["rsum"]


def test_one_number_is_primary_and_the_others_are_descriptive():
    found = compare(evaluated(noise=8), evaluated(noise=0), primary="t2i/R@1")
    assert found.differences[0].name == found.primary == "t2i/R@1"
    text = comparison_text(found)
    assert text.count("*") == 2  # one in the table, one in its explanation
    assert "primary: t2i/R@1; all other numbers are descriptive" in " ".join(text.split())
    assert "by default" in comparison_text(compare(evaluated(noise=8), evaluated(noise=0)))
    with pytest.raises(UserError, match=r"--primary R@1 is not compared; write i2t/R@1 or t2i/R@1"):
        compare(evaluated(), evaluated(), primary="R@1")
    with pytest.raises(UserError, match=r"--primary MRR is not compared; compared are i2t/R@1, "):
        compare(evaluated(), evaluated(), primary="MRR")


def test_the_same_model_is_said():
    one, other = seeds_of("one", 1, 0), seeds_of("other", 1, 0)
    same = System(
        "other", tuple(replace(b, model_hash=a.model_hash) for a, b in zip(one.results, other.results, strict=True))
    )
    assert "one and other, for every seed: are the same model, one0one0one0" in compare_systems([one, same]).same
    half = System("other", (same.results[0], *seeds_of("other", 1, 70).results[1:]))
    assert "one and other, seed 0: are the same model, one0one0one0" in compare_systems([one, half]).same
    twice = System("one", (one.results[0], replace(one.results[0], seed=1)))
    found = compare_systems([twice, seeds_of("other", 1, 70)])
    assert "one: seed 0 and seed 1 are the same model, one0one0one0" in found.same


def test_a_share_of_nothing_has_an_interval():
    nothing = evaluate(similarity=np.roll(np.eye(100), 1, axis=1), image_of_caption=range(100), measures=["R@1"])
    assert nothing["i2t/R@1"] == 0
    low, high = nothing.interval("i2t/R@1")
    assert (low, high) == pytest.approx((0, 100 * stats.binomtest(0, 100).proportion_ci(method="wilson").high))
    difference = compare(nothing, nothing, ["i2t/R@1"])["i2t/R@1"].pictures.interval
    assert difference == pytest.approx((-high, high))


def test_two_systems_need_two_names():
    with pytest.raises(UserError, match="two systems have one name, of a, a; give each its own"):
        compare_systems([System("a", (evaluated(),)), System("a", (evaluated(),))])
    with pytest.raises(UserError, match="one system alone cannot be compared"):
        compare_systems([evaluated()])
    with pytest.raises(UserError, match="none: has no results to compare"):
        System("none", ())


def test_the_interval_draws_the_same_images_for_both():
    first, second = evaluated(seed=1), evaluated(seed=2)
    found = compare(first, second, ["t2i/R@1"], draws=4000)["t2i/R@1"]
    per_image = (second.per_query("t2i/R@1") - first.per_query("t2i/R@1")).reshape(30, 3).mean(axis=1)
    spread = 1.96 * per_image.std() / np.sqrt(30)
    assert found.pictures.interval == pytest.approx((found.difference - spread, found.difference + spread), abs=3)


def test_queries_that_changed_are_listed_by_their_ids():
    one = evaluated(measures=["R@1"], noise=3)
    other = evaluated(measures=["R@1"], noise=0)
    found = compare(one, other)
    gain = other.per_query("t2i/R@1") - one.per_query("t2i/R@1")
    assert [change.query for change in found.changes[0].better["t2i"]] == [f"c{n}" for n in np.flatnonzero(gain > 0)]
    assert [change.query for change in found.changes[0].worse["t2i"]] == [f"c{n}" for n in np.flatnonzero(gain < 0)]
    assert [change.query for change in found.changes[0].better["i2t"]] == [
        str(n) for n in np.flatnonzero(other.per_query("i2t/R@1") > one.per_query("i2t/R@1"))
    ]
    by_rank = (
        compare(evaluated(measures=["MeanR"], noise=3), evaluated(measures=["MeanR"], noise=0)).changes[0].better["t2i"]
    )
    sizes = [change.first - change.second for change in by_rank]
    assert sizes == sorted(sizes, reverse=True)
    assert min(sizes) > 0


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"protocol": "one-caption-per-image"}, "protocol one-caption-per-image against full"),
        ({"data_hash": "d2"}, "data hash d2 against d1"),
        ({"data_hash": ""}, "data hash none against d1"),
        ({"caption_ids": [f"c{89 - n}" for n in range(90)]}, "t2i has other queries or another order"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(other, message):
    with pytest.raises(UserError, match=f"B cannot be compared with A: .*{message}") as caught:
        compare(evaluated(), evaluated(**other))
    assert "\n" not in str(caught.value)


def test_a_result_without_ids_of_queries_is_compared_by_the_hash_of_its_data():
    whole = evaluated(noise=3)
    compact = of_compact(compact_result(evaluated(noise=0)))
    assert compact.has_query_ids("t2i") is False
    assert whole.has_query_ids("t2i") is True
    assert compare(compact, whole)["t2i/R@1"].difference == compare(evaluated(noise=0), whole)["t2i/R@1"].difference
    nameless = replace(compact, data_hash="")
    with pytest.raises(UserError, match="t2i has other queries or another order"):
        compare(nameless, replace(whole, data_hash=""))


def test_other_galleries_and_missing_values_are_refused(tmp_path):
    small = evaluate(similarity=np.eye(3), image_of_caption=[0, 1, 2], provenance=Provenance(data_hash="d1"))
    with pytest.raises(UserError, match=r"gallery i2t 3 and t2i 3 against i2t 90 and t2i 30"):
        compare(evaluated(), small)
    with pytest.raises(UserError, match="A: holds no values per query"):
        compare(replace(evaluated(), _per_query={}), evaluated())
    with pytest.raises(UserError, match=r"i2t/R@7: has no value in all results; in all are i2t/R@1"):
        compare(evaluated(), evaluated(), ["i2t/R@7"])
    with pytest.raises(UserError, match="R@5: has no value in all results; write i2t/R@5 or t2i/R@5$"):
        compare(evaluated(), evaluated(), ["R@5"])


@pytest.mark.parametrize("by", ["CS@9", "i2t/R@1", "rsum"])
def test_a_measure_of_lists_is_named_without_its_direction(by):
    listed = "R@1, R@5, R@10, MedR, CS@5"
    with pytest.raises(UserError, match=f"by='{by}' is not a measure of both results; in both are {listed}$"):
        compare(evaluated(), evaluated(), by=by)


def test_what_only_one_has_is_named():
    found = compare(evaluated(measures=["R@1", "MRR"]), evaluated(measures=["R@1", "MedR"]))
    assert found.only_in_some == ("i2t/MRR", "t2i/MRR", "i2t/MedR", "t2i/MedR")
    assert [one.name for one in found.differences] == ["i2t/R@1", "t2i/R@1"]


@pytest.mark.parametrize("count", [1, 3])
def test_the_text_fits_and_the_file_holds_everything(count, tmp_path):
    measures = ["rsum", "MeanR", "NCS@10(non_gt)", "SR@10(m=5,non_gt)", "CS@5"]
    systems = [seeds_of("one", 8, 0, count, measures=measures), seeds_of("other", 0, 40, count, measures=measures)]
    found = compare_systems(systems)
    text = comparison_text(found)
    assert max(map(len, text.splitlines())) <= 80
    assert "i2t/SR@10(m=5,non_gt)" in text
    assert f"{found['rsum'].pictures.p_text()}*" in text
    if count > 1:
        assert f"{found['rsum'].seeds.p_text()}*" in text
    found.to_json(tmp_path / "c.json")
    assert Comparison.from_json(tmp_path / "c.json") == found
    content = json.loads((tmp_path / "c.json").read_text())
    [rsum] = [one for one in content["differences"] if one["name"] == "rsum"]
    low, high = found["rsum"].pictures.interval
    assert rsum["pictures"]["interval"] == {"low": low, "high": high}
    assert content["changes"][0]["better"]["t2i"][0]["query"].startswith("c")


def test_graded_measures_of_other_degrees_are_not_compared():
    captions = [f"word {n % 7} {n % 5} {n}" for n in range(90)]

    def graded_by(source):
        return evaluate(
            similarity=np.random.default_rng(0).random((30, 90)),
            image_of_caption=OWNERS,
            relevance=source(captions, OWNERS),
            measures=["R@1", "CS@5"],
        )

    one, other = graded_by(TfIdf), graded_by(CIDErD)
    assert one.relevance.startswith("TfIdf, hash ")
    with pytest.raises(UserError, match=r"by i2t/CS@5: degrees are CIDErD, hash \w+ against TfIdf, hash \w+; evaluate"):
        compare(one, other)
    assert compare(one, other, ["t2i/R@1"]).differences[0].difference == 0


def test_other_degrees_in_memory_are_refused():
    degrees = np.random.default_rng(0).random((30, 90))

    def graded_by(relevance):
        return evaluate(
            similarity=degrees, image_of_caption=OWNERS, relevance=relevance, measures=["CS@5"], protocol="full"
        )

    same = compare(graded_by(degrees), graded_by(degrees.astype(np.float32).tolist()))
    assert "no result names its data, so that only sizes could be compared" in same.remarks
    with pytest.raises(UserError, match=r"degrees are given as a matrix, hash \w+ against given as a matrix, hash"):
        compare(graded_by(degrees), graded_by(degrees[::-1]))


def test_degrees_are_named_only_where_they_were_used():
    assert evaluated(measures=("R@1",)).relevance == ""
    assert re.fullmatch(r"given as a matrix, hash [0-9a-f]{16}", evaluated().relevance)
    assert evaluated().right == "captions written for the image"


def test_numbers_of_measures_that_are_not_known_here_are_listed_and_not_compared(monkeypatch):
    class Foreign(MRR):
        name = "ForeignForATest"

    one, other = (
        evaluate(similarity=np.eye(3)[order], image_of_caption=[0, 1, 2], measures=["R@1", "ForeignForATest"])
        for order in ([0, 1, 2], [1, 0, 2])
    )
    assert "i2t/ForeignForATest" in [difference.name for difference in compare(one, other).differences]
    monkeypatch.setattr(Foreign, "name", "")
    found = compare(one, other)
    assert [difference.name for difference in found.differences] == ["i2t/R@1", "t2i/R@1"]
    assert found.unknown == ("i2t/ForeignForATest", "t2i/ForeignForATest")
    assert "not known here" in found.left_out()[0]
    assert found.left_out()[0] in found.to_markdown()
    refused = r"compared by .*i2t/ForeignForATest.*: not known here; name the module of the measure \(--module\)"
    with pytest.raises(UserError, match=refused):
        compare(one, other, ["i2t/ForeignForATest"])
    with pytest.raises(UserError, match=refused):
        compare(one.of_measures(["ForeignForATest"]), other.of_measures(["ForeignForATest"]))


def test_numbers_without_a_value_are_listed_and_not_compared():
    nobody = positives_from_lists([[]] * 30)
    right = {"i2t": nobody, "t2i": positives_from_lists([[owner] for owner in OWNERS])}

    def result(seed):
        similarity = np.random.default_rng(seed).random((30, 90))
        return evaluate(
            similarity=similarity,
            image_of_caption=OWNERS,
            measures=["MAP"],
            protocol="labels",
            settings=EvaluationSettings(positives=right),
        )

    found = compare(result(0), result(1))
    assert [one.name for one in found.differences] == ["t2i/MAP"]
    assert found.only_in_some == ("i2t/MAP",)
    with pytest.raises(UserError, match="i2t/MAP: has no value in all results"):
        compare(result(0), result(1), ["i2t/MAP"])


def test_results_without_a_common_number_are_refused():
    with pytest.raises(UserError, match="have no number in common: one has i2t/R@1, t2i/R@1, the other i2t/MRR"):
        compare(evaluated(measures=("R@1",)), evaluated(measures=("MRR",)))


def test_other_right_answers_are_refused():
    def result(first):
        right = {
            "i2t": positives_from_lists([[3 * image + first] for image in range(30)]),
            "t2i": positives_from_lists([[owner] for owner in OWNERS]),
        }
        similarity = np.random.default_rng(0).random((30, 90))
        return evaluate(
            similarity=similarity,
            image_of_caption=OWNERS,
            protocol="labels",
            settings=EvaluationSettings(positives=right),
        )

    assert compare(result(0), result(0)).remarks
    with pytest.raises(UserError, match=r"right answers: items that share a class label, hash \w+ against items that"):
        compare(result(0), result(1))


def test_what_cannot_be_checked_is_said():
    assert not any("degrees" in said or "names its data" in said for said in compare(evaluated(), evaluated()).remarks)
    found = compare(*[replace(evaluated(), relevance="given as blocks")] * 2)
    assert "the degrees of all were given as blocks, which may be of several sources" in found.remarks
    text = comparison_text(compare(evaluated(data_hash=""), evaluated(data_hash="")))
    assert "no result names its data" in " ".join(text.split())
