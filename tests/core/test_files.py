"""Also tests rungwise.core.errors: every refusal is one line with a remedy."""

import errno
import os
from pathlib import Path

import pytest

from rungwise.core.errors import UserError
from rungwise.core.files import explained, replacing


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
    [
        (errno.ENOSPC, "the disk is full; free some space"),
        (errno.EROFS, "may not be written"),
        (errno.EDQUOT, "full"),
        (errno.EISDIR, "or a folder for a file; choose another place"),
        (errno.EEXIST, "a file stands where a folder is needed"),
        (errno.ENOTDIR, "a file stands where a folder is needed"),
    ],
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
    with pytest.raises(TimeoutError), explained(tmp_path):
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))


@pytest.mark.parametrize(
    ("name", "message"),
    [(".", "a folder stands here; name a file"), ("a", "a folder stands here"), ("b/c", "a file stands where")],
)
def test_folders_and_files_in_each_other_s_place_are_called_so(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").mkdir()
    Path("b").touch()
    with pytest.raises(UserError, match=message), replacing(Path(name)) as draft:
        draft.write_text("x")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b"]
