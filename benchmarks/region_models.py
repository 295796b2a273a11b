"""Models that look at regions, by their own losses and with semantic adaptive margins, on a tenth and all of Flickr8K.

    python benchmarks/region_models.py --out RUNS [--systems scan sgr saf vsrn cvse] [--shares 0.1 1.0] [--table]
    python benchmarks/region_models.py --out RUNS --margins with --temperature 3

Every run is the preset ``SYSTEM/flickr8k`` or ``sam-SYSTEM/flickr8k``: a grid of 7 x 7 regions under a frozen
MobileNetV2 (``same-padding``), and a short schedule. A tenth of the pictures is the variant ``share-10``. The first 250
pictures of the validation split choose the epoch, since models of pairs take as long for all 1,000 as an epoch of
training takes. ``RUNS`` keeps what is done; a run that was interrupted goes on. ``--table`` trains nothing and prints
what is there.

Printed of the test split (1,000 pictures, 5,000 captions): R@K, rsum, and graded measures by two sources of degrees,
CIDEr-D, which is also what the margins are made of, and a sentence model, which no loss has seen. An interval is over
test images (bootstrap) where there is one seed, and over seeds (Student's t) where there are several.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.data import ImageCaptions, read, with_splits
from rungwise.encoders import computed_in
from rungwise.evaluation import Provenance, Result, evaluate
from rungwise.evaluation.statistics import bootstrap, interval_of
from rungwise.models import load
from rungwise.relevance import BiEncoder, CIDErD
from rungwise.runs import Spread
from rungwise.training import MODEL, is_begun
from rungwise.training.config import load_training
from rungwise.training.engine import train
from rungwise.training.tracking import EpochReport, Watcher

WEIGHTS = "weights/mobilenetv2_100_imagenet.safetensors"
SYSTEMS = ("scan", "sgr", "saf", "vsrn", "cvse")
SEEDS = {"scan": (0, 1, 2), "vsrn": (0, 1, 2)}
"""Of other systems 0 alone."""
SHARES = {0.1: ":share-10", 1.0: ""}
"""Of the training pictures, with the variant of the presets."""
GRADED = ("NCS@10(non_gt)", "SR@10", "CS@100")
RECALLS = tuple(f"{way}/R@{k}" for way in ("i2t", "t2i") for k in (1, 5, 10))
DONE = "test.json"
NAMES = 20
"""Letters in the column of names."""
VALIDATION = 250
"""Pictures that choose the epoch."""


@dataclass(frozen=True)
class Row:
    """A system, with or without margins, on a share of the pictures.

    Attributes:
        system: Such as ``scan``.
        margins: With semantic adaptive margins.
        share: Of the training pictures.
        temperature: What divides the margins; None takes that of the preset.
    """

    system: str
    margins: bool
    share: float
    temperature: float | None = None

    @property
    def preset(self) -> str:
        """Its name without a variant."""
        return f"sam-{self.system}/flickr8k" if self.margins else f"{self.system}/flickr8k"

    @property
    def name(self) -> str:
        """For people, and of the folder."""
        divided = "" if self.temperature is None else f" tau {self.temperature:g}"
        return f"{self.system}{'+sam' if self.margins else ''}{divided} {100 * self.share:g}%"

    def folder(self, out: Path, seed: int) -> Path:
        """Of a run."""
        return out / self.name.replace(" ", "-").rstrip("%") / f"seed-{seed}"

    def config(self, seed: int, weights: Path) -> Any:
        """Of a run on a backbone with these weights."""
        config: Any = load_training(f"{self.preset}{SHARES[self.share]}")
        image = replace(load_training(f"{self.preset}:same-padding").model.image, weights=str(weights))
        config = replace(config, model=replace(config.model, image=image), logs=("jsonl",), seed=seed)
        if self.temperature is None:
            return config
        return replace(config, loss=replace(config.loss, temperature=self.temperature))


class Told(Watcher):
    """Says what every epoch reached."""

    def epoch(self, report: EpochReport) -> None:
        """See :class:`Watcher`."""
        numbers = report.numbers
        said = f"rsum {numbers['rsum']:.1f}, {numbers['seconds']:.0f} s of steps"
        print(f"    epoch {report.epoch}/{report.epochs}: {said}", file=sys.stderr, flush=True)


def main() -> None:
    """Train what is missing, measure, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--out", type=Path, required=True, help="folder of the runs")
    options.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    options.add_argument("--shares", nargs="+", type=float, choices=SHARES, default=list(SHARES))
    options.add_argument("--margins", nargs="+", choices=("without", "with"), default=("without", "with"))
    options.add_argument("--temperature", type=float, help="of the margins, instead of that of the presets")
    options.add_argument("--seeds", nargs="+", type=int, help="instead of those of each system")
    options.add_argument("--table", action="store_true", help="train nothing")
    asked = options.parse_args()
    shared = os.environ.get("RUNGWISE_DATA")
    if shared is None:
        options.error("set RUNGWISE_DATA to the folder of the data")
    rows = [
        Row(system, margins == "with", share, asked.temperature if margins == "with" else None)
        for share in asked.shares
        for system in asked.systems
        for margins in asked.margins
    ]
    results: dict[Row, list[dict[str, Result]]] = {}
    data = None if asked.table else _data(Path(shared) / "flickr8k")
    degrees: dict[str, Any] = {}
    for row in rows:
        for seed in asked.seeds or SEEDS.get(row.system, (0,)):
            folder = row.folder(asked.out, seed)
            if data is not None and not (folder / DONE).exists():
                _train(row, data, folder, seed, Path(shared) / WEIGHTS)
                degrees = degrees or _degrees(data)
                _measure(data, folder, degrees)
            if (folder / DONE).exists():
                results.setdefault(row, []).append(
                    {name: Result.from_json(folder / file) for name, file in _files().items()}
                )
    _print(results)


def _data(place: Path) -> ImageCaptions:
    """All pictures, but for validation the first alone."""
    data = with_splits(read(place))
    validation = [at for at, split in enumerate(data.splits) if split == "val"]
    left_out = set(validation[VALIDATION:])
    return data.select([at for at in range(len(data)) if at not in left_out])


def _files() -> dict[str, str]:
    """Where the numbers by each source of degrees are kept; the last one is written last."""
    return {"sentences": "test-sentences.json", "cider-d": DONE}


def _train(row: Row, data: ImageCaptions, folder: Path, seed: int, weights: Path) -> None:
    print(f"{row.name}, seed {seed}", file=sys.stderr, flush=True)
    begun = time.perf_counter()
    found = train(row.config(seed, weights), data, folder, resume=is_begun(folder), watcher=Told())
    if not found.finished:
        raise SystemExit(f"{folder}: stopped before its end; start again to go on")
    seconds = time.perf_counter() - begun
    print(f"  best epoch {found.best_epoch}, {seconds:.0f} s", file=sys.stderr, flush=True)


def _degrees(data: ImageCaptions) -> dict[str, Any]:
    """Of the test split, by source."""
    test = data.split("test")
    sources = {
        "cider-d": CIDErD(test.captions, test.image_of_caption),
        "sentences": BiEncoder(test.captions, test.image_of_caption, reference="mean"),
    }
    return {name: np.maximum(source.dense(), 0) for name, source in sources.items()}


def _measure(data: ImageCaptions, folder: Path, degrees: dict[str, Any]) -> None:
    test = data.split("test")
    with computed_in("auto"):
        scores = load(folder / MODEL).on(test)
        matrix = scores.for_evaluation()
    for name, file in _files().items():
        result = evaluate(
            **matrix,
            image_of_caption=test.image_of_caption,
            measures=["R@1", "R@5", "R@10", "rsum", *GRADED],
            relevance=degrees[name],
            provenance=Provenance(dataset="flickr8k"),
        )
        result.to_json(folder / file)


def _print(results: dict[Row, list[dict[str, Result]]]) -> None:
    print(f"{'test split':<{NAMES}}seeds{'':>2}" + "".join(f"{name[:3]} {name[4:]:<5}" for name in RECALLS), end="")
    print(f"{'rsum [95 %]':<24}")
    for row, found in results.items():
        of = [one["cider-d"] for one in found]
        numbers = "".join(f"{np.mean([one[name] for one in of]):9.1f}" for name in RECALLS)
        print(f"{row.name:<{NAMES}}{len(found):>5}{numbers}  {_sure(of, ('rsum',))}")
    for source in ("cider-d", "sentences"):
        print(f"\nmeans of both directions by degrees of {source}")
        print(" " * NAMES + "".join(f"{name:<27}" for name in GRADED))
        for row, found in results.items():
            of = [one[source] for one in found]
            cells = (_sure(of, (f"i2t/{name}", f"t2i/{name}")) for name in GRADED)
            print(f"{row.name:<{NAMES}}" + "".join(f"{cell:<27}" for cell in cells))


def _sure(results: Sequence[Result], names: tuple[str, ...]) -> str:
    """The mean of some numbers, over seeds too, with its interval."""
    spread = Spread(tuple(float(np.mean([one[name] for name in names])) for one in results))
    digits = 3 if abs(spread.mean) < 1 else 1
    if len(results) > 1:
        low, high = spread.interval
        beside = f" ±{spread.deviation:.{digits}f}"
    else:
        drawn = bootstrap(results, names)
        low, high = interval_of(np.mean([drawn[name][0] for name in names], axis=0))
        beside = ""
    return f"{spread.mean:.{digits}f}{beside}" + ("" if math.isnan(low) else f" [{low:.{digits}f}, {high:.{digits}f}]")


if __name__ == "__main__":
    main()
