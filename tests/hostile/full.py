"""A disk that is full or fails, and a memory that is: at every call, and at falling sizes."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.hostile.choice import Choice
from tests.hostile.counting import Case
from tests.hostile.files import _last
from tests.hostile.forked import Outcome, outcome_of
from tests.hostile.interrupted import Prepared, aftermath, all_prepared, attacked, fresh
from tests.hostile.kills import WORDS
from tests.hostile.shim import Mode

DISK, MEMORY = "full", "memory"

_PAGE = 4096
_REMOUNT = 32
_LEVELS = (0, 1 << 18, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 26)


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """Every writer, at every call or a share of them."""
    mounts = can_mount()
    for one in all_prepared(world, scratch, choice.only):
        yield from _refused(one, choice)
        if mounts:
            yield from _small_disks(one, choice)
        yield from _short_of_memory(one, choice)


def _takes(one: Prepared, choice: Choice, attack: str) -> bool:
    return choice.takes(f"{one.writer.name}: {attack}", 1 / 4 if one.writer.costly else 1)


def _refused(one: Prepared, choice: Choice) -> Iterator[Case]:
    for at, call in enumerate(one.calls, start=1):
        name = f"call {at}, {WORDS[call.kind]} {Path(call.path).name}"
        ways = []
        if call.kind in "owtsdl":
            ways.append((Mode.FAIL, errno.ENOSPC, "the disk is full from"))
        if call.kind in "wt":
            ways.append((Mode.FAIL_ONCE, errno.EDQUOT, "the quota is reached at"))
        if call.kind in "sr":
            ways.append((Mode.FAIL_ONCE, errno.EIO, "the disk fails at"))
        for mode, error, what in ways:
            if _takes(one, choice, f"{what} {at}"):
                yield _ended(one, DISK, f"{what} {name}", attacked(one, mode, at, error))


def _ended(one: Prepared, family: str, attack: str, outcome: Outcome) -> Case:
    """Judge how the writer took it, then what stands there."""
    # A compiler among the libraries ends the process itself when memory is out, with a line that says so.
    aborted = family == MEMORY and outcome.ending == "died" and outcome.value == -signal.SIGABRT
    no_thread = outcome.value == "RuntimeError" and "can't start new thread" in outcome.text
    out_of_memory = aborted or (outcome.ending == "raised" and (outcome.value == "MemoryError" or no_thread))
    if outcome.ending in ("raised", "died") and not out_of_memory:
        detail = (
            "\n    ".join(_last(outcome.text))
            if outcome.ending == "raised"
            else f"died: {outcome.value}: {outcome.text}"
        )
        return Case(family, one.writer.name, attack, "traceback", detail)
    # The command line makes one line of a MemoryError, and of a thread that finds no memory for its stack.
    refusal = "out of memory" if out_of_memory else outcome.text
    return aftermath(one, family, attack, done=outcome.ending == "returned", refusal=refusal)


def _small_disks(one: Prepared, choice: Choice) -> Iterator[Case]:
    """A real small disk, from no room at all to almost enough."""
    needed = sum(len(call.data) + _PAGE for call in one.calls if call.kind in "owd")
    room = 0
    while room < needed:
        attack = f"a disk with {room} bytes left"
        if _takes(one, choice, attack):
            with _mounted(one, room) as outcome:
                yield _ended(one, DISK, attack, outcome)
        room = max(_PAGE, room * 2)


@contextmanager
def _mounted(one: Prepared, room: int) -> Iterator[Outcome]:
    """How the writer ends on a small disk; afterwards there is room again."""
    shutil.rmtree(one.place, ignore_errors=True)
    one.place.mkdir()
    _mount(one.place, 1 << 28)
    try:
        shutil.copytree(one.before, one.place, symlinks=True, dirs_exist_ok=True)
        state = os.statvfs(one.place)
        _mount(one.place, (state.f_blocks - state.f_bfree) * state.f_frsize + room, _REMOUNT)
        outcome = outcome_of(partial(_written, one))
        _mount(one.place, 1 << 28, _REMOUNT)
        yield outcome
    finally:
        ctypes.CDLL(None).umount2(os.fsencode(one.place), 2)


def _written(one: Prepared) -> None:
    one.writer.write(one.place)


def _mount(place: Path, size: int, flags: int = 0) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"rungwise", os.fsencode(place), b"tmpfs", flags, f"size={max(size, _PAGE)}".encode()):
        raise OSError(ctypes.get_errno(), "cannot mount")


def can_mount() -> bool:
    """Whether this process may mount a small disk."""
    if os.geteuid():
        return False
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"rungwise-mount-{os.getpid()}"
    folder.mkdir()
    try:
        _mount(folder, 1 << 20)
        ctypes.CDLL(None).umount2(os.fsencode(folder), 2)
    except OSError:
        return False
    finally:
        folder.rmdir()
    return True


def _short_of_memory(one: Prepared, choice: Choice) -> Iterator[Case]:
    for level in _LEVELS:
        attack = f"{level >> 10} KiB of memory left"
        if _takes(one, choice, attack):
            fresh(one.before, one.place)
            yield _ended(one, MEMORY, attack, outcome_of(partial(_written, one), memory=level))
