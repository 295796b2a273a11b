"""SIGKILL at every call of every writer: old or new stands, the next start finishes, nobody's file is gone."""

import signal
from pathlib import Path

import pytest

from rungwise.core.disk import replacing
from tests.hostile import shim, traced
from tests.hostile.conftest import assert_nothing_bad, in_parts, with_shim, write_in_a_process

KILLED = """
import os, signal, sys
from pathlib import Path
from rungwise.core.disk import replacing
from tests.hostile import shim
place = Path(sys.argv[1])
if shim.is_loaded():
    shim.arm(place, shim.Mode.HALF, at=4)  # after the folder of the draft, the draft, and its being opened
with replacing(place / "a") as draft:
    draft.write_text("new and long")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.smoke
def test_a_process_that_is_killed_at_a_write_leaves_the_old_file_whole(tmp_path: Path) -> None:
    place, run = write_in_a_process(KILLED, tmp_path)
    assert run.returncode == -signal.SIGKILL
    assert (place / "a").read_text() == "old"
    (left,) = {path.read_text() for path in place.rglob("*") if path.is_file()} - {"old"}
    assert left == ("new and long" if shim.missing() else "new an")
    with replacing(place / "a") as draft:
        draft.write_text("new")
    assert {path.name: path.read_text() for path in place.iterdir()} == {"a": "new"}


@with_shim
@pytest.mark.long
@in_parts(30)
def test_no_kill_loses_anything(part: str, tmp_path: Path) -> None:
    assert_nothing_bad("kills", part, tmp_path, 10)


@with_shim
@pytest.mark.long
@pytest.mark.skipif(traced.missing() is not None, reason=traced.missing() or "")
@in_parts(2)
def test_the_shim_sees_every_call_that_strace_sees(part: str, tmp_path: Path) -> None:
    assert_nothing_bad("traced", part, tmp_path, 5)
