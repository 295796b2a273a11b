"""A full or failing disk and too little memory at every stage: one line, and what stood there stands."""

from collections.abc import Callable

import pytest

from tests.hostile import shim
from tests.hostile.counting import Report

pytestmark = pytest.mark.skipif(shim.missing() is not None, reason=shim.missing() or "")


def test_a_share_of_full_disks_and_memories_loses_nothing(usual: Report) -> None:
    assert sum(case.family in ("full", "memory") for case in usual.cases) > 15
    assert not [*usual.bad("full"), *usual.bad("memory")], usual.faults()


@pytest.mark.long
def test_no_full_disk_or_memory_loses_anything(whole: Callable[[str], Report]) -> None:
    found = whole("full")
    assert len(found.cases) > 300
    assert not found.bad(), found.faults()
