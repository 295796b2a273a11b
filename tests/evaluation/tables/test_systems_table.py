import csv
import io
import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.evaluation import Provenance, System, compare, evaluate
from rungwise.evaluation.tables import SystemsBlock, systems_table

WORLD = np.random.default_rng(7)
IMAGE, TEXT = WORLD.standard_normal((40, 6)), WORLD.standard_normal((120, 6))
OWNERS = np.repeat(np.arange(40), 3)


def result(noise, seed=0, draw=0, measures=("R@1", "MedR", "rsum", "CS@5")):
    scores = IMAGE @ (IMAGE[OWNERS] + TEXT).T + noise * np.random.default_rng(draw).standard_normal((40, 120))
    return evaluate(
        similarity=scores,
        image_of_caption=OWNERS,
        relevance=np.abs(IMAGE @ TEXT.T),
        measures=measures,
        provenance=Provenance(data_hash="d", seed=seed),
    )


def system(name, noise, first, count=3, **more):
    return System(name, tuple(result(noise, seed, first + seed, **more) for seed in range(count)))


def table(*systems, measures=(), **more):
    return systems_table([SystemsBlock("data", systems)], measures, draws=300, **more)


def cells(found, name):
    return {line.name.split(",")[0]: line.cells.get(name) for line in found.blocks[0].lines}


@pytest.fixture(scope="module")
def three():
    return system("weak", 9, 0), system("good", 1, 10), system("close", 1.05, 20)


def test_means_and_deviations_are_those_of_the_seeds(three):
    found = table(*three)
    for one in three:
        values = [own["rsum"] for own in one.results]
        cell = cells(found, "rsum")[one.name]
        assert (cell.value, cell.deviation) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
    assert "\u00b1: standard deviation over seeds" in found.marks


def test_the_best_is_marked_and_what_differs_beyond_chance(three):
    found = table(*three)
    tested = {
        frozenset((one.baseline, one.system)): one.verdict
        for one in compare(three, pairs="all", draws=300).differences
        if one.name == "rsum"
    }
    own = cells(found, "rsum")
    best = max(own, key=lambda name: own[name].value)
    assert own[best].mark == "best"
    for name in own.keys() - {best}:
        assert (own[name].mark == "differs") == (tested[frozenset((best, name))] != "no difference shown")
    assert own["weak"].mark == "differs"
    ranks = cells(found, "t2i/MedR")
    assert ranks[min(ranks, key=lambda name: ranks[name].value)].mark == "best"  # a rank is best where it is small


def test_equal_numbers_have_no_best():
    found = table(system("one", 1, 0), system("other", 1, 0))
    assert {cell.mark for line in found.blocks[0].lines for cell in line.cells.values()} == {""}
    assert any("one and other, for every seed: have equal values" in said for said in found.marks)


def test_only_what_was_asked_for_is_printed_and_what_is_missing_is_said(three):
    found = table(*three, system("plain", 2, 30, measures=["R@1"]), measures=["R@1", "t2i/CS@5", "nDCG@10"])
    assert found.blocks[0].names == ("i2t/R@1", "t2i/R@1", "t2i/CS@5")
    assert "t2i/CS@5 was not measured for plain; evaluate with --measures CS@5" in found.left_out
    assert "nDCG@10 was not measured for any system; evaluate with --measures nDCG@10" in found.left_out
    with pytest.raises(UserError, match="nothing to print: nDCG@10 was not measured"):
        table(*three, measures=["nDCG@10"])


def test_the_median_run_stands_alone(three):
    found = table(*three, average="median")
    for line, one in zip(found.blocks[0].lines, three, strict=True):
        values = [own["rsum"] for own in one.results]
        assert line.cells["rsum"].value == sorted(values)[1]
        assert line.cells["rsum"].deviation is None
        assert line.name == f"{one.name}, seed {values.index(sorted(values)[1])} of 3"


def test_systems_that_cannot_be_compared_have_no_marks_of_difference(three):
    other = evaluate(similarity=np.eye(3), image_of_caption=[0, 1, 2], measures=["rsum"])
    found = table(three[0], System("other", (other,)), measures=["rsum"])
    assert cells(found, "rsum")["other"].mark == "best"
    assert cells(found, "rsum")["weak"].mark == ""
    assert any(said.startswith("differences are not tested: other cannot be compared") for said in found.left_out)


def test_every_form_has_every_number(three):
    found = table(*three, System("a_b & c|d", (result(3),)))
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert len(rows) == 4 * len(found.blocks[0].names)
    assert float(rows[0]["value"]) == found.blocks[0].lines[0].cells["i2t/R@1"].value
    read = json.loads(found.to_json())
    assert read["blocks"][0]["lines"][3]["name"] == "a_b & c|d"
    latex = found.to_latex()
    assert latex.count(r"\begin{tabular}") == 3  # 11 numbers: each direction, and their sum
    assert table(*three, measures=["R@1", "rsum"]).to_latex().count(r"\begin{tabular}") == 1
    assert r"a\_b \& c\textbar{}d" in latex
    assert r"\textbf{" in latex
    assert r"$\pm$" in latex
    assert latex.isascii() or all(line.startswith("%") for line in latex.splitlines() if not line.isascii())
    markdown = found.to_markdown()
    assert r"a_b & c\|d" in markdown
    assert "| **" in markdown
    ET.fromstring(found._tables()[0].html().replace("<div", "<div", 1).partition("</p>")[2])
    assert "<strong>" in found.to_html()
    assert "<script" not in found.to_html()
    assert max(map(len, found.to_text().splitlines())) <= 80
    assert len(found.to_frame()) == len(rows)
    assert len(repr(found).splitlines()) <= 12
