"""A server whose store is away, and one under which the model of its index is exchanged.

    python benchmarks/outages.py away                        # every route, with a Milvus that is away in four ways
    python benchmarks/outages.py away --store lance
    python benchmarks/outages.py exchange --store milvus     # ten clients search while another model takes its place
    python benchmarks/outages.py exchange --no-reload

The server is ``rungwise serve``, a process of its own with its default limits, on pictures of drawn scenes under small
models with random weights. Milvus comes from the package ``milvus``. It hangs when it is stopped by a signal, is slow
when it runs for a tenth of the time, and refuses when it has been killed. In LanceDB nothing can hang or be slow; its
folder is moved away in place of being refused.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from rich.console import Console
from rich.table import Table

WELL, OTHER = "well", "another model"
GIVEN_UP = 90.0
"""Seconds after which a client takes an answer for lost."""
RUNNING, STOPPED = 0.2, 1.8
"""Seconds for which a slow Milvus runs, and then stands still."""
CLIENTS, QUERIES, K = 10, 20, 12
SECONDS_BEFORE, SECONDS_AFTER = 3.0, 8.0


@dataclass
class Place:
    """Where the index lies, and its server if it has one."""

    address: str
    milvus: Any = None

    @contextlib.contextmanager
    def away(self, how: str) -> Iterator[None]:
        """The store is away in one of the ways while the block runs."""
        if how == "hung":
            os.kill(self.milvus.process, signal.SIGSTOP)
            try:
                yield
            finally:
                os.kill(self.milvus.process, signal.SIGCONT)
        elif how == "slow":
            ended = threading.Event()
            beat = threading.Thread(target=self._beat, args=(ended,))
            beat.start()
            try:
                yield
            finally:
                ended.set()
                beat.join()
        elif how == "refused":
            os.kill(self.milvus.process, signal.SIGKILL)
            yield
        elif how == "moved away":
            moved = Path(f"{self.address}-moved")
            Path(self.address).rename(moved)
            try:
                yield
            finally:
                moved.rename(self.address)
        else:
            yield

    def _beat(self, ended: threading.Event) -> None:
        while not ended.is_set():
            os.kill(self.milvus.process, signal.SIGSTOP)
            ended.wait(STOPPED)
            os.kill(self.milvus.process, signal.SIGCONT)
            ended.wait(RUNNING)


@contextlib.contextmanager
def place(store: str, folder: Path) -> Iterator[Place]:
    if store != "milvus":
        yield Place(str(folder / "index"))
        return
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from tests.milvus_server import local_milvus

    with local_milvus(folder / "milvus") as server:
        yield Place(f"{server.address}/outages", server)


def make(folder: Path, pictures: int) -> tuple[Any, list[str]]:
    """Pictures, and two models with random weights; gives the collection and texts to search for."""
    import torch

    from rungwise.encoders.images import ImageConfig
    from rungwise.models import JointEmbedding, VSEConfig
    from rungwise.scenes import SceneConfig, generate

    data = generate(folder / "scenes", SceneConfig(pictures=pictures))
    texts = list(dict.fromkeys(data.captions))
    image = ImageConfig("test_resnet", weights="random", size=64)
    for seed, name in enumerate(("one", "two")):
        torch.manual_seed(seed)
        JointEmbedding.create(VSEConfig(image=image, dimension=128), texts).save_pretrained(folder / name)
    return data, texts


BUILDING = """
import sys
from pathlib import Path
from rungwise.data import read
from rungwise.index import Index
from rungwise.models import load_dual_encoder
scenes, model, place, store = sys.argv[1:]
place = place if "://" in place else Path(place)
Index.build(read(Path(scenes)), load_dual_encoder(model), place, model_location=model, overwrite=True, store=store)
"""


def build(folder: Path, model: str, address: str, store: str) -> None:
    """Index the pictures with a model, in a process of its own."""
    words = [str(folder / "scenes"), str(folder / model), address, "auto" if store == "milvus" else store]
    # A Milvus that has just started takes its time.
    subprocess.run([sys.executable, "-c", BUILDING, *words], check=True, env={**os.environ, "MILVUS_PATIENCE": "120"})


@dataclass
class Server:
    """``rungwise serve``, with what it has written."""

    host: str
    port: int
    process: subprocess.Popen[str]
    lines: list[str]

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes, float]:
        """Status, body and milliseconds of one request on a connection of its own; status 0 without an answer."""
        start = time.perf_counter()
        connection = http.client.HTTPConnection(self.host, self.port, timeout=GIVEN_UP)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            status, content = answer.status, answer.read()
        except OSError:
            status, content = 0, b""
        finally:
            connection.close()
        return status, content, 1000 * (time.perf_counter() - start)


@contextlib.contextmanager
def serving(address: str, folder: Path, *options: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "rungwise", "serve", address, "--port", "0", "--no-browser", *options]
    environment = {**os.environ, "RUNGWISE_CACHE": str(folder / "cache")}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1
    )
    lines: list[str] = []
    begun = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if "http://" in line:
                begun.set()
        begun.set()

    threading.Thread(target=read, daemon=True).start()
    begun.wait()
    found = next((word for line in lines for word in line.split() if word.startswith("http://")), None)
    if found is None:
        raise SystemExit("\n".join(lines))
    parts = urlsplit(found)
    try:
        yield Server(parts.hostname or "", parts.port or 0, process, lines)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def routes(ids: Sequence[str], text: str, picture: bytes, sent: str) -> list[tuple[str, str, str, bytes | None]]:
    """Name, method, address and body of one request for each route; ids that were not asked for before."""
    one, two, three = (quote(each, safe="") for each in ids[:3])
    return [
        ("/health", "GET", "/health", None),
        ("/metrics", "GET", "/metrics", None),
        ("/about", "GET", "/about", None),
        ("/", "GET", "/", None),
        ("/docs", "GET", "/docs", None),
        ("/openapi.json", "GET", "/openapi.json", None),
        ("/ready", "GET", "/ready", None),
        ("/search?q=", "GET", f"/search?q={quote(text)}", None),
        ("/search", "GET", "/search", None),
        ("/similar", "GET", f"/similar?id={one}", None),
        ("/captions", "GET", f"/captions?id={two}", None),
        ("/sample", "GET", "/sample?by=newest", None),
        ("/items/{id}", "GET", f"/items/{three}", None),
        ("/images/{id}", "GET", f"/images/{three}?thumb=320", None),
        ("POST /pictures", "POST", "/pictures", picture),
        ("/pictures/{name}", "GET", f"/pictures/{sent}", None),
        ("/grades", "GET", "/grades", None),
        ("/favourites", "GET", "/favourites", None),
        ("/searches", "GET", "/searches", None),
    ]


def away(store: str, pictures: int, console: Console) -> None:
    """Status and milliseconds of every route, while the store is away in every way."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        data, texts = make(folder, pictures)
        picture = Path(data.paths[0]).read_bytes()
        ways = (WELL, "hung", "slow", "refused", OTHER) if store == "milvus" else (WELL, "moved away", OTHER)
        found: dict[str, dict[str, tuple[int, float]]] = {}
        said: dict[str, Any] = {}
        log: Counter[str] = Counter()
        with place(store, folder) as there:
            for at, how in enumerate(ways):
                build(folder, "one", there.address, store)
                with serving(there.address, folder) as server:
                    sent = json.loads(server.ask("POST", "/pictures", picture)[1])["picture"]
                    if how == OTHER:
                        build(folder, "two", there.address, store)
                        server.ask("GET", "/health")
                    time.sleep(2.0)  # nothing that was looked at a moment ago is at hand
                    with there.away(how):
                        for name, *request in routes(data.image_ids[3 * at :], texts[at], picture, sent):
                            status, content, took = server.ask(*request)
                            found.setdefault(name, {})[how] = status, took
                            if name == "/ready":
                                said[how] = content.decode(errors="replace")
                log.update(server.lines)
                if there.milvus is not None and how not in (WELL, OTHER):
                    there.milvus.stop()  # one that stood still for long ends by itself
                    there.milvus.start()
    table = Table("route", *ways, title=f"status and milliseconds, index in {store}")
    for name, by_way in found.items():
        table.add_row(name, *(f"{by_way[how][0]}  {by_way[how][1]:,.0f}" for how in ways))
    console.print(table)
    for how, text in said.items():
        console.print(f"/ready, {how}: {text}", markup=False)
    for line, times in log.items():
        console.print(f"{times} x {line}", markup=False)


@dataclass(frozen=True)
class Answer:
    """One answer of a search: when it came, in how many seconds, and what it said."""

    at: float
    seconds: float
    status: int
    version: str
    query: str
    ids: tuple[str, ...]


def expected(folder: Path, data: Any, model: str, texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Ids of the hits that a model gives for each text, by the API and an index of its own."""
    from rungwise.index import Index, Searcher, SearchOptions
    from rungwise.models import load_dual_encoder

    loaded = load_dual_encoder(str(folder / model))
    searcher = Searcher(Index.build(data, loaded, folder / f"truth-{model}"), loaded)
    options = SearchOptions(words="off", fold_duplicates=False, end=False)
    return {text: tuple(hit.id for hit in searcher.search(text, K, options=options).hits) for text in texts}


def exchange(store: str, pictures: int, *, reload: bool, console: Console) -> None:
    """Ten clients search while an index of another model takes the place of the one that is served."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        data, texts = make(folder, pictures)
        texts = texts[:QUERIES]
        truth = {model: expected(folder, data, model, texts) for model in ("one", "two")}
        answers: list[Answer] = []
        states: list[tuple[float, str]] = []
        ended = threading.Event()
        with place(store, folder) as there:
            build(folder, "one", there.address, store)
            with serving(there.address, folder, *(["--reload"] if reload else [])) as server:

                def client(number: int) -> None:
                    turn = number
                    while not ended.is_set():
                        text, turn = texts[turn % len(texts)], turn + 1
                        if number % 2:  # as people ask
                            status, _, took = server.ask("GET", f"/search?q={quote(text)}")
                            answers.append(Answer(time.perf_counter(), took / 1000, status, "", text, ()))
                            continue
                        path = f"/search?words=off&fold=false&end=false&k={K}&q={quote(text)}"
                        status, content, took = server.ask("GET", path)
                        told = json.loads(content) if status == 200 else {}
                        ids = tuple(hit["id"] for hit in told.get("hits", ()))
                        now = time.perf_counter()
                        answers.append(Answer(now, took / 1000, status, told.get("index_version", ""), text, ids))

                def watch() -> None:
                    while not ended.is_set():
                        status, content, _ = server.ask("GET", "/ready")
                        about = json.loads(server.ask("GET", "/about")[1] or b"{}")
                        line = f"/ready {status} {content.decode(errors='replace')}  /about problem: "
                        line += f"{about.get('problem')!r} model: {about.get('model')}"
                        if not states or states[-1][1] != line:
                            states.append((time.perf_counter(), line))
                        ended.wait(0.2)

                threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
                threads.append(threading.Thread(target=watch))
                start = time.perf_counter()
                for one in threads:
                    one.start()
                time.sleep(SECONDS_BEFORE)
                build(folder, "two", there.address, store)
                built = time.perf_counter() - start
                time.sleep(SECONDS_AFTER)
                ended.set()
                for one in threads:
                    one.join()
            log = list(server.lines)
    report(answers, truth, start, built, console)
    for at, line in states:
        console.print(f"{at - start:6.1f} s  {line}", markup=False, soft_wrap=True)
    for line in log:
        console.print(f"server: {line}", markup=False, soft_wrap=True)


def report(
    answers: list[Answer], truth: dict[str, dict[str, tuple[str, ...]]], start: float, built: float, console: Console
) -> None:
    """What the clients saw: half of them ask by vectors alone, so that it is known what each model answers."""
    answers = sorted(answers, key=lambda one: one.at)
    statuses = Counter(one.status for one in answers)
    console.print(f"{len(answers):,} searches of {CLIENTS} clients; statuses: {dict(statuses)}")
    gaps = [later.at - earlier.at for earlier, later in itertools.pairwise(answers)]
    console.print(f"longest time without any answer: {1000 * max(gaps):,.0f} ms")
    console.print(f"longest that one search took: {1000 * max(one.seconds for one in answers):,.0f} ms")
    console.print(f"the new index was whole after {built:.1f} s")
    for version in dict.fromkeys(one.version for one in answers if one.version):
        of_it = [one for one in answers if one.version == version]
        models = [model for model in truth if all(one.ids == truth[model][one.query] for one in of_it)]
        agreed = f"each as model {models[0]} answers" if models else "of no one model"
        console.print(f"version {version}: {len(of_it):,} answers, {agreed}; first {of_it[0].at - start:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("away", "exchange"))
    parser.add_argument("--store", choices=("milvus", "lance", "exact"), default="milvus")
    parser.add_argument("--pictures", type=int, default=200)
    parser.add_argument("--no-reload", action="store_true", help="serve without --reload")
    asked = parser.parse_args()
    console = Console(width=max(120, Console().width))
    if asked.part == "away":
        away(asked.store, asked.pictures, console)
    else:
        exchange(asked.store, asked.pictures, reload=not asked.no_reload, console=console)


if __name__ == "__main__":
    main()
