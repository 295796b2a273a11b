"""Whose degrees should a ladder be built of? Three sources on Flickr8K, on a short schedule, beside VSE++.

    RUNGWISE_DATA=... python benchmarks/ladder_degrees.py GRADER --out runs/ladder
    RUNGWISE_DATA=... python benchmarks/ladder_degrees.py GRADER --out runs/ladder --seeds 0 1 2

GRADER is a cross-encoder that ``rungwise relevance train-cross-encoder`` or ``benchmarks/cross_encoder.py`` made.

All runs have one recipe: the official split of Flickr8K, pooled features of a MobileNetV2, which are computed once and
kept in ``--out`` (the time of the first run includes them), a GRU, and five epochs with the sum of hinges before the
loss takes over. VSE++ pushes the hardest negative. The ladder loss (Zhou et al. 2020; L = 2) does so too, and orders
what is somewhat relevant above the rest. Its first rung holds 1 % of the candidates, whatever the scale of the source:

* CIDEr-D: words and phrases in common;
* MiniLM: the cosine of all-MiniLM-L6-v2;
* Cascade: MiniLM chooses 1.5 % of the pairs, and the cross-encoder grades these; the others are not relevant at all.

Recall is measured on the 1,000 test pictures and 5,000 captions, the coherent score CS@100 on the first caption of each
(the protocol of the papers). CS is judged by sources, none of which is people: TfIdf and CBoW, with which no run was
trained, and CIDEr-D and MiniLM, with which one or two were. The first caption stands for its picture, but with CIDEr-D
all five do. Brackets are 95 % bootstrap intervals over pictures; they say nothing of other seeds. The second table has
the differences to VSE++ by the same draws, a star where the interval leaves out 0.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rungwise.core import from_plain, to_plain
from rungwise.core.compute import cores
from rungwise.data import ImageCaptions, read
from rungwise.evaluation import Provenance, Result, compare, evaluate
from rungwise.models import load
from rungwise.relevance import BiEncoder, CBoW, CIDErD, Degrees, TfIdf
from rungwise.relevance.description.describe import thresholds
from rungwise.training import run
from rungwise.training.config import TrainConfig, load_preset, merged

WARM_UP = 5
"""Epochs with the sum of hinges. After one epoch alone all runs collapse: the hardest negative pulls all vectors to one
point, where the loss is twice the margin."""
RUNG, CHOSEN = 0.01, 0.015
"""Shares of the candidates: on the first rung, and given to the cross-encoder."""

NAMES = ("VSE++", "CIDEr-D", "MiniLM", "Cascade")
RECALL = ("R@1", "R@5", "R@10", "rsum")
COHERENT = "CS@100"
SHOWN = ("i2t/R@1", "i2t/R@5", "i2t/R@10", "t2i/R@1", "t2i/R@5", "t2i/R@10", "rsum")
RECIPE: Mapping[str, Any] = {
    "model": {"dimension": 512},
    "schedule": "one_cycle",
    "learning_rates": [5e-4],
    "logs": ["jsonl"],
}
QUICK: Mapping[str, Any] = {
    "model": {"dimension": 16, "text": {"word_dimension": 8}, "image": {"size": 64}},
}
FEW = 60
"""Pictures of each split of a quick run."""


@dataclass(frozen=True)
class Trained:
    """A run: what it was trained with, and what was measured."""

    name: str
    seed: int
    seconds: float
    recall: Result
    coherent: Mapping[str, Result]


def settings(name: str, shared: Path, threshold: float, asked: argparse.Namespace) -> TrainConfig:
    """The configuration of a run; all differ in the loss and its degrees alone."""
    config = load_preset("vsepp/flickr8k:same-padding" if name == "VSE++" else "cvsepp/flickr8k").config
    image = to_plain(load_preset("vsepp/flickr8k:same-padding").config)["model"]["image"]
    weights = {"weights": str(shared / "weights" / "mobilenetv2_100_imagenet.safetensors")}
    changes: dict[str, Any] = {**RECIPE, "epochs": [asked.epochs], "warm_up_epochs": min(WARM_UP, asked.epochs - 1)}
    changes["model"] = {**changes["model"], "image": {**image, **weights}}
    degrees = {
        "CIDEr-D": {"relevance": "cider-d", "reference": "image"},
        "MiniLM": {"relevance": "bi-encoder"},
        "Cascade": {
            "relevance": f"{{kind: cascade, coarse: bi-encoder, threshold: {threshold:.4f}, model: '{asked.grader}',"
            f" symmetric: true, precision: {asked.precision}, cache: '{asked.out / 'pair_scores'}'}}"
        },
    }
    if name in degrees:
        changes |= {"data": degrees[name], "loss": {"shares": [RUNG]}}
    plain = merged(to_plain(config), changes)
    if asked.quick:
        plain = merged(plain, QUICK)
    return from_plain(TrainConfig, {**plain, "stages": []}, name)


def judges(test: ImageCaptions, shared: Path) -> dict[str, Degrees]:
    """Sources that judge CS, on the test captions alone."""
    known = (test.captions, test.image_of_caption)
    return {
        "TfIdf": TfIdf(*known, reference="paired"),
        "CBoW": CBoW(*known, shared / "weights" / "glove.6B.50d.caption_words.txt", reference="paired"),
        "CIDEr-D": CIDErD(*known),
        "MiniLM": BiEncoder(*known, reference="paired"),
    }


def coarse_threshold(train: ImageCaptions) -> float:
    """The cosine from which MiniLM gives a pair of training captions to the cross-encoder."""
    texts = [train.captions[captions[0]] for captions in train.captions_of_image]
    (found,) = thresholds(BiEncoder(texts, np.arange(len(texts))), (CHOSEN,))
    return found


def measured(folder: Path, test: ImageCaptions, sources: Mapping[str, Degrees]) -> tuple[Result, dict[str, Result]]:
    """Recall of a model, and its coherent score by each source."""
    scores = load(folder).on(test)
    known = {"image_of_caption": test.image_of_caption, "data_name": test.name, "split": "test"}
    recall = evaluate(**scores.for_evaluation(), **known, measures=RECALL)
    coherent = {
        name: evaluate(
            **scores.for_evaluation(),
            **known,
            relevance=source,
            measures=[COHERENT],
            protocol="one-caption-per-image",
            provenance=Provenance(relevance_name=name),
        )
        for name, source in sources.items()
    }
    return recall, coherent


def shortened(data: ImageCaptions) -> ImageCaptions:
    """The first pictures of each split."""
    splits = np.array(data.splits)
    return data.select(np.concatenate([np.flatnonzero(splits == name)[:FEW] for name in ("train", "val", "test")]))


def trained(asked: argparse.Namespace) -> Iterator[Trained]:
    """Every run that is asked for, one after the other; what is done already is only measured."""
    shared = asked.shared or Path(os.environ["RUNGWISE_DATA"])
    data = read(shared / "flickr8k")
    data = shortened(data) if asked.quick else data
    train, test = data.split("train"), data.split("test")
    sources = judges(test, shared)
    threshold = coarse_threshold(train)
    print(f"{data.name}: {len(train):,} pictures to train, {len(test):,} to test; {asked.epochs} epochs", flush=True)
    print(f"the cross-encoder grades pairs of training captions from a cosine of {threshold:.3f}", flush=True)
    for seed in asked.seeds:
        for name in NAMES:
            out = asked.out / f"{name.lower().replace('+', 'p')}-{seed}"
            config = replace(settings(name, shared, threshold, asked), seed=seed)
            begun = time.perf_counter()
            if not (out / "model").is_dir():
                run(config, data, out, cache=asked.out / "cache", device="cpu")
            seconds = time.perf_counter() - begun
            yield Trained(name, seed, seconds, *measured(out / "model", test, sources))


def _numbers(one: Trained) -> Iterator[tuple[str, Result, str]]:
    """What a table calls a number, and where it stands."""
    yield from ((name, one.recall, name) for name in SHOWN)
    for judge, result in one.coherent.items():
        yield from ((f"{way}/{COHERENT} by {judge}", result, f"{way}/{COHERENT}") for way in ("i2t", "t2i"))


def _shown(number: float, low: float, high: float, unit: str, sign: str = "") -> str:
    digits = 3 if unit == "correlation" else 1
    return f"{number:{sign}.{digits}f} [{low:{sign}.{digits}f}, {high:{sign}.{digits}f}]"


def _tables(runs: Sequence[Trained]) -> Iterator[str]:
    """The lines of both tables of a seed."""
    yield f"\nseed {runs[0].seed:<21}" + "".join(f"{one.name:>24}" for one in runs)
    rows = [list(_numbers(one)) for one in runs]
    for row in zip(*rows, strict=True):
        cells = []
        for _, result, name in row:
            cells.append(_shown(result[name], *result.intervals([name])[name], result.units[name]))
        yield f"{row[0][0]:<26}" + "".join(f"{cell:>24}" for cell in cells)
    yield f"{'seconds':<26}" + "".join(f"{one.seconds:>24.0f}" for one in runs)
    yield f"\n{'above VSE++':<26}" + "".join(f"{one.name:>26}" for one in runs[1:])
    for row in zip(*rows, strict=True):
        cells = []
        for _, result, name in row[1:]:
            found = compare([row[0][1], result], [name])[name]
            low, high = found.pictures.interval
            star = "" if low <= 0 <= high else " *"
            cells.append(_shown(found.difference, low, high, found.unit, "+") + star)
        yield f"{row[0][0]:<26}" + "".join(f"{cell:>26}" for cell in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grader", type=Path, help="folder of the cross-encoder")
    parser.add_argument("--shared", type=Path, help="folder of the data; default RUNGWISE_DATA")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="bfloat16", help="of the cross-encoder")
    parser.add_argument("--threads", type=int, default=cores())
    parser.add_argument("--quick", action="store_true", help="some pictures and a tiny model, to see that it runs")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    asked.epochs = 2 if asked.quick else asked.epochs
    runs: dict[int, list[Trained]] = {}
    for one in trained(asked):
        print(f"{one.name}, seed {one.seed}: {one.seconds:.0f} s, rsum {one.recall['rsum']:.1f}", flush=True)
        runs.setdefault(one.seed, []).append(one)
    for some in runs.values():
        print("\n".join(_tables(some)))


if __name__ == "__main__":
    main()
