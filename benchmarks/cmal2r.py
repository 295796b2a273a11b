"""CMAL2R on the Wikipedia set, against canonical correlation analysis on the same features, and against chance.

    python benchmarks/cmal2r.py DATA

Printed is MAP by class labels over the full list of the test split, both directions: mean and standard deviation of
five seeds of each variant of the preset ``cmal2r/wikipedia``. Everything that the paper does not print (widths,
activation, learning rate, T, K, lambda, epochs) is the preset's, chosen on parts of the training split, and printed.

CCA is scikit-learn's. The number of its components, and whether it reads square roots of the features (the usual map
for histograms), are chosen on the same validation part as the snapshots of CMAL2R; then it is fitted again on the whole
training split, of which CMAL2R does not see the validation part. Its similarity is the cosine of the centred
projections.

The paper's own rows are of other features and another split, and stand below as such.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rungwise.data import ImageCaptions, read
from rungwise.data.splits import with_validation
from rungwise.evaluation import evaluate, matching, positives_from_labels
from rungwise.training.recipes import load_preset, preset_names
from rungwise.training.seeds import Spread, train_seeds

PRESET = "cmal2r/wikipedia"
WAYS = ("i2t/MAP", "t2i/MAP")
DRAWS = 5
"""Random rankings."""

Vectors = NDArray[np.float64]


def main() -> None:
    """Train, fit, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    folder = os.environ.get("RUNGWISE_DATA", "")
    options.add_argument("data", nargs="?", type=Path, default=Path(folder) / "wikipedia" if folder else None)
    options.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    options.add_argument("--out", type=Path, help="keep the runs here, for rungwise table --runs")
    asked = options.parse_args()
    if asked.data is None:
        options.error("name the folder of the Wikipedia set")
    data = with_validation(read(asked.data))
    print(", ".join(f"{len(data.split(split))} {split}" for split in dict.fromkeys(data.splits)), "documents")
    assumed = load_preset(PRESET).assumes
    print(f"{PRESET}, what the paper does not print:", *(f"- {line}" for line in assumed), sep="\n")
    rows = {"random rankings": by_chance(data), **by_cca(data)}
    with tempfile.TemporaryDirectory() as scratch:
        for name in preset_names("cmal2r"):
            if name.partition(":")[0] == PRESET:
                out = (asked.out or Path(scratch)) / name.replace("/", "-").replace(":", "-")
                rows[name] = by_training(name, data, asked.seeds, out)
    print_rows(rows)
    for method in ("CCA", "CMAL2R", "CMAL2R(bi.)"):
        (row,) = matching({"paper": "cmal2r", "table": 1, "dataset": "wikipedia", "method": method})
        values = "  ".join(f"{row.numbers[name]:12.2f}" for name in (*WAYS, "MAP"))
        print(f"{f'{method}, as printed, other features':<44}{values}")
    print(f"their features: {row.features}; ours: rows of {data.features.shape[1]} and {data.text_features.shape[1]}")


def by_chance(data: ImageCaptions) -> dict[str, Spread]:
    """MAP of random scores."""
    test = data.split("test")
    draws = [np.random.default_rng(seed).random((len(test), len(test.captions))) for seed in range(DRAWS)]
    return spreads([measured(test, scores) for scores in draws])


def by_cca(data: ImageCaptions) -> dict[str, dict[str, Spread]]:
    """MAP of CCA, with what was chosen on the validation part in its name."""
    train, validation, test = (data.split(name) for name in ("train", "val", "test"))
    whole = data.split("train", "val")
    most = min(side.shape[1] for side in features(train, roots=False))
    tried = {}
    for roots in (False, True):
        for components in range(1, most + 1):
            scores = cca_scores(train, validation, components, roots)
            tried[components, roots] = sum(measured(validation, scores).values()) / 2
    components, roots = max(tried, key=lambda one: tried[one])
    read_as = "square roots of features" if roots else "features"
    print(
        f"CCA: {components} of {most} components on {read_as}, validation MAP {tried[components, roots]:.2f}"
        f" (all components: {tried[most, roots]:.2f})"
    )
    found = measured(test, cca_scores(whole, test, components, roots))
    return {f"CCA, {components} components": spreads([found])}


def by_training(name: str, data: ImageCaptions, seeds: Sequence[int], out: Path) -> dict[str, Spread]:
    """MAP of the best snapshots of a preset."""
    config = replace(load_preset(name).config, logs=("jsonl",))
    tested = train_seeds(config, data, out, seeds).test
    if "labels" not in tested:
        raise SystemExit(f"{name} was stopped before its {len(seeds)} runs were done; nothing is printed of it")
    found = tested["labels"]
    pairs = zip(*(found[way].values for way in WAYS), strict=True)
    return spreads([dict(zip(WAYS, values, strict=True)) for values in pairs])


def features(part: ImageCaptions, roots: bool) -> tuple[Vectors, Vectors]:
    """Rows of both sides; each document is an image with one text."""
    sides = (part.features, part.text_features)
    rows = [np.asarray(side[np.arange(len(part))], dtype=np.float64) for side in sides if side is not None]
    return tuple(np.sqrt(np.maximum(one, 0)) if roots else one for one in rows)  # type: ignore[return-value]


def cca_scores(train: ImageCaptions, part: ImageCaptions, components: int, roots: bool) -> Vectors:
    """Cosines of the projections, which are centred by the training part."""
    from sklearn.cross_decomposition import CCA

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, in components that the validation part then does not choose
        fitted = CCA(n_components=components, max_iter=5000).fit(*features(train, roots))
    image, text = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in fitted.transform(*features(part, roots)))
    return np.asarray(image @ text.T)


def measured(part: ImageCaptions, scores: Vectors) -> dict[str, float]:
    """MAP by labels over the full list."""
    right = positives_from_labels(part.labels, part.image_of_caption)
    result = evaluate(similarity=scores, image_of_caption=part.image_of_caption, protocol="labels", positives=right)
    return {name: result[name] for name in WAYS}


def spreads(runs: Sequence[Mapping[str, float]]) -> dict[str, Spread]:
    """Over runs: both directions, and their mean."""
    every = [{**run, "MAP": float(np.mean([run[name] for name in WAYS]))} for run in runs]
    return {name: Spread(tuple(run[name] for run in every)) for name in (*WAYS, "MAP")}


def print_rows(rows: Mapping[str, Mapping[str, Spread]]) -> None:
    """A line for each method."""
    print(f"\n{'MAP by labels, test split':<44}{'i2t':>12}  {'t2i':>12}  {'mean':>12}")
    for name, found in rows.items():
        texts = [
            f"{one.mean:.2f}" + (f" ±{one.deviation:.2f}" if len(one.values) > 1 else "") for one in found.values()
        ]
        print(f"{name:<44}" + "  ".join(text.rjust(12) for text in texts))


if __name__ == "__main__":
    main()
