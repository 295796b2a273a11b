"""Captions of the same picture in a batch: negatives, as the papers have them, against left out, on Flickr8K.

    python benchmarks/extra_positives.py --out RUNS [--systems vsepp cvsepp sam convse] [--seeds 1 2 3] [--table]

Every run is the preset ``SYSTEM/flickr8k:same-padding`` on all 6,000 training pictures with nine epochs in place of
fifteen: six at the first rate, two of them with the sum of hinges where the preset warms up, and three at the second.
ConVSE's heads are trained for nine epochs on top of the VSE++ of the same seed and choice. A pair of runs differs in
``loss.extra_positives`` alone. ``RUNS`` keeps what is done. ``--table`` trains nothing and prints what is there.

Printed of the test split (1,000 pictures, 5,000 captions) is the mean over seeds of the difference, kept minus left
out: with its 95 % bootstrap interval over pictures, which all runs draw alike, and with the interval over seeds
(Student's t), which has few seeds and is wide. NCS is ``NCS@10(non_gt)`` by CIDEr-D; CS is CS@100
of one caption a picture by a sentence model, caption against caption.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.data import ImageCaptions, read
from rungwise.evaluation import Result, evaluate
from rungwise.evaluation.statistics import bootstrap, interval_of
from rungwise.models import load
from rungwise.relevance import BiEncoder, CIDErD
from rungwise.runs import Spread
from rungwise.training import MODEL, run
from rungwise.training.config import load_training

WEIGHTS = "weights/mobilenetv2_100_imagenet.safetensors"
SYSTEMS = ("vsepp", "cvsepp", "sam", "convse")
CHOICES = ("keep", "mask")
SHOWN = ("i2t/R@1", "t2i/R@1", "rsum", "i2t/NCS@10(non_gt)", "t2i/NCS@10(non_gt)", "i2t/CS@100", "t2i/CS@100")


def config_of(system: str, choice: str, seed: int, out: Path, weights: Path) -> Any:
    """Configuration of a run."""
    config: Any = load_training(f"{system}/flickr8k:same-padding")
    image = replace(config.model.image, weights=str(weights))
    changes: dict[str, Any] = {"seed": seed, "loss": replace(config.loss, extra_positives=choice), "preset": ""}
    if system == "convse":
        changes |= {"start": str(folder_of(out, "vsepp", choice, seed) / MODEL), "stages": (), "epochs": (9,)}
    else:
        changes |= {"epochs": (6, 3), "warm_up_epochs": 2}
    return replace(config, model=replace(config.model, image=image), **changes)


def folder_of(out: Path, system: str, choice: str, seed: int) -> Path:
    """Folder of a run."""
    return out / f"{system}-{choice}-{seed}"


def measured(folder: Path, test: ImageCaptions, degrees: tuple[Any, Any]) -> tuple[Result, Result]:
    """Ranks and NCS of all captions, and CS of one caption a picture, of a run's best snapshot."""
    scores = load(folder / MODEL, "cpu").on(test)
    shared = {**scores.for_evaluation(), "image_of_caption": scores.data.image_of_caption}
    of_all = evaluate(**shared, relevance=degrees[0], measures=["rsum", "NCS@10(non_gt)"])
    return of_all, evaluate(**shared, relevance=degrees[1], measures=["CS@100"], protocol="one-caption-per-image")


def line(system: str, name: str, kept: list[Result], masked: list[Result]) -> str:
    """One row of the table: both means, their difference, and its intervals over pictures and over seeds."""
    draws = bootstrap([*kept, *masked], [name], draws=2000)[name]
    low, high = interval_of(draws[: len(kept)].mean(axis=0) - draws[len(kept) :].mean(axis=0))
    means = [float(np.mean([one.numbers[name] for one in side])) for side in (kept, masked)]
    seeds = Spread(tuple(one.numbers[name] - two.numbers[name] for one, two in zip(kept, masked, strict=True)))
    digits = 3 if "/CS@" in name else 1
    shown = [f"{one:.{digits}f}" for one in (*means, seeds.mean, low, high, *seeds.interval)]
    return f"| {system} | {name} | {' | '.join(shown[:3])} | [{shown[3]}, {shown[4]}] | [{shown[5]}, {shown[6]}] |"


def main() -> None:
    """Train what is missing, measure, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--out", type=Path, required=True, help="folder of the runs")
    options.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    options.add_argument("--seeds", nargs="+", type=int, default=(1, 2, 3))
    options.add_argument("--table", action="store_true", help="train nothing")
    asked = options.parse_args()
    shared = os.environ.get("RUNGWISE_DATA")
    if shared is None:
        options.error("set RUNGWISE_DATA to the folder of the data")
    data = read(Path(shared) / "flickr8k")
    for system in () if asked.table else asked.systems:
        for seed in asked.seeds:
            for choice in CHOICES:
                folder = folder_of(asked.out, system, choice, seed)
                if not (folder / MODEL).is_dir():
                    run(config_of(system, choice, seed, asked.out, Path(shared) / WEIGHTS), data, folder)
    test = data.split("test")
    captions = {"captions": test.captions, "image_of_caption": test.image_of_caption, "images": len(test)}
    degrees = CIDErD(**captions), BiEncoder(**captions, reference="paired")
    print("| system | measure | kept | left out | difference | over pictures | over seeds |\n|" + " --- |" * 7)
    for system in asked.systems:
        found = {
            choice: [measured(folder_of(asked.out, system, choice, seed), test, degrees) for seed in asked.seeds]
            for choice in CHOICES
        }
        for name in SHOWN:
            part = int("/CS@" in name)
            print(line(system, name, *([one[part] for one in found[choice]] for choice in CHOICES)), flush=True)


if __name__ == "__main__":
    main()
