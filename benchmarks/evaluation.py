"""Measuring rankings: ours beside the bare product, scipy, plain numpy and torchmetrics, with times, ratios and memory.

    python benchmarks/evaluation.py                                  # everything, full sizes
    python benchmarks/evaluation.py recall coherent                  # some parts
    python benchmarks/evaluation.py --images 1000 --big-images 4000  # a quick look

Every row runs in a process of its own, ours and the peer by turns, and medians are compared; memory is the highest
above what imports and inputs took. Where a peer measures a slice only, its time for all queries is extrapolated and
marked *. "figure" is what the peer took on a quiet machine with two cores at full size; a peer that is slower than 0.8
of that speed is flagged, because the machine was busy then or is another one. A missed aim says what bounds it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from measuring import alone, by_turns, memory_of, needs

PARTS = ("cold", "recall", "coherent", "semantic", "ndcg", "big")
PER_IMAGE = 5
SLOW = 0.8


@dataclass
class Row:
    """One line of the table; times in seconds."""

    what: str
    peer: str
    ours_s: float
    peer_s: float
    memory: float
    aim: str
    met: bool
    extrapolated: bool = False
    figure_s: float | None = None
    bound: str = ""
    big: bool = False
    notes: list[str] = field(default_factory=list)


def warm() -> None:
    """Load the compiled code for the array types that come."""
    from rungwise.evaluation import evaluate

    image = unit(3, 4)
    degrees = np.random.default_rng(0).random((3, 3), dtype=np.float32)
    graded = ["R@1", "CS@2", "NCS@1", "SR@1", "nDCG@1"]
    evaluate(image_embeddings=image, text_embeddings=image, image_of_caption=[0, 1, 2], measures=["R@1"])
    evaluate(similarity=image @ image.T, image_of_caption=[0, 1, 2], relevance=degrees, measures=graded)


def unit(rows: int, width: int, seed: int = 0) -> np.ndarray:
    """Random embeddings of length 1, float32, made in place."""
    vectors = np.random.default_rng(seed).standard_normal((rows, width), dtype=np.float32)
    for start in range(0, rows, 4096):
        part = vectors[start : start + 4096]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return vectors


def recall_row(images: int, repeats: int) -> Row:
    """R@1, R@5 and R@10 of both directions from embeddings, against nothing but the product."""
    from rungwise.evaluation import evaluate
    from rungwise.metrics import ProductSource

    image, text = unit(images, 1024, 0), unit(PER_IMAGE * images, 1024, 1)
    owners = np.repeat(np.arange(images), PER_IMAGE)
    warm()

    def ours() -> None:
        names = ["R@1", "R@5", "R@10"]
        evaluate(image_embeddings=image, text_embeddings=text, image_of_caption=owners, measures=names)

    def product() -> None:
        image @ text.T

    def tiles() -> None:
        for _ in ProductSource(image, text, np.arange(len(text))).rows(10**9):
            pass

    memory = memory_of(ours)
    product()
    ours_s, peer_s, tiles_s = by_turns(repeats, ours, product, tiles)
    return Row(
        what=f"R@1,5,10 both ways, {images:,} x {PER_IMAGE * images:,}, D=1024",
        peer="float32 product, numpy",
        ours_s=ours_s,
        peer_s=peer_s,
        memory=memory,
        aim="<= 1.3 x its time",
        met=ours_s <= 1.3 * peer_s,
        figure_s=1.33 if images == 5000 else None,
        bound=f"the product in tiles alone takes {tiles_s:.2f} s, {tiles_s / peer_s:.2f} x the product in one piece",
    )


def coherent_row(size: int, k: int, aim: float, figure_ms: float | None, asked: int, repeats: int) -> Row:
    """CS@K of both directions from matrices, against the authors' loop: argsort, then kendalltau, query by query."""
    from scipy.stats import kendalltau

    from rungwise.core.compute import top_columns
    from rungwise.evaluation import evaluate

    generator = np.random.default_rng(0)
    similarity, relevance = (generator.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    queries = np.linspace(0, size - 1, min(asked, size)).astype(int)
    warm()
    found: dict[str, np.ndarray] = {}

    def ours() -> None:
        result = evaluate(
            similarity=similarity, image_of_caption=np.arange(size), relevance=relevance, measures=[f"CS@{k}"]
        )
        found["ours"] = result.per_query(f"i2t/CS@{k}")

    def loop() -> None:
        values = []
        for query in queries:
            listed = np.argsort(similarity[query])[::-1][:k]
            values.append(kendalltau(similarity[query, listed], relevance[query, listed]).statistic)
        found["theirs"] = np.array(values)

    def sort() -> None:
        top_columns(similarity, k)
        top_columns(relevance, k)

    memory = memory_of(ours)
    ours_s, slice_s, sort_s = by_turns(repeats, ours, loop, sort)
    peer_s = slice_s * 2 * size / len(queries)
    return Row(
        what=f"CS@{k} both ways, {size:,} x {size:,}",
        peer="scipy.stats.kendalltau loop",
        ours_s=ours_s,
        peer_s=peer_s,
        memory=memory,
        aim=f">= {aim:g} x as fast",
        met=peer_s >= aim * ours_s,
        extrapolated=True,
        figure_s=None if figure_ms is None else figure_ms * 2 * size / 1000,
        bound=f"finding and sorting the lists by S and by R takes {2 * sort_s:.2f} s of it",
        notes=[f"largest difference from scipy {np.abs(found['ours'][queries] - found['theirs']).max():.1e}"],
    )


def semantic_row(images: int, asked: int, repeats: int) -> Row:
    """NCS@1,5,10 and SR@10 of both directions from matrices, against the definition written in numpy."""
    from rungwise.evaluation import evaluate

    generator = np.random.default_rng(0)
    shape = images, PER_IMAGE * images
    similarity, relevance = (generator.random(shape, dtype=np.float32) for _ in range(2))
    owners = np.repeat(np.arange(images), PER_IMAGE)
    measures = ["NCS@1", "NCS@5", "NCS@10", "SR@10"]
    warm()
    found: dict[str, float] = {}

    def ours() -> None:
        result = evaluate(similarity=similarity, image_of_caption=owners, relevance=relevance, measures=measures)
        found["ours"] = float(result.per_query("i2t/NCS@10")[queries["i2t"]].mean())

    queries = {"i2t": np.arange(0, shape[0], max(1, shape[0] // asked))}
    queries["t2i"] = np.arange(0, shape[1], max(1, shape[1] // asked))

    def direction(scores: np.ndarray, degrees: np.ndarray, which: np.ndarray, m: int) -> float:
        ratios = []
        for query in which:
            listed = np.argsort(-scores[query])[:10]
            best = np.argsort(-degrees[query])[:10]
            for k in (1, 5, 10):
                ratio = degrees[query][listed[:k]].sum() / degrees[query][best[:k]].sum()
            ratios.append(100 * float(ratio))
            len(set(listed.tolist()) & set(best[:m].tolist())) / m
        return float(np.mean(ratios))

    def plain_i2t() -> None:
        found["theirs"] = direction(similarity, relevance, queries["i2t"], PER_IMAGE)

    def plain_t2i() -> None:
        direction(similarity.T, relevance.T, queries["t2i"], 1)

    memory = memory_of(ours)
    ours_s, i2t_s, t2i_s = by_turns(repeats, ours, plain_i2t, plain_t2i)
    peer_s = i2t_s * shape[0] / len(queries["i2t"]) + t2i_s * shape[1] / len(queries["t2i"])
    return Row(
        what=f"NCS@1,5,10 and SR@10 both ways, {shape[0]:,} x {shape[1]:,}",
        peer="the definition in numpy",
        ours_s=ours_s,
        peer_s=peer_s,
        memory=memory,
        aim=">= 5 x as fast",
        met=peer_s >= 5 * ours_s,
        extrapolated=True,
        bound="both matrices are read once: memory",
        notes=[
            f"largest difference from numpy {abs(found['ours'] - found['theirs']):.1e} points",
            "the authors' own program took 10.5 s for NCS alone at 5,000 x 25,000",
        ],
    )


def ndcg_row(images: int, repeats: int) -> Row:
    """nDCG@10 of image queries; ours measures both directions all the same."""
    import torch
    from torchmetrics.retrieval import RetrievalNormalizedDCG

    from rungwise.evaluation import evaluate

    generator = np.random.default_rng(0)
    shape = images, PER_IMAGE * images
    similarity, relevance = (generator.random(shape, dtype=np.float32) for _ in range(2))
    owners = np.repeat(np.arange(images), PER_IMAGE)
    warm()
    found: dict[str, float] = {}

    def ours() -> None:
        result = evaluate(similarity=similarity, image_of_caption=owners, relevance=relevance, measures=["nDCG@10"])
        found["ours"] = result["i2t/nDCG@10"]

    indexes = torch.arange(shape[0]).repeat_interleave(shape[1])

    def theirs() -> None:
        metric = RetrievalNormalizedDCG(top_k=10)
        metric.update(torch.from_numpy(similarity).ravel(), torch.from_numpy(relevance).ravel(), indexes=indexes)
        found["theirs"] = 100 * float(metric.compute())

    memory = memory_of(ours)
    ours_s, peer_s = by_turns(repeats, ours, theirs)
    return Row(
        what=f"nDCG@10, {shape[0]:,} x {shape[1]:,} (ours both ways)",
        peer="torchmetrics, image queries only",
        ours_s=ours_s,
        peer_s=peer_s,
        memory=memory,
        aim="faster",
        met=ours_s < peer_s,
        bound="both matrices are read once: memory",
        notes=[
            f"difference from torchmetrics {abs(found['ours'] - found['theirs']):.1e} points (its sums are float32)"
        ],
    )


def big_row(images: int) -> Row:
    """R@K and nDCG@10 from embeddings with the 100 most relevant captions of each image."""
    from rungwise.evaluation import evaluate
    from rungwise.relevance.precomputed import SavedDegrees

    captions, kept = PER_IMAGE * images, min(100, PER_IMAGE * images)
    image, text = unit(images, 512, 0), unit(captions, 512, 1)
    owners = np.repeat(np.arange(images), PER_IMAGE)
    generator = np.random.default_rng(0)
    step = captions // kept  # one of every so many, so that none comes twice
    indices = (step * np.arange(kept) + generator.integers(0, step, (images, kept))).astype(np.int32)
    values = -np.sort(-generator.random((images, kept), dtype=np.float32), axis=1)
    header = {
        "source": "random",
        "called": "random",
        "content_hash": "",
        "captions_hash": None,
        "complete": True,
        "frequencies_from": None,
        "models": [],
        "shape": [images, captions],
        "k": kept,
        "direction": "i2t",
        "options": {},
    }
    relevance = SavedDegrees(header, values, indices)
    warm()
    spent: dict[str, float] = {}

    def ours() -> None:
        start = time.perf_counter()
        evaluate(
            image_embeddings=image,
            text_embeddings=text,
            image_of_caption=owners,
            relevance=relevance,
            measures=["R@1", "R@5", "R@10", "nDCG@10"],
        )
        spent["ours"] = time.perf_counter() - start

    rows = min(images, 1000)
    out = np.empty((rows, captions), np.float32)
    starts = list(range(0, images - rows + 1, max(rows, images // 8)))

    def product() -> float:
        begun = time.perf_counter()
        for start in starts:
            np.matmul(image[start : start + rows], text.T, out=out)
        return (time.perf_counter() - begun) * images / (rows * len(starts))

    before = product()
    memory = memory_of(ours)
    peer_s = statistics.mean((before, product()))
    return Row(
        what=f"R@1,5,10 and nDCG@10 both ways, {images:,} x {captions:,}, D=512, R: best {kept}",
        peer="float32 product, numpy",
        ours_s=spent["ours"],
        peer_s=peer_s,
        memory=memory,
        aim="under 3 GB",
        met=memory < 3,
        extrapolated=True,
        bound="one row of tiles is held, and the kept lists",
        big=True,
    )


def cold_start(console: Console) -> None:
    """Seconds from the start of a fresh process to its first numbers."""
    program = "from evaluation import warm; warm()"
    folder = Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory() as cache:
        times = []
        for _ in range(2):
            start = time.perf_counter()
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(folder)}
            subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=folder)
            times.append(time.perf_counter() - start)
    console.print(
        f"cold start, fresh process to first numbers of every kernel: {times[1]:.1f} s; {times[0]:.1f} s the very"
        " first time on a machine, when the kernels are compiled\n"
    )


def seconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=PARTS, help=" ".join(PARTS))
    parser.add_argument("--images", type=int, default=5000, help="of the COCO-sized rows; CS@5000 takes as many")
    parser.add_argument("--big-images", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--asked", type=int, default=500, help="queries that a slow peer measures")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    needs(scipy="rungwise[statistics]", torchmetrics="torchmetrics")
    console = Console(width=150, highlight=False)
    if "cold" in asked.parts:
        cold_start(console)
    small = min(1000, asked.images)
    rows = []
    if "recall" in asked.parts:
        rows.append(alone(recall_row, asked.images, asked.repeats))
    if "coherent" in asked.parts:
        rows.append(alone(coherent_row, small, min(100, small), 30.0, None, asked.asked, asked.repeats))
        rows.append(alone(coherent_row, small, small, 6.0, figure(0.22, small, 1000), asked.asked, asked.repeats))
        full = figure(0.57, asked.images, 5000)
        rows.append(alone(coherent_row, asked.images, asked.images, 2.5, full, asked.asked, asked.repeats))
    if "semantic" in asked.parts:
        rows.append(alone(semantic_row, asked.images, asked.asked, asked.repeats))
    if "ndcg" in asked.parts:
        rows.append(alone(ndcg_row, small, asked.repeats))
    if "big" in asked.parts:
        rows.append(alone(big_row, asked.big_images))

    table = Table(title="ours beside the peer; s, median of turns")
    for head in ("what", "peer", "ours", "peer's", "peer's / ours", "figure", "GB above inputs", "aim", "met"):
        table.add_column(head, justify="left" if head in ("what", "peer", "aim", "met") else "right")
    for row in rows:
        sized = asked.big_images == 50_000 if row.big else asked.images >= 5000
        table.add_row(
            row.what,
            row.peer,
            seconds(row.ours_s),
            seconds(row.peer_s) + ("*" if row.extrapolated else ""),
            f"{row.peer_s / row.ours_s:.2f}",
            "" if row.figure_s is None else seconds(row.figure_s),
            f"{row.memory:.2f}",
            row.aim,
            ("yes" if row.met else "NO") + ("" if sized else ", but small"),
        )
    console.print(table)
    for row in rows:
        notes = list(row.notes)
        if row.figure_s is not None and row.peer_s > row.figure_s / SLOW:
            notes.append(f"PEER SLOW: {row.peer_s / row.figure_s:.2f} x its figure; a busy or another machine")
        if not row.met:
            notes.append(f"missed ({row.aim}): {row.bound}")
        if not row.big and row.memory > 1:
            notes.append(f"missed (memory under 1 GB): {row.memory:.2f} GB")
        for note in notes:
            console.print(f"{row.what}: {note}", markup=False)


def figure(milliseconds: float, size: int, of_size: int) -> float | None:
    """A peer's figure per query, where the size is the one at which it was taken."""
    return milliseconds if size == of_size else None


if __name__ == "__main__":
    main()
