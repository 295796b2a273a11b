r"""Measures what stands beside the recipe, and writes beside-the-recipe.json: nothing of it is part of the recipe.

    cd studies
    rungwise train sam-cvse/flickr8k:same-padding data/flickr8k --out runs/sam-cvse --precision bfloat16 \
        --model.image.weights data/weights/mobilenetv2_100_imagenet.safetensors
    python beside_recipe.py RUNS runs/sam-cvse

RUNS is the folder of the study recipe-flickr8k with its models (``keep: runs``). A model whose run is not the one whose
numbers are kept in recipe-flickr8k/ is refused.

* The average of its five models: five times the work for a query.
* The recipe and a second model that orders the best candidates anew: of those in docs/guide/models/region-results.md
  the one with the highest rsum.
* A correction that sees the other queries of the test split (inverted softmax, Smith et al. 2017): a candidate that is
  near to many queries counts less. No search has all its queries at hand, so that these numbers compare with no others.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

import rungwise
from rungwise.evaluation import Reranked
from rungwise.relevance.config import source_config
from rungwise.runs import FinishedRun
from rungwise.runs.study import StudyRun, machine_of

STUDIES = Path(__file__).parent
DATA = STUDIES / "data" / "flickr8k"
JUDGEMENTS = DATA / "Flickr8k_text" / "CrowdFlowerAnnotations.txt"
SEEDS = range(5)
FIRST = 50
"""Hits of the recipe that the second model puts in order."""
TEMPERATURES = (0.02, 0.05, 0.1, 0.2)
"""Temperatures of the inverted softmax, of which the best on validation is taken."""

Numbers = dict[str, float]
Scores = NDArray[np.float32]


class Asked:
    """The questions of the study, asked of anything that ranks the test split."""

    def __init__(self) -> None:
        self.data = rungwise.read(DATA)
        human = {"kind": "human", "judgements": [str(JUDGEMENTS)]}
        self._degrees = {
            ("nDCG@10", "CS@100", "NCS@10", "NCS@10(non_gt)"): self._of("spice"),
            ("JudgedNDCG@10", "JudgedAP(0.5)"): self._of(human),
        }

    def _of(self, source: Any) -> Any:
        return rungwise.degrees(source_config(source), self.data, split="test", quiet=True)

    def of(self, similarity: Any) -> Numbers:
        """All numbers of anything that ranks the test split."""
        given = {"data": self.data, "similarity": similarity, "quiet": True}
        found = dict(rungwise.evaluate(**given, measures=["rsum"]).numbers)
        for measures, degrees in self._degrees.items():
            found |= rungwise.evaluate(**given, measures=measures, relevance=degrees).numbers
        return found


def scores(model: Path, data: Any, split: str = "test") -> Scores:
    """A model's scores of all pictures (rows) and captions of a split."""
    return np.asarray(rungwise.load(model).on(data.split(split)).matrix())


def corrected(cosines: Scores, temperature: float) -> dict[str, NDArray[np.float64]]:
    """The cosines of each direction, less what the candidate has with all queries of that direction."""
    scaled = cosines.astype(np.float64) / temperature
    return {
        "i2t": scaled - logsumexp(scaled, axis=0, keepdims=True),
        "t2i": scaled - logsumexp(scaled, axis=1, keepdims=True),
    }


def of_directions(asked: Asked, cosines: Scores, temperature: float, split: str) -> Numbers:
    """Numbers of corrected cosines, each direction with its own correction; of validation, recall alone."""
    found: Numbers = {}
    for direction, ranks in corrected(cosines, temperature).items():
        if split == "test":
            numbers = asked.of(ranks)
        else:
            numbers = rungwise.evaluate(data=asked.data, similarity=ranks, split=split, quiet=True).numbers
        found |= {name: value for name, value in numbers.items() if name.startswith(f"{direction}/")}
    recalls = [value for name, value in found.items() if name.split("/")[1] in ("R@1", "R@5", "R@10")]
    return {**found, "rsum": sum(recalls)}


def main() -> None:
    """Measure all and write them down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("rerank", type=Path, help="the run of the second model")
    given = parser.parse_args()
    runs = [given.runs / "best" / f"seed-{seed}" for seed in SEEDS]
    for run in runs:
        file = FinishedRun.file_of(STUDIES / "recipe-flickr8k" / "best" / run.name)
        kept, own = StudyRun.of_plain(FinishedRun.from_json(file).record), StudyRun.read(run)
        if own is None or (own.key, own.machines) != (kept.key, kept.machines):
            parser.error(f"{run}: not the run whose numbers are in {file}")
    models = [run / "model" for run in runs]
    asked, rows = Asked(), []
    recipes, second = [scores(model, asked.data) for model in models], scores(given.rerank / "model", asked.data)

    def row(name: str, numbers: Numbers, sees_queries: bool = False) -> None:
        rows.append({"name": name, "sees other queries": sees_queries, "numbers": numbers})
        print(f"{name}: rsum {numbers['rsum']:.1f}, nDCG@10 {numbers['t2i/nDCG@10']:.1f}", flush=True)

    row("average of five models", asked.of(np.mean(recipes, axis=0)))
    found = [asked.of(Reranked(first, second, FIRST)) for first in recipes]
    row(f"first {FIRST} put in order by `{given.rerank.name}`", mean_of(found))
    row(f"`{given.rerank.name}` alone", asked.of(second))
    validation = scores(models[0], asked.data, "val")
    of_validation = {one: of_directions(asked, validation, one, "val")["rsum"] for one in TEMPERATURES}
    best = max(of_validation, key=of_validation.__getitem__)
    found = [of_directions(asked, one, best, "test") for one in recipes]
    row(f"inverted softmax at {best}", mean_of(found), sees_queries=True)
    machine = machine_of(FinishedRun.from_json(file).config(file))
    text = json.dumps({"machine": str(machine), "rows": rows}, indent=1, sort_keys=True)
    (STUDIES / "beside-the-recipe.json").write_text(f"{text}\n", encoding="utf-8")


def mean_of(found: list[Numbers]) -> Numbers:
    """The mean of each number over the models."""
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


if __name__ == "__main__":
    main()
