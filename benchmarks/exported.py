"""A model and its ONNX export: time to the first answer, memory, pictures a second, and whether the hits are the same.

    python benchmarks/exported.py --weights mobilenetv2.safetensors FLICKR8K     # MobileNetV2 and a GRU, untrained
    python benchmarks/exported.py --model run/model FLICKR8K                     # a model of your own
    python benchmarks/exported.py --model run/model FLICKR8K --pictures 1000 --repeats 9

Commands are processes of their own, model and export by turns. Of a process the highest resident memory is printed, of
the server what is resident while it waits: after its start, after a search by text, and after one by picture. Each has
its own index of the same pictures, whose captions are the queries.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import numpy as np
from rich.console import Console
from rich.table import Table

from measuring import alone, status
from rungwise.data import ImageCaptions, read
from rungwise.index import Index, Searcher
from rungwise.models import load_dual_encoder

MB = 2**20
COMMAND = (sys.executable, "-m", "rungwise")
KINDS = ("torch", "onnx")
console = Console(width=110)


@dataclass(frozen=True)
class Run:
    """What a process took.

    Attributes:
        seconds: From its start to its end, or to its first answer.
        memory: Bytes.
    """

    seconds: float
    memory: float


def make_model(weights: str, place: Path, folder: Path) -> None:
    data = read(place)
    from rungwise.encoders.images import ImageConfig
    from rungwise.models import JointEmbedding, VSEConfig

    image = ImageConfig("mobilenetv2_100", weights=weights)
    JointEmbedding.create(VSEConfig(image=image), data.captions).save_pretrained(folder)


def make_index(place: Path, count: int, model: Path, folder: Path) -> str:
    data, encoder = read(place), load_dual_encoder(model)
    begun = time.perf_counter()
    index = Index.build(data.select(range(min(count, len(data)))), encoder, folder, model_location=str(model))
    return f"{len(index)} pictures and {len(index.captions)} captions in {time.perf_counter() - begun:.1f} s"


def run(*words: object) -> Run:
    """A command, from its start to its end; its highest resident memory."""
    begun = time.perf_counter()
    process = subprocess.Popen([*COMMAND, *map(str, words)], stdout=subprocess.DEVNULL)
    _, code, used = os.wait4(process.pid, 0)
    if code:
        raise SystemExit(f"rungwise {words[0]} failed")
    return Run(time.perf_counter() - begun, used.ru_maxrss * 1024)


def serve(index: Path, query: str, picture: Path) -> list[Run]:
    """The server: until it answers at all, a search by text, and one by picture; memory after each."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [*COMMAND, "serve", str(index), "--port", "0", "--no-browser"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        said = ""
        while not (found := re.search(r"http://\S+", said)):
            said = process.stdout.readline()
        address, steps = found[0].rstrip("/"), []
        for ask in (
            f"{address}/about",
            f"{address}/search?q={quote(query)}",
            Request(f"{address}/pictures", picture.read_bytes(), method="POST"),
        ):
            with urlopen(ask, timeout=60) as answer:
                answer.read()
            steps.append(Run(time.perf_counter() - begun, status("VmRSS", process.pid)))
            begun = time.perf_counter()
        return steps
    finally:
        process.terminate()
        process.wait()


def by_turns(repeats: int, job: Callable[[str], Sequence[Run]]) -> dict[str, list[Run]]:
    """Medians of each step of a job, of model and export by turns."""
    taken: dict[str, list[Sequence[Run]]] = {kind: [] for kind in KINDS}
    for _ in range(repeats):
        for kind in KINDS:
            taken[kind].append(job(kind))
    return {
        kind: [
            Run(statistics.median(one.seconds for one in step), statistics.median(one.memory for one in step))
            for step in zip(*runs, strict=True)
        ]
        for kind, runs in taken.items()
    }


def add(table: Table, what: str, torch: Run, onnx: Run) -> None:
    table.add_row(
        what,
        *(f"{one.seconds:.2f} s" for one in (torch, onnx)),
        f"{torch.seconds / onnx.seconds:.1f}",
        *(f"{one.memory / MB:.0f} MB" for one in (torch, onnx)),
        f"{torch.memory / onnx.memory:.1f}",
    )


def compare_hits(home: Path, data: ImageCaptions, queries: int, k: int = 10) -> None:
    """How many lists of hits are the same, and how far scores lie apart."""
    searchers = [Searcher(Index.open(home / f"index-{kind}"), load_dual_encoder(home / kind)) for kind in KINDS]
    texts = list(dict.fromkeys(data.captions))[:queries]
    pictures = data.paths[:queries]
    for what, asked, ask in (
        ("text", texts, Searcher.search_text),
        ("picture", pictures, Searcher.search_image),
    ):
        both = [[ask(one, query, k) for query in asked] for one in searchers]  # type: ignore[operator]
        same = sum([hit.id for hit in a] == [hit.id for hit in b] for a, b in zip(*both, strict=True))
        as_sets = sum({hit.id for hit in a} == {hit.id for hit in b} for a, b in zip(*both, strict=True))
        first = sum(a[0].id == b[0].id for a, b in zip(*both, strict=True))
        scores = [np.array([[hit.score for hit in hits] for hits in one]) for one in both]
        console.print(
            f"{len(asked)} searches by {what}: the first hit is the same in {first}, the {k} first are in {as_sets},"
            f" and in the same order in {same}; scores at most {np.abs(scores[0] - scores[1]).max():.1e} apart"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="pictures with captions")
    parser.add_argument("--model", help="folder of a model; otherwise MobileNetV2 with a new GRU")
    parser.add_argument("--weights", default="hub", help="of MobileNetV2, where no model is given")
    parser.add_argument("--pictures", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    asked = parser.parse_args()
    whole = read(asked.data)
    data = whole.select(range(min(asked.pictures, len(whole))))
    # What takes memory is done in other processes: at first a new process counts that of this one as its own.
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["RUNGWISE_CACHE"] = str(home / "cache")
        if asked.model is None:
            alone(make_model, asked.weights, asked.data, home / "torch")
        else:
            (home / "torch").symlink_to(Path(asked.model).resolve())
        subprocess.run([*COMMAND, "export", home / "torch", "--out", home / "onnx"], check=True)
        for kind in KINDS:
            said = alone(make_index, asked.data, asked.pictures, home / kind, home / f"index-{kind}")
            console.print(f"{kind}: {said}")
        query, picture = data.captions[0], data.paths[0]
        table = Table("", "torch", "onnx", "ratio", "torch", "onnx", "ratio", title="time and memory")
        indexes = {kind: home / f"index-{kind}" for kind in KINDS}
        for what, words in (("search TEXT", [query]), ("search --image PICTURE", ["--image", picture])):
            found = by_turns(asked.repeats, lambda kind, words=words: [run("search", indexes[kind], *words)])
            add(table, what, found["torch"][0], found["onnx"][0])
        found = by_turns(asked.repeats, lambda kind: serve(indexes[kind], query, picture))
        for step, what in enumerate(("serve, until it answers", "  first search by text", "  first search by picture")):
            add(table, what, found["torch"][step], found["onnx"][step])
        console.print(table)
        alone(compare_hits, home, data, asked.queries)


if __name__ == "__main__":
    main()
