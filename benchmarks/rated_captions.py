"""CxC's rated caption pairs as a table that ``rungwise relevance train-cross-encoder`` takes.

    RUNGWISE_DATA=... python benchmarks/rated_captions.py PAIRS.csv

The model that is trained on them is judged by CxC's image-caption ratings (``human_agreement.py``), so pairs of
captions whose two images stand in one of these judgements are left out. An image in seven is drawn for dev: a pair is
dev if both of its images are, and is left out if one is.
"""

from __future__ import annotations

import argparse
import csv
import os
from pathlib import Path

import numpy as np

from human_sources import Judged, caption_ratings, training_part
from rungwise.core.disk import replacing
from rungwise.data import read
from rungwise.relevance import HumanJudgements


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, default=os.environ.get("RUNGWISE_DATA"), help="default: RUNGWISE_DATA")
    asked = parser.parse_args()
    if asked.data is None:
        raise SystemExit("RUNGWISE_DATA is not set: no real data here")
    folder = Path(asked.data) / "coco5k"
    coco = read(folder / "captions.tsv", captions_only=True)
    human = HumanJudgements.read(folder / "sits_test_half.csv", coco)
    pairs, grades = caption_ratings(folder / "sts_test_half.csv", coco)
    train, dev = training_part(Judged("CxC", coco, human.pairs, human.grades), pairs)
    rows = [
        (*(coco.captions[caption] for caption in pairs[at]), grades[at], "dev" if dev[at] else "train")
        for at in np.flatnonzero(train | dev)
    ]
    with replacing(asked.out) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("caption1", "caption2", "score", "split"))
        writer.writerows(rows)
    print(f"{asked.out}: {len(rows):,} of {len(pairs):,} rated pairs, {dev.sum():,} dev")


if __name__ == "__main__":
    main()
