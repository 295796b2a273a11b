"""Writing files so that an interruption, a power cut or a full disk never leaves half of one behind."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from rungwise.core._errors import UserError
from rungwise.core.disk._mount_points import is_mount_point
from rungwise.core.disk._syncing import sync_file, sync_folder
from rungwise.core.disk.staging import drafted

_NEVER_THROUGH_LINKS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_REASONS: tuple[tuple[tuple[int, ...], str], ...] = (
    ((errno.ENOSPC, errno.EDQUOT), "the disk is full; free some space or choose another place, then run again"),
    (
        (errno.EFBIG,),
        "the file would be larger than this place takes; choose another place or raise the limit of the system",
    ),
    ((errno.EACCES, errno.EPERM, errno.EROFS), "may not be written; choose another place or change its permissions"),
    (
        (errno.EISDIR, errno.EEXIST, errno.ENOTDIR, errno.ELOOP),
        "a file stands where a folder is needed, or a folder for a file; choose another place",
    ),
    ((errno.ENAMETOOLONG,), "the name is too long; choose a shorter one"),
    ((errno.EIO,), "the disk fails (input/output error); choose another place"),
    ((errno.EBUSY, errno.EXDEV), "is mounted, or holds what is, and cannot be replaced; choose another place"),
    ((errno.EMFILE, errno.ENFILE), "too many files are open; raise the limit with ulimit -n, then run again"),
)
"""Error numbers of the operating system, with their meaning and remedy."""

_TRIAL = "trial"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a draft to write to; it takes the place of ``path`` only when the block ends well.

    The file and its folder are synced: what stands there afterwards survives a power cut, and until then the old file
    does. The draft is a new file that nobody else can reach, with the mode that the user's umask says.

    Raises:
        UserError: If the disk is full, the folder cannot be written or made, or something other than a file stands at
            ``path``.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> with replacing(target) as draft:
    ...     _ = draft.write_text("1 2 3")
    >>> target.read_text()
    '1 2 3'
    """
    with explained(path), ExitStack() as held:
        with possible(path):
            _refuse_other_than_file(path)
            make_folder(path.parent)
            draft = held.enter_context(drafted(path))
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            os.close(handle)
        yield draft
        sync_file(draft, mode)
        draft.replace(path)
        sync_folder(path.parent)


@contextmanager
def creating(path: Path) -> Iterator[Path]:
    """As :func:`replacing`, for a file that must not be there yet: whatever appears in its place is left alone.

    Raises:
        FileExistsError: If something stands at ``path``, before the block or at its end.
        UserError: For the reasons of :func:`replacing`.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> for _ in range(2):
    ...     with creating(target) as draft:
    ...         _ = draft.write_text("1 2 3")
    Traceback (most recent call last):
    FileExistsError: [Errno 17] File exists: '...numbers.txt'
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    with possible(path.parent):
        make_folder(path.parent)
    taken = False
    with explained(path), drafted(path) as draft:
        draft.touch(0o666, exist_ok=False)
        yield draft
        sync_file(draft)
        try:
            os.link(draft, path)  # unlike a move, it replaces nothing
        except FileExistsError:
            taken = True
        except OSError:  # a file system without hard links
            taken = os.path.lexists(path)
            if not taken:
                draft.rename(path)
        sync_folder(path.parent)
    if taken:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


@contextmanager
def appending(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to append to, made if missing; what was written survives a power cut when the block ends well.

    A link in its place is not followed: the file at its other end may be anybody's.

    Raises:
        UserError: If a link, a pipe or a device stands there.
        OSError: If the disk is full or the place may not be written.
    """
    if path.is_symlink():
        raise UserError(f"{path}: a link stands here; name the file itself")
    if os.path.lexists(path) and not path.is_file():
        raise UserError(f"{path}: is no file; name one, or another place")
    made = not path.exists()
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | _NEVER_THROUGH_LINKS
    with os.fdopen(os.open(path, flags, 0o666), "ab") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UserError(f"{path}: is no file; name one, or another place")
        yield file
        file.flush()
        os.fsync(file.fileno())
    if made:
        sync_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make a folder with its parents, so that all of them survive a power cut; nothing is done if it is there."""
    missing = []
    at = folder if folder.exists() else _end_of_links(folder)  # which may lead to a folder that is not there yet
    while not at.exists() and at != at.parent:
        missing.append(at)
        at = at.parent
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        sync_folder(one.parent)
    if not missing and not folder.is_dir():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))


def _end_of_links(path: Path) -> Path:
    try:
        return path.resolve()
    except RuntimeError as error:  # they go round
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error


def require_writable_file(path: Path) -> None:
    """Refuse a file that could not be written, before the work that it is for begins.

    It is really tried: a draft is made where that of the file would be, and removed. Nothing else changes.
    """
    with possible(path):
        _refuse_other_than_file(path)
        if path.exists() and is_mount_point(path):
            raise UserError(f"{path}: a file is mounted here, which no other can replace; name another one")
        if _is_kept_by_another(path):
            raise UserError(f"{path}: another user's file, which its folder keeps for them; name another one")
        try_place(path.parent, path.name)


def try_place(folder: Path, *names: str) -> None:
    """Make a draft in a folder, or in the nearest existing one above it, and remove it.

    Args:
        folder: Folder where something is to be written; it may be missing, and is so afterwards.
        *names: Path of what is to be written, from the folder on.

    Raises:
        OSError: If that is impossible.
    """
    missing, folder = list(names), folder.resolve()
    while not os.path.lexists(folder) and folder != folder.parent:
        missing.insert(0, folder.name)
        folder = folder.parent
    with drafted(folder / _TRIAL) as draft:
        draft.mkdir()
        for name in missing:
            draft /= name
            draft.mkdir()


@contextmanager
def possible(path: Path) -> Iterator[None]:
    """Turn any error of the operating system into one line, while a place is only tried.

    Unlike :func:`explained`, it also covers errors that elsewhere may be mistakes of the program, such as a missing
    folder.
    """
    with explained(path):
        try:
            yield
        except OSError as error:
            if any(error.errno in numbers for numbers, _ in _REASONS):
                raise
            raise _impossible(path, error.strerror or str(error)) from error
        except (ValueError, RuntimeError) as error:  # a name that no system takes; links that go round
            raise _impossible(path, str(error).partition(":")[0]) from error


def _impossible(path: Path, why: str) -> UserError:
    return UserError(f"{_shortened(path)}: cannot be written here ({why}); choose another place")


def _refuse_other_than_file(path: Path) -> None:
    """Refuse to put a file in the place of a folder or a device, such as the terminal's."""
    if path.is_dir():
        raise UserError(f"{path}: a folder stands here; name a file")
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: a device or a pipe stands here, which no file may replace; name a file")


def _is_kept_by_another(path: Path) -> bool:
    """Whether a file is another user's in a folder such as /tmp, where everybody may write and remove their own."""
    if not hasattr(os, "geteuid") or not os.path.lexists(path):
        return False
    folder, user = path.parent.stat(), os.geteuid()
    return bool(folder.st_mode & stat.S_ISVTX) and user not in (0, folder.st_uid, path.lstat().st_uid)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the operating system's refusal to write ``path`` into one line with a remedy.

    Raises:
        UserError: If the disk is full, a quota or a limit is reached, permission is missing, the name is too long, too
            many files are open, or a folder stands where a file should or the other way round; other errors pass.
    """
    try:
        yield
    except OSError as error:
        for numbers, reason in _REASONS:
            if error.errno in numbers:
                raise UserError(f"{_shortened(path)}: {reason}") from error
        raise


def _shortened(path: Path) -> str:
    """A path as text, cut off where a name in it is too long to be read."""
    text = str(path)
    return f"{text[:77]}..." if any(len(part) > 80 for part in path.parts) else text
