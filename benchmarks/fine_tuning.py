"""Fine-tuning a real backbone end to end on a few hundred photos: loss, weights, statistics, memory, seconds, data.

python benchmarks/fine_tuning.py
python benchmarks/fine_tuning.py --pictures 500 --side 224 --device cuda

A MobileNetV2 with its ImageNet weights stays frozen first, while a GRU and a linear layer learn. From there both
encoders are trained, once for each way: with the statistics of batch normalisation live or frozen, and with gradient
checkpointing. Every run is a process of its own, so that its peak memory is its own. Photos and captions are those of
Flickr8K; "data" is the share of the steps' time that waited for pictures and captions, which are decoded before.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from measuring import alone
from rungwise.core.compute import GB, peak_memory
from rungwise.data import ImageCaptions, read
from rungwise.encoders.images import ImageConfig
from rungwise.encoders.texts import GRUConfig
from rungwise.losses import ContrastiveSum
from rungwise.models import JointEmbedding, VSEConfig
from rungwise.training.config import TrainConfig, WholeModel, config_of
from rungwise.training.engine import train

WEIGHTS = "weights/mobilenetv2_100_imagenet.safetensors"
VALIDATION_PICTURES = 100
MIDDLE = (0.5, 0.5, 0.5)


@dataclass(frozen=True)
class Way:
    """How the backbone is trained.

    Attributes:
        name: For the table.
        batch_norm: live or frozen.
        recompute: Gradient checkpointing.
    """

    name: str
    batch_norm: str
    recompute: bool = False


WAYS = (
    Way("statistics live", "live"),
    Way("statistics frozen", "frozen"),
    Way("frozen, layers computed twice", "frozen", recompute=True),
)


@dataclass(frozen=True)
class Found:
    """What a run showed.

    Attributes:
        losses: Of each epoch.
        rsums: Of each epoch, on the validation photos.
        step: Seconds of one.
        data: Share of them that waited for data.
        before: GB of memory before training.
        peak: GB at most.
    """

    losses: list[float]
    rsums: list[float]
    step: float
    data: float
    before: float
    peak: float


def photos(shared: Path, pictures: int) -> ImageCaptions:
    """Some training and some validation photos, drawn by a fixed seed, two captions each."""
    data = read(shared / "flickr8k")
    splits = np.array(data.splits)
    train_pictures = np.random.default_rng(0).choice(np.flatnonzero(splits == "train"), pictures, replace=False)
    some = data.select(np.sort(np.concatenate([train_pictures, np.flatnonzero(splits == "val")[:VALIDATION_PICTURES]])))
    first = np.concatenate([np.flatnonzero(some.image_of_caption == image)[:2] for image in range(len(some))])
    return replace(
        some,
        captions=tuple(some.captions[at] for at in first),
        caption_ids=(),
        image_of_caption=some.image_of_caption[first],
    )


def model(shared: Path, side: int, **more: object) -> VSEConfig:
    image = ImageConfig(
        "mobilenetv2_100", weights=str(shared / WEIGHTS), options={"pad_type": "same"}, mean=MIDDLE, std=MIDDLE,
        size=side, **more,
    )  # fmt: skip
    return VSEConfig(image=image, text=GRUConfig(min_count=2), dimension=512)


def settings(shared: Path, options: argparse.Namespace) -> TrainConfig:
    """The stage before: encoders of pictures frozen."""
    return TrainConfig(
        model=model(shared, options.side),
        loss=config_of(ContrastiveSum)(temperature=0.05, reduction="mean"),
        epochs=(options.base_epochs,),
        learning_rates=(1e-3,),
        batch_size=options.batch_size,
        logs=("jsonl",),
    )


def fine_tuned(way: Way, shared: Path, options: argparse.Namespace, base: Path, out: Path) -> Found:
    """Go on from the stage before, with the backbone trained."""
    torch.set_num_threads(options.threads)
    data = photos(shared, options.pictures)
    config = replace(
        settings(shared, options),
        model=model(shared, options.side, frozen=False, batch_norm=way.batch_norm),
        start=str(base / "model"),
        tune=WholeModel(configured=True),
        epochs=(options.epochs,),
        learning_rates=(2e-4,),
        gradient_checkpointing=way.recompute,
    )
    before = (peak_memory() or 0) / GB
    history = train(config, data, out, cache=options.cache, device=options.device).history
    steps = -(-len(data.split("train").captions) // options.batch_size) * len(history)
    seconds = sum(one["seconds"] for one in history)
    gpu = history[-1].get("peak_gpu_memory_gb")
    return Found(
        [one["loss"] for one in history],
        [one["rsum"] for one in history],
        seconds / steps,
        sum(one["data_seconds"] for one in history) / seconds,
        0.0 if gpu else before,
        gpu or history[-1]["peak_memory_gb"],
    )


def prepare(shared: Path, options: argparse.Namespace, out: Path) -> list[float]:
    """The stage before; its losses."""
    torch.set_num_threads(options.threads)
    data = photos(shared, options.pictures)
    return [one["loss"] for one in train(settings(shared, options), data, out, cache=options.cache).history]


def part_of(name: str) -> str:
    """The part that a weight of the model belongs to, stages of the backbone apart."""
    words = name.removeprefix("backbone.network.").split(".")
    if not name.startswith("backbone."):
        return words[0]
    return f"backbone {words[0]}.{words[1]}" if words[0] == "blocks" else f"backbone {words[0]}"


def moved(before: dict[str, Tensor], after: dict[str, Tensor], statistics: bool) -> dict[str, float]:
    """How far each part went, as a share of its own norm."""
    gone: dict[str, list[float]] = {}
    for name, old in before.items():
        if old.is_floating_point() and ("running_" in name) == statistics:
            sums = gone.setdefault(part_of(name), [0.0, 0.0])
            sums[0] += float((after[name] - old).double().square().sum())
            sums[1] += float(old.double().square().sum())
    return {part: (apart / max(size, 1e-30)) ** 0.5 for part, (apart, size) in gone.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=os.environ.get("RUNGWISE_DATA"), help="folder of the real data")
    parser.add_argument("--pictures", type=int, default=240, help="photos to train on")
    parser.add_argument("--side", type=int, default=128, help="pixels of a side that the backbone sees")
    parser.add_argument("--base-epochs", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cache", type=Path, default=None)
    options = parser.parse_args()
    if options.shared is None:
        parser.error("name the folder of the real data: --shared FOLDER or RUNGWISE_DATA")
    shared = Path(options.shared)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        losses = alone(prepare, shared, options, base)
        print(f"frozen backbone, {options.base_epochs} epochs: loss {losses[0]:.3f} to {losses[-1]:.3f}", flush=True)
        start = JointEmbedding.from_pretrained(base / "model").state_dict()
        runs = Table("way", "loss", "val rsum", "s/step", "data", "peak", "above start", title="fine-tuning")
        parts = Table("part", *(way.name for way in WAYS), title="how far weights went, % of their norm")
        shares: list[dict[str, float]] = []
        for number, way in enumerate(WAYS):
            out = Path(folder) / str(number)
            found = alone(fine_tuned, way, shared, options, base, out)
            end = JointEmbedding.from_pretrained(out / "model").state_dict()
            shares.append(
                moved(start, end, statistics=False)
                | {f"{part}, statistics": far for part, far in moved(start, end, statistics=True).items()}
            )
            runs.add_row(
                way.name,
                " ".join(f"{one:.3f}" for one in found.losses),
                " ".join(f"{one:.0f}" for one in found.rsums),
                f"{found.step:.2f}",
                f"{100 * found.data:.1f} %",
                f"{found.peak:.2f} GB",
                f"{found.peak - found.before:.2f} GB",
            )
            print(f"{way.name}: done", flush=True)
        for part in shares[0]:
            parts.add_row(part, *(f"{100 * one[part]:.2f}" for one in shares))
        for table in (runs, parts):
            Console(width=120).print(table)


if __name__ == "__main__":
    main()
