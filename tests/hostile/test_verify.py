"""Damaged files of all that rungwise makes, under verify."""

from pathlib import Path

import pytest

from tests.hostile.conftest import assert_nothing_bad, in_parts


@pytest.mark.long
@in_parts(10)
def test_verify_finds_whatever_a_command_would_stumble_over(part: str, tmp_path: Path) -> None:
    assert_nothing_bad("verify", part, tmp_path, 60)
