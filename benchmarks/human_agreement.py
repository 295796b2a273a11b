"""How well relevance degrees agree with people: SAM's Table 1 (Biten et al. 2022), and the same on Flickr8K.

    RUNGWISE_DATA=... python benchmarks/human_agreement.py

Pearson's and Spearman's correlation with the image-caption ratings of CrissCrossed Captions (the half that is at hand),
over all pairs and over those whose caption was not written for the image (non-GT). A caption that was written for the
image is among its own references in the published tables; the columns "apart" leave it out (``leave_one_out``), which
changes GT pairs only.

Combinations are weighted sums of sources. Their weights are fixed elsewhere than where they are judged: for CxC on
its caption-caption ratings or on Flickr8K's crowd, for Flickr8K on CxC's caption-caption ratings.
"""

from __future__ import annotations

import argparse
import copy
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.optimize import nnls
from scipy.stats import pearsonr, spearmanr

from rungwise.data.collection import ImageCaptions
from rungwise.data.readers import read
from rungwise.relevance import BiEncoder, CBoW, CIDEr, CIDErD, DocumentFrequencies, Human, TfIdf
from rungwise.relevance.captions import CaptionSource
from rungwise.relevance.combine import pair_degrees

Values = dict[str, NDArray[np.float64]]

PAPER = (
    ("paper: binary relevance (GT)", "0.711", "0.00"),
    ("paper: SPICE", "0.729", "0.536"),
    ("paper: CIDEr", "0.734", "0.453"),
)
PAIR_SOURCES = ("TfIdf", "CBoW", "MiniLM")
REFERENCES = ("max", "mean")

# The closed classes of English: what carries no content of a scene.
STOP_WORDS = frozenset({
    "a", "an", "the", "this", "that", "these", "those", "some", "any", "each", "every", "and", "or", "but", "as",
    "of", "at", "by", "for", "with", "about", "into", "through", "during", "to", "from", "in", "on", "off", "over",
    "under", "again", "there", "here", "all", "both", "is", "are", "was", "were", "be", "been", "being", "am", "it",
    "its", "his", "her", "their", "he", "she", "they", "them", "him", "who", "which", "what", "while", "where",
    "when", "has", "have", "had", "having", "do", "does", "doing",
})  # fmt: skip


@dataclass
class Judged:
    """A collection, the pairs that people judged, and every source's degrees of these pairs."""

    name: str
    data: ImageCaptions
    pairs: NDArray[np.int64]
    grades: NDArray[np.float64]

    @property
    def own(self) -> NDArray[np.bool_]:
        """The caption was written for the image."""
        return np.asarray(self.data.image_of_caption[self.pairs[:, 1]] == self.pairs[:, 0])


def sources_of(data: ImageCaptions, vectors: Path) -> dict[str, Callable[[bool], CaptionSource]]:
    """Sources by name, each built for ``leave_one_out`` or not; sentences are encoded once."""
    known = (data.captions, data.image_of_caption)
    made: dict[str, Callable[[bool], CaptionSource]] = {
        "CIDEr": lambda apart: CIDEr(*known, leave_one_out=apart),
        "CIDEr-D": lambda apart: CIDErD(*known, leave_one_out=apart),
    }
    bases = {
        "TfIdf": TfIdf(*known),
        "CBoW": CBoW(*known, vectors, stop_words=STOP_WORDS),
        "MiniLM": BiEncoder(*known, batch_size=256),
    }
    for name, base in bases.items():
        getattr(base, "vectors", None)  # made before it is copied, so that it is made once
        for reference in REFERENCES:
            made[f"{name}, {reference}"] = lambda apart, base=base, reference=reference: _variant(
                base, reference, apart
            )
    return made


def _variant(base: CaptionSource, reference: str, apart: bool) -> CaptionSource:
    other = copy.copy(base)
    other.reference, other.leave_one_out = reference, apart  # type: ignore[attr-defined]
    return other


def features(judged: Judged, sources: Mapping[str, Callable[[bool], CaptionSource]], apart: bool) -> Values:
    return {name: pair_degrees(make(apart), *judged.pairs.T) for name, make in sources.items()}


def caption_features(
    data: ImageCaptions, sources: Mapping[str, Callable[[bool], CaptionSource]], pairs: NDArray[np.int64]
) -> Values:
    """Degrees of caption with caption: every caption is an image of its own, with the collection's frequencies."""
    frequencies = DocumentFrequencies.of(data.captions, data.image_of_caption)
    single = (data.captions, np.arange(len(data.captions)))
    out = {
        "CIDEr": pair_degrees(CIDEr(*single, document_frequencies=frequencies), *pairs.T),
        "CIDEr-D": pair_degrees(CIDErD(*single, document_frequencies=frequencies), *pairs.T),
        "TfIdf": pair_degrees(TfIdf(*single, document_frequencies=frequencies), *pairs.T),
    }
    for name in ("CBoW", "MiniLM"):
        out[name] = sources[f"{name}, max"](False).pair_scores(*pairs.T)  # type: ignore[attr-defined]
    return out


def fixed(values: Values, grades: NDArray[np.float64], names: list[str]) -> dict[str, float]:
    """Weights that are not negative and fit the grades best, up to a constant (non-negative least squares)."""
    table = np.stack([values[name] for name in names], axis=1)
    weights, _ = nnls(table - table.mean(axis=0), grades - grades.mean())
    return {name: float(weight) for name, weight in zip(names, weights, strict=True) if weight > 0}


def weighted(values: Values, weights: Mapping[str, float]) -> NDArray[np.float64]:
    return np.asarray(sum(weight * values[name] for name, weight in weights.items()))


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


def extended(values: Values, judged: Judged, combinations: Mapping[str, Mapping[str, float]]) -> Values:
    binary = {"binary (GT)": judged.own.astype(np.float64)}
    return binary | values | {name: weighted(values, weights) for name, weights in combinations.items()}


def with_reference(weights: Mapping[str, float], reference: str) -> dict[str, float]:
    """Weights that were fixed on pairs of captions, for the same sources of images by this reference choice."""
    return {f"{name}, {reference}" if name in PAIR_SOURCES else name: weight for name, weight in weights.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RUNGWISE_DATA"), help="default: RUNGWISE_DATA")
    folder = parser.parse_args().data
    if folder is None:
        raise SystemExit("RUNGWISE_DATA is not set: no real data here")
    console = Console(width=130)
    began = time.perf_counter()
    glove = Path(folder) / "weights" / "glove.6B.50d.caption_words.txt"

    coco = read(Path(folder) / "coco5k" / "captions.tsv", captions_only=True)
    human = Human.cxc(Path(folder) / "coco5k" / "sits_test_half.csv", coco)
    cxc = Judged("CxC, image-caption", coco, human.pairs, human.grades.astype(np.float64))
    text = Path(folder) / "flickr8k" / "Flickr8k_text"
    flickr = read(text / "Flickr8k.token.txt", captions_only=True)
    crowd = Human.flickr8k_crowd(text / "CrowdFlowerAnnotations.txt", flickr)
    flickr8k = Judged("Flickr8K, crowd", flickr, crowd.pairs, crowd.grades.astype(np.float64))

    of_coco, of_flickr = sources_of(coco, glove), sources_of(flickr, glove)
    rated, grades = caption_ratings(Path(folder) / "coco5k" / "sts_test_half.csv", coco)
    captions = caption_features(coco, of_coco, rated)
    sts = {
        "CIDEr-D + TfIdf, fixed on STS": fixed(captions, grades, ["CIDEr-D", "TfIdf"]),
        "lexical + CBoW, fixed on STS": fixed(captions, grades, ["CIDEr", "CIDEr-D", "TfIdf", "CBoW"]),
        "MiniLM + CIDEr-D, fixed on STS": fixed(captions, grades, ["CIDEr-D", "MiniLM"]),
        "all, fixed on STS": fixed(captions, grades, list(captions)),
    }
    sts = {
        f"{name}, {reference}": with_reference(weights, reference)
        for name, weights in sts.items()
        for reference in REFERENCES
    }
    on_flickr = [features(flickr8k, of_flickr, apart) for apart in (False, True)]
    on_coco = [features(cxc, of_coco, apart) for apart in (False, True)]
    crowds = {"all, fixed on Flickr8K's crowd": fixed(on_flickr[1], flickr8k.grades, list(on_flickr[1]))}

    for judged, values, combinations in ((cxc, on_coco, sts | crowds), (flickr8k, on_flickr, sts)):
        among, apart = (extended(some, judged, combinations) for some in values)
        report(console, judged, among, apart, paper=judged is cxc)
    for name, weights in (sts | crowds).items():
        console.print(f"{name}: " + " + ".join(f"{weight:.3f} {source}" for source, weight in weights.items()))
    console.print(f"{time.perf_counter() - began:.0f} s")


def caption_ratings(path: Path, data: ImageCaptions) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """(n, 2) captions and (n,) mean grades of CxC's caption-caption file."""
    position = {one: number for number, one in enumerate(data.caption_ids)}
    rows = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    pairs = [[position[cell.rpartition(":")[2]] for cell in row[:2]] for row in rows]
    return np.array(pairs, np.int64), np.array([float(row[2]) for row in rows])


if __name__ == "__main__":
    main()
