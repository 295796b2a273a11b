"""All pairs of regions and words, beside a loop over captions as the authors' programs have it.

    python benchmarks/regions.py [--models scan-t2i scan-i2t sgr saf] [--training]
    python benchmarks/regions.py --agreement RUN...

The captions are those of Flickr8K's test split where ``RUNGWISE_DATA`` names the data, so that their lengths are real;
regions and words are random vectors of length 1. The loop is measured on one shard of images and captions, as the
programs cut their galleries, and multiplied; ours is measured on all pairs. Both run in turns in this process.

* ``float64`` of the loop is what SCAN's evaluation does: its buffers are ``np.zeros``.
* Memory is the highest resident memory during the job above what was resident before: inputs do not count.
* ``largest difference`` is between the two, on the shard.
* ``products alone`` is what SCAN cannot do without: inner products of all regions with all words.
* The last line of a table says what bounds it: the arithmetic of the matrix products in ours, and how long that takes
  at the speed of one large product of that precision here.

``--agreement`` compares all pairs of Flickr8K's test split by trained models in both precisions, from the same
features, and says how many of the first ten of every query stay: the mean of both directions.

Gradients of a batch (``--training``) are of the similarity and max of hinges alone; a whole step of ours is beside it.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import region_programs
from measuring import Rows, memory_of, with_out
from reranking import opened
from rungwise.data import read, with_splits
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.evaluation import evaluate
from rungwise.losses import MaxOfHinges
from rungwise.models import family
from rungwise.models.regions import first_kept, in_half
from rungwise.similarity import SetSimilarity, WordSets, all_pairs

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "scan-t2i": ("scan", {"attend": "t2i", "smoothing": 9.0, "lse": 6.0}),
    "scan-i2t": ("scan", {"attend": "i2t", "smoothing": 4.0, "lse": 5.0}),
    "sgr": ("sgr", {}),
    "saf": ("saf", {}),
}
"""Kind and settings by the names of this benchmark."""
SHARD = {"scan-t2i": (128, 128), "scan-i2t": (128, 128), "sgr": (100, 100), "saf": (100, 100)}
"""Images and captions that the programs score at a time."""
WORDS_AT_ONCE = 2048
"""Of the products alone."""


@dataclass(frozen=True)
class Sizes:
    """What is scored.

    Attributes:
        images: How many.
        regions: Of each.
        width: Of a region and of a word.
        lengths: Words of each caption, ``<start>`` and ``<end>`` included.
    """

    images: int
    regions: int
    width: int
    lengths: list[int]

    @property
    def pairs(self) -> int:
        """Images times captions."""
        return self.images * len(self.lengths)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    options.add_argument("--images", type=int, default=1000)
    options.add_argument("--captions", type=int, default=5000)
    options.add_argument("--regions", type=int, default=36)
    options.add_argument("--width", type=int, default=1024)
    options.add_argument("--share", type=float, default=1.0, help="of the images that ours scores; the rest by ratio")
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--training", action="store_true", help="gradients of a batch instead")
    options.add_argument("--batch", type=int, default=128)
    options.add_argument("--agreement", type=Path, nargs="+", metavar="RUN", help="of bfloat16, by trained models")
    with_out(options)
    asked = options.parse_args()
    kept = Rows(asked.out)
    if asked.agreement:
        _agreement(asked.agreement, kept)
        return
    sizes = Sizes(asked.images, asked.regions, asked.width, _lengths(asked.captions))
    print(
        f"{sizes.images:,} images x {len(sizes.lengths):,} captions of {np.mean(sizes.lengths):.1f} words (at most"
        f" {max(sizes.lengths)}), {sizes.regions} regions, D = {sizes.width}; {torch.get_num_threads()} threads,"
        f" {os.cpu_count()} cores"
    )
    for name in asked.models:
        if asked.training:
            _gradients(name, sizes, asked.batch, asked.repeats, kept)
        else:
            _all_pairs(name, sizes, asked.share, asked.repeats, kept)


def _lengths(captions: int) -> list[int]:
    """Words of so many captions of Flickr8K's test split; drawn where there are no data."""
    place = os.environ.get("RUNGWISE_DATA")
    if place and (Path(place) / "flickr8k").is_dir():
        texts = read(Path(place) / "flickr8k", captions_only=True).split("test").captions
        words = [len(text.split()) + 2 for text in texts]
    else:
        draw = np.random.default_rng(0)
        words = np.clip(np.rint(draw.gamma(8, 1.6, 5000)), 4, 70).astype(int).tolist()
        print("no RUNGWISE_DATA: lengths of captions are drawn")
    return [words[at % len(words)] for at in range(captions)]


def _sets(sizes: Sizes) -> tuple[Tensor, WordSets]:
    draw = torch.Generator().manual_seed(0)
    regions = F.normalize(torch.randn(sizes.images, sizes.regions, sizes.width, generator=draw), dim=2)
    words = F.normalize(torch.randn(sum(sizes.lengths), sizes.width, generator=draw), dim=1)
    return regions, WordSets(words, torch.tensor(sizes.lengths))


def _model(name: str, sizes: Sizes) -> Any:
    """A model of the authors' sizes with random weights."""
    kind, settings = MODELS[name]
    torch.manual_seed(0)
    found: Any = family(kind)
    config = found.config_type(
        image=FeatureConfig(width=2048, l2_normalise=False),
        text=GRUConfig(min_count=1, directions="both"),
        dimension=sizes.width,
        **settings,
    )
    rows = FeatureRows(np.zeros((1, sizes.regions, 2048), np.float16))
    return found.create(config, [f"word{number}" for number in range(8000)], rows).eval()


def _program(name: str, model: Any, regions: Tensor, words: Tensor, lengths: list[int]) -> Tensor:
    """The loop over captions, with the weights of a model."""
    if name.startswith("scan"):
        config = model.config
        return region_programs.scan(regions, words, lengths, config.attend, config.smoothing, config.lse)
    return region_programs.sgraf(model, regions, words, lengths)


def _all_pairs(name: str, sizes: Sizes, share: float, repeats: int, kept: Rows) -> None:
    model = _model(name, sizes)
    regions, words = _sets(sizes)
    shard = tuple(min(one, other) for one, other in zip(SHARD[name], (sizes.images, len(words)), strict=True))
    chosen = torch.randperm(len(words), generator=torch.Generator().manual_seed(1))[: shard[1]]
    some = words.select(chosen)
    padded, lengths = _padded(some)
    ours = max(1, round(share * sizes.images))
    comparison: SetSimilarity = model.comparison
    with torch.inference_mode():
        programs: dict[str, Callable[[], Tensor]] = {
            "loop over captions, float32": lambda: _program(name, model, regions[: shard[0]], padded, lengths)
        }
        if name.startswith("scan"):
            programs["loop over captions, float64"] = lambda: _program(
                name, model, regions[: shard[0]].double(), padded.double(), lengths
            )
        runs: dict[str, Callable[[], Tensor]] = {}
        for kind in (torch.float32, torch.bfloat16):
            held, texts = regions.to(kind), WordSets(words.words.to(kind), words.lengths)
            label = f"ours, {str(kind).removeprefix('torch.')}"
            runs[label] = lambda held=held, texts=texts: all_pairs(comparison, held[:ours], texts)
            if name.startswith("scan"):
                runs[f"products alone, {label.rpartition(' ')[2]}"] = lambda held=held, texts=texts: _products(
                    held[:ours], texts
                )
        exact = _program(name, model, regions[: shard[0]], padded, lengths)
        print(f"\n{name}: seconds for all {sizes.pairs:,} pairs")
        rows = []

        def measured(label: str, seconds: float, memory: float, difference: float) -> None:
            rows.append((label, seconds, memory, difference))
            kept.keep(model=name, what=label, seconds=seconds, GB=memory, largest_difference=difference)

        for label, program in programs.items():
            measured(label, _least(program, repeats) * sizes.pairs / math.prod(shard), memory_of(program), 0.0)
        for label, run in runs.items():
            kind = torch.bfloat16 if "bfloat16" in label else torch.float32
            found = all_pairs(comparison, regions[: shard[0]].to(kind), WordSets(some.words.to(kind), some.lengths))
            seconds = _least(run, repeats) * sizes.images / ours
            compared = float((found - exact).abs().max()) if label.startswith("ours") else math.nan
            measured(label, seconds, memory_of(run), compared)
    beside = [seconds for label, seconds, _, _ in rows if label.startswith("loop")]
    titles = [f"x {label.rpartition(' ')[2]} loop" for label in programs]
    print(f"{'':<30}{'seconds':>9}{'peak GB':>9}{'largest difference':>20}{''.join(one.rjust(16) for one in titles)}")
    for label, seconds, memory, difference in rows:
        ratios = "".join(f"{other / seconds:.1f}".rjust(16) for other in beside) if label.startswith("ours") else ""
        compared = "" if math.isnan(difference) else f"{difference:.1e}"
        print(f"{label:<30}{seconds:>9.1f}{memory:>9.2f}{compared:>20}{ratios}", flush=True)
    work = _arithmetic(comparison, regions[: shard[0]], some) * sizes.pairs / math.prod(shard)
    bounds = []
    for kind in (torch.float32, torch.bfloat16):
        speed = _speed(kind)
        bounds.append(f"{work / speed:.0f} s in {str(kind).removeprefix('torch.')} ({speed / 1e9:.0f} GFLOP/s)")
    print(f"products of ours: {work / 1e12:.1f} TFLOP, at least {' and '.join(bounds)}")


def _products(regions: Tensor, words: WordSets) -> Tensor:
    """Inner products of all regions with all words, the last of them; the others are dropped."""
    flat = regions.flatten(0, 1)
    last = flat[:0]
    for some in torch.split(words.words, WORDS_AT_ONCE):
        last = flat @ some.T
    return last


def _arithmetic(comparison: SetSimilarity, regions: Tensor, words: WordSets) -> int:
    """Floating-point operations of the matrix products in ours."""
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        all_pairs(comparison, regions, words)
    return counter.get_total_flops()


def _speed(kind: torch.dtype) -> float:
    """Floating-point operations a second of one large product."""
    side = torch.randn(4096, 1024).to(kind), torch.randn(1024, 4096).to(kind)
    return 2 * 4096 * 4096 * 1024 / _least(lambda: side[0] @ side[1], 5)


def _gradients(name: str, sizes: Sizes, batch: int, repeats: int, kept: Rows) -> None:
    """Forward and backward of one batch: the similarity and the loss; and a whole step of ours with its encoders."""
    model = _model(name, sizes).train()
    draw = torch.Generator().manual_seed(2)
    lengths = [sizes.lengths[at] for at in torch.randint(len(sizes.lengths), (batch,), generator=draw).tolist()]
    regions, words = _sets(Sizes(batch, sizes.regions, sizes.width, lengths))
    padded, counts = _padded(words)
    loss = MaxOfHinges()

    def slope(score: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], None]:
        def run() -> None:
            image, text = regions.clone().requires_grad_(), padded.clone().requires_grad_()
            loss(score(image, text)).backward()

        return run

    def ours(kind: torch.dtype) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda image, text: all_pairs(
            model.comparison, image.to(kind), WordSets.of(text.to(kind), counts), recompute=model.recompute
        )

    optimizer = torch.optim.Adam(model.parameters(), 2e-4)
    rows = torch.randn(batch, sizes.regions, 2048, generator=draw)
    tokens = torch.randint(4, 8000, (batch, max(counts)), generator=draw)
    from rungwise.models import EncoderBatch

    def step() -> None:
        optimizer.zero_grad()
        autocast = torch.autocast("cpu", torch.bfloat16)
        loss(model.score(EncoderBatch(rows, tokens, torch.tensor(counts)), lambda: autocast).similarity).backward()
        optimizer.step()

    jobs: dict[str, Callable[[], None]] = {
        "loop over captions, float32": slope(lambda image, text: _program(name, model, image, text, counts)),
        "ours, float32": slope(ours(torch.float32)),
        "ours, bfloat16": slope(ours(torch.bfloat16)),
        "a whole step of ours, bfloat16": step,
    }
    print(f"\n{name}: seconds of forward and backward, {batch} pairs")
    found = {}
    for label, job in jobs.items():
        found[label] = _least(job, repeats), memory_of(job)
        kept.keep(model=name, training=label, seconds=found[label][0], GB=found[label][1])
    base = next(iter(found.values()))[0]
    print(f"{'':<32}{'seconds':>9}{'pairs/s':>10}{'peak GB':>9}{'x loop':>8}")
    for label, (seconds, memory) in found.items():
        ratio = f"{base / seconds:.1f}" if label.startswith("ours") else ""
        print(f"{label:<32}{seconds:>9.2f}{batch / seconds:>10.0f}{memory:>9.2f}{ratio:>8}")


def _agreement(runs: Sequence[Path], kept: Rows) -> None:
    """What bfloat16 changes in the rankings of trained models."""
    data = with_splits(read(Path(os.environ["RUNGWISE_DATA"]) / "flickr8k")).split("test")
    print(f"{'':<26}{'rsum, float32':>15}{'rsum, bfloat16':>16}{'first ten kept':>16}{'first one':>11}")
    for run in runs:
        scores: Any = opened(run, "cpu").on(data)
        exact, quick = scores.matrix(), in_half(scores).matrix()
        sums = [
            evaluate(similarity=one, image_of_caption=data.image_of_caption, measures=["rsum"])["rsum"]
            for one in (exact, quick)
        ]
        both = ((exact, quick), (exact.T, quick.T))
        stay = [f"{100 * np.mean([first_kept(*one, k=many) for one in both]):.1f} %" for many in (10, 1)]
        name = str(run.parent.name if run.name.startswith("seed") else run.name)
        print(f"{name:<26}{sums[0]:>15.1f}{sums[1]:>16.1f}{stay[0]:>16}{stay[1]:>11}", flush=True)
        kept.keep(model=name, rsum_float32=sums[0], rsum_bfloat16=sums[1], first_ten_kept=stay[0], first_kept=stay[1])


def _padded(words: WordSets) -> tuple[Tensor, list[int]]:
    lengths: list[int] = words.lengths.tolist()
    padded = torch.nn.utils.rnn.pad_sequence(torch.split(words.words, lengths), batch_first=True)
    return padded, lengths


def _least(job: Callable[[], object], repeats: int) -> float:
    """Seconds of the quickest of some runs, after one that does not count."""
    took: Sequence[float] = []
    for _ in range(1 + repeats):
        begun = time.perf_counter()
        job()
        took = [*took, time.perf_counter() - begun]
    return min(took[1:])


if __name__ == "__main__":
    main()
