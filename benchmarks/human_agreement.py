"""How well relevance degrees agree with people: SAM's Table 1 (Biten et al. 2022), and the same on Flickr8K.

    RUNGWISE_DATA=... python benchmarks/human_agreement.py [--cross-encoder FOLDER] [--distilled FOLDER]
        [--cxc-distilled FOLDER] [--cache FILE]

Pearson's and Spearman's correlation with the image-caption ratings of CrissCrossed Captions (the half that is at hand),
over all pairs and over those whose caption was not written for the image (non-GT). A caption that was written for the
image is among its own references in the published tables; the columns "apart" leave it out (``leave_one_out``), which
changes GT pairs only. Rows with English stems map words to their stems, as CIDEr's paper has it (``pip install
rungwise[languages]``). The caption-caption ratings of CrissCrossed Captions stand in a table of their own.

Combinations are regressions (``rungwise.relevance.combine._fit``) of several sources on people's grades. Each is fitted
elsewhere than where it is judged: for CxC's image-caption ratings on its caption-caption ratings or on Flickr8K's
crowd, for the caption-caption ratings and for Flickr8K on CxC's other ratings. Folders of models come from
``rungwise relevance train-cross-encoder``: on the STS-Benchmark, which shares no text with these judgements, or (CxC)
on the caption pairs of ``rated_captions.py``. What was trained on these is not judged by them: it stands in no table
of caption pairs, and combinations that have it are fitted on the pairs that were held out.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.stats import pearsonr, spearmanr

from human_sources import REFERENCES, Judged, Models, Sources, Values, caption_ratings, degrees, training_part
from rungwise.data import read
from rungwise.relevance import HumanJudgements
from rungwise.relevance.combine import Fit, Kind, fit_table

PAPER = (
    ("paper: binary relevance (GT)", "0.711", "0.00"),
    ("paper: SPICE", "0.729", "0.536"),
    ("paper: CIDEr", "0.734", "0.453"),
)
KINDS: tuple[Kind, ...] = ("isotonic", "monotone")
COMBINED = {
    "words": ("CIDEr", "CIDEr-D", "TfIdf"),
    "words + Spice": ("CIDEr", "CIDEr-D", "TfIdf", "Spice, soft", "Spice, tuned"),
    "MiniLM + Spice": ("MiniLM", "Spice, soft", "Spice, tuned"),
    "cross-encoder + MiniLM": ("cross-encoder", "MiniLM"),
    "cross-encoder + MiniLM + Spice": ("cross-encoder", "MiniLM", "Spice, soft", "Spice, tuned"),
    "all": ("CIDEr", "CIDEr-D", "TfIdf", "CBoW", "MiniLM", "Spice, soft", "Spice, tuned", "cross-encoder", "distilled"),
}
"""Sources by the name of their combination."""
OF_CAPTIONS = "CxC distilled"
"""What was trained on CxC's caption pairs."""
WITH_CAPTIONS = {
    "CxC distilled + MiniLM": (OF_CAPTIONS, "MiniLM"),
    "CxC distilled + MiniLM + cross-encoder + Spice": (
        OF_CAPTIONS, "MiniLM", "cross-encoder", "Spice, soft", "Spice, tuned",
    ),
}  # fmt: skip
"""The same with it."""


@dataclass(frozen=True)
class Learned:
    """A combination that was fitted elsewhere: its name, the sources that it reads, and what was learned."""

    name: str
    columns: tuple[str, ...]
    fit: Fit

    def of(self, values: Values, rename: dict[str, str]) -> NDArray[np.float64]:
        """Grades of pairs from the sources' degrees, which may be called otherwise there."""
        return self.fit.apply(np.stack([values[rename.get(name, name)] for name in self.columns], axis=1))


def learned(
    values: Values,
    grades: NDArray[np.float64],
    where: str,
    rename: dict[str, str],
    combinations: Mapping[str, tuple[str, ...]] = COMBINED,
) -> list[Learned]:
    """Each combination whose sources are at hand, by each kind of regression."""
    out = []
    for name, columns in combinations.items():
        known = tuple(one for one in columns if rename.get(one, one) in values)
        if not known or (name != "all" and known != columns):
            continue
        table = np.stack([values[rename.get(one, one)] for one in known], axis=1)
        for kind in KINDS:
            fit = fit_table(table, grades, kind=kind, names=known)
            out.append(Learned(f"{name} ({kind}, fitted on {where})", known, fit))
    return out


def with_reference(sources: Sources, reference: str) -> dict[str, str]:
    """What a source of caption pairs is called where it compares with the captions of an image."""
    return {name: f"{name}, {reference}" for name in sources.pairs}


def agreement(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Pearson and Spearman; 0 where the degrees are all the same."""
    if np.ptp(x) == 0:
        return 0.0, 0.0
    return float(pearsonr(x, y)[0]), float(spearmanr(x, y)[0])


def report(console: Console, judged: Judged, among: Values, apart: Values, paper: bool) -> None:
    own = judged.own
    table = Table(title=f"{judged.name}: {len(own)} pairs, {int((~own).sum())} of them non-GT")
    table.add_column("degrees")
    for head in ("all: Pearson", "Spearman", "apart: Pearson", "Spearman", "non-GT: Pearson", "Spearman"):
        table.add_column(head, justify="right")
    if paper:
        for name, everything, others in PAPER:
            table.add_row(name, everything, "", "", "", others, "")
        table.add_section()
    for name, values in among.items():
        numbers = (
            *agreement(values, judged.grades),
            *agreement(apart[name], judged.grades),
            *agreement(values[~own], judged.grades[~own]),
        )
        table.add_row(name, *(f"{number:.3f}" for number in numbers))
    console.print(table)


def report_captions(console: Console, values: Values, grades: NDArray[np.float64]) -> None:
    table = Table(title=f"CxC, caption-caption: {len(grades)} pairs")
    for head in ("degrees", "Pearson", "Spearman"):
        table.add_column(head, justify="left" if head == "degrees" else "right")
    for name, one in values.items():
        table.add_row(name, *(f"{number:.3f}" for number in agreement(one, grades)))
    console.print(table)


def _given(folders: Mapping[str, Path | None]) -> dict[str, Path]:
    return {name: folder for name, folder in folders.items() if folder is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RUNGWISE_DATA"), help="default: RUNGWISE_DATA")
    parser.add_argument("--cross-encoder", type=Path, help="a folder that train-cross-encoder wrote")
    parser.add_argument("--distilled", type=Path, help="a sentence model that was distilled from it")
    parser.add_argument("--cxc-distilled", type=Path, help="the same, trained on the pairs of rated_captions.py")
    parser.add_argument("--cache", type=Path, help="a file of pair scores, where a second run finds them")
    asked = parser.parse_args()
    if asked.data is None:
        raise SystemExit("RUNGWISE_DATA is not set: no real data here")
    folder = Path(asked.data)
    console = Console(width=150)
    began = time.perf_counter()
    glove = folder / "weights" / "glove.6B.50d.caption_words.txt"
    models = Models(
        glove,
        _given({"cross-encoder": asked.cross_encoder}),
        _given({"distilled": asked.distilled, OF_CAPTIONS: asked.cxc_distilled}),
        asked.cache,
    )

    coco = read(folder / "coco5k" / "captions.tsv", captions_only=True)
    human = HumanJudgements.read(folder / "coco5k" / "sits_test_half.csv", coco)
    cxc = Judged("CxC, image-caption", coco, human.pairs, human.grades.astype(np.float64))
    text = folder / "flickr8k" / "Flickr8k_text"
    flickr = read(text / "Flickr8k.token.txt", captions_only=True)
    crowd = HumanJudgements.read(text / "CrowdFlowerAnnotations.txt", flickr)
    flickr8k = Judged("Flickr8K, crowd", flickr, crowd.pairs, crowd.grades.astype(np.float64))
    of_coco, of_flickr = Sources(coco, models), Sources(flickr, models)

    rated, grades = caption_ratings(folder / "coco5k" / "sts_test_half.csv", coco)
    captions = of_coco.captions(rated)
    console.print(f"caption pairs scored, {time.perf_counter() - began:.0f} s")
    on_coco = {apart: degrees(cxc, of_coco.images(apart)) for apart in (False, True)}
    console.print(f"CxC scored, {time.perf_counter() - began:.0f} s")
    on_flickr = {apart: degrees(flickr8k, of_flickr.images(apart)) for apart in (False, True)}
    console.print(f"Flickr8K scored, {time.perf_counter() - began:.0f} s")

    mean, best = (with_reference(of_coco, reference) for reference in ("mean", "max"))
    _, dev = training_part(cxc, rated)
    held_out = {name: one[dev] for name, one in captions.items()}
    by_captions = learned(captions, grades, "caption pairs", {})
    if asked.cxc_distilled:
        by_captions += learned(held_out, grades[dev], "held-out caption pairs", {}, WITH_CAPTIONS)
    by_crowd = learned(on_flickr[True], flickr8k.grades, "Flickr8K", mean, COMBINED | WITH_CAPTIONS)
    others = ~cxc.own
    by_images = learned({name: one[others] for name, one in on_coco[False].items()}, cxc.grades[others], "CxC", mean)

    def combined(values: Values, fits: list[Learned], renames: dict[str, dict[str, str]]) -> Values:
        return {f"{fit.name}{what}": fit.of(values, rename) for fit in fits for what, rename in renames.items()}

    either = {", mean": mean, ", max": best}
    for judged, values, fits, paper in (
        (cxc, on_coco, (by_captions, by_crowd), True),
        (flickr8k, on_flickr, (by_captions, by_images), False),
    ):
        whole = {
            apart: {"binary (GT)": judged.own.astype(np.float64)}
            | some
            | combined(some, fits[0], either)
            | combined(some, fits[1], {"": mean})
            for apart, some in values.items()
        }
        report(console, judged, whole[False], whole[True], paper)
    plain = {name: one for name, one in captions.items() if name != OF_CAPTIONS}
    elsewhere = [fit for fit in (*by_images, *by_crowd) if OF_CAPTIONS not in fit.columns]
    report_captions(console, plain | combined(captions, elsewhere, {"": {}}), grades)
    for fit in (*by_captions, *by_crowd, *by_images):
        console.print(f"{fit.name}: {fit.fit}", soft_wrap=True)
    console.print(f"{time.perf_counter() - began:.0f} s; references: {', '.join(REFERENCES)}")


if __name__ == "__main__":
    main()
