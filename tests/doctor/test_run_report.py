"""Each fault planted in a small run is found by its name, and nothing else is.

``pytest -s`` prints a line for each. Also tests rungwise.doctor, rungwise.doctor._run_files, rungwise.doctor._losses,
rungwise.doctor._rungs.
"""

import json
import math
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from rungwise import doctor
from rungwise.core import UserError, dump_yaml, from_plain
from rungwise.data import read
from rungwise.doctor import Finding, examine_run, is_run
from rungwise.doctor._run_files import parts_of, read_run
from rungwise.losses import MaxOfHinges
from rungwise.scenes import SceneConfig, generate
from rungwise.training.config import TrainConfig, config_of
from rungwise.training.engine import load_checkpoint, train

IMAGE = {"kind": "convolutions", "size": 24, "channels": [8, 16], "halving": [0, 1], "hidden": 16}
TEXT = {"word_dimension": 16, "min_count": 1, "pool": "mean"}
MODEL = {"image": IMAGE, "text": TEXT, "text_head": "linear", "dimension": 32}
SETTINGS = {
    "model": MODEL,
    "batch_size": 32,
    "epochs": [3],
    "learning_rates": [4e-3],
    "loss": {"kind": "contrastive_sum", "temperature": 0.1, "reduction": "mean"},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "scenes"
    generate(folder, SceneConfig(pictures=150, side=48, val_share=0.1, test_share=0.1))
    return folder


def trained(data: Path, out: Path, **changes: Any) -> Path:
    config = from_plain(TrainConfig, {**SETTINGS, "data": {"path": str(data)}, **changes}, "test")
    train(config, read(data), out, device="cpu")
    return out


@pytest.fixture(scope="module")
def good(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(data, tmp_path_factory.mktemp("good") / "run")


@pytest.fixture
def copy(good: Path, tmp_path: Path) -> Path:
    shutil.copytree(good, tmp_path / "run")
    return tmp_path / "run"


def names(folder: Path, **options: Any) -> list[str]:
    return [finding.name for finding in examine_run(folder, **options).findings]


def found(planted: str, folder: Path, name: str) -> Finding:
    """The one finding; prints its line."""
    report = examine_run(folder)
    print(f"\n{planted} -> {', '.join(one.name for one in report.findings) or 'nothing'}")
    assert [one.name for one in report.findings] == [name]
    assert report.left_out == ()
    assert report.findings[0].what.endswith(".")
    assert report.findings[0].cure
    return report.findings[0]


def with_history(folder: Path, change: Callable[[int, dict[str, float]], Mapping[str, float]], epochs: int) -> None:
    """A history of so many epochs that rank better than chance, and no checkpoint that knows another."""
    row = json.loads((folder / "history.jsonl").read_text().splitlines()[0]) | {"i2t/R@1": 40.0, "t2i/R@1": 40.0}
    row.pop("loss_in_force")  # of another loss than some of these runs say
    rows = [{**row, "epoch": float(at), **change(at, row)} for at in range(1, epochs + 1)]
    (folder / "history.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    (folder / "checkpoint.safetensors").unlink()
    (folder / "steps.jsonl").unlink(missing_ok=True)


def with_settings(folder: Path, data: Path, **changes: Any) -> None:
    config = from_plain(TrainConfig, {**SETTINGS, "data": {"path": str(data)}, **changes}, "test")
    (folder / "config.yaml").write_text(dump_yaml(config))


def with_steps(folder: Path, rows: list[dict[str, Any]]) -> None:
    (folder / "steps.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_nothing_is_found_in_a_good_run(good: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in good.rglob("*")}
    report = examine_run(good)
    print(f"\ngood run -> {', '.join(one.name for one in report.findings) or 'nothing'}")
    assert report.findings == ()
    assert report.left_out == ()
    assert report.examined[0].startswith("3 of 3 epochs finished, loss contrastive_sum, best after epoch ")
    assert {path: path.stat().st_mtime_ns for path in good.rglob("*")} == before, "the doctor never writes"


def test_a_learning_rate_of_nothing(data: Path, tmp_path: Path) -> None:
    finding = found("rate 0", trained(data, tmp_path / "run", epochs=[2], learning_rates=[0.0]), "learning rate is 0")
    assert "all 1 phases (2 epochs)" in finding.what


def test_a_phase_without_a_rate(copy: Path, data: Path) -> None:
    with_settings(copy, data, epochs=[1, 2], learning_rates=[1e-3, 0.0])
    finding = found("rate 0 in the second phase", copy, "learning rate is 0")
    assert "2 of 3 epochs" in finding.what


def test_a_collapse_of_the_max_of_hinges(data: Path, tmp_path: Path) -> None:
    run = trained(data, tmp_path / "run", loss={"kind": "max_of_hinges"}, learning_rates=[0.3], epochs=[4])
    finding = found("max of hinges, rate 0.3", run, "collapse")
    assert "0.4 a pair, 2 x margin" in finding.what
    assert "warm_up_epochs" in finding.cure


def test_a_collapse_of_any_loss_by_the_log_of_steps(copy: Path) -> None:
    with_steps(copy, [{"total_step": 10 * at, "epoch": 1, "loss": 1.0, "spread": 1e-5} for at in range(1, 6)])
    assert "collapse" in found("spread below 1e-3 in the log of steps", copy, "collapse").name
    with_steps(copy, [{"total_step": 10 * at, "epoch": 1, "loss": 1.0, "spread": 0.4} for at in range(1, 6)])
    assert names(copy) == []


def test_an_exploding_loss(data: Path, tmp_path: Path) -> None:
    run = trained(
        data,
        tmp_path / "run",
        model={**MODEL, "similarity": "inner"},
        loss={"kind": "sum_of_hinges"},
        epochs=[1, 2],
        learning_rates=[4e-3, 2.0],
    )
    assert "times as much" in found("rate 2.0 in the second phase, inner product", run, "exploding loss").what


def test_a_loss_that_exploded_within_the_first_epoch(copy: Path) -> None:
    for name in ("checkpoint.safetensors", "history.jsonl"):
        (copy / name).unlink()
    shutil.rmtree(copy / "model")
    with_steps(copy, [{"total_step": 10 * at, "epoch": 1, "loss": 2.0**at} for at in range(1, 5)])
    assert "8 times as much" in found("no epoch finished, loss doubling", copy, "exploding loss").what


def test_weights_that_are_no_numbers(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, tensors = load_checkpoint(copy / "checkpoint.safetensors")
    name = next(one for one in tensors if one.startswith("model/"))
    tensors[name] = torch.full_like(tensors[name], math.nan)
    monkeypatch.setattr("rungwise.training.engine._checkpoint.load_checkpoint", lambda path: (state, tensors))
    assert found("NaN in the checkpoint", copy, "exploding loss").places == (name,)


def test_the_plateau(copy: Path, data: Path) -> None:
    with_settings(copy, data, loss={"kind": "max_of_hinges"})
    with_history(copy, lambda at, row: {"loss": 0.45 if at < 3 else 0.401}, 5)
    finding = found("loss at 2 x margin", copy, "2 x margin plateau")
    assert "last 3 of 5 epochs" in finding.what
    assert config_of(MaxOfHinges)().build().rests_at == 0.4
    with_history_of_a_warm_up(copy, data)
    assert names(copy) == [], "the loss that warms up is another one"


def with_history_of_a_warm_up(folder: Path, data: Path) -> None:
    with_settings(folder, data, loss={"kind": "max_of_hinges"}, warm_up_epochs=3, epochs=[5])
    rows = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    losses = [9.0, 8.0, 0.4, 0.9, 0.7]
    lines = [json.dumps({**row, "loss": loss}) for row, loss in zip(rows, losses, strict=True)]
    (folder / "history.jsonl").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("told", [True, False])
def test_a_loss_that_never_worked(copy: Path, data: Path, told: bool) -> None:
    """The warm-up was as long as the run; an older one does not say which loss an epoch had."""
    with_settings(copy, data, loss={"kind": "max_of_hinges"}, warm_up_epochs=3)
    said = {"loss_in_force": "sum_of_hinges"} if told else {}
    with_history(copy, lambda at, row: {"loss": 9.0 - at, **said}, 3)  # type: ignore[arg-type,return-value]
    finding = found("warm-up as long as the run", copy, "loss that never worked")
    assert finding.what == (
        "The loss max_of_hinges trained none of the 3 epochs: warm_up_epochs 3 gave them to sum_of_hinges (epochs 3)."
    )
    assert "warm_up_epochs 0 to 2" in finding.cure


def test_a_run_that_was_stopped_within_its_warm_up_is_no_fault(copy: Path, data: Path) -> None:
    with_settings(copy, data, loss={"kind": "max_of_hinges"}, warm_up_epochs=3, epochs=[9])
    with_history(copy, lambda at, row: {"loss": 9.0 - at, "loss_in_force": "sum_of_hinges"}, 3)  # type: ignore[arg-type,return-value,dict-item]
    assert names(copy) == []


def test_a_stage_whose_loss_never_worked_is_named(copy: Path, data: Path, tmp_path: Path) -> None:
    with_settings(copy, data, loss={"kind": "max_of_hinges"}, warm_up_epochs=3)
    with_history(copy, lambda at, row: {"loss": 9.0 - at, "loss_in_force": "sum_of_hinges"}, 3)  # type: ignore[arg-type,return-value,dict-item]
    whole = tmp_path / "whole"
    shutil.copytree(copy, whole / "stages" / "1-base")
    shutil.copy(copy / "config.yaml", whole / "config.yaml")
    (finding,) = [one for one in examine_run(whole).findings if one.name == "loss that never worked"]
    assert finding.what.startswith("stages/1-base: The loss max_of_hinges trained none")


def test_a_loss_that_was_always_0(copy: Path) -> None:
    with_history(copy, lambda at, row: {"loss": 0.0}, 3)
    assert "was 0 in every step of 3 epochs" in found("loss 0", copy, "loss that never worked").what


def test_a_stuck_loss(data: Path, tmp_path: Path) -> None:
    run = trained(data, tmp_path / "run", epochs=[2], learning_rates=[1e-8])
    assert "never lower than" in found("rate 1e-8", run, "stuck loss").what


def test_a_run_that_ranks_as_chance_does(copy: Path) -> None:
    with_history(copy, lambda at, row: {"loss": 3.4 - at / 10, "i2t/R@1": 6.0, "t2i/R@1": 7.0}, 3)
    assert "random rankings have" in found("R@1 near chance", copy, "no better than chance").what


def test_overfit(copy: Path) -> None:
    rsum = {1: 100.0, 2: 180.0, 3: 170.0, 4: 160.0, 5: 150.0, 6: 140.0}
    with_history(copy, lambda at, row: {"loss": 7.0 / at, "rsum": rsum[at]}, 6)
    finding = found("validation falls from epoch 2 on, loss too", copy, "overfit")
    assert finding.severity == "advice"
    assert finding.what.startswith("Epoch 2 was the best (rsum 180)")


def test_a_level_end_is_no_overfit(copy: Path) -> None:
    with_history(copy, lambda at, row: {"loss": 7.0 / at, "rsum": 180 - (at > 2)}, 8)
    assert names(copy) == []


def test_gradients_that_are_always_clipped(copy: Path) -> None:
    rows = [{"total_step": at, "epoch": 1, "loss": 1.0, "spread": 0.5, "gradient_norm": 80.0} for at in range(30)]
    with_steps(copy, rows)
    finding = found("gradients 40 times clip_norm", copy, "gradients always clipped")
    assert finding.what.startswith("30 of 30")
    with_steps(copy, [{**row, "gradient_norm": 3.0} for row in rows])
    assert names(copy) == []


def test_nothing_trained(copy: Path) -> None:
    for name in ("checkpoint.safetensors", "history.jsonl"):
        (copy / name).unlink()
    (copy / "steps.jsonl").unlink(missing_ok=True)
    assert names(copy) == ["nothing trained"]


def test_no_gradient_arrived(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, tensors = load_checkpoint(copy / "checkpoint.safetensors")
    still = {name: torch.zeros_like(one) if name.startswith("optimizer/") else one for name, one in tensors.items()}
    monkeypatch.setattr("rungwise.training.engine._checkpoint.load_checkpoint", lambda path: (state, still))
    assert "No gradient other than 0" in found("all moments are 0", copy, "nothing trained").what


def test_a_threshold_above_all_degrees(copy: Path, data: Path) -> None:
    with_settings(copy, data, loss={"kind": "ladder", "thresholds": [1.5, 0.4], "margins": [0.2, 0.1, 0.01],
                                    "weights": [1.0, 0.5, 0.25]})  # fmt: skip
    finding = found("threshold 1.5", copy, "empty rung")
    assert finding.what.startswith("Rung 1 of 3 (degrees at least 1.5) is empty for 100 %")


def test_rungs_that_hold_something(copy: Path, data: Path) -> None:
    with_settings(copy, data, loss={"kind": "ladder", "shares": [0.05]})
    assert names(copy) == []


def test_a_rung_between_two_equal_degrees_and_the_lowest(copy: Path, data: Path) -> None:
    with_settings(copy, data, loss={"kind": "ladder", "thresholds": [0.4, -1.0], "margins": [0.2, 0.1, 0.01],
                                    "weights": [1.0, 0.5, 0.25]})  # fmt: skip
    assert "Rung 3 of 3 (degrees below -1)" in found("threshold -1", copy, "empty rung").what


def test_words_that_the_model_lacks(copy: Path, data: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (data / "captions.jsonl").read_text().splitlines()]
    other = tmp_path / "other"
    shutil.copytree(data / "pictures", other / "pictures")
    lines = [json.dumps({**row, "caption": f"siehe {row['caption']} dort"}) for row in rows]
    (other / "captions.jsonl").write_text("\n".join(lines))
    report = examine_run(copy, other)
    assert [one.name for one in report.findings] == ["words missing from the vocabulary"]
    assert report.findings[0].what.startswith("The vocabulary of the model lacks ")
    assert {one.split()[0] for one in report.findings[0].places[:2]} == {"siehe", "dort"}


def test_data_that_have_moved_are_one_line(copy: Path, tmp_path: Path) -> None:
    with_settings(copy, tmp_path / "gone", epochs=[2], learning_rates=[0.0])
    report = examine_run(copy)
    assert [one.name for one in report.findings] == ["learning rate is 0"]
    assert len(report.left_out) == 1
    assert "gone" in report.left_out[0]
    assert "--data" in report.left_out[0]


def test_what_cannot_be_read_is_told_and_the_rest_is_examined(copy: Path) -> None:
    (copy / "config.yaml").write_text("epochs: [")
    (copy / "checkpoint.safetensors").write_bytes(b"\x00" * 40)
    report = examine_run(copy)
    assert len(report.left_out) == 3
    assert report.findings == ()


def test_a_line_that_was_cut_off_is_no_damage(copy: Path) -> None:
    with (copy / "history.jsonl").open("a") as file:
        file.write('{"epoch": 4.0, "lo')
    assert len(read_run(copy).history) == 3


def test_stages_and_seeds_are_examined_one_by_one(good: Path, tmp_path: Path, data: Path) -> None:
    for number, name in enumerate(("base", "fine_tune"), start=1):
        shutil.copytree(good, tmp_path / "run" / "stages" / f"{number}-{name}")
    with_settings(tmp_path / "run" / "stages" / "2-fine_tune", data, learning_rates=[0.0])
    finding = found("rate 0 in the second stage", tmp_path / "run", "learning rate is 0")
    assert finding.what.startswith("stages/2-fine_tune: The learning rate is 0")
    (tmp_path / "several").mkdir()
    for seed in (10, 9):
        shutil.copytree(good, tmp_path / "several" / f"seed-{seed}")
    assert is_run(tmp_path / "several")
    assert [one.name for one in parts_of(tmp_path / "several")] == ["seed-9", "seed-10"]
    assert len(examine_run(tmp_path / "several").examined) == 2


def test_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run here"):
        examine_run(tmp_path)


def test_a_name_that_the_package_lacks_is_said() -> None:
    with pytest.raises(AttributeError, match="'rungwise.doctor' has no attribute 'cure'"):
        _ = doctor.cure
