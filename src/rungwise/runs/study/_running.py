"""Runs of a study, trained one after the other here, several at a time in processes, or on the workers of Ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rungwise.core import UserError, from_plain, to_plain
from rungwise.core.compute import OnWorkers, choose_device, cluster, cores
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, read, with_splits, with_validation
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

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")
_CODE = "from rungwise.runs.study import serve_run; serve_run()"
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


def read_for(config: TrainConfig) -> ImageCaptions:
    """The collection that a configuration names, with the splits that a run sees."""
    of = config.data
    return trained_data(read(of.path, layout=of.layout or None, key=of.key, join_restval=of.join_restval), config)


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
    """Train runs in processes of their own, so many at a time, which share the cores of this machine.

    The processes end with this one, however it ends: each writes a checkpoint and goes on with the next call.

    Args:
        tasks: The runs, of data that can be read from their paths.
        jobs: Number of runs at a time.
        say: Called with the name of a run and each line about it.
    """
    threads = max(1, cores() // jobs)
    held = _Children()
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(_in_process, task, threads, say, held): task for task in tasks}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except (KeyboardInterrupt, GeneratorExit):
            held.stop()
            raise


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


def serve_run() -> None:
    """Train the run that stands in the first line of the standard input, and print lines of JSON about it.

    The end of the input asks it to stop: the process that started this one has ended.
    """
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print is no line of ours

    def told(**line: Any) -> None:
        with suppress(BrokenPipeError):
            out.write(json.dumps(line) + "\n")

    values = json.loads(sys.stdin.readline())
    threading.Thread(target=_stop_at_end_of_input, daemon=True).start()
    try:
        task = RunTask.of_plain(values)
        failure = train_task(task, read_for(task.config), _Lines(lambda text: told(say=text)))
    except Exception as error:
        failure = RunFailure(_in_a_line(error))
    told(failure=None if failure is None else vars(failure))
    out.close()


def _stop_at_end_of_input() -> None:
    while sys.stdin.readline():
        pass
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


class _Children:
    """The processes that work now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self.stopping = False

    def start(self, environment: Mapping[str, str]) -> subprocess.Popen[str] | None:
        with self._lock:
            if self.stopping:
                return None
            child = subprocess.Popen(
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
            self._running.add(child)
            return child

    def ended(self, child: subprocess.Popen[str]) -> None:
        with self._lock:
            self._running.discard(child)

    def stop(self) -> None:
        with self._lock:
            self.stopping = True
            for child in self._running:
                with suppress(OSError):
                    child.terminate()


@dataclass
class _Heard:
    """What a process has said so far."""

    errors: list[str] = field(default_factory=list)
    failure: RunFailure | None = None
    ended: bool = False


def _in_process(task: RunTask, threads: int, say: Say, held: _Children) -> RunFailure | None:
    child = held.start(_environment(threads))
    if child is None:
        return RunFailure("stopped before it began", stopped=True)
    assert child.stdin is not None
    assert child.stdout is not None
    heard = _Heard()
    reader = threading.Thread(target=_read_errors, args=(child, heard), daemon=True)
    reader.start()
    try:
        with suppress(BrokenPipeError):
            child.stdin.write(json.dumps(task.plain()) + "\n")
            child.stdin.flush()
        for line in child.stdout:
            values = json.loads(line)
            if "say" in values:
                say(task.name, values["say"])
            else:
                heard.ended = True
                heard.failure = None if values["failure"] is None else RunFailure(**values["failure"])
        child.wait()
        reader.join()
    finally:
        held.ended(child)
        with suppress(BrokenPipeError):
            child.stdin.close()
        child.stdout.close()
    if heard.ended:
        return heard.failure
    if held.stopping:
        return RunFailure("stopped", stopped=True)
    last = "; ".join(heard.errors[-_LAST_LINES:])
    how = f"signal {-child.returncode}" if child.returncode < 0 else f"status {child.returncode}"
    return RunFailure(f"its process ended with {how}{': ' if last else ''}{last}"[:400])


def _read_errors(child: subprocess.Popen[str], heard: _Heard) -> None:
    assert child.stderr is not None
    for line in child.stderr:
        heard.errors = [*heard.errors[-_LAST_LINES:], line.strip()]
    child.stderr.close()


def _environment(threads: int) -> dict[str, str]:
    """The variables of this process, with its share of the cores, and the same modules to be found."""
    found = dict(os.environ)
    for name in _THREADS:
        asked = found.get(name, "")
        found[name] = str(min(threads, int(asked)) if asked.isdigit() and int(asked) else threads)
    found["PYTHONPATH"] = os.pathsep.join(one for one in sys.path if one)
    return found


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
