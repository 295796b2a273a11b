import errno
import os
from pathlib import Path

import pytest

from rungwise.errors import UserError
from rungwise.files import explained, replacing


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")

    def fail() -> None:
        with replacing(target) as draft:
            draft.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_it_appears_only_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "a.txt"
    with replacing(target) as draft:
        draft.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"


@pytest.mark.parametrize(
    ("code", "message"),
    [(errno.ENOSPC, "the disk is full; free some space"), (errno.EROFS, "may not be written"), (errno.EDQUOT, "full")],
)
def test_refusals_have_one_line(code: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message) as caught, explained(tmp_path / "x"):
        raise OSError(code, os.strerror(code))
    assert str(tmp_path / "x") in str(caught.value)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_really_full_device() -> None:
    with pytest.raises(UserError, match="the disk is full"), explained(Path("/dev/full")):
        Path("/dev/full").write_text("x")


def test_other_errors_pass(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), explained(tmp_path):
        raise IsADirectoryError
