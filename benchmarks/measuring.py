"""What the benchmarks measure with: processes of their own, peak memory, jobs that take turns, rows that are kept."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib.util
import json
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rungwise.core.compute import GB, peak_memory

MOST_TURNS = 25
SHORT_SECONDS = 1.0


def needs(**libraries: str) -> None:
    """End at once where a library is missing, before anything is measured.

    Args:
        libraries: Names under which libraries are imported, each with what ``pip install`` is told to bring it.
    """
    missing = {name: source for name, source in libraries.items() if importlib.util.find_spec(name) is None}
    if missing:
        sources = " ".join(sorted({f"'{source}'" for source in missing.values()}))
        sys.exit(f"this benchmark needs {', '.join(missing)}; run: pip install {sources}")


def with_out(parser: argparse.ArgumentParser) -> None:
    """Give a benchmark the option ``--out``, for :class:`Rows`."""
    parser.add_argument("--out", type=Path, help="file to which each row is appended, as a line of JSON")


class Rows:
    """Rows of a benchmark, each printed as it comes, and kept at once: one that is interrupted has said something.

    Args:
        out: File to which each row is appended, as a line of JSON; None keeps none.
    """

    def __init__(self, out: Path | None = None) -> None:
        self._out = out
        if out is not None:
            out.parent.mkdir(parents=True, exist_ok=True)
            out.touch()  # which fails now rather than after an hour

    def add(self, **row: Any) -> None:
        """Print a row, and append it to the file."""
        said = (f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values())
        print("  ".join(f"{name} {value}" for name, value in zip(row, said, strict=True)), flush=True)
        self.keep(**row)

    def keep(self, **row: Any) -> None:
        """Append a row to the file; the benchmark prints it in a table of its own."""
        if self._out is not None:
            with self._out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def alone(job: Callable[..., Any], *arguments: Any) -> Any:
    """Run in a process of its own, so that its peak memory is its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(job, *arguments).result()


def peak() -> float:
    """Highest resident memory of this process so far, in bytes; nan where the system does not tell."""
    size = peak_memory()
    return float("nan") if size is None else size


def memory_of(job: Callable[[], object]) -> float:
    """Highest resident memory during a job, above what was resident before, in GB.

    What earlier jobs have freed goes back to the system first, or this one could use it without being seen.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = status("VmRSS")
    job()
    return (status("VmHWM") - before) / GB


def by_turns(repeats: int, *jobs: Callable[[], object]) -> list[float]:
    """Median seconds of each job, the jobs taking turns: as many as asked, and up to 25 of short ones."""
    times: list[list[float]] = [[] for _ in jobs]
    while len(times[0]) < repeats or (len(times[0]) < MOST_TURNS and sum(times[0]) < SHORT_SECONDS):
        for job, own in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in times]


def status(key: str, process: str | int = "self") -> int:
    """A line of /proc/PROCESS/status in bytes; 0 where there is no such file."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return 1024 * int(line.split()[1])
    return 0
