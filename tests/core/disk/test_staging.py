import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rungwise.core.disk import staging
from rungwise.core.disk.staging import drafted, is_draft, others_write, sweep

HOLD = """
import sys
from pathlib import Path
from rungwise.core.disk.staging import drafted
with drafted(Path(sys.argv[1])) as draft:
    draft.write_text("half")
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that writes a draft of ``a.txt``."""
    command = [sys.executable, "-c", HOLD, tmp_path / "a.txt"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_draft_that_is_being_written_is_left_alone(tmp_path):
    target = tmp_path / "a.txt"
    with drafted(target) as one:
        one.write_text("half")
        sweep(target)
        with drafted(target) as other:
            assert others_write(target, other)
            assert one.read_text() == "half"
        assert not others_write(target, one)
    assert list(tmp_path.iterdir()) == []


def test_where_folders_have_no_locks_old_drafts_are_dead(tmp_path, monkeypatch):
    monkeypatch.setattr(staging, "fcntl", None)
    with drafted(tmp_path / "a.txt") as one:
        sweep(tmp_path / "a.txt")
        assert one.parent.exists()
        os.utime(one.parent, (0, 0))
        sweep(tmp_path / "a.txt")
        assert not one.parent.exists()


@pytest.mark.slow
def test_the_draft_of_a_living_process_is_left_alone_and_that_of_a_killed_one_removed(tmp_path, holder):
    target = tmp_path / "a.txt"
    sweep(target)
    (folder,) = tmp_path.iterdir()
    assert (folder / "a.txt").read_text() == "half"
    with drafted(target) as mine:
        assert others_write(target, mine)
    holder.kill()
    holder.wait()
    with drafted(target) as mine:
        assert not folder.exists()
        assert not others_write(target, mine)
    assert list(tmp_path.iterdir()) == []


def test_only_drafts_of_the_same_target_are_swept(tmp_path):
    mine = tmp_path / ".a.txt.0123456789abcdef.partial"
    others = [
        tmp_path / ".b.txt.0123456789abcdef.partial",
        tmp_path / ".a.txt.0123456789abcdef",
        tmp_path / ".a.txt.thesis.partial",
        tmp_path / "a.txt.0123456789abcdef.partial",
    ]
    for folder in (mine, *others):
        folder.mkdir()
        (folder / "kept").touch()
    (tmp_path / ".a.txt.00000000000000ff.partial").symlink_to(others[0])
    (tmp_path / ".a.txt.000000000000ffff.partial").touch()
    sweep(tmp_path / "a.txt")
    assert not mine.exists()
    assert all((folder / "kept").exists() for folder in others)
    assert (tmp_path / ".a.txt.00000000000000ff.partial").is_symlink()


def test_what_was_moved_aside_comes_back_only_where_nothing_stands(tmp_path):
    for name in ("gone", "there"):
        aside = tmp_path / f".{name}.0123456789abcdef.partial" / "old"
        aside.mkdir(parents=True)
        (aside / name).write_text("old")
    (tmp_path / "there").write_text("new")
    sweep(tmp_path / "gone")
    sweep(tmp_path / "there")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"gone": "old", "there": "new"}


def test_names_cannot_be_guessed_and_are_never_too_long(tmp_path):
    seen = set()
    for name in ("a.txt", "a.txt", "x" * 255, "x" * 254 + "y", "é" * 127):
        with drafted(tmp_path / name) as draft:
            assert draft.name == name
            assert is_draft(draft.parent.name)
            assert len(os.fsencode(draft.parent.name)) <= 255
            seen.add(draft.parent.name)
    assert len(seen) == 5
    assert len({name.rsplit(".", 2)[0] for name in seen}) == 4, "long names that differ keep apart"


@pytest.mark.slow
def test_many_at_a_time(tmp_path):
    """Whoever sweeps must not take a draft that is just being made for a dead one."""
    code = """
import sys
from pathlib import Path
from rungwise.core.disk import replacing
for turn in range(100):
    with replacing(Path(sys.argv[1])) as draft:
        draft.write_text(f"{turn:1000}")
"""
    running = [subprocess.Popen([sys.executable, "-c", code, tmp_path / "a.txt"]) for _ in range(3)]
    while any(one.poll() is None for one in running):
        text = Path(tmp_path / "a.txt").read_text() if (tmp_path / "a.txt").exists() else ""
        assert len(text) in (0, 1000)
        time.sleep(0.002)  # leaves the cores to those that write
    assert [one.returncode for one in running] == [0, 0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_where_no_more_than_one_file_can_be_opened_a_draft_is_removed_all_the_same(tmp_path, monkeypatch):
    """As with ``ulimit -n``: what walks down by open folders then finds nothing to remove."""
    monkeypatch.setattr(staging.shutil, "rmtree", lambda folder, ignore_errors: None)
    with drafted(tmp_path / "index") as draft:
        (draft / "pictures" / "deep").mkdir(parents=True)
        (draft / "pictures" / "deep" / "rows").touch()
        (draft / "link").symlink_to(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_draft_that_gets_no_lock_is_not_left_behind(tmp_path, monkeypatch):
    def refuse(folder: Path) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(staging, "_lock", refuse)
    with pytest.raises(OSError, match="Too many"), drafted(tmp_path / "a.txt"):
        pytest.fail("it was begun")
    assert list(tmp_path.iterdir()) == []
