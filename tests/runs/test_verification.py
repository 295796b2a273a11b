import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from rungwise.data import ImageCaptions
from rungwise.evaluation import evaluate
from rungwise.runs import verify_run
from rungwise.training import is_run
from rungwise.training import run as run_stages
from rungwise.training.config import TrainConfig
from rungwise.training.config._stage import Stage
from rungwise.training.engine._checkpoint import header_of
from tests.training.conftest import TrainedRun, once


@pytest.fixture
def run(trained_run: TrainedRun, tmp_path: Path) -> Path:
    return trained_run.copied(tmp_path / "run")


def wrong(run: Path) -> list[str]:
    return [check.wrong for check in verify_run(run) if check.wrong]


def test_a_sound_run_is_found_sound(trained_run: TrainedRun) -> None:
    run = trained_run.folder
    lines = [str(check) for check in verify_run(run)]
    assert all(line.startswith("ok: ") for line in lines)
    assert [line.split(":")[1] for line in lines] == [
        " config.yaml", " steps.jsonl", " checkpoint.safetensors", " history.jsonl",
    ]  # fmt: skip
    assert "after epoch 2, step 0 of the next" in lines[2]
    assert is_run(run)


def altered(run: Path, tensors: dict[str, torch.Tensor], *, anew: bool = False) -> None:
    """As somebody else may have written it, with the checksum as it was or anew."""
    with safe_open(run / "checkpoint.safetensors", framework="pt") as file:
        said = file.metadata()
    said = header_of(said["state"], tensors) if anew else said
    save_file(tensors, run / "checkpoint.safetensors", metadata=said)


def test_what_is_wrong_is_named(run: Path) -> None:
    tensors = load_file(run / "checkpoint.safetensors")
    name = "model/image_projection.weight"
    altered(run, tensors | {name: tensors[name] + 1})
    assert "the checksums differ" in wrong(run)[0]
    altered(run, tensors | {name: tensors[name] * torch.nan}, anew=True)
    assert f"{name} holds NaN or infinity" in wrong(run)[0]
    altered(run, {key: one for key, one in tensors.items() if key.startswith("model/")}, anew=True)
    assert "holds nothing of the optimizer" in wrong(run)[0]


def test_a_run_whose_loss_is_of_a_module_that_is_missing_was_not_checked(run: Path) -> None:
    with safe_open(run / "checkpoint.safetensors", framework="pt") as file:
        state = json.loads(file.metadata()["state"])
    state["settings"] |= {"loss": {"kind": "their_loss"}, "modules": ["their_file"]}
    tensors = load_file(run / "checkpoint.safetensors")
    save_file(tensors, run / "checkpoint.safetensors", metadata=header_of(json.dumps(state), tensors))
    assert wrong(run) == []
    (left,) = [check for check in verify_run(run) if check.unchecked]
    assert str(left).startswith("not checked: checkpoint.safetensors: ")
    assert "there is no loss 'their_loss' here; it was made with the module their_file" in left.unchecked
    assert "give its file, such as --module their_file.py, or import it in Python" in left.unchecked


def test_lines_of_steps_and_a_configuration_without_its_checksum(run: Path) -> None:
    path = run / "steps.jsonl"
    path.write_text(path.read_text().replace('"epoch": 1', '"epoch": 2', 1))
    assert "steps.jsonl, line 1: its checksum is another" in wrong(run)[0]
    lines = (run / "config.yaml").read_text().splitlines()
    (run / "config.yaml").write_text("\n".join(lines[:-1]) + "\n")
    (left,) = [check for check in verify_run(run) if check.unchecked]
    assert "it has no checksum" in left.unchecked


def test_results_of_a_run_are_read(run: Path) -> None:
    (run / "results").mkdir()
    path = run / "results" / "one.json"
    evaluate(similarity=np.eye(4), image_of_caption=np.arange(4)).to_json(path)
    assert any("results/one.json" in str(check) and check.found for check in verify_run(run))
    path.write_text(path.read_text().replace("100.0", "99.0", 1))
    assert "one.json" in wrong(run)[0]


def test_files_that_do_not_belong_together_are_found(run: Path) -> None:
    lines = (run / "history.jsonl").read_text().splitlines()
    (run / "history.jsonl").write_text(lines[0] + "\n" + json.dumps(json.loads(lines[1]) | {"rsum": 600.0}) + "\n")
    assert "2 epochs, which are not those of checkpoint.safetensors" in wrong(run)[0]
    (run / "history.jsonl").write_text("".join(line + "\n" for line in [*lines, lines[1]]))
    assert not wrong(run), "a run that was cut off after its validation"
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("seed: 0", "seed: 7"))
    assert "config.yaml: altered or damaged since the run wrote it" in wrong(run)[0]
    assert "seed: 0 then, 7 now" in wrong(run)[1]
    (run / "config.yaml").write_text("[")
    assert len(wrong(run)) == 2


def test_a_run_of_stages_is_its_stages(
    config: TrainConfig, coloured: ImageCaptions, cache: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    two = replace(once(config, 1e-2), stages=(Stage("base"), Stage("on")))
    run_stages(two, coloured, out, cache=cache)
    lines = [str(check) for check in verify_run(out)]
    assert lines[0] == "ok: config.yaml: 2 stages of vse, 2 epochs"
    assert any(line.startswith("ok: stages/1-base/checkpoint.safetensors: ") for line in lines)
    assert lines[-1] == "ok: history.jsonl: 2 epochs, those of the stages"
    assert not wrong(out)
    history = (out / "history.jsonl").read_text()
    (out / "history.jsonl").write_text(history.replace('"on"', '"off"'))
    assert "2 epochs, which are not those of its stages" in wrong(out)[0]
    (out / "stages" / "1-base" / "checkpoint.safetensors").write_bytes(b"")
    assert "1-base/checkpoint.safetensors: not a readable checkpoint" in wrong(out)[0]
