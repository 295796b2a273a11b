from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rungwise.core import MissingExtraError
from rungwise.evaluation import Provenance, evaluate
from rungwise.jobs.studies._study_files import TABLES, study_table, write_curves, write_table
from rungwise.runs import FinishedRun
from rungwise.runs.study import PlannedRun, RunIdentity
from rungwise.training.config import TrainConfig


def measured(seed, measures=("R@1", "MedR", "rsum"), **more):
    scores = np.random.default_rng(seed).normal(size=(6, 6))
    provenance = Provenance(data_hash="d", split="test", seed=seed)
    return evaluate(similarity=scores, image_of_caption=range(6), measures=measures, provenance=provenance, **more)


RESULTS = {"max/share=0.1": [[measured(0)], [measured(1)]], "sum": [[measured(2)], [measured(3)]]}


def test_a_line_for_each_system_and_the_notes_below():
    table = study_table(RESULTS, "losses: test split, 2 seeds", ["a remark"])
    assert table.title == "losses: test split, 2 seeds"
    assert [line.name for line in table.blocks[0].lines] == ["max/share=0.1, 2 seeds", "sum, 2 seeds"]
    values = [own[0]["rsum"] for own in RESULTS["sum"]]
    cell = table.blocks[0].lines[1].cells["rsum"]
    assert (cell.value, cell.deviation) == pytest.approx((np.mean(values), np.std(values, ddof=1)))
    assert "a remark" in table.to_text()
    assert study_table({}, "nothing", []) is None


def test_each_question_has_its_block():
    other = [[measured(seed), measured(seed, protocol="one-caption-per-image")] for seed in (0, 1)]
    table = study_table({"max": other}, "", [])
    assert ["protocol full" in block.title for block in table.blocks] == [True, False]


def test_the_files_hold_the_table(tmp_path):
    table = study_table(RESULTS, "two systems", [])
    paths = write_table(tmp_path, table)
    assert [one.name for one in paths] == list(TABLES)
    for path, form in zip(paths, TABLES.values(), strict=True):
        assert path.read_text().rstrip("\n") == table.to_format(form).rstrip("\n")


def planned(name, seed, share):
    config = TrainConfig()
    config = replace(config, seed=seed, data=replace(config.data, share=share))
    return PlannedRun(name, config, Path("nowhere") / name / f"seed-{seed}", RunIdentity({}, "", {}))


def test_curves_are_drawn_by_what_the_runs_hold_and_by_the_settings_that_differ(tmp_path):
    systems = {"small": [planned("small", seed, 0.1) for seed in (0, 1)], "sum": [planned("sum", 0, 1.0)] * 2}
    results = {"small": RESULTS["max/share=0.1"], "sum": RESULTS["sum"]}
    written, missing = write_curves(tmp_path, systems, results, ["data.share"])
    assert [one.name for one in written] == ["curves.svg", "curves-by-data.share.svg"]
    assert all(one.read_text().startswith("<?xml") for one in written)
    assert missing == ""


def test_epochs_are_drawn_of_runs_of_which_a_file_is_left(tmp_path):
    systems = {"max": [replace(planned("max", seed, 1.0), folder=tmp_path / f"seed-{seed}") for seed in (0, 1)]}
    history = tuple({"epoch": epoch, "loss": 1 / epoch, "rsum": 10.0 * epoch} for epoch in (1, 2))
    for run in systems["max"]:
        assert run.finished() is None
        FinishedRun.of({"settings": {}}, history, {}).to_json(run.file)
    written, missing = write_curves(tmp_path, systems, {"max": RESULTS["sum"]}, [])
    assert (len(written), missing) == (1, "")
    assert "Training by epoch" in written[0].read_text()


def test_what_cannot_be_drawn_is_said(tmp_path, monkeypatch):
    systems = {"one": [planned("one", 0, 1.0)]}
    results = {"one": [[measured(0, ["CS@2"], relevance=np.eye(6))]]}
    written, missing = write_curves(tmp_path, systems, results, [])
    assert written == ()
    assert missing.startswith("curves.svg is not drawn: nothing can be drawn")

    def without(*_, **__):
        raise MissingExtraError("matplotlib", "a picture")

    monkeypatch.setattr("rungwise.runs.curves._curve_plot.CurvePlot.save", without)
    written, missing = write_curves(tmp_path, {"sum": systems["one"]}, {"sum": [[measured(0)]]}, [])
    assert (written, missing.startswith("no curves are drawn: ")) == ((), True)
