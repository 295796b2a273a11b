"""A plugin of pytest for all tests, examples in docstrings among them. See tests/README.md.

It says what a test of the usual tier may not do and what a run says at its end, and takes away what examples wrote.
"""

from __future__ import annotations

import asyncio
import multiprocessing.util
import socket
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

FREE = ("smoke", "slow", "long")
"""Marks of tests that may start processes, listen and sleep."""

STARTS_A_PROCESS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec"}
"""Events of ``sys.audit``."""


class _Watch:
    """What one test may not do, and what it did all the same."""

    running: _Watch | None = None
    events = 0
    """How often any test did what the guard looks for."""

    def __init__(self, test: str) -> None:
        self.test = test
        self.refused: list[str] = []
        # Threads of a server that another test shares with this one go on as they like.
        self._older = {*threading.enumerate()} - {threading.current_thread()}

    def refuse(self, what: str) -> None:
        """Raise in the test that is held to the rule; noted as well, since a program may catch what is raised."""
        if threading.current_thread() in self._older:
            return
        line = f"{self.test} {what}: tests of the usual tier may not; mark it slow, or hand the program a double"
        self.refused.append(line)
        raise AssertionError(line)


_WATCH = pytest.StashKey[_Watch]()
_SHARED: set[object] = set()
"""Fixtures wider than a test that did what a test of the usual tier may not."""


def _refuse(what: str) -> None:
    _Watch.events += 1
    if _Watch.running:
        _Watch.running.refuse(what)


class _Passed:
    """Which tests passed in an earlier run of the same state of the tree: the file that ``--passed`` names."""

    def __init__(self, config: pytest.Config) -> None:
        self.file: Path | None = config.getoption("--passed")
        self.speaks = not hasattr(config, "workerinput")
        # The processes of a run must collect the same tests, also one that takes another's place: one reads the file.
        self._well: set[str] = set()
        self.tests: list[str] = self._read() if self.speaks else config.workerinput["passed"]  # type: ignore[attr-defined]

    def _read(self) -> list[str]:
        if self.file is None or not self.file.is_file():
            return []
        lines = self.file.read_text(encoding="utf-8").splitlines(keepends=True)
        whole = [line for line in lines if line.endswith("\n")]  # one without an end was cut off
        self.file.write_text("".join(whole), encoding="utf-8")
        return [line.strip() for line in whole]

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["passed"] = self.tests

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        known = set(self.tests)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in known])
        items[:] = [item for item in items if item.nodeid not in known]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._well.add(report.nodeid)
        if self.file and self.speaks and report.when == "teardown" and report.passed and report.nodeid in self._well:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", encoding="utf-8") as file:
                file.write(f"{report.nodeid}\n")


class _Failures:
    """Says at once what failed, and writes it into the file that ``--failures`` names."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.tests: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.tests[report.nodeid] = None
            crash = getattr(report.longrepr, "reprcrash", None)
            said = str(crash.message if crash else report.longrepr).strip().splitlines()
            terminal: Any = self.config.pluginmanager.get_plugin("terminalreporter")
            terminal.write_line(f"\nFAILED {report.nodeid} - {said[0] if said else report.when}", red=True)

    def pytest_sessionfinish(self) -> None:
        if file := self.config.getoption("--failures"):
            file.write_text("".join(f"{test}\n" for test in self.tests), encoding="utf-8")


def _importing() -> bool:
    """Whether a library is being imported: some then look for files of the system by other programs."""
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
    return False


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event in STARTS_A_PROCESS and not _importing():
        _refuse(f"starts a process ({event} {str(arguments)[:200]})")


def _guarded(function: Callable[..., Any], says: Callable[..., str | None]) -> Callable[..., Any]:
    def instead(*arguments: Any, **named: Any) -> Any:
        what = says(*arguments, **named)
        if what:
            _refuse(what)
        return function(*arguments, **named)

    return instead


def _sleeping(delay: float, *_: Any, **__: Any) -> str | None:
    return f"sleeps for {delay} s" if delay else None  # 0 lets another thread or task go first


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--passed FILE``: what it lists is left out, and what passes is added, so that hours of tests can be resumed.

    ``--failures FILE``: which tests of this run failed, for whoever started it.
    """
    parser.addoption("--failures", type=Path, help="write which tests failed into this file")
    parser.addoption("--passed", type=Path, help="leave out the tests that this file lists, and add those that pass")


def pytest_configure(config: pytest.Config) -> None:
    """Put the guard in place; it stays, since an audit hook cannot be taken away."""
    config.pluginmanager.register(_Passed(config))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Failures(config))
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
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Hold the test to the rule from its first fixture on."""
    _Watch.running = None
    if not any(item.get_closest_marker(mark) for mark in FREE):
        _Watch.running = item.stash[_WATCH] = _Watch(item.nodeid)
    try:
        yield
    except BaseException:
        _Watch.running = None
        _fail_for_what_was_refused(item)
        raise
    shared = [name for name, found in item._fixtureinfo.name2fixturedefs.items() if {*found} & _SHARED]
    if _WATCH in item.stash and shared:
        pytest.fail(f"{item.nodeid} takes {', '.join(shared)}, which starts a process, listens or sleeps: mark it slow")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None]:
    """Note what a test may not borrow from a marked one, since in another order it would have to make it."""
    before = _Watch.events
    yield
    if _Watch.events > before and fixturedef.scope != "function":
        _SHARED.add(fixturedef)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail the test for what it did, caught or skipped or not. Afterwards shared fixtures may end as they like."""
    try:
        yield
    finally:
        _Watch.running = None
        _fail_for_what_was_refused(item)


def _fail_for_what_was_refused(item: pytest.Item) -> None:
    if _WATCH in item.stash and item.stash[_WATCH].refused:
        pytest.fail("\n".join(item.stash[_WATCH].refused), pytrace=False)


@pytest.fixture(autouse=True)
def _folders_of_doctests(request: pytest.FixtureRequest) -> Generator[None]:
    """What an example writes into a new temporary folder goes when it ends; tests have ``tmp_path``."""
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", folder)
        yield


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
