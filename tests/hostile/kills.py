"""SIGKILL before every call by which a writer changes the disk, and in the middle of every write."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

from tests.hostile.choice import Choice
from tests.hostile.counting import Case
from tests.hostile.interrupted import Prepared, aftermath, all_prepared, attacked
from tests.hostile.shim import Mode

FAMILY = "kills"

WORDS = {"o": "open", "w": "write", "t": "truncate", "s": "sync", "r": "rename", "u": "unlink", "d": "mkdir",
         "l": "link"}  # fmt: skip


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """Every writer, killed at every call or at a share of them; see :func:`tests.hostile.interrupted.aftermath`.

    No moment between two calls is another case: what stands there is what the next call finds. Calls that pass by the
    shim are those that :mod:`tests.hostile.traced` counts; a power cut after the call before them is one of
    :mod:`tests.hostile.power`.
    """
    for one in all_prepared(world, scratch, choice.only):
        yield from _killed(one, choice)


def _killed(one: Prepared, choice: Choice) -> Iterator[Case]:
    some = 1 / 4 if one.writer.costly and choice.share < 1 else 1
    for at, call in enumerate(one.calls, start=1):
        for mode in (Mode.KILL, Mode.HALF) if call.kind == "w" else (Mode.KILL,):
            name = Path(call.path).name
            attack = f"call {at}, {'half of ' if mode == Mode.HALF else ''}{WORDS[call.kind]} {name}"
            if not choice.takes(f"{one.writer.name}: {at} {mode}", some):
                continue
            outcome = attacked(one, mode, at)
            if outcome.ending != "died" or outcome.value != -signal.SIGKILL:
                # Threads may ask for fewer calls in another order; then the writer simply came to its end.
                attack += f" ({outcome.ending})"
            yield aftermath(one, FAMILY, attack)
