"""A training step of VSE++ beside a plain loop as its authors wrote it: pairs a second, floors, data loading, memory.

    python benchmarks/training.py CAPTIONS                           # batches of 128, two threads
    python benchmarks/training.py CAPTIONS --beside CHECKOUT         # and an earlier rungwise, in the same turns
    python benchmarks/training.py CAPTIONS --turns 0 --memory --rsum DATA --weights FILE
    python benchmarks/training.py CAPTIONS --turns 0 --memory --coco  # 30 epochs of a set as large as COCO, on a GPU

CAPTIONS is a file of lines "picture#number<TAB>caption", gzipped or not, such as that of Flickr30K. Pictures are random
rows of 2,048 numbers: what they hold changes no time. All loops, each in a process, take turns of a few steps, and
medians are compared.

The plain loop is that of the VSE++ program: captions sorted by length and packed, float32, Adam as it stands, the max
of hinges summed, gradients cut to a norm of 2. Its captions are cut into tokens beforehand, which the program does on
each visit. It is to make 251 to 274 pairs a second on two cores; below 0.8 of that, the machine is busy or another one.

A floor is the time of a step's matrix products alone, on random numbers of the shapes that occur, in bfloat16: those of
the plain loop, which reads every word of every caption, and those of ours, which reads what captions share once.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import torch

from measuring import GB, Rows, alone, memory_of, with_out
from rungwise.core import compute
from rungwise.data import ImageCaptions, read
from rungwise.data.files import FeatureRows
from rungwise.encoders import FeatureConfig
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import Prefixes
from rungwise.evaluation import evaluate
from rungwise.losses import MaxOfHinges
from rungwise.models import JointEmbedding, Pairs, VSEConfig
from rungwise.training.batches import ByLength, Sampler, Shuffled
from rungwise.training.config import LossConfig, TrainConfig, config_of
from rungwise.training.distributed import Processes
from rungwise.training.engine import Prepared, prepare, train
from training_steps import (
    FEATURE,
    WIDTH,
    WORD,
    Loop,
    Plain,
    PlainLoop,
    Products,
    Sizes,
    plain_sizes,
    prefix_sizes,
)

PLAIN_PAIRS, SLOW = 251.0, 0.8
VALIDATION = 200
COCO_IMAGES, COCO_CAPTIONS = 113_287, 566_435

BATCHES = 100
"""Batches that all turns are of. Each was there once before the clock runs, so that the code of its products is there,
as after the first epoch of a run."""
PLAYERS = {
    "plain": "plain loop, float32",
    "random": "ours, bfloat16, random batches",
    "length": "ours, bfloat16, by_length",
    "float32": "ours, float32, random batches",
    "floor plain": "floor of the plain loop's products",
    "floor random": "floor of ours, random batches",
    "floor length": "floor of ours, by_length",
}


def pictures(count: int) -> FeatureRows:
    """Rows of random numbers."""
    return FeatureRows(np.random.default_rng(0).random((count, FEATURE), dtype=np.float32))


def collection(captions: Path, images: int | None = None, total: int | None = None) -> ImageCaptions:
    """Pictures with the captions of a file; more of them than the file has repeat its captions.

    Args:
        captions: The file.
        images: Pictures to take; those of the file.
        total: Captions to take; those of the pictures.
    """
    opened = gzip.open if captions.suffix == ".gz" else open
    with opened(captions, "rt", encoding="utf-8") as lines:
        said = [line.rstrip("\n").split("\t", 1) for line in lines]
    names = list(dict.fromkeys(name.split("#")[0] for name, _ in said))
    place = {name: at for at, name in enumerate(names)}
    owners = np.array([place[name.split("#")[0]] for name, _ in said])
    texts = [text for _, text in said]
    if images is not None and total is not None:
        names = [str(at) for at in range(images)]
        texts = [texts[at % len(texts)] for at in range(total)]
        owners = np.arange(total) % images
    validation = min(VALIDATION, len(names) // 4)
    splits = ("val",) * validation + ("train",) * (len(names) - validation)
    return ImageCaptions(
        tuple(names), tuple(texts), owners, splits=splits, features=pictures(len(names)), name="captions"
    )


def run_of(data: ImageCaptions, sampler: Sampler, precision: Any, batch: int) -> Prepared:
    """A run that is ready to take steps."""
    config = TrainConfig(
        model=VSEConfig(image=FeatureConfig()),
        loss=hinges_summed(),
        sampler=sampler,
        precision=precision,
        batch_size=batch,
    )
    return prepared_of(config, data)


def hinges_summed() -> LossConfig:
    """The loss of VSE++, with the sum over a batch, as the program has it."""
    return config_of(MaxOfHinges)(reduction="sum")


def prepared_of(config: TrainConfig, data: ImageCaptions) -> Prepared:
    torch.manual_seed(config.seed)
    cpu = torch.device("cpu")
    return prepare(config, data, Processes(), cpu, say=lambda line: None, progress=lambda what, done, of: None)


class Player:
    """A loop, or products alone, in a process of its own, which takes its turns when told to.

    What one holds of memory and of compiled products says nothing of another, and an earlier rungwise can play along.

    Args:
        kind: Of :data:`PLAYERS`.
        asked: Options of the benchmark.
        checkout: Where the code of ours comes from; None for the present one.
    """

    def __init__(self, kind: str, asked: argparse.Namespace, checkout: Path | None = None) -> None:
        self.name = PLAYERS[kind] + (" (before)" if checkout else "")
        command = [sys.executable, __file__, str(asked.captions), "--play", kind]
        for option in ("batch", "threads", "settle"):
            command += [f"--{option}", str(getattr(asked, option))]
        path = {"PYTHONPATH": str((checkout / "src").resolve())} if checkout else {}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **path}
        )
        self.seconds: list[float] = []
        self.data_seconds = 0.0
        self._heard()

    def _heard(self) -> list[float]:
        """What the process answers, once it has."""
        assert self._process.stdout is not None
        if not (line := self._process.stdout.readline()):
            sys.exit(f"{self.name}: the process ended")
        heard: list[float] = json.loads(line)
        return heard

    def turn(self, steps: int) -> None:
        """Take some steps."""
        assert self._process.stdin is not None
        print(steps, file=self._process.stdin, flush=True)
        seconds, data_seconds = self._heard()
        self.seconds.append(seconds / steps)
        self.data_seconds += data_seconds

    def leave(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    @property
    def median(self) -> float:
        """Seconds of a step."""
        return statistics.median(self.seconds)


def play(kind: str, data: ImageCaptions, batch: int, settle: int) -> None:
    """What a :class:`Player`'s process does: steps when told how many, and seconds in answer, those of data besides."""
    sampler = ByLength() if "length" in kind else Shuffled()
    prepared = run_of(data, sampler, "float32" if kind == "float32" else "bfloat16", batch)
    chosen = full(prepared, batch)[:BATCHES]
    loop = Loop(prepared) if kind in ("random", "length", "float32") else None
    step: Callable[[Any], object]
    drawn: Iterator[Any]
    if kind.startswith("floor"):
        of = plain_sizes if kind == "floor plain" else None
        sizes = [of(lengths_of(prepared, one)) if of else sizes_of(prepared, one) for one in chosen]
        step, drawn = Products().run, cycle(sizes)
    else:
        step, drawn = PlainLoop(prepared).step if loop is None else loop.step, cycle(chosen)
    # As in a run of ours, which an earlier rungwise did not do.
    kept = getattr(compute, "freed_memory_kept", nullcontext) if loop else nullcontext
    with kept():
        for _ in range(settle):
            step(next(drawn))
        print([0.0, 0.0], flush=True)
        for line in sys.stdin:
            before, begun = loop.data_seconds if loop else 0.0, time.perf_counter()
            for _ in range(int(line)):
                step(next(drawn))
            seconds = time.perf_counter() - begun
            print([seconds, loop.data_seconds - before if loop else 0.0], flush=True)


def speed(asked: argparse.Namespace, kept: Rows) -> None:
    """Print the milliseconds of each turn as it ends, and the table of times."""
    players = {kind: Player(kind, asked) for kind in PLAYERS}
    if asked.beside:
        players |= {f"{kind}, before": Player(kind, asked, asked.beside) for kind in ("random", "length", "float32")}
    for turn in range(asked.turns):
        for one in players.values():
            one.turn(asked.steps)
        kept.add(turn=turn + 1, **{one.name: 1000 * one.seconds[-1] for one in players.values()})
    print(f"{'':44}{'ms a step':>10}{'pairs/s':>9}{'x plain':>9}{'x floor':>8}{'data %':>8}")
    plain = players["plain"]
    for kind, one in players.items():
        floor = players.get(f"floor {kind.removesuffix(', before')}")
        share = 100 * one.data_seconds / (asked.steps * sum(one.seconds)) if one.data_seconds else None
        print(
            f"{one.name:<44}{1000 * one.median:>10.1f}{asked.batch / one.median:>9.0f}{ratio(plain, one):>9.2f}"
            + (f"{ratio(one, floor):>8.2f}" if floor and kind != "plain" else f"{'':>8}")
            + (f"{share:>8.2f}" if share is not None else "")
        )
        one.leave()
    if (made := asked.batch / plain.median) < SLOW * PLAIN_PAIRS:
        print(
            f"the plain loop makes {made:.0f} pairs/s, below {SLOW} of {PLAIN_PAIRS:.0f}: the machine is busy or slower"
        )
    ours = players["random"]
    print(aim("4 times the plain loop, random batches", ratio(plain, ours), 4.0, least=True))
    print(aim("1.6 times the floor, random batches", ratio(ours, players["floor random"]), 1.6, least=False))


def ratio(one: Player, other: Player) -> float:
    """Median of the turns' ratios, each of neighbouring turns."""
    return statistics.median(a / b for a, b in zip(one.seconds, other.seconds, strict=True))


def aim(what: str, value: float, wanted: float, *, least: bool) -> str:
    met = value >= wanted if least else value <= wanted
    return f"aim: {what}: {value:.2f}, {'met' if met else 'missed'}"


def full(prepared: Prepared, batch: int) -> list[np.ndarray]:
    """The batches of the first epoch that are full."""
    return [one for one in prepared.batches_of(0) if len(one) == batch]


def lengths_of(prepared: Prepared, batch: np.ndarray) -> np.ndarray:
    return np.array([len(prepared.work.pairs.texts[caption]) for caption in batch])


def sizes_of(prepared: Prepared, batch: np.ndarray) -> Sizes:
    tokens = prepared.model.batch(prepared.work.pairs, batch)
    return prefix_sizes(Prefixes.of(tokens.texts.numpy(), tokens.lengths.numpy()), len(batch))


def memory(captions: Path, batch: int, kind: str, threads: int) -> float:
    """Highest memory of a few steps in GB, above data and weights; runs in a process of its own."""
    torch.set_num_threads(threads)
    prepared = run_of(collection(captions), Shuffled(), "bfloat16", batch)
    step = PlainLoop(prepared).step if kind == "plain" else Loop(prepared).step
    batches = full(prepared, batch)[:3]
    return memory_of(lambda: [step(one) for one in batches])


def growth(captions: Path, batches: Sequence[int], threads: int, kept: Rows) -> None:
    """Print memory by the size of the batch."""
    print(f"\n{'memory above data and weights, GB':<36}" + "".join(f"{f'B = {one}':>11}" for one in batches))
    for name, kind in (("plain loop, float32", "plain"), ("ours, bfloat16, random batches", "ours")):
        found = [alone(memory, captions, one, kind, threads) for one in batches]
        print(f"{name:<36}" + "".join(f"{one:>11.2f}" for one in found), flush=True)
        kept.keep(memory_of=name, **{f"GB at B = {size}": one for size, one in zip(batches, found, strict=True)})


def same_rsum(data: ImageCaptions, weights: Path, epochs: int, warm_up: int, kept: Rows) -> None:
    """Train the plain loop and ours from the same weights over the same batches; print the rsum after each epoch."""
    image = ImageConfig(
        "mobilenetv2_100",
        weights=str(weights),
        options={"pad_type": "same"},
        mean=(0.5, 0.5, 0.5),
        std=(0.5, 0.5, 0.5),
        crop=1.0,
    )
    config = TrainConfig(model=VSEConfig(image=image), loss=hinges_summed(), precision="bfloat16")
    prepared = prepared_of(config, data)
    assert isinstance(prepared.model, JointEmbedding)
    model, plain, ours = prepared.model, PlainLoop(prepared), Loop(prepared)
    seconds = [0.0, 0.0]
    print(f"\n{data.name}, validation rsum after each epoch, {warm_up} of them with the sum of hinges")
    print(f"{'epoch':<8}{'plain loop, float32':>24}{'ours, bfloat16':>24}{'x plain':>12}", flush=True)
    for epoch in range(epochs):
        begun = [*seconds]
        found = []
        for which, step in enumerate((plain.step, ours.step)):
            start = time.perf_counter()
            for batch in prepared.batches_of(epoch):
                step(batch, hardest=epoch >= warm_up)
            seconds[which] += time.perf_counter() - start
            found.append(rsum_of(model, prepared.validation.pairs, plain.model if which == 0 else None))
            model.train()
        times = [after - before for after, before in zip(seconds, begun, strict=True)]
        print(f"{epoch + 1:<8}{found[0]:>24.1f}{found[1]:>24.1f}{times[0] / times[1]:>12.2f}", flush=True)
        kept.keep(epoch=epoch + 1, plain_rsum=found[0], our_rsum=found[1], x_plain=times[0] / times[1])


@torch.no_grad()
def rsum_of(model: JointEmbedding, pairs: Pairs, plain: Plain | None) -> float:
    """Of the model, or of the plain loop's weights, measured by the same code."""
    kept = {name: weight.clone() for name, weight in model.state_dict().items()}
    if plain is not None:
        plain.give(model)
    scores = model.scores_of(pairs)
    model.load_state_dict(kept)
    return float(evaluate(**scores.for_evaluation(), image_of_caption=scores.data.image_of_caption)["rsum"])


def as_large_as_coco(captions: Path, images: int, epochs: int, batch: int, device: str, kept: Rows) -> None:
    """Train on random rows with the captions of the file, as many as COCO has, and print speed and time."""
    data = collection(captions, images, round(images * COCO_CAPTIONS / COCO_IMAGES))
    config = TrainConfig(
        model=VSEConfig(image=FeatureConfig()),
        loss=hinges_summed(),
        precision="bfloat16",
        batch_size=batch,
        epochs=(epochs,),
        learning_rates=(2e-4,),
        logs=(),
    )
    print(f"\n{len(data)} pictures, {len(data.captions)} pairs, {epochs} epochs, B = {batch}, {device}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        history = train(config, data, Path(folder) / "run", device=device).history
        minutes = (time.perf_counter() - begun) / 60
    made = statistics.median(one["pairs_per_second"] for one in history)
    print(f"{made:.0f} pairs/s; {minutes:.1f} minutes with reading and validation")
    kept.keep(images=images, epochs=epochs, batch=batch, device=device, pairs_a_second=made, minutes=minutes)
    if device.startswith("cuda"):
        print(f"highest memory of the GPU: {torch.cuda.max_memory_allocated() / GB:.1f} GB")
        print(aim("30 epochs in 3 minutes on an H200-class card", minutes, 3.0, least=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("captions", type=Path)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=9, help="0 leaves out the table of times")
    parser.add_argument("--steps", type=int, default=6, help="of a turn")
    parser.add_argument("--memory", type=int, nargs="*", default=[128, 512, 2048], help="sizes of batches")
    parser.add_argument("--rsum", type=Path, metavar="DATA", help="pictures on which both are trained")
    parser.add_argument("--weights", type=Path, help="of MobileNetV2, for --rsum")
    parser.add_argument("--epochs", type=int, default=5, help="for --rsum")
    parser.add_argument("--warm-up", type=int, default=2, help="for --rsum")
    parser.add_argument("--coco", action="store_true", help="train on a set as large as COCO")
    parser.add_argument("--coco-images", type=int, default=COCO_IMAGES)
    parser.add_argument("--coco-epochs", type=int, default=30)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="for --coco")
    parser.add_argument("--beside", type=Path, help="a checkout of rungwise")
    parser.add_argument("--settle", type=int, default=BATCHES, help="steps before the first turn")
    parser.add_argument("--play", choices=PLAYERS, help=argparse.SUPPRESS)
    with_out(parser)
    options = parser.parse_args()
    if options.play:
        getattr(compute, "keep_compiled_products", lambda: None)()  # which an earlier rungwise has not
        torch.set_num_threads(options.threads)
        play(options.play, collection(options.captions), options.batch, options.settle)
        return
    kept = Rows(options.out)
    torch.set_num_threads(options.threads)
    if options.turns:
        print(f"VSE++, B = {options.batch}, D = {WIDTH}, words {WORD}, {options.threads} threads, features {FEATURE}")
        speed(options, kept)
    if options.memory:
        growth(options.captions, options.memory, options.threads, kept)
    if options.rsum and options.weights:
        same_rsum(read(options.rsum), options.weights, options.epochs, options.warm_up, kept)
    if options.coco:
        as_large_as_coco(
            options.captions, options.coco_images, options.coco_epochs, options.batch, options.device, kept
        )


if __name__ == "__main__":
    main()
