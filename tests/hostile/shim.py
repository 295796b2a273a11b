"""The shim of shim.c from Python: compiled, loaded by starting anew, armed in a child, and its log read."""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_name("shim.c")
_HEAD = struct.Struct("<7q")


class Mode(IntEnum):
    """What happens at the call with the chosen number."""

    WATCH = 0
    KILL = 1
    HALF = 2
    FAIL = 3
    FAIL_ONCE = 4


class Operation(NamedTuple):
    """One call that changed the folder.

    Attributes:
        kind: ``o`` opened to write (numbers: inode, made now, emptied), ``w`` written (inode, offset), ``t`` cut or
            lengthened (inode, size), ``s`` synced (inode, is a folder), ``r`` renamed (flags), ``u`` removed,
            ``d`` folder made (inode), ``l`` linked.
        numbers: Three, as the kind says.
        path: The file or folder.
        other: The new path of what was renamed or linked.
        data: What was written.
    """

    kind: str
    numbers: tuple[int, int, int]
    path: str
    other: str
    data: bytes


def missing() -> str | None:
    """Why there can be no shim here; None where there can."""
    if sys.platform != "linux":
        return "the shim needs Linux"
    return None if shutil.which("cc") else "the shim needs a C compiler"


def build(folder: Path) -> Path:
    """Compile it."""
    library = folder / "shim.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, SOURCE, "-pthread"], check=True)
    return library


def start_with(library: Path, arguments: Sequence[str]) -> None:
    """Become the same program anew, with the shim loaded."""
    os.environ["LD_PRELOAD"] = str(library)
    os.execv(sys.executable, [sys.executable, *arguments])


def is_loaded() -> bool:
    """Whether this process runs with the shim."""
    return hasattr(ctypes.CDLL(None), "shim_arm")


def arm(folder: Path, mode: Mode = Mode.WATCH, at: int = 0, error: int = 0, log: Path | None = None) -> None:
    """From here on calls below a folder count, in this process.

    Args:
        folder: Resolved.
        mode: What happens.
        at: At which call, from 1.
        error: With which number of errno, where calls fail.
        log: File outside of the folder that all calls are written to.
    """
    handle = -1 if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    ctypes.CDLL(None).shim_arm(os.fsencode(folder), int(mode), ctypes.c_long(at), error, handle)


def disarm() -> int:
    """Number of calls so far; no more count."""
    return int(ctypes.CDLL(None).shim_disarm())


def operations(log: Path) -> list[Operation]:
    """What the log holds."""
    return list(_parsed(log.read_bytes()))


def _parsed(data: bytes) -> Iterator[Operation]:
    at = 0
    while at < len(data):
        kind, a, b, c, *sizes = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        parts = []
        for size in sizes:
            parts.append(data[at : at + size])
            at += size
        yield Operation(chr(kind), (a, b, c), os.fsdecode(parts[0]), os.fsdecode(parts[1]), parts[2])
