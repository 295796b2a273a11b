"""How full the rungs of a ladder are, by the way batches are drawn: generated scenes with their exact relevance.

python benchmarks/samplers.py
python benchmarks/samplers.py --pictures 4000 --batch 128 --thresholds 0.8 0.6
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from rungwise.scenes import SceneConfig, SceneRelevance, held_out_combinations, sample_picture
from rungwise.training.batches import (
    Positions,
    epoch_batches,
    one_caption_per_image,
    relevance_aware_batches,
    rung_counts,
    somewhat_relevant,
)


def row(batches: list[Positions], owners: Positions, source: SceneRelevance, thresholds: list[float]) -> list[str]:
    """Candidates a query on each level, share of queries without any on it; both directions, all full batches."""
    counts, extra = [], []
    for batch in batches:
        if len(batch) < len(batches[0]):
            continue
        positives = owners[batch][:, None] == owners[batch][None, :]
        degrees = source.block(owners[batch], batch)
        counts += [rung_counts(degrees, thresholds, positives), rung_counts(degrees.T, thresholds, positives)]
        extra.append((positives.sum() - len(batch)) / len(batch))
    every = np.concatenate(counts)
    cells = [f"{np.mean(extra):.2f}"]
    for level in range(len(thresholds)):
        cells += [f"{every[:, level].mean():.2f}", f"{100 * (every[:, level] == 0).mean():.1f}"]
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--thresholds", type=float, nargs="+", default=[0.8, 0.6])
    options = parser.parse_args()
    config, held_out = SceneConfig(pictures=options.pictures), held_out_combinations()
    pictures = [sample_picture(config, number, held_out) for number in range(options.pictures)]
    owners = np.repeat(np.arange(options.pictures), [len(picture.captions) for picture in pictures])
    source = SceneRelevance([p.scene for p in pictures], [said for p in pictures for _, said in p.captions])
    begun = time.perf_counter()
    near = somewhat_relevant(source, owners, np.arange(len(owners)), at_least=options.thresholds[0])
    seconds = time.perf_counter() - begun

    draw = {"seed": 0, "epoch": 0}
    samplers = {
        "random": epoch_batches(np.ones(len(owners)), options.batch, pool=1, **draw),
        "one caption per image": one_caption_per_image(owners, options.batch, **draw),
        **{
            f"relevance-aware, groups of {group}": relevance_aware_batches(near, options.batch, group=group, **draw)
            for group in (2, 4, 8)
        },
    }
    table = Table(title=f"{len(owners)} captions, batches of {options.batch}")
    table.add_column("batches")
    table.add_column("own picture", justify="right")
    for level, threshold in enumerate(options.thresholds, start=1):
        table.add_column(f"N_{level} (R >= {threshold:g})", justify="right")
        table.add_column("% empty", justify="right")
    for name, batches in samplers.items():
        batches = sorted(batches, key=len, reverse=True)
        table.add_row(name, *row(batches, owners, source, options.thresholds))
    Console(width=110).print(table)
    print(f"finding the somewhat relevant pairs took {seconds:.1f} s, once a run")


if __name__ == "__main__":
    main()
