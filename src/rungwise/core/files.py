"""Writing files so that an interruption or a full disk never leaves half of one behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rungwise.core.errors import UserError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a sibling to write to; it takes the place of ``path`` only when the block ends well.

    Raises:
        UserError: If the disk is full, the folder cannot be written or made, or a folder stands at ``path``.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> with replacing(target) as draft:
    ...     _ = draft.write_text("1 2 3")
    >>> target.read_text()
    '1 2 3'
    """
    if path.is_dir():
        raise UserError(f"{path}: a folder stands here; name a file")
    draft = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield draft
            with draft.open("rb+") as written:
                os.fsync(written.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn the operating system's refusal to write ``path`` into one line with a remedy.

    Raises:
        UserError: If the disk is full, a quota is reached, permission is missing, or a folder stands where a file
            should or the other way round; other errors pass.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(
                f"{path}: the disk is full; free some space or choose another place, then run again"
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise UserError(f"{path}: may not be written; choose another place or change its permissions") from error
        if error.errno in (errno.EISDIR, errno.EEXIST, errno.ENOTDIR):
            raise UserError(
                f"{path}: a file stands where a folder is needed, or a folder for a file; choose another place"
            ) from error
        raise
