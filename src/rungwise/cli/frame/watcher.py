"""A second process that needs next to no memory, and says in one line what became of a command that found none.

Libraries in C++ and Rust that get no memory end the process themselves, after lines of their own: numba's compiler,
OpenBLAS, threads of torch, LanceDB. No handler of errors sees such an end; another process does. It is started where
the system limits the memory or the threads of the command, and nowhere else.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

from rungwise.core.compute.memory import remedy, says_ran_out

_BY_ITSELF = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP, signal.SIGFPE)
_LAST_WORDS = (
    "Traceback (most", "Exception ignored", "Exception in thread", "terminate called", "Fatal Python", "thread '",
    "ERROR:root:", "<jemalloc>",
)  # fmt: skip
"""What may stand in the first line of what a process says that ends for want of memory."""
_MOST_HELD = 1 << 16
_DEATH_OF_PARENT = 1
"""Of prctl."""


def watched(name: str, bad_input: int) -> int | None:
    """Go on in a new process, and watch it in this one.

    What the command writes to its standard error comes through here. From the first line on that may speak of want of
    memory it is held back; if the command ends of that, one line is written in its place.

    Args:
        name: Of the command, for that line.
        bad_input: The exit status then.

    Returns:
        None in the process that is to do the work; in the other one the exit status, once the work has ended.
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
    """Who kills the command means the work; only Linux can tell a process of it."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(_DEATH_OF_PARENT, signal.SIGKILL)


def _pass_signals_on(work: int) -> None:
    """A terminal sends Ctrl-C to both processes, anybody else to the one that is known."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        by_terminal = number == signal.SIGINT and _in_a_terminal()
        signal.signal(number, signal.SIG_IGN if by_terminal else lambda number, _: os.kill(work, number))


def _in_a_terminal() -> bool:
    return any(os.isatty(stream) and os.tcgetpgrp(stream) == os.getpgrp() for stream in (0, 1, 2))


def _forwarded(said: int) -> bytes:
    """Write on what the command writes; what was held back when it has ended."""
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
    """Say how the command ended; its exit status."""
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
