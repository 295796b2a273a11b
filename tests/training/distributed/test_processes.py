"""Two processes that torchrun started train as one does; what only one can do is refused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rungwise.cli import main
from rungwise.training.distributed import Processes, _processes, is_first
from rungwise.training.distributed._processes import asked_for
from rungwise.training.engine import load_checkpoint
from tests.ports import free_port
from tests.training import four_steps
from tests.training.conftest import files
from tests.training.test_features import folder_of_features

# 63 pairs: the last batch of an epoch has one, which two processes cannot share.
CONFIGURATION = """
data: {relevance: tfidf, reference: batch}
model: {text: {word_dimension: 8, min_count: 1}, dimension: 16}
loss:
  kind: weighted
  losses:
    - {kind: ladder, thresholds: [0.3], reduction: mean}
    - {kind: contrastive_sum, learnable: true, reduction: mean}
  weights: [1.0, 0.5]
epochs: [2, 1]
learning_rates: [1.0e-2, 1.0e-3]
batch_size: 31
"""


def torchrun(*arguments: str, processes: int = 2, module: str = "rungwise") -> subprocess.Popen[str]:
    """``rungwise`` on several processes, as a user starts them."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes)]
    command += ["--master_port", str(free_port()), "-m", module, *arguments]
    return subprocess.Popen(
        command,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finished(running: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status and what was said."""
    try:
        out, err = running.communicate()
    finally:
        if running.poll() is None:  # the test was interrupted
            os.killpg(running.pid, signal.SIGKILL)
    return running.returncode, out, err


def one_process(configuration: Path, data: str, out: Path, *more: str) -> None:
    assert main(["train", str(configuration), data, "--out", str(out), "--device", "cpu", *more]) == 0


def assert_alike(one: Path, other: Path) -> None:
    """Weights and learned temperature after the whole run."""
    first, second = (load_file(run / "checkpoint.safetensors") for run in (one, other))
    assert first.keys() == second.keys()
    assert any(name.startswith("loss/") for name in first)
    for name, tensor in first.items():
        if not name.startswith("optimizer/"):
            torch.testing.assert_close(second[name], tensor, atol=1e-5, rtol=1e-4, msg=lambda m, n=name: f"{n}: {m}")
    assert load_file(one / "model" / "model.safetensors").keys() == load_file(other / "model/model.safetensors").keys()


@pytest.mark.smoke
def test_four_steps_on_two_processes_that_torchrun_started_are_those_of_one(tmp_path: Path) -> None:
    running = torchrun(str(tmp_path / "two"), module="tests.training.four_steps")
    four_steps.run(tmp_path / "one")
    status, _, errors = finished(running)
    assert status == 0, errors
    (one, first), (two, second) = (load_checkpoint(tmp_path / run / "checkpoint.safetensors") for run in ("one", "two"))
    assert one.total_steps == two.total_steps == 4
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        if name.startswith("model/"):
            torch.testing.assert_close(second[name], tensor, atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.slow
def test_two_processes_equal_one_from_yaml(tmp_path: Path) -> None:
    data = str(folder_of_features(tmp_path / "data", (7,)))
    configuration = tmp_path / "run.yaml"
    configuration.write_text(CONFIGURATION)
    step = ("--step", "global_negatives")
    two = torchrun("train", str(configuration), data, "--out", str(tmp_path / "two"), "--device", "cpu", *step)
    one_process(configuration, data, tmp_path / "one", *step)
    one_process(configuration, data, tmp_path / "plain")
    status, said, errors = finished(two)
    assert status == 0, errors
    assert said.count("best epoch") == 1, "the first process speaks alone"
    assert_alike(tmp_path / "plain", tmp_path / "one")
    assert_alike(tmp_path / "one", tmp_path / "two")
    assert files(tmp_path / "one") == files(tmp_path / "two")
    histories = [load_checkpoint(tmp_path / run / "checkpoint.safetensors")[0].history for run in ("one", "two")]
    assert len(histories[0]) == len(histories[1]) == 3
    for first, second in zip(*histories, strict=True):
        assert second["loss"] == pytest.approx(first["loss"], abs=1e-4)
        assert second["rsum"] == pytest.approx(first["rsum"], abs=1e-3)


@pytest.mark.slow
def test_a_stop_of_both_is_resumed(tmp_path: Path) -> None:
    data = str(folder_of_features(tmp_path / "data", (7,)))
    configuration = tmp_path / "run.yaml"
    configuration.write_text(CONFIGURATION.replace("[2, 1]", "[4000, 1]"))
    out, checkpoint = str(tmp_path / "two"), tmp_path / "two" / "checkpoint.safetensors"
    asked = ("--step", "global_negatives", "--device", "cpu")
    running = torchrun("train", str(configuration), data, "--out", out, *asked)
    while not checkpoint.exists() and running.poll() is None:
        time.sleep(0.2)
    running.send_signal(signal.SIGINT)
    _, said, errors = finished(running)
    assert "stopped; go on with" in said, errors
    done = load_checkpoint(checkpoint)[0]
    assert 0 < done.epoch < 4000
    epochs = f"{done.epoch + 1}"
    assert main(["train", f"{out}/config.yaml", "--out", out, "--resume", *asked[2:], "--epochs", epochs, "1"]) == 0
    whole = tmp_path / "whole"
    one_process(configuration, data, whole, *asked[:2], "--epochs", epochs, "1")
    one, other = (load_checkpoint(run / "checkpoint.safetensors")[0].history for run in (whole, tmp_path / "two"))
    assert len(one) == len(other) == done.epoch + 2
    assert other[-1]["loss"] == pytest.approx(one[-1]["loss"], rel=0.05)


@pytest.mark.slow
def test_a_plain_step_on_two_processes_is_one_line(tmp_path: Path) -> None:
    data = str(folder_of_features(tmp_path / "data", (7,)))
    (tmp_path / "run.yaml").write_text(CONFIGURATION)
    running = torchrun("train", str(tmp_path / "run.yaml"), data, "--out", str(tmp_path / "run"), "--device", "cpu")
    status, _, errors = finished(running)
    assert status != 0
    lines = [line for line in errors.splitlines() if line.startswith("rungwise train: ")]
    assert lines
    assert set(lines) == {
        "rungwise train: 2 processes were started, but step plain uses one; set step: global_negatives, or start"
        " without torchrun"
    }
    assert "rungwise/training" not in errors, "no traceback of this package"
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_each_process_reads_the_rows_of_its_own_share(tmp_path: Path) -> None:
    data = folder_of_features(tmp_path / "data", (7,))
    rows = np.load(data / "features.npy")
    for number, part in enumerate(np.split(rows, [11, 30])):
        np.save(data / f"features-{number:05}-of-00003.npy", part)
    (data / "features.npy").unlink()
    configuration = tmp_path / "run.yaml"
    configuration.write_text(CONFIGURATION.replace("[2, 1]", "[1, 1]").replace("batch_size: 31", "batch_size: 16"))
    asked = (str(tmp_path), "train", str(configuration), str(data), "--out", str(tmp_path / "run"), "--device", "cpu")
    status, _, errors = finished(torchrun(*asked, "--step", "global_negatives", module="tests.training.reading_rows"))
    assert status == 0, errors
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    order = [int(line.partition(".")[0]) for line in (data / "ids.txt").read_text().splitlines()]
    train, validation = ({order.index(image) for image in some} for some in (range(32), range(32, 40)))
    captions = sum(1 + image % 3 for image in range(32))
    one, other = (sum(row in train for row in read) for read in (first, second))
    # Two epochs of batches of 16, 16, 16 and 15 pairs, of which the first process takes the larger half.
    assert (captions, one, other) == (63, 64, 62)
    assert not validation & set(second), "the first process validates"
    assert validation <= set(first)


def test_a_batch_is_shared_in_order() -> None:
    batch = np.array([7, 3, 9, 1, 4])
    shares = [Processes(rank, 3).own(batch).tolist() for rank in range(3)]
    assert [len(share) for share in shares] == [2, 2, 1]
    assert np.concatenate(shares).tolist() == batch.tolist()


def test_what_torchrun_says_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (asked_for(), is_first()) == (1, True)
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "2")
    assert (asked_for(), is_first()) == (4, False)


def test_the_command_that_goes_on_names_the_modules_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_processes, "is_begun", lambda _: True)
    monkeypatch.setattr(_processes, "named_modules", lambda: ("mine.losses", "/home/me/my own.py"))
    assert _processes.resuming(tmp_path / "config.yaml", tmp_path).endswith(
        f" --out {tmp_path} --module mine.losses --module '/home/me/my own.py' --resume"
    )


def test_one_process_goes_through_without_waiting() -> None:
    alone = Processes()
    with alone.first_before_others():
        alone.wait()
    assert alone.any(True)
    assert not alone.any(False)
