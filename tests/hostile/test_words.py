"""What is printed into outputs that are hard to print to, and under Ctrl-C: one line or silence, never a traceback."""

from pathlib import Path

import pytest

from tests.hostile.conftest import assert_nothing_bad, in_parts, run_kit


@pytest.mark.slow
def test_a_share_of_words(tmp_path: Path) -> None:
    report = run_kit(tmp_path, "words", "--share", "0.03")
    assert len(report.cases) > 10
    assert not report.bad(), report.faults()


@pytest.mark.long
@in_parts(10)
def test_every_word_is_one_line(part: str, tmp_path: Path) -> None:
    assert_nothing_bad("words", part, tmp_path, 20)
