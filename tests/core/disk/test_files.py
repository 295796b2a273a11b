"""Also tests rungwise.core._errors: every refusal is one line with a remedy."""

import errno
import os
import stat
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.core.disk import creating, explained, make_folder, replacing, require_writable_file


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


@pytest.mark.parametrize("links", [True, False])
def test_a_new_file_never_takes_the_place_of_another(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError(errno.EPERM, "no hard links")))
    target = tmp_path / "deep" / "a.txt"
    with creating(target) as draft:
        draft.write_text("first")
    with pytest.raises(FileExistsError), creating(target):
        pytest.fail("began to write")
    other = tmp_path / "b.txt"

    def too_late() -> None:
        with creating(other) as draft:
            draft.write_text("mine")
            other.write_text("of somebody who was faster")

    with pytest.raises(FileExistsError):
        too_late()
    assert (target.read_text(), other.read_text()) == ("first", "of somebody who was faster")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.txt", "deep"]


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


def test_file_and_folder_are_synced_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []

    def note(handle: int) -> None:
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        synced.append((kind, (tmp_path / "a.txt").exists()))

    monkeypatch.setattr(os, "fsync", note)
    with replacing(tmp_path / "a.txt") as draft:
        draft.write_text("new")
    assert synced == [("file", False), ("folder", True)]


def test_a_planted_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precious = tmp_path / "precious"
    precious.write_text("years of work")
    (tmp_path / "a.txt").symlink_to(precious)
    with replacing(tmp_path / "a.txt") as draft:
        assert stat.S_IMODE(draft.parent.stat().st_mode) == 0o700
        draft.write_text("new")
    assert precious.read_text() == "years of work"
    assert not (tmp_path / "a.txt").is_symlink()


def test_what_is_already_in_the_draft_s_place_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precious = tmp_path / "precious"
    precious.write_text("years of work")
    mkdir = Path.mkdir

    def planted(self: Path, *args: object, **options: object) -> None:
        mkdir(self, *args, **options)  # type: ignore[arg-type]
        if self.name.endswith(".partial"):
            (self / "a.txt").symlink_to(precious)

    monkeypatch.setattr(Path, "mkdir", planted)
    with pytest.raises(UserError), replacing(tmp_path / "a.txt") as draft:
        draft.write_text("new")
    assert precious.read_text() == "years of work"


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_files_get_the_mode_of_the_user_whoever_wrote_them(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        with replacing(tmp_path / "a.txt") as draft:
            draft.unlink()
            draft.touch(0o600)  # as libraries do that write through a private file of their own
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == mode


def test_no_device_is_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="a device or a pipe stands here"), replacing(tmp_path / "pipe"):
        pass
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_long_names(tmp_path: Path) -> None:
    with replacing(tmp_path / ("a" * 255)) as draft:
        draft.write_text("new")
    assert (tmp_path / ("a" * 255)).read_text() == "new"
    with pytest.raises(UserError, match="the name is too long"), replacing(tmp_path / ("a" * 256)):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a" * 255]


def test_folders_are_made_so_that_they_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    make_folder(tmp_path / "a" / "b")
    assert synced == [tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino]
    make_folder(tmp_path / "a" / "b")
    assert len(synced) == 2


def test_a_file_is_tried_before_it_is_needed_and_nothing_of_it_stays(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("old")
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("new.json", "in/new/folders/new.json", "old.json", "link", "a\nb", "a\udcff"):
        require_writable_file(tmp_path / name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["link", "old.json"]
    assert (tmp_path / "old.json").read_text() == "old"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("x" * 300, "the name is too long; choose a shorter one"),
        ("a\0b", "cannot be written here"),
        ("a\ud800", "cannot be written here"),
        ("folder", "a folder stands here; name a file"),
        ("pipe", "a device or a pipe stands here"),
        ("old.json/new.json", "a file stands where a folder is needed"),
        ("/proc/new.json", "cannot be written here"),
        ("/dev/null", "a device or a pipe stands here"),
        ("/dev/full", "a device or a pipe stands here"),
    ],
)
def test_what_cannot_be_a_file_is_refused_by_name(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text("old")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match=reason):
        require_writable_file(tmp_path / name)
    with pytest.raises(UserError), replacing(tmp_path / name):
        pytest.fail("it was begun")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "old.json", "pipe"]


def test_a_file_that_is_mounted_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("rungwise.core.disk._files.is_mount_point", lambda path: path.name == "file")
    with pytest.raises(UserError, match="a file is mounted here"):
        require_writable_file(tmp_path / "file")
