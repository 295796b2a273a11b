"""The suite holds its own rules, which tests/README.md states: the guard, the clock, the parts of a run."""

import argparse
import ast
import importlib.util
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rungwise.metrics._measures import MEASURES, Measure
from tests import rooms
from tests.faults import FAULTS
from tests.house import PACKAGE, modules, tree_of
from tests.own_parts import REGISTRIES, forgotten

TESTS = Path(__file__).parent
CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime"}
CLOCKS |= {f"{name}_ns" for name in CLOCKS}
DATES = {"now", "utcnow", "today"}
WAITS = {"wait", "join", "result", "get", "acquire"}
"""Methods that take a number of seconds as their first or second argument."""
LIMITS = {"asyncio.wait_for", "asyncio.timeout", "page.wait_for_timeout", "timeit.default_timer"}
"""Functions that know a number of seconds in any case."""

MAY_KNOW_THE_TIME = {
    "hostile/texts.py": "compares processor time at doubled lengths by ratio, as nothing else shows what is not linear",
    "index/stores/milvus/test_catalog.py": "hands on the limit that the program gives to each call of Milvus",
    "milvus_server.py": "lifts the limit that the package has of its own",
    "page/conftest.py": "lifts the limits that playwright has of its own",
    "serving/test_client.py": "a setting of the client; the server that it is tried on never answers",
}
"""Test files that read a clock or give a timeout, each with the reason."""

pytest_plugins = ["pytester"]


def clocks_in(path: Path) -> Iterator[str]:
    """Where a file reads a clock, or waits for a number of seconds."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            said = sorted({*CLOCKS, "*"} & {alias.name for alias in node.names})
        elif isinstance(node, ast.Import):  # under another name it would not be found
            said = [f"{alias.name} as {alias.asname}" for alias in node.names if alias.name == "time" and alias.asname]
        elif isinstance(node, ast.Attribute):
            of = ast.unparse(node.value).rpartition(".")[2]
            clock = (of == "time" and node.attr in CLOCKS) or (of in ("datetime", "date") and node.attr in DATES)
            said = [f"{of}.{node.attr}"] if clock else []
        elif isinstance(node, ast.Call):
            said = waits_in(node)
        else:
            continue
        yield from (f"{path.relative_to(TESTS.parent)}:{node.lineno}: {one}" for one in said)


def waits_in(call: ast.Call) -> list[str]:
    named = [one for one in call.keywords if one.arg == "timeout"]
    said = [f"timeout={ast.unparse(one.value)}" for one in named if not is_none(one.value)]
    name = ast.unparse(call.func).rpartition(".")[2]
    seconds = any(isinstance(one, ast.Constant) and type(one.value) in (int, float) for one in call.args[:2])
    method = isinstance(call.func, ast.Attribute)
    # A mapping's get has a number as its default, or as its key.
    waits = method and name in WAITS and seconds and not (name == "get" and not is_flag(call.args[0]))
    if waits or ast.unparse(call.func) in LIMITS:
        said.append(ast.unparse(call)[:60])
    return said


def is_flag(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, bool)


def is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def test_no_test_knows_the_time() -> None:
    found = {
        str(path.relative_to(TESTS)): said for path in sorted(TESTS.rglob("*.py")) if (said := list(clocks_in(path)))
    }
    wrong = [line for file, said in found.items() if file not in MAY_KNOW_THE_TIME for line in said]
    assert not wrong, "\n".join(["wait for the event itself, or hand the program a clock (tests/README.md):", *wrong])
    assert MAY_KNOW_THE_TIME.keys() <= found.keys(), "these files know no time any more"


def test_the_check_finds_what_it_is_for(tmp_path: Path) -> None:
    lines = [
        "time.monotonic()",
        "from time import perf_counter",
        "datetime.now()",
        "datetime.datetime.now()",
        "import time as clock",
        "from time import *",
        "asyncio.wait_for(task, limit)",
        "asyncio.timeout(5)",
        "queue.get(True, 5)",
        "lock.acquire(True, 5)",
        "futures.wait(tasks, 5)",
        "thread.join(5)",
        "event.wait(0.5)",
        "subprocess.run([], timeout=PATIENCE)",
        "page.wait_for_timeout(50)",
    ]
    fine = ["', '.join(words)", "event.wait()", "time.sleep(0.1)", "client(timeout=None)", "run.time()"]
    fine += ["found.get('a', 0)", "lock.acquire()"]
    assert [list(found_in(tmp_path, line)) for line in fine] == [[]] * len(fine)
    assert all(found_in(tmp_path, line) for line in lines)


def found_in(folder: Path, line: str) -> list[Any]:
    tree = ast.parse(line)
    path = TESTS / "nowhere.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_text", lambda *_, **__: ast.unparse(tree))
        return list(clocks_in(path))


def test_no_test_starts_a_process_as_a_copy_of_its_own() -> None:
    """Threads of libraries that hold a lock at that moment let the copy, or this process, wait for ever."""
    files = [*TESTS.rglob("test_*.py"), *TESTS.rglob("conftest.py")]
    calls = [(path, node) for path in files for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    wrong = [
        f"{path.relative_to(TESTS)}:{node.lineno}"
        for path, node in calls
        if (isinstance(node, ast.Call) and ast.unparse(node.func) == "os.fork")
        or (isinstance(node, ast.keyword) and node.arg == "preexec_fn")
    ]
    assert not wrong, wrong


BREAKS = {
    "subprocess": "import subprocess, sys\n    subprocess.run([sys.executable, '-c', ''])",
    "fork": "import os\n    os.fork() or os._exit(0)",
    "spawned": "import multiprocessing\n    multiprocessing.get_context('spawn').Process(target=print).start()",
    "socket": "import socket\n    socket.create_server(('127.0.0.1', 0)).close()",
    "sleep": "import time\n    time.sleep(.001)",
    "asyncio sleep": "import asyncio\n    asyncio.run(asyncio.sleep(.001))",
    "caught": "import time\n    try:\n        time.sleep(.001)\n    except BaseException:\n        pass",
    "skipped": "import time, pytest\n    try:\n        time.sleep(1)\n    except BaseException:\n        pytest.skip()",
}


@pytest.mark.parametrize("code", BREAKS.values(), ids=BREAKS)
def test_the_guard_refuses(pytester: pytest.Pytester, code: str) -> None:
    pytester.makepyfile(f"def test_it():\n    {code}\n")
    run = pytester.runpytest_inprocess("-p", "tests.tiers", "-p", "no:randomly")
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines(["*tests of the usual tier may not*"])


def test_the_guard_lets_marked_tests_be(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    smoke: s\n    slow: s")
    code = "import time, pytest\n@pytest.mark.{}\ndef test_{}():\n    time.sleep(.001)\n"
    pytester.makepyfile("".join(code.format(mark, mark) for mark in ("smoke", "slow")))
    pytester.runpytest_inprocess("-p", "tests.tiers", "-p", "no:randomly").assert_outcomes(passed=2)


def test_the_guard_refuses_what_a_marked_test_made(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    smoke: s")
    fixture = "import time, pytest\n@pytest.fixture(scope='module')\ndef server():\n    time.sleep(.001)\n"
    tests = "@pytest.mark.smoke\ndef test_marked(server):\n    pass\ndef test_unmarked(server):\n    pass\n"
    pytester.makepyfile(fixture + tests)
    run = pytester.runpytest_inprocess("-p", "tests.tiers", "-p", "no:randomly")
    run.assert_outcomes(passed=1, errors=1)
    run.stdout.fnmatch_lines(["*test_unmarked takes server, which starts a process, listens or sleeps*"])


def test_what_failed_is_said_at_once_and_noted(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one():\n    assert 1 == 2\n\ndef test_two():\n    pass\n")
    noted = pytester.path / "failures.txt"
    run = pytester.runpytest_inprocess("-p", "tests.tiers", "-p", "no:randomly", "--failures", str(noted))
    run.stdout.fnmatch_lines(["FAILED *::test_one - *assert 1 == 2*", "*= FAILURES =*"])
    assert noted.read_text() == "test_what_failed_is_said_at_once_and_noted.py::test_one\n"


def test_what_passed_is_not_run_again(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "def test_one():\n    pass\n\ndef test_two():\n    pass\n\ndef test_three():\n    assert False\n"
    )
    passed = pytester.path / "passed.txt"
    passed.write_text("test_what_passed_is_not_run_again.py::test_one\ntest_what_passed_is_not_run_again.py::test_t")
    arguments = ("-p", "tests.tiers", "-p", "no:randomly", "--passed", str(passed))
    pytester.runpytest_inprocess(*arguments).assert_outcomes(passed=1, failed=1, deselected=1)
    pytester.runpytest_inprocess(*arguments).assert_outcomes(failed=1, deselected=2)


def test_those_above_are_found_through_others() -> None:
    above = rooms.with_those_above({"losses"})
    assert {"losses", "training", "cli"} <= above, "training trains with losses, the command line trains"
    assert not above & {"core", "metrics", "relevance", "models"}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["src/rungwise/cli/train/_command.py"], {"cli", "__main__", "deploy", "documents", "hostile"}),
        (["tests/page/test_look.py"], {"page"}),
        (["src/rungwise/configs/quick/a.yaml"], rooms.with_those_above({"training"}) | {"configs"}),
        (["docs/guide/data/data.md", "README.md", "tests/README.md"], {"documents"}),
        (["tests/conftest.py"], None),
        (["constraints.txt"], None),
    ],
)
def test_rooms_that_a_change_concerns(
    monkeypatch: pytest.MonkeyPatch, paths: list[str], expected: set[str] | None
) -> None:
    monkeypatch.setattr(rooms, "differing", lambda _: paths)
    assert rooms.changed("HEAD") == expected


@pytest.fixture
def start() -> ModuleType:
    spec = importlib.util.spec_from_file_location("start", TESTS.parent / "start.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ([], ["tests", "lint", "format", "types", "docs", "demo"]),
        (["--all"], ["tests", "lint", "format", "types", "docs", "demo", "alone"]),
        (["index", "--all"], ["tests", "lint", "format", "types"]),
        (["--only", "types", "docs"], ["types", "docs"]),
    ],
)
def test_the_steps_of_a_run(start: ModuleType, words: list[str], steps: list[str]) -> None:
    assert start.Checks(start.parsed(["test", *words])[0], []).steps() == steps


def test_a_run_says_how_to_repeat_what_failed(start: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUNGWISE_DATA", raising=False)
    asked: argparse.Namespace = start.parsed(["test", "--all", "--random", "--seed", "7"])[0]
    checks = start.Checks(asked, [])
    checks.failed = {"types": [], "tests": ["tests/test_a.py::test_b"]}
    command = "python3 start.py test --all --random --seed 7 --last-failed --only types tests"
    assert checks.again() == command
    monkeypatch.setenv("RUNGWISE_DATA", "/my data")
    assert checks.again() == f"RUNGWISE_DATA='/my data' {command}"


def test_where_pip_fails_the_command_that_says_more_is_named(
    start: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.touch()
    tried: list[list[str]] = []
    monkeypatch.setattr(start.subprocess, "call", lambda command: len(tried.append(command) or tried))
    with pytest.raises(SystemExit, match="pip did not install rungwise; this says more: ") as refused:
        start.install(tmp_path, "serve")
    assert str(refused.value).partition("more: ")[2] == shlex.join(tried[0][:-1])
    assert tried[0][-1] == "--quiet"


def test_rooms_stand_before_and_behind_options(start: ModuleType) -> None:
    for words in (["index", "--all", "losses"], ["--random", "index", "losses"]):
        assert start.parsed(["test", *words])[0].rooms == ["index", "losses"]
    assert start.parsed(["test", "losses", "--", "-k", "ladder"])[1] == ["-k", "ladder"]
    assert start.parsed(["demo", "--folder", "somewhere"])[1] == ["--folder", "somewhere"]


def test_where_nothing_differs_there_are_no_steps(start: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "differing", lambda _: [])
    assert start.Checks(start.parsed(["test", "--changed"])[0], []).steps() == []
    monkeypatch.setattr(rooms, "differing", lambda _: ["docs/guide/data/data.md"])
    assert start.Checks(start.parsed(["test", "--changed"])[0], []).steps() == [
        "tests",
        "lint",
        "format",
        "types",
        "docs",
    ]


def test_parts_that_tests_make_are_forgotten_after_them() -> None:
    with forgotten():

        class Odd(Measure):
            name = "Odd"

        assert MEASURES.named("Odd") is Odd
    assert not MEASURES.has("Odd")
    assert MEASURES.has("R")


def test_every_registry_forgets() -> None:
    made = {
        str(node.target.id): module
        for module in modules()
        for node in tree_of(module).body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and ast.unparse(node.annotation).startswith("Registry[")
    }
    assert made == REGISTRIES


def test_every_planted_fault_still_has_its_place() -> None:
    for fault in FAULTS:
        assert fault.right in (PACKAGE / fault.file).read_text(encoding="utf-8"), fault
        assert fault.room in rooms.FLOORS


def test_every_room_has_its_floor_or_says_what_it_stands_on() -> None:
    assert rooms.rooms() <= {*rooms.FLOORS, *rooms.BESIDE}


def test_an_unknown_room_is_refused_with_those_that_there_are(start: ModuleType) -> None:
    with pytest.raises(SystemExit, match=r"no room losess; there are .*losses"):
        start.chosen_files(start.parsed(["test", "losess"])[0])
