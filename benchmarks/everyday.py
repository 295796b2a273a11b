"""What the everyday commands cost on an index that stands: processor seconds, wall seconds and peak memory.

python benchmarks/everyday.py PHOTOS INDEX
python benchmarks/everyday.py PHOTOS INDEX --text "a dog in the snow" --where "persom == 'bob'"

The index is of these photos and names its model; it is copied first, and the copy is brought up to date before anything
is measured. Every step is a command in a process of its own. Two sets of sources are compared by PYTHONPATH.
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
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        index = shutil.copytree(asked.index, Path(scratch) / "index")
        update = ["index", str(asked.photos), "--out", str(index)]
        steps = {
            "update, nothing to do": update,
            "search": ["search", str(index), asked.text],
            "search, misspelt filter": ["search", str(index), asked.text, "--where", asked.where],
        }
        cost(update)  # the copy lies elsewhere, so that its paths are written anew
        table = Table("step", "processor, s", "wall, s", "peak, MB", "exit status")
        for step, arguments in steps.items():
            processor, wall, peak, status = cost(arguments)
            table.add_row(step, f"{processor:.1f}", f"{wall:.1f}", f"{peak / MEGABYTE:.0f}", str(status))
    Console().print(table)


if __name__ == "__main__":
    main()
