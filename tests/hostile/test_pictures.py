"""Every kind of picture that takes long at every door: refused by name, or read within a bound."""

from pathlib import Path

import pytest

from tests.hostile.conftest import assert_nothing_bad


@pytest.mark.slow
def test_a_share_of_pictures_that_take_long(tmp_path: Path) -> None:
    assert_nothing_bad("pictures", "1/1", tmp_path, 11, "--share", "0.06")


@pytest.mark.long
def test_every_picture_that_takes_long(tmp_path: Path) -> None:
    assert_nothing_bad("pictures", "1/1", tmp_path, 400)
