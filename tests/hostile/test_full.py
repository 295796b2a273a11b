"""A full or failing disk and too little memory at every stage: one line, and what stood there stands."""

from pathlib import Path

import pytest

from tests.hostile.conftest import assert_nothing_bad, in_parts, with_shim


@with_shim
@pytest.mark.long
@in_parts(30)
def test_no_full_disk_or_memory_loses_anything(part: str, tmp_path: Path) -> None:
    assert_nothing_bad("full", part, tmp_path, 10)
