"""Ways to learn from people how sources are combined, judged on grades that they have not seen.

    RUNGWISE_DATA=... python benchmarks/combining.py

CxC's caption-caption ratings (the half that is at hand) are learned from; agreement is that of pairs which share no
image with those that were learned from (5 folds). Then all of them are learned from, and CxC's image-caption ratings
judged: pairs whose caption was written for another image, by the best of the image's captions (max).

Boosted trees are scikit-learn's, held to rise with every source: what a regression with interactions could gain.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls
from scipy.stats import pearsonr, spearmanr
from sklearn.ensemble import HistGradientBoostingRegressor

from rungwise.data import ImageCaptions, read
from rungwise.relevance import BiEncoder, CBoW, CIDErD, DocumentFrequencies, HumanJudgements, Inference, TfIdf
from rungwise.relevance.combine import Kind, fit_table, pair_degrees

Values = NDArray[np.float64]
Learn = Callable[[Values, Values], Callable[[Values], Values]]

NAMES = ("CIDEr-D", "TfIdf", "CBoW", "MiniLM")


def weighted_sum(table: Values, grades: Values) -> Callable[[Values], Values]:
    weights, _ = nnls(table - table.mean(axis=0), grades - grades.mean())
    offset = grades.mean() - table.mean(axis=0) @ weights
    return lambda rows: rows @ weights + offset


def regression(kind: Kind) -> Learn:
    return lambda table, grades: fit_table(table, grades, kind=kind, names=NAMES).apply


def boosted(depth: int) -> Learn:
    def learn(table: Values, grades: Values) -> Callable[[Values], Values]:
        trees = HistGradientBoostingRegressor(
            monotonic_cst=[1] * table.shape[1], max_depth=depth, max_iter=200, min_samples_leaf=60
        )
        return trees.fit(table, grades).predict

    return learn


WAYS: dict[str, Learn] = {
    "MiniLM alone": lambda table, grades: lambda rows: rows[:, NAMES.index("MiniLM")],
    "weighted sum": weighted_sum,
    "isotonic": regression("isotonic"),
    "monotone": regression("monotone"),
    "rising trees, depth 2": boosted(2),
    "rising trees, depth 4": boosted(4),
}


def left_out(learn: Learn, table: Values, grades: Values, images: NDArray[np.int64]) -> Values:
    """(n,) grades as guessed from pairs without the images of the first caption's fold."""
    folds = (np.random.default_rng(0).permutation(int(images.max()) + 1) % 5)[images]
    guessed = np.empty(len(grades))
    for fold in range(5):
        judged, seen = folds[:, 0] == fold, (folds != fold).all(axis=1)
        guessed[judged] = learn(table[seen], grades[seen])(table[judged])
    return guessed


def caption_pairs(path: Path, data: ImageCaptions) -> tuple[NDArray[np.int64], Values]:
    position = {one: number for number, one in enumerate(data.caption_ids)}
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    pairs = [[position[cell.rpartition(":")[2]] for cell in row[:2]] for row in rows]
    return np.array(pairs, np.int64), np.array([float(row[2]) for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RUNGWISE_DATA"), help="default: RUNGWISE_DATA")
    folder = parser.parse_args().data
    if folder is None:
        raise SystemExit("RUNGWISE_DATA is not set: no real data here")
    folder, began = Path(folder), time.perf_counter()
    coco = read(folder / "coco5k" / "captions.tsv", captions_only=True)
    known = (coco.captions, coco.image_of_caption)
    words = TfIdf(*known), CBoW(*known, folder / "weights" / "glove.6B.50d.caption_words.txt")
    sources = (*words, BiEncoder(*known, inference=Inference(batch_size=256)))

    pairs, grades = caption_pairs(folder / "coco5k" / "sts_test_half.csv", coco)
    alone = CIDErD(
        coco.captions, np.arange(len(coco.captions)), document_frequencies=DocumentFrequencies.of(*known)
    )  # every caption an image of its own
    of_pairs = [np.array([source.pair_block([one], [two])[0, 0] for one, two in pairs]) for source in sources[:1]]
    of_pairs += [source.pair_scores(*pairs.T) for source in sources[1:]]
    table = np.stack([pair_degrees(alone, *pairs.T), *of_pairs], axis=1)

    human = HumanJudgements.read(folder / "coco5k" / "sits_test_half.csv", coco)
    others = human.pairs[~human.own]
    judged = np.stack([pair_degrees(source, *others.T) for source in (CIDErD(*known), *sources)], axis=1)
    wanted = human.grades[~human.own].astype(np.float64)

    console = Console(width=110)
    shown = Table(title=f"learned from {len(grades):,} caption-caption ratings, {', '.join(NAMES)}")
    shown.add_column("way")
    for head in ("left out: Pearson", "Spearman", f"{len(wanted):,} image-caption: Pearson", "Spearman", "s"):
        shown.add_column(head, justify="right")
    for name, learn in WAYS.items():
        start = time.perf_counter()
        guessed = left_out(learn, table, grades, coco.image_of_caption[pairs])
        applied = learn(table, grades)(judged)
        numbers = [pearsonr(guessed, grades)[0], spearmanr(guessed, grades)[0]]
        numbers += [pearsonr(applied, wanted)[0], spearmanr(applied, wanted)[0]]
        shown.add_row(name, *(f"{number:.3f}" for number in numbers), f"{time.perf_counter() - start:.1f}")
    console.print(shown)
    console.print(f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
