"""``rungwise table`` and ``rungwise train --seeds``, from the words that are typed to the lines that are printed.

Also tests rungwise.jobs.training._seeds, rungwise.jobs.results._result_tables.
"""

import json
import shutil

import numpy as np
import pytest
import scipy.io

from rungwise.cli import main
from rungwise.jobs.training._seeds import spread_text
from rungwise.runs import SEEDS, Spread
from rungwise.runs._results import RESULTS

DATA = "the set"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Features of documents in the published layout, and two seeds of a run on them."""
    folder = tmp_path_factory.mktemp("table")
    data = folder / DATA
    data.mkdir()
    draw = np.random.default_rng(0)
    rows = {}
    for end, split, count in (("tr", "train", 120), ("te", "test", 30)):
        labels = np.arange(count) % 3
        rows[f"I_{end}"] = draw.random((count, 6)) + np.eye(6)[labels]
        rows[f"T_{end}"] = draw.random((count, 4)) + np.eye(4)[labels]
        lines = (f"{split}-t{at} {split}-i{at} {label + 1}\n" for at, label in enumerate(labels))
        (data / f"{split}set_txt_img_cat.list").write_text("".join(lines))
    scipy.io.savemat(data / "raw_features.mat", rows)
    words = ["train", "cmal2r", str(data), "--epochs", "1", "--seeds", "0", "1", "--out", str(folder / "runs")]
    assert main(words) == 0
    return folder


@pytest.fixture
def folder(world, tmp_path):
    """A copy that a test may damage."""
    shutil.copytree(world, tmp_path / "world")
    return tmp_path / "world"


def said_by(capsys, *words):
    capsys.readouterr()
    assert main(list(words)) == 0
    return capsys.readouterr().out


def refused(capsys, *words):
    capsys.readouterr()
    assert main(list(words)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err


def test_a_printed_table_fits_a_terminal(capsys):
    said = said_by(capsys, "table", "vsepp:1")
    assert "1.11 VSE++, ResNet152, fine-tuned" in said
    assert max(map(len, said.splitlines())) <= 80


def test_roman_and_arabic_numbers_print_the_same(capsys):
    assert said_by(capsys, "table", "convse:2") == said_by(capsys, "table", "convse:II")


def test_seeds_print_their_table_and_stand_in_the_papers(folder, capsys):
    said = said_by(capsys, "table", "cmal2r:1", "--runs", str(folder))
    assert "ours, of other features: wikipedia, 30 images, protocol labels" in said
    assert "> cmal2r/wikipedia, 2 runs" in said  # and the seeds, on a line of their own where the numbers are wide
    assert "[1] cmal2r/wikipedia: epochs [1] instead of" in said
    below = said.partition("Not in the table:")[2]
    assert "protocol full" in below  # that of the pairs, which no row of the paper is of
    assert max(map(len, said.splitlines())) <= 80
    values = json.loads((folder / "runs" / SEEDS).read_text())["spreads"]["test labels"]["i2t/MAP"]
    assert f"{values[0]:.2f} ±{values[1]:.2f}" in said


def test_a_run_that_is_evaluated_keeps_the_result(folder, capsys):
    run = folder / "runs" / "seed-0"
    shutil.rmtree(run / RESULTS)
    said = said_by(capsys, "table", "cmal2r:1", "--runs", str(run))
    assert f"{run}: has no results yet; rungwise evaluate {run} DATA --protocol labels" in " ".join(said.split())
    said = said_by(capsys, "evaluate", str(run), str(folder / DATA), "--protocol", "labels")
    assert f"kept in the run: {run / RESULTS / 'labels-test-'}" in said
    said = said_by(capsys, "table", "cmal2r:1", "--runs", str(run))
    assert "> cmal2r/wikipedia, " in said
    assert "Not in the table" not in said


def test_markdown_and_json_are_printed_alone(folder, capsys):
    runs = str(folder / "runs")
    text = said_by(capsys, "table", "cmal2r:1", "--format", "markdown", "--runs", runs)
    assert "| **> cmal2r/wikipedia, 2 runs, seeds 0, 1 [1]** |" in text
    read = json.loads(said_by(capsys, "table", "cmal2r:1", "--format", "json", "--runs", runs))
    (line,) = (line for block in read["blocks"] for line in block["lines"] if line["ours"])
    assert line["cells"]["t2i/MAP"]["deviation"] > 0


def test_a_table_of_runs_without_a_paper(folder, capsys):
    runs = folder / "runs"
    out = folder / "runs.tex"
    said = said_by(capsys, "table", "--runs", str(runs), "--measures", "MAP", "R@1", "--out", str(out))
    values = json.loads((runs / SEEDS).read_text())["spreads"]["test labels"]["i2t/MAP"]
    assert "runs, 2 seeds" in said
    assert f"{values[0]:.2f} ±{values[1]:.2f}" in said
    assert "the set/test, 30 pictures, split test, protocol labels" in " ".join(said.split())
    assert "rsum" not in said  # only what was asked for
    assert max(map(len, said.partition("written: ")[0].splitlines())) <= 80
    assert out.read_text().count(r"\begin{tabular}") == 2
    said = said_by(capsys, "table", "--runs", *(str(runs / f"seed-{seed}") for seed in (0, 1)))
    assert "2 seeds" in said  # seeds are one system wherever they lie
    kept = next((runs / "seed-0" / RESULTS).iterdir())
    kept.write_text(kept.read_text()[:-20])
    said = " ".join(said_by(capsys, "table", "--runs", str(runs)).split())
    assert f"Not in the table: {runs / 'seed-0'}: cannot be read: {kept}" in said
    shutil.rmtree(runs / "seed-1" / RESULTS)
    assert "nothing to print: " in refused(capsys, "table", "--runs", str(runs))


@pytest.mark.parametrize("form", ["markdown", "latex", "csv", "json", "html"])
def test_a_table_is_printed_in_the_form_that_is_asked_for(form, folder, capsys):
    said = said_by(capsys, "table", "--runs", str(folder / "runs"), "--format", form, "--measures", "MAP")
    marks = {"markdown": "| system |", "latex": r"$\pm$", "csv": "block,system", "json": '"blocks"', "html": "<table>"}
    assert marks[form] in said
    assert "MAP" in said


def test_mistakes_get_one_line(folder, capsys):
    runs = str(folder / "runs")
    assert "'nature:1' names no table of a paper; there are vsepp:1," in refused(capsys, "table", "nature:1")
    assert "'vsepp' names no table of a paper" in refused(capsys, "table", "vsepp")
    assert "vsepp has no table '9' of results; there are vsepp:1" in refused(capsys, "table", "vsepp:9")
    assert "holds no run with a model" in refused(capsys, "table", "vsepp:1", "--runs", str(folder / DATA))
    assert "is no folder" in refused(capsys, "table", "vsepp:1", "--runs", str(folder / "nowhere"))
    assert "nothing is named: name runs by --runs, or a table" in refused(capsys, "table")
    assert "--measures changes nothing beside a table of a paper" in refused(
        capsys, "table", "vsepp:1", "--measures", "R@1"
    )
    assert "end it in .md, .tex, .csv" in refused(capsys, "table", "--runs", runs, "--out", str(folder / "t.docx"))
    result = next((folder / "runs" / "seed-0" / RESULTS).iterdir())
    kept = result.read_text()
    result.write_text(kept[:-20])
    said = said_by(capsys, "table", "cmal2r:1", "--runs", runs)  # one run that cannot be read leaves the others be
    assert f"{result.parents[1]}: cannot be read: {result}" in " ".join(said.split())
    other = next((folder / "runs" / "seed-1" / RESULTS).glob(f"{result.name.partition('-')[0]}-*"))
    result.write_bytes(other.read_bytes())
    assert "is the result of another model" in " ".join(said_by(capsys, "table", "cmal2r:1", "--runs", runs).split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seeds", "0", "1", "0"], "--seeds: 0 stands twice in 0 1 0; give each seed once"),
        (["--seeds", "-1"], "--seeds: -1 in -1 does not lie in 0..4294967295"),
        (["--seeds", "4294967296"], "--seeds: 4294967296 in 4294967296 does not lie"),
        (["--seeds", "0", "--seed", "1"], "--seed and --seeds contradict each other"),
        (["--seeds", "0", "--seed=1"], "--seed and --seeds contradict each other"),
        (["--seeds", "a"], "--seeds: 'a' is none of what it takes"),
    ],
)
def test_a_list_of_seeds_that_is_none_gets_one_line(world, tmp_path, capsys, words, said):
    data, out = str(world / DATA), str(tmp_path / "out")
    assert said in refused(capsys, "train", "cmal2r", data, "--out", out, *words)
    assert not (tmp_path / "out").exists()


def test_finished_seeds_are_not_trained_again(folder, capsys):
    words = ["train", "cmal2r", str(folder / DATA), "--epochs", "1", "--out", str(folder / "runs")]
    said = said_by(capsys, *words, "--seeds", "0", "1", "--resume")
    assert "epoch" not in said.replace("epochs", "")
    assert "test, protocol labels, 2 seeds" in said
    assert "holds a run already" in _last(capsys, *words, "--seeds", "0")


def _last(capsys, *words):
    assert main(list(words)) == 2
    return capsys.readouterr().err


def test_one_seed_has_no_deviation():
    line = spread_text("validation", {"i2t/CS@10": Spread((0.25,))}).splitlines()[1]
    assert line.split() == ["i2t/CS@10", "0.2500", "-", "-"]
