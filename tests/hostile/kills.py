"""SIGKILL before every call by which a writer changes the disk, and in the middle of every write."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.hostile.counting import Case
from tests.hostile.interrupted import Prepared, aftermath, all_prepared, attacked, killed_after
from tests.hostile.shim import Mode

FAMILY = "kills"

RANDOM_KILLS = 8

WORDS = {"o": "open", "w": "write", "t": "truncate", "s": "sync", "r": "rename", "u": "unlink", "d": "mkdir",
         "l": "link"}  # fmt: skip


def run(world: Path, scratch: Path, seed: int, share: float = 1.0, only: str = "") -> Iterator[Case]:
    """Every writer, killed at every call or at a share of them; see :func:`tests.hostile.interrupted.aftermath`."""
    for one in all_prepared(world, scratch, only):
        some = share / 4 if one.writer.costly and share < 1 else share
        draw = Random(f"{seed} {one.writer.name}")
        yield from _killed(one, draw, some)
        yield from _killed_at_random(one, draw, some)


def _killed(one: Prepared, draw: Random, share: float) -> Iterator[Case]:
    for at, call in enumerate(one.calls, start=1):
        for mode in (Mode.KILL, Mode.HALF) if call.kind == "w" else (Mode.KILL,):
            if draw.random() >= share:
                continue
            name = Path(call.path).name
            attack = f"call {at}, {'half of ' if mode == Mode.HALF else ''}{WORDS[call.kind]} {name}"
            outcome = attacked(one, mode, at)
            if outcome.ending != "died" or outcome.value != -signal.SIGKILL:
                # Threads may ask for fewer calls in another order; then the writer simply came to its end.
                attack += f" ({outcome.ending})"
            yield aftermath(one, FAMILY, attack)


def _killed_at_random(one: Prepared, draw: Random, share: float) -> Iterator[Case]:
    """At moments that no call marks, such as within a library that asks the system past the shim."""
    for _ in range(RANDOM_KILLS):
        moment = draw.random()
        if draw.random() < share:
            killed_after(one, moment * one.seconds)
            yield aftermath(one, FAMILY, f"after {moment:.0%} of its time")
