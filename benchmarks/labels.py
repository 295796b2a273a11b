"""Retrieval by class labels: the subspace methods, CMAL2R and chance, all on the same rows of features.

    python benchmarks/labels.py wikipedia [DATA]         # the published features, beside the rows of a paper
    python benchmarks/labels.py scenes [--pictures 2000]   # generated scenes, whose exact relevance is known

Each fitted method is its preset: every combination of the preset's grid is fitted to the training split, the best one
by MAP on the validation split is taken, and it is fitted once more to both splits together. CMAL2R is trained with five
seeds on the training split, and the validation split chooses the epoch. Nothing is chosen on the test split, on which
all numbers are measured. The features of scenes are those of a frozen MobileNetV2 whose file of weights is in
``$RUNGWISE_DATA/weights``, and a bag of words.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import textwrap
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labels_data import Labelled, scenes, wikipedia
from rungwise.data import ImageCaptions
from rungwise.evaluation import EvaluationSettings, Result, evaluate, matching, positives_from_labels
from rungwise.evaluation.statistics import bootstrap, interval_of
from rungwise.models import load
from rungwise.models.io import FITTED
from rungwise.models.subspace import CCA
from rungwise.runs import Spread, train_seeds
from rungwise.training import MODEL
from rungwise.training.config import FitConfig, load_preset
from rungwise.training.fit import fit_run

MAP = ("i2t/MAP", "t2i/MAP")
TRAINED = "cmal2r"
"""The method that is trained in steps."""

SEEDS = (0, 1, 2, 3, 4)
"""Of CMAL2R, and of random rankings."""

BOTH = ("shape", "colour")
WEIGHTS = "weights/mobilenetv2_100_imagenet.safetensors"
NAME, PLAIN, SURE = 20, 7, 25
"""Widths of columns: of names, of numbers, and of numbers with their interval."""

WIDE = 120

Vectors = NDArray[np.float64]


@dataclass(frozen=True)
class Row:
    """What a method reached on the test split.

    Attributes:
        name: Of the method.
        results: One, or one for each seed.
        seconds: Of fitting or training, of one seed; None where there is nothing to fit.
        chosen: The settings that the validation split chose, in words.
    """

    name: str
    results: list[Result]
    seconds: float | None = None
    chosen: str = ""


@dataclass(frozen=True)
class Column:
    """A number of the table.

    Attributes:
        heading: Above it.
        measures: Whose mean it is.
        sure: Print its interval.
    """

    heading: str
    measures: tuple[str, ...]
    sure: bool = False

    @property
    def width(self) -> int:
        """In characters."""
        return SURE if self.sure else PLAIN

    def cell(self, results: Sequence[Result]) -> str:
        """The number of one result, or its mean over several; with the 95 % interval where that is asked for.

        The mean of both directions is drawn as one number: both directions of a draw are of the same images.
        """
        spread = Spread(tuple(float(np.mean([one[name] for name in self.measures])) for one in results))
        text = f"{spread.mean:.2f}"
        if self.sure and len(results) > 1:
            low, high = spread.interval
            text += f" ±{spread.deviation:.2f} [{low:.1f}, {high:.1f}]"
        elif self.sure:
            drawn = bootstrap(results, self.measures)
            low, high = interval_of(np.mean([drawn[name][0] for name in self.measures], axis=0))
            text += f"       [{low:.1f}, {high:.1f}]"
        return text.ljust(self.width) if self.sure else text.rjust(self.width)


WIKIPEDIA = (
    Column("MAP i2t", MAP[:1], sure=True),
    Column("MAP t2i", MAP[1:], sure=True),
    Column("MAP, mean of both", MAP, sure=True),
    Column("i2t@50", ("i2t/MAP@50",)),
    Column("t2i@50", ("t2i/MAP@50",)),
)
SCENES = (
    Column("MAP i2t", MAP[:1]),
    Column("t2i", MAP[1:]),
    Column("  both", MAP, sure=True),
    Column("i2t@50", ("i2t/MAP@50",)),
    Column("t2i@50", ("t2i/MAP@50",)),
    Column("nDCG@10", ("i2t/nDCG@10",)),
    Column("t2i", ("t2i/nDCG@10",)),
    Column("  both", ("i2t/nDCG@10", "t2i/nDCG@10"), sure=True),
)


def main() -> None:
    """Fit, train, measure, print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("collection", choices=("wikipedia", "scenes"))
    options.add_argument("data", nargs="?", type=Path, help="folder of the Wikipedia set; else in $RUNGWISE_DATA")
    options.add_argument("--pictures", type=int, default=2000, help="scenes that are generated")
    options.add_argument("--labels", nargs="+", choices=BOTH, default=BOTH, help="what labels of scenes are")
    options.add_argument("--methods", nargs="+", choices=(*FITTED, TRAINED), default=(*FITTED, TRAINED))
    options.add_argument("--out", type=Path, help="keep the runs here, for rungwise table --runs")
    asked = options.parse_args()
    shared = os.environ.get("RUNGWISE_DATA")
    if shared is None and (asked.data is None or asked.collection == "scenes"):
        options.error("set RUNGWISE_DATA to the folder of the data, or name the folder of the Wikipedia set")
    with tempfile.TemporaryDirectory() as scratch:
        out = asked.out or Path(scratch)
        if asked.collection == "wikipedia":
            compare_wikipedia(wikipedia(asked.data or Path(str(shared)) / "wikipedia"), asked.methods, out)
        else:
            for one in scenes(asked.pictures, asked.labels, Path(str(shared)) / WEIGHTS, out / "scenes", say):
                compare_scenes(one, asked.methods, out / one.data.name.replace(" ", "-"))


def compare_wikipedia(labelled: Labelled, methods: Sequence[str], out: Path) -> None:
    """The table of the Wikipedia set, and a paper's rows below it."""
    described(labelled)
    presets = [f"{kind}/wikipedia" for kind in FITTED if kind in methods]
    trained = [f"{TRAINED}/wikipedia{variant}" for variant in (":uni", "", ":other-item") if TRAINED in methods]
    rows = [by_chance(labelled), *by_sklearn(labelled), *by_all(labelled, presets, trained, out)]
    print_table(WIKIPEDIA, rows)
    print_assumed([*presets, *trained])
    printed = matching({"paper": "cmal2r", "table": 1, "dataset": "wikipedia"})
    print("\nPrinted by Qu et al. (CMAL2R, Table 1), of OTHER FEATURES AND ANOTHER SPLIT:")
    print(f"{printed[0].features}")
    print(f"{'method':<{NAME}}{'MAP i2t':>10}{'MAP t2i':>10}{'MAP both':>10}")
    for row in printed:
        values = "".join(f"{row.numbers[name]:10.2f}" for name in (*MAP, "MAP"))
        print(f"{row.facts['method']:<{NAME}}{values}")


def compare_scenes(labelled: Labelled, methods: Sequence[str], out: Path) -> None:
    """The table of one kind of labels of scenes."""
    described(labelled)
    presets = [f"{kind}/own" for kind in FITTED if kind in methods]
    trained = [f"{TRAINED}/own{variant}" for variant in (":uni", "") if TRAINED in methods]
    oracles = [Row(name, [measured(labelled, similarity=scores)]) for name, scores in labelled.oracles.items()]
    print_table(SCENES, [by_chance(labelled), *by_all(labelled, presets, trained, out), *oracles])
    print("\nnDCG@10 is by the exact degrees: how much of a caption is true of a picture. The oracle of labels puts")
    print("pairs first whose picture has a label that the caption names: its MAP is about the limit of what a")
    print("caption tells. The oracle of degrees ranks by the exact degrees. Neither is a model.")
    print_assumed([*presets, *trained])


def described(labelled: Labelled) -> None:
    """Print what all methods read."""
    data = labelled.data
    assert data.features is not None
    assert data.text_features is not None
    print(f"\n{labelled.title}")
    print(", ".join(f"{len(data.split(name))} {name}" for name in ("train", "val", "test")), "documents")
    classes = len({label for labels in data.labels for label in labels})
    widths = f"{data.features.shape[1]} of a picture, {data.text_features.shape[1]} of a text"
    print(f"{classes} classes; features: {widths}")


def by_all(labelled: Labelled, fitted: Sequence[str], trained: Sequence[str], out: Path) -> list[Row]:
    """Every preset."""
    return [
        *(by_fitting(name, labelled, out / _folder(name)) for name in fitted),
        *(by_training(name, labelled, out / _folder(name)) for name in trained),
    ]


def by_chance(labelled: Labelled) -> Row:
    """Random scores."""
    test = labelled.data.split("test")
    draws = [np.random.default_rng(seed).random((len(test), len(test.captions))) for seed in SEEDS]
    return Row("random rankings", [measured(labelled, similarity=scores) for scores in draws])


def by_fitting(name: str, labelled: Labelled, out: Path) -> Row:
    """A preset of a fit."""
    say(name)
    config = load_preset(name).config
    assert isinstance(config, FitConfig)
    begun = time.perf_counter()
    found = fit_run(config, labelled.data, out)
    seconds = time.perf_counter() - begun
    settings = ", ".join(f"{key} {value}" for key, value in found.chosen.items())
    chosen = f"{settings}; validation {found.measure} {found.value:.2f}, the best of {len(found.history)}"
    return Row(name.partition("/")[0], [of_model(out / MODEL, labelled)], seconds, chosen)


def by_training(name: str, labelled: Labelled, out: Path) -> Row:
    """A preset of CMAL2R, with several seeds."""
    say(name)
    config: Any = load_preset(name).config
    begun = time.perf_counter()
    runs = train_seeds(replace(config, logs=("jsonl",)), labelled.data, out, SEEDS)
    seconds = (time.perf_counter() - begun) / len(SEEDS)
    if not runs.finished:
        raise SystemExit(f"{name} was stopped before its {len(SEEDS)} runs were done; nothing is printed of it")
    kind = name.partition(":")[2] or "bi"
    return Row(f"cmal2r, {kind}", [of_model(one / MODEL, labelled) for one in runs.folders.values()], seconds)


def by_sklearn(labelled: Labelled) -> list[Row]:
    """CCA of scikit-learn, an outside check; the validation split chooses components and roots of the features.

    Its similarity is the cosine of the centred projections as it gives them. Canonical variates have variance 1 by
    definition, and its projections do not: scaled so, they are to rank as ours of the same settings without a ridge.
    """
    say("scikit-learn's CCA")
    begun = time.perf_counter()
    train, validation, test = (labelled.data.split(name) for name in ("train", "val", "test"))
    most = min(side.shape[1] for side in features(train, roots=False))
    tried = {}
    for roots in (False, True):
        for components in range(1, most + 1):
            found = by_labels(validation, similarity=cca_scores(train, validation, components, roots))
            tried[components, roots] = sum(found[way] for way in MAP) / 2
    components, roots = max(tried, key=lambda one: tried[one])
    whole = labelled.data.split("train", "val")
    result = measured(labelled, similarity=cca_scores(whole, test, components, roots))
    seconds = time.perf_counter() - begun
    chosen = f"roots {roots}, dimension {components}; validation MAP {tried[components, roots]:.2f}"
    ours = CCA(dimension=components, roots=roots, regularisation=0.0).fit(*features(whole, roots=False))
    scaled = cca_scores(whole, test, components, roots, scaled=True)
    return [
        Row("scikit-learn's cca", [result], seconds, f"{chosen}, the best of {len(tried)}"),
        Row("- of variance 1", [measured(labelled, similarity=scaled)]),
        Row("- ours, no ridge", [measured(labelled, similarity=ours.block(*features(test, roots=False)))]),
    ]


def features(part: ImageCaptions, roots: bool) -> list[Vectors]:
    """Rows of both sides; each document is an image with one text."""
    sides = (part.features, part.text_features)
    rows = [np.asarray(side[:], dtype=np.float64) for side in sides if side is not None]
    return [np.sqrt(np.maximum(one, 0)) if roots else one for one in rows]


def cca_scores(
    train: ImageCaptions, part: ImageCaptions, components: int, roots: bool, *, scaled: bool = False
) -> Vectors:
    """Cosines of scikit-learn's projections, which are centred, and scaled where that is asked for, by training."""
    from sklearn import cross_decomposition

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, in components that the validation part then does not choose
        fitted = cross_decomposition.CCA(n_components=components, max_iter=5000).fit(*features(train, roots))
    sides = fitted.transform(*features(part, roots))
    if scaled:
        seen = fitted.transform(*features(train, roots))
        sides = [side / own.std(axis=0) for side, own in zip(sides, seen, strict=True)]
    image, text = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in sides)
    return np.asarray(image @ text.T)


def of_model(folder: Path, labelled: Labelled) -> Result:
    """The test numbers of a saved model."""
    scores = load(folder).on(labelled.data.split("test"))
    return measured(labelled, **scores.for_evaluation())


def measured(labelled: Labelled, **scores: Any) -> Result:
    """All numbers of the test split."""
    return by_labels(labelled.data.split("test"), labelled.degrees, **scores)


def by_labels(part: ImageCaptions, degrees: Any = None, **scores: Any) -> Result:
    """MAP over the full list and over the first 50; nDCG too where degrees are known."""
    return evaluate(
        **scores,
        image_of_caption=part.image_of_caption,
        protocol="labels",
        measures=["MAP", "MAP@50", *([] if degrees is None else ["nDCG@10"])],
        relevance=degrees,
        settings=EvaluationSettings(positives=positives_from_labels(part.labels, part.image_of_caption)),
    )


def print_table(columns: Sequence[Column], rows: Sequence[Row]) -> None:
    """A line for each method, then what was chosen for it."""
    print(f"\n{'test split, %':<{NAME}}", end="")
    print(*(one.heading.ljust(one.width) if one.sure else one.heading.rjust(one.width) for one in columns), end="")
    print(" seconds")
    for row in rows:
        cells = " ".join(one.cell(row.results) for one in columns)
        print(f"{row.name:<{NAME}}{cells}" + ("" if row.seconds is None else f"{row.seconds:8.1f}"))
    seeds = f"beside ±, the deviation over {len(SEEDS)} seeds, it is"
    print(f"\n[ ]: 95 % interval over test images (bootstrap, 1,000 draws); {seeds}")
    print("that of their mean (Student's t). Seconds: of the whole grid with the last fit; of one seed of cmal2r.")
    print("\nChosen on the validation split:")
    for row in rows:
        if row.chosen:
            print(filled(f"{row.name:<{NAME}}{row.chosen}", NAME))


def print_assumed(presets: Sequence[str]) -> None:
    """What no paper prints, each with the presets that share it."""
    sharing: dict[str, list[str]] = {}
    for name in presets:
        for line in load_preset(name).assumes:
            sharing.setdefault(line, []).append(name)
    print("\nAssumed:")
    for line, names in sharing.items():
        print(filled(f"- {line} ({'all' if len(names) == len(presets) else ', '.join(names)})", 2))


def filled(line: str, indent: int) -> str:
    """A line, broken where it is wider than the table."""
    return textwrap.fill(line, WIDE, subsequent_indent=" " * indent, break_on_hyphens=False)


def say(what: str) -> None:
    """Progress, beside the tables."""
    print(what, file=sys.stderr, flush=True)


def _folder(name: str) -> str:
    return name.replace("/", "-").replace(":", "-")


if __name__ == "__main__":
    main()
