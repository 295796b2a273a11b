"""What each relevance source makes of small changes to a caption, on generated scenes: the table of docs/relevance.md.

Run ``python benchmarks/what_sources_see.py [--vectors GLOVE.txt]``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rungwise.relevance import BiEncoder, CBoW, CIDErD, TfIdf
from rungwise.scenes.collection import SceneConfig, generate

ASKED = "a small red circle left of a blue square"
OTHERS = (
    ("the same words", ASKED),
    ("the same fact, said the other way round", "a blue square right of a small red circle"),
    ("a synonym", "a little red disc left of a blue square"),
    ("the relation turned round", "a small red circle right of a blue square"),
    ("colours swapped", "a small blue circle left of a red square"),
    ("one attribute changed", "a large red circle left of a blue square"),
    ("half of it", "a small red circle"),
    ("nothing of it", "two yellow stars"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=Path, help="word vectors for CBoW, such as GloVe's text format")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = generate(Path(folder), SceneConfig(pictures=400, side=32))
    # The caption asked about is an image of its own, whose only reference it is.
    captions = [*data.captions, ASKED, *(text for _, text in OTHERS)]
    owners = [*data.image_of_caption.tolist(), *range(len(data), len(data) + 1 + len(OTHERS))]
    sources = {
        "CIDEr-D": CIDErD(captions, owners),
        "TfIdf": TfIdf(captions, owners),
        "MiniLM": BiEncoder(captions, owners),
    }
    if asked.vectors:
        sources["CBoW"] = CBoW(captions, owners, asked.vectors)
    table = Table("caption", *sources, title=f"degrees for a picture described as: {ASKED}")
    for row, (what, text) in enumerate(OTHERS):
        position = len(data.captions) + 1 + row
        degrees = [float(source.block([len(data)], [position])[0, 0]) for source in sources.values()]
        table.add_row(f"{text} ({what})", *(f"{degree:.2f}" for degree in degrees))
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
