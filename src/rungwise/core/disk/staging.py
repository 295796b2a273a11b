"""Private drafts of what is to appear as a whole, with names that nobody can guess, swept when a run was killed.

A draft stands beside what it will replace, in a folder ``.NAME.HEX.partial`` that only its owner can enter: nobody can
put a link in its way. Where a folder is filled, its draft stands in it, in a folder ``.HEX.partial``. The owner holds a
lock on that folder for as long as it lives. Where the lock is free, the owner was killed, and the next process removes
the draft.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rungwise.core._digests import digest_of_parts
from rungwise.core.disk._mount_points import put_back

__all__ = ["OLD", "drafted", "is_draft", "others_write", "sweep"]

try:
    import fcntl
except ImportError:  # systems other than POSIX lock no folders
    fcntl = None  # type: ignore[assignment]

OLD = "old"
"""Folder within a draft that holds the old content, where a system cannot exchange two folders in one step."""

_LONGEST = 40
_HEX = r"[0-9a-f]{16}\.partial"
_DRAFT = re.compile(rf"\.(.+\.)?{_HEX}", re.DOTALL)
_DEAD_SECONDS = 86400.0
"""Age of a draft that counts as dead where folders cannot be locked."""


@contextmanager
def drafted(target: Path, *, inside: bool = False) -> Iterator[Path]:
    """Yield a path in a new private folder beside ``target``, of the same name, where nothing is yet.

    Drafts of killed runs for the same target are removed first. The folder is removed in the end, with what is in it.

    Args:
        target: Path that is to be written.
        inside: Put the private folder into the target, which is a folder.
    """
    sweep(target)
    folder, lock = _claim(target, inside)
    try:
        yield folder / (target.name or "root")
    finally:
        try:
            _remove(folder)
        finally:
            _close(lock)
            if folder.exists():  # where files are so few that none was left to look into it with
                _remove(folder)


def is_draft(name: str) -> bool:
    """Whether this is the name of a draft's folder."""
    return _DRAFT.fullmatch(name) is not None


def sweep(target: Path) -> None:
    """Remove drafts that killed runs left for a target, and put its old content back where it is missing."""
    for folder in _drafts(target):
        with suppress(OSError):
            lock = _lock(folder)
            try:
                if lock is None and time.time() - folder.stat().st_mtime < _DEAD_SECONDS:
                    continue
                before = folder / OLD / target.name
                if before.exists() and not os.path.lexists(target):
                    before.rename(target)
                if put_back(folder, target):
                    # While the lock is held: its owner may just have made the folder, and then makes another.
                    _remove(folder)
            finally:
                _close(lock)


def others_write(target: Path, mine: Path) -> bool:
    """Whether a living process has another draft for the same target than ``mine``, a path from :func:`drafted`."""
    return any(folder != mine.parent and _is_held(folder) for folder in _drafts(target))


def _is_held(folder: Path) -> bool:
    try:
        lock = _lock(folder)
    except BlockingIOError:
        return True
    except OSError:  # it is just being removed, or is another user's
        return False
    _close(lock)
    return False


def _lock(folder: Path) -> int | None:
    """Lock a folder; None where folders cannot be locked.

    Raises:
        BlockingIOError: If another process holds the lock.
        OSError: If there is no such folder any more, or it is another user's.
    """
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(handle), folder.stat()):
            raise FileNotFoundError(f"{folder}: replaced meanwhile")
    except (BlockingIOError, FileNotFoundError):
        os.close(handle)
        raise
    except OSError:  # some network file systems
        os.close(handle)
        return None
    return handle


def _close(lock: int | None) -> None:
    if lock is not None:
        os.close(lock)


def _drafts(target: Path) -> list[Path]:
    """Folders of drafts beside a target, and in it."""
    beside = re.compile(re.escape(f".{_label(target)}.") + _HEX)
    return [*_folders(target.parent, beside), *_folders(target, re.compile(rf"\.{_HEX}"))]


def _folders(place: Path, name: re.Pattern[str]) -> list[Path]:
    try:
        with os.scandir(place) as entries:
            found = [Path(one.path) for one in entries if name.fullmatch(one.name)]
            return [one for one in found if one.is_dir() and not one.is_symlink()]
    except (OSError, ValueError):
        return []


def _claim(target: Path, inside: bool) -> tuple[Path, int | None]:
    """A new folder and its lock, tried again where a sweep takes the folder before its lock is held."""
    place, label = (target, "") if inside else (target.parent, f"{_label(target)}.")
    while True:
        folder = place / f".{label}{secrets.token_hex(8)}.partial"
        folder.mkdir(mode=0o700)
        try:
            return folder, _lock(folder)
        except (FileNotFoundError, BlockingIOError):
            continue
        except BaseException:  # too many files are open
            with suppress(OSError):
                folder.rmdir()
            raise


def _remove(folder: Path) -> None:
    """Remove a draft's folder as far as possible, also where no more than one file can be opened."""
    shutil.rmtree(folder, ignore_errors=True)
    for place, folders, files in os.walk(folder, topdown=False):
        for name in (*files, *folders):
            path = Path(place) / name
            with suppress(OSError):
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    with suppress(OSError):
        folder.rmdir()


def _label(target: Path) -> str:
    """The target's name, shortened so that the draft's name is not too long."""
    if len(target.name) <= _LONGEST:
        return target.name
    digest = digest_of_parts([os.fsencode(target.name)])[:8]
    return f"{target.name[: _LONGEST - 8]}{digest}"
