"""Runs of the kit for tests that read its counts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile import shim
from tests.hostile.counting import Report

ROOT = Path(__file__).parents[2]

with_shim = pytest.mark.skipif(shim.missing() is not None, reason=shim.missing() or "")
"""What cuts, kills and fills a disk needs the shim, and so a compiler."""


_TIED = """
import runpy, sys
from tests.hostile.forked import end_with_the_parent
end_with_the_parent()
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def ends_with_this(module: str) -> list[str]:
    """A command that runs a module, and that the system kills when this process is gone; started at the root."""
    return [sys.executable, "-c", _TIED, module]


def run_kit(folder: Path, *arguments: str) -> Report:
    """The cases of ``python -m tests.hostile`` with these arguments.

    While it runs, the last line of ``cases.jsonl`` in the folder says how far it is.
    """
    cases = folder / "cases.jsonl"
    command = [*ends_with_this("tests.hostile"), *arguments, "--cases", str(cases)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stdout[-2000:] + run.stderr[-4000:]
    return Report.read(cases)


def write_in_a_process(code: str, folder: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Run code in a process with the shim, where there can be one, in a new folder that holds a file ``a``: "old".

    Returns:
        The folder, which the code is given as its argument, and how the process ended.
    """
    place = folder / "place"
    place.mkdir()
    (place / "a").write_text("old")
    loaded = {} if shim.missing() else {"LD_PRELOAD": str(shim.build(folder))}
    command = [sys.executable, "-c", code, str(place)]
    return place, subprocess.run(
        command, cwd=ROOT, env=os.environ | loaded, stderr=subprocess.PIPE, text=True, check=False
    )


def in_parts(count: int) -> pytest.MarkDecorator:
    """The cases of a family as so many tests of some minutes, so that a run that was broken off can go on.

    The number of parts stands in the name of each: what was played of others says nothing about these.
    """
    return pytest.mark.parametrize("part", [f"{number}/{count}" for number in range(1, count + 1)])


def assert_nothing_bad(family: str, part: str, folder: Path, least: int, *more: str) -> None:
    """Play one part of a family, in which there must be so many cases."""
    found = run_kit(folder, family, "--part", part, *more)
    assert len(found.cases) >= least
    assert not found.bad(), found.faults()
