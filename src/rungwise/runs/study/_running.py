"""Runs of a study, trained one after the other here, several at a time in processes, or on the workers of Ray."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from rungwise.core import UserError, from_plain, to_plain
from rungwise.core.compute import OnWorkers, choose_device, cluster, cores, shared_environment
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, read, with_splits, with_validation
from rungwise.data.layouts import Key
from rungwise.parts import import_named
from rungwise.runs._results import is_run_folder
from rungwise.runs.study._machines import machine_of
from rungwise.runs.study._run_keys import RunIdentity
from rungwise.runs.study._study_record import StudyRun
from rungwise.training import is_begun
from rungwise.training import run as run_stages
from rungwise.training.config import TrainConfig
from rungwise.training.tracking import TerminalWatcher, Watcher

Say = Callable[[str, str], None]
"""Called with the name of a run and a line about it."""

_CODE = "from rungwise.runs.study import serve_runs; serve_runs()"
_LAST_LINES = 3


@dataclass(frozen=True)
class RunTask:
    """All that a process needs to train a run.

    Attributes:
        name: Name of the run, for lines.
        config: The configuration, with its seed.
        folder: Folder of the run.
        identity: What the run depends on.
        cache: Folder of the feature cache; None takes the default one.
        device: Device; None takes cuda where there is one.
        modules: Modules that were named, to be imported by another process.
    """

    name: str
    config: TrainConfig
    folder: Path
    identity: RunIdentity
    cache: Path | None = None
    device: str | None = None
    modules: tuple[str, ...] = ()

    __repr__ = short_repr

    def plain(self) -> dict[str, Any]:
        """The task as plain values."""
        return {
            "name": self.name,
            "config": to_plain(self.config),
            "folder": str(self.folder.absolute()),
            "identity": vars(self.identity),
            "cache": None if self.cache is None else str(self.cache.absolute()),
            "device": self.device,
            "modules": list(self.modules),
        }

    @classmethod
    def of_plain(cls, values: Mapping[str, Any]) -> RunTask:
        """The task of plain values; modules that it names are imported."""
        import_named(values["modules"], option="modules")
        return cls(
            values["name"],
            from_plain(TrainConfig, values["config"], values["name"]),
            Path(values["folder"]),
            RunIdentity(**values["identity"]),
            None if values["cache"] is None else Path(values["cache"]),
            values["device"],
            tuple(values["modules"]),
        )


@dataclass(frozen=True)
class RunFailure:
    """Why a run did not come to its end.

    Attributes:
        reason: One line.
        stopped: Whether somebody stopped it; it goes on with the next call.
    """

    reason: str
    stopped: bool = False


def trained_data(data: ImageCaptions, config: TrainConfig) -> ImageCaptions:
    """A collection with the splits that a run sees, drawn where the data have none."""
    return with_validation(with_splits(data), config.data.train, config.data.validation)


ReadCollection = Callable[[str, str, Key, bool], ImageCaptions]
"""Reads a collection by its path, layout, key and ``join_restval``."""


def read_for(config: TrainConfig, read_collection: ReadCollection | None = None) -> ImageCaptions:
    """The collection that a configuration names, with the splits that a run sees.

    Args:
        config: The configuration.
        read_collection: Reads the collection, such as a function that keeps what it read; None reads it anew.
    """
    of = config.data
    return trained_data((read_collection or _read)(of.path, of.layout, of.key, of.join_restval), config)


def _read(path: str, layout: str, key: Key, join_restval: bool) -> ImageCaptions:
    return read(path, layout=layout or None, key=key, join_restval=join_restval)


def train_task(task: RunTask, data: ImageCaptions, watcher: Watcher) -> RunFailure | None:
    """Train a run, or go on with it; None where it came to its end.

    The record stands in the folder before the run begins, so that a killed one is known again.
    """
    folder = task.folder
    device = choose_device(task.device)
    record = StudyRun.read(folder) or StudyRun.of(task.identity)
    folder.mkdir(parents=True, exist_ok=True)
    record = record.on(machine_of(task.config, device))
    record.write(folder)
    try:
        found = run_stages(
            task.config, data, folder, cache=task.cache, resume=is_begun(folder), device=device, watcher=watcher
        )
    except UserError as error:
        return RunFailure(" ".join(str(error).split()))
    if not found.finished:
        return RunFailure(f"stopped after epoch {len(found.history)}", stopped=True)
    if not is_run_folder(folder):
        return RunFailure(f"{folder}: its model is gone; remove the folder, and the run is made again")
    replace(record, finished=True).write(folder)
    return None


def tasks_in_turn(
    tasks: Sequence[RunTask], data_of: Callable[[RunTask], ImageCaptions], say: Say, watcher: Watcher
) -> Iterator[tuple[RunTask, RunFailure | None]]:
    """Train runs one after the other in this process; what fails does not stop the others.

    Args:
        tasks: The runs.
        data_of: Gives the collection of a run.
        say: Called as a run begins.
        watcher: Receives the progress of each.
    """
    for number, task in enumerate(tasks, 1):
        say(task.name, f"run {number} of {len(tasks)}")
        try:
            failure = train_task(task, data_of(task), watcher)
        except Exception as error:
            failure = RunFailure(_in_a_line(error))
        yield task, failure
        if failure is not None and failure.stopped:
            return


def tasks_in_processes(tasks: Sequence[RunTask], jobs: int, say: Say) -> Iterator[tuple[RunTask, RunFailure | None]]:
    """Train runs in other processes, so many at a time, which share the cores of this machine.

    A process trains one run after the other, and reads the data of all once. The processes end with this one, however
    it ends: each writes a checkpoint and goes on with the next call.

    Args:
        tasks: The runs, of data that can be read from their paths.
        jobs: Number of runs at a time.
        say: Called with the name of a run and each line about it.
    """
    threads = max(1, cores() // jobs)
    held = _Children()
    try:
        with ThreadPoolExecutor(jobs) as pool:
            waiting = {pool.submit(_in_process, task, threads, say, held): task for task in tasks}
            try:
                for done in as_completed(waiting):
                    yield waiting[done], done.result()
            except (KeyboardInterrupt, GeneratorExit):
                held.stop()
                raise
    finally:
        held.dismiss()


def tasks_on_ray(tasks: Sequence[RunTask], address: str, threads: int) -> Iterator[tuple[RunTask, RunFailure | None]]:
    """Train runs on workers of Ray, which see the same files.

    Args:
        tasks: The runs, of data that can be read from their paths.
        address: ``local``, or the address of a cluster.
        threads: Cores of each run.

    Raises:
        UserError: If Ray does not answer, or workers die again and again.
    """
    with cluster(address) as ray:
        share = OnWorkers(ray, cores=threads)
        for number, failure in share(_on_worker, threads, [task.plain() for task in tasks]):
            yield tasks[number], None if failure is None else RunFailure(**failure)


def serve_runs() -> None:
    """Train the runs that stand in lines of the standard input, and print lines of JSON about each.

    The end of the input asks it to stop: the process that started this one has ended, or has no more runs.
    """
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print is no line of ours

    def told(**line: Any) -> None:
        with suppress(BrokenPipeError):
            out.write(json.dumps(line) + "\n")

    asked, works, read_once = _Asked(), _Lines(lambda text: told(say=text)), cache(_read)
    for values in asked.tasks():
        try:
            task = RunTask.of_plain(values)
            failure = train_task(task, read_for(task.config, read_once), works)
        except Exception as error:
            failure = RunFailure(_in_a_line(error))
        told(failure=None if failure is None else vars(failure))
    out.close()


class _Asked:
    """Tasks from the standard input; its end stops the run that is being trained."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._works = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def tasks(self) -> Iterator[dict[str, Any]]:
        while line := self._lines.get():
            self._works.set()
            yield json.loads(line)
            self._works.clear()

    def _listen(self) -> None:
        while line := sys.stdin.readline():
            self._lines.put(line)
        self._lines.put("")
        if self._works.is_set():
            os.kill(os.getpid(), signal.SIGTERM)


class _Lines(TerminalWatcher):
    """Gives the lines of a run to a function, and shows no bar."""

    def __init__(self, told: Callable[[str], None]) -> None:
        super().__init__()
        self._told = told

    def say(self, message: str) -> None:
        """Give the line."""
        self._told(message)

    def step(self, report: Any) -> None:
        """Leave steps out."""

    def work(self, title: str, done: int, total: int) -> None:
        """Leave progress within a task out."""


class _Child:
    """A process that trains runs.

    Attributes:
        process: The process.
        errors: Its last lines of errors.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=dict(environment),
            start_new_session=True,  # Ctrl-C reaches this process, which then asks them to stop
        )
        self.errors: deque[str] = deque(maxlen=_LAST_LINES)
        self._reader = threading.Thread(target=self._read_errors, daemon=True)
        self._reader.start()

    def answers(self, task: RunTask) -> Iterator[dict[str, Any]]:
        """Send a task, and give what the process says of it; nothing more once it has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(task.plain()) + "\n")
            self.process.stdin.flush()
        while line := self.process.stdout.readline():
            yield json.loads(line)

    def dismiss(self) -> None:
        """Let it end, and wait for that."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors.append(line.strip())
        self.process.stderr.close()


class _Children:
    """The processes that work now, and those that wait for another run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[_Child] = set()
        self._idle: list[_Child] = []
        self.stopping = False

    def take(self, environment: Mapping[str, str]) -> _Child | None:
        """A process for a run; None where no more are to be trained."""
        with self._lock:
            if self.stopping:
                return None
            child = self._idle.pop() if self._idle else self.start(environment)
            self._running.add(child)
            return child

    def start(self, environment: Mapping[str, str]) -> _Child:
        """A new process."""
        return _Child(environment)

    def give_back(self, child: _Child, *, ended: bool) -> None:
        """A process that has no run any more."""
        with self._lock:
            self._running.discard(child)
            if not ended:
                self._idle.append(child)

    def stop(self) -> None:
        """Ask all that work to stop."""
        with self._lock:
            self.stopping = True
            for child in self._running:
                with suppress(OSError):
                    child.process.terminate()

    def dismiss(self) -> None:
        """Let all end that have no run."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.dismiss()


def _in_process(task: RunTask, threads: int, say: Say, held: _Children) -> RunFailure | None:
    child = held.take(shared_environment(threads))
    if child is None:
        return RunFailure("stopped before it began", stopped=True)
    for values in child.answers(task):
        if "say" in values:
            say(task.name, values["say"])
        else:
            held.give_back(child, ended=False)
            return None if values["failure"] is None else RunFailure(**values["failure"])
    child.dismiss()
    held.give_back(child, ended=True)
    if held.stopping:
        return RunFailure("stopped", stopped=True)
    last, code = "; ".join(child.errors), child.process.returncode
    how = f"signal {-code}" if code < 0 else f"status {code}"
    return RunFailure(f"its process ended with {how}{': ' if last else ''}{last}"[:400])


def _on_worker(threads: int, values: dict[str, Any]) -> dict[str, Any] | None:
    """Train a run in a worker of Ray."""
    import torch

    torch.set_num_threads(threads)
    try:
        task = RunTask.of_plain(values)
        failure = train_task(task, read_for(task.config), Watcher())
    except Exception as error:
        failure = RunFailure(_in_a_line(error))
    return None if failure is None else vars(failure)


def _in_a_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return (text if isinstance(error, UserError) else f"{type(error).__name__}: {text}")[:400]
