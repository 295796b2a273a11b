"""Syncing of files, and of the names in a folder, so that they survive a power cut."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def sync_file(path: Path, mode: int | None = None) -> None:
    """Sync a file's bytes, and set its mode if one is given."""
    with path.open("rb+") as file:
        if mode is not None and hasattr(os, "fchmod"):
            os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries: names of files that were made, replaced or removed."""
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
