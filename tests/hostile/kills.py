"""SIGKILL before every call by which a writer changes the disk, and in the middle of every write."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.hostile.counting import Case
from tests.hostile.interrupted import Prepared, aftermath, attacked, prepared
from tests.hostile.shim import Mode
from tests.hostile.writers import writers

FAMILY = "kills"

WORDS = {"o": "open", "w": "write", "t": "truncate", "s": "sync", "r": "rename", "u": "unlink", "d": "mkdir",
         "l": "link"}  # fmt: skip


def run(world: Path, scratch: Path, seed: int, share: float = 1.0, only: str = "") -> Iterator[Case]:
    """Every writer, killed at every call or at a share of them; see :func:`tests.hostile.interrupted.aftermath`."""
    for number, writer in enumerate(writers(world)):
        if only and only not in writer.name:
            continue
        one = prepared(writer, scratch / f"kill-{number}")
        yield from _killed(one, Random(f"{seed} {writer.name}"), share / 4 if writer.costly and share < 1 else share)
        shutil.rmtree(scratch / f"kill-{number}")


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
