"""Coarse to fine on Flickr30K's test captions: pairs scored, time, agreement with full scoring, broken off and resumed.

    RUNGWISE_DATA=... python benchmarks/cascade.py                       # 1000 images x 5000 captions
    RUNGWISE_DATA=... python benchmarks/cascade.py --images 100 --fine cross-encoder/stsb-roberta-base --scale sigmoid

MiniLM's sentence embeddings choose the pairs of captions. Where no fine model is named, a cross-encoder of MiniLM's
size (6 layers, 384 wide) with random weights stands for it: it takes a real one's time, but its scores mean nothing.
Agreement with full scoring is therefore shown for the paper's coarse source, word vectors, with MiniLM as the fine one.

The run is broken off by SIGKILL part of the way, in a process of its own, and resumed from its cache.
"""

from __future__ import annotations

import argparse
import gzip
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import pearsonr

from rungwise.core.output import format_duration
from rungwise.language.sentence_models import PACKAGED_MODEL
from rungwise.relevance import BiEncoder, CaptionPairSource, Cascade, CBoW, CrossEncoder, Inference, PairInference
from rungwise.relevance.combine import CascadeReport

Captions = tuple[list[str], list[int]]


def test_captions(folder: Path, images: int) -> Captions:
    """The first captions of Flickr30K's test split, with their images."""
    wanted = (folder / "flickr30k" / "test_images.txt").read_text(encoding="utf-8").split()[:images]
    position = {name: number for number, name in enumerate(wanted)}
    captions, owners = [], []
    with gzip.open(folder / "flickr30k" / "captions.en.token.gz", "rt", encoding="utf-8") as file:
        for line in file:
            name, _, text = line.rstrip("\n").partition("\t")
            if (image := position.get(name.partition("#")[0])) is not None:
                captions.append(text)
                owners.append(image)
    return captions, owners


def stand_in(folder: Path) -> Path:
    """A cross-encoder of MiniLM's size with MiniLM's tokenizer and random weights."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from rungwise.language.sentence_models import load_sentence_model

    torch.manual_seed(0)
    tokenizer = load_sentence_model(PACKAGED_MODEL, "cpu").tokenizer
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=384, num_hidden_layers=6, num_attention_heads=12,
        intermediate_size=1536, num_labels=1,
    )  # fmt: skip
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def cascade_of(asked: argparse.Namespace, captions: Captions, coarse: BiEncoder, model: str, cache: Path) -> Cascade:
    scale = tuple(map(float, asked.scale.split(","))) if "," in asked.scale else asked.scale
    pairs = PairInference(precision=asked.precision)
    fine = CrossEncoder(*captions, model, scale=scale, symmetric=True, inference=pairs)
    latest = time.monotonic()

    def progress(report: CascadeReport) -> None:
        nonlocal latest
        if time.monotonic() - latest > 10:
            latest = time.monotonic()
            print(f"  {report}; {report.pending} to go in this block", flush=True)

    return Cascade(coarse, fine, threshold=asked.threshold, cache=cache, progress=progress)


def broken_off(arguments: list[str], model: str, cache: Path, seconds: float) -> int:
    """Run this program in another process, kill it some time after its first scores, and count what it left."""
    child = subprocess.Popen([sys.executable, __file__, *arguments, "--fine", model, "--child", str(cache)])
    while child.poll() is None and not records(cache):
        time.sleep(0.1)
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        child.wait()
    return records(cache)


def records(cache: Path) -> int:
    """Scores in a cache's file; it has a header of a record's size."""
    return max(0, cache.stat().st_size // 24 - 1) if cache.exists() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RUNGWISE_DATA"), help="default: RUNGWISE_DATA")
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--fine", help="a cross-encoder on the hub or in a folder; default: one with random weights")
    parser.add_argument("--scale", default="sigmoid", help="raw, sigmoid or LOW,HIGH")
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--sample", type=int, default=2000, help="pairs of captions scored in full, to compare")
    parser.add_argument("--killed-after", type=float, default=5.0, help="seconds after the first scores")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.data is None:
        raise SystemExit("RUNGWISE_DATA is not set: no real data here")
    captions = test_captions(Path(asked.data), asked.images)
    coarse = BiEncoder(*captions, inference=Inference(batch_size=256))
    if asked.child:
        cascade_of(asked, captions, coarse, asked.fine, Path(asked.child)).dense()
        return

    console = Console(width=130)
    with tempfile.TemporaryDirectory() as folder:
        model = asked.fine or str(stand_in(Path(folder) / "model"))
        cache = Path(folder) / "scores"
        options = [f"--{name}={getattr(asked, name)}" for name in ("data", "images", "scale", "threshold", "precision")]
        left = broken_off(options, model, cache, asked.killed_after)

        began = time.perf_counter()
        encoded = len(coarse.vectors)
        encoding = time.perf_counter() - began
        cascade = cascade_of(asked, captions, coarse, model, cache)
        began = time.perf_counter()
        degrees = cascade.dense()
        resumed = time.perf_counter() - began
        report = cascade.report
        again = cascade_of(asked, captions, coarse, model, cache)
        began = time.perf_counter()
        same = np.array_equal(again.dense(), degrees)
        second = time.perf_counter() - began

        table = Table(
            title=f"{asked.images} images x {len(captions[0])} captions, threshold {asked.threshold}", box=None
        )
        table.add_column()
        table.add_column(justify="right")
        rows = (
            ("encoding of the captions", f"{format_duration(encoding)} for {encoded}"),
            ("pairs of captions the coarse source scored", f"{report.considered:,}"),
            ("at or above the threshold", f"{report.refined:,} ({report.refined / report.considered:.4%})"),
            ("scored before the process was killed", f"{left:,}"),
            (
                "scored after resuming",
                f"{report.scored:,} in {format_duration(report.seconds)} of {format_duration(resumed)}",
            ),
            ("rate of the fine source", f"{report.pairs_per_second:.0f} pairs/s"),
            ("full scoring at this rate", f"{report.all_pairs:,} pairs, {format_duration(report.full_seconds)}"),
            ("second run", f"{again.report.scored} scored, {format_duration(second)}, equal: {same}"),
        )
        for row in rows:
            table.add_row(*row)
        console.print(table)
        if asked.fine:
            compare(console, cascade, f"MiniLM chooses, {asked.fine} scores", asked.sample)
        words = CBoW(*captions, Path(asked.data) / "weights" / "glove.6B.50d.caption_words.txt")
        for threshold in (asked.threshold, 0.9, 0.95):
            few = Cascade(words, coarse, threshold=threshold)
            compare(console, few, "word vectors choose, MiniLM scores", 20 * asked.sample)


def compare(console: Console, cascade: Cascade, name: str, count: int) -> None:
    """A cascade against its fine source alone, on pairs of captions drawn from all and on those of one image."""
    table = Table(title=f"{name}, coarse >= {cascade.threshold}", box=None)
    for head in ("pairs of captions", "refined", "Pearson with full", "mean |difference|", "refined of the best 1 %"):
        table.add_column(head, justify="right")
    draw = np.random.default_rng(0)
    drawn = list(draw.choice(len(cascade.captions), (math.ceil(count / 20), 5)))  # 20 pairs of five captions
    of_one_image: list[np.ndarray] = []
    for image in draw.permutation(cascade.shape[0]):
        if sum(len(some) * (len(some) - 1) for some in of_one_image) >= count:
            break
        of_one_image.append(cascade.references_of(image))
    for kind, groups in (("drawn from all", drawn), ("of one image", of_one_image)):
        kept, full, coarse = (
            np.concatenate([unlike_pairs(source, some) for some in groups])
            for source in (cascade, cascade.fine, cascade.coarse)
        )
        passed = coarse >= cascade.threshold
        table.add_row(
            f"{len(full)} {kind}",
            f"{passed.mean():.2%}",
            f"{pearsonr(full, kept)[0]:.3f}" if np.ptp(kept) else "constant",
            f"{np.abs(full - kept).mean():.3f}",
            f"{kept_best(full, passed):.0%}",
        )
    console.print(table)


def unlike_pairs(source: CaptionPairSource, captions: np.ndarray) -> np.ndarray:
    """Scores of each of some captions with each other one."""
    return source.pair_block(captions, captions)[~np.eye(len(captions), dtype=bool)]


def kept_best(full: np.ndarray, passed: np.ndarray) -> float:
    best = np.argsort(-full, kind="stable")[: max(1, len(full) // 100)]
    return float(passed[best].mean())


if __name__ == "__main__":
    main()
