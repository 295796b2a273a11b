"""SIGKILL at every call of every writer: old or new stands, the next start finishes, nobody's file is gone."""

from collections.abc import Callable

import pytest

from tests.hostile import traced
from tests.hostile.conftest import with_shim
from tests.hostile.counting import Report

pytestmark = with_shim


@pytest.mark.long
def test_no_kill_loses_anything(whole: Callable[[str], Report]) -> None:
    found = whole("kills")
    assert len(found.cases) > 500
    assert not found.bad(), found.faults()


@pytest.mark.long
@pytest.mark.skipif(traced.missing() is not None, reason=traced.missing() or "")
def test_the_shim_sees_every_call_that_strace_sees(whole: Callable[[str], Report]) -> None:
    found = whole("traced")
    assert len(found.cases) > 10
    assert not found.bad(), found.faults()
