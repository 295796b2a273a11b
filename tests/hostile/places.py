"""What stands where a good file or folder should: pipes, devices, sockets, links, folders, endless files."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Place(NamedTuple):
    """One thing in place of a file or a folder.

    Attributes:
        name: Of the attack.
        put: Puts it where the good one stood, which is still there.
        harmless: The answer must be that of the good one, or a refusal.
        as_nobody: Only those without the privileges of root are stopped by it.
    """

    name: str
    put: Callable[[Path], None]
    harmless: bool = False
    as_nobody: bool = False


def _gone(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _link(target: str) -> Callable[[Path], None]:
    def put(path: Path) -> None:
        _gone(path)
        path.symlink_to(target)

    return put


def _fifo(path: Path) -> None:
    _gone(path)
    os.mkfifo(path)


def _socket(path: Path) -> None:
    _gone(path)
    here = Path.cwd()
    os.chdir(path.parent)  # the address of a socket has at most 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


def _loop(path: Path) -> None:
    _gone(path)
    path.symlink_to(path.name)


def _folder(path: Path) -> None:
    _gone(path)
    path.mkdir()


def _full_folder(path: Path) -> None:
    _folder(path)
    (path / "inside").write_text("something")


def _file(path: Path) -> None:
    _gone(path)
    path.write_text("a file")


def _moved(path: Path) -> None:
    away = path.with_name(f"{path.name}.moved")
    path.rename(away)
    path.symlink_to(away.name)


def _endless(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(300 << 20)  # more than the limits of what is read whole, and little enough to be mapped


def _unreadable(path: Path) -> None:
    path.chmod(0)


def _neighbours(path: Path) -> None:
    """Other things beside the good file, with names that break what is not careful."""
    for name in (b"\xff\xfe.png", b"a\x1b[31m\x07.png", b"a\nb.csv", b"-rf", b"x" * 255, "\u202egnp.exe".encode()):
        (path.parent / os.fsdecode(name)).write_bytes(b"?")
    os.mkfifo(path.parent / "pipe.png")
    os.mkfifo(path.parent / "pipe.json")
    os.mkfifo(path.parent / "captions-2.txt")
    (path.parent / "zero.jpg").symlink_to("/dev/zero")
    (path.parent / "zero.txt").symlink_to("/dev/zero")
    (path.parent / "nowhere.png").symlink_to("/nowhere")
    (path.parent / "nowhere.json").symlink_to("/nowhere")
    (path.parent / "round").symlink_to(".")


FILES: tuple[Place, ...] = (
    Place("nothing", _gone),
    Place("a pipe", _fifo),
    Place("a socket", _socket),
    Place("a folder", _folder),
    Place("a folder with a file", _full_folder),
    Place("a link to /dev/zero", _link("/dev/zero")),
    Place("a link to /dev/random", _link("/dev/random")),
    Place("a link to /dev/null", _link("/dev/null")),
    Place("a link to /dev/tty", _link("/dev/tty")),
    Place("a link to /proc/self/mem", _link("/proc/self/mem")),
    Place("a link to /proc/kmsg", _link("/proc/kmsg")),
    Place("a link to nowhere", _link("/nowhere/at/all")),
    Place("a link to itself", _loop),
    Place("a link to a name of 5,000 letters", _link("/".join(["x" * 200] * 20))),
    Place("300 MiB of nothing after the end", _endless),
    Place("a link to the good file", _moved, harmless=True),
    Place("pipes, devices and odd names beside it", _neighbours),
    Place("without permission to read", _unreadable, as_nobody=True),
)

FOLDERS: tuple[Place, ...] = (
    Place("nothing", _gone),
    Place("a file", _file),
    Place("a pipe", _fifo),
    Place("a socket", _socket),
    Place("an empty folder", _folder),
    Place("a link to /dev/zero", _link("/dev/zero")),
    Place("a link to nowhere", _link("/nowhere/at/all")),
    Place("a link to itself", _loop),
    Place("a link to the good folder", _moved, harmless=True),
    Place("without permission to read", _unreadable, as_nobody=True),
)
