"""What scene graphs cost: parsing, all pairs, memory, and how they grow; against what the Java program is said to take.

    RUNGWISE_DATA=... python benchmarks/spice.py

Captions are COCO's 25,000 of the 5,000 test images; smaller collections are its first images. Each row runs in a
process of its own, whose peak memory is read when it ends; the memory of a process that only imports stands beside it.
The word lists and the compiled loops are loaded before time is taken.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

PUBLISHED = (
    "The Java program of SPICE: ncs_metric's README asks for a patched jar with -Xmx8G (8 GB of heap) and offers the"
    " pairwise files for download, since they take hours; users of pycocoevalcap report 8 GB and all cores (DCASE#6)."
)
SIZES = (500, 1000, 2500, 5000)


def measured(captions: Path, images: int, soft: bool) -> dict[str, float]:
    """Seconds and counts of one collection, in this process."""
    from rungwise.data import read
    from rungwise.language.scene_graphs.chunking import parse
    from rungwise.relevance import Spice
    from rungwise.relevance.embedding import by_sentences

    data = read(captions, captions_only=True)
    data = data.select(np.arange(images))
    likeness = by_sentences() if soft else None
    Spice(["a dog on a bed", "a cat"], [0, 1], likeness=likeness).dense()
    began = time.perf_counter()
    graphs = [parse(caption) for caption in data.captions]
    parsed = time.perf_counter() - began
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    began = time.perf_counter()
    source = Spice(data.captions, data.image_of_caption, likeness=likeness)
    built = time.perf_counter() - began
    began = time.perf_counter()
    degrees = source.dense()
    scored = time.perf_counter() - began
    return {
        "captions": len(data.captions),
        "facts": sum(map(len, graphs)),
        "parsed": parsed,
        "built": built,
        "scored": scored,
        "pairs": degrees.size,
        "before": before,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RUNGWISE_DATA"), help="default: RUNGWISE_DATA")
    parser.add_argument("--one", nargs=2, metavar=("IMAGES", "SOFT"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.data is None:
        raise SystemExit("RUNGWISE_DATA is not set: no real data here")
    captions = Path(asked.data) / "coco5k" / "captions.tsv"
    if asked.one:
        print(json.dumps(measured(captions, int(asked.one[0]), asked.one[1] == "soft")))
        return
    table = Table(title="scene graphs of COCO's test captions")
    for head in ("captions", "matching", "facts", "captions/s", "facts/s", "build s", "all pairs s", "pairs/s", "MB"):
        table.add_column(head, justify="right")
    for soft in ("exact", "soft"):
        for images in SIZES:
            run = [sys.executable, __file__, "--data", str(asked.data), "--one", str(images), soft]
            found = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
            table.add_row(
                f"{found['captions']:,}",
                soft,
                f"{found['facts']:,}",
                f"{found['captions'] / found['parsed']:,.0f}",
                f"{found['facts'] / found['parsed']:,.0f}",
                f"{found['built']:.1f}",
                f"{found['scored']:.2f}",
                f"{found['pairs'] / found['scored'] / 1e6:,.0f} M",
                f"{found['before']:,.0f} to {found['peak']:,.0f}",
            )
        table.add_section()
    console = Console(width=130)
    console.print(table)
    console.print("build: parsing, numbering, matching of facts. MB: before and after it; the matrix itself is in it.")
    console.print(PUBLISHED)


if __name__ == "__main__":
    main()
