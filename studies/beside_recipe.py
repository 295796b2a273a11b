"""Measures what stands beside the recipe, and writes beside-the-recipe.json: nothing of it is part of the recipe.

    cd studies; python beside_recipe.py RUNS [--rerank MODEL]

RUNS is the folder of the study recipe-flickr8k with its models (``keep: runs``).

* The average of its five models: five times the work for a query.
* The recipe and a second model that orders the best candidates anew.
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
from rungwise.relevance.config import source_config

STUDIES = Path(__file__).parent
DATA = STUDIES / "data" / "flickr8k"
JUDGEMENTS = DATA / "Flickr8k_text" / "CrowdFlowerAnnotations.txt"
SEEDS = range(5)
TEMPERATURES = (0.02, 0.05, 0.1, 0.2)
"""Temperatures of the inverted softmax, of which the best on validation is taken."""

Numbers = dict[str, float]


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

    def of(self, *model: Any, **more: Any) -> Numbers:
        """All numbers of a model, or of a similarity matrix."""
        found = dict(rungwise.evaluate(*model, data=self.data, measures=["rsum"], quiet=True, **more).numbers)
        for measures, degrees in self._degrees.items():
            result = rungwise.evaluate(*model, data=self.data, measures=measures, relevance=degrees, quiet=True, **more)
            found |= result.numbers
        return found


def similarity(model: Path, data: Any, split: str) -> NDArray[np.float64]:
    """Cosines of all pictures (rows) and captions of a split."""
    part, scorer = data.split(split), rungwise.load(model)
    images, texts = scorer.encode_image(part.pictures).vectors, scorer.encode_captions(part.captions)
    return np.asarray(images, dtype=np.float64) @ np.asarray(texts, dtype=np.float64).T


def corrected(cosines: NDArray[np.float64], temperature: float) -> dict[str, NDArray[np.float64]]:
    """The cosines of each direction, less what the candidate has with all queries of that direction."""
    scaled = cosines / temperature
    return {
        "i2t": scaled - logsumexp(scaled, axis=0, keepdims=True),
        "t2i": scaled - logsumexp(scaled, axis=1, keepdims=True),
    }


def of_directions(asked: Asked, cosines: NDArray[np.float64], temperature: float, split: str) -> Numbers:
    """Numbers of corrected cosines, each direction with its own correction; of validation, recall alone."""
    found: Numbers = {}
    for direction, scores in corrected(cosines, temperature).items():
        if split == "test":
            numbers = asked.of(similarity=scores)
        else:
            numbers = rungwise.evaluate(data=asked.data, similarity=scores, split=split, quiet=True).numbers
        found |= {name: value for name, value in numbers.items() if name.startswith(f"{direction}/")}
    recalls = [value for name, value in found.items() if name.split("/")[1] in ("R@1", "R@5", "R@10")]
    return {**found, "rsum": sum(recalls)}


def main() -> None:
    """Measure all and write them down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--rerank", type=Path, help="a model that looks at regions, for a second stage")
    given = parser.parse_args()
    models = [given.runs / "best" / f"seed-{seed}" / "model" for seed in SEEDS]
    asked, rows = Asked(), []

    def row(name: str, numbers: Numbers, sees_queries: bool = False) -> None:
        rows.append({"name": name, "sees other queries": sees_queries, "numbers": numbers})
        print(f"{name}: rsum {numbers['rsum']:.1f}, nDCG@10 {numbers['t2i/nDCG@10']:.1f}", flush=True)

    row("average of five models", asked.of(f"average:{','.join(map(str, models))}"))
    if given.rerank is not None:
        found = [asked.of(str(model), rerank=str(given.rerank)) for model in models]
        row("best fifty ordered anew by a model of regions", mean_of(found))
    validation = similarity(models[0], asked.data, "val")
    of_validation = {one: of_directions(asked, validation, one, "val")["rsum"] for one in TEMPERATURES}
    best = max(of_validation, key=of_validation.__getitem__)
    found = [of_directions(asked, similarity(model, asked.data, "test"), best, "test") for model in models]
    row(f"inverted softmax at {best}", mean_of(found), sees_queries=True)
    text = json.dumps(rows, indent=1, sort_keys=True)
    (STUDIES / "beside-the-recipe.json").write_text(f"{text}\n", encoding="utf-8")


def mean_of(found: list[Numbers]) -> Numbers:
    """The mean of each number over the models."""
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


if __name__ == "__main__":
    main()
