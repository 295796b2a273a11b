"""Runs what may raise, crash or eat all memory in forked children of a warmed-up parent.

A child works through jobs one after another and reports each; where it dies, the job that it was at is counted and a
fresh child goes on with the next. So a case costs milliseconds, and nothing of it is suffered here.

What a case may take of memory is counted, which ends whatever reads a file without end. A case that waits or loops
without end is waited for: no number of seconds tells it from one on a busy machine. The tests leave it to the one
backstop of pytest, which ends their process, and with it all children here.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import stat
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from rungwise.core import UserError

Job = Callable[[], Any]
"""Gives something that JSON can hold."""

Ending = Literal["returned", "refused", "raised", "died"]

MEMORY = 1 << 30
"""Bytes that a case may take beside what the parent has mapped already."""

NOBODY = 65534

_SET_SIGNAL_OF_PARENTS_DEATH = 1
"""Of prctl."""


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    Attributes:
        ending: ``"refused"`` stands for a UserError, ``"raised"`` for any other exception.
        value: What was returned, or the signal or exit status of one that died.
        text: The message, or the traceback.
    """

    ending: Ending
    value: Any = None
    text: str = ""


def outcome_of(job: Job, **limits: Any) -> Outcome:
    """That of one job, see :func:`outcomes`."""
    return next(outcomes([job], **limits))


def outcomes(jobs: Sequence[Job], *, memory: int | None = MEMORY, as_nobody: bool = False) -> Iterator[Outcome]:
    """The outcome of each job, in order.

    Args:
        jobs: May be closures: children are forks.
        memory: Bytes that a child may map beside what it has; None sets no limit.
        as_nobody: Drop the privileges of root first.
    """
    done = 0
    while done < len(jobs):
        with _child(jobs[done:], memory, as_nobody) as (pid, answers, said):
            whole = True
            while whole and done < len(jobs):
                line = answers.readline()
                whole = line.endswith(b"\n")
                yield Outcome(**json.loads(line)) if whole else Outcome("died", _ended(pid), _tail(said))
                done += 1


def end_with_the_parent() -> None:
    """From here on the system kills this process when its parent is gone."""
    ctypes.CDLL(None).prctl(_SET_SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)


@contextmanager
def _child(jobs: Sequence[Job], memory: int | None, as_nobody: bool) -> Iterator[tuple[int, BinaryIO, int]]:
    """The child's number, what it answers by, and a file of what it says besides."""
    answers, ours = os.pipe()
    said = os.memfd_create("said")
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.close(answers)
            os.setsid()
            _redirect(said)
            _limit(memory, as_nobody)
            end_with_the_parent()
            for job in jobs:
                _write_all(ours, json.dumps(run(job).__dict__).encode() + b"\n")
            status = 0
        finally:
            os._exit(status)
    os.close(ours)
    try:
        with os.fdopen(answers, "rb") as lines:
            yield pid, lines, said
    finally:
        os.close(said)
        _ended(pid)


def _redirect(said: int) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(said, 1)
    os.dup2(said, 2)


def without_privileges() -> bool | None:
    """Whether cases of files without permission run as nobody; None where they cannot run at all.

    Who is not root needs not to be somebody else. For root nobody must be able to import the packages that a case
    imports late.
    """
    if os.geteuid():
        return False
    places = {Path(sys.prefix), Path(__file__)}
    folders = {parent for place in places for parent in (place, *place.parents)} - {Path(__file__)}
    return True if all(folder.stat().st_mode & stat.S_IXOTH for folder in folders) else None


def _limit(memory: int | None, as_nobody: bool) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if as_nobody:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def run(job: Job) -> Outcome:
    """That of a job in this process."""
    try:
        return Outcome("returned", job())
    except UserError as error:
        return Outcome("refused", text=str(error)[:2000])
    except BaseException as error:
        text = "".join(traceback.format_exception(error))
        return Outcome("raised", type(error).__name__, text[-3000:])


def _write_all(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _tail(said: int) -> str:
    size = os.fstat(said).st_size
    return os.pread(said, 1000, max(0, size - 1000)).decode("utf-8", "backslashreplace")


def _ended(pid: int) -> int:
    """Exit status of a child, or minus the signal; once."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return 0
