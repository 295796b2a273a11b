"""Writing files so that an interruption, a power cut or a full disk never leaves half of one behind."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rungwise.core.drafts import drafted
from rungwise.core.errors import UserError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NEVER_THROUGH_LINKS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
_NO_FOLDER = (errno.EISDIR, errno.EEXIST, errno.ENOTDIR, errno.ELOOP)


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
    with explained(path):
        _refuse_other_than_file(path)
        make_folder(path.parent)
        with drafted(path) as draft:
            handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            os.close(handle)
            yield draft
            sync_file(draft, mode)
            draft.replace(path)
            sync_folder(path.parent)


@contextmanager
def creating(path: Path) -> Iterator[Path]:
    """As :func:`replacing`, for a file that must not be there yet: whatever has appeared in its place is left alone.

    Raises:
        FileExistsError: If something stands at ``path``, before the block or at its end.
        UserError: As :func:`replacing`.

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
    with explained(path.parent):
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

    >>> import tempfile
    >>> log = Path(tempfile.mkdtemp()) / "log"
    >>> for line in (b"one ", b"two"):
    ...     with appending(log) as file:
    ...         _ = file.write(line)
    >>> log.read_bytes()
    b'one two'
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


def sync_file(path: Path, mode: int | None = None) -> None:
    """Bring a file's bytes to the disk, and give it a mode if one is named.

    Raises:
        OSError: If the disk is full or fails.
    """
    with path.open("rb+") as file:
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Bring a folder's entries to the disk: names of files that were made, replaced or removed.

    Raises:
        OSError: If the disk fails.

    >>> import tempfile
    >>> sync_folder(Path(tempfile.mkdtemp()))
    """
    if os.name != "posix":
        return  # elsewhere folders cannot be synced
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that know no such thing
            raise
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make a folder with its parents, so that all of them survive a power cut; nothing if it is there.

    Raises:
        OSError: If it cannot be made.

    >>> import tempfile
    >>> deep = Path(tempfile.mkdtemp()) / "a" / "b"
    >>> make_folder(deep)
    >>> deep.is_dir()
    True
    """
    missing = []
    at = folder
    while not at.exists() and at != at.parent:
        missing.append(at)
        at = at.parent
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        sync_folder(one.parent)
    if not missing and not folder.is_dir():
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(folder))


def _refuse_other_than_file(path: Path) -> None:
    """Refuse to put a file in the place of a folder or a device, such as the terminal's."""
    if path.is_dir():
        raise UserError(f"{path}: a folder stands here; name a file")
    if path.exists() and not path.is_file():
        raise UserError(f"{path}: a device or a pipe stands here, which no file may replace; name a file")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the operating system's refusal to write ``path`` into one line with a remedy.

    Raises:
        UserError: If the disk is full, a quota or a limit is reached, permission is missing, the name is too long, or a
            folder stands where a file should or the other way round; other errors pass.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise UserError(
                f"{path}: the disk is full; free some space or choose another place, then run again"
            ) from error
        if error.errno == errno.EFBIG:
            raise UserError(
                f"{path}: the file would be larger than this place takes; choose another place or raise the limit of"
                " the system"
            ) from error
        if error.errno in _FORBIDDEN:
            raise UserError(f"{path}: may not be written; choose another place or change its permissions") from error
        if error.errno in _NO_FOLDER:
            raise UserError(
                f"{path}: a file stands where a folder is needed, or a folder for a file; choose another place"
            ) from error
        if error.errno == errno.ENAMETOOLONG:
            raise UserError(f"{_shortened(path)}: the name is too long; choose a shorter one") from error
        if error.errno == errno.EIO:
            raise UserError(f"{path}: the disk fails (input/output error); choose another place") from error
        raise


def _shortened(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 80 else f"{text[:77]}..."
