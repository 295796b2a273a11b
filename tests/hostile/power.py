"""A power cut after every call by which a writer changes the disk, with every known way to forget."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.hostile import disk
from tests.hostile.choice import Choice
from tests.hostile.counting import Case
from tests.hostile.disk import CUTS, Cut
from tests.hostile.interrupted import Prepared, aftermath, all_prepared
from tests.hostile.kills import WORDS

FAMILY = "power"


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """Every writer; after its last call the new state must stand, since the writer has returned by then."""
    for one in all_prepared(world, scratch, choice.only):
        yield from _cut(one, choice)


def _cut(one: Prepared, choice: Choice) -> Iterator[Case]:
    some = 1 / 4 if one.writer.costly else 1
    for done in range(1, len(one.calls) + 1):
        calls, ended = one.calls[:done], done == len(one.calls)
        last = calls[-1]
        for cut in (*CUTS, *_drawn(Random(f"{choice.seed} {one.writer.name} {done}"))):
            # After the writer has returned, the harshest cut is always played.
            always = ended and cut is CUTS[0] and choice.part.of == 1
            if not always and not choice.takes(f"{one.writer.name}: {done} {cut.name}", some):
                continue
            drawn = Random(f"{choice.seed} {one.writer.name} {done} {cut.name}")
            journal = drawn.choice(list(disk.journals(calls))) if cut not in CUTS else None
            shutil.rmtree(one.place, ignore_errors=True)
            disk.put(disk.after(one.before, one.inodes, one.place, calls, journal), cut, one.place)
            attack = f"after call {done} ({WORDS[last.kind]} {Path(last.path).name}), {cut.name}"
            yield aftermath(one, FAMILY, attack, done=ended)


def _drawn(draw: Random) -> Iterator[Cut]:
    for number in (1, 2):
        left = disk.some_writes(Random(draw.random()))
        yield Cut(f"an earlier journal and some data, {number}", lambda folder: folder.now, left)
