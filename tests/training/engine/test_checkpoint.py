"""The state of a run in one file: what it keeps, what it refuses, and a run that is cut off anywhere."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from rungwise.cli import main
from rungwise.core import UserError, load_yaml
from rungwise.data import read
from rungwise.losses import ContrastiveSum
from rungwise.training.config import TrainConfig
from rungwise.training.engine import RunState, Trained, differing, load_checkpoint, save_checkpoint, train
from rungwise.training.engine._checkpoint import header_of
from rungwise.training.engine._collapse import CollapseMemory
from rungwise.training.steps import Adam
from tests.training import four_steps
from tests.training.conftest import dies_at
from tests.training.test_features import folder_of_features


class Model(nn.Module):
    """A frozen part, a trained one, and one with buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.BatchNorm1d(3).requires_grad_(False)
        self.linear = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)


def stepped() -> Trained:
    torch.manual_seed(0)
    model, loss = Model(), ContrastiveSum(learnable=True)
    parameters = [one for part in (model, loss) for one in part.parameters() if one.requires_grad]
    trained = Trained(model, loss, torch.optim.Adam(parameters, lr=0.1), Adam())
    for _ in range(3):
        vectors = model.norm(model.linear(torch.randn(5, 3)))
        loss(vectors @ vectors.T).backward()
        trained.optimizer.step()
        trained.optimizer.zero_grad()
    return trained


STATE = RunState(
    epoch=2,
    step=3,
    total_steps=17,
    loss_sum=0.1 + 0.2,
    pairs=40,
    best_value=100 / 3,
    best_epoch=1,
    history=[{"loss": 1e-17, "rsum": 100 / 3}],
    settings={"seed": 0, "loss": {"kind": "ladder", "thresholds": [0.1 + 0.2]}},
    data_hash="abc",
    collapse=CollapseMemory(flat_since=4, told=True),
)


def test_everything_comes_back_to_the_bit(tmp_path: Path) -> None:
    before = stepped()
    save_checkpoint(tmp_path / "state", before, STATE)
    state, tensors = load_checkpoint(tmp_path / "state")
    assert state == STATE
    torch.manual_seed(5)
    model, loss = Model(), ContrastiveSum(learnable=True)
    parameters = [one for part in (model, loss) for one in part.parameters() if one.requires_grad]
    after = Trained(model, loss, torch.optim.Adam(parameters, lr=0.1), Adam())
    after.restore(tensors)
    assert before.tensors().keys() == after.tensors().keys() == tensors.keys()
    for name, tensor in before.tensors().items():
        assert torch.equal(after.tensors()[name], tensor), name
    assert {"model/norm.running_mean", "loss/temperature.raw", "optimizer/loss/temperature.raw/exp_avg"} <= set(tensors)
    assert not any("frozen" in name for name in tensors)


def test_the_old_file_stays_where_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = stepped()
    save_checkpoint(tmp_path / "state", trained, STATE)
    before = (tmp_path / "state").read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(UserError, match="disk is full"):
        save_checkpoint(tmp_path / "state", trained, RunState())
    assert (tmp_path / "state").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def written(path: Path, state: object) -> Path:
    text = state if isinstance(state, str) else json.dumps(state)
    save_file({"model/linear.bias": torch.zeros(4)}, path, metadata={"state": text})
    return path


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_a_checkpoint_gets_the_mode_that_the_umask_says(mask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        save_checkpoint(tmp_path / "state", stepped(), RunState())
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == mode


def test_what_is_no_checkpoint_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no checkpoint")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    save_file({"a": torch.zeros(1)}, tmp_path / "bare")
    save_checkpoint(tmp_path / "cut", stepped(), STATE)
    whole = (tmp_path / "cut").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: len(whole) // 2])
    good = asdict(STATE)
    written(tmp_path / "no JSON", "{")
    written(tmp_path / "list", [1])
    written(tmp_path / "number", 3)
    written(tmp_path / "unknown field", good | {"mood": "good"})
    written(tmp_path / "collapse", good | {"collapse": [1]})
    written(tmp_path / "text for a number", good | {"epoch": "two"})
    written(tmp_path / "settings", good | {"settings": []})
    written(tmp_path / "deep", "[" * 100_000 + "]" * 100_000)
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(UserError, match="not a readable checkpoint") as caught:
            load_checkpoint(path)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)
        assert len(str(caught.value)) < 1000
    with pytest.raises(UserError, match="no checkpoint to resume from; start the run without resume"):
        load_checkpoint(tmp_path / "nowhere")


def test_tensors_of_another_run_are_refused() -> None:
    trained = stepped()
    tensors = dict(trained.tensors())
    missing = {name: one for name, one in tensors.items() if name != "model/linear.weight"}
    for wrong in (
        missing,
        tensors | {"model/linear.weight": torch.zeros(7, 7)},
        tensors | {"model/extra": torch.ones(1)},
    ):
        with pytest.raises(UserError, match="checkpoint") as caught:
            trained.restore(wrong)
        assert "\n" not in str(caught.value)


def test_a_checkpoint_without_moments_or_with_a_part_of_them_is_refused() -> None:
    trained = stepped()
    tensors, name = dict(trained.tensors()), "optimizer/linear.weight"
    moments = {one for one in tensors if one.startswith("optimizer/")}
    for gone, named in (
        (moments, "optimizer/linear.bias/exp_avg"),
        ({f"{name}/exp_avg"}, f"{name}/exp_avg: no such tensor, where the run has (4, 3)"),
        ({f"{name}/exp_avg_sq"}, f"{name}/exp_avg_sq"),
        ({f"{name}/step"}, f"{name}/step"),
    ):
        with pytest.raises(UserError, match=re.escape(named)):
            stepped().restore({one: tensor for one, tensor in tensors.items() if one not in gone})
    for wrong, named in (
        ({f"{name}/exp_avg": torch.zeros(4)}, f"{name}/exp_avg: (4,), where the run has (4, 3)"),
        ({f"{name}/step": torch.zeros(2)}, f"{name}/step: (2,), where the run has ()"),
        (
            {"optimizer/other.weight/step": torch.zeros(())},
            "optimizer/other.weight/step: (), where the run has no such",
        ),
    ):
        before = {one: tensor.clone() for one, tensor in trained.tensors().items()}
        with pytest.raises(UserError, match=re.escape(named)):
            trained.restore(tensors | wrong)
        assert all(torch.equal(tensor, before[one]) for one, tensor in trained.tensors().items())
    never_moved = {one for one in moments if "temperature" in one}
    stepped().restore({one: tensor for one, tensor in tensors.items() if one not in never_moved})
    stepped().restore({one: tensor for one, tensor in tensors.items() if one not in moments}, steps=0)


@pytest.mark.parametrize("part", range(6))
def test_one_flipped_bit_in_a_checkpoint_is_noticed(part: int, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "state", stepped(), STATE)
    data = bytearray((tmp_path / "state").read_bytes())
    head = 8 + int.from_bytes(data[:8], "little")
    data[head + (len(data) - head) * part // 6] ^= 1
    (tmp_path / "state").write_bytes(data)
    with pytest.raises(UserError, match=r"state: the checkpoint is not as it was written \(the checksums differ\)"):
        load_checkpoint(tmp_path / "state")


def test_an_altered_checkpoint_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "state", stepped(), STATE)
    tensors = load_file(tmp_path / "state")
    with safe_open(tmp_path / "state", framework="pt") as file:
        said = file.metadata()
    name = "optimizer/linear.weight/exp_avg"
    fewer = {one: tensor for one, tensor in tensors.items() if one != name}
    edited = said | {"state": json.dumps(asdict(STATE) | {"best_value": 600.0})}
    for changed, header, message in (
        (fewer, said, f"{name} is missing from it"),
        (tensors | {"model/more": torch.zeros(1)}, said, "model/more was added to it"),
        (tensors, edited, "the checksums differ"),
        (tensors | {name: tensors[name].double()}, said, "the checksums differ"),
    ):
        save_file(changed, tmp_path / "changed", metadata=header)
        with pytest.raises(UserError, match=message) as caught:
            load_checkpoint(tmp_path / "changed")
        assert "\n" not in str(caught.value)
    save_file(tensors, tmp_path / "unsigned", metadata={"state": said["state"]})
    with pytest.raises(UserError, match="not a readable checkpoint"):
        load_checkpoint(tmp_path / "unsigned")


@pytest.mark.parametrize(
    ("odd", "line"),
    [
        ({"epoch": -1}, "epoch: must be at least 0"),
        ({"epoch": 2**62}, "epoch: must be at most"),
        ({"step": -3}, "step: must be at least 0"),
        ({"total_steps": True}, "total_steps: must be a whole number"),
        ({"scaling": {"scale": float("inf")}}, "scaling.scale: must be a finite number"),
        ({"collapse": {"flat_since": -2}}, "collapse.flat_since: must be at least"),
        ({"best_epoch": 2}, "best_epoch: the history has no numbers of epoch 2"),
        ({"history": [{"loss": 1.0}]}, "best_epoch: the history has no numbers of epoch 1"),
    ],
)
def test_numbers_that_no_run_can_have_are_refused(odd: dict[str, object], line: str, tmp_path: Path) -> None:
    """Also where somebody wrote the checksum anew."""
    save_checkpoint(tmp_path / "state", stepped(), STATE)
    said, tensors = json.dumps(asdict(STATE) | odd), load_file(tmp_path / "state")
    save_file(tensors, tmp_path / "odd", metadata=header_of(said, tensors))
    with pytest.raises(UserError, match=line) as caught:
        load_checkpoint(tmp_path / "odd")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("then", "now", "lines"),
    [
        ({}, {}, []),
        ({"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 2}}}, ["a.b.c: 1 then, 2 now"]),
        ({"a": 1}, {}, ["a: 1 then, None now"]),
        ({}, {"a": [1]}, ["a: None then, [1] now"]),
        ({"loss": {"kind": "ladder"}}, {"loss": "x"}, ["loss: {'kind': 'ladder'} then, 'x' now"]),
        ({"b": 1, "a": 2}, {"a": 3, "b": 0}, ["b: 1 then, 0 now", "a: 2 then, 3 now"]),
        ({"a": 0.1 + 0.2}, {"a": 0.3}, ["a: 0.30000000000000004 then, 0.3 now"]),
    ],
)
def test_settings_that_differ_are_named(then: dict, now: dict, lines: list[str]) -> None:
    assert differing(then, now) == lines


CONFIGURATION = """
data: {relevance: {kind: tfidf, tokenizer: unicode}, reference: batch}
model: {image: {kind: features}, text: {word_dimension: 8, min_count: 1}, dimension: 16, similarity: {kind: order}}
loss:
  kind: weighted
  losses:
    - {kind: ladder, shares: [0.2]}
    - {kind: multi_modal_nce, learnable: true}
  weights: [1.0, 0.5]
sampler: {kind: relevance_aware, at_least: 0.2}
step: {kind: cached_gradients, chunk: 5}
epochs: [2, 1]
learning_rates: [1.0e-2, 1.0e-3]
batch_size: 12
checkpoint_steps: 2
"""


@pytest.mark.smoke
def test_a_process_that_was_killed_is_resumed_to_the_bit(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.training.four_steps", str(tmp_path / "cut"), "3"]
    assert subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}).returncode == -signal.SIGKILL
    state, _ = load_checkpoint(tmp_path / "cut" / "checkpoint.safetensors")
    assert state.total_steps == 3
    four_steps.run(tmp_path / "cut", resume=True)
    four_steps.run(tmp_path / "whole")
    for name in ("checkpoint.safetensors", "model/model.safetensors"):
        one, other = load_file(tmp_path / "whole" / name), load_file(tmp_path / "cut" / name)
        assert one.keys() == other.keys()
        assert all(torch.equal(tensor, other[key]) for key, tensor in one.items())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, a configuration and the run that nothing interrupts."""
    home = tmp_path_factory.mktemp("whole")
    data = read(folder_of_features(home / "data", (7,)))
    (home / "run.yaml").write_text(CONFIGURATION)
    train(load_yaml(TrainConfig, home / "run.yaml"), data, home / "whole")
    return home


@pytest.mark.parametrize("cut", [1, 9, *(pytest.param(cut, marks=pytest.mark.slow) for cut in (5, 14))])
def test_a_weighted_sum_with_a_learned_temperature_resumes_to_the_bit(
    cut: int, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, config = read(whole / "data"), load_yaml(TrainConfig, whole / "run.yaml")
    with monkeypatch.context() as patch:
        dies_at(patch, cut)
        with pytest.raises(SystemError):
            train(config, data, tmp_path / "cut")
    if cut < 2:  # before the first checkpoint: the run is started again where it stood
        train(config, data, tmp_path / "cut")
    else:
        asked = ["train", str(tmp_path / "cut" / "config.yaml"), str(whole / "data"), "--resume", "--device", "cpu"]
        assert main([*asked, "--out", str(tmp_path / "cut")]) == 0
    one, other = (load_file(run / "checkpoint.safetensors") for run in (whole / "whole", tmp_path / "cut"))
    assert one.keys() == other.keys()
    assert "loss/losses.1.temperature.raw" in one
    begun = config.loss.losses[1].build().state_dict()["temperature.raw"]
    assert one["loss/losses.1.temperature.raw"] != begun
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name
    said, again = ((run / "config.yaml").read_text().splitlines()[:-1] for run in (whole / "whole", tmp_path / "cut"))
    assert "\n".join(said).replace("path: ''", "") == "\n".join(again).replace(f"path: {whole / 'data'}", "").replace(
        "path: ''", ""
    )
