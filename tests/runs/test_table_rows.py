import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from rungwise.core import UserError, dump_yaml
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.models import VSEConfig
from rungwise.runs import RunWithResults, find_runs, ours_for
from rungwise.runs._table_rows import differences
from rungwise.training.config import DataConfig, TrainConfig, load_preset
from tests.evaluation.tables.test_paper_table import RECALLS, result_of


def tiny():
    image = ImageConfig("test_resnet.r160_in1k", weights="random", size=24)
    model = VSEConfig(image=image, text=GRUConfig(word_dimension=8, min_count=1), dimension=16)
    return TrainConfig(model=model, epochs=(1,), learning_rates=(1e-2,), batch_size=8, logs=("jsonl",))


@pytest.fixture(scope="module")
def preset():
    """One that stands for a row of the paper's first table, under five folds."""
    return load_preset("vsepp/coco:rc-rv")


def run_of(of, folder="runs/a", numbers=RECALLS, results=None, **changes):
    config = replace(of.config, **changes)
    return RunWithResults(Path(folder), config, (result_of(numbers),) if results is None else results)


def test_seeds_make_one_line_and_other_settings_another(preset):
    runs = [
        run_of(preset, f"runs/{seed}", {name: value + seed for name, value in RECALLS.items()}, seed=seed)
        for seed in (0, 1, 2)
    ]
    runs.append(run_of(preset, "runs/short", epochs=(2, 1), data=DataConfig(path="elsewhere", share=0.1)))
    ours, left_out = ours_for("vsepp", "1", runs)
    assert left_out == ()
    assert [(one.name, len(one.results)) for one in ours] == [
        (f"{preset.name}, 3 runs, seeds 0, 1, 2", 3),
        (f"{preset.name}, runs/short", 1),
    ]
    assert ours[0].notes == (f"{preset.name}: with the settings of the preset",)
    (note,) = ours[1].notes
    assert f"epochs [2, 1] instead of {list(preset.config.epochs)}" in note
    assert "data.share 0.1 instead of 1.0" in note
    assert "path" not in note


def test_what_changes_no_number_is_no_difference(preset):
    other = replace(
        preset.config, seed=7, checkpoint_steps=3, logs=("jsonl",), compile="no", preset="", modules=("mine",)
    )
    assert differences(preset.config, other) == ()


def test_another_backbone_is_named(preset):
    image = ImageConfig("mobilenetv2_100", weights="random", size=24)
    changed = replace(preset.config, model=replace(preset.config.model, image=image))
    assert any("model.image.backbone mobilenetv2_100 instead of" in one for one in differences(preset.config, changed))


def test_measures_of_several_results_come_together(preset):
    halves = [{name: value for name, value in RECALLS.items() if name.startswith(way)} for way in ("i2t", "t2i")]
    (one,), _ = ours_for("vsepp", "1", [run_of(preset, results=tuple(map(result_of, halves)))])
    assert one.results[0].numbers == RECALLS


def test_runs_without_a_row_are_listed_with_the_reason(preset):
    runs = [
        run_of(preset, "runs/own", preset=""),
        run_of(preset, "runs/later", preset="nothing/own"),
        run_of(preset, "runs/quick", preset="quick/own"),
        run_of(preset, "runs/new", results=()),
    ]
    ours, left_out = ours_for("vsepp", "1", runs)
    assert ours == ()
    assert left_out[0] == "runs/own: its settings are of no preset, so that it stands for no printed row"
    assert left_out[1].startswith("runs/later: there is no preset")
    assert left_out[2].startswith("runs/quick: no paper printed a row of quick/own")
    assert left_out[3].startswith("runs/new: has no results yet; rungwise evaluate runs/new DATA --protocol coco-1k")
    _, (line,) = ours_for("vsepp", "3", [run_of(preset)])
    assert line == f"runs/a: {preset.name} reproduces rows of vsepp:1, vsepp:2, ladder_loss:1, none of this table"


def test_runs_are_found_below_a_folder_and_once(tmp_path):
    for name in ("vsepp/seed-0", "vsepp/seed-1", "other", ".hidden", "unfinished"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(dump_yaml(tiny()))
        if name != "unfinished":
            (folder / "model").mkdir()
            (folder / "model" / "config.json").write_text("{}")
    inner = tmp_path / "other" / "stages" / "1-base"
    inner.mkdir(parents=True)
    (inner / "config.yaml").write_text(dump_yaml(tiny()))
    odd = tmp_path / "odd"
    shutil.copytree(tmp_path / "other", odd)
    (odd / "config.yaml").write_text("modules: [theirs]\nloss: their_loss\n")
    found, unreadable = find_runs([tmp_path, tmp_path / "vsepp"])
    (line,) = unreadable
    assert line.startswith(f"{odd}: cannot be read: ")
    assert "there is no loss 'their_loss'" in line
    assert "the module theirs, and what a folder names is not imported; if you trust it, give its file, such as" in line
    assert "such as --module theirs.py, or import it in Python" in line
    assert [run.folder.relative_to(tmp_path).as_posix() for run in found] == ["other", "vsepp/seed-0", "vsepp/seed-1"]
    assert found[0].results == ()
    with pytest.raises(UserError, match="unfinished: holds no run with a model"):
        find_runs([tmp_path / "unfinished"])
    with pytest.raises(UserError, match="nowhere: is no folder"):
        find_runs([tmp_path / "nowhere"])
