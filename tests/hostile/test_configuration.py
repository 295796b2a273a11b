"""Every value of every configuration file, and what it can reach: nothing but the numbers it stands for."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.hostile.conftest import ends_with_this

pytest.importorskip("sentence_transformers")
ROOT = Path(__file__).parents[2]
DOCUMENTS = ("training", "sources", "models", "encoders", "checkpoints", "sentence_models")


def assert_harmless(home: Path, share: int, documents: Sequence[str]) -> None:
    """Walk these documents in a process of its own, whose every act is looked at."""
    (home / "tmp").mkdir(parents=True)
    places = {"HF_HOME": str(home / "hf"), "RUNGWISE_CACHE": str(home / "cache"), "TMPDIR": str(home / "tmp")}
    places |= {"PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [*ends_with_this("tests.hostile.configurations"), str(home), str(share), *documents],
        cwd=ROOT, env=os.environ | places | {"PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    print(found["counts"])
    assert found["blind"] == [], "the walk does not see harm that is done"
    assert found["harm"] == []
    assert found["errors"] == []
    assert found["counts"]["refused"] > 0
    assert found["counts"]["accepted"] > 0
    for document in documents:
        assert found["counts"][document] > 50


@pytest.mark.slow
def test_no_value_of_a_configuration_reaches_code_files_or_the_network(tmp_path: Path) -> None:
    assert_harmless(tmp_path / "home", 1, DOCUMENTS)


@pytest.mark.long
@pytest.mark.parametrize("document", DOCUMENTS)
def test_nor_does_it_beside_ten_times_as_many_others(document: str, tmp_path: Path) -> None:
    assert_harmless(tmp_path / "home", 10, [document])
