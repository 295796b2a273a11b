"""Evaluation in shards: seconds, and the highest memory of each process, as the gallery grows.

    python benchmarks/sharded_evaluation.py                                    # 50,000, 200,000 and 1,000,000 images
    python benchmarks/sharded_evaluation.py --images 1000000 --captions 10000 --shards 32 --ways ray
    python benchmarks/sharded_evaluation.py --images 20000 --captions 500      # a quick look

Embeddings are random, of 512 numbers in float16, in ``.npy`` files that are made first. Captions belong to images drawn
at random, so that most images have none. Both directions are measured: every caption searches all images, and every
image all captions. Each line is an evaluation in a process of its own: in one piece, in shards one after another, or in
shards by two workers of Ray. Memory is the highest that was resident, shared pages and pages of files included. Every
line's numbers must be those of the first line of that size.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from measuring import alone, peak, status
from rungwise.core.compute import GB

WIDTH = 512
WAYS = ("piece", "shards", "ray")
ADDRESS = {"piece": None, "shards": None, "ray": "local"}
WORKERS = 2


def made(folder: Path, images: int, captions: int) -> None:
    """Write the embeddings and who belongs to whom."""
    from rungwise.core.formats import NpyWriter

    draw = np.random.default_rng(0)
    for name, count in (("images", images), ("captions", captions)):
        with NpyWriter(folder / f"{name}.npy", (WIDTH,), np.float16) as file:
            for start in range(0, count, 10_000):
                part = draw.standard_normal((min(10_000, count - start), WIDTH), dtype=np.float32)
                file.append(part / np.linalg.norm(part, axis=1, keepdims=True))
    np.save(folder / "owners.npy", np.sort(draw.integers(0, images, captions)))


class Watched(threading.Thread):
    """Looks for the workers of Ray, and for the highest memory of each."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.highest: dict[int, int] = {}

    def run(self) -> None:
        """Look, again and again; the pages of the arena that all workers share are counted for each."""
        while True:
            for one in Path("/proc").iterdir():
                if one.name.isdecimal() and self._is_worker(one):
                    self.highest[int(one.name)] = max(self.highest.get(int(one.name), 0), status("VmHWM", one.name))
            time.sleep(0.2)

    def _is_worker(self, process: Path) -> bool:
        try:
            return process.joinpath("cmdline").read_bytes().startswith(b"ray::")
        except OSError:
            return False


def evaluated(way: str, folder: Path, shards: int) -> tuple[dict[str, float], float, float, float]:
    """Numbers, seconds, and the highest memory in bytes of this process and of a worker."""
    from rungwise.evaluation import EvaluationSettings, Shards, evaluate
    from rungwise.evaluation.inputs import read_embeddings

    watched = Watched()
    if way == "ray":
        watched.start()
    start = time.perf_counter()
    image, text = (
        read_embeddings(folder / f"{side}.npy", stays_in_file=way != "piece") for side in ("images", "captions")
    )
    result = evaluate(
        image_embeddings=image,
        text_embeddings=text,
        image_of_caption=np.load(folder / "owners.npy"),
        settings=EvaluationSettings(shards=None if way == "piece" else Shards(shards, ADDRESS[way], WORKERS)),
    )
    seconds = time.perf_counter() - start
    return dict(result.numbers), seconds, peak(), max(watched.highest.values(), default=float("nan"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--images", type=int, nargs="+", default=[50_000, 200_000, 1_000_000])
    parser.add_argument("--captions", type=int, default=1000)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    asked = parser.parse_args()
    console = Console(width=140)
    load = os.getloadavg()[0]
    table = Table(
        title=f"{asked.captions:,} captions, {asked.shards} shards a direction, {len(os.sched_getaffinity(0))} cores,"
        f" load {load:.1f} at the beginning"
    )
    heads = ("images", "files, GB", "way", "seconds", "this process, GB", "a worker, GB", "t2i MeanR", "same numbers")
    for head in heads:
        table.add_column(head, justify="right")
    for images in asked.images:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            made(folder, images, asked.captions)
            size = sum(file.stat().st_size for file in folder.iterdir()) / GB
            first = None
            for way in asked.ways:
                numbers, seconds, own, worker = alone(evaluated, way, folder, asked.shards)
                first = first or numbers
                cells = (f"{images:,}", f"{size:.2f}", way, f"{seconds:.1f}", f"{own / GB:.2f}", f"{worker / GB:.2f}")
                table.add_row(*cells, f"{numbers['t2i/MeanR']:.3f}", "yes" if numbers == first else "NO")
                console.print(*cells)
    console.print(table)


if __name__ == "__main__":
    main()
