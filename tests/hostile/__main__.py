"""``python -m tests.hostile``: attack every reader, command and writer, and print what became of it.

The program starts itself anew with the shim of shim.c loaded, imports everything once, makes a world of good files, and
forks a child for every case. Exit code 1 says that something was lost, wrong, or ended in a traceback.

python -m tests.hostile kills power --share 0.1
python -m tests.hostile files --part 3/20 --cases cases.jsonl

A case that waits or loops without end is waited for; it is the one after the last line of --cases. To go on where a
long run was broken off, play the parts that are left.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.hostile import shim
from tests.hostile.choice import ALL, Choice, Part
from tests.hostile.counting import Case, Report, line
from tests.hostile.forked import outcome_of, without_privileges

READERS = (
    "files", "values", "commands", "texts", "pictures", "verify", "outs", "memory", "words", "http", "modules",
)  # fmt: skip
WRITERS = ("kills", "power", "full", "traced")
OTHERS = ("sent",)
FAMILIES = (*READERS, *WRITERS, *OTHERS)

LIMITS = {"TEXT_BYTES": "16M", "JSON_BYTES": "16M", "UNPACKED_BYTES": "64M", "PICTURE_BYTES": "16M",
          "PICTURE_PIXELS": "16M"}  # fmt: skip
"""Below what the attacks ask for, so that a reader without limits is found out."""


SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_OFFLINE": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # the others reserve more addresses than a case may have
    "COLUMNS": "200",
}
"""No threads in the parent, which would not survive a fork; and no network."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the families that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", help=f"of {', '.join(FAMILIES)}; all if none is named")
    parser.add_argument("--share", type=float, default=1.0, help="of the cases of each family, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cases whose subject or attack holds this text")
    parser.add_argument("--part", type=Part.parse, default=ALL, metavar="N/ALL", help="the N-th of so many parts")
    parser.add_argument("--processes", type=int, default=20, help="commands that run as real processes besides")
    parser.add_argument("--cases", type=Path, help="write each case here once it has ended, as a line of JSON")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.families) - set(FAMILIES):
        parser.error(f"no family {unknown.pop()!r}; there are {', '.join(FAMILIES)}")
    families = asked.families or list(FAMILIES)
    report = Report()
    with ExitStack() as held:
        lines = held.enter_context((asked.cases or Path(os.devnull)).open("w"))
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="rungwise-hostile-"))
        place = Path(folder).resolve()
        place.chmod(0o755)  # for cases that drop the privileges of root
        if lacking := _prepare(place, families):
            report.add(lacking)
            print(line(lacking), file=lines)
            families = [one for one in families if one not in WRITERS]
        world = _make_world(place)
        for family in families:
            for one in _played(family, world, place, asked):
                report.add(one)
                print(line(one), file=lines, flush=True)
    print(report.table())
    for family in families:
        if table := getattr(importlib.import_module(f"tests.hostile.{family}"), "table", None):
            print(table(report.cases))
    if report.bad():
        print(report.faults())
    return 1 if report.bad() else 0


def _prepare(place: Path, families: Sequence[str]) -> str | None:
    """Limits, one thread, the shim; the reason if there can be no shim."""
    os.environ |= {f"RUNGWISE_MAX_{name}": size for name, size in LIMITS.items()}
    os.environ |= SETTINGS | {"RUNGWISE_CACHE": str(place / "cache")}
    if not set(families) & set(WRITERS) or shim.is_loaded():
        return None
    if lacking := shim.missing():
        return lacking
    library = shim.build(Path(tempfile.mkdtemp(prefix="rungwise-shim-")))
    place.rmdir()
    shim.start_with(library, ["-m", "tests.hostile", *sys.argv[1:]])
    return None


def _make_world(place: Path) -> Path:
    from tests.hostile.warm import warm

    warm()
    from tests.hostile import world

    root = place / "world"
    root.mkdir()
    made = outcome_of(partial(world.make, root), memory=None)
    assert made.ending == "returned", f"the good files cannot be made: {made}"
    for path in root.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return root


def _played(family: str, world: Path, place: Path, asked: argparse.Namespace) -> Iterator[Case | str]:
    """The cases of a family, and why some were left out."""
    module = importlib.import_module(f"tests.hostile.{family}")
    if family in ("traced", "sent") and (lacking := module.missing()):
        yield lacking
        return
    scratch = place / ("writers" if family in WRITERS else "scratch")
    scratch.mkdir(exist_ok=True)
    scratch.chmod(0o777)
    choice = Choice(asked.seed, asked.share, asked.only, asked.part)
    yield from module.run(world, scratch, choice)
    if family == "commands" and asked.processes:
        yield from module.run_processes(world, scratch, choice, asked.processes)
    if family == "full" and not module.can_mount():
        yield "small disks: this process may not mount any"
    if family in READERS and without_privileges() is None:
        yield f"{family}: files without permission, since nobody may not enter the interpreter's folder"
    if family in READERS and os.geteuid():
        yield f"{family}: the user's own files without permission are read as this user, not as nobody"


if __name__ == "__main__":
    sys.exit(main())
