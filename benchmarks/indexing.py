"""Pictures a second through an index, against the encoder alone; then what a second run costs when little has changed.

python benchmarks/indexing.py PHOTOS MODEL
python benchmarks/indexing.py PHOTOS MODEL --pictures 1000 --thumbnails --store exact

Every stage runs in a process of its own with an empty cache, so that its peak memory is its own. The encoder is
measured before and after the index, since machines change their pace; the mean of both counts.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image
from rich.console import Console
from rich.table import Table

from measuring import GB, alone, peak
from rungwise.data.layouts import PictureFolder, read_folder
from rungwise.index import Index

CHANGED, NEW, REMOVED = 10, 20, 5
AIM = 0.9
LONG_AGO = 1_600_000_000


def copied(photos: Path, folder: Path, most: int) -> int:
    """Copy pictures into a folder, each with a time that is long ago; gives their number."""
    chosen = PictureFolder(photos).pictures[: most or None]
    for relative in chosen:
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(photos / relative, target)
        os.utime(target, (LONG_AGO, LONG_AGO))
    return len(chosen)


def loaded(model: str, cache: Path) -> Any:
    """The model in this process, with an empty cache, after its first pictures and all imports."""
    os.environ["RUNGWISE_CACHE"] = str(cache)
    importlib.import_module("lancedb")  # which the encoder alone does not need
    from rungwise.models import load_dual_encoder

    encoder = load_dual_encoder(model)
    file = io.BytesIO()
    Image.effect_noise((256, 256), 60).convert("RGB").save(file, "JPEG")
    encoder.encode_image([file.getvalue()] * 64)
    return encoder


def encoder_alone(photos: Path, model: str, cache: Path) -> tuple[float, float, float]:
    """Seconds of the model's own way through all files, those that processors worked, and peak memory."""
    encoder = loaded(model, cache)
    paths = read_folder(PictureFolder(photos)).paths
    start, worked = time.perf_counter(), time.process_time()
    encoder.encode_image(paths)
    return time.perf_counter() - start, time.process_time() - worked, peak()


def first_run(
    photos: Path, model: str, cache: Path, out: Path, store: str, thumbnails: bool
) -> tuple[float, float, float, float]:
    """Seconds until the first batch can be searched, seconds of all, those that processors worked, and peak memory."""
    encoder = loaded(model, cache)
    first: list[float] = []
    start, worked = time.perf_counter(), time.process_time()
    data = read_folder(PictureFolder(photos))
    index = Index.create(out, encoder, name=data.name, store=store, thumbnails=thumbnails)
    changes = index.update(data, encoder, stored=lambda ids: first.append(time.perf_counter() - start))
    seconds, work = time.perf_counter() - start, time.process_time() - worked
    assert (changes.added, len(changes.issues)) == (len(data), 0), changes
    return first[0], seconds, work, peak()


def next_run(photos: Path, model: str, cache: Path, out: Path) -> tuple[float, float, str]:
    """Seconds of an update, peak memory, and what it did."""
    encoder = loaded(model, cache)
    start = time.perf_counter()
    index = Index.open(out)
    changes = index.update(read_folder(PictureFolder(photos)), encoder)
    return time.perf_counter() - start, peak(), f"{changes}, {changes.encoded} encoded"


def contents(out: Path) -> dict[str, object]:
    """The content of every row by its id."""
    return {item.id: item.columns["hash"] for item in Index.open(out).items()}


def change(photos: Path) -> tuple[set[str], set[str], set[str]]:
    """Change, add and remove some files; gives their names."""
    files = PictureFolder(photos).pictures
    step = len(files) // (CHANGED + REMOVED)
    picked = files[::step][: CHANGED + REMOVED]
    for relative in picked[:CHANGED]:
        Image.open(photos / relative).convert("RGB").rotate(180).save(photos / relative, "JPEG")
    for relative in picked[CHANGED:]:
        (photos / relative).unlink()
    kept = [relative for relative in files if relative not in picked]
    for number, relative in enumerate(kept[:NEW]):
        Image.open(photos / relative).convert("L").save(photos / f"new-{number}.jpg", "JPEG")
    changed, removed = ({one.as_posix() for one in some} for some in (picked[:CHANGED], picked[CHANGED:]))
    return changed, {f"new-{number}.jpg" for number in range(NEW)}, removed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path)
    parser.add_argument("model")
    parser.add_argument("--pictures", type=int, default=0, help="how many; all if 0")
    parser.add_argument("--store", choices=("auto", "lance", "exact"), default="auto")
    parser.add_argument("--thumbnails", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        photos, out = place / "photos", place / "index"
        photos.mkdir()
        count = copied(asked.photos, photos, asked.pictures)
        caches = iter([place / f"cache {number}" for number in range(9)])
        before, work_before, alone_peak = alone(encoder_alone, photos, asked.model, next(caches))
        first, seconds, work, index_peak = alone(
            first_run, photos, asked.model, next(caches), out, asked.store, asked.thumbnails
        )
        after, work_after, _ = alone(encoder_alone, photos, asked.model, next(caches))
        encoder = (before + after) / 2
        rows = contents(out)
        changed, new, removed = change(photos)
        time.sleep(3)  # files that were written just now would be looked at once more by the run after
        again, again_peak, said = alone(next_run, photos, asked.model, next(caches), out)
        then = contents(out)
        assert said.startswith(f"{NEW} added, {CHANGED} changed, {REMOVED} removed, "), said
        assert said.endswith(f"{CHANGED + NEW} encoded"), said
        assert {one for one in rows.keys() & then.keys() if rows[one] != then[one]} == changed
        assert then.keys() - rows.keys() == new
        assert rows.keys() - then.keys() == removed
        nothing, nothing_peak, unsaid = alone(next_run, photos, asked.model, next(caches), out)
        assert unsaid.startswith("0 added, 0 changed, 0 removed, "), unsaid
        size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    table = Table(title=f"{count:,} pictures, {asked.store} store{', small copies' if asked.thumbnails else ''}")
    for column in ("stage", "seconds", "pictures/s", "peak memory"):
        table.add_column(column, justify="left" if column == "stage" else "right")
    for stage, took, memory in (
        ("encoder alone, before", before, alone_peak),
        ("index, first run", seconds, index_peak),
        ("encoder alone, after", after, alone_peak),
        (f"index again: {said}", again, again_peak),
        (f"index again: {unsaid}", nothing, nothing_peak),
    ):
        rate = f"{count / took:.1f}" if "again" not in stage else ""
        table.add_row(stage, f"{took:.1f}", rate, f"{memory / GB:.2f} GB")
    console = Console(width=110)
    console.print(table)
    share, of_work = encoder / seconds, (work_before + work_after) / 2 / work
    console.print(
        f"{share:.1%} of the encoder's own pictures/s (aim {AIM:.0%}: {'reached' if share >= AIM else 'missed'});"
        f" by the seconds that processors worked, which other programs disturb less: {of_work:.1%};"
        f" the first batch can be searched after {first:.1f} s; the index takes {size / 2**20:.1f} MiB"
    )
    console.print(f"exactly the {CHANGED} changed, {NEW} new and {REMOVED} removed files were touched")


if __name__ == "__main__":
    main()
