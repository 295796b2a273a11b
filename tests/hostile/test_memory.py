"""Too little memory and too few threads, for a share of the commands."""

import pytest

from tests.hostile.conftest import assert_nothing_bad, in_parts, run_kit


@pytest.mark.slow
def test_a_share_of_little_memory_is_one_line(tmp_path):
    found = run_kit(tmp_path, "memory", "--share", "0.02")
    assert len(found.cases) > 10
    assert {case.verdict for case in found.cases} == {"accepted", "clean"}, found.faults()


@pytest.mark.long
@in_parts(30)
def test_every_command_in_little_memory_says_so(part, tmp_path):
    assert_nothing_bad("memory", part, tmp_path, 20)
