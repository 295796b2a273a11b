import io
import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from rungwise.core import UserError
from rungwise.evaluation import EvaluationSettings, Provenance, compare, evaluate, render_comparison
from rungwise.evaluation._comparison import holm
from rungwise.evaluation.judgements._positives import positives_from_lists
from rungwise.metrics import MRR, parse
from rungwise.relevance import CIDErD, TfIdf

OWNERS = np.repeat(np.arange(30), 3)


def evaluated(
    noise=1.0,
    seed=0,
    measures=("R@1", "R@5", "R@10", "MedR", "rsum", "CS@5"),
    data_hash="d1",
    caption_ids=tuple(f"c{n}" for n in range(90)),
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
        provenance=Provenance(data_hash=data_hash, caption_ids=caption_ids),
        **more,
    )


def test_a_result_does_not_differ_from_itself():
    found = compare(evaluated(), evaluated())
    for one in found.differences:
        assert (one.difference, one.interval, one.p, one.p_holm, one.improved) == (0.0, (0.0, 0.0), 1.0, 1.0, None)
    assert found.better == {"i2t": (), "t2i": ()}


def test_a_plain_improvement_is_found_and_its_sense_is_right():
    found = compare(evaluated(noise=8), evaluated(noise=0))
    for name in ("t2i/R@1", "rsum"):
        one = found[name]
        assert one.difference == pytest.approx(one.second - one.first)
        assert one.improved
        assert one.interval.low > 0
        assert one.p_holm < 0.05
    assert found["t2i/MedR"].difference < 0
    assert found["t2i/MedR"].improved
    back = compare(evaluated(noise=0), evaluated(noise=8))
    assert back["rsum"].improved is False
    assert back["rsum"].p == found["rsum"].p


def test_noise_alone_is_seldom_called_a_difference():
    p = [compare(evaluated(seed=one), evaluated(seed=one + 100), ["rsum"], draws=199)["rsum"].p for one in range(1, 41)]
    assert sum(value < 0.05 for value in p) <= 7  # of 40; with chance 0.05 each, more has a probability of 0.001


def test_randomisation_comes_close_to_trying_every_exchange():
    """Eight images: all 256 ways of exchanging the results of images, written out query by query."""
    generator = np.random.default_rng(5)
    owners = np.repeat(np.arange(8), 2)
    one, other = (
        evaluate(similarity=generator.random((8, 16)), image_of_caption=owners, measures=["R@1", "MedR"])
        for _ in range(2)
    )
    found = compare(one, other, ["t2i/R@1", "t2i/MedR"], draws=20000)
    for name in ("t2i/R@1", "t2i/MedR"):
        measure, a, b = parse(name.partition("/")[2]), one.per_query(name), other.per_query(name)
        observed = abs(measure.aggregate(b) - measure.aggregate(a))
        extreme = 0
        for swap in itertools.product([False, True], repeat=8):
            swapped = np.array(swap)[owners]
            mine, theirs = np.where(swapped, b, a), np.where(swapped, a, b)
            extreme += abs(measure.aggregate(theirs) - measure.aggregate(mine)) >= observed - 1e-9
        assert found[name].p == pytest.approx(extreme / 256, abs=0.015)


def test_the_interval_draws_the_same_images_for_both():
    first, second = evaluated(seed=1), evaluated(seed=2)
    found = compare(first, second, ["t2i/R@1"], draws=4000)["t2i/R@1"]
    per_image = (second.per_query("t2i/R@1") - first.per_query("t2i/R@1")).reshape(30, 3).mean(axis=1)
    spread = 1.96 * per_image.std() / np.sqrt(30)
    assert found.interval == pytest.approx((found.difference - spread, found.difference + spread), abs=3)


@pytest.mark.parametrize(
    ("p", "corrected"),
    [([], []), ([0.2], [0.2]), ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]), ([0.5, 0.9, 0.5], [1.0, 1.0, 1.0])],
)
def test_holm(p, corrected):
    assert holm(p) == pytest.approx(corrected)


def test_queries_that_changed_are_listed_by_their_ids():
    one = evaluated(measures=["R@1"], noise=3)
    other = evaluated(measures=["R@1"], noise=0)
    found = compare(one, other)
    gain = other.per_query("t2i/R@1") - one.per_query("t2i/R@1")
    assert [change.query for change in found.better["t2i"]] == [f"c{n}" for n in np.flatnonzero(gain > 0)]
    assert [change.query for change in found.worse["t2i"]] == [f"c{n}" for n in np.flatnonzero(gain < 0)]
    assert [change.query for change in found.better["i2t"]] == [
        str(n) for n in np.flatnonzero(other.per_query("i2t/R@1") > one.per_query("i2t/R@1"))
    ]
    by_rank = compare(evaluated(measures=["MeanR"], noise=3), evaluated(measures=["MeanR"], noise=0)).better["t2i"]
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
        compare(evaluated(), evaluated(**other), labels=("A", "B"))
    assert "\n" not in str(caught.value)


def test_other_galleries_and_missing_values_are_refused(tmp_path):
    small = evaluate(similarity=np.eye(3), image_of_caption=[0, 1, 2], provenance=Provenance(data_hash="d1"))
    with pytest.raises(UserError, match=r"gallery i2t 3 and t2i 3 against i2t 90 and t2i 30"):
        compare(evaluated(), small)
    with pytest.raises(UserError, match="first: holds no values per query"):
        compare(replace(evaluated(), _per_query={}), evaluated())
    with pytest.raises(UserError, match=r"i2t/R@7: has no value in both results; in both are i2t/R@1"):
        compare(evaluated(), evaluated(), ["i2t/R@7"])
    with pytest.raises(UserError, match="R@5: has no value in both results; write i2t/R@5 or t2i/R@5$"):
        compare(evaluated(), evaluated(), ["R@5"])


@pytest.mark.parametrize("by", ["CS@9", "i2t/R@1", "rsum"])
def test_a_measure_of_lists_is_named_without_its_direction(by):
    listed = "R@1, R@5, R@10, MedR, CS@5"
    with pytest.raises(UserError, match=f"by='{by}' is not a measure of both results; in both are {listed}$"):
        compare(evaluated(), evaluated(), by=by)


def test_what_only_one_has_is_named():
    found = compare(evaluated(measures=["R@1", "MRR"]), evaluated(measures=["R@1", "MedR"]))
    assert found.only_in_one == ("i2t/MRR", "t2i/MRR", "i2t/MedR", "t2i/MedR")
    assert [one.name for one in found.differences] == ["i2t/R@1", "t2i/R@1"]


def test_the_table_fits_and_the_file_holds_everything(tmp_path):
    measures = ["rsum", "MeanR", "NCS@10(non_gt)", "SR@10(m=5,non_gt)", "CS@5"]
    found = compare(evaluated(noise=8, measures=measures), evaluated(noise=0, measures=measures))
    console = Console(width=80, record=True, color_system=None, file=io.StringIO())
    console.print(render_comparison(found))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "i2t/SR@10(m=5,non_gt)" in text
    [line] = [line for line in text.splitlines() if line.strip().startswith("rsum")]
    assert line.split()[-2:] == [f"{found['rsum'].p_holm:.4f}*", "better"]
    assert "\u2026" not in text  # nothing is cut short
    found.to_json(tmp_path / "c.json")
    content = json.loads((tmp_path / "c.json").read_text())
    [rsum] = [one for one in content["differences"] if one["name"] == "rsum"]
    assert rsum["interval"] == {"low": found["rsum"].interval.low, "high": found["rsum"].interval.high}
    assert content["better"]["t2i"][0]["query"].startswith("c")


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
    assert same.unchecked == ("neither result names its data, so that only sizes could be compared",)
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
    assert found.only_in_one == ("i2t/MAP",)
    with pytest.raises(UserError, match="i2t/MAP: has no value in both results"):
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

    assert compare(result(0), result(0)).unchecked
    with pytest.raises(UserError, match=r"right answers: items that share a class label, hash \w+ against items that"):
        compare(result(0), result(1))


def test_what_cannot_be_checked_is_said():
    assert compare(evaluated(), evaluated()).unchecked == ()
    found = compare(*[replace(evaluated(), relevance="given as blocks")] * 2)
    assert found.unchecked == ("the degrees of both were given as blocks, which may be two",)
    output = io.StringIO()
    Console(width=80, file=output).print(render_comparison(compare(evaluated(data_hash=""), evaluated(data_hash=""))))
    assert "neither result names its data" in " ".join(output.getvalue().split())


def test_names_that_look_like_markup_are_printed_as_they_are():
    one = replace(evaluated(), protocol="[/b] :smile:")
    console = Console(width=100, file=io.StringIO())
    console.print(render_comparison(compare(one, one)))
    assert "protocol [/b] :smile:" in console.file.getvalue()
