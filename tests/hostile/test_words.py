"""What is printed into outputs that are hard to print to, and under Ctrl-C: one line or silence, never a traceback."""

from pathlib import Path

import pytest

from tests.hostile.conftest import assert_nothing_bad, in_parts


@pytest.mark.slow
def test_a_share_of_words(tmp_path: Path) -> None:
    assert_nothing_bad("words", "1/1", tmp_path, 11, "--share", "0.03")


@pytest.mark.long
@in_parts(10)
def test_every_word_is_one_line(part: str, tmp_path: Path) -> None:
    assert_nothing_bad("words", part, tmp_path, 20)
