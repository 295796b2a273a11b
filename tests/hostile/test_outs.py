"""Every place that a command may be told to write to: written, or refused before anything is computed."""

from pathlib import Path

import pytest

from tests.hostile.conftest import assert_nothing_bad, in_parts
from tests.hostile.outs import READ, named_by_the_parsers, outputs


def test_every_option_that_names_a_place_is_said_to_be_read_or_written() -> None:
    written = {str(one) for one in outputs()}
    assert not written & READ
    assert named_by_the_parsers() == written | READ


@pytest.mark.slow
def test_a_share_of_places(tmp_path: Path) -> None:
    assert_nothing_bad("outs", "1/1", tmp_path, 21, "--share", "0.05")


@pytest.mark.long
@in_parts(6)
def test_every_output_on_every_place(part: str, tmp_path: Path) -> None:
    assert_nothing_bad("outs", part, tmp_path, 100)
