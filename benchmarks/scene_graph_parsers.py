"""Parsers of captions into scene graphs, judged by captions annotated by hand (tests/language/annotated_captions.md).

    python benchmarks/scene_graph_parsers.py DATA [--spacy MODEL]

DATA is the folder of real data that ``RUNGWISE_DATA`` names elsewhere. F is the harmonic mean of precision and recall
over all tuples of all captions. Rules were written by the dev half and the written captions alone. The interval is a
95 % bootstrap interval over the captions of the test half. What is timed are captions of MS-COCO on one core, after
the first one. spaCy's row needs spaCy and the name or the folder of a model; that of link grammar its Python module.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from link_grammar import link_grammar_parser
from rungwise.language.scene_graphs import Parser, dependency_parser
from rungwise.language.scene_graphs.chunking import parse

sys.path.append(str(Path(__file__).parents[1]))  # the annotated captions are those of the tests
from tests.language.annotated import Annotated, annotated, published_texts, written

KINDS = ("objects", "attributes", "relations")
TIMED = 500
DRAWS = 10_000


@dataclass(frozen=True)
class Counts:
    """Tuples of each caption by their kind, shape (captions, 3): found and right, found, annotated."""

    right: np.ndarray
    found: np.ndarray
    wanted: np.ndarray

    @classmethod
    def of(cls, parser: Parser, captions: Sequence[Annotated]) -> Counts:
        """What a parser finds in captions, and what is annotated there."""
        right, found, wanted = (np.zeros((len(captions), 3), int) for _ in range(3))
        for row, caption in enumerate(captions):
            facts = parser(caption.text)
            for size in (1, 2, 3):
                got = {fact for fact in facts if len(fact) == size}
                asked = {fact for fact in caption.tuples if len(fact) == size}
                right[row, size - 1] = len(got & asked)
                found[row, size - 1], wanted[row, size - 1] = len(got), len(asked)
        return cls(right, found, wanted)

    def f(self, kind: int | None = None) -> float:
        """F over one kind, or over all tuples."""
        of = slice(None) if kind is None else kind
        return float(2 * self.right[:, of].sum() / (self.found[:, of].sum() + self.wanted[:, of].sum()))

    def interval(self) -> tuple[float, float]:
        """Of F over all tuples, captions drawn with replacement."""
        drawn = np.random.default_rng(0).integers(len(self.right), size=(DRAWS, len(self.right)))
        sums = [array.sum(axis=1)[drawn].sum(axis=1) for array in (self.right, self.found, self.wanted)]
        low, high = np.quantile(2 * sums[0] / (sums[1] + sums[2]), (0.025, 0.975))
        return float(low), float(high)


def speed(parser: Parser, texts: Sequence[str]) -> tuple[float, float]:
    """Captions and tuples a second of one core."""
    parser(texts[0])
    begun = time.process_time()
    tuples = sum(len(parser(text)) for text in texts)
    took = time.process_time() - begun
    return len(texts) / took, tuples / took


def main() -> None:
    asking = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asking.add_argument("data", type=Path, help="the folder of real data")
    asking.add_argument("--spacy", help="name or folder of a model of spaCy's for English")
    asked = asking.parse_args()
    parsers: dict[str, tuple[Parser, str]] = {"our grammar": (parse, "lemminflect, textblob")}
    if asked.spacy:
        parsers["spaCy"] = (dependency_parser(asked.spacy), f"spacy, {Path(asked.spacy).name}")
    links = link_grammar_parser()
    if links is not None:
        parsers["link grammar"] = (links, "link-grammar (Debian), lemminflect")
    real = annotated(asked.data)
    halves = {half: [caption for caption in real if caption.half == half] for half in ("dev", "test")}
    halves["written"] = written()
    texts = [text for (source, _), text in published_texts(asked.data) if source == "coco5k"]
    timed = texts[:: len(texts) // TIMED]
    accuracy = Table(
        "parser",
        "captions",
        *KINDS,
        "P",
        "R",
        "F",
        "95 %",
        title="F by kind of tuple, and all tuples",
        box=SIMPLE_HEAD,
        padding=0,
    )
    costs = Table("parser", "captions/s", "tuples/s", "to install", box=SIMPLE_HEAD, padding=0)
    for name, (parser, needs) in parsers.items():
        for half, captions in halves.items():
            counts = Counts.of(parser, captions)
            right = counts.right.sum()
            numbers = (*(counts.f(kind) for kind in range(3)), right / counts.found.sum(), right / counts.wanted.sum())
            interval = "{:.3f} - {:.3f}".format(*counts.interval()) if half == "test" else ""
            cells = (f"{number:.3f}" for number in (*numbers, counts.f()))
            accuracy.add_row(name, f"{half}, {len(captions)}", *cells, interval, end_section=half == "written")
        costs.add_row(name, *(f"{number:,.0f}" for number in speed(parser, timed)), needs)
    console = Console(width=100, highlight=False)
    console.print(accuracy)
    console.print(costs)


if __name__ == "__main__":
    main()
