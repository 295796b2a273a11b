"""A plugin of pytest: what a test of the usual tier may not do, and what a run says at its end. See tests/README.md."""

from __future__ import annotations

import asyncio
import multiprocessing.util
import socket
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FREE = ("smoke", "slow", "long")
"""Marks of tests that may start processes, listen and sleep."""

STARTS_A_PROCESS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}
"""Events of ``sys.audit``."""


class _Watch:
    """What the running test may not do, and what it did all the same."""

    def __init__(self) -> None:
        self.test: str | None = None
        self.refused: list[str] = []
        self._older: set[int] = set()

    def begin(self, item: pytest.Item) -> None:
        self.refused = []
        # Threads of a server that another test shares with this one go on as they like.
        self._older = {thread.ident or 0 for thread in threading.enumerate()} - {threading.get_ident()}
        self.test = None if any(item.get_closest_marker(mark) for mark in FREE) else item.nodeid

    def end(self) -> None:
        self.test = None

    def refuse(self, what: str) -> None:
        """Raise in the test that is held to the rule; noted as well, since a program may catch what is raised."""
        if self.test is None or threading.get_ident() in self._older:
            return
        line = f"{self.test} {what}: tests of the usual tier may not; mark it slow, or hand the program a double"
        self.refused.append(line)
        raise AssertionError(line)


_watch = _Watch()


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in STARTS_A_PROCESS:
        _watch.refuse(f"starts a process ({event} {str(arguments)[:200]})")


def _guarded(function: Callable[..., Any], says: Callable[..., str | None]) -> Callable[..., Any]:
    def instead(*arguments: Any, **named: Any) -> Any:
        what = says(*arguments, **named)
        if what:
            _watch.refuse(what)
        return function(*arguments, **named)

    return instead


def _sleeping(seconds: float, *_: Any, **__: Any) -> str | None:
    return f"sleeps for {seconds} s" if seconds else None  # 0 lets another thread or task go first


def pytest_configure(config: pytest.Config) -> None:
    """Put the guard in place; it stays, since an audit hook cannot be taken away."""
    if getattr(sys, "_rungwise_guard", False):  # a run of pytest within a test
        return
    sys._rungwise_guard = True  # type: ignore[attr-defined]
    sys.addaudithook(_audit)
    time.sleep = _guarded(time.sleep, _sleeping)
    asyncio.sleep = _guarded(asyncio.sleep, _sleeping)
    # What multiprocessing spawns raises no event before Python 3.14.
    multiprocessing.util.spawnv_passfds = _guarded(  # type: ignore[attr-defined]
        multiprocessing.util.spawnv_passfds,  # type: ignore[attr-defined]
        lambda path, *_: f"starts a process ({path})",
    )
    socket.socket.listen = _guarded(socket.socket.listen, lambda *_: "listens on a socket")  # type: ignore[method-assign]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Hold the test to the rule from its first fixture on."""
    _watch.begin(item)
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail the test for what it did, caught or not. Afterwards shared fixtures may end as they like."""
    try:
        yield
    finally:
        _watch.end()
    if _watch.refused:
        pytest.fail("\n".join(_watch.refused), pytrace=False)


def room_of(nodeid: str) -> str:
    """The folder that a test stands in; for doctests the room of the package."""
    parts = Path(nodeid.partition("::")[0]).parts
    inner = parts[2:] if parts[:2] == ("src", "rungwise") else parts[1:]
    return (inner[0] if len(inner) > 1 else "(beside the rooms)") + (" doctests" if parts[0] == "src" else "")


_seconds: dict[str, float] = defaultdict(float)
_tests: Counter[str] = Counter()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up by room, in the process that speaks."""
    _seconds[room_of(report.nodeid)] += report.duration
    _tests[room_of(report.nodeid)] += report.when == "call"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how long each room took."""
    if len(_tests) < 2:
        return
    terminalreporter.section("seconds by room")
    for room, seconds in sorted(_seconds.items(), key=lambda one: -one[1]):
        terminalreporter.write_line(f"{seconds:8.1f} s  {_tests[room]:6,} tests  {room}")
