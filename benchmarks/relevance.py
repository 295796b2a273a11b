"""Relevance degrees from words: rates, memory, growth, the peer's rate, and how the tokenisers differ.

    RUNGWISE_DATA=... python benchmarks/relevance.py                       # everything, full sizes
    RUNGWISE_DATA=... python benchmarks/relevance.py flickr30k coco        # some parts
    RUNGWISE_DATA=... python benchmarks/relevance.py train --train-images 3000 --repeats 1

Every case runs in a process of its own, so that the peak memory is its own; "above inputs" leaves out imports and
tokens. The peer (pycocoevalcap) scores a slice, and its time for all pairs is extrapolated from that: a number marked *
is extrapolated. Where pycocoevalcap or java are missing, their rows are left out.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from measuring import GB, alone, peak

PARTS = ("cold", "flickr30k", "coco", "train", "costs", "tokenisers", "german")
COCO_TRAIN = (113_287, 566_747)
"""Images and captions of COCO's training part in the Karpathy split."""

Captions = tuple[list[str], list[int]]


def data() -> Path:
    folder = os.environ.get("RUNGWISE_DATA")
    if not folder:
        raise SystemExit("RUNGWISE_DATA is not set: name the folder of real data")
    return Path(folder)


def flickr30k(split: str, images: int, language: str = "en") -> Captions:
    of: dict[str, list[str]] = {}
    with gzip.open(data() / f"flickr30k/captions.{language}.token.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            name, text = line.rstrip("\n").split("\t", 1)
            of.setdefault(name.split("#")[0], []).append(text)
    names = (data() / f"flickr30k/{split}_images.txt").read_text().split()[:images]
    return [text for name in names for text in of[name]], [i for i, name in enumerate(names) for _ in of[name]]


def coco5k(images: int) -> Captions:
    with (data() / "coco5k/captions.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    number: dict[str, int] = {}
    owners = [number.setdefault(row["image"], len(number)) for row in rows]
    kept = [(row["caption"], owner) for row, owner in zip(rows, owners, strict=True) if owner < images]
    return [text for text, _ in kept], [owner for _, owner in kept]


def tokenised(captions: Captions) -> Captions:
    """Captions whose tokens are separated by spaces, so that a split gives them back."""
    from rungwise.language.tokenisers import ptb

    return [" ".join(ptb(text)) for text in captions[0]], captions[1]


def warm(source: Any) -> None:
    """Load the compiled code."""
    tiny = source(["a dog runs", "a cat"], [0, 1], tokenizer=str.split)
    tiny.dense()
    tiny.topk(1, "i2t")
    tiny.topk(1, "t2i")


def build(name: str, captions: Captions) -> Any:
    """A source from captions whose tokens are separated by spaces."""
    from rungwise import relevance

    if name == "BiEncoder":
        return relevance.BiEncoder(*captions)
    if name == "CBoW":
        return relevance.CBoW(*captions, data() / "weights/glove.6B.50d.caption_words.txt", tokenizer=str.split)
    return getattr(relevance, name)(*captions, tokenizer=str.split)


def dense_case(name: str, captions: Captions, repeats: int) -> dict[str, float]:
    """Tokens to matrix: median and least wall time, processor time, and peak memory above inputs."""
    build(name, (["a dog runs", "a cat"], [0, 1])).dense()  # loads compiled code, or the model
    before = peak()
    walls, features, work = [], [], []
    for _ in range(repeats):
        start, spent = time.perf_counter(), time.process_time()
        built = build(name, captions)
        features.append(time.perf_counter() - start)
        built.dense()
        walls.append(time.perf_counter() - start)
        work.append(time.process_time() - spent)
    images, texts = built.shape
    return {
        "images": images,
        "captions": texts,
        "scores": images * texts,
        "wall": statistics.median(walls),
        "least": min(walls),
        "features": statistics.median(features),
        "work": statistics.median(work),
        "memory": peak() - before,
    }


def topk_case(captions: Captions, k: int, direction: str) -> dict[str, float]:
    """Tokens to the k best of every query."""
    from rungwise.relevance import CIDErD

    warm(CIDErD)
    before = peak()
    start, spent = time.perf_counter(), time.process_time()
    source = CIDErD(*captions, tokenizer=str.split)
    features = time.perf_counter() - start
    source.topk(k, direction)
    images, texts = source.shape
    return {
        "images": images,
        "captions": texts,
        "scores": images * texts,
        "wall": time.perf_counter() - start,
        "features": features,
        "work": time.process_time() - spent,
        "memory": peak() - before,
    }


def peer_case(captions: Captions, asked: int) -> dict[str, float]:
    """The scorer of pycocoevalcap: a few captions against every image; and how far ours is from it."""
    from pycocoevalcap.cider.cider_scorer import CiderScorer, cook_refs, cook_test

    from rungwise.relevance import CIDErD

    texts, owners = captions
    references: list[list[str]] = [[] for _ in range(max(owners) + 1)]
    for text, owner in zip(texts, owners, strict=True):
        references[owner].append(text)
    start = time.perf_counter()
    scorer = CiderScorer()
    scorer.crefs = [cook_refs(sentences) for sentences in references]
    scorer.compute_doc_freq()
    features = time.perf_counter() - start
    chosen = np.linspace(0, len(texts) - 1, asked).astype(int)
    start = time.perf_counter()
    found = []
    for caption in chosen:
        scorer.ctest = [cook_test(texts[caption])] * len(references)
        found.append(scorer.compute_cider())
    slice_time = time.perf_counter() - start
    ours = CIDErD(texts, owners, tokenizer=str.split).block(range(len(references)), chosen)
    difference = np.abs(ours - np.array(found).T)
    return {
        "features": features,
        "slice": slice_time,
        "all": features + slice_time * len(texts) / asked,
        "difference": float(difference.max()),
        "relative": float((difference / np.maximum(np.array(found).T, 1e-9))[np.array(found).T > 0].max()),
    }


def first_call(compiled: str) -> float:
    """Seconds from the start of a fresh process to its first scores, with the compiled code in a folder."""
    program = (
        "from rungwise.relevance import CIDErD\n"
        "CIDErD(['a dog runs', 'a cat'], [0, 1]).dense()\n"
        "CIDErD(['a dog runs', 'a cat'], [0, 1]).topk(1)\n"
    )
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "NUMBA_CACHE_DIR": compiled})
    return time.perf_counter() - start


def show_cold(console: Console, _: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        never, again = first_call(folder), first_call(folder)
    console.print(f"cold start, fresh process to first scores: {again:.2f} s (aim: under 5 s); {never:.2f} s the")
    console.print("very first time on a machine, when the kernel is compiled\n")


def rows_of(table: Table, name: str, found: dict[str, float]) -> None:
    table.add_row(
        name,
        f"{found['images']:,} x {found['captions']:,}",
        f"{found['wall']:.2f}" + (f" (least {found['least']:.2f})" if "least" in found else ""),
        f"{found['features']:.2f}",
        f"{found['work']:.2f}",
        f"{found['scores'] / found['wall'] / 1e6:.0f}",
        f"{found['memory'] / GB:.2f}",
    )


def timing_table(title: str) -> Table:
    table = Table(title=title)
    for column in (
        "what",
        "images x captions",
        "tokens to scores, s",
        "of it features",
        "processor s",
        "M scores/s",
        "GB above inputs",
    ):
        table.add_column(column, justify="left" if column == "what" else "right")
    return table


def show_flickr30k(console: Console, asked: argparse.Namespace) -> None:
    captions = tokenised(flickr30k("test", asked.test_images))
    table = timing_table("Flickr30K test, all pairs")
    found = {name: alone(dense_case, name, captions, asked.repeats) for name in ("CIDErD", "CIDEr", "TfIdf")}
    for name, numbers in found.items():
        rows_of(table, name, numbers)
    console.print(table)
    if importlib.util.find_spec("pycocoevalcap") is None:
        console.print("pycocoevalcap is not installed: no peer\n")
        return
    peer = alone(peer_case, captions, asked.peer_captions)
    ratio = peer["all"] / found["CIDErD"]["wall"]
    console.print(
        f"pycocoevalcap: document frequencies {peer['features']:.2f} s, {asked.peer_captions} captions"
        f" {peer['slice']:.2f} s, all {len(captions[0]):,} captions {peer['all']:,.0f} s*; CIDErD is {ratio:,.0f} x"
        f" as fast (aim: 10,000 x); largest difference {peer['difference']:.1e}, relative {peer['relative']:.1e}\n"
    )


def show_coco(console: Console, asked: argparse.Namespace) -> None:
    table = timing_table("COCO 5K, all pairs (aim at 5,000 x 25,000: under 3 s and 2 GB)")
    for share in (8, 4, 2, 1):
        captions = tokenised(coco5k(max(1, asked.coco_images // share)))
        rows_of(table, "CIDErD", alone(dense_case, "CIDErD", captions, asked.repeats))
    rows_of(table, "CIDEr", alone(dense_case, "CIDEr", captions, asked.repeats))
    console.print(table, "")


def show_train(console: Console, asked: argparse.Namespace) -> None:
    table = timing_table(
        f"Flickr30K train, top {asked.k}: images of every caption (t2i), captions of every image (i2t)"
    )
    growth = []
    for share in (8, 4, 2, 1):
        captions = tokenised(flickr30k("train", max(1, asked.train_images // share)))
        growth.append(alone(topk_case, captions, asked.k, "t2i"))
        rows_of(table, "CIDErD t2i", growth[-1])
    rows_of(table, "CIDErD i2t", alone(topk_case, captions, asked.k, "i2t"))
    console.print(table)
    scores = COCO_TRAIN[0] * COCO_TRAIN[1]
    last, one_before = growth[-1], growth[-2]
    power = math.log(last["wall"] / one_before["wall"]) / math.log(last["scores"] / one_before["scores"])
    rate = last["wall"] * (scores / last["scores"]) ** max(1.0, power)
    memory = last["memory"] * COCO_TRAIN[1] / last["captions"]
    console.print(
        f"time grows with scores^{power:.2f}; COCO train {COCO_TRAIN[0]:,} x {COCO_TRAIN[1]:,}: {rate / 3600:.2f} h*,"
        f" {memory / GB:.1f} GB* (memory grows with captions: n-grams and the lists that are kept; blocks do not)\n"
    )


def java_tokens(texts: Sequence[str]) -> tuple[list[list[str]], float] | None:
    """What pycocoevalcap's tokeniser makes of texts, and the seconds it took; None where it or java are missing."""
    if importlib.util.find_spec("pycocoevalcap") is None or shutil.which("java") is None:
        return None
    from pycocoevalcap.tokenizer.ptbtokenizer import PUNCTUATIONS, STANFORD_CORENLP_3_4_1_JAR, __file__

    start = time.perf_counter()
    command = ["java", "-cp", str(Path(__file__).with_name(STANFORD_CORENLP_3_4_1_JAR))]
    command += ["edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase"]
    lines = "\n".join(" ".join(text.split()) for text in texts)
    result = subprocess.run(command, input=lines.encode(), capture_output=True, check=True)
    dropped = frozenset(PUNCTUATIONS)
    found = [[token for token in line.split() if token not in dropped] for line in result.stdout.decode().split("\n")]
    return found[: len(texts)], time.perf_counter() - start


def show_costs(console: Console, asked: argparse.Namespace) -> None:
    """Every source from tokens to all pairs; what pairs cost that a model reads together, cascade.py shows."""
    table = timing_table("Cost of every source, all pairs")
    for captions in (flickr30k("test", asked.test_images), coco5k(asked.coco_images)):
        for name in ("CIDErD", "CIDEr", "TfIdf", "CBoW", "BiEncoder"):
            rows_of(table, name, alone(dense_case, name, tokenised(captions), 1 if name == "BiEncoder" else 3))
        table.add_section()
    console.print(table)


def show_tokenisers(console: Console, asked: argparse.Namespace) -> None:
    from rungwise.language.tokenisers import ptb

    table = Table(title="ptb and Stanford's PTBTokenizer as the captioning tools call it")
    for column in ("captions", "count", "identical tokens", "different", "ptb s", "java s"):
        table.add_column(column, justify="left" if column == "captions" else "right")
    examples = []
    for name, (texts, _) in (
        ("Flickr30K train", flickr30k("train", asked.train_images)),
        ("COCO 5K", coco5k(asked.coco_images)),
    ):
        java = java_tokens(texts)
        if java is None:
            console.print("java or pycocoevalcap are missing: the tokenisers cannot be compared\n")
            return
        start = time.perf_counter()
        ours = [ptb(text) for text in texts]
        seconds = time.perf_counter() - start
        different = [i for i, (one, other) in enumerate(zip(ours, java[0], strict=True)) if one != other]
        share = 1 - len(different) / len(texts)
        table.add_row(name, f"{len(texts):,}", f"{share:.4%}", str(len(different)), f"{seconds:.2f}", f"{java[1]:.2f}")
        examples += [(texts[i], ours[i], java[0][i]) for i in different[:6]]
    console.print(table)
    for text, one, other in examples:
        console.print(f"  {text}\n    ptb  {' '.join(one)}\n    java {' '.join(other)}", highlight=False, markup=False)
    console.print()


def german_case(source_name: str, tokeniser_name: str, stemming: str | None, captions: Captions) -> dict[str, float]:
    """Time, degrees, and how often a caption's own image comes first by its other captions alone."""
    from rungwise import relevance
    from rungwise.language import tokenisers

    start = time.perf_counter()
    source = getattr(relevance, source_name)(
        *captions, tokenizer=getattr(tokenisers, tokeniser_name), stemming=stemming, leave_one_out=True
    )
    degrees = source.dense()
    seconds = time.perf_counter() - start
    owners = source.image_of_caption
    own = degrees[owners, np.arange(len(owners))]
    first = source.topk(1, "t2i")[0][:, 0] == owners
    return {
        "seconds": seconds,
        "own": float(own.mean()),
        "all": float(degrees.mean()),
        "first": 100 * float(first.mean()),
    }


def show_german(console: Console, asked: argparse.Namespace) -> None:
    table = Table(title="Flickr30K test, other captions of the image as references (leave_one_out)")
    names = ("language", "source", "tokeniser", "stems")
    for column in (*names, "s, cold", "mean own", "mean all", "own image first, %"):
        table.add_column(column, justify="left" if column in names else "right")
    for language, spoken in (("de", "german"), ("en", "english")):
        captions = flickr30k("test", asked.test_images, language)
        ways = (
            ("ptb", None),
            ("ptb", spoken),
            ("whitespace", None),
            ("unicode_words", None),
            ("unicode_words", spoken),
        )
        for source in ("CIDErD", "CIDEr", "TfIdf"):
            for tokeniser, stemming in ways:
                found = alone(german_case, source, tokeniser, stemming, captions)
                numbers = (
                    f"{found['seconds']:.2f}",
                    f"{found['own']:.3f}",
                    f"{found['all']:.4f}",
                    f"{found['first']:.1f}",
                )
                table.add_row(language, source, tokeniser, stemming or "", *numbers)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; none is all")
    parser.add_argument("--test-images", type=int, default=1000)
    parser.add_argument("--coco-images", type=int, default=5000)
    parser.add_argument("--train-images", type=int, default=29_000)
    parser.add_argument("--peer-captions", type=int, default=8, help="captions that pycocoevalcap scores")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("-k", type=int, default=100)
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; choose from {', '.join(PARTS)}")
    console = Console(width=140)
    shows = {
        "cold": show_cold,
        "flickr30k": show_flickr30k,
        "coco": show_coco,
        "train": show_train,
        "costs": show_costs,
        "tokenisers": show_tokenisers,
        "german": show_german,
    }
    for part in asked.parts or PARTS:
        shows[part](console, asked)


if __name__ == "__main__":
    main()
