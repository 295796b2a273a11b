"""SIGKILL at drawn moments of training runs: the final weights are those of an undisturbed run, to the bit."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.hostile.conftest import ends_with_this
from tests.hostile.training import CASES

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def assert_the_same(case: str, kills: int, seed: int = 0) -> None:
    """In a process of its own, which has started no threads before it forks."""
    command = [*ends_with_this("tests.hostile.training"), "--only", case, "--kills", str(kills)]
    command += ["--seed", str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{case}: " in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "kills"),
    [("one run", 3), ("three stages, EMA and patience", 3), ("three stages, two processes", 1)],
)
def test_a_run_that_is_killed_and_goes_on_ends_the_same(case: str, kills: int) -> None:
    assert_the_same(case, kills)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("case", CASES)
def test_no_moment_and_no_number_of_processes_makes_a_difference(case: str, seed: int) -> None:
    assert_the_same(case, 5, seed)
