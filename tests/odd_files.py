"""What may lie where a file should, and no reader may wait for or read; tests/core/test_untrusted_files.py tries
them.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

on_posix = pytest.mark.skipif(os.name != "posix", reason="pipes and devices are files on POSIX alone")


def put(path: Path, kind: str) -> None:
    """Put a pipe without a writer, a socket, a link to an endless device and so on at a place."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        here = Path.cwd()
        os.chdir(path.parent)  # the names of sockets must be short
        try:
            with socket.socket(socket.AF_UNIX) as one:
                one.bind(path.name)
        finally:
            os.chdir(here)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"device": "/dev/tty", "endless": "/dev/zero", "dangling": "nowhere", "loop": path.name}[kind])
