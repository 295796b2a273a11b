"""Forward and backward of every loss, from embeddings, beside the similarity product and pytorch-metric-learning.

    python benchmarks/losses.py                          # B = 128 and 512
    python benchmarks/losses.py --batch 128 512 2048 8192 --threads 2

Every case runs in a process of its own, so that the peak memory is its own, and is printed when it ends. A case is
repeated until it has had --seconds; one whose first step alone took longer is measured by that step and marked *.
Where pytorch-metric-learning is not installed its rows are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from measuring import alone, peak
from rungwise import losses
from rungwise.similarity import cosine, sparse_backward_cosine

WIDTHS = (12, 12, 11, 15, 8, 9)
PRODUCT = "similarity product"
HINGES = "MaxOfHinges"
THREE = {"thresholds": (0.9, 0.8), "margins": (0.2, 0.01, 0.01), "weights": (1.0, 0.25, 0.125)}

LOSSES: dict[str, Callable[[], losses.BlockLoss]] = {
    HINGES: losses.MaxOfHinges,
    "MaxOfHinges, 64 drawn": lambda: losses.MaxOfHinges(negative_set=64),
    "SumOfHinges": losses.SumOfHinges,
    "Ladder, hard contrastive, 2 rungs": lambda: losses.Ladder((0.9,)),
    "Ladder, hard contrastive, 3 rungs": lambda: losses.Ladder(**THREE),
    "Ladder, sum, 2 rungs": lambda: losses.Ladder((0.9,), sampling="sum"),
    "Ladder, sum, 3 rungs": lambda: losses.Ladder(**THREE, sampling="sum"),
    "SemanticAdaptiveMargin": losses.SemanticAdaptiveMargin,
    "AdaptiveListwise": lambda: losses.AdaptiveListwise(irrelevant="other_item"),
    "ContrastiveSum": losses.ContrastiveSum,
    "ContrastiveMax": losses.ContrastiveMax,
    "Sigmoid": losses.Sigmoid,
    "SoftContrastive": losses.SoftContrastive,
    "SmoothNDCG": losses.SmoothNDCG,
}
FROM_EMBEDDINGS = {f"{name}, sparse backward": name for name in (HINGES, "Ladder, hard contrastive, 2 rungs")}
PEERS = {
    "peer: TripletMarginLoss + BatchHardMiner": HINGES,
    "peer: TripletMarginLoss, all triplets": "SumOfHinges",
    "peer: NTXentLoss": "ContrastiveSum",
}


def peer(name: str, batch: int) -> Callable[[Tensor, Tensor], Tensor]:
    """pytorch-metric-learning's nearest loss, both directions."""
    from pytorch_metric_learning.distances import CosineSimilarity
    from pytorch_metric_learning.losses import NTXentLoss, TripletMarginLoss
    from pytorch_metric_learning.miners import BatchHardMiner
    from pytorch_metric_learning.reducers import SumReducer

    own = torch.arange(batch)
    options = {"distance": CosineSimilarity(), "reducer": SumReducer()}
    mine = BatchHardMiner(distance=CosineSimilarity()) if "BatchHard" in name else None
    loss = NTXentLoss(0.1, **options) if "NTXent" in name else TripletMarginLoss(margin=0.2, **options)

    def one_side(queries: Tensor, candidates: Tensor) -> Tensor:
        # A second label object: given the first one again, the library takes the pairs for self-comparisons.
        labels = {"ref_emb": candidates, "ref_labels": own.clone()}
        return loss(queries, own, mine(queries, own, **labels) if mine else None, **labels)

    return lambda images, captions: one_side(images, captions) + one_side(captions, images)


def step_of(name: str, batch: int) -> Callable[[Tensor, Tensor], Tensor]:
    """(images, captions) -> the scalar to go backward from."""
    if name == PRODUCT:
        upstream = torch.randn(batch, batch)
        return lambda images, captions: (cosine(images, captions) * upstream).sum()
    if name in PEERS:
        return peer(name, batch)
    similarity = sparse_backward_cosine if name in FROM_EMBEDDINGS else cosine
    loss, relevance = LOSSES[FROM_EMBEDDINGS.get(name, name)](), torch.rand(batch, batch)
    return lambda images, captions: loss(similarity(images, captions), relevance)


def measure(
    name: str, batch: int, dim: int, threads: int, repeats: int, seconds: float
) -> tuple[float, float, float, bool]:
    """(median ms, fastest ms, peak MB above what was in use before, whether there was one step only)."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    images, captions = (torch.randn(batch, dim).requires_grad_() for _ in range(2))
    step = step_of(name, batch)
    before, times = peak(), []
    while len(times) <= repeats and sum(times) < 1000 * seconds:
        images.grad = captions.grad = None
        start = time.perf_counter()
        step(images, captions).backward()
        times.append(1000 * (time.perf_counter() - start))
    timed = times[1:] or times  # the first step also warms up
    return statistics.median(timed), min(timed), (peak() - before) / 2**20, len(times) == 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=60.0, help="that a case may take")
    options = parser.parse_args()
    names = [PRODUCT, *LOSSES, *FROM_EMBEDDINGS]
    if importlib.util.find_spec("pytorch_metric_learning"):
        names += PEERS
    titles = ("median ms", "fastest ms", "x product", "x MaxOfHinges", "x ours", "peak MB")
    for batch in options.batch:
        print(f"B = {batch}, D = {options.dim}, {options.threads} threads, forward + backward")
        print(line("loss", titles))
        fastest: dict[str, float] = {}
        for name in names:
            # Without a miner these peers compare every pair with every negative: B^3 time and memory.
            if name in PEERS and "Miner" not in name and batch > 256:
                print(line(name, ["B^3"] * len(titles)))
                continue
            arguments = (name, batch, options.dim, options.threads, options.repeats, options.seconds)
            median, least, memory, once = alone(measure, *arguments)
            fastest[name] = least
            ratios = [
                f"{least / fastest[other]:.2f}" if other in fastest else ""
                for other in (PRODUCT, HINGES, PEERS.get(name, FROM_EMBEDDINGS.get(name)))
            ]
            shown = f"{median:.2f}{'*' if once else ''}"
            print(line(name, [shown, f"{least:.2f}", *ratios, f"{memory:.0f}"]), flush=True)
        print()


def line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<50}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))


if __name__ == "__main__":
    main()
