"""A process that is lost ends the others with one line, and the run goes on to the bit."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rungwise.training.checkpoint import RunState, load_checkpoint
from rungwise.training.heartbeats import Heartbeats, reason_of_loss
from tests.ports import free_port
from tests.training.test_features import folder_of_features
from tests.training.test_processes import CONFIGURATION, finished, torchrun

MANY = "[600, 1]"
"""Epochs that take longer than a test needs to end one of the processes."""

TIMES = ("second", "memory")
"""In the names of numbers that no two runs have alike."""


class OnePlace:
    """Notes of processes that all run in this one."""

    def __init__(self) -> None:
        self.notes: dict[str, str] = {}
        self.broken = False

    def set(self, key: str, value: str) -> None:
        if self.broken:
            raise RuntimeError("Broken pipe")
        self.notes[key] = value

    def get(self, key: str) -> bytes:
        return self.notes[key].encode()

    def check(self, keys: list[str]) -> bool:
        return all(key in self.notes for key in keys)


def until(happened: Callable[[], object], seconds: float = 20) -> None:
    begun = time.monotonic()
    while not happened():
        assert time.monotonic() - begun < seconds
        time.sleep(0.01)


def test_processes_that_live_are_not_lost_and_one_that_is_silent_is() -> None:
    board, said = OnePlace(), dict[int, str]()
    hearts = [
        Heartbeats(board, rank, 3, lost_after=2, lost=lambda line, of=rank: said.setdefault(of, line))
        for rank in range(3)
    ]
    for one in hearts:
        one.start()
    time.sleep(3)
    assert not said
    hearts[1].stop()
    until(lambda: len(said) == 2)
    assert said == dict.fromkeys((0, 2), "process 1 of 3 has not been heard of for 2 s")


def test_a_process_that_never_came_is_lost() -> None:
    said: list[str] = []
    hearts = Heartbeats(OnePlace(), 0, 2, lost_after=0.3, lost=said.append)
    hearts.start()
    until(lambda: said)
    assert said == ["process 1 of 2 has not been heard of for 0.3 s"]


def test_the_place_to_meet_at_may_be_lost() -> None:
    board, said = OnePlace(), list[str]()
    board.broken = True
    Heartbeats(board, 0, 2, lost_after=3, lost=said.append).start()
    until(lambda: said)
    assert said == ["process 0 of 2 no longer reaches the machine that all processes meet at"]


def test_nobody_is_lost_after_the_end() -> None:
    said: list[str] = []
    hearts = Heartbeats(OnePlace(), 0, 2, lost_after=0.2, lost=said.append)
    hearts.start()
    hearts.stop()
    time.sleep(0.5)
    assert not said


def test_errors_of_another_cause_are_no_loss() -> None:
    assert reason_of_loss(RuntimeError("shapes do not match")) is None
    assert reason_of_loss(ValueError("gloo")) is None
    assert reason_of_loss(torch.distributed.DistNetworkError("no answer")) == "no answer"


def workers_of(agent: int) -> dict[int, int]:
    """The processes that an agent of torchrun started, by their ranks."""
    found = {}
    for child in Path(f"/proc/{agent}/task/{agent}/children").read_text().split():
        said = dict(one.split("=", 1) for one in Path(f"/proc/{child}/environ").read_text().split("\0") if "=" in one)
        if "RANK" in said:
            found[int(said["RANK"])] = int(child)
    return found


def is_alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


def begun(checkpoint: Path, running: subprocess.Popen[str]) -> None:
    """Wait until some epochs are behind a run."""
    until(lambda: running.poll() is not None or (checkpoint.exists() and load_checkpoint(checkpoint)[0].epoch), 120)
    assert running.poll() is None, running.communicate()


def lines_of(errors: str) -> list[str]:
    return [line for line in errors.splitlines() if line.startswith("rungwise train: ")]


def numbers(state: RunState) -> list[dict[str, float]]:
    return [
        {name: one for name, one in line.items() if not any(part in name for part in TIMES)} for line in state.history
    ]


def assert_to_the_bit(one: Path, other: Path) -> None:
    """Weights, moments, history and the model that was kept."""
    (first, tensors), (second, others) = (load_checkpoint(run / "checkpoint.safetensors") for run in (one, other))
    assert tensors.keys() == others.keys()
    assert all(torch.equal(tensor, others[name]) for name, tensor in tensors.items())
    assert numbers(first) == numbers(second)
    assert (first.best_value, first.best_epoch) == (second.best_value, second.best_epoch)
    kept, also = (load_file(run / "model" / "model.safetensors") for run in (one, other))
    assert kept.keys() == also.keys()
    assert all(torch.equal(tensor, also[name]) for name, tensor in kept.items())


def prepared(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "run.yaml").write_text(CONFIGURATION.replace("[2, 1]", MANY))
    return str(tmp_path / "run.yaml"), str(folder_of_features(tmp_path / "data", (7,)))


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0])
def test_a_killed_process_ends_the_run_which_goes_on_to_the_bit(tmp_path: Path, lost: int) -> None:
    configuration, data = prepared(tmp_path)
    asked = ("--step", "global_negatives", "--device", "cpu", "--checkpoint-steps", "1")
    out, checkpoint = tmp_path / "two", tmp_path / "two" / "checkpoint.safetensors"
    running = torchrun("train", configuration, data, "--out", str(out), *asked)
    begun(checkpoint, running)
    workers = workers_of(running.pid)
    os.kill(workers[lost], signal.SIGKILL)
    killed = time.monotonic()
    status, _, errors = finished(running)
    assert time.monotonic() - killed < 60
    assert status != 0
    assert not any(map(is_alive, workers.values()))
    assert len(lines_of(errors)) == 1, errors
    line = lines_of(errors)[0]
    assert "another process is gone (" in line
    assert line.endswith(
        "; the last checkpoint is whole; go on with: torchrun --nproc_per_node 2 -m rungwise train"
        f" {out}/config.yaml --out {out} --resume"
    )
    assert "Traceback" not in errors.partition("rungwise train: ")[0]
    done = load_checkpoint(checkpoint)[0]
    assert done.epoch >= 1
    epochs = ("--epochs", str(done.epoch + 2), "1")
    again = torchrun("train", f"{out}/config.yaml", "--out", str(out), "--resume", "--device", "cpu", *epochs)
    status, _, errors = finished(again)
    assert status == 0, errors
    whole = torchrun("train", configuration, data, "--out", str(tmp_path / "whole"), *asked, *epochs)
    status, _, errors = finished(whole)
    assert status == 0, errors
    assert_to_the_bit(tmp_path / "whole", out)


@pytest.mark.slow
def test_a_process_that_stands_still_ends_the_run(tmp_path: Path) -> None:
    configuration, data = prepared(tmp_path)
    out = tmp_path / "two"
    asked = ("--step", "global_negatives", "--device", "cpu", "--lost-after", "3")
    running = torchrun("train", configuration, data, "--out", str(out), *asked)
    begun(out / "checkpoint.safetensors", running)
    workers = workers_of(running.pid)
    os.kill(workers[1], signal.SIGSTOP)  # as where a network is gone: nothing is closed
    stopped = time.monotonic()
    try:
        until(lambda: not is_alive(workers[0]), 30)
    finally:
        os.kill(workers[1], signal.SIGKILL)
    assert time.monotonic() - stopped > 2
    _, _, errors = finished(running)
    assert "rungwise train: process 1 of 2 has not been heard of for 3 s; the last checkpoint is whole" in errors
    assert load_checkpoint(out / "checkpoint.safetensors")[0].epoch >= 1


@pytest.mark.slow
def test_an_error_of_one_process_is_told_from_a_loss(tmp_path: Path) -> None:
    configuration, data = prepared(tmp_path)
    rows, order = np.load(f"{data}/features.npy"), Path(f"{data}/ids.txt").read_text().split()
    rows[order.index("3.jpg")] = np.nan  # a picture of one caption, so that one process reads it first
    np.save(f"{data}/features.npy", rows)
    asked = ("--step", "global_negatives", "--device", "cpu")
    status, _, errors = finished(torchrun("train", configuration, data, "--out", str(tmp_path / "two"), *asked))
    assert status != 0
    first, second = sorted(lines_of(errors), key=lambda line: "ended with an error" in line)
    assert "holds numbers that are not finite in float32; extract the row anew" in first
    assert re.search(r"process [01] of 2 ended with an error \(.*\); no checkpoint was written yet; start all", second)


def node(rank: int, port: int, *arguments: str) -> subprocess.Popen[str]:
    """``torchrun`` as it is started on one of two machines."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node_rank", str(rank)]
    command += ["--nproc_per_node", "1", "--master_addr", "127.0.0.1", "--master_port", str(port)]
    return subprocess.Popen(
        [*command, "-m", "rungwise", *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def nodes(*arguments: str) -> list[subprocess.Popen[str]]:
    port = free_port()
    return [node(rank, port, *arguments) for rank in (0, 1)]


@pytest.mark.slow
@pytest.mark.parametrize(("lost", "whole_node"), [(1, True), (0, False)])
def test_a_lost_machine_ends_the_run_which_goes_on_to_the_bit(tmp_path: Path, lost: int, whole_node: bool) -> None:
    configuration, data = prepared(tmp_path)
    asked = ("--step", "global_negatives", "--device", "cpu", "--checkpoint-steps", "1", "--lost-after", "5")
    out = tmp_path / "two"
    both = nodes("train", configuration, data, "--out", str(out), *asked)
    begun(out / "checkpoint.safetensors", both[0])
    workers = {rank: process for one in both for rank, process in workers_of(one.pid).items()}
    assert sorted(workers) == [0, 1]
    if whole_node:
        os.kill(workers[lost], signal.SIGKILL)
    os.kill(both[lost].pid, signal.SIGKILL)
    killed = time.monotonic()
    said = [finished(one) for one in both]
    assert time.monotonic() - killed < 90
    assert all(status != 0 for status, _, _ in said)
    assert not any(map(is_alive, workers.values()))
    assert len(lines_of(said[1 - lost][2])) == 1, said
    line = lines_of(said[1 - lost][2])[0]
    assert re.search(
        r"; the last checkpoint is whole; go on with: torchrun --nnodes 2 --node_rank RANK --master_addr 127.0.0.1"
        r" --master_port \d+ --nproc_per_node 1 -m rungwise train \S+ --out \S+ --resume$",
        line,
    )
    done = load_checkpoint(out / "checkpoint.safetensors")[0]
    epochs = ("--epochs", str(done.epoch + 2), "1")
    again = nodes("train", f"{out}/config.yaml", "--out", str(out), "--resume", "--device", "cpu", *epochs)
    assert [finished(one)[0] for one in again] == [0, 0]
    whole = nodes("train", configuration, data, "--out", str(tmp_path / "whole"), *asked, *epochs)
    assert [finished(one)[0] for one in whole] == [0, 0]
    assert_to_the_bit(tmp_path / "whole", out)
