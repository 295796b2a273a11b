"""A disk that forgets: the folder of a writer as it may stand after a power cut, from the log of what it did.

What was synced is there: bytes of a file after its sync, names in a folder after the folder's sync. About all else a
file system may choose, and the choices that are known from ext4, xfs and btrfs are played: nothing of it is there; the
names are, with zeros or nothing in the files; or the journal stands at an earlier moment, and some of the writes are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.hostile.shim import Operation

EXCHANGE = 2


@dataclass
class File:
    """Bytes now, and those that a power cut leaves for sure; None before the first sync."""

    now: bytearray = field(default_factory=bytearray)
    synced: bytes | None = None
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        self.now.extend(bytes(max(0, offset - len(self.now))))
        self.now[offset : offset + len(data)] = data
        self.pending.append((offset, data))

    def resize(self, size: int) -> None:
        del self.now[size:]
        self.now.extend(bytes(size - len(self.now)))
        self.pending.append((size, None))

    def sync(self) -> None:
        self.synced = bytes(self.now)
        self.pending.clear()


@dataclass
class Folder:
    """Names now, and those that were synced."""

    now: dict[str, File | Folder] = field(default_factory=dict)
    synced: dict[str, File | Folder] = field(default_factory=dict)


class Disk:
    """What a folder holds, before and while operations are played on it."""

    def __init__(self, before: Path, inodes: dict[str, int], place: Path) -> None:
        self.place = place
        self._of_inode: dict[int, File] = {}
        self.root = self._read(before, inodes, "")

    def _read(self, folder: Path, inodes: dict[str, int], inside: str) -> Folder:
        found = Folder()
        for path in sorted(folder.iterdir()):
            name = f"{inside}{path.name}"
            if path.is_dir():
                found.now[path.name] = self._read(path, inodes, f"{name}/")
            else:
                file = File(bytearray(path.read_bytes()))
                file.sync()
                found.now[path.name] = self._of_inode[inodes[name]] = file
        found.synced = dict(found.now)
        return found

    def play(self, call: Operation, names: bool = True) -> None:
        """One operation; without ``names``, those of folders stay as they are."""
        a, b, c = call.numbers
        if call.kind in "wts" and a in self._of_inode and names:
            self._move_unseen(self._of_inode[a], call.path)
        if call.kind in "odrlu" and not names:
            return
        if call.kind == "o":
            if b:
                self._of_inode[a] = self._folder_of(call.path).now[Path(call.path).name] = File()
            elif c and a in self._of_inode:
                self._of_inode[a].resize(0)
        elif call.kind == "w" and a in self._of_inode:
            self._of_inode[a].write(b, call.data)
        elif call.kind == "t" and a in self._of_inode:
            self._of_inode[a].resize(b)
        elif call.kind == "s" and b:
            folder = self._at(call.path)
            if isinstance(folder, Folder):
                folder.synced = dict(folder.now)
        elif call.kind == "s" and a in self._of_inode:
            self._of_inode[a].sync()
        elif call.kind == "d":
            self._folder_of(call.path).now[Path(call.path).name] = Folder()
        elif call.kind == "u":
            self._folder_of(call.path).now.pop(Path(call.path).name, None)
        elif call.kind in "rl":
            self._move(call, exchange=bool(a & EXCHANGE))

    def _move(self, call: Operation, exchange: bool) -> None:
        first, second = self._folder_of(call.path).now, self._folder_of(call.other).now
        old, new = Path(call.path).name, Path(call.other).name
        if exchange:
            first[old], second[new] = second[new], first[old]
        elif call.kind == "l":
            second[new] = first[old]
        else:
            second[new] = first.pop(old)

    def _move_unseen(self, file: File, path: str) -> None:
        """Some libraries rename without the C library, past the shim; the file's next call shows its new name."""
        folder, name = self._folder_of(path), Path(path).name
        if folder.now.get(name) is not file:
            for old in [old for old, one in folder.now.items() if one is file]:
                del folder.now[old]
                folder.now[name] = file

    def _at(self, path: str) -> File | Folder | None:
        found: File | Folder | None = self.root
        for part in Path(path).relative_to(self.place).parts:
            found = found.now.get(part) if isinstance(found, Folder) else None
        return found

    def _folder_of(self, path: str) -> Folder:
        found = self._at(str(Path(path).parent))
        # With the journal at an earlier moment, a folder may not be there yet: what is made in it is lost with it.
        return found if isinstance(found, Folder) else Folder()


class Cut(NamedTuple):
    """A way to forget.

    Attributes:
        name: Of it.
        names: The names in a folder that are left.
        data: The bytes of a file that are left.
    """

    name: str
    names: Callable[[Folder], dict[str, File | Folder]]
    data: Callable[[File], bytes]


def _zeros(file: File) -> bytes:
    kept = (file.synced or b"")[: len(file.now)]
    return kept + bytes(len(file.now) - len(kept))


CUTS: tuple[Cut, ...] = (
    Cut("nothing unsynced is left", lambda folder: folder.synced, lambda file: file.synced or b""),
    Cut("names are left, data are zeros", lambda folder: folder.now, _zeros),
    Cut("names are left, data are not", lambda folder: folder.now, lambda file: file.synced or b""),
)


def some_writes(draw: Random) -> Callable[[File], bytes]:
    """Each write since the last sync reached the disk or did not; what is missing below them is zeros."""

    def left(file: File) -> bytes:
        found = File(bytearray(file.synced or b""))
        for offset, data in file.pending:
            if draw.random() < 0.5:
                found.resize(offset) if data is None else found.write(offset, data)
        return bytes(found.now)

    return left


def put(disk: Disk, cut: Cut, place: Path) -> None:
    """Make the folder as it stands after the cut; ``place`` is empty."""

    def fill(folder: Folder, at: Path) -> None:
        at.mkdir(exist_ok=True)
        for name, one in cut.names(folder).items():
            if isinstance(one, Folder):
                fill(one, at / name)
            else:
                (at / name).write_bytes(cut.data(one))

    fill(disk.root, place)


def after(
    before: Path, inodes: dict[str, int], place: Path, calls: Sequence[Operation], journal: int | None = None
) -> Disk:
    """The disk after these calls, with names only as of the first ``journal`` of them."""
    disk = Disk(before, inodes, place)
    for number, call in enumerate(calls):
        disk.play(call, names=journal is None or number < journal)
    return disk


def journals(calls: Sequence[Operation]) -> Iterator[int]:
    """Where the journal may stand after these calls: not before the last sync, which brings all of it to the disk."""
    last = max((number for number, call in enumerate(calls) if call.kind == "s"), default=-1)
    yield from range(last + 1, len(calls) + 1)


def inodes_in(place: Path) -> dict[str, int]:
    """Inode of every file below a place, by its relative name."""
    return {path.relative_to(place).as_posix(): os.lstat(path).st_ino for path in place.rglob("*") if path.is_file()}
