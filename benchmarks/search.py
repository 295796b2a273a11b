"""Search: how much is found, how fast, at what cost in time, disk and memory; with filters and without.

    python benchmarks/search.py                                          # 100,000 x 512
    python benchmarks/search.py --rows 1000000 --out million.jsonl       # each row is kept as soon as it is measured
    python benchmarks/search.py --rows 10000000 --dimension 256 --half --recall .9 --engines lance lists
    python benchmarks/search.py --rows 20000 --queries 20                # a small run, to see that it works

Vectors are generated (see ``search_data.py``), and the right answers are counted from them by plain products. Every
engine runs in a process of its own, with all threads allowed; for LanceDB over S3 and for Milvus a server is started on
this machine. Each answers the same queries one at a time after some for warming up. At the end the engines are compared
at equal recall: each by its fastest setting that reaches it. For an aim that is missed, what bounds it is printed.
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

from measuring import Rows, alone, needs, with_out

if TYPE_CHECKING:
    from search_engines import Bandwidth, Engine, Measured

NEEDS: dict[str, dict[str, str]] = {
    "exact": {},
    "lance": {"lancedb": "rungwise[search]", "faiss": "rungwise[search]"},
    "engine": {"lancedb": "rungwise[search]"},
    "s3": {"lancedb": "rungwise[search]", "moto": "moto[server]"},
    "milvus": {"pymilvus": "rungwise[milvus]", "milvus": "milvus"},
    "flat": {"faiss": "rungwise[search]"},
    "hnsw": {"faiss": "rungwise[search]"},
    "lists": {"faiss": "rungwise[search]"},
}
"""Engines, each with the libraries that it needs and what brings them."""
LARGE = 200_000
"""Rows above which only the engines that are made for so many run, where none are named."""
OF_LARGE = ("lance", "engine", "lists")

AIMS = {100_000: (1.0, 3.0), 1_000_000: (4.0, 8.0)}
"""Milliseconds of a search at recall .99 by number of rows, without a filter and with one."""
P99 = 25.0
"""Milliseconds that 99 of 100 searches take at most, of a million rows."""
OF_BANDWIDTH = 1.5
"""Aim of an exact scan: so many times what it takes to read the vectors."""

LISTS_SWEEP = tuple({"probes": probes} for probes in (4, 8, 16, 32, 128))
GRAPH_SWEEP = tuple({"ef": ef, "refine": refine} for ef, refine in ((32, 1), (32, 2), (64, 3), (128, 3), (256, 4)))
CODES_SWEEP = tuple(
    {"probes": probes, "refine": refine} for probes, refine in ((32, 10), (64, 20), (125, 40), (250, 40))
)
MILVUS_SWEEP = tuple({"ef": ef} for ef in (64, 100, 400, 800))
HNSW_SWEEP = (16, 32, 64, 128, 256, 512)
PROBES_SWEEP = (2, 4, 8, 16, 32, 64, 128)

_EARLIER = {"ours, exact": 8.7, "faiss flat": 15.8}
"""Milliseconds at 100,000 x 512 without a filter, measured before on a quiet machine of two cores."""
_EARLIER_ROWS = 100_000
_SLOWER = 0.8
"""An engine that reaches less than this share of its earlier speed is set wrong, or the machine is busy."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--queries", type=int, default=200, help="of each setting and filter")
    parser.add_argument("--engines", nargs="+", choices=NEEDS, help=f"default all; of many rows {' '.join(OF_LARGE)}")
    parser.add_argument("--half", action="store_true", help="vectors of our LanceDB store in half precision")
    parser.add_argument("--recall", type=float, default=0.99, help="at which engines are compared")
    parser.add_argument("--folder", type=Path, help="where to work; default the system's temporary folder")
    with_out(parser)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    engines = asked.engines or (OF_LARGE if asked.rows > LARGE else tuple(NEEDS))
    needs(rungwise="rungwise", **{name: source for one in engines for name, source in NEEDS[one].items()})
    rows = Rows(asked.out)
    # Before any engine is loaded: whoever set fewer threads meant other programs.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = str(os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        run(Console(width=150), Path(folder) / "made", rows, engines, asked)


def run(console: Console, folder: Path, rows: Rows, engines: tuple[str, ...], asked: argparse.Namespace) -> None:
    import search_data
    import search_engines
    from rungwise.index.stores._approximation import GRAPH_UP_TO_ROWS

    console.rule(f"{asked.rows:,} x {asked.dimension}; load average before {os.getloadavg()[0]:.1f}")
    made = alone(search_data.make, folder, asked.rows, asked.queries, asked.seed, asked.dimension)
    sweep = GRAPH_SWEEP if asked.rows <= GRAPH_UP_TO_ROWS else CODES_SWEEP
    jobs = {
        "exact": search_engines.exact_store,
        "lance": partial(search_engines.lance_store, sweep=LISTS_SWEEP, half=asked.half),
        "engine": partial(search_engines.lance_engine, sweep=sweep),
        "s3": search_engines.lance_over_s3,
        "milvus": partial(search_engines.milvus_store, sweep=MILVUS_SWEEP),
        "flat": search_engines.faiss_flat,
        "hnsw": partial(search_engines.faiss_hnsw, sweep=HNSW_SWEEP),
        "lists": partial(search_engines.faiss_lists, sweep=PROBES_SWEEP),
    }
    read = alone(search_engines.bandwidth, made)
    show_bandwidth(console, read)
    found = []
    for name in engines:
        found.append(alone(jobs[name], made, rows))
        console.print(f"measured: {found[-1].name}, load average {os.getloadavg()[0]:.1f}")
    searching = alone(search_engines.searching_alone, made) if "lance" in engines else 0
    show_frontier(console, found, asked.recall)
    show_equal(console, found, asked.recall)
    show_costs(console, found, searching)
    show_aims(console, found, read, asked)


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


def show_frontier(console: Console, found: list[Engine], recall: float) -> None:
    from search_data import FILTERS, K

    table = Table(title=f"recall@{K}, p50 and p99 in ms of one query at a time", caption=f"* recall {recall:g} or more")
    table.add_column("engine")
    table.add_column("setting")
    for one in FILTERS:
        table.add_column(f"filter: {one.name}", justify="right")
    for engine in found:
        for setting in dict.fromkeys(row.setting for row in engine.measured):
            cells = []
            for one in FILTERS:
                row = next(row for row in engine.measured if (row.setting, row.filtered) == (setting, one.name))
                mark = "*" if row.recall >= recall else " "
                cells.append(f"{row.recall:.3f}  {row.p50:6.2f} {row.p99:6.2f} {mark}")
            table.add_row(engine.name, setting, *cells)
    console.print(table)


def show_equal(console: Console, found: list[Engine], recall: float) -> None:
    from search_data import FILTERS

    table = Table(title=f"at recall {recall:g} or more: the fastest setting, p50 in ms, queries a second")
    table.add_column("engine")
    for one in FILTERS:
        table.add_column(f"filter: {one.name}", justify="right")
    for engine in found:
        cells = []
        for one in FILTERS:
            best = fastest(engine, one.name, recall)
            cells.append(f"{best.p50:.2f}  {best.a_second:,.0f}" if best else "not reached")
        table.add_row(engine.name, *cells)
    console.print(table)


def fastest(engine: Engine, filtered: str, recall: float) -> Measured | None:
    """The fastest setting that finds so much; None where none does."""
    good = [row for row in engine.measured if row.filtered == filtered and row.recall >= recall]
    return min(good, key=lambda row: row.p50, default=None)


def show_costs(console: Console, found: list[Engine], searching: int) -> None:
    table = Table(title="costs")
    heads = (
        "searchable, s", "build, s", "disk, MB", "peak memory of building, MB", "queries/s in batches of 1000",
        "one row by id, ms", "a new filter, ms",
    )  # fmt: skip
    table.add_column("engine")
    for head in heads:
        table.add_column(head, justify="right")
    for one in found:
        batch, fixed, new = (
            f"{value:.{places}f}" if not math.isnan(value) else ""
            for value, places in ((one.batch, 0), (one.fixed, 2), (max(one.filtering.values(), default=math.nan), 2))
        )
        disk = f"{one.disk / 1e6:,.0f}" if one.disk else "none"
        took = f"{one.searchable:.1f}", f"{one.build:.1f}"
        table.add_row(one.name, *took, disk, f"{one.memory / 1e6:,.0f}", batch, fixed, new)
    console.print(table)
    for one in found:
        if one.why:
            console.print(f"  {one.name}: {one.why}")
    if searching:
        console.print(
            f"  ours, inverted lists: a process that opens it and searches has {searching / 1e6:,.0f} MB at most, files"
            " that are mapped as far as they were read among them"
        )


def show_aims(console: Console, found: list[Engine], read: Bandwidth, asked: argparse.Namespace) -> None:
    rows, aims = asked.rows, AIMS.get(asked.rows)
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
            if engine.name == "ours, inverted lists" and row.usual and aims:
                aim = aims[row.filtered != "none"]
                met = row.recall >= asked.recall and row.p50 <= aim and row.p99 <= P99
                console.print(
                    f"  {verdict(met)}: {rows:,} rows, {engine.name}, filter: {row.filtered}: recall {row.recall:.3f}"
                    f" (aim {asked.recall:g}) at p50 {row.p50:.2f} ms (aim {aim:g}), p99 {row.p99:.1f} (aim {P99:g})"
                )
                if not met:
                    say_bound(console, engine, row.filtered, read, asked.recall)
        earlier = _EARLIER.get(engine.name)
        if earlier and rows == _EARLIER_ROWS:
            now = next(row.p50 for row in engine.measured if row.filtered == "none")
            if earlier / now < _SLOWER:
                console.print(f"  {engine.name}: {now:.1f} ms, {earlier} ms before: set wrong, or the machine is busy")


def verdict(kept: bool) -> str:
    return "met" if kept else "MISSED"


def say_bound(console: Console, engine: Engine, filtered: str, read: Bandwidth, recall: float) -> None:
    """What other settings reach, and what a search cannot go below here."""
    own = [row for row in engine.measured if row.filtered == filtered]
    best = fastest(engine, filtered, recall) or max(own, key=lambda row: row.recall)
    console.print(
        f"    the best of all settings is {best.setting}: recall {best.recall:.3f} at {best.p50:.2f} ms. To read all"
        f" vectors takes {read.least:.1f} ms"
    )


if __name__ == "__main__":
    main()
