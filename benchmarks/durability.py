"""What it costs that nothing is lost: seconds of each writer and reader, and how many of them go into syncs.

python benchmarks/durability.py
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.row_cache import RowStore
from rungwise.index import Index
from rungwise.models import DualEncoder, EncodedImages, JointEmbedding, load
from rungwise.models.joint import VSEConfig
from rungwise.relevance import CIDErD
from rungwise.relevance.precomputed import load as load_degrees
from rungwise.similarity import Cosine
from rungwise.training.engine import RunState, Trained, load_checkpoint, save_checkpoint
from rungwise.training.steps import Adam

DIMENSION = 512
FEATURES = 2048
CACHED_AT_ONCE = 64
WORDS = ("a", "the", "red", "green", "dog", "cat", "runs", "sleeps", "over", "under", "grass", "street", "two", "three")


@dataclass
class Clock:
    """Seconds of a job's turns, and of the syncs in them."""

    seconds: list[float] = field(default_factory=list)
    syncs: list[int] = field(default_factory=list)
    syncing: list[float] = field(default_factory=list)

    def time(self, job: Callable[[], object]) -> None:
        """One turn of a job."""
        count, spent, sync = 0, 0.0, os.fsync

        def timed(handle: int) -> None:
            nonlocal count, spent
            start = time.perf_counter()
            sync(handle)
            count += 1
            spent += time.perf_counter() - start

        os.fsync = timed
        try:
            start = time.perf_counter()
            job()
            self.seconds.append(time.perf_counter() - start)
        finally:
            os.fsync = sync
        self.syncs.append(count)
        self.syncing.append(spent)

    def numbers(self) -> tuple[float, float, float]:
        """Medians of seconds, of the number of syncs, and of the seconds in them."""
        return statistics.median(self.seconds), statistics.median(self.syncs), statistics.median(self.syncing)


class Given(DualEncoder):
    """A model whose vectors are the features that it is given, so that encoding costs nothing."""

    dimension, fingerprint, similarity = DIMENSION, "given", Cosine()

    def encode_image(self, pictures, *, progress=None, cache=None):
        """The features as they are."""
        rows = np.asarray(pictures[:], np.float32)
        return EncodedImages(rows, np.arange(len(rows)))

    def encode_text(self, texts):
        """Any vectors."""
        return np.random.default_rng(len(texts)).normal(size=(len(texts), DIMENSION)).astype(np.float32)


def jobs(folder: Path, pictures: int) -> dict[str, Callable[[int], object]]:
    """Each writer and reader by name; a job is given the number of its turn."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(pictures, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    drawn = np.array(WORDS)[rng.integers(0, len(WORDS), (2 * pictures, 8))]
    captions = [f"{' '.join(row)} {number}" for number, row in enumerate(drawn)]
    owners = np.repeat(np.arange(pictures), 2)
    ids = tuple(f"{number:07d}.jpg" for number in range(pictures))
    data = ImageCaptions(ids, tuple(captions), owners, features=FeatureRows(vectors))
    some = ImageCaptions(ids[:64], tuple(captions[:128]), owners[:128], features=FeatureRows(vectors[:64]))
    model = Given()

    def cache(turn: int) -> None:
        store = RowStore(folder / f"cache {turn}", (FEATURES,), np.float32)
        for begin in range(0, 64 * CACHED_AT_ONCE, CACHED_AT_ONCE):
            keys = [number.to_bytes(32, "big") for number in range(begin, begin + CACHED_AT_ONCE)]
            store.append(keys, features)

    def read_cache(turn: int) -> None:
        store = RowStore(folder / f"cache {turn}", (FEATURES,), np.float32)
        found = store.find([number.to_bytes(32, "big") for number in range(64 * CACHED_AT_ONCE)])
        np.asarray(store.rows()[found]).sum()

    features = rng.normal(size=(CACHED_AT_ONCE, FEATURES)).astype(np.float32)
    layers = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(16)))
    optimizer = torch.optim.Adam(layers.parameters())
    layers(torch.ones(2, 1024)).sum().backward()
    optimizer.step()
    trained = Trained(layers, nn.Identity(), optimizer, Adam())
    embedding = JointEmbedding.create(VSEConfig(image=FeatureConfig(width=FEATURES), dimension=1024), captions[:2000])
    degrees = CIDErD(captions[:2000], owners[:2000])
    query = vectors[:1]
    return {
        f"index: build, {pictures:,} pictures": lambda turn: Index.build(
            data, model, folder / "index", overwrite=turn > 0
        ),
        "index: open and search": lambda turn: Index.open(folder / "index").search(query, 10),
        "index: 64 more pictures": lambda turn: Index.open(folder / "index").upsert(some, model),
        "cache: 64 x 64 rows of 2,048": cache,
        "cache: read them": read_cache,
        "checkpoint: save (200 MB)": lambda turn: save_checkpoint(folder / "checkpoint", trained, RunState()),
        "checkpoint: load": lambda turn: load_checkpoint(folder / "checkpoint"),
        "model: save (40 MB)": lambda turn: embedding.save_pretrained(folder / "model"),
        "model: load": lambda turn: load(folder / "model", "cpu"),
        "degrees: save 1,000 x 2,000": lambda turn: degrees.save(folder / "degrees"),
        "degrees: load and read": lambda turn: load_degrees(folder / "degrees").dense().sum(),
    }


def measure(pictures: int, repeats: int, place: Path | None) -> dict[str, tuple[float, float, float]]:
    """Median seconds, syncs and seconds in syncs of every job."""
    with tempfile.TemporaryDirectory(dir=place) as made:
        clocks: dict[str, Clock] = {}
        all_jobs = jobs(Path(made), pictures)
        for turn in range(repeats):
            for name, job in all_jobs.items():
                clocks.setdefault(name, Clock()).time(lambda job=job, turn=turn: job(turn))
        return {name: clock.numbers() for name, clock in clocks.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--place", type=Path, help="a folder on the disk to measure; the system's for temporary files")
    options = parser.parse_args()
    table = Table(title="Seconds of each job (median), and what syncs take of it")
    for column in ("job", "seconds", "syncs", "in syncs"):
        table.add_column(column, justify="left" if column == "job" else "right")
    for name, (seconds, syncs, syncing) in measure(options.pictures, options.repeats, options.place).items():
        table.add_row(name, f"{seconds:.3f}", f"{syncs:.0f}", f"{syncing:.3f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
