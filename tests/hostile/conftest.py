"""Runs of the kit for tests that read its counts."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hostile import shim
from tests.hostile.counting import Report

ROOT = Path(__file__).parents[2]

with_shim = pytest.mark.skipif(shim.missing() is not None, reason=shim.missing() or "")
"""What cuts, kills and fills a disk needs the shim, and so a compiler."""


def run_kit(folder: Path, *arguments: str) -> Report:
    """The cases of ``python -m tests.hostile`` with these arguments."""
    cases = folder / "cases.json"
    command = [sys.executable, "-m", "tests.hostile", *arguments, "--json", str(cases)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert cases.is_file(), run.stdout[-2000:] + run.stderr[-4000:]
    return Report.of_plain(json.loads(cases.read_text()))


@pytest.fixture
def whole(tmp_path: Path) -> Callable[[str], Report]:
    """All cases of a family."""
    return lambda family: run_kit(tmp_path, family)
