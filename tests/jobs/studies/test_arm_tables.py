import csv
import re
from dataclasses import replace

import numpy as np

from rungwise.evaluation import evaluate
from rungwise.jobs.studies._arm_tables import TABLES, arm_table, in_lines, spreads_of, write_tables
from rungwise.runs import Spread

SPREADS = {
    "max/share=0.1": {"i2t/R@1": Spread((20.0, 22.0)), "rsum": Spread((300.0, 310.0))},
    "sum": {"i2t/R@1": Spread((19.0, 19.0)), "rsum": Spread((299.0, 301.0)), "i2t/MedR": Spread((4.0, 6.0))},
}


def measured(seed, measures, **more):
    scores = np.random.default_rng(seed).normal(size=(6, 6))
    return evaluate(similarity=scores, image_of_caption=range(6), measures=measures, **more)


def test_the_primary_measure_stands_first():
    table = arm_table(SPREADS, "rsum", "test split")
    assert list(table.head) == ["system", "rsum", "i2t/R@1", "i2t/MedR"]
    assert list(table.rows[0]) == ["max/share=0.1", "305.0 ± 7.1", "21.0 ± 1.4", "-"]
    assert list(arm_table({"one": {"rsum": Spread((5.0,))}}, "rsum", "").rows[0]) == ["one", "5.0"]


def test_what_does_not_fit_a_terminal_is_in_the_files():
    many = {"a": {f"i2t/R@{k}": Spread((10.0, 11.0)) for k in range(1, 20)}}
    lines = in_lines(arm_table(many, "i2t/R@3", ""))
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[:3] == ["system", "i2t/R@3", "i2t/R@1"]
    assert len(arm_table(many, "i2t/R@3", "", width=None).head) == 20


def test_numbers_of_several_questions_are_told_apart():
    plain = [measured(seed, ["R@1"]) for seed in (0, 1)]
    graded = [measured(seed, ["nDCG@2", "R@1"], relevance=np.eye(6)) for seed in (0, 1)]
    graded = [replace(one, relevance="tfidf") for one in graded]
    found = spreads_of({"max": [list(pair) for pair in zip(plain, graded, strict=True)]})["max"]
    assert found["i2t/R@1"].values == tuple(one["i2t/R@1"] for one in plain)
    assert found["i2t/R@1 (full, tfidf)"].values == tuple(one["i2t/R@1"] for one in graded)
    assert found["i2t/nDCG@2"].values == tuple(one["i2t/nDCG@2"] for one in graded)
    assert "nDCG@2 ± " not in in_lines(arm_table({"max": found}, "rsum", ""))[1]


def test_the_files_hold_all_numbers(tmp_path):
    paths = write_tables(tmp_path, {"a,b": SPREADS["sum"], **SPREADS}, "rsum", "test split", ["a remark"])
    assert [one.name for one in paths] == list(TABLES)
    markdown, latex, _ = (one.read_text() for one in paths)
    assert "| max/share=0.1 | 305.0 ± 7.1 |" in markdown
    assert "a remark" in markdown
    assert latex.startswith(r"\begin{tabular}{lrrr}")
    assert re.search(r"^% a remark$", latex, re.MULTILINE)
    with paths[2].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert rows[0]["system"] == "a,b"
    (one,) = [row for row in rows if (row["system"], row["measure"]) == ("max/share=0.1", "rsum")]
    assert (float(one["mean"]), one["seeds"], one["values"]) == (305.0, "2", "300.0 310.0")
    assert float(one["deviation"]) == float(np.std([300, 310], ddof=1))
