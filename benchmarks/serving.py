"""The server under load: queries a second, ten minutes of fifty visitors, and the same with strangers who hurt it.

    python benchmarks/serving.py                                  # everything, ten minutes each
    python benchmarks/serving.py queries --seconds 60             # some parts
    python benchmarks/serving.py queries --beside CHECKOUT        # and an earlier rungwise on the same pictures
    python benchmarks/serving.py queries --pictures FOLDER --model MODEL
    python benchmarks/serving.py hostile --minutes 1              # the endurance: visitors beside strangers
    python benchmarks/serving.py load --pictures FOLDER           # of your own pictures

The server is ``rungwise serve``, a process of its own with its default limits, on an index made for it: pictures, six
picture bombs among them, under a small model with random weights. Visitors are in another process, strangers in a third
and on other addresses of this machine. Beside latencies it prints, for every minute, the server's memory
with that of its children, its processor time and the most files it had open; and what it wrote to its log.

Strangers are slow in every way, leave in every way, and send picture bombs, JPEGs of many scans, texts at which readers
of texts were slow, misspelt parameters, and requests that no client should send. In the end it prints what a server
that endures must show: the latency of the visitors' searches, errors, how strangers were refused, memory, tracebacks.

The part ``queries`` has no bombs. One client, then fifty, ask for one text after the other. The server encodes the
texts that wait together, then for comparison one at a time (``--limits.queries-together 1``), and in processes beside
the server (``--processes``). The processor time of those who ask stands beside the server's with its processes, as they
share the cores.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

import clients
from measuring import Rows, alone, needs

PARTS = ("queries", "load", "hostile")
SIDES = (13370, 8000)
"""Of picture bombs: as large as may be indexed, and as large as the server decodes."""
BOMBS = 6
PICTURES = 4
"""Of an answer, at which a visitor looks."""
MB = 2**20
VECTORS_ALONE = "/search?words=off&fold=false&k=24&q="


@dataclass(frozen=True)
class Made:
    """What is served.

    Attributes:
        index: Its folder.
        queries: Captions of its pictures.
        uploads: Picture bombs to send.
        bombs: Ids of others in the index.
        large: Id of a picture of 18 MB.
    """

    index: Path
    queries: list[str]
    uploads: list[bytes]
    bombs: list[str]
    large: str


def png(side: int, bits: int, colour: int, row: bytes) -> bytes:
    """A PNG of ``side`` equal rows."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    packing = zlib.compressobj(9)
    packed = b"".join(packing.compress(b"\0" + row) for _ in range(side)) + packing.flush()
    header = struct.pack(">IIBBBBB", side, side, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def small_bomb(side: int) -> bytes:
    """One bit a pixel: some 22 KB."""
    return png(side, 1, 0, bytes(-(-side // 8)))


def large_bomb(side: int) -> bytes:
    """Three bytes a pixel: some 0.5 MB."""
    return png(side, 8, 2, bytes(3 * side))


def many_scans(side: int, size: int) -> bytes:
    """A progressive JPEG of so many bytes, which says its last scan over and over: each is a pass over all pixels."""
    file = io.BytesIO()
    Image.new("L", (side, side), 128).save(file, "JPEG", progressive=True, quality=50)
    whole = file.getvalue().removesuffix(b"\xff\xd9")
    last = whole[whole.rindex(b"\xff\xda") :]
    return whole + last * max(1, (size - len(whole)) // len(last)) + b"\xff\xd9"


def odd_requests(port: int) -> list[clients.Odd]:
    """Those of the attack kit, which this checkout has."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.hostile.requests import hostile_requests

    return [clients.Odd(one.pieces, one.leaving) for one in hostile_requests(clients.ODD, 0, f"127.0.0.1:{port}")]


def make(folder: Path, pictures: Path | None) -> Made:
    from rungwise.data import ImageCaptions, read
    from rungwise.encoders.images import ImageConfig
    from rungwise.index import Index
    from rungwise.models import JointEmbedding, VSEConfig
    from rungwise.scenes import SceneConfig, generate

    data = read(pictures) if pictures else generate(folder / "scenes", SceneConfig(pictures=400))
    assert data.paths is not None
    bombs = tuple(folder / f"bomb-{number}.png" for number in range(BOMBS))
    for number, bomb in enumerate(bombs):
        bomb.write_bytes(small_bomb(SIDES[number % len(SIDES)]))
    large = folder / "large.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (2000, 3000, 3), np.uint8)).save(large, compress_level=0)
    added = (*bombs, large)
    whole = ImageCaptions(
        (*data.image_ids, *(path.name for path in added)),
        data.captions,
        data.image_of_caption,
        paths=(*data.paths, *added),
        name="load",
    )
    queries = list(data.captions[:1000]) or ["a dog", "a cat on a chair", "people in a street"]
    image = ImageConfig("test_resnet", weights="random", size=64)
    model = JointEmbedding.create(VSEConfig(image=image, dimension=512), queries)
    model.save_pretrained(folder / "model")
    os.environ["RUNGWISE_CACHE"] = str(folder / "cache")
    Index.build(whole, model, folder / "index", model_location=str(folder / "model"))
    return Made(
        folder / "index",
        queries,
        [*(large_bomb(side) for side in SIDES), *(many_scans(side, 100_000) for side in (1000, 6000))],
        [path.name for path in bombs],
        large.name,
    )


def make_plain(folder: Path, pictures: Path | None, model: Path | None) -> tuple[Path, str, list[str]]:
    """Pictures without bombs, a model, and what to search for."""
    from rungwise.data import read
    from rungwise.encoders.images import ImageConfig
    from rungwise.models import JointEmbedding, VSEConfig
    from rungwise.scenes import SceneConfig, generate

    if pictures is None:
        pictures = folder / "scenes"
        generate(pictures, SceneConfig(pictures=400))
    data = read(pictures)
    queries = list(dict.fromkeys(data.captions))[:1000] or ["a dog", "a cat on a chair", "people in a street"]
    if model is None:
        image = ImageConfig("test_resnet", weights="random", size=64)
        JointEmbedding.create(VSEConfig(image=image, dimension=512), queries).save_pretrained(folder / "model")
    return pictures, str(model or folder / "model"), queries


INDEXING = """
import sys
from pathlib import Path
from rungwise.data import read
from rungwise.index import Index
from rungwise.models import load_dual_encoder
pictures, model, index = sys.argv[1:]
Index.build(read(Path(pictures)), load_dual_encoder(model), Path(index), model_location=model)
"""
"""What makes an index, of whichever version of rungwise is imported."""


def environment(beside: Path | None, folder: Path) -> dict[str, str]:
    """In which an earlier rungwise is imported, from its checkout."""
    variables = os.environ | {"RUNGWISE_CACHE": str(folder / "cache")}
    return variables | {"PYTHONPATH": str(beside.resolve() / "src")} if beside else variables


@contextlib.contextmanager
def served(
    index: Path, log: Path, *arguments: str, variables: dict[str, str] | None = None
) -> Iterator[tuple[int, int]]:
    """``rungwise serve`` in a process of its own; gives the port and the number of the process."""
    command = "import sys; from rungwise.cli import main; sys.exit(main())"
    given = ["serve", str(index), "--port", "0", "--no-browser", *arguments]
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-c", command, *given], stdout=subprocess.PIPE, stderr=errors, text=True, env=variables
        ) as server,
    ):
        assert server.stdout is not None
        try:
            addresses = (re.search(r"http://[^/\s]*:(\d+)", line) for line in server.stdout)
            address = next(filter(None, addresses), None)
            if address is None:
                raise SystemExit(f"the server did not start:\n{log.read_text()}")
            yield int(address[1]), server.pid
        finally:
            server.terminate()


def resident(process: int) -> float:
    """Memory of a process and its children in MB; of what several share, each has its part."""
    found = 0.0
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        found = sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024 / MB
        found += sum(map(resident, children_of(process)))
    return found


def children_of(process: int) -> list[int]:
    """Numbers of the processes that a process has started and that still run."""
    listed = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for children in listed for child in children.read_text().split()]


def processor(process: int) -> float:
    """Seconds of processor time that a process and its children have used."""
    found = 0.0
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        found = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        found += sum(map(processor, children_of(process)))
    return found


def open_files(process: int) -> int:
    """Files and connections that a process has open."""
    with contextlib.suppress(OSError):
        return len(list(Path(f"/proc/{process}/fd").iterdir()))
    return 0


def share(values: Sequence[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(part * len(values)))] if values else float("nan")


@dataclass(frozen=True)
class Way:
    """A way to serve, and how many ask.

    Attributes:
        name: In the table.
        clients: How many ask at once.
        search: The address of a search, before the text.
        beside: Checkout of an earlier rungwise, if it is one.
        arguments: Of ``rungwise serve``.
    """

    name: str
    clients: int
    search: str = clients.SEARCH
    beside: Path | None = None
    arguments: tuple[str, ...] = ()


def show_queries(console: Console, folder: Path, asked: argparse.Namespace) -> None:
    pictures, model, queries = alone(make_plain, folder, asked.pictures, asked.model)
    alone_one = ("--limits.queries-together", "1")
    ways = [
        Way("one client", 1),
        Way(f"{asked.clients} clients", asked.clients),
        Way(f"{asked.clients} clients, encoded one at a time", asked.clients, arguments=alone_one),
        # What earlier versions did: no full text, no folding of near-duplicates.
        Way("one client, vectors alone", 1, VECTORS_ALONE),
        Way(f"{asked.clients} clients, vectors alone", asked.clients, VECTORS_ALONE),
        Way(
            f"{asked.clients} clients, vectors alone, one at a time", asked.clients, VECTORS_ALONE, arguments=alone_one
        ),
        *(
            Way(
                f"{many} clients, {asked.processes} processes beside the server",
                many,
                arguments=("--processes", str(asked.processes)),
            )
            for many in (1, asked.clients)
        ),
    ]
    if asked.beside:
        ways += [
            Way("one client, the earlier rungwise", 1, beside=asked.beside),
            Way(f"{asked.clients} clients, the earlier rungwise", asked.clients, beside=asked.beside),
            Way(
                f"{asked.clients} clients, the earlier rungwise, vectors alone",
                asked.clients,
                VECTORS_ALONE,
                asked.beside,
            ),
        ]
    console.print(f"GET /search, the next as soon as the last is answered, {asked.seconds:g} s each")
    rows = Rows(asked.out)
    for way in [ways[number - 1] for number in asked.ways] if asked.ways else ways:
        index = folder / f"{'earlier' if way.beside else 'this'}-index"
        variables = environment(way.beside, folder)
        if not index.exists():
            indexing = [sys.executable, "-c", INDEXING, str(pictures), model, str(index)]
            subprocess.run(indexing, env=variables, check=True)
        log = folder / "queries.log"
        with (
            served(index, log, *way.arguments, variables=variables) as (port, server),
            ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        ):
            pool.submit(clients.visit, port, way.clients, 3.0, queries, search=way.search).result()  # what loads late
            (asking,) = pool._processes
            used, spent, sizes = processor(server), processor(asking), [resident(server)]
            visiting = pool.submit(clients.visit, port, way.clients, asked.seconds, queries, search=way.search)
            while not visiting.done():
                time.sleep(0.5)
                sizes.append(resident(server))
            visits = visiting.result()
            used, spent = processor(server) - used, processor(asking) - spent
        latencies = [1000 * visit.latency for visit in visits]
        rows.add(
            way=way.name,
            queries_a_second=round(len(visits) / asked.seconds, 1),
            p50_ms=statistics.median(latencies),
            p99_ms=share(latencies, 0.99),
            server_ms=1000 * used / len(visits),
            clients_ms=1000 * spent / len(visits),
            share_of_clients=round(spent / (spent + used), 3),
            errors=sum(bool(visit.outcome) for visit in visits),
            memory_first_MB=round(sizes[0]),
            memory_last_MB=round(sizes[-1]),
            memory_most_MB=round(max(sizes)),
        )


def show_load(console: Console, made: Made, asked: argparse.Namespace, *, hostile: bool) -> None:
    seconds = 60 * asked.minutes
    log = made.index.parent / "log"
    with served(made.index, log) as (port, server), ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        but = [*made.bombs, made.large]
        arguments = {"think": asked.think, "pictures": PICTURES, "but": but, "own_addresses": hostile}
        visiting = pool.submit(clients.visit, port, asked.clients, seconds, made.queries, **arguments)
        attacking = None
        if hostile:
            attacking = pool.submit(
                clients.attack, port, seconds, made.uploads, made.bombs, made.large, odd_requests(port)
            )
        memory: list[list[float]] = []
        files: list[int] = []
        used = [processor(server)]
        start = time.monotonic()
        while not visiting.done():
            minute = min(int((time.monotonic() - start) // 60), max(0, math.ceil(asked.minutes) - 1))
            if minute == len(memory):
                memory.append([])
                used.append(0.0)
                files.append(0)
            memory[minute].append(resident(server))
            used[-1] = processor(server)
            files[-1] = max(files[-1], open_files(server))
            time.sleep(0.5)
        visits = visiting.result()
        harm = attacking.result() if attacking else None
    table = Table(title=f"{asked.clients} visitors{', and strangers' if hostile else ''}, {asked.minutes:g} minutes")
    for column in ("minute", "requests", "requests/s", "errors", "text p50, ms", "p99", "max", "thumbnail p99"):
        table.add_column(column, justify="right")
    for column in ("memory, MB", "highest", "processor, s", "files"):
        table.add_column(column, justify="right")
    minutes = range(len(memory))
    for which in (*((minute,) for minute in minutes), tuple(minutes)):
        rows = [visit for visit in visits if min(int(visit.second // 60), minutes[-1]) in which]
        text = [1000 * row.latency for row in rows if row.kind == "text"]
        thumbnails = [1000 * row.latency for row in rows if row.kind == "thumbnail"]
        sizes = [size for minute in which for size in memory[minute]]
        length = seconds if len(which) > 1 else min(60.0, seconds)
        table.add_row(
            str(which[0] + 1) if len(which) == 1 else "all",
            str(len(rows)),
            f"{len(rows) / length:.0f}",
            str(sum(bool(row.outcome) for row in rows)),
            *(f"{number:.0f}" for number in (share(text, 0.5), share(text, 0.99), max(text, default=float("nan")))),
            f"{share(thumbnails, 0.99):.0f}",
            f"{sizes[-1]:.0f}",
            f"{max(sizes):.0f}",
            f"{used[which[-1] + 1] - used[which[0]]:.0f}",
            str(max(files[minute] for minute in which)),
        )
    console.print(table)
    for outcome, many in Counter(f"{visit.kind}: {visit.outcome}" for visit in visits if visit.outcome).most_common():
        console.print(f"  failed {outcome}: {many}")
    if harm:
        for kind, many in sorted(harm.counts.items()):
            console.print(f"  {kind}: {many}")
        console.print("  longest held, s: " + ", ".join(f"{k} {s:.0f}" for k, s in sorted(harm.longest.items())))
        refused: Counter[str] = Counter()
        for kind, many in harm.counts.items():
            if (status := kind.rpartition("answered ")[2]).isdecimal():
                refused[status] += many
        console.print(
            "  strangers were answered, by status: " + ", ".join(f"{s} {n}" for s, n in sorted(refused.items()))
        )
    searches = [visit for visit in visits if visit.kind == "text"]
    times = [1000 * visit.latency for visit in searches]
    failed = sum(bool(visit.outcome) for visit in searches)
    median, last, longest = share(times, 0.5), share(times, 0.99), max(times, default=float("nan"))
    console.print(
        f"  text searches: {len(searches)}; median {median:.0f} ms, 99th of 100 {last:.0f} ms,"
        f" longest {longest:.0f} ms; {failed} errors"
    )
    ends = [f"{sizes[-1]:.0f}" for sizes in memory]
    console.print(f"  memory, MB: {memory[0][0]:.0f} at the start, {', '.join(ends)} at the end of each minute")
    lines = log.read_text(errors="replace").splitlines()
    tracebacks = sum("Traceback" in line for line in lines)
    console.print(f"  log: {len(lines)} lines, {tracebacks} tracebacks", *lines[:5], sep="\n    ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; none is all")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each row of queries")
    parser.add_argument("--minutes", type=float, default=10.0, help="of load, and of hostile")
    parser.add_argument("--out", type=Path, help="file to which each row of queries is appended, as a line of JSON")
    parser.add_argument("--clients", type=int, default=50, help="visitors")
    parser.add_argument("--ways", type=int, nargs="+", help="of queries, by their numbers from 1; default all")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="of an earlier rungwise, for queries")
    parser.add_argument("--model", type=Path, help="of queries; a small one with random weights unless given")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that search, of two ways of queries")
    parser.add_argument("--think", type=float, default=1.0, help="seconds from what was found to the next query")
    parser.add_argument("--pictures", type=Path, help="a folder of pictures; 400 generated scenes unless given")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    needs(fastapi="rungwise[serve]", uvicorn="rungwise[serve]", lancedb="rungwise[serve]")
    console = Console(width=150)
    with tempfile.TemporaryDirectory() as folder:
        parts = asked.parts or PARTS
        made = alone(make, Path(folder), asked.pictures) if {"load", "hostile"} & set(parts) else None
        for part in parts:
            console.print(f"{part}: load average before it {os.getloadavg()[0]:.1f}")
            if made is None or part == "queries":
                show_queries(console, Path(folder), asked)
            else:
                show_load(console, made, asked, hostile=part == "hostile")


if __name__ == "__main__":
    main()
