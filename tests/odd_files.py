"""What may lie where a file should: things that no reader may wait for or read."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

on_posix = pytest.mark.skipif(os.name != "posix", reason="pipes and devices are files on POSIX alone")

KINDS = ("pipe", "socket", "device", "endless", "dangling", "loop", "folder")


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


@contextmanager
def watched(seconds: int = 60) -> Iterator[None]:
    """End a test that waits, far beyond what any machine needs."""

    def complain(*_: object) -> None:
        raise TimeoutError(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGALRM, complain)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
