"""A process that is lost ends the others with one line, and the run goes on to the bit."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Queue

import numpy as np
import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file

from rungwise.training.distributed import _heartbeats as heartbeats
from rungwise.training.distributed._heartbeats import LOST, Heartbeats, reason_of_loss
from rungwise.training.engine import RunState, load_checkpoint
from tests.ports import free_port
from tests.training.distributed.test_processes import CONFIGURATION, finished, torchrun
from tests.training.test_features import folder_of_features

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
        if self.broken:
            raise RuntimeError("Broken pipe")
        return all(key in self.notes for key in keys)


class Clock:
    """Stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def hearts_of(board: OnePlace, world: int, clock: Clock, lost_after: float = 2) -> list[Heartbeats]:
    return [Heartbeats(board, rank, world, lost_after=lost_after, lost=str, clock=clock) for rank in range(world)]


def test_processes_that_live_are_not_lost_and_one_that_is_silent_is() -> None:
    clock = Clock()
    hearts = hearts_of(OnePlace(), 3, clock)
    for _ in range(5):
        clock.now += 1.9
        for one in (hearts[1], *hearts, hearts[0]):  # all hear of all, and the others of the last beat of process 1
            one.beat()
        assert [one.happened() for one in hearts] == ["", "", ""]
    for passed, said in ((1.9, ""), (0.2, "process 1 of 3 has not been heard of for 2 s")):
        clock.now += passed
        for one in (hearts[0], hearts[2], hearts[0]):
            one.beat()
        assert [hearts[0].happened(), hearts[2].happened()] == [said, said]
    clock.now += 2.1
    hearts[0].beat()
    assert hearts[0].happened() == "2 of 3 have not been heard of for 2 s"


def test_a_process_that_never_came_is_lost() -> None:
    clock = Clock()
    (one, _) = hearts_of(OnePlace(), 2, clock, 0.3)
    for passed, said in ((0.2, ""), (0.2, "process 1 of 2 has not been heard of for 0.3 s")):
        clock.now += passed
        one.beat()
        assert one.happened() == said


def test_a_place_to_meet_at_that_does_not_answer_is_lost() -> None:
    clock = Clock()
    (one, _) = hearts_of(OnePlace(), 2, clock)
    clock.now += 2.1  # the beat hangs
    assert one.happened() == "process 0 of 2 no longer reaches the machine that all processes meet at"


def test_what_started_a_process_may_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    (one, _) = hearts_of(OnePlace(), 2, Clock())
    monkeypatch.setattr(os, "getppid", lambda: -1)
    assert one.happened() == "what started process 0 of 2 is gone"


def test_a_loss_is_told_once_by_a_thread_that_watches() -> None:
    board, said = OnePlace(), Queue[str]()
    board.broken = True
    hearts = Heartbeats(board, 0, 2, lost_after=0.01, lost=said.put)
    hearts.start()
    assert said.get() == "process 0 of 2 no longer reaches the machine that all processes meet at"
    for thread in hearts._threads:
        thread.join()
    assert said.empty()


def test_nobody_is_lost_after_the_end() -> None:
    said: list[str] = []

    def end() -> float:
        hearts.stop()  # while somebody looks
        return 100.0

    moments = iter([lambda: 0.0, end])
    hearts = Heartbeats(OnePlace(), 0, 2, lost_after=0.01, lost=said.append, clock=lambda: next(moments)())
    hearts._watch()
    assert not said
    hearts.start()
    for thread in hearts._threads:
        thread.join()
    assert not said


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> dist.Store:
    """Where the processes of a run meet, without sockets."""
    store = dist.HashStore()
    monkeypatch.setattr(dist, "TCPStore", lambda *place, **options: store)
    monkeypatch.setattr(heartbeats, "_joined", [])
    monkeypatch.setattr(heartbeats, "_SECONDS_FOR_A_REASON", 0.0)
    monkeypatch.setenv("MASTER_ADDR", "nowhere")
    monkeypatch.setenv("MASTER_PORT", "1")
    return dist.PrefixStore("rungwise/0/1", store)


def within(body: Callable[[], object], lost_after: float = 1e9) -> None:
    """Do this on the first of two processes."""
    with heartbeats.heartbeats(0, 2, lambda: None, lost_after=lost_after, go_on=lambda: "go on"):
        body()


def raises(error: BaseException) -> Callable[[], None]:
    def body() -> None:
        raise error

    return body


def test_a_broken_connection_ends_the_run_with_one_line(
    board: dist.Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.2]:4711")
    with pytest.raises(SystemExit) as caught:
        within(raises(gone))
    assert caught.value.code == LOST
    reason = "(Connection closed by peer [10.0.0.2]:4711); go on\n"
    assert capsys.readouterr().err == f"rungwise train: another process is gone {reason}"
    monkeypatch.setattr(heartbeats, "_SECONDS_FOR_A_REASON", 1e9)
    monkeypatch.setattr(heartbeats, "_joined", [])
    board.set("ended/1", "1")
    wrapped = ValueError("no batch")
    wrapped.__cause__ = gone
    with pytest.raises(SystemExit):
        within(raises(wrapped))
    assert capsys.readouterr().err == f"rungwise train: process 1 of 2 ended with an error {reason}"


def test_an_error_of_its_own_is_raised_and_the_others_are_told(board: dist.Store) -> None:
    before = signal.getsignal(signal.SIGTERM)
    within(lambda: None)
    heartbeats._joined.clear()
    assert not board.check(["ended/0"])
    with pytest.raises(ValueError, match="own"):
        within(raises(ValueError("own")))
    assert board.check(["ended/0"])
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_polite_kill_is_an_exception(board: dist.Store) -> None:
    before, codes = signal.getsignal(signal.SIGTERM), []
    with pytest.raises(SystemExit) as caught:
        within(lambda: signal.raise_signal(signal.SIGTERM))
    assert caught.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is before
    thread = threading.Thread(target=lambda: within(lambda: codes.append(signal.getsignal(signal.SIGTERM) is before)))
    thread.start()
    thread.join()
    assert codes == [True], "signals reach the main thread only"


def test_a_loss_where_nothing_is_communicated_ends_the_process_at_once(
    board: dist.Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = Queue[int]()
    monkeypatch.setattr(os, "_exit", ended.put)
    within(lambda: ended.put(ended.get()), lost_after=0.01)
    assert ended.get() == LOST
    assert capsys.readouterr().err.endswith("; go on\n")


def test_word_of_an_error_is_waited_for_a_while() -> None:
    clock, board = Clock(), OnePlace()

    def sleep(seconds: float) -> None:
        clock.now += seconds
        if clock.now > 1:
            board.notes["ended/2"] = "1"

    assert heartbeats._ended(board, 0, 3, clock, sleep) == 2
    assert heartbeats._ended(OnePlace(), 0, 3, clock, sleep) is None
    assert clock.now > heartbeats._SECONDS_FOR_A_REASON
    board.broken = True
    heartbeats._leave_word(board, 0)
    assert heartbeats._ended(board, 0, 3, clock, sleep) is None


def test_errors_of_another_cause_are_no_loss() -> None:
    assert reason_of_loss(RuntimeError("shapes do not match")) is None
    assert reason_of_loss(ValueError("gloo")) is None
    assert reason_of_loss(dist.DistNetworkError("no answer")) == "no answer"


def until(happened: Callable[[], object]) -> None:
    while not happened():
        time.sleep(0.05)


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
    until(lambda: running.poll() is not None or (checkpoint.exists() and load_checkpoint(checkpoint)[0].epoch))
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
def test_a_killed_process_ends_the_run_which_goes_on_to_the_bit(tmp_path: Path) -> None:
    configuration, data = prepared(tmp_path)
    asked = ("--step", "global_negatives", "--device", "cpu", "--checkpoint-steps", "1")
    out, checkpoint = tmp_path / "two", tmp_path / "two" / "checkpoint.safetensors"
    running = torchrun("train", configuration, data, "--out", str(out), *asked)
    begun(checkpoint, running)
    workers = workers_of(running.pid)
    os.kill(workers[0], signal.SIGKILL)
    status, _, errors = finished(running)
    assert status != 0
    assert not any(map(is_alive, workers.values()))
    assert len(lines_of(errors)) == 1, errors
    line = lines_of(errors)[0]
    assert "another process is gone (" in line
    assert line.endswith(
        "; go on from the last checkpoint with: torchrun --nproc_per_node 2 -m rungwise train"
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
    until(lambda: not is_alive(workers[0]))
    os.kill(workers[1], signal.SIGKILL)
    _, _, errors = finished(running)
    assert (
        "rungwise train: process 1 of 2 has not been heard of for 3 s; go on from the last checkpoint with: " in errors
    )
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
    said = [finished(one) for one in both]
    assert all(status != 0 for status, _, _ in said)
    assert not any(map(is_alive, workers.values()))
    assert len(lines_of(said[1 - lost][2])) == 1, said
    line = lines_of(said[1 - lost][2])[0]
    assert re.search(
        r"; go on from the last checkpoint with: torchrun --nnodes 2 --node_rank RANK --master_addr 127.0.0.1"
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
