"""Search: how much is found, how fast, at what cost in time, disk and memory; with filters and without.

    python benchmarks/search.py                    # 100,000 x 512: our stores, faiss flat, faiss HNSW
    python benchmarks/search.py --large            # and 1,000,000 x 512: our LanceDB store
    python benchmarks/search.py --rows 20000       # a small run, to see that it works

Vectors are generated (see ``search_data.py``), and the right answers are counted from them by plain products. Every
engine runs in a process of its own, with all threads allowed; for LanceDB over S3 and for Milvus a server is started on
this machine. Each answers the same queries one at a time after some for warming up. Each figure stands beside its aim;
for an aim that is missed, what bounds it is printed.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from measuring import alone

if TYPE_CHECKING:
    from search_engines import Bandwidth, Engine, Measured

ENGINES = ("exact", "lance", "approximate", "s3", "milvus", "flat", "hnsw")
LARGE = 1_000_000

RECALL, P50 = 0.99, 8.0
"""Aims of a search, in milliseconds."""
OF_BANDWIDTH = 1.5
"""Aim of an exact scan: so many times what it takes to read the vectors."""

GRAPH_SWEEP = tuple({"ef": ef, "refine": refine} for ef, refine in ((32, 1), (32, 2), (64, 3), (128, 3), (256, 4)))
CODES_SWEEP = tuple(
    {"probes": probes, "refine": refine} for probes, refine in ((32, 10), (64, 20), (125, 40), (250, 40), (1000, 40))
)
MILVUS_SWEEP = tuple({"ef": ef} for ef in (64, 100, 400, 800))
HNSW_SWEEP = (16, 32, 64, 128, 256, 512)

_EARLIER = {"ours, exact": 9.0, "faiss flat": 9.0, "ours, LanceDB": 9.0, "ours, LanceDB index": 3.8}
"""Milliseconds at 100,000 x 512 without a filter, measured before on a quiet machine of two cores."""
_EARLIER_ROWS = 100_000
_SLOWER = 0.8
"""An engine that reaches less than this share of its earlier speed is set wrong, or the machine is busy."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="of the first run")
    parser.add_argument("--queries", type=int, default=200, help="of each setting and filter")
    parser.add_argument("--large", action="store_true", help=f"then {LARGE:,} rows in our LanceDB store")
    parser.add_argument("--large-rows", type=int, default=LARGE, help="of the second run")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES, help="of the first run")
    parser.add_argument("--folder", type=Path, help="where to work; default the system's temporary folder")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    # Before any engine is loaded: whoever set fewer threads meant other programs.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(os.cpu_count() or 1)
    console = Console(width=150)
    runs = [(asked.rows, tuple(asked.engines))]
    if asked.large:
        runs.append((asked.large_rows, ("lance",)))
    for rows, engines in runs:
        with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
            run(console, Path(folder) / "made", rows, engines, asked)


def run(console: Console, folder: Path, rows: int, engines: tuple[str, ...], asked: argparse.Namespace) -> None:
    import search_data
    import search_engines
    from rungwise.index.stores import GRAPH_UP_TO_ROWS

    console.rule(f"{rows:,} x {search_data.DIMENSION}; load average before {os.getloadavg()[0]:.1f}")
    made = alone(search_data.make, folder, rows, asked.queries, asked.seed)
    sweep = GRAPH_SWEEP if rows <= GRAPH_UP_TO_ROWS else CODES_SWEEP
    jobs = {
        "exact": search_engines.exact_store,
        "lance": partial(search_engines.lance_store, sweep=sweep),
        "approximate": partial(search_engines.lance_store, sweep=sweep, approximate=True),
        "s3": search_engines.lance_over_s3,
        "milvus": partial(search_engines.milvus_store, sweep=MILVUS_SWEEP),
        "flat": search_engines.faiss_flat,
        "hnsw": partial(search_engines.faiss_hnsw, sweep=HNSW_SWEEP),
    }
    read = alone(search_engines.bandwidth, made)
    found = []
    for name in engines:
        found.append(alone(jobs[name], made))
        console.print(f"measured: {found[-1].name}, load average {os.getloadavg()[0]:.1f}")
    searching = alone(search_engines.searching_alone, made) if "lance" in engines else 0
    show_bandwidth(console, read)
    show_frontier(console, found)
    show_costs(console, found, searching)
    show_aims(console, found, read, rows)


def show_bandwidth(console: Console, read: Bandwidth) -> None:
    table = Table(title=f"to read {read.bytes / 1e6:,.0f} MB of vectors once")
    for column in ("how", "ms", "GB/s"):
        table.add_column(column, justify="left" if column == "how" else "right")
    for name, took in (
        ("sum, one thread", read.read),
        (f"sum, {os.cpu_count()} threads", read.read_threads),
        ("matrix x vector by numpy", read.product),
        ("the same, ours", read.own),
    ):
        table.add_row(name, f"{took:.2f}", f"{read.bytes / took / 1e6:.1f}")
    console.print(table)


def show_frontier(console: Console, found: list[Engine]) -> None:
    from search_data import FILTERS, K

    table = Table(title=f"recall@{K}, p50 and p99 in ms of one query at a time", caption="* meets the aims")
    table.add_column("engine")
    table.add_column("setting")
    for one in FILTERS:
        table.add_column(f"filter: {one.name}", justify="right")
    for engine in found:
        for setting in dict.fromkeys(row.setting for row in engine.measured):
            cells = []
            for one in FILTERS:
                row = next(row for row in engine.measured if (row.setting, row.filtered) == (setting, one.name))
                mark = "*" if meets(row) else " "
                cells.append(f"{row.recall:.3f}  {row.p50:6.1f} {row.p99:6.1f} {mark}")
            table.add_row(engine.name, setting, *cells)
    console.print(table)


def show_costs(console: Console, found: list[Engine], searching: int) -> None:
    table = Table(title="costs")
    heads = ("build, s", "disk, MB", "peak memory of building, MB", "queries/s in batches of 1000", "one row by id, ms")
    table.add_column("engine")
    for head in heads:
        table.add_column(head, justify="right")
    for one in found:
        batch, fixed = (
            f"{value:.{places}f}" if not math.isnan(value) else "" for value, places in ((one.batch, 0), (one.fixed, 2))
        )
        disk = f"{one.disk / 1e6:,.0f}" if one.disk else "none"
        table.add_row(one.name, f"{one.build:.1f}", disk, f"{one.memory / 1e6:,.0f}", batch, fixed)
    console.print(table)
    for one in found:
        if one.why:
            console.print(f"  {one.name}: {one.why}")
    if searching:
        console.print(f"  ours, LanceDB: a process that opens it and searches takes {searching / 1e6:,.0f} MB at most")


def show_aims(console: Console, found: list[Engine], read: Bandwidth, rows: int) -> None:
    for engine in found:
        for row in engine.measured:
            if engine.name == "ours, exact" and row.filtered == "none":
                times = row.p50 / read.least
                console.print(
                    f"  {verdict(times <= OF_BANDWIDTH)}: {rows:,} rows, exact scan: {row.p50:.1f} ms,"
                    f" {times:.2f} x the {read.least:.1f} ms to read the vectors once (aim {OF_BANDWIDTH})"
                )
                if times > OF_BANDWIDTH:
                    console.print(
                        f"    of which the products take {read.own:.1f} ms; the rest is the choice of the best"
                    )
            if engine.name == "ours, LanceDB" and row.usual:
                console.print(
                    f"  {verdict(meets(row))}: {rows:,} rows, {engine.name}, filter: {row.filtered}: recall"
                    f" {row.recall:.3f} (aim {RECALL}) at p50 {row.p50:.1f} ms (aim {P50:g})"
                )
                if not meets(row):
                    say_bound(console, engine, row.filtered, read)
        earlier = _EARLIER.get(engine.name)
        if earlier and rows == _EARLIER_ROWS:
            now = next(row.p50 for row in engine.measured if row.filtered == "none")
            if earlier / now < _SLOWER:
                console.print(f"  {engine.name}: {now:.1f} ms, {earlier} ms before: set wrong, or the machine is busy")


def meets(row: Measured) -> bool:
    return row.recall >= RECALL and row.p50 <= P50


def verdict(kept: bool) -> str:
    return "met" if kept else "MISSED"


def say_bound(console: Console, engine: Engine, filtered: str, read: Bandwidth) -> None:
    """What a search of LanceDB cannot go below here, and what other settings reach."""
    own = [row for row in engine.measured if row.filtered == filtered]
    good = [row for row in own if row.recall >= RECALL]
    best = min(good, key=lambda row: row.p50) if good else max(own, key=lambda row: row.recall)
    filtering = engine.filtering.get(filtered)
    console.print(
        f"    the best of all settings is {best.setting}: recall {best.recall:.3f} at {best.p50:.1f} ms. Bounds: the"
        f" engine takes {engine.fixed:.1f} ms to fetch one row by its id"
        + (f" and {filtering:.1f} ms to find out which rows pass" if filtering else "")
        + f"; to read all vectors takes {read.least:.1f} ms"
    )


if __name__ == "__main__":
    main()
