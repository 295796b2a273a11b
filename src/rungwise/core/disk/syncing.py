"""Bringing files, and the names in a folder, to the disk, so that they survive a power cut."""

from __future__ import annotations

import errno
import os
from pathlib import Path


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
