"""``python -m tests.hostile``: attack every reader, command and writer, and print what became of it.

The program starts itself anew with the shim of shim.c loaded, imports everything once, makes a world of good files, and
forks a child for every case. Exit code 1 says that something was lost, wrong, hung, or ended in a traceback.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.hostile import forked, shim
from tests.hostile.counting import Report
from tests.hostile.forked import outcome_of

READERS = ("files", "commands")
WRITERS = ("kills", "power", "full", "traced")
FAMILIES = (*READERS, *WRITERS)

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
    parser.add_argument("--processes", type=int, default=20, help="commands that run as real processes besides")
    parser.add_argument("--seconds", type=float, default=forked.patience, help="after which a case counts as hung")
    parser.add_argument("--json", type=Path, help="write all cases here")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.families) - set(FAMILIES):
        parser.error(f"no family {unknown.pop()!r}; there are {', '.join(FAMILIES)}")
    forked.patience = asked.seconds
    families = asked.families or list(FAMILIES)
    report = Report()
    with tempfile.TemporaryDirectory(prefix="rungwise-hostile-") as folder:
        place = Path(folder).resolve()
        place.chmod(0o755)  # for cases that drop the privileges of root
        if lacking := _prepare(place, families):
            report.left_out.append(lacking)
            families = [one for one in families if one in READERS]
        world = _make_world(place)
        for family in families:
            _run(report, family, world, place, asked)
    print(report.table())
    if report.bad():
        print(report.faults())
    if asked.json:
        asked.json.write_text(json.dumps(report.plain()))
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
    made = outcome_of(partial(world.make, root), memory=None, seconds=300)
    assert made.ending == "returned", f"the good files cannot be made: {made}"
    for path in root.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return root


def _run(report: Report, family: str, world: Path, place: Path, asked: argparse.Namespace) -> None:
    module = importlib.import_module(f"tests.hostile.{family}")
    if family == "traced" and (lacking := module.missing()):
        report.left_out.append(lacking)
        return
    scratch = place / ("scratch" if family in READERS else "writers")
    scratch.mkdir(exist_ok=True)
    scratch.chmod(0o777)
    began, before = time.monotonic(), len(report.cases)
    report.add(module.run(world, scratch, asked.seed, asked.share, asked.only))
    if family == "commands" and asked.processes:
        report.add(module.run_processes(world, scratch, asked.seed, asked.processes))
    if family == "full" and not module.can_mount():
        report.left_out.append("small disks: this process may not mount any")
    if family in READERS and forked.without_privileges() is None:
        report.left_out.append(
            f"{family}: files without permission, since nobody may not enter the interpreter's folder"
        )
    if family in READERS and os.geteuid():
        report.left_out.append(
            f"{family}: the user's own files without permission are read as this user, not as nobody"
        )
    print(f"{family}: {len(report.cases) - before} cases in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
