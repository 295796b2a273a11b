"""Too little memory, or too few threads, for every command: one line that says so, and nothing half done.

Each case is a real process whose addresses, data or threads the system limits. What a command takes in all is measured
first; the limits lie between what the interpreter takes by itself and that.
"""

from __future__ import annotations

import ctypes
import os
import re
import resource
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rungwise.core.compute import says_ran_out
from tests.hostile.choice import Choice
from tests.hostile.commands import Command, as_process, commands
from tests.hostile.counting import Case, Verdict
from tests.hostile.forked import end_with_the_parent

FAMILY = "memory"

STEPS = 24
"""Limits of each kind, from what the interpreter takes to what the command takes, and closer to each other there."""
THREADS = (2, 3, 4, 6, 8, 12)
"""That a command may have in all. With one, an allocator prints a line, and no watcher is there to hold it back."""

_ONCE = ("inspect", "train", "train --resume", "evaluate a model", "evaluate embeddings", "evaluate, degrees",
         "compare", "table", "relevance", "relevance agree", "train-cross-encoder", "index", "index --overwrite",
         "search", "search --image", "serve", "import", "index, published", "index, exported")  # fmt: skip
"""Of the commands that hostile files are played with, each in the first of its ways."""
_MEASURE = """
import atexit, os, runpy
from pathlib import Path

def say():
    lines = Path("/proc/self/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines)
    Path(os.environ["MEASURED"]).write_text(" ".join(found[name].split()[0] for name in ("VmPeak", "VmData")))

atexit.register(say)
import rungwise.cli
if os.environ["RUN"]:
    runpy.run_module("rungwise", run_name="__main__", alter_sys=True)
"""
_KITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TOKENIZERS_PARALLELISM", "ARROW_DEFAULT_MEMORY_POOL")
"""What the kit sets for its own forks, and a user does not."""
_LINE = re.compile(r"rungwise [\w-]+: out of memory\b")
_DROP_RIGHT, _SYS_ADMIN, _SYS_RESOURCE = 24, 21, 24
"""Of prctl and of capabilities."""
_MOST_PROCESSOR = 200
"""Seconds of processor, many times what any of the commands takes; what spins ends by a signal then."""
_NOTHING = Command("nothing", (), (), ())


Need = Mapping[int, int]
"""Bytes of addresses and of data."""
_KINDS = {resource.RLIMIT_AS: "addresses", resource.RLIMIT_DATA: "data"}


class Limit(NamedTuple):
    """What the system lets a process have.

    Attributes:
        kind: As the system knows it.
        step: Of :data:`STEPS` from the least that is tried to what the command takes; or how many threads.
    """

    kind: int
    step: int

    def __str__(self) -> str:
        if self.kind == resource.RLIMIT_NPROC:
            return f"{self.step} threads"
        return f"{_KINDS[self.kind]}, step {self.step}"

    def set(self, least: Need, most: Need) -> None:
        """In the new process, before anything else."""
        end_with_the_parent()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (_MOST_PROCESSOR, _MOST_PROCESSOR))
        size = self.step
        if self.kind != resource.RLIMIT_NPROC:
            low, high = least[self.kind], most[self.kind]
            left = 1 - self.step / STEPS
            size = low + int((high - low) * (1 - left * left))
        resource.setrlimit(self.kind, (size, size))
        if self.kind == resource.RLIMIT_NPROC:
            # Threads of a real user are counted together, but for root's: one that nobody else is, with root's rights
            # but for those to have more.
            for right in (_SYS_ADMIN, _SYS_RESOURCE):
                ctypes.CDLL(None).prctl(_DROP_RIGHT, right, 0, 0, 0)
            os.setreuid(100_000 + os.getpid(), 0)
            end_with_the_parent()


def limited_commands() -> list[Command]:
    """Every command that loads more than the command line itself, once."""
    known = {one.name: one for one in reversed(commands())}
    data, model = "{}/csv", "{}/run/model"
    return [known[name] for name in _ONCE] + [
        Command("presets", ("presets",), (), ()),
        Command("plan", ("plan", "1M"), (), ()),
        Command("doctor", ("doctor", data), ("csv",), ()),
        Command("export", ("export", model, "--out", "{}/new"), ("run",), ()),
        Command(
            "calibrate",
            ("calibrate", model, "{}/scenes/scenes", "--split", "all", "--out", "{}/new.json"),
            ("run", "scenes"),
            (),
        ),
        Command("check", ("check", "{}/index/index"), ("index",), ()),
        Command("verify", ("verify", "{}/index/index", "--model", model), ("index", "run"), ()),
        Command("lance", ("index", data, "--model", model, "--out", "{}/new", "--store", "lance"), ("run", "csv"), ()),
        Command("demo", ("demo", "--check", "--small"), (), ()),
    ]


# A limit of data (ulimit -d) is left out: OpenBLAS, below numpy, asks for ever for a buffer that it does not get.
LIMITS = [
    *(Limit(resource.RLIMIT_AS, step) for step in range(STEPS)),
    *(Limit(resource.RLIMIT_NPROC, threads) for threads in THREADS),
]


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case | str]:
    """Every command under falling limits."""
    least = _measured(_NOTHING, world, scratch)
    few = not os.geteuid()
    for command in limited_commands():
        # A user with two numbers, as here where threads are limited, may not read a temporary folder of its own.
        limits = [one for one in LIMITS if command.name != "demo" or one.kind != resource.RLIMIT_NPROC]
        taken = [one for one in limits if choice.takes(f"{command.name}: {one}")]
        if not taken:
            continue
        most = _measured(command, world, scratch)
        for limit in taken:
            if few or limit.kind != resource.RLIMIT_NPROC:
                yield _played(command, limit, least, most, world, scratch)
    if not few:
        yield "memory: few threads, which are counted over all processes of this user"


def _measured(command: Command, world: Path, scratch: Path) -> Need:
    """What a command takes that nothing limits."""
    place = _set_up(command, world, scratch)
    settings = {"MEASURED": str(place / "measured"), "RUN": " ".join(command.arguments[:1])}
    code, out, error = as_process(
        _arguments(command, place), place, program=("-c", _MEASURE), settings=settings, without=_KITS
    )
    assert code in (0, 1, 130), f"{command.name} fails without a limit: {out[-500:]} {error[-1000:]}"
    peak, data = (1024 * int(one) for one in (place / "measured").read_text().split())
    _remove(place)
    return {resource.RLIMIT_AS: peak, resource.RLIMIT_DATA: data}


def _set_up(command: Command, world: Path, scratch: Path) -> Path:
    place = scratch / "place"
    _remove(place)
    place.mkdir()
    for folder in command.folders:
        shutil.copytree(world / folder, place / folder, symlinks=True, copy_function=shutil.copyfile)
    for path in (place, *place.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    return place


def _arguments(command: Command, place: Path) -> list[str]:
    return [one.replace("{}", str(place)) for one in command.arguments]


def _played(command: Command, limit: Limit, least: Need, most: Need, world: Path, scratch: Path) -> Case:
    place = _set_up(command, world, scratch)
    before = _content(place)
    settings = {"USER": "somebody", "HOME": str(place), "RUNGWISE_CACHE": str(place / "cache"), "TMPDIR": str(place)}
    ending = as_process(
        _arguments(command, place), place, limit=partial(limit.set, least, most), settings=settings, without=_KITS
    )
    verdict, detail = _judged(*ending)
    code = ending[0]
    if verdict != "traceback" and any(".partial" in name for name in _content(place)):
        # A library that ends the process cleans nothing up; the next run does, whatever becomes of it.
        code, _, _ = as_process(_arguments(command, place), place, settings=settings, without=_KITS)
    if verdict != "traceback" and (lost := _left(command, place, before, done=code == 0)):
        verdict, detail = "lost", lost
    _remove(place)
    return Case(FAMILY, command.name, str(limit), verdict, detail)


def _judged(code: int, out: str, error: str) -> tuple[Verdict, str]:
    lines = error.strip().splitlines()
    if code in (0, 1, 130) and "Traceback" not in error and not says_ran_out(error):
        return "accepted", f"exit {code}"
    if code == 2 and len(lines) == 1 and _LINE.match(lines[0]):
        return "clean", lines[0]
    return "traceback", f"exit {code}: {out[-200:]!r} {error[:600]!r}{error[-300:]!r}"


def _left(command: Command, place: Path, before: Mapping[str, bytes], *, done: bool) -> str:
    """What was lost, or stands there half done; empty where nothing is."""
    after = _content(place)
    if drafts := [name for name in after if ".partial" in name]:
        return f"a draft is left: {drafts[0]}"
    goes_on = command.arguments[0] in ("train", "index")  # with the same command, from what is whole
    if not done and not goes_on and any(name.startswith(("new/", "new.json")) for name in after):
        return f"half of the new folder: {sorted(name for name in after if name.startswith('new'))}"
    if gone := [name for name in before if name not in after and not done]:
        return f"gone: {gone[0]}"
    return ""


def _content(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def _remove(place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
