"""The suite holds its own rules, which tests/README.md states: the guard, the clock, the parts of a run."""

import argparse
import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests import rooms

TESTS = Path(__file__).parent
CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "thread_time"}
CLOCKS |= {f"{name}_ns" for name in CLOCKS}
WAITS = {"wait", "join", "result"}
"""Methods whose first argument is a number of seconds, where it is a number."""

MAY_KNOW_THE_TIME = {
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
            said = sorted(CLOCKS & {alias.name for alias in node.names})
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            clock = node.value.id == "time" and node.attr in CLOCKS
            date = node.value.id in ("datetime", "date", "dt") and node.attr in ("now", "utcnow", "today")
            said = [f"{node.value.id}.{node.attr}"] if clock or date else []
        elif isinstance(node, ast.Call):
            said = waits_in(node)
        else:
            continue
        yield from (f"{path.relative_to(TESTS.parent)}:{node.lineno}: {one}" for one in said)


def waits_in(call: ast.Call) -> list[str]:
    named = [one for one in call.keywords if one.arg == "timeout"]
    said = [f"timeout={ast.unparse(one.value)}" for one in named if not is_none(one.value)]
    if isinstance(call.func, ast.Attribute):
        first = call.args[0] if call.args else None
        seconds = isinstance(first, ast.Constant) and isinstance(first.value, (int, float))
        if (call.func.attr in WAITS and seconds) or call.func.attr == "wait_for_timeout":
            said.append(f"{call.func.attr}({ast.unparse(first) if first else ''})")
    return said


def is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def test_no_test_knows_the_time() -> None:
    found = {
        str(path.relative_to(TESTS)): said
        for path in sorted(TESTS.rglob("*.py"))
        if path.name not in ("tiers.py",) and (said := list(clocks_in(path)))
    }
    wrong = [line for file, said in found.items() if file not in MAY_KNOW_THE_TIME for line in said]
    assert not wrong, "\n".join(["wait for the event itself, or hand the program a clock (tests/README.md):", *wrong])
    assert MAY_KNOW_THE_TIME.keys() <= found.keys(), "these files know no time any more"


def test_the_check_finds_what_it_is_for(tmp_path: Path) -> None:
    lines = [
        "time.monotonic()",
        "from time import perf_counter",
        "datetime.now()",
        "thread.join(5)",
        "event.wait(0.5)",
        "subprocess.run([], timeout=PATIENCE)",
        "page.wait_for_timeout(50)",
    ]
    fine = ["', '.join(words)", "event.wait()", "time.sleep(0.1)", "client(timeout=None)", "run.time()"]
    assert [list(found_in(tmp_path, line)) for line in fine] == [[]] * len(fine)
    assert all(found_in(tmp_path, line) for line in lines)


def found_in(folder: Path, line: str) -> list[Any]:
    tree = ast.parse(line)
    path = TESTS / "nowhere.py"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_text", lambda *_, **__: ast.unparse(tree))
        return list(clocks_in(path))


BREAKS = {
    "subprocess": "import subprocess, sys\n    subprocess.run([sys.executable, '-c', ''])",
    "fork": "import os\n    os.fork() or os._exit(0)",
    "spawned": "import multiprocessing\n    multiprocessing.get_context('spawn').Process(target=print).start()",
    "socket": "import socket\n    socket.create_server(('127.0.0.1', 0)).close()",
    "sleep": "import time\n    time.sleep(.001)",
    "asyncio sleep": "import asyncio\n    asyncio.run(asyncio.sleep(.001))",
    "caught": "import time\n    try:\n        time.sleep(.001)\n    except BaseException:\n        pass",
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
        (["src/rungwise/cli/train.py"], {"cli", "__main__"}),
        (["tests/page/test_look.py"], {"page"}),
        (["docs/data.md", "README.md"], set()),
        (["tests/conftest.py"], None),
        (["constraints.txt"], None),
    ],
)
def test_rooms_that_a_change_concerns(
    monkeypatch: pytest.MonkeyPatch, paths: list[str], expected: set[str] | None
) -> None:
    monkeypatch.setattr(rooms, "_differing", lambda _: paths)
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
    assert start.Checks("python", start.parsed(["test", *words])[0], []).steps() == steps


def test_a_run_says_how_to_repeat_what_failed(start: ModuleType) -> None:
    asked: argparse.Namespace = start.parsed(["test", "--all", "--random", "--seed", "7"])[0]
    checks = start.Checks("python", asked, [])
    checks.failed = ["types", "tests"]
    assert checks.again() == "python3 start.py test --all --seed 7 --random --only types tests --last-failed"


def test_an_unknown_room_is_refused_with_those_that_there_are(start: ModuleType) -> None:
    with pytest.raises(SystemExit, match=r"no room losess; there are .*losses"):
        start.chosen_files(start.parsed(["test", "losess"])[0])
