"""Folders that cannot be exchanged for another, such as mount points, are filled: their entries are moved one by one.

One file makes the folder what it is, its header. It goes first and comes last, each time after all else is on the disk:
while the entries change, whoever opens the folder finds no header, and so nothing. What was there before is kept beside
the draft until the new header is in place. If the process ends before that, :func:`put_back` brings the old state back.
"""

from __future__ import annotations

import filecmp
import json
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rungwise.core._errors import UserError
from rungwise.core._untrusted_files import MissingFileError, read_json
from rungwise.core.disk._syncing import sync_file, sync_folder

LOST_AND_FOUND = "lost+found"
"""The folder that file systems such as ext4 keep at their root for the results of a repair."""

_BEFORE = "before"
"""Folder, within a draft's, of the old entries."""
_CLEARING, _FILLING = "clearing.json", "filling.json"
"""File of the plan: its first name while old entries are moved away, its second while new ones are moved in."""

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def is_mount_point(folder: Path) -> bool:
    """Whether another file system, or another folder, is mounted at a folder."""
    if os.path.ismount(folder):
        return True
    # A folder of the same file system that is bound there looks like any other.
    return os.fsencode(_resolved(folder)) in _mounts()


def mounts_below(folder: Path) -> frozenset[Path]:
    """Mount points below a folder, as far as the system lists them, with the folder as it was given in their paths."""
    root = os.fsencode(_resolved(folder)).rstrip(b"/") + b"/"
    return frozenset(
        folder / os.fsdecode(one[len(root) :]) for one in _mounts() if one.startswith(root) and one != root
    )


def _resolved(folder: Path) -> Path:
    try:
        return folder.resolve()
    except (OSError, ValueError, RuntimeError):
        return folder


def _mounts() -> set[bytes]:
    """Mount points that the system lists; none where it has no such list."""
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return set()
    return {_ESCAPED.sub(lambda found: bytes([int(found[1], 8)]), line.split(b" ")[4]) for line in lines}


def is_filled(folder: Path) -> bool:
    """Whether a folder (resolved) is filled when it is to be replaced.

    That is so for mount points, for folders in one that may not be written, and for the folder that this process works
    in: the shell that started it would be left in a folder that is gone.
    """
    if not folder.is_dir():
        return False
    if is_mount_point(folder) or not os.access(folder.parent, os.W_OK | os.X_OK):
        return True
    try:
        return folder.samefile(os.curdir)
    except OSError:  # of a process whose folder was removed
        return False


def fill(content: Path, target: Path, old: Sequence[str], header: str) -> None:
    """Move the content of a folder into another one, in place of what is there.

    Args:
        content: A folder in a draft's own folder, on the file system of the target; synced already.
        target: Folder to fill.
        old: Names of the entries of the target that go.
        header: Name of the entry that goes first and comes last.

    Raises:
        OSError: If an entry cannot be moved; what was there before is then there again.
    """
    draft = content.parent
    new = _last(header, [one.name for one in content.iterdir()])
    plan = {"content": content.name, "header": header, "new": {name: _size(content / name) for name in new}}
    (draft / _BEFORE).mkdir()
    (draft / _CLEARING).write_text(json.dumps(plan), encoding="ascii")
    sync_file(draft / _CLEARING)
    sync_folder(draft)
    try:
        for name in reversed(_last(header, old)):
            (target / name).rename(draft / _BEFORE / name)
            if name == header:
                _sync_folders(draft / _BEFORE, target)
        _sync_folders(draft / _BEFORE, target)
        (draft / _CLEARING).rename(draft / _FILLING)
        sync_folder(draft)
        for name in new:
            if name == header:
                _sync_folders(content, target)
            (content / name).rename(target / name)
        _sync_folders(content, target)
        (draft / _FILLING).unlink()
    except BaseException:
        put_back(draft, target)
        raise


def put_back(draft: Path, target: Path) -> bool:
    """Restore the content that a folder had before an interrupted :func:`fill`; nothing if there was none.

    Args:
        draft: The draft's own folder.
        target: Folder that was to be filled.

    Returns:
        Whether the draft may be removed: it holds nothing any more that was in the target.
    """
    while (plan := _plan(draft)) is not None:
        stage, content, header, new = plan
        before = draft / _BEFORE
        if stage == _FILLING:
            if os.path.lexists(target / header):
                return True  # it did come to its end, but for its last line
            for name, size in new.items():
                # Only what was moved in: whatever else has such a name is somebody's.
                if os.path.lexists(content / name):
                    _drop_copy(target / name, content / name, draft)
                elif os.path.lexists(target / name) and _size(target / name) == size:
                    (target / name).rename(content / name)
            _sync_folders(content, target)
            (draft / _FILLING).rename(draft / _CLEARING)
            sync_folder(draft)
            continue
        for name in _last(header, [one.name for one in before.iterdir()]):
            _drop_copy(before / name, target / name, draft)
            if not os.path.lexists(before / name):
                continue
            if os.path.lexists(target / name):
                return False
            if name == header:
                _sync_folders(target)
            (before / name).rename(target / name)
        _sync_folders(target)
        (draft / _CLEARING).unlink()
    return True


def _plan(draft: Path) -> tuple[str, Path, str, dict[str, int | None]] | None:
    """Stage, content, header and the size of each new entry; None where nothing was moved, or all of it is back."""
    for stage in (_FILLING, _CLEARING):
        try:
            plan = read_json(draft / stage, "settings_bytes")
            content, header, new = plan["content"], plan["header"], dict(plan["new"])
        except MissingFileError:
            continue
        except (UserError, ValueError, LookupError, TypeError):  # cut off, and so before anything was moved
            return None
        # The folder may come from anybody, and its plan with it.
        if not all(isinstance(name, str) and name == Path(name).name != ".." for name in (content, header, *new)):
            return None
        return stage, draft / content, header, new
    return None


def _size(path: Path) -> int | None:
    """Bytes of a file; None for a folder."""
    return None if path.is_dir() and not path.is_symlink() else path.lstat().st_size


def _drop_copy(one: Path, other: Path, draft: Path) -> None:
    """Move an entry out of the way that stands in two folders alike.

    Some disks keep the new name of what was moved before a power cut, and the old name as well.
    """
    if _is_same(one, other):
        aside = Path(tempfile.mkdtemp(dir=draft))
        one.rename(aside / one.name)


def _is_same(one: Path, other: Path) -> bool:
    """Whether two entries exist and are files with the same bytes, or folders of such files."""
    if one.is_symlink() or other.is_symlink():
        return False
    if one.is_dir() and other.is_dir():
        names = {entry.name for entry in one.iterdir()}
        return names == {entry.name for entry in other.iterdir()} and all(_is_same(one / n, other / n) for n in names)
    return one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)


def _last(header: str, names: Sequence[str]) -> list[str]:
    """Names in order, with the header's last."""
    return sorted(names, key=lambda name: (name == header, name))


def _sync_folders(*folders: Path) -> None:
    for folder in folders:
        sync_folder(folder)
