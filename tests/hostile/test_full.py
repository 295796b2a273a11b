"""A full or failing disk and too little memory at every stage: one line, and what stood there stands."""

from collections.abc import Callable

import pytest

from tests.hostile.conftest import with_shim
from tests.hostile.counting import Report

pytestmark = with_shim


@pytest.mark.long
def test_no_full_disk_or_memory_loses_anything(whole: Callable[[str], Report]) -> None:
    found = whole("full")
    assert len(found.cases) > 300
    assert not found.bad(), found.faults()
