import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from rungwise.core import UserError
from rungwise.core.compute import shared_environment
from rungwise.core.disk import read_seal
from rungwise.runs.study import RunFailure, RunTask, StudyRun, data_hash_of, identity_of_run, read_for
from rungwise.runs.study import _running as running
from rungwise.scenes import SceneConfig, generate
from rungwise.training.tracking import Watcher
from tests.training.conftest import once, small_config


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """A folder of generated scenes, which other processes can read."""
    folder = tmp_path_factory.mktemp("study") / "scenes"
    generate(folder, SceneConfig(pictures=60, captions_per_picture=3, side=32, seed=4))
    return folder


@pytest.fixture
def task(tmp_path, cache):
    """Function from a configuration and its collection to a task."""

    def make(config, data, folder="run"):
        identity = identity_of_run(config, data_hash_of(data))
        return RunTask(folder, config, tmp_path / folder, identity, cache, "cpu")

    return make


@pytest.fixture
def of_files(scenes):
    """A configuration of some epochs on the scenes."""
    config = small_config()
    return replace(config, data=replace(config.data, path=str(scenes)), epochs=(3,), learning_rates=(1e-3,))


class Lines:
    def __init__(self):
        self.lines = []

    def __call__(self, name, line):
        self.lines.append((name, line))


def weights(folder):
    return read_seal(folder / "model")["model.safetensors"]


def test_what_fails_does_not_stop_the_others(task, coloured, monkeypatch):
    config, said = once(small_config()), Lines()
    tasks = [task(replace(config, seed=seed), coloured, str(seed)) for seed in (0, 1, 2)]
    real = running.run_stages

    def failing(config, *rest, **more):
        if config.seed == 0:
            raise UserError("the loss is\nno longer finite")
        if config.seed == 1:
            raise ZeroDivisionError("by zero")
        return real(config, *rest, **more)

    monkeypatch.setattr(running, "run_stages", failing)
    found = {task.name: failure for task, failure in running.tasks_in_turn(tasks, lambda _: coloured, said, Watcher())}
    assert found == {
        "0": RunFailure("the loss is no longer finite"),
        "1": RunFailure("ZeroDivisionError: by zero"),
        "2": None,
    }
    assert said.lines == [("0", "run 1 of 3"), ("1", "run 2 of 3"), ("2", "run 3 of 3")]
    assert StudyRun.read(tasks[2].folder).finished
    assert not StudyRun.read(tasks[0].folder).finished


def test_a_run_that_is_stopped_stops_the_study_and_goes_on(task, coloured, monkeypatch):
    config = once(small_config())
    tasks = [task(replace(config, seed=seed), coloured, str(seed)) for seed in (0, 1)]
    real = running.run_stages
    monkeypatch.setattr(running, "run_stages", lambda *given, **more: replace(real(*given, **more), finished=False))
    (only,) = running.tasks_in_turn(tasks, lambda _: coloured, Lines(), Watcher())
    assert only[1] == RunFailure("stopped after epoch 1", stopped=True)
    monkeypatch.setattr(running, "run_stages", real)
    assert running.train_task(tasks[0], coloured, Watcher()) is None


def test_a_run_without_its_model_is_no_finished_one(task, coloured, monkeypatch):
    one, real = task(once(small_config()), coloured), running.run_stages

    def without_a_model(*given, **more):
        found = real(*given, **more)
        (found.model_folder / "config.json").unlink()
        return found

    monkeypatch.setattr(running, "run_stages", without_a_model)
    assert "its model is gone" in running.train_task(one, coloured, Watcher()).reason


def test_a_task_is_the_same_in_another_process(task, coloured):
    one = task(small_config(), coloured)
    other = RunTask.of_plain(json.loads(json.dumps(one.plain())))
    assert (other.config, other.folder, other.identity.key) == (one.config, one.folder, one.identity.key)


@pytest.mark.slow
def test_processes_train_what_this_one_trains(task, of_files):
    data = read_for(of_files)
    tasks = [task(replace(of_files, seed=seed), data, f"there-{seed}") for seed in (0, 1)]
    tasks.append(task(replace(of_files, data=replace(of_files.data, judgements="no_such.json")), data, "wrong"))
    said = Lines()
    found = {one.name: failure for one, failure in running.tasks_in_processes(tasks, 2, said)}
    assert found["there-0"] is found["there-1"] is None
    assert "no_such.json" in found["wrong"].reason
    assert "\n" not in found["wrong"].reason
    assert any(name == "there-1" and line.startswith("epoch  3/3") for name, line in said.lines)
    for seed in (0, 1):
        here = task(replace(of_files, seed=seed), data, f"here-{seed}")
        assert running.train_task(here, data, Watcher()) is None
        assert weights(here.folder) == weights(here.folder.parent / f"there-{seed}")


@pytest.mark.slow
def test_a_process_that_is_killed_is_a_failure_and_its_run_goes_on(task, of_files, monkeypatch):
    """SIGKILL in the middle of a run: the run goes on to the weights of one that nobody disturbed."""
    data = read_for(of_files)
    one = task(replace(of_files, checkpoint_steps=1), data, "killed")
    real, killed = running._Children.start, threading.Event()

    def started(held, environment):
        child = real(held, environment)

        def kill():
            path = one.folder / "history.jsonl"
            while not path.exists() and child.process.poll() is None:
                time.sleep(0.01)
            killed.set()
            child.process.kill()

        threading.Thread(target=kill, daemon=True).start()
        return child

    monkeypatch.setattr(running._Children, "start", started)
    ((_, failure),) = running.tasks_in_processes([one], 1, Lines())
    assert killed.is_set()
    assert failure.reason.startswith("its process ended with signal 9")
    monkeypatch.undo()
    assert not StudyRun.read(one.folder).finished
    assert (one.folder / "checkpoint.safetensors").exists()
    ((_, failure),) = running.tasks_in_processes([one], 1, Lines())
    assert failure is None
    whole = task(of_files, data, "whole")
    assert running.train_task(whole, data, Watcher()) is None
    assert weights(one.folder) == weights(whole.folder)


@pytest.mark.slow
def test_a_process_ends_when_the_one_that_started_it_is_killed(task, of_files, tmp_path):
    """The end of its input asks it to stop; it writes a checkpoint, from which the run goes on."""
    config = replace(of_files, epochs=(400,))
    one = task(config, read_for(config))
    child = subprocess.Popen(
        [sys.executable, "-c", running._CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=shared_environment(1),
        text=True,
    )
    child.stdin.write(json.dumps(one.plain()) + "\n")
    child.stdin.flush()
    for line in child.stdout:
        if json.loads(line).get("say", "").startswith("epoch"):
            break
    child.stdin.close()
    last = [json.loads(line) for line in child.stdout][-1]
    child.stdout.close()
    assert child.wait() == 0
    assert last["failure"]["stopped"]
    assert (one.folder / "checkpoint.safetensors").exists()


@pytest.mark.slow
def test_ctrl_c_stops_all_processes(task, of_files):
    data = read_for(of_files)
    config = replace(of_files, epochs=(400,))
    tasks = [task(replace(config, seed=seed), data, str(seed)) for seed in range(3)]

    def interrupt():
        while not all((one.folder / "history.jsonl").exists() for one in tasks[:2]):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            list(running.tasks_in_processes(tasks, 2, Lines()))
    finally:
        signal.signal(signal.SIGINT, before)
    assert all((one.folder / "checkpoint.safetensors").exists() for one in tasks[:2])
    assert not tasks[2].folder.exists()


@pytest.mark.slow
def test_workers_of_ray_train_what_this_process_trains(task, of_files):
    pytest.importorskip("ray")
    data = read_for(of_files)
    tasks = [
        task(of_files, data, "there"),
        task(replace(of_files, data=replace(of_files.data, judgements="no_such.json")), data, "wrong"),
    ]
    found = {one.name: failure for one, failure in running.tasks_on_ray(tasks, "local", 1)}
    assert found["there"] is None
    assert "no_such.json" in found["wrong"].reason
    here = task(of_files, data, "here")
    assert running.train_task(here, data, Watcher()) is None
    assert weights(here.folder) == weights(tasks[0].folder)
