"""Odd values in every settings file, header and JSON file that is read."""

import pytest

from tests.hostile.conftest import assert_nothing_bad, in_parts


@pytest.mark.slow
def test_a_share_of_odd_values_is_refused_or_read(tmp_path):
    assert_nothing_bad("values", "1/1", tmp_path, 401, "--share", "0.05")


@pytest.mark.long
@in_parts(10)
def test_every_odd_value_is_refused_or_read(part, tmp_path):
    assert_nothing_bad("values", part, tmp_path, 400)
