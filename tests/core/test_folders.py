import errno
import os
from pathlib import Path

import pytest

from rungwise.core.errors import UserError
from rungwise.core.folders import refuse_strangers, replacing_folder

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
    assert [file.name for file in folder.iterdir()] == ["index.json"]
    assert (folder / "index.json").read_text() == "two"
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


def test_a_failed_swap_puts_the_old_folder_back(tmp_path, monkeypatch):
    written(tmp_path / "index", "one")
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.name.endswith(".partial"):
            raise OSError(errno.EACCES, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(UserError, match="may not be written"):
        written(tmp_path / "index", "two")
    assert (tmp_path / "index" / "index.json").read_text() == "one"
    assert [file.name for file in tmp_path.iterdir()] == ["index"]


def test_every_file_is_on_the_disk_before_the_swap(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append((number, (tmp_path / "index").exists())))
    with replacing_folder(tmp_path / "index", PARTS, "an index") as draft:
        for name in PARTS:
            (draft / name).write_text(name)
    assert [there for _, there in synced] == [False, False]


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
    assert [file.name for file in (tmp_path / "index").iterdir()] == ["index.json"]
