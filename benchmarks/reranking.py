"""A shortlist by vectors, ordered anew by models that read pairs: what it brings and what it costs.

    python benchmarks/reranking.py FIRST_RUN RERANKER_RUN... --data DATA [--top 50] [--split test] [--degrees FOLDER]

A run is its folder or that of its model. Three kinds of rows are printed: FIRST_RUN alone; each reranker alone, which
compares all pairs; and FIRST_RUN whose first K candidates of every query, in both directions, a reranker orders anew.
The numbers in brackets are 95 % bootstrap intervals over pictures. NCS is NCS@10(non_gt): which degrees it was taken
from is printed below, CIDEr-D of the split's own captions unless a folder that ``rungwise relevance`` wrote is named.

What is timed is the comparison of pairs alone: pictures and captions were encoded before, once for each model. *ms a
query* is that of the second stage, *all pairs* that of comparing everything with everything.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rungwise.data import ImageCaptions, read, with_splits
from rungwise.evaluation import Reranked, Result, evaluate, similarity_source
from rungwise.evaluation.inputs import read_relevance
from rungwise.models import PairScorer, PairScores, load
from rungwise.relevance import CIDErD
from rungwise.runs import is_run_folder
from rungwise.training import MODEL

NCS = "NCS@10(non_gt)"
SURE = ("rsum",)
"""Numbers that are printed with their intervals."""
COLUMNS = {
    "rsum": "rsum",
    "i2t R@1": "i2t/R@1",
    "t2i R@1": "t2i/R@1",
    "i2t NCS": f"i2t/{NCS}",
    "t2i NCS": f"t2i/{NCS}",
}


@dataclass(frozen=True)
class Stage:
    """A model and what it makes of the data.

    Attributes:
        name: Of the run, and the kind of the model.
        scores: Of the pictures that all models can read.
        fingerprint: Of the model.
    """

    name: str
    scores: PairScores
    fingerprint: str


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes:
        name: What ranked.
        result: What came out.
        query: Milliseconds that the second stage took for a query; None where there is none.
        everything: Seconds for all pairs; None where not all were compared.
    """

    name: str
    result: Result
    query: float | None = None
    everything: float | None = None


def main() -> None:
    """Encode, rank, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("first", type=Path, metavar="FIRST_RUN")
    options.add_argument("rerankers", type=Path, nargs="+", metavar="RERANKER_RUN")
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--top", type=int, default=50)
    options.add_argument("--split", default="test")
    options.add_argument("--degrees", type=Path, help="a folder that rungwise relevance wrote for the split")
    options.add_argument("--device", default="cpu")
    asked = options.parse_args()
    data = with_splits(read(asked.data)).split(asked.split)
    first, *rerankers = stages([asked.first, *asked.rerankers], data, asked.device)
    data = first.scores.data
    degrees: Any = CIDErD(data.captions, data.image_of_caption)
    if asked.degrees:
        degrees = read_relevance(asked.degrees, first.scores.shape, data=data)
    rows = list(measured(first, rerankers, data, degrees, asked.top))
    print_table(rows)
    images, captions = first.scores.shape
    print(f"\n{data.name}: {images:,} pictures x {captions:,} captions; NCS is {NCS} by {rows[0].result.relevance}")
    for row in rows:
        if row.result.reranking:
            print(f"{row.name}: {row.result.reranking.note()}")


def stages(runs: list[Path], data: ImageCaptions, device: str) -> list[Stage]:
    """All models on the pictures that every one of them can read."""
    models = [(name_of(run), opened(run, device)) for run in runs]
    found = [(name, model, model.on(data)) for name, model in models]
    kept = sorted(set.intersection(*(set(scores.kept.tolist()) for _, _, scores in found)))
    if len(kept) < len(data):
        print(f"{len(data) - len(kept)} of {len(data)} pictures cannot be read by every model and are left out")
        part = data.select(kept)
        found = [(name, model, model.on(part)) for name, model, _ in found]
    return [Stage(f"{name} ({model.kind})", scores, model.fingerprint) for name, model, scores in found]


def opened(run: Path, device: str) -> PairScorer:
    """The model of a run, or of a folder of a model."""
    return load(run / MODEL if is_run_folder(run) else run, device)


def name_of(run: Path) -> str:
    """What a run is called."""
    return run.parent.name if run.name == MODEL else run.name


def measured(first: Stage, rerankers: list[Stage], data: ImageCaptions, degrees: Any, top: int) -> Iterator[Row]:
    """The rows of the table, one after the other."""
    measures = ("rsum", NCS)
    asked = {"image_of_caption": data.image_of_caption, "relevance": degrees, "measures": measures}
    for one in (first, *rerankers):
        begun = time.perf_counter()
        matrix = one.scores.block(*map(np.arange, one.scores.shape))
        seconds = time.perf_counter() - begun
        yield Row(f"{one.name} alone", evaluate(similarity=matrix, **asked), everything=seconds)
    source = similarity_source(**first.scores.for_evaluation(), image_of_caption=data.image_of_caption)
    for one in rerankers:
        both = Reranked(source, one.scores, top, second_hash=one.fingerprint)
        result = evaluate(similarity=both, **asked)
        milliseconds = 1000 * both.seconds / sum(result.queries.values())
        yield Row(f"first {top} by {one.name}", result, query=milliseconds)


def print_table(rows: list[Row]) -> None:
    """Names first, since they are of any length."""
    room = max(len(row.name) for row in rows)
    heads = [f"{head:>{22 if name in SURE else 8}}" for head, name in COLUMNS.items()]
    print(f"{'ranked by':<{room}}{''.join(heads)}{'ms a query':>12}{'all pairs, s':>14}")
    for row in rows:
        bounds = row.result.intervals(SURE)
        cells = []
        for name in COLUMNS.values():
            text = f"{row.result[name]:.1f}"
            if name in SURE:
                low, high = bounds[name]
                text += f" [{low:.1f}, {high:.1f}]"
            cells.append(f"{text:>{22 if name in SURE else 8}}")
        query = "" if row.query is None else f"{row.query:.2f}"
        everything = "" if row.everything is None else f"{row.everything:.2f}"
        print(f"{row.name:<{room}}{''.join(cells)}{query:>12}{everything:>14}")


if __name__ == "__main__":
    main()
