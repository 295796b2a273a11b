"""Collections and a model for ``planning.py``: tiny photos of which 40 % have a caption, and an index of a million.

    python benchmarks/planning_data.py FOLDER                          # 8,000, 30,000, 100,000 and 1,000,000 pictures
    python benchmarks/planning_data.py FOLDER 8000 --photos-up-to 200000

FOLDER gets ``torch``, a model as ``rungwise train quick`` makes it, with random weights for its pictures; ``exported``,
the same as graphs; and a folder for each size. That holds ``photos``, or with more than ``--photos-up-to`` pictures
``index``: one made of drawn vectors, with the columns that photos have. Captions are drawn words, frequent and rare as
in a language.
"""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path

import numpy as np

CAPTIONS = 0.4
_FOLDER = 1000
"""Pictures in one folder."""


def make_models(folder: Path) -> None:
    """A model and its export."""
    from dataclasses import replace

    from rungwise.models import JointEmbedding
    from rungwise.models.export import export_onnx
    from rungwise.planning._drawn_index import drawn_texts
    from rungwise.training.config import load_config

    config = load_config("quick").model
    config = replace(config, image=replace(config.image, weights="random"))
    model = JointEmbedding.create(config, drawn_texts(1000))
    model.save_pretrained(folder / "torch")
    export_onnx(model, folder / "exported")


def captions_of(pictures: int) -> list[str]:
    """(pictures,) captions; empty for a picture without one."""
    from rungwise.planning._drawn_index import drawn_texts

    captioned = np.random.default_rng(0).random(pictures) < CAPTIONS
    texts = iter(drawn_texts(int(captioned.sum())))
    return [next(texts) if one else "" for one in captioned.tolist()]


def make_photos(folder: Path, pictures: int) -> None:
    """Photos that differ, in folders of a thousand, with a table of captions."""
    from PIL import Image

    draw = np.random.default_rng(0)
    with (folder / "metadata.csv").open("x", newline="", encoding="utf-8") as table:
        writer = csv.writer(table)
        writer.writerow(("file_name", "text"))
        for number, caption in enumerate(captions_of(pictures)):
            name = f"{number // _FOLDER:04}/{number:07}.jpg"
            if number % _FOLDER == 0:
                (folder / name).parent.mkdir()
            file = io.BytesIO()
            Image.fromarray(draw.integers(0, 256, (6, 8, 3), np.uint8)).resize((64, 48)).save(file, "JPEG")
            (folder / name).write_bytes(file.getvalue())
            if caption:
                writer.writerow((name, caption))


def make_index(folder: Path, pictures: int, model: Path) -> None:
    """An index of drawn vectors under a model."""
    from planning import partly
    from rungwise.data import ImageCaptions
    from rungwise.data.files import FeatureRows
    from rungwise.index import Index

    texts = captions_of(pictures)
    captioned = np.array([number for number, text in enumerate(texts) if text])
    numbers = range(pictures)
    columns = {
        "file": tuple(f"{number:07}.jpg" for number in numbers),
        "folder": tuple(f"photos/{number // _FOLDER:04}" for number in numbers),
        "format": ("JPEG",) * pictures,
        "bytes": tuple(900 + number % 97 for number in numbers),
        "width": (64,) * pictures,
        "height": (48,) * pictures,
        "modified": tuple(f"2026-{1 + n % 12:02}-{1 + n % 28:02}T{n % 24:02}:{n % 60:02}:00Z" for n in numbers),
        "hash": tuple(f"{number * 0x9E3779B97F4A7C15 % 2**64:016x}" for number in numbers),
    }
    data = ImageCaptions(
        tuple(f"{number // _FOLDER:04}/{number:07}.jpg" for number in numbers),
        tuple(filter(None, texts)),
        captioned,
        # Rows that are the same would be encoded once, and all pictures would be near-duplicates.
        features=FeatureRows(np.random.default_rng(1).standard_normal((pictures, 4), np.float32)),
        columns=columns,
        name="drawn",
    )
    drawn = partly(str(model), [], encoded=0)
    Index.build(data, drawn, folder, store="lance", model_location=str(model))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pictures", type=int, nargs="*", default=[8_000, 30_000, 100_000, 1_000_000])
    parser.add_argument("--photos-up-to", type=int, default=200_000, help="pictures for which photos are made")
    asked = parser.parse_args()
    if not (asked.folder / "exported").is_dir():
        make_models(asked.folder)
    for pictures in asked.pictures:
        place = asked.folder / str(pictures) / ("photos" if pictures <= asked.photos_up_to else "index")
        if place.is_dir():
            continue
        place.parent.mkdir(exist_ok=True)
        if place.name == "photos":
            place.mkdir()
            make_photos(place, pictures)
        else:
            make_index(place, pictures, asked.folder / "exported")
        print(place, flush=True)


if __name__ == "__main__":
    main()
