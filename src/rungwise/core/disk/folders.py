"""Folders that appear as a whole or not at all, and checks whether a place can be written."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rungwise.core._errors import UserError
from rungwise.core.disk._files import explained, make_folder, possible, require_writable_file, try_place
from rungwise.core.disk._mount_points import LOST_AND_FOUND, fill, is_filled, is_mount_point
from rungwise.core.disk._seals import DROPPINGS, SEAL, names_below, write_seal
from rungwise.core.disk._syncing import sync_file, sync_folder
from rungwise.core.disk.locks import LOCKS
from rungwise.core.disk.staging import OLD, drafted, is_draft, others_write, sweep

__all__ = [
    "WRITTEN_FILE",
    "WRITTEN_FOLDER",
    "entries",
    "refuse_strangers",
    "replacing_folder",
    "require_writable",
    "require_writable_folder",
]

WRITTEN_FILE: MappingProxyType[str, Any] = MappingProxyType({"written": "file"})
"""``metadata`` of a dataclass field that names a file to write."""
WRITTEN_FOLDER: MappingProxyType[str, Any] = MappingProxyType({"written": "folder"})
"""``metadata`` of a dataclass field that names a folder to write, or to write in."""

_ODD = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


@contextmanager
def replacing_folder(
    folder: Path, parts: Collection[str], what: str, *, header: str = SEAL, seal: bool = True
) -> Iterator[Path]:
    """Yield a draft folder to write to; it takes the place of ``folder`` only when the block ends well.

    What stood there before stays until all new files are on the disk. Where the system can, the two are exchanged in
    one step; elsewhere there is a moment without either, and the old one comes back if the process ends in it. A mount
    point, which nothing can take the place of, is filled (see :mod:`rungwise.core.disk._mount_points`), which has such
    a moment, too; likewise a folder in one that may not be written, and the one that this process works in.

    Args:
        folder: Folder to write, made with its parents; replaced if it holds nothing but ``parts``.
        parts: Names of the files that such a folder may hold, relative to it, with ``*`` for any part of a name:
            ``"index.json"``, ``"pictures/rows-*.jsonl"``.
        what: Name of such a folder in messages, with its article, such as ``"an index"``.
        header: Name of the file that makes the folder readable. Where the folder is filled, it goes first and comes
            last.
        seal: Write the SHA-256 of every file into :data:`~rungwise.core.disk.SEAL`; False for a folder whose
            files will change.

    Raises:
        UserError: If a file or a folder with other files stands there, another process is writing it, the disk is full,
            or the place may not be written. What stood there before is then untouched.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "index"
    >>> with replacing_folder(target, {"index.json"}, "an index") as draft:
    ...     _ = (draft / "index.json").write_text("{}")
    >>> sorted(file.name for file in target.iterdir())
    ['SHA256SUMS', 'index.json']
    """
    with explained(folder), ExitStack() as held:
        with possible(folder):
            target = folder.resolve()
            sweep(target)
            refuse_strangers(folder, parts, what)
            try:
                make_folder(target.parent)
            except (FileExistsError, NotADirectoryError) as error:
                raise UserError(f"{folder}: a file stands where a folder is needed; name another folder") from error
            draft = held.enter_context(drafted(target, inside=is_filled(target)))
            if others_write(target, draft):
                raise UserError(
                    f"{folder}: another process writes {what} here now; wait until it has ended, or name another folder"
                )
            refuse_strangers(folder, parts, what)  # sweeping may have put back what a killed run had moved aside
            draft.mkdir()
        yield draft
        if seal:
            write_seal(draft)
        _sync_all(draft)
        refuse_strangers(folder, parts, what)  # what somebody put there meanwhile
        _swap(draft, target, header)
        sync_folder(target.parent)


def require_writable_folder(folder: Path) -> None:
    """Refuse a folder that could not be written, before the work that it is for begins.

    It is really tried: a draft is made in the folder and beside it, or where it would be made, and removed. What the
    folder holds is not looked at; see :func:`refuse_strangers`.
    """
    with possible(folder):
        target = folder.resolve()
        sweep(target)  # what a killed run had moved aside comes back
        if os.path.lexists(target) and not target.is_dir():
            raise UserError(f"{folder}: a file stands where a folder is needed; name another place")
        if not target.exists() and _ODD.search(target.name):
            raise UserError(
                f"{folder}: its name holds a control character or is no UTF-8, which libraries that read models and"
                " indexes do not take; choose another"
            )
        if target.is_dir():
            try_place(target)
        if not is_filled(target):
            try_place(target.parent, target.name)


def require_writable(place: Path, written: str) -> None:
    """:func:`require_writable_folder`, or for ``"file"`` :func:`~rungwise.core.disk.require_writable_file`.

    ``written`` is a value of :data:`WRITTEN_FILE` or :data:`WRITTEN_FOLDER`.
    """
    (require_writable_folder if written == "folder" else require_writable_file)(place)


def refuse_strangers(folder: Path, parts: Collection[str], what: str) -> None:
    """Refuse a file, or a folder that holds anything else than ``parts``, as :func:`replacing_folder` takes them."""
    with explained(folder):
        if not folder.exists():  # nor what a link leads to
            return
        if not folder.is_dir():
            raise UserError(f"{folder}: a file stands here; name a folder for {what}")
        known = {*parts, SEAL}
        stranger = next((name for name in names_below(folder) if not any(_fits(name, part) for part in known)), None)
        stranger = stranger or next(_empty_folders(folder, known), None)
        if stranger is not None:
            raise UserError(f"{folder}: holds {stranger!r}, which is no part of {what}; name a new or empty folder")


def entries(folder: Path) -> list[str]:
    """Names in a folder without locks, drafts, and what file managers and file systems leave.

    Raises:
        UserError: If a file stands there, or the folder cannot be read.
    """
    if not folder.exists():
        return []
    with explained(folder):
        passed = {*DROPPINGS, *LOCKS, *((LOST_AND_FOUND,) if is_mount_point(folder) else ())}
        return sorted(one.name for one in folder.iterdir() if one.name not in passed and not is_draft(one.name))


def _fits(name: str, part: str) -> bool:
    names, patterns = name.split("/"), part.split("/")
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))


def _empty_folders(folder: Path, parts: Collection[str]) -> Iterator[str]:
    """Empty subfolders that no part lies in: somebody made them for something."""
    ours = {part.split("/")[0] for part in parts if "/" in part}
    for one in sorted(folder.iterdir()):
        if one.is_symlink() or not one.is_dir() or any(fnmatchcase(one.name, part) for part in ours):
            continue
        if is_draft(one.name) or (one.name == LOST_AND_FOUND and is_mount_point(folder)):
            continue
        if not any(one.iterdir()):
            yield one.name


def _sync_all(folder: Path) -> None:
    """Sync every file and every folder. Files of ours get the mode that a new file of the user gets."""
    probe = folder.with_name(".mode")
    handle = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    os.close(handle)
    probe.unlink()
    for place, _, files in os.walk(folder, topdown=False):
        for name in files:
            sync_file(Path(place) / name, mode)
        sync_folder(Path(place))


def _swap(draft: Path, target: Path, header: str) -> None:
    if not target.exists():
        draft.rename(target)
    elif draft.parent.parent == target:
        fill(draft, target, entries(target), header)
    else:
        try:
            _replace(draft, target)
        except OSError as error:  # a folder below which some file systems lay another, as containers have it
            if error.errno not in (errno.EXDEV, errno.EBUSY):
                raise
            fill(draft, target, entries(target), header)


def _replace(draft: Path, target: Path) -> None:
    if _exchange(draft, target):
        return
    aside = draft.parent / OLD
    aside.mkdir()
    old = aside / target.name
    target.rename(old)
    try:
        draft.rename(target)
    except BaseException:
        old.rename(target)
        raise


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two paths in one step; False where the system or the file system cannot."""
    if sys.platform != "linux":
        return False
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # a C library without it
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM):
        return False
    raise OSError(code, os.strerror(code), str(other))
