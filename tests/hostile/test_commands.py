"""Hostile files under every command: exit code 2 with one line, or an answer; never a traceback."""

from pathlib import Path

import pytest

from tests.hostile.conftest import assert_nothing_bad, in_parts


@pytest.mark.long
@in_parts(30)
def test_every_hostile_file_gets_one_line_of_each_command(part: str, tmp_path: Path) -> None:
    assert_nothing_bad("commands", part, tmp_path, 20, "--processes", "1")
