"""Pictures a second through the whole pipeline, beside the bare network and beside a plain loop with timm.

    python benchmarks/encoding.py                                     # everything
    python benchmarks/encoding.py --networks resnet50 --pictures 128  # less
    python benchmarks/encoding.py compare --widths 6000 --pictures 16 # photos of 24 megapixels alone
    python benchmarks/encoding.py full-size                           # memory and seconds of VGG19 and ResNet152

Photos come from Flickr8K (``$RUNGWISE_DATA/flickr8k``), of 224 x 224 and, enlarged and with noise as cameras make it,
of 6 and of 24 megapixels. ``pipeline`` is ``rungwise.encoders.images.feature_rows``: files are read, hashed, decoded,
encoded and their rows kept on disk, into an empty cache. ``bare`` is the network on prepared tensors in memory in the
same precision, channels last, in the better of two ways: batches of 64 with every core on each, or of 8 on each core.
It keeps freed memory as ours does. ``loop`` reads with Pillow, takes timm's own transform and runs the network in
float32, a batch after the other. ``decode`` reads, hashes, decodes and resizes on every core, without a network:
``bound`` is the share of ``bare`` that is left to whoever must do both. All take turns. Shares and factors are given by
the clock and, in brackets, by seconds of the processor, which others who use the machine disturb less. GB are what the
pipeline takes at its peak above what was there.

Weights are random, but for MobileNetV2 where ``$RUNGWISE_DATA/weights`` has them.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import itertools
import math
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from PIL import Image
from timm.data import create_transform, resolve_model_data_config

from measuring import GB, Rows, alone, by_turns, memory_of, peak, with_out
from rungwise.core.compute import freed_memory_kept
from rungwise.data.pictures import load_picture, prepared_picture
from rungwise.encoders import computed_in, native_bfloat16
from rungwise.encoders.images import Backbone, ImageConfig, feature_rows, load_backbone
from rungwise.encoders.images._pipeline import _one_core_each

NETWORKS = ("mobilenetv2_100", "resnet50", "vit_base_patch32_224")
FULL_SIZE = ("vgg19", "resnet152")
SIZES = ((224, 224), (3000, 2000), (6000, 4000))
AIMS = {224: 0.95, 6000: 0.85}
"""Shares of the bare network by the width of photos."""
BATCH = 64
TRAINED = 32


@dataclass(frozen=True)
class Job:
    """One measurement, in a process of its own.

    Attributes:
        network: A name of timm's.
        photos: Files.
        half: Compute in bfloat16.
        repeats: How often the three ways take turns.
    """

    network: str
    photos: tuple[Path, ...]
    half: bool
    repeats: int


def make_photos(folder: Path, size: tuple[int, int], count: int) -> tuple[Path, ...]:
    """JPEGs of real photos with so many pixels across and down; enlarged ones get noise of a camera's size."""
    originals = sorted(Path(os.environ["RUNGWISE_DATA"], "flickr8k", "Flicker8k_Dataset").glob("*.jpg"))[:count]
    grain = np.tile(np.random.default_rng(0).normal(0, 6, (250, 250, 3)), (size[1] // 250 + 1, size[0] // 250 + 1, 1))
    made = []
    for path in originals:
        original = Image.open(path).convert("RGB")
        image = original.resize(size, Image.Resampling.BICUBIC)
        if size[0] > original.width:
            noisy = np.asarray(image) + grain[: size[1], : size[0]]
            image = Image.fromarray(noisy.clip(0, 255).astype(np.uint8))
        made.append(folder / f"{size[0]}-{path.name}")
        image.save(made[-1], quality=90)
    return tuple(made)


def config_of(network: str) -> ImageConfig:
    """The network with what weights there are."""
    weights = Path(os.environ["RUNGWISE_DATA"], "weights", "mobilenetv2_100_imagenet.safetensors")
    if network == "mobilenetv2_100" and weights.exists():
        half = (0.5, 0.5, 0.5)
        return ImageConfig(network, str(weights), {"pad_type": "same"}, mean=half, std=half)
    return ImageConfig(network, "random")


def device() -> torch.device:
    """A GPU where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def plain_loop(network: torch.nn.Module, photos: Sequence[Path], transform: Callable[[Image.Image], Any]) -> None:
    """What timm's documentation shows."""
    with torch.inference_mode():
        for begin in range(0, len(photos), BATCH):
            some = torch.stack([transform(Image.open(path).convert("RGB")) for path in photos[begin : begin + BATCH]])
            network(some.to(device())).cpu()


def measure(job: Job) -> dict[str, float]:
    """Seconds a picture of each way, processor seconds, and how close the features are."""
    torch.manual_seed(0)
    backbone = load_backbone(config_of(job.network)).eval().to(device())
    seen = backbone.preprocessing
    pictures = [seen.apply(load_picture(path, shorter_side=seen.decoded_side)) for path in job.photos]
    prepared = seen.normalise(torch.stack(pictures)).to(device())
    kind = torch.bfloat16 if job.half else torch.float32
    plain = timm.create_model(job.network, num_classes=0, **backbone.config.options).eval().to(device())
    plain.load_state_dict(backbone.network.state_dict())
    bare_network = copy.deepcopy(backbone.network).to(kind)
    batches = prepared.to(kind).split(BATCH)
    data_config = resolve_model_data_config(plain)
    transform = create_transform(**{**data_config, "mean": seen.mean, "std": seen.std, "is_training": False})
    with torch.inference_mode():
        exact = torch.cat([backbone(one.to(device())) for one in torch.stack(pictures).split(BATCH)]).cpu()
    rows: list[Any] = []

    def pipeline() -> None:
        with tempfile.TemporaryDirectory() as cache, computed_in("bfloat16" if job.half else "float32"):
            rows[:] = [feature_rows(backbone, job.photos, Path(cache), batch=BATCH)]
            rows[0] = rows[0].take(np.arange(len(rows[0])))

    def bare() -> None:
        with freed_memory_kept(), torch.inference_mode():
            for one in batches:
                bare_network(one).cpu()

    eights = prepared.to(kind).split(8)

    def bare_on_each() -> None:
        with freed_memory_kept(), _one_core_each(os.cpu_count() or 1) as pool:
            for _ in pool.map(quietly, eights):
                pass

    def quietly(some: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            return bare_network(some)

    def ready(path: Path) -> int:
        data = path.read_bytes()
        hashlib.sha256(data).digest()
        return len(prepared_picture(data, seen.apply, shorter_side=seen.decoded_side))

    def decode() -> None:
        with _one_core_each(os.cpu_count() or 1) as pool:
            for _ in pool.map(ready, job.photos):
                pass

    ways: dict[str, Callable[[], object]] = {"pipeline": pipeline, "bare": bare, "decode": decode}
    if device().type == "cpu":
        ways["bare on each"] = bare_on_each
    if not job.half:
        ways["loop"] = lambda: plain_loop(plain, job.photos, transform)
    spent: dict[str, float] = {}
    for name, way in ways.items():  # once before, for the memory and for what is made on the first call
        way()
        begun = time.process_time()
        way()
        spent[f"{name} processor"] = (time.process_time() - begun) / len(job.photos)
    seconds = by_turns(job.repeats, *ways.values())
    cosine = float(torch.cosine_similarity(rows[0].flatten(1).double(), exact.flatten(1).double()).min())
    taken = {name: one / len(job.photos) for name, one in zip(ways, seconds, strict=True)}
    if (on_each := taken.pop("bare on each", math.inf)) < taken["bare"]:
        taken["bare"], spent["bare processor"] = on_each, spent["bare on each processor"]
    return taken | spent | {"cosine": cosine, "memory": memory_of(pipeline)}


def compare(networks: Sequence[str], widths: Sequence[int], count: int, repeats: int, kept: Rows) -> None:
    """Print a line for each network, size and precision."""
    print(
        f"pictures/s on {device()}, {torch.get_num_threads()} threads, {count} photos; bracketed: by processor seconds"
    )
    print(
        f"{'network':21}{'width':>6} {'precision':9}{'pipeline':>9}{'bare':>7}{'of bare':>15}{'decode':>8}{'bound':>7}"
        f"{'loop':>7}{'x loop':>12}",
        end="",
    )
    print(f"{'cosine':>9}{'GB':>9}")
    with tempfile.TemporaryDirectory() as place:
        photos = {size: make_photos(Path(place), size, count) for size in SIZES if size[0] in widths}
        for network, (size, files) in itertools.product(networks, photos.items()):
            loop: dict[str, float] = {}
            for half in (False, True) if native_bfloat16(device()) else (False,):
                found = alone(measure, Job(network, files, half, repeats))
                loop = loop or found
                kept.keep(network=network, width=size[0], half=half, **found)
                print(
                    f"{network:21}{size[0]:6} {'bfloat16' if half else 'float32':9}{1 / found['pipeline']:9.1f}"
                    f"{1 / found['bare']:7.1f}{found['bare'] / found['pipeline']:8.0%}"
                    f" ({found['bare processor'] / found['pipeline processor']:4.0%})"
                    f"{1 / found['decode']:8.1f}{found['bare'] / (found['bare'] + found['decode']):7.0%}"
                    f"{1 / loop['loop']:7.1f}{loop['loop'] / found['pipeline']:6.1f}"
                    f" ({loop['loop processor'] / found['pipeline processor']:3.1f})"
                    f"{found['cosine']:9.5f}{found['memory']:9.2f}",
                    flush=True,
                )
                if aim := AIMS.get(size[0]):
                    share = found["bare"] / found["pipeline"]
                    print(f"    aim {aim:.0%} of the bare network: {'met' if share >= aim else 'MISSED'}")


def full_size(network: str) -> dict[str, float]:
    """A step of fine-tuning and the features of some pictures, at the size of the paper."""
    torch.manual_seed(0)
    config = replace(config_of(network), frozen=False, crops="RC")
    begun = time.perf_counter()
    backbone = Backbone(config).to(device())
    built = time.perf_counter() - begun
    size = backbone.preprocessing.size
    pictures = torch.randint(0, 256, (TRAINED, 3, size, size), dtype=torch.uint8).to(device())
    optimizer = torch.optim.Adam(backbone.parameters(), lr=2e-5, fused=True)
    backbone.train()
    begun = time.perf_counter()
    features = backbone(pictures)
    features.square().sum().backward()
    optimizer.step()
    step = time.perf_counter() - begun
    memory = peak()
    optimizer.zero_grad(set_to_none=True)
    backbone.eval()
    begun = time.perf_counter()
    with torch.inference_mode():
        width = backbone(pictures).cpu().shape[1]
    return {
        "built": built,
        "step": step,
        "peak": memory,
        "features": time.perf_counter() - begun,
        "width": float(width),
    }


def print_full_size(networks: Sequence[str], kept: Rows) -> None:
    """Print what full-size networks take."""
    print(f"random weights, {TRAINED} pictures of 224, Adam, float32, on {device()}")
    for network in networks:
        found = alone(full_size, network)
        kept.keep(network=network, **found)
        print(
            f"{network}: {found['width']:.0f} features, built in {found['built']:.1f} s,"
            f" a training step {found['step']:.1f} s and {found['peak'] / GB:.2f} GB,"
            f" features {found['features']:.1f} s",
            flush=True,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["compare", "full-size", []], default=[])
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    widths = [size[0] for size in SIZES]
    parser.add_argument("--widths", type=int, nargs="+", choices=widths, default=widths, help="of photos, in pixels")
    parser.add_argument("--pictures", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=3)
    with_out(parser)
    asked = parser.parse_args()
    kept = Rows(asked.out)
    parts = asked.parts or ["compare", "full-size"]
    if "compare" in parts:
        compare(asked.networks, asked.widths, asked.pictures, asked.repeats, kept)
    if "full-size" in parts:
        print_full_size(FULL_SIZE, kept)


if __name__ == "__main__":
    main()
