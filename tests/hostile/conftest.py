"""One run of the kit for all tests that read its counts."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile.counting import Report

ROOT = Path(__file__).parents[2]
USUAL = ("files", "commands", "kills", "power", "full", "--share", "0.015", "--processes", "1")
"""A share that takes about a minute."""


def run_kit(folder: Path, *arguments: str) -> Report:
    """The cases of ``python -m tests.hostile`` with these arguments."""
    cases = folder / "cases.json"
    command = [sys.executable, "-m", "tests.hostile", *arguments, "--json", str(cases)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert cases.is_file(), run.stdout[-2000:] + run.stderr[-4000:]
    return Report.of_plain(json.loads(cases.read_text()))


@pytest.fixture(scope="session")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The share of every family that each run of the tests plays."""
    return run_kit(tmp_path_factory.mktemp("hostile"), *USUAL)


@pytest.fixture
def whole(tmp_path: Path) -> Callable[[str], Report]:
    """All cases of a family."""
    return lambda family: run_kit(tmp_path, family)
