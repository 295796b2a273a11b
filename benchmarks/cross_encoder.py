"""A cross-encoder trained on STS-Benchmark, and a bi-encoder distilled from it, beside what needs no training.

    RUNGWISE_DATA=... python benchmarks/cross_encoder.py --out runs/pairs
    RUNGWISE_DATA=... python benchmarks/cross_encoder.py --out runs/pairs --precision bfloat16 --captions flickr8k

Trains with the settings of ``rungwise relevance train-cross-encoder`` on all cores and prints one table: Pearson's and
Spearman's correlation with people on dev and test. Dev chose the epochs; test chose nothing. Words in common (TfIdf)
are weighed by all texts of the three splits, whose scores it does not see. Then the pairs that the cross-encoder scores
in a second, in both precisions, and how far their scores are apart.

The two models stay in ``--out``, as ``grader`` and ``sentences``. ``--quick`` takes some pairs and one epoch, to see
that it runs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rungwise.core.compute import cores
from rungwise.data import DEV, TEST, TRAIN, ScoredPairs, read, read_scored_pairs
from rungwise.language.sentence_models import PACKAGED_MODEL, Precision, load_sentence_model
from rungwise.relevance import BiEncoder, DocumentFrequencies, TfIdf
from rungwise.training.pair_models import (
    EPOCHS,
    UNLABELLED,
    Correlations,
    PairTraining,
    TrainingObserver,
    correlations,
    distil,
    pair_scores,
    train_cross_encoder,
)

Scores = Callable[[ScoredPairs], NDArray[np.float32]]

BLOCK, TURNS = 256, 3
FEW = 120
"""Pairs of each split of a quick run."""


def words(pairs: ScoredPairs) -> Scores:
    """Words in common; rare ones, among all texts, count most."""
    texts = [*pairs.first, *pairs.second]
    frequencies = DocumentFrequencies.of(texts, range(len(texts)))

    def scores(part: ScoredPairs) -> NDArray[np.float32]:
        count = len(part)
        both = [*part.first, *part.second]
        source = TfIdf(both, range(2 * count), document_frequencies=frequencies)
        runs = [np.arange(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK)]
        return np.concatenate([source.pair_block(run, run + count).diagonal() for run in runs])

    return scores


def cosine(folder: str | Path) -> Scores:
    """Of the vectors of a sentence model."""
    model = load_sentence_model(folder)

    def scores(part: ScoredPairs) -> NDArray[np.float32]:
        count = len(part)
        source = BiEncoder([*part.first, *part.second], range(2 * count), model)
        return source.pair_scores(np.arange(count), np.arange(count, 2 * count))

    return scores


def measured(pairs: ScoredPairs, scores: Scores) -> list[Correlations]:
    """On dev and on test."""
    return [correlations(scores(part), part.scores) for part in map(pairs.split, (DEV, TEST))]


def speed(job: Callable[[], object], pairs: int) -> float:
    """Pairs a second: the median of a few turns."""
    times = []
    for _ in range(TURNS):
        begun = time.perf_counter()
        job()
        times.append(time.perf_counter() - begun)
    return pairs / statistics.median(times)


def shortened(pairs: ScoredPairs) -> ScoredPairs:
    """The first pairs of each split."""
    places = [place for name in (TRAIN, DEV, TEST) for place in np.flatnonzero(np.array(pairs.splits) == name)[:FEW]]
    return pairs.select(np.array(places))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="STS-Benchmark; default stsbenchmark in RUNGWISE_DATA")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--captions", type=Path, help="collection that pairs for distilling are drawn of")
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--epochs", type=int, default=PairTraining.epochs)
    parser.add_argument("--learning-rate", type=float, default=PairTraining.learning_rate)
    parser.add_argument("--loss", choices=["bce", "mse"], default=PairTraining.loss)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=cores())
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    pairs = read_scored_pairs(asked.data or Path(os.environ["RUNGWISE_DATA"]) / "stsbenchmark")
    precision: Precision = asked.precision
    settings = PairTraining(
        epochs=asked.epochs,
        learning_rate=asked.learning_rate,
        loss=asked.loss,
        seed=asked.seed,
        precision=precision,
    )
    captions = read(asked.captions, captions_only=True).captions if asked.captions else ()
    unlabelled = UNLABELLED
    if asked.quick:
        pairs, settings, captions, unlabelled = shortened(pairs), replace(settings, epochs=1), captions[:FEW], FEW
    watching = TrainingObserver(lambda line: print(line, flush=True))
    rows: list[tuple[str, list[Correlations], str]] = [
        ("TfIdf, words in common", measured(pairs, words(pairs)), ""),
        ("MiniLM, cosine", measured(pairs, cosine(PACKAGED_MODEL)), ""),
    ]
    trained = train_cross_encoder(pairs, asked.out / "grader", settings=settings, watching=watching)
    assert trained.test is not None
    rows.append(("cross-encoder, trained here", [trained.dev, trained.test], f"{trained.seconds / 60:.1f}"))
    taught = distil(
        trained.model,
        pairs,
        asked.out / "sentences",
        settings=replace(settings, epochs=min(EPOCHS, settings.epochs)),
        captions=captions,
        unlabelled=unlabelled,
        watching=watching,
    )
    distilled = measured(pairs, cosine(asked.out / "sentences"))
    rows.append(("MiniLM, distilled from it", distilled, f"{taught.seconds / 60:.1f}"))
    print("\n".join(_table(rows, pairs, settings, asked.threads)))
    test = pairs.split(TEST)
    whole = pair_scores(trained.model, test)
    for kind in ("float32", "bfloat16"):
        found = pair_scores(trained.model, test, kind)
        rate = speed(lambda kind=kind: pair_scores(trained.model, test, kind), len(test))
        apart = np.abs(found - whole).max()
        print(f"{kind}: {rate:.0f} pairs/s; test {correlations(found, test.scores)}; at most {apart:.4f} from float32")


def _table(
    rows: list[tuple[str, list[Correlations], str]], pairs: ScoredPairs, settings: PairTraining, threads: int
) -> Iterator[str]:
    """The lines of the table."""
    sizes = [len(pairs.split(name)) for name in (TRAIN, DEV, TEST)]
    yield (
        f"{pairs.name}: {sizes[0]:,} pairs to train, {sizes[1]:,} dev, {sizes[2]:,} test; {settings.epochs} epochs,"
        f" {settings.loss}, rate {settings.learning_rate:g}, {settings.precision}, {threads} threads, seed"
        f" {settings.seed}"
    )
    yield f"{'':<30} {'dev Pearson':>12} {'Spearman':>9} {'test Pearson':>13} {'Spearman':>9} {'minutes':>8}"
    for name, (dev, test), minutes in rows:
        yield (
            f"{name:<30} {dev.pearson:>12.4f} {dev.spearman:>9.4f} {test.pearson:>13.4f} {test.spearman:>9.4f}"
            f" {minutes:>8}"
        )


if __name__ == "__main__":
    main()
