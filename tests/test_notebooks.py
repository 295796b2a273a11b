"""The notebooks of the documents: what is stored in them, and that cells and commands give the same numbers."""

import html
import json
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbformat import NotebookNode

from rungwise import Answer, Comparison, Result, open_index, read
from rungwise.cli import main
from rungwise.evaluation import System, compare
from rungwise.relevance import load
from rungwise.scenes import SceneConfig, facts_in, generate, held_out_combinations, read_statement, sample_picture
from tests.rooms import ROOT
from tests.test_examples import fault

FOLDER = ROOT / "docs" / "notebooks"
PLACES = re.compile(r"(?<![\w.<])(?:/(?:tmp|home|root|work|Users|var|opt|mnt)\b|[A-Za-z]:\\)")
"""Beginnings of absolute paths."""
REMOTE = re.compile(r"(?:src|href)=[\"'](?!data:)|url\((?![\"']?data:)|https?://|@import", re.IGNORECASE)
TIMES = re.compile(r"\b\d\d:\d\d\b|\b\d+(?:\.\d+)? ?(?:s|seconds)\b|/s\b")
TRAIN = FOLDER / "train-with-degrees.ipynb"
NOTEBOOKS = (FOLDER / "judge-a-model.ipynb", FOLDER / "search-your-pictures.ipynb", TRAIN)
LAST = """
import json, sys
json.dumps({
    "python": sys.executable, "folder": str(folder), "results": [dict(one.numbers) for one in (result, other)],
    "models": [result.model_hash, other.model_hash], "comparison": comparison.to_json(), "answer": answer.to_json(),
    "words": words.dense().tolist(),
})
"""
"""A cell that only a test runs: all that the others have found, in full."""


@pytest.fixture(scope="module")
def runner() -> dict[str, Any]:
    return runpy.run_path(str(FOLDER / "run.py"))


def notebook(path: Path = TRAIN) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(of: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in of.cells if cell.cell_type == "code"]


def outputs(of: NotebookNode) -> list[NotebookNode]:
    return [output for cell in code_cells(of) for output in cell.outputs]


def is_error(output: NotebookNode) -> bool:
    return output.output_type == "error" or output.get("name") == "stderr"


def texts(cell: NotebookNode) -> Iterator[str]:
    """All that is stored of the outputs of a cell, as text."""
    for output in cell.outputs:
        yield from (output.get("text") or "", *output.get("data", {}).values(), *output.get("traceback", ()))


def said(cell: NotebookNode) -> str:
    """What a cell shows to who has no pictures."""
    (output,) = cell.outputs
    return str(output.get("text") or output.data["text/plain"])


def shows(of: NotebookNode, word: str) -> NotebookNode:
    """The one code cell that has this in its code."""
    (cell,) = [cell for cell in code_cells(of) if word in cell.source]
    return cell


def commands(of: NotebookNode) -> list[list[str]]:
    """Words of the commands that stand in the Markdown cells, without that of the program."""
    blocks = [
        block
        for cell in of.cells
        if cell.cell_type == "markdown"
        for block in re.findall(r"```\n(.*?)```", cell.source, re.DOTALL)
    ]
    lines = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert all(line[0] == "rungwise" for line in lines), lines
    return [line[1:] for line in lines]


def faults_in(text: str) -> Iterator[str]:
    """What an output may not show to others: addresses, places and times."""
    yield from (f"has the address {one[0]}" for one in REMOTE.finditer(text))
    shown = re.sub(r"<style>.*?</style>|data:[\w/;,+=]*", "", text, flags=re.DOTALL)
    yield from (f"names the place {one[0]}" for one in PLACES.finditer(shown))
    yield from (f"says the time {one[0]}" for one in TIMES.finditer(shown))


def faults_of(of: NotebookNode, digest: str) -> list[str]:
    """What is wrong with a stored notebook, in a line for each."""
    cells = code_cells(of)
    found = []
    if [cell.execution_count for cell in cells] != list(range(1, len(cells) + 1)):
        found.append("its cells were not run once each, in order")
    if of.metadata.get("rungwise", {}).get("code") != digest:
        found.append("its code is not what was run")
    for number, cell in enumerate(cells, 1):
        found += [f"cell {number} shows an error" for one in cell.outputs if is_error(one)]
        found += [f"cell {number} {one}" for text in texts(cell) for one in faults_in(text)]
    return found


def test_the_folder_has_these_notebooks(runner):
    assert runner["notebooks"]() == list(NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_stored_was_run_and_shows_no_error_and_nothing_of_the_machine(runner, path):
    stored = notebook(path)
    nbformat.validate(stored)
    assert len(code_cells(stored)) >= 4
    assert not faults_of(stored, runner["digest_of"](stored)), "run it anew: python docs/notebooks/run.py"
    assert path.stat().st_size < 200_000
    assert path.read_text(encoding="utf-8") == runner["stored"](stored)


@pytest.mark.parametrize(
    ("broken", "line"),
    [
        (lambda cells: cells[3].update(execution_count=9), "its cells were not run once each, in order"),
        (lambda cells: cells[3].update(source=f"{cells[3].source}\n1"), "its code is not what was run"),
        (lambda cells: cells[1].outputs[0].update(output_type="error", traceback=[]), "cell 2 shows an error"),
        (lambda cells: cells[6].outputs[0].update(name="stderr"), "cell 7 shows an error"),
        (lambda cells: cells[6].outputs[0].update(text="kept in /tmp/a"), "cell 7 names the place /tmp"),
        (lambda cells: cells[6].outputs[0].update(text="in 7.1 s"), "cell 7 says the time 7.1 s"),
        (lambda cells: cells[7].outputs[0].data.update({"text/html": "<a href='b'>"}), "cell 8 has the address href='"),
    ],
)  # fmt: skip
def test_each_fault_of_a_stored_notebook_is_found(runner, broken, line):
    stored = notebook()
    broken(code_cells(stored))
    assert faults_of(stored, runner["digest_of"](stored)) == [line]


def settings_of(of: NotebookNode) -> SceneConfig:
    """Settings of the pictures that the notebook generates."""
    (given,) = re.findall(r"SceneConfig\(.*?\)", shows(of, "generate(folder").source)
    config = eval(given, {"SceneConfig": SceneConfig})
    assert isinstance(config, SceneConfig)
    return config


def check_what_is_said(of: NotebookNode) -> None:
    """What the Markdown cells say of the outputs is so, whatever the numbers of a machine are."""
    config = settings_of(of)
    held_out = held_out_combinations(config.seed, config.held_out_share)
    assert f"scenes: {config.pictures:,} images, {config.pictures * config.captions_per_picture:,} captions" in said(
        shows(of, "rungwise.read(")
    )
    assert f"{config.pictures:,} pictures\n" == said(shows(of, "build_index("))

    degrees = [float(line.split()[0]) for line in said(shows(of, "rungwise.degrees(")).splitlines()]
    assert degrees[: config.captions_per_picture] == [1.0] * config.captions_per_picture
    assert len(degrees) == 8
    assert max(degrees[config.captions_per_picture :]) < 1

    epochs = json.loads(said(shows(of, "graded.history")))
    assert len(epochs) == 8
    assert max(epochs) > epochs[0]

    compared = said(shows(of, "rungwise.compare("))
    lines = re.findall(r"  (\S+): (\S+) -> (\S+), .* p \S+$", compared, re.MULTILINE)
    assert [name for name, *_ in lines if name.endswith("nDCG@10")] == ["t2i/nDCG@10", "i2t/nDCG@10"]
    assert "B is better than A: +" in compared
    of_one = re.findall(r"nDCG@10 (\S+)", said(shows(of, "graded.evaluate(")))
    assert sorted(b for name, _, b in lines if name.endswith("nDCG@10")) == sorted(of_one)

    cell = shows(of, "rungwise.search(")
    (output,) = cell.outputs
    picture = re.compile(r"<img[^>]*src=\"data:image/jpeg;base64,[\w+/=]+\"[^>]*>.*?<br>(.*?)</figcaption>", re.DOTALL)
    ids = [html.unescape(one) for one in picture.findall(output.data["text/html"])]
    (query,) = re.findall(r'query = "(.*)"', cell.source)
    asked = read_statement(query)
    assert asked is not None
    held = []
    for one in ids:
        facts = facts_in(asked, sample_picture(config, int(re.findall(r"(\d+)\.png", one)[0]), held_out).scene)
        held.append((one, facts.true))
    assert len(held) == 6
    assert held[0][1] == asked.facts, "the first picture is not what was asked for"
    listed = re.findall(r"^(\S+)  (\d) of \d facts", said(shows(of, "facts_in(asked")), re.MULTILINE)
    assert listed == [(one, str(true)) for one, true in held]
    assert re.findall(r"\S+\.png", output.data["text/plain"]) == ids


def test_what_is_said_of_the_stored_outputs_is_so():
    check_what_is_said(notebook())


@pytest.mark.parametrize(
    ("word", "right", "wrong"),
    [
        ("rungwise.read(", "1,000 images", "999 images"),
        ("rungwise.degrees(", "1.00  ", "0.99  "),
        ("rungwise.compare(", "is better", "is worse"),
        ("rungwise.search(", "<img ", "<p "),
        ("facts_in(asked", "2 of 2", "1 of 2"),
    ],
)
def test_a_stored_output_that_is_not_what_is_said_is_found(word, right, wrong):
    stored = notebook()
    for output in shows(stored, word).outputs:
        shown = output.data if "data" in output else output
        shown.update(
            {name: shown[name].replace(right, wrong) for name in ("text", "text/plain", "text/html") if name in shown}
        )
    with pytest.raises(AssertionError):
        check_what_is_said(stored)


def test_the_commands_beside_the_cells_exist():
    found = commands(notebook())
    jobs = ["inspect", "relevance", "train", "evaluate", "train", "evaluate", "compare", "index", "search"]
    assert [words[0] for words in found] == jobs
    assert [said for path in NOTEBOOKS for words in commands(notebook(path)) if (said := fault(words))] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path != TRAIN], ids=lambda path: path.stem)
def test_a_notebook_of_first_steps_runs(runner, tmp_path, path):
    """With the outputs that it has, but for pictures, which are drawn by the machine's libraries."""
    given = notebook(path)
    ran = runner["executed"](given, tmp_path)
    assert not [one for one in outputs(ran) if is_error(one)]
    assert len(outputs(ran)) == len(outputs(given))


@pytest.mark.slow
def test_the_cells_and_the_commands_give_the_same_numbers(runner, tmp_path, monkeypatch, capsys):
    given = notebook()
    given.cells.append(nbformat.v4.new_code_cell(LAST))
    (tmp_path / "cells").mkdir()
    ran = runner["executed"](given, tmp_path / "cells")
    ours = json.loads(eval(said(code_cells(ran)[-1])))
    assert Path(ours["python"]).samefile(sys.executable)
    assert Path(ours["folder"]).parent.samefile(tmp_path / "cells")
    del ran.cells[-1]
    assert [cell.execution_count for cell in code_cells(ran)] == [*range(1, len(code_cells(ran)) + 1)]
    assert [one for one in outputs(ran) if is_error(one)] == []
    check_what_is_said(ran)
    kinds = [[sorted(one.get("data", {"text": ""})) for one in cell.outputs] for cell in code_cells(ran)]
    assert kinds == [[sorted(one.get("data", {"text": ""})) for one in cell.outputs] for cell in code_cells(given)[:-1]]

    (tmp_path / "commands").mkdir()
    monkeypatch.chdir(tmp_path / "commands")
    generate(Path("scenes"), settings_of(given))
    for words in commands(given):
        capsys.readouterr()
        assert main(words) == 0, words
    found = json.loads(capsys.readouterr().out)

    results = [Result.from_json(Path(f"{name}.json")) for name in ("graded", "plain")]
    assert [dict(one.numbers) for one in results] == ours["results"]
    assert [one.model_hash for one in results] == ours["models"]
    compared = Comparison.from_json(ours["comparison"])
    assert Comparison.from_json(Path("comparison.json")).differences == compared.differences
    systems = [System(name, (one,)) for name, one in zip(("plain", "graded"), results[::-1], strict=True)]
    assert compare(systems, primary="t2i/nDCG@10").differences == compared.differences
    np.testing.assert_array_equal(load(Path("words")).dense(), np.array(ours["words"], np.float32))
    answer = Answer.from_json(ours["answer"])
    assert [(hit["id"], hit["score"]) for hit in found["hits"]] == [(hit.id, hit.score) for hit in answer.hits]
    assert answer.end is not None
    assert [hit["degree"] for hit in found["hits"]] == list(answer.end.degrees)
    assert len(open_index("scenes.index")) == len(open_index(Path(ours["folder"]) / "scenes.index"))

    # What stands below the cells is what the commands' files hold.
    assert said(shows(ran, "graded.evaluate(")) == repr(results[0])
    assert said(shows(ran, "rungwise.compare(")) == repr(Comparison.from_json(Path("comparison.json")))
    assert said(shows(ran, "rungwise.read(")) == repr(read("scenes"))
    history = [json.loads(line) for line in Path("graded/history.jsonl").read_text(encoding="utf-8").splitlines()]
    assert json.loads(said(shows(ran, "graded.history"))) == [round(epoch["rsum"], 1) for epoch in history]
