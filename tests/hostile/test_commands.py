"""Hostile files under every command: exit code 2 with one line, or an answer; never a traceback, never a wait."""

from collections.abc import Callable

import pytest

from tests.hostile.counting import Report


@pytest.mark.long
def test_every_hostile_file_gets_one_line_of_each_command(whole: Callable[[str], Report]) -> None:
    found = whole("commands")
    assert len(found.cases) > 1000
    assert not found.bad(), found.faults()
