"""SIGKILL at random moments of training runs: the final weights are those of an undisturbed run, to the bit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def killed(*arguments: str) -> str:
    """What the program prints; in a process of its own, which has started no threads before it forks."""
    command = [sys.executable, "-m", "tests.hostile.training", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "kills"),
    [("one run", 3), ("three stages, EMA and patience", 3), ("three stages, two processes", 1)],
)
def test_a_run_that_is_killed_and_goes_on_ends_the_same(case: str, kills: int) -> None:
    assert f"{case}: " in killed("--kills", str(kills), "--only", case)


@pytest.mark.long
def test_no_moment_and_no_number_of_processes_makes_a_difference() -> None:
    assert "three stages, two processes: " in killed()
