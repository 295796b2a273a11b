"""The plan beside what is measured, line by line, and the rates from which ``rungwise plan`` reckons.

    python benchmarks/planning.py FOLDER ... --model EXPORTED --torch MODEL            # plan beside measured
    python benchmarks/planning.py FOLDER ... --model EXPORTED --torch MODEL --write    # and keep these rates

``planning_data.py`` makes what is measured. Each FOLDER holds ``photos`` (a collection), or ``index`` (its index, in
LanceDB's store), or both. From photos an index is made anew, in a temporary folder; without them, or with more than
``--build-up-to`` pictures, the index that is there is served, and lines that need photos stay empty. MODEL is the model
of the indexes, EXPORTED its export.

Every job runs in a process of its own, without limits of threads. Seconds of building and of an update are those of the
clock, searches are counted in processor time, and searches of a machine are those that eight clients get from one
server, whose cores they share.

``--write`` puts the rates into ``src/rungwise/planning/measured.csv``; those of other sizes stay as they are. Then
``python benchmarks/planning.py --print`` prints plans and rates anew where the documentation shows them.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import clients
from measuring import alone, status
from scaling import bytes_below
from serving import processor, served

_REPOSITORY = Path(__file__).parents[1]
RATES = _REPOSITORY / "src" / "rungwise" / "planning" / "measured.csv"
COSTS = _REPOSITORY / "docs/reference/lookup/costs-search.md"
SCALING = _REPOSITORY / "docs/operate/scaling"
PLANS = SCALING / "plans.md"
_GROWS, _RIGHTNESS = "\n## What grows with a collection\n", "\n## How right is the plan\n"
_PLAN = re.compile(r"^```text\n\$ rungwise (plan .+)\n(?:.*\n)*?```$", re.MULTILINE)
_QUERIES = 400
_WORDS = 3
"""Words of a query: people type fewer than a caption has."""
_ENCODED = 512
"""Pictures that the model really encodes while an index is made; vectors of all others are drawn."""
_CLIENTS, _SECONDS = 8, 12.0
_LEAST = 0.01
"""What two measurements cannot tell from nothing, where a rate is their difference."""
_SMALL = 600
"""Pictures of the collection whose rows take next to nothing, but fill a batch of the model."""
_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
_DIMENSION = 512


def queries_of(folder: Path, count: int) -> list[str]:
    """Distinct beginnings of captions of an index, drawn from its first rows."""
    from rungwise.index import Index

    captions = (text for item in islice(Index.open(folder).items(), 20 * count) for text in item.captions[:1])
    found = dict.fromkeys(" ".join(text.split()[:_WORDS]) for text in captions)
    return random.Random(0).sample(list(found), min(count, len(found)))


def drawn_queries() -> list[str]:
    """Queries like those of :func:`queries_of`, without an index."""
    from rungwise.planning._drawn_index import drawn_texts

    return [" ".join(text.split()[:_WORDS]) for text in drawn_texts(60)]


def parts(folder: Path, model: str, queries: list[str]) -> dict[str, float]:
    """Milliseconds of the parts of a search, in this process."""
    from rungwise.index import Index
    from rungwise.models import load_dual_encoder
    from rungwise.planning import search_parts

    return search_parts(Index.open(folder), load_dual_encoder(model), queries)


def serving(folder: Path, model: str, work: Path, queries: list[str]) -> dict[str, float]:
    """A server asked by one client, then by several: processor time of a search, memory, searches a second."""
    with (
        served(folder, work / "log", "--model", model) as (port, server),
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
    ):

        def visited(many: int, seconds: float) -> tuple[int, float]:
            before = processor(server)
            visits = pool.submit(clients.visit, port, many, seconds, queries).result()
            assert not any(visit.outcome for visit in visits), {visit.outcome for visit in visits}
            return len(visits), processor(server) - before

        visited(1, 5.0)  # what is read late
        count, used = visited(1, _SECONDS)
        together, _ = visited(_CLIENTS, _SECONDS)
        return {
            # Pages of the index's files are there once for all processes, and the system takes them back.
            "memory": status("VmHWM", server) - mapped_bytes(server, folder),
            "whole": 1000 * used / count,
            "searches": together / _SECONDS,
        }


def mapped_bytes(process: int, folder: Path) -> int:
    """Bytes in memory of the files below a folder that a process has mapped."""
    found, inside = 0, False
    for line in Path(f"/proc/{process}/smaps").read_text().splitlines():
        name, _, value = line.partition(":")
        if "-" in name:  # addresses: another mapping begins
            inside = f"{folder.resolve()}/" in line
        elif inside and name == "Rss":
            found += 1024 * int(value.split()[0])
    return found


def partly(model: str, counted: list[float], encoded: int = _ENCODED) -> Any:
    """The model, which encodes ``encoded`` pictures and captions, and draws the vectors of all others.

    ``counted`` takes up the seconds that this takes.
    """
    from rungwise.models import DualEncoder, EncodedImages, load_dual_encoder
    from rungwise.similarity import unit_rows

    real = load_dual_encoder(model)
    left = {"pictures": encoded, "texts": encoded}
    drawn = np.random.default_rng(0)

    class Partly(DualEncoder):
        dimension, similarity = real.dimension, real.similarity
        fingerprint, stands_for = real.fingerprint, real.stands_for

        def encode_image(self, pictures: Any, *, progress: Any = None, cache: Any = None) -> EncodedImages:
            start = time.perf_counter()
            try:
                if left["pictures"] > 0:
                    left["pictures"] -= len(pictures)
                    return real.encode_image(pictures, progress=progress, cache=cache)
                return EncodedImages(self._drawn(len(pictures)), np.arange(len(pictures)))
            finally:
                counted.append(time.perf_counter() - start)

        def encode_text(self, texts: Any) -> Any:
            return self.encode_captions(texts)

        def encode_captions(self, texts: Any, *, progress: Any = None, cache: Any = None) -> Any:
            start = time.perf_counter()
            try:
                if left["texts"] > 0:
                    left["texts"] -= len(texts)
                    return real.encode_captions(texts, progress=progress, cache=cache)
                return self._drawn(len(texts))
            finally:
                counted.append(time.perf_counter() - start)

        def _drawn(self, count: int) -> Any:
            # No two batches may be the same: a search would fold their pictures as near-duplicates.
            return unit_rows(drawn.standard_normal((count, real.dimension), np.float32))

    return Partly()


def indexing(photos: Path, folder: Path, model: str) -> dict[str, float]:
    """A new index of a collection."""
    from rungwise.data import read
    from rungwise.index import Index

    counted: list[float] = []
    encoder = partly(model, counted)
    start, used = time.perf_counter(), time.process_time()
    Index.build(read(photos), encoder, folder, store="lance", thumbnails=False, model_location=model)
    took = time.perf_counter() - start
    return {
        "memory": status("VmHWM"), "seconds": took - sum(counted), "encoding": sum(counted),
        "processor": time.process_time() - used, "disk": bytes_below(folder),
    }  # fmt: skip


def update(photos: Path, folder: Path) -> float:
    """Seconds of the command once more, where nothing changed, in the median of three."""
    command = [sys.executable, "-m", "rungwise", "index", str(photos), "--out", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # which notes what stands in the folder
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        taken.append(time.perf_counter() - start)
    return median(taken)


def small_collection(folder: Path) -> Path:
    """Drawn photos, with a caption for the first two."""
    from PIL import Image

    photos = folder / "small"
    photos.mkdir()
    for number in range(_SMALL):
        Image.effect_noise((64, 48), 20 + number / 10).convert("RGB").save(photos / f"{number}.jpg")
    lines = ["file_name,text", "0.jpg,a dog runs over the grass", "1.jpg,two people sit on a bench in the sun"]
    (photos / "metadata.csv").write_text("\n".join(lines))
    return photos


def small_model(folder: Path) -> tuple[str, str]:
    """A model with random weights that is hardly larger than nothing, and its export."""
    from rungwise.encoders.images import ImageConfig
    from rungwise.models import JointEmbedding, VSEConfig
    from rungwise.models.export import export_onnx

    image = ImageConfig("test_resnet", weights="random", size=64)
    model = JointEmbedding.create(VSEConfig(image=image, dimension=_DIMENSION), ["a dog runs over the grass"])
    model.save_pretrained(folder / "torch")
    export_onnx(model, folder / "exported")
    return str(folder / "torch"), str(folder / "exported")


def loaded(model: str) -> int:
    """Memory of this process with a model that has read a text."""
    from rungwise.models import load_dual_encoder

    load_dual_encoder(model).encode_text(["a dog runs over the grass"])
    return status("VmRSS")


def query_ms(model: str, queries: list[str]) -> float:
    """Processor time of the words of one query."""
    from rungwise.models import load_dual_encoder

    encoder = load_dual_encoder(model)
    encoder.encode_text(queries[:1])
    taken = []
    for _ in range(3):
        start = time.process_time()
        for text in queries:
            encoder.encode_text([text])
        taken.append(1000 * (time.process_time() - start) / len(queries))
    return min(taken)


def weights_of(model: str) -> int:
    """Bytes of a model's weights."""
    return sum(path.stat().st_size for path in Path(model).iterdir() if path.suffix in (".onnx", ".safetensors"))


def largest_model() -> dict[str, float]:
    """The default model with random weights: its size, and the words of one query."""
    import torch
    from transformers import SiglipConfig, SiglipModel, SiglipTextConfig, SiglipVisionConfig

    text = SiglipTextConfig(vocab_size=256_000, max_position_embeddings=64, projection_size=768)
    model = SiglipModel(
        SiglipConfig(
            text_config=text.to_dict(), vision_config=SiglipVisionConfig(image_size=256, patch_size=32).to_dict()
        )
    ).eval()
    asked, taken = torch.randint(0, 256_000, (1, 64)), []
    with torch.inference_mode():
        for _ in range(10):
            start = time.process_time()
            model.get_text_features(input_ids=asked)
            taken.append(1000 * (time.process_time() - start))
    return {"bytes": 4 * sum(one.numel() for one in model.parameters()), "query": sorted(taken)[len(taken) // 2]}


def network_bytes(network: str) -> int:
    """Bytes of the weights of an image network without its classifier."""
    import timm

    weights = timm.create_model(network, pretrained=False, num_classes=0).state_dict()
    return sum(one.numel() * one.element_size() for one in weights.values())


@dataclass
class Measured:
    """What was measured of one collection: lines of a plan, in bytes, seconds, milliseconds and searches a second."""

    pictures: int
    captions: int
    lines: dict[str, float] = field(default_factory=dict)
    with_torch: dict[str, float] = field(default_factory=dict)
    of_parts: dict[str, float] = field(default_factory=dict)


Once = dict[str, float]
"""Rates that do not depend on rows, by their names."""


def once(work: Path, exported: str, torch_model: str) -> Once:
    """Memory of processes and models, and the words of one query."""
    photos, (tiny_torch, tiny_exported) = alone(small_collection, work), alone(small_model, work)
    queries = alone(drawn_queries)
    found: Once = {}
    for kind, model, tiny in (("exported", exported, tiny_exported), ("torch", torch_model, tiny_torch)):
        weights = weights_of(model)
        share = (alone(loaded, model) - alone(loaded, tiny)) / (weights - weights_of(tiny))
        built = alone(indexing, photos, work / f"{kind}.index", model)
        server = serving(work / f"{kind}.index", model, work, queries)
        found |= {
            f"{kind}_weights": share,
            f"{kind}_process": server["memory"] - share * weights,
            f"{kind}_indexing": built["memory"] - share * weights,
        }
        name = "quick, exported" if kind == "exported" else "quick"
        found[f"query of {name}"] = alone(query_ms, model, queries)
    found["exact_floor"] = alone(exact_floor, work)
    default = alone(largest_model)
    found["query of siglip2-base-patch32-256"] = default["query"]
    found["weights of siglip2-base-patch32-256"] = default["bytes"]
    found["weights of quick"] = weights_of(torch_model)
    found["weights of resnet50"] = alone(network_bytes, "resnet50")
    return found


def exact_floor(work: Path) -> float:
    """Milliseconds of one search in the exact store with hardly a row."""
    from rungwise.index import ExactStore, StoreBatch
    from rungwise.similarity import Cosine, unit_rows

    vectors = unit_rows(np.random.default_rng(0).standard_normal((100, _DIMENSION), np.float32))
    taken = []
    with ExactStore.create(work / "floor", _DIMENSION, Cosine()) as store:
        store.upsert_batches([StoreBatch([str(at) for at in range(100)], vectors, [{"file": "x"}] * 100)])
        for vector in vectors:
            start = time.perf_counter()
            store.search(vector[None], 10)
            taken.append(1000 * (time.perf_counter() - start))
    return sorted(taken)[len(taken) // 2]


def counted(folder: Path) -> tuple[int, int]:
    """Pictures and captions of an index."""
    from rungwise.index import Index

    index = Index.open(folder)
    return len(index), index.caption_store.count()


def measure(folder: Path, work: Path, asked: argparse.Namespace) -> Measured:
    """All lines of a plan that this collection has something for."""
    index, photos = folder / "index", folder / "photos"
    build = photos.is_dir() and (not index.is_dir() or alone(counted, index)[0] <= asked.build_up_to)
    built = again = None
    if build:
        index = work / f"{folder.name}.index"
        built = alone(indexing, photos, index, asked.model)
        again = alone(update, photos, index)
    pictures, captions = alone(counted, index)
    queries = alone(queries_of, index, _QUERIES)
    found = Measured(pictures, captions)
    found.of_parts = alone(parts, index, asked.model, queries[: asked.queries])
    server, of_torch = serving(index, asked.model, work, queries), serving(index, asked.torch, work, queries)
    found.lines = {
        "disk": bytes_below(index),
        "memory, serving": server["memory"],
        "one search": found.of_parts["store"],
        "whole search": server["whole"],
        "searches of a machine": server["searches"],
    }
    found.with_torch = {
        "memory, serving": of_torch["memory"],
        "whole search": of_torch["whole"],
        "searches of a machine": of_torch["searches"],
    }
    found.of_parts["answer"] = max(0.0, server["whole"] - sum(found.of_parts[one] for one in _WITHOUT_ANSWER))
    found.of_parts["busy"] = server["searches"] * server["whole"] / 1000
    if built and again:
        found.lines |= {
            "memory, indexing": built["memory"],
            "building": built["seconds"],
            "update, nothing new": again,
        }
    return found


_WITHOUT_ANSWER = ("encoding", "vectors", "words", "folding", "end")


def rates_of(found: Measured, known: Once, exported: str) -> dict[tuple[str, int], float]:
    """Rates by their name and rows, such that a plan for this collection gives what was measured."""
    from rungwise.index.stores import LISTS_PAY_FROM_BYTES
    from rungwise.planning import STORED

    n, rows = found.pictures, found.pictures + found.captions
    held = 4 * _DIMENSION * max(n, found.captions) < LISTS_PAY_FROM_BYTES
    weights = known["exported_weights"] * weights_of(exported)
    made = {
        ("held_vectors" if held else "lists_vectors", n): found.of_parts["vectors"],
        **{(one, n): found.of_parts[one] for one in ("words", "folding", "end", "answer", "busy")},
        ("held_memory" if held else "lists_memory", rows): found.lines["memory, serving"]
        - known["exported_process"]
        - weights,
    }
    made["held_search" if held else "lists_search", n] = found.lines["one search"]
    if "building" in found.lines:
        written = rows / STORED["lance_insert"].value
        if not held:
            written += rows * STORED["lists_build"].value / 1e6
        made["preparing", rows] = found.lines["building"] - written
        made["update", rows] = found.lines["update, nothing new"]
        made["indexing_memory", rows] = found.lines["memory, indexing"] - known["exported_indexing"] - weights
    return {key: max(value, _LEAST) for key, value in made.items()}


def compared(found: Measured, asked: argparse.Namespace) -> list[str]:
    """Lines of the plan beside what was measured, with the ratio."""
    from rungwise.planning import Need, plan

    lines = []
    captions = found.captions / found.pictures
    for model, measured in ((asked.model, found.lines), (asked.torch, found.with_torch)):
        planned = plan(Need(found.pictures, captions=captions, model=model, store="lance", dimension=_DIMENSION))
        for name, value in measured.items():
            said = planned[name]
            expected = said.known * (3600 if said.unit == "hours" else 1)
            ratio = max(expected / value, value / expected)
            kind = "exported" if model == asked.model else "torch"
            unit = {"bytes": 1e6, "hours": 1}.get(said.unit, 1)
            lines.append(
                f"| {found.pictures:,} | {name}, {_UNITS[said.unit]} | {kind} | {_said(expected / unit)}"
                f" | {_said(value / unit)} | {ratio:.2f} | {'yes' if ratio <= _RIGHT else 'NO'} |"
            )
    return lines


def _said(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


_UNITS = {"bytes": "MB", "hours": "s", "ms": "ms", "a second": "a second"}
_RIGHT = 1.5


def known_before() -> Once:
    """What does not depend on rows, as it was written before."""
    with RATES.open(encoding="utf-8", newline="") as file:
        return {line["name"]: float(line["value"]) for line in csv.DictReader(file) if not line["rows"]}


def write(rates: Mapping[tuple[str, int], float], known: Once) -> None:
    """Put rates into the package's file, beside those of other sizes."""
    with RATES.open(encoding="utf-8", newline="") as file:
        lines = {(line["name"], int(line["rows"] or 0)): float(line["value"]) for line in csv.DictReader(file)}
    lines |= {(name, 0): value for name, value in known.items()} | dict(rates)
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("name", "rows", "value"))
    order = list(dict.fromkeys(name for name, _ in lines))
    for name, rows in sorted(lines, key=lambda one: (order.index(one[0]), one[1])):
        writer.writerow((name, rows or "", f"{lines[name, rows]:.4g}"))
    RATES.write_text(text.getvalue(), encoding="utf-8")


def print_anew() -> None:
    """Put the rates into the page on costs, and every plan that is shown as it is now into the pages on scaling."""
    from rungwise.planning import STORED

    lines = ["| rate | rows | value |", "| --- | --- | --- |"]
    section = _GROWS.strip().removeprefix("## ")
    lines += [
        f"| {rate.what} | {f'{rate.rows:,}' if rate.rows else ''} | {rate.said} |"
        for rate in STORED.values()
        if rate.source.endswith(section)
    ]
    _replace_table(COSTS, _GROWS, lines)
    for page in SCALING.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(_PLAN.sub(_printed, text), encoding="utf-8")


def _printed(shown: re.Match[str]) -> str:
    command = [sys.executable, "-m", "rungwise", *shown[1].split()]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return f"```text\n$ rungwise {shown[1]}\n{found.rstrip()}\n```"


def put_into_page(lines: list[str]) -> None:
    """Put lines of plan and measured into the page on plans, in place of those of the same sizes."""
    before = _table(PLANS, _RIGHTNESS)
    sizes = {line.split("|")[1].strip() for line in lines}
    kept = [line for line in before[2:] if line.split("|")[1].strip() not in sizes]
    rows = sorted(kept + lines, key=lambda line: int(line.split("|")[1].replace(",", "")))
    _replace_table(PLANS, _RIGHTNESS, [*before[:2], *rows])


def _table(page: Path, section: str) -> list[str]:
    """Lines of the first table of a section."""
    part = page.read_text(encoding="utf-8").partition(section)[2]
    return part[part.index("\n|") + 1 :].partition("\n\n")[0].strip().splitlines()


def _replace_table(page: Path, section: str, lines: list[str]) -> None:
    text = page.read_text(encoding="utf-8")
    head, title, part = text.partition(section)
    part = part.replace("\n".join(_table(page, section)), "\n".join(lines), 1)
    page.write_text(head + title + part, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*", help="each with photos, or index, or both")
    parser.add_argument("--model", help="the exported model")
    parser.add_argument("--torch", help="the model from which it was exported")
    parser.add_argument("--build-up-to", type=int, default=200_000, help="pictures of which an index is made anew")
    parser.add_argument("--queries", type=int, default=60, help="searched in each of four ways, in three turns")
    parser.add_argument("--known", action="store_true", help="take processes and models as they were written before")
    parser.add_argument("--work", type=Path, help="where to work; default the system's temporary folder")
    parser.add_argument("--write", action="store_true", help="keep the rates in the package")
    parser.add_argument("--page", action="store_true", help="put plan and measured into the page on plans")
    parser.add_argument("--print", action="store_true", help="print rates and plans anew into the pages, and end")
    asked = parser.parse_args()
    if asked.print:
        print_anew()
        return
    if not (asked.folders and asked.model and asked.torch):
        parser.error("give a folder, --model and --torch")
    for name in _LIMITS:
        os.environ.pop(name, None)
    print(f"load before: {os.getloadavg()[0]:.1f}", flush=True)
    with tempfile.TemporaryDirectory(dir=asked.work) as work:
        os.environ["RUNGWISE_CACHE"] = str(Path(work) / "cache")
        known = known_before() if asked.known else once(Path(work), asked.model, asked.torch)
        for name, value in known.items():
            print(f"{name}: {value:.4g}", flush=True)
        print("| pictures | line | model | plan | measured | ratio | within 1.5 |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        rates: dict[tuple[str, int], float] = {}
        for folder in asked.folders:
            found = measure(folder, Path(work), asked)
            beside = compared(found, asked)
            print("\n".join(beside), flush=True)
            if asked.page:
                put_into_page(beside)
            rates |= rates_of(found, known, asked.model)
    for (name, rows), value in rates.items():
        print(f"{name} at {rows}: {value:.4g}")
    print(f"load after: {os.getloadavg()[0]:.1f}")
    if asked.write:
        write(rates, known)
        print(f"written: {RATES}")


if __name__ == "__main__":
    main()
