"""Every value of every configuration file, and what it can reach: nothing but the numbers it stands for."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sentence_transformers")
ROOT = Path(__file__).parents[2]


def walked(home: Path, share: int) -> dict[str, Any]:
    """In a process of its own, whose every act is looked at."""
    home.mkdir()
    places = {"HF_HOME": str(home / "hf"), "RUNGWISE_CACHE": str(home / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.configurations", str(home), str(share)],
        cwd=ROOT, env=os.environ | places | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=3000,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(found["counts"])
    return found


@pytest.mark.parametrize("share", [1, pytest.param(10, marks=pytest.mark.long)], ids=["a share", "more"])
def test_no_value_of_a_configuration_reaches_code_files_or_the_network(share: int, tmp_path: Path) -> None:
    found = walked(tmp_path / "home", share)
    assert found["blind"] == [], "the walk does not see harm that is done"
    assert found["harm"] == []
    assert found["errors"] == []
    assert found["counts"]["refused"] > found["counts"]["accepted"] > 0
    for document in ("training", "sources", "models", "encoders", "checkpoints", "sentence_models"):
        assert found["counts"][document] > 50
