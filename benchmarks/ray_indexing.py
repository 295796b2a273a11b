"""Indexing with Ray's workers against one process: pictures a second, whether all bits are equal, and what kills cost.

python benchmarks/ray_indexing.py
python benchmarks/ray_indexing.py --pictures 1000 --rounds 3 --workers 2

The command ``rungwise index`` makes an index of the same pictures with one process and with Ray's workers on this
machine, each with an empty cache; one process comes before and after, since machines change their pace. Ids, their
order, records and vectors of all rows are compared bit for bit. Then come rounds: the command with ``--ray`` is
started, one of its workers is killed at a random moment, later the command itself, and the same command is given
again. What is in the index then is compared with what one process made.

Pictures are the photos of Flickr8K where ``RUNGWISE_DATA`` names a folder that has them, else drawn scenes. The model
is a MobileNetV2 that sees 96 x 96 pixels, with a head that was never trained. Its weights are the published ones where
they are at hand.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from rungwise.core import UserError
from rungwise.data.layouts import PictureFolder
from rungwise.encoders.images import ImageConfig
from rungwise.index import Index
from rungwise.models import JointEmbedding, VSEConfig
from rungwise.scenes import SceneConfig, generate

WEIGHTS = "weights/mobilenetv2_100_imagenet.safetensors"
LONG_AGO = 1_600_000_000
WORKER = b"ray::MapWorker"
DONE = re.compile(r"\((\d+) encoded\)\n.* indexed in ([0-9.]+) s", re.MULTILINE)
FIRST, MORE, APART = 0.6, 1.0, 4.0
"""The share of all rows after which a worker is killed, seconds more, and seconds until the command is."""


@dataclass(frozen=True)
class Rows:
    """What is in an index: ids and records in order, and the vectors."""

    ids: list[str]
    records: list[object]
    vectors: np.ndarray


def made(folder: Path, count: int) -> str:
    """Pictures of a time long ago; gives what they are."""
    data = os.environ.get("RUNGWISE_DATA", "")
    photos = PictureFolder(Path(data) / "flickr8k") if data else None
    if photos is not None and len(photos.pictures) >= count:
        folder.mkdir()
        for relative in photos.pictures[:count]:
            shutil.copyfile(photos.root / relative, folder / relative.name)
    else:
        scenes = folder.with_name("scenes")
        generate(scenes, SceneConfig(pictures=count, captions_per_picture=1, side=224))
        folder.mkdir()
        for relative in PictureFolder(scenes).pictures:
            shutil.copyfile(scenes / relative, folder / relative.name)
    for file in folder.iterdir():
        os.utime(file, (LONG_AGO, LONG_AGO))
    return "photos of Flickr8K" if photos is not None and len(photos.pictures) >= count else "drawn scenes"


def make_model(folder: Path) -> None:
    """A model that every process loads; pictures of 96 x 96 keep the rounds short."""
    weights = Path(os.environ.get("RUNGWISE_DATA", "nowhere")) / WEIGHTS
    known = {"size": 96, "options": {"pad_type": "same"}, "mean": (0.5,) * 3, "std": (0.5,) * 3}
    image = ImageConfig("mobilenetv2_100", weights=str(weights) if weights.is_file() else "random", **known)
    JointEmbedding.create(VSEConfig(image=image, dimension=256), ["a dog"]).save_pretrained(folder)


def command(photos: Path, model: Path, out: Path, cache: Path, *options: str) -> subprocess.Popen[str]:
    """The command, started."""
    words = [sys.executable, "-m", "rungwise", "index", str(photos), "--model", str(model), "--out", str(out)]
    words += ["--precision", "float32", *options]
    return subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"RUNGWISE_CACHE": str(cache)},
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, float]:
    """Pictures that a command encoded, and the seconds that it says."""
    said, _ = process.communicate()
    found = DONE.search(said)
    if process.returncode or found is None:
        raise SystemExit(f"the command ended with {process.returncode}:\n{said}")
    return int(found[1]), float(found[2])


def rows_of(out: Path) -> Rows:
    """All rows."""
    index = Index.open(out)
    pairs = list(index.picture_store.records())
    ids = [one for one, _ in pairs]
    vectors = [row.vector for row in index.picture_store.get(ids).values()]
    return Rows(ids, [record for _, record in pairs], np.array(vectors, np.float32))


def same(one: Rows, other: Rows) -> bool:
    """Whether ids, their order, records and all bits of the vectors are the same."""
    return one.ids == other.ids and one.records == other.records and one.vectors.tobytes() == other.vectors.tobytes()


def processes(cache: Path, beginning: bytes = b"") -> list[int]:
    """Processes that a command with this cache started, with it, by how their command line begins."""
    mark, found = f"RUNGWISE_CACHE={cache}\0".encode(), []
    for place in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            number = int(place.name)
            if (place / "cmdline").read_bytes().startswith(beginning) and mark in (place / "environ").read_bytes():
                found.append(number)
    return [number for number in found if number != os.getpid()]


def rows_in(out: Path, process: subprocess.Popen[str], least: int) -> int:
    """How many rows an index has once there are so many, or its command has ended."""
    while True:
        with contextlib.suppress(UserError):
            if (found := len(Index.open(out))) >= least or process.poll() is not None:
                return found
        time.sleep(0.1)


def one_round(photos: Path, model: Path, out: Path, cache: Path, count: int, draw: random.Random) -> tuple[str, ...]:
    """Kill a worker, then the command, then give it again; what was seen, without the comparison."""
    process = command(photos, model, out, cache, "--ray", "--workers", "2")
    while not processes(cache, WORKER):
        if process.poll() is not None:
            raise SystemExit(process.communicate()[0])
        time.sleep(0.1)
    at_worker = rows_in(out, process, round(draw.uniform(0, FIRST) * count))
    time.sleep(draw.uniform(0, MORE))
    os.kill(draw.choice(processes(cache, WORKER)), signal.SIGKILL)
    time.sleep(draw.uniform(0, APART))
    process.kill()
    process.communicate()
    for _ in range(300):
        if not processes(cache):
            break
        time.sleep(0.1)
    left = processes(cache)
    for one in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    then = len(Index.open(out))
    encoded, _ = finished(command(photos, model, out, cache, "--ray", "--workers", "2"))
    return str(at_worker), str(then), str(encoded), str(len(left))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    console = Console(width=120)
    with tempfile.TemporaryDirectory(prefix="ray-indexing-") as home:
        place = Path(home)
        photos, model = place / "photos", place / "model"
        what = made(photos, asked.pictures)
        make_model(model)
        table = Table(title=f"{asked.pictures:,} {what}, MobileNetV2")
        for column in ("", "encoded", "seconds", "pictures/s", "same bits"):
            table.add_column(column, justify="right" if column else "left")
        encoded, before = finished(command(photos, model, place / "one", place / "cache of one"))
        table.add_row("one process, before", str(encoded), f"{before:.1f}", f"{encoded / before:.1f}", "")
        encoded, shared = finished(
            command(photos, model, place / "ray", place / "cache of ray", "--ray", "--workers", str(asked.workers))
        )
        again, after = finished(command(photos, model, place / "again", place / "cache of another"))
        reference = rows_of(place / "one")
        equal = "yes" if same(reference, rows_of(place / "ray")) else "NO"
        name = f"Ray, {asked.workers} workers on this machine"
        table.add_row(name, str(encoded), f"{shared:.1f}", f"{encoded / shared:.1f}", equal)
        equal = "yes" if same(reference, rows_of(place / "again")) else "NO"
        table.add_row("one process, after", str(again), f"{after:.1f}", f"{again / after:.1f}", equal)
        alone = (before + after) / 2
        console.print(table)
        console.print(f"Ray: {alone / shared:.2f} x the pictures/s of one process, the start of its workers included")

        if not asked.rounds:
            return
        table = Table(title="a worker killed, then the command, then the same command again")
        columns = ("round", "rows: worker killed", "command killed", "encoded after", "processes left")
        for column in (*columns, "lost", "twice", "same bits"):
            table.add_column(column, justify="right")
        draw, lost, twice, unequal = random.Random(asked.seed), 0, 0, 0
        for number in range(1, asked.rounds + 1):
            # Beside the others: the path of a picture in a record depends on where the index is.
            out, cache = place / f"round {number}", place / f"cache of round {number}"
            seen = one_round(photos, model, out, cache, len(reference.ids), draw)
            rows = rows_of(out)
            missing = len(set(reference.ids) - set(rows.ids))
            again = sum(count - 1 for count in Counter(rows.ids).values())
            is_same = same(reference, rows)
            table.add_row(str(number), *seen, str(missing), str(again), "yes" if is_same else "NO")
            lost, twice, unequal = lost + missing, twice + again, unequal + (not is_same)
            print(f"round {number} of {asked.rounds}: {missing} lost, {again} twice, same bits: {is_same}", flush=True)
            shutil.rmtree(out)
            shutil.rmtree(cache)
        console.print(table)
        console.print(f"{asked.rounds} rounds: {lost} lost, {twice} twice, {asked.rounds - unequal} with the same bits")


if __name__ == "__main__":
    main()
