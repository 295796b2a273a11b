"""A second process with little memory, which reports in one line the end of a command that ran out of memory.

Libraries in C++ and Rust that get no memory end the process themselves, after messages of their own: numba's compiler,
OpenBLAS, threads of torch, LanceDB. No error handler sees such an end, but another process does. It is started only
where the system limits memory or threads of the command.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from rungwise.core.compute import remedy, says_ran_out

_BY_ITSELF = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP, signal.SIGFPE)
_LAST_WORDS = (
    "Traceback (most", "Exception ignored", "Exception in thread", "terminate called", "Fatal Python", "thread '",
    "ERROR:root:", "<jemalloc>",
)  # fmt: skip
"""Beginnings of the first line that a process may print when it ends for lack of memory."""
_MOST_HELD = 1 << 16
_DEATH_OF_PARENT = 1
"""Option PR_SET_PDEATHSIG of prctl."""


def watched(name: str, bad_input: int) -> int | None:
    """Continue in a new process, and watch it in this one.

    The command's standard error passes through here. Output is held back from the first line on that may report lack of
    memory; if the command ends of that, one line is written instead.

    Returns:
        None in the process that does the work; in the other one the exit status, after the work.
    """
    said, ours = os.pipe()
    try:
        work = os.fork()
    except OSError:  # no process more either: the command does without
        os.close(said)
        os.close(ours)
        return None
    if not work:
        _end_with_the_parent()
        os.close(said)
        os.dup2(ours, 2)
        os.close(ours)
        return None
    os.close(ours)
    _pass_signals_on(work)

    def ended(*_: object) -> None:
        if os.waitid(os.P_PID, work, os.WEXITED | os.WNOHANG | os.WNOWAIT):  # and has not only been stopped
            os.set_blocking(said, False)  # what it started may hold the pipe open for longer

    signal.signal(signal.SIGCHLD, ended)
    ended()
    held = _forwarded(said)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.close(said)
    return _told(name, os.waitstatus_to_exitcode(os.waitpid(work, 0)[1]), held, bad_input)


def _end_with_the_parent() -> None:
    """End the work when the watcher is killed, on Linux."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(_DEATH_OF_PARENT, signal.SIGKILL)


def _pass_signals_on(work: int) -> None:
    """Forward signals to the work, except a Ctrl-C from a terminal, which reaches both processes."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        by_terminal = number == signal.SIGINT and _in_a_terminal()
        signal.signal(number, signal.SIG_IGN if by_terminal else lambda number, _: os.kill(work, number))


def _in_a_terminal() -> bool:
    return any(os.isatty(stream) and os.tcgetpgrp(stream) == os.getpgrp() for stream in (0, 1, 2))


def _forwarded(said: int) -> bytes:
    """Forward the command's messages; returns those held back when it has ended."""
    line, held, holding = b"", b"", False
    while True:
        try:
            data = os.read(said, 1 << 16)
        except BlockingIOError:
            data = b""
        for part in data.splitlines(keepends=True):
            line += part
            if not part.endswith((b"\n", b"\r")) and len(line) < _MOST_HELD:
                continue
            holding = holding or _may_be_last(line)
            held += line
            line = b""
            if not holding or len(held) > _MOST_HELD:
                _write(held)
                held, holding = b"", False
        if not data:
            return held + line


def _may_be_last(line: bytes) -> bool:
    text = line.decode("utf-8", "replace")
    return any(one in text for one in _LAST_WORDS) or says_ran_out(text)


def _told(name: str, ended: int, held: bytes, bad_input: int) -> int:
    """Report how the command ended; returns the exit status."""
    lines = [one for one in held.decode("utf-8", "replace").splitlines() if one.strip()]
    own = lines[-1] if lines and lines[-1].startswith(f"{name}: ") else ""
    words = [one.strip() for one in lines if says_ran_out(one)]
    if words and "panicked" in own:  # which only repeats that a library gave up
        own = ""
    if -ended in _BY_ITSELF or (words and not own and ended not in (0, 128 + signal.SIGINT) and ended > 0):
        how = words[-1] if words else f"a library ended the process: {signal.strsignal(-ended)}"
        _write(f"{name}: out of memory ({how[:300]}); {remedy(how)}\n".encode())
        return bad_input
    if own and ended == bad_input and "out of memory" in own:
        held = f"{own}\n".encode()
    _write(held)
    if ended < 0:
        with suppress(OSError):  # what always ends a process has no other disposition
            signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    return ended


def _write(data: bytes) -> None:
    with suppress(OSError):  # nobody reads it
        while data:
            data = data[os.write(sys.stderr.fileno(), data) :]
