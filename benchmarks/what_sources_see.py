"""What each relevance source makes of small changes to a caption, and how near its order is to the truth.

Both on generated scenes, whose relevance is exact: the tables of the pages below docs/guide/relevance.

    python benchmarks/what_sources_see.py [--vectors GLOVE.txt] [--cross-encoder FOLDER] [--scenes 1000] [--few 60]

The first table asks every source for one picture: the rows are captions that say the same, and captions of other
pictures. The second asks for all captions of all other pictures of a collection: Kendall's tau-b between a source's
degrees and the exact ones, for each picture (i2t) and each caption (t2i), averaged, with a 95 % bootstrap interval. A
cross-encoder runs for every pair of captions; it and the others are compared on the first scenes in a third table.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

from rungwise.data import ImageCaptions
from rungwise.relevance import BiEncoder, CBoW, CIDErD, CrossEncoder, Degrees, FactWeights, Spice, TfIdf
from rungwise.relevance.embedding import by_sentences
from rungwise.scenes import SceneConfig, SceneRelevance, generate

ASKED = "a small red circle left of a blue square"
SAME = (
    ("the same words", ASKED),
    ("the same fact, said the other way round", "a blue square right of a small red circle"),
    ("a synonym", "a little red disc left of a blue square"),
)
PART = (("half of it", "a small red circle"),)
WRONG = (
    ("the relation turned round", "a small red circle right of a blue square"),
    ("colours swapped", "a small blue circle left of a red square"),
    ("one attribute changed", "a large red circle left of a blue square"),
    ("nothing of it", "two yellow stars"),
)
Made = dict[str, Callable[[list[str], list[int]], Degrees]]

CROSS_ENCODER = "cross-encoder"


def sources(vectors: Path | None, cross_encoder: Path | None) -> Made:
    likeness, unbound = by_sentences(), FactWeights(unbound=1)
    made: Made = {
        "CIDEr-D": CIDErD,
        "TfIdf": TfIdf,
        "MiniLM": BiEncoder,
        "Spice": Spice,
        "Spice, soft": lambda captions, owners: Spice(captions, owners, likeness=likeness),
        "Spice, precision": lambda captions, owners: Spice(captions, owners, measure="precision"),
        "Spice, unbound": lambda captions, owners: Spice(captions, owners, weights=unbound),
        "Spice, precision, unbound": lambda captions, owners: Spice(
            captions, owners, measure="precision", weights=unbound
        ),
    }
    if vectors:
        made["CBoW"] = lambda captions, owners: CBoW(captions, owners, vectors)
    if cross_encoder:
        made[CROSS_ENCODER] = lambda captions, owners: CrossEncoder(
            captions, owners, cross_encoder, scale="sigmoid", reference="mean"
        )
    return made


def changes(console: Console, data: ImageCaptions, made: Made) -> None:
    # The caption asked about is an image of its own, whose only reference it is.
    others = (*SAME, *PART, *WRONG)
    captions = [*data.captions, ASKED, *(text for _, text in others)]
    owners = [*data.image_of_caption.tolist(), *range(len(data), len(data) + 1 + len(others))]
    places = np.arange(len(data.captions) + 1, len(captions))
    table = Table("caption", *made, title=f"degrees for a picture described as: {ASKED}")
    degrees = {name: make(captions, owners).block([len(data)], places)[0] for name, make in made.items()}
    for row, (what, text) in enumerate(others):
        if row in (len(SAME), len(SAME) + len(PART)):
            table.add_section()
        table.add_row(f"{text} ({what})", *(f"{one[row]:.2f}" for one in degrees.values()))
    console.print(table)
    for name, one in degrees.items():
        same, wrong = one[1 : len(SAME)], one[len(SAME) + len(PART) :]
        above = int((same[:, None] > wrong[None, :]).sum())
        console.print(f"{name}: a paraphrase stands above a wrong picture in {above} of {len(same) * len(wrong)} rows")


def orders(console: Console, data: ImageCaptions, exact: NDArray[np.float32], made: Made) -> None:
    table = Table(title=f"Kendall's tau-b with the exact relevance, {len(data):,} scenes, other pictures' captions")
    for head in ("source", "i2t", "95 %", "t2i", "95 %", "seconds"):
        table.add_column(head, justify="left" if head == "source" else "right")
    own = data.image_of_caption[None, :] == np.arange(len(data))[:, None]
    for name, make in made.items():
        began = time.perf_counter()
        found = make(list(data.captions), data.image_of_caption.tolist()).dense()
        took = time.perf_counter() - began
        cells = []
        for ours, truth, mine in ((found, exact, own), (found.T, exact.T, own.T)):
            cells += _mean(np.array([_tau(ours[row][~mine[row]], truth[row][~mine[row]]) for row in range(len(truth))]))
        table.add_row(name, *cells, f"{took:.1f}")
    console.print(table)


def _tau(ours: NDArray[np.float32], truth: NDArray[np.float32]) -> float:
    """0 where one side is constant: then it orders nothing."""
    return 0.0 if np.ptp(ours) == 0 or np.ptp(truth) == 0 else float(kendalltau(ours, truth).statistic)


def _mean(values: NDArray[np.float64]) -> tuple[str, str]:
    draw = np.random.default_rng(0).integers(0, len(values), (2000, len(values)))
    low, high = np.quantile(values[draw].mean(axis=1), (0.025, 0.975))
    return f"{values.mean():.3f}", f"{low:.3f}..{high:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=Path, help="word vectors for CBoW, such as GloVe's text format")
    parser.add_argument("--cross-encoder", type=Path, help="a folder that train-cross-encoder wrote")
    parser.add_argument("--scenes", type=int, default=1000, help="pictures of the second table")
    parser.add_argument("--few", type=int, default=60, help="pictures of the third table, with the cross-encoder")
    asked = parser.parse_args()
    console = Console(width=170)
    made = sources(asked.vectors, asked.cross_encoder)
    with tempfile.TemporaryDirectory() as folder:
        changes(console, generate(Path(folder) / "few", SceneConfig(pictures=400, side=32)), made)
        place = Path(folder) / "many"
        data = generate(place, SceneConfig(pictures=asked.scenes, side=32))
        without = {name: make for name, make in made.items() if name != CROSS_ENCODER}
        orders(console, data, SceneRelevance.load(place, data).dense(), without)
        if asked.cross_encoder:
            few = data.select(range(min(asked.few, len(data))))
            orders(console, few, SceneRelevance.load(place, few).dense(), made)


if __name__ == "__main__":
    main()
