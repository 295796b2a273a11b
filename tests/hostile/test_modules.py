"""Folders of every kind that name modules: their names are printed, and nothing is imported."""

from pathlib import Path

import pytest

from tests.hostile.conftest import run_kit
from tests.hostile.modules import kinds


@pytest.mark.slow
def test_what_a_folder_records_is_never_imported(tmp_path: Path) -> None:
    found = run_kit(tmp_path, "modules")
    lines = {kind.name: len(kind.lines) + 1 for kind in kinds()}
    assert {name: sum(one.subject == name for one in found.cases) for name in lines} == lines
    assert not found.bad(), found.faults()
    said = {one.subject for one in found.cases if "what a folder names is not imported" in one.detail}
    assert {"run", "model", "model, its kind", "model, exported", "index", "backup"} <= said
