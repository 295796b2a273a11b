"""Hostile files under every reader of files: a refusal in one line, or the right answer."""

from collections.abc import Callable

import pytest

from tests.hostile.counting import Report


@pytest.mark.long
def test_every_hostile_file_is_refused_or_read_right(whole: Callable[[str], Report]) -> None:
    found = whole("files")
    assert len(found.cases) > 3000
    assert not found.bad(), found.faults()
