"""What the everyday commands cost on an index that stands: processor seconds, wall seconds and peak memory.

python benchmarks/everyday.py PHOTOS INDEX
python benchmarks/everyday.py PHOTOS INDEX --text "a dog in the snow" --where "persom == 'bob'"

The index is of these photos and names its model. A copy of it is made beside it, brought up to date before anything is
measured, and removed in the end; for one step a picture is added to the photos and taken away again. Every step is a
command in a process of its own. Two sets of sources are compared by PYTHONPATH.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

MEGABYTE = 1e6


def cost(arguments: list[str]) -> tuple[float, float, float, int]:
    """Processor seconds, wall seconds, peak bytes and exit status of one command."""
    command = [sys.executable, "-m", "rungwise", *arguments]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime, time.perf_counter() - start, 1024.0 * used.ru_maxrss, process.returncode


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=Path)
    parser.add_argument("index", type=Path)
    parser.add_argument("--text", default="a dog in the snow")
    parser.add_argument("--where", default="persom == 'bob'", help="a filter with a misspelt column or value")
    parser.add_argument("--new", type=Path, help="a picture to add; without one this step is left out")
    asked = parser.parse_args()
    # Beside the index: elsewhere the paths of all rows would be others.
    with tempfile.TemporaryDirectory(dir=asked.index.resolve().parent) as scratch:
        index = Path(scratch)
        shutil.copytree(asked.index, index, dirs_exist_ok=True)
        update = ["index", str(asked.photos), "--out", str(index)]
        steps = [
            ("update, nothing to do", update),
            ("search", ["search", str(index), asked.text]),
            ("search, misspelt filter", ["search", str(index), asked.text, "--where", asked.where]),
        ]
        cost(update)
        cost(steps[1][1])  # what a machine compiles and keeps the first time
        table = Table("step", "processor, s", "wall, s", "peak, MB", "exit status")
        for step, arguments in steps:
            _add(table, step, cost(arguments))
        if asked.new is not None:
            copy = asked.photos / f"new-{index.name}{asked.new.suffix}"
            shutil.copy(asked.new, copy)
            try:
                _add(table, "update, one new picture", cost(update))
            finally:
                copy.unlink()
    Console().print(table)


def _add(table: Table, step: str, costs: tuple[float, float, float, int]) -> None:
    processor, wall, peak, status = costs
    table.add_row(step, f"{processor:.1f}", f"{wall:.1f}", f"{peak / MEGABYTE:.0f}", str(status))


if __name__ == "__main__":
    main()
