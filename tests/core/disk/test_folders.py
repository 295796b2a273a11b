import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.core.disk import SEAL, check_seal, folders
from rungwise.core.disk.folders import entries, refuse_strangers, replacing_folder, require_writable_folder
from rungwise.core.disk.locks import LOCKS

PARTS = {"index.json", "vectors.npy"}


def written(folder: Path, text: str) -> None:
    with replacing_folder(folder, PARTS, "an index") as draft:
        (draft / "index.json").write_text(text)


def test_a_folder_appears_and_is_replaced_as_a_whole(tmp_path):
    folder = tmp_path / "deep" / "down"
    with replacing_folder(folder, PARTS, "an index") as draft:
        (draft / "index.json").write_text("one")
        (draft / "vectors.npy").write_text("many")
        assert not folder.exists()
    written(folder, "two")
    assert sorted(file.name for file in folder.iterdir()) == [SEAL, "index.json"]
    assert (folder / "index.json").read_text() == "two"
    check_seal(folder)
    assert [file.name for file in folder.parent.iterdir()] == ["down"]


@pytest.mark.parametrize("error", [RuntimeError("no power"), KeyboardInterrupt()])
def test_an_interruption_leaves_what_was_there(tmp_path, error):
    written(tmp_path / "index", "one")

    def interrupted() -> None:
        with replacing_folder(tmp_path / "index", PARTS, "an index") as draft:
            (draft / "index.json").write_text("half of t")
            raise error

    with pytest.raises(type(error)):
        interrupted()
    assert (tmp_path / "index" / "index.json").read_text() == "one"
    assert [file.name for file in tmp_path.iterdir()] == ["index"]


@pytest.fixture(params=["in one step", "in two steps"])
def swapping(request, monkeypatch):
    """As systems can that exchange two folders in one step, and as the others must."""
    if request.param == "in two steps":
        monkeypatch.setattr(folders, "_exchange", lambda one, other: False)


@pytest.mark.usefixtures("swapping")
def test_the_old_folder_is_there_until_the_new_one_is(tmp_path):
    written(tmp_path / "index", "one")
    written(tmp_path / "index", "two")
    assert (tmp_path / "index" / "index.json").read_text() == "two"
    assert [file.name for file in tmp_path.iterdir()] == ["index"]


def test_a_failed_swap_puts_the_old_folder_back(tmp_path, monkeypatch):
    written(tmp_path / "index", "one")
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.parent.name.endswith(".partial"):
            raise OSError(errno.EACCES, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(UserError, match="may not be written"):
        written(tmp_path / "index", "two")
    assert (tmp_path / "index" / "index.json").read_text() == "one"
    assert [file.name for file in tmp_path.iterdir()] == ["index"]


@pytest.mark.skipif(sys.platform != "linux", reason="this system exchanges in two steps")
def test_linux_exchanges_in_one_step(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "says").write_text(name)
    assert folders._exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "says").read_text() == "b"
    assert (tmp_path / "b" / "says").read_text() == "a"
    with pytest.raises(FileNotFoundError):
        folders._exchange(tmp_path / "a", tmp_path / "c")


def test_a_killed_run_between_the_two_steps_loses_nothing(tmp_path, monkeypatch):
    written(tmp_path / "index", "one")
    dead = tmp_path / ".index.0123456789abcdef.partial"
    (dead / "old").mkdir(parents=True)
    (tmp_path / "index").rename(dead / "old" / "index")
    seen = []

    def fail() -> None:
        with replacing_folder(tmp_path / "index", PARTS, "an index"):
            seen.append((tmp_path / "index" / "index.json").read_text())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert seen == ["one"]
    assert [file.name for file in tmp_path.iterdir()] == ["index"]


def test_two_at_a_time_are_refused(tmp_path):
    with replacing_folder(tmp_path / "index", PARTS, "an index") as draft:
        (draft / "index.json").write_text("first")
        with pytest.raises(UserError, match="another process writes an index here now"):
            written(tmp_path / "index", "second")
        written(tmp_path / "indexes", "a name that begins alike")
    assert (tmp_path / "index" / "index.json").read_text() == "first"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["index", "indexes"]


def test_files_get_the_mode_of_the_user(tmp_path):
    before = os.umask(0o027)
    try:
        with replacing_folder(tmp_path / "index", PARTS, "an index") as draft:
            (draft / "index.json").touch(0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "index").stat().st_mode) == 0o750
    assert stat.S_IMODE((tmp_path / "index" / "index.json").stat().st_mode) == 0o640


def test_strangers_in_subfolders_are_found(tmp_path):
    parts = {"index.json", "pictures/rows-*.jsonl"}
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "rows-3.jsonl").touch()
    refuse_strangers(tmp_path, parts, "an index")
    (tmp_path / "pictures" / "cat.jpg").touch()
    with pytest.raises(UserError, match=r"holds 'pictures/cat\.jpg'"):
        refuse_strangers(tmp_path, parts, "an index")


def test_a_stranger_that_came_while_we_wrote_is_kept(tmp_path):
    written(tmp_path / "index", "one")

    def write() -> None:
        with replacing_folder(tmp_path / "index", PARTS, "an index") as draft:
            (draft / "index.json").write_text("two")
            (tmp_path / "index" / "thesis.tex").write_text("years of work")

    with pytest.raises(UserError, match=r"holds 'thesis\.tex'"):
        write()
    assert (tmp_path / "index" / "thesis.tex").read_text() == "years of work"
    assert (tmp_path / "index" / "index.json").read_text() == "one"


def test_all_is_on_the_disk_before_the_swap_and_the_name_after_it(tmp_path, monkeypatch):
    synced = []

    def note(handle: int) -> None:
        about = os.fstat(handle)
        kind = "folder" if stat.S_ISDIR(about.st_mode) else "file"
        synced.append((kind, (tmp_path / "index").exists()))

    monkeypatch.setattr(os, "fsync", note)
    with replacing_folder(tmp_path / "index", PARTS, "an index") as draft:
        for name in PARTS:
            (draft / name).write_text(name)
    # two files, the seal, the folder that holds them; then, with the name in place, the folder around
    assert synced == [("file", False)] * 3 + [("folder", False), ("folder", True)]


def test_what_belongs_to_somebody_else_is_never_replaced(tmp_path):
    (tmp_path / "index").mkdir()
    written(tmp_path / "index", "one")  # an empty folder is nobody's
    (tmp_path / "index" / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match=r"holds 'thesis\.tex', which is no part of an index; name a new or empty"):
        written(tmp_path / "index", "two")
    with pytest.raises(UserError, match="a file stands here; name a folder for an index"):
        written(tmp_path / "index" / "thesis.tex", "two")
    with pytest.raises(UserError, match="a file stands where a folder is needed"):
        written(tmp_path / "index" / "thesis.tex" / "index", "two")
    assert (tmp_path / "index" / "index.json").read_text() == "one"
    assert (tmp_path / "index" / "thesis.tex").read_text() == "years of work"


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "index").symlink_to(tmp_path / "there")
    written(tmp_path / "index", "one")
    assert (tmp_path / "index").is_symlink()
    assert (tmp_path / "there" / "index.json").read_text() == "one"


def test_strangers_are_found_without_writing(tmp_path):
    refuse_strangers(tmp_path / "nowhere", PARTS, "an index")
    refuse_strangers(tmp_path, PARTS, "an index")
    (tmp_path / "notes").mkdir()
    with pytest.raises(UserError, match="holds 'notes'"):
        refuse_strangers(tmp_path, PARTS, "an index")


def test_what_file_managers_leave_is_no_stranger(tmp_path):
    written(tmp_path / "index", "one")
    (tmp_path / "index" / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    written(tmp_path / "index", "two")
    assert sorted(file.name for file in (tmp_path / "index").iterdir()) == [SEAL, "index.json"]


def test_a_folder_is_tried_before_it_is_needed_and_nothing_of_it_stays(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("new", "new/in/new", "there", "there/../x/../new", "link"):
        require_writable_folder(tmp_path / name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["link", "there"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("x" * 300, "the name is too long; choose a shorter one"),
        ("a\0b", "cannot be written here"),
        ("file", "a file stands where a folder is needed"),
        ("file/index", "a file stands where a folder is needed"),
        ("pipe", "a file stands where a folder is needed"),
        ("round", "cannot be written here"),
        ("/proc/index", "cannot be written here"),
        ("/dev/fd/index", "cannot be written here|may not be written"),
    ],
)
def test_what_cannot_be_a_folder_is_refused_by_name(tmp_path, name, reason):
    (tmp_path / "file").write_text("somebody's")
    (tmp_path / "round").symlink_to("round")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match=reason):
        require_writable_folder(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "pipe", "round"]
    with pytest.raises(UserError), replacing_folder(tmp_path / name, PARTS, "an index"):
        pytest.fail("it was begun")


@pytest.mark.parametrize("name", ["a\nb", "a\udcff"])
def test_a_name_that_other_libraries_do_not_take_is_refused_for_a_new_folder(tmp_path, name):
    with pytest.raises(UserError, match="its name holds a control character or is no UTF-8"):
        require_writable_folder(tmp_path / name)


def test_in_a_folder_that_was_removed_nothing_is_written(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()
    with pytest.raises(UserError, match="index: cannot be written here"):
        require_writable_folder(Path("index"))
    with pytest.raises(UserError, match="index: cannot be written here"), replacing_folder(Path("index"), PARTS, "one"):
        pytest.fail("it was begun")
    monkeypatch.chdir(tmp_path)


def test_a_folder_below_which_the_system_lays_another_is_filled(tmp_path, monkeypatch):
    """As containers have it, whose folders of a lower layer cannot be moved."""
    written(tmp_path / "index", "one")
    number = (tmp_path / "index").stat().st_ino

    def refuse(one: Path, other: Path) -> bool:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(folders, "_exchange", refuse)
    written(tmp_path / "index", "two")
    assert (tmp_path / "index").stat().st_ino == number
    assert (tmp_path / "index" / "index.json").read_text() == "two"
    assert [file.name for file in tmp_path.iterdir()] == ["index"]


def test_entries_are_what_somebody_put_there(tmp_path):
    for name in ("b", "a", ".DS_Store", *LOCKS):
        (tmp_path / name).touch()
    (tmp_path / ".a.0123456789abcdef.partial").mkdir()
    (tmp_path / ".0123456789abcdef.partial").mkdir()
    assert entries(tmp_path) == ["a", "b"]
