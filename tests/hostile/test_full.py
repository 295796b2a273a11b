"""A full or failing disk and too little memory at every stage: one line, and what stood there stands."""

from pathlib import Path

import pytest

from tests.hostile.conftest import assert_nothing_bad, in_parts, with_shim, write_in_a_process

FULL = """
import errno, sys
from pathlib import Path
from rungwise.core import UserError
from rungwise.core.disk import replacing
from tests.hostile import shim
place = Path(sys.argv[1])
shim.arm(place, shim.Mode.FAIL, at=4, error=errno.ENOSPC)  # the first write into the draft, and all that follows
try:
    with replacing(place / "a") as draft:
        draft.write_text("new")
except UserError as error:
    print(error, file=sys.stderr)
"""


@with_shim
@pytest.mark.smoke
def test_a_write_to_a_full_disk_is_one_line_and_leaves_the_old_file(tmp_path: Path) -> None:
    place, run = write_in_a_process(FULL, tmp_path)
    assert run.returncode == 0, run.stderr
    assert "the disk is full" in run.stderr
    assert run.stderr.count("\n") == 1
    assert (place / "a").read_text() == "old"


@with_shim
@pytest.mark.long
@in_parts(30)
def test_no_full_disk_or_memory_loses_anything(part: str, tmp_path: Path) -> None:
    assert_nothing_bad("full", part, tmp_path, 10)
