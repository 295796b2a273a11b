r"""Measures how well degrees tell right captions from wrong ones, and writes told-apart.json.

    cd studies
    python make_data.py
    python told_apart.py

Of degrees-shuffled.yaml: a training caption has a degree of relevance to the picture that it stands beside. The area
under the curve (AUC) is the share of pairs of a right and a wrong caption in which the right one has the higher degree.
50 % is a guess.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

import rungwise
from rungwise.relevance.config import source_config
from rungwise.runs.study import load_study

STUDIES = Path(__file__).parent
STEP = 200
"""Pictures that are asked for at a time."""


def wrong_captions(shuffled: Any, published: Any) -> NDArray[np.bool_]:
    """Whether each caption stands beside a picture that it was not written for."""
    written = {
        (published.image_ids[of], text) for of, text in zip(published.image_of_caption, published.captions, strict=True)
    }
    pairs = zip(shuffled.image_of_caption, shuffled.captions, strict=True)
    return np.array([(shuffled.image_ids[of], text) not in written for of, text in pairs])


def own_degrees(source: Any, image_of_caption: NDArray[np.int64]) -> NDArray[np.float64]:
    """(captions,) degree of each caption to the picture that it stands beside."""
    found = np.empty(len(image_of_caption))
    for begin in range(0, image_of_caption.max() + 1, STEP):
        captions = np.flatnonzero((image_of_caption >= begin) & (image_of_caption < begin + STEP))
        images, place = np.unique(image_of_caption[captions], return_inverse=True)
        found[captions] = source.block(images, captions)[place, np.arange(len(captions))]
    return found


def area(degrees: NDArray[np.float64], wrong: NDArray[np.bool_]) -> float:
    """Percentage of pairs of a right and a wrong caption in which the right one has more; a draw counts half."""
    above = mannwhitneyu(degrees[~wrong], degrees[wrong]).statistic
    return float(100 * above / (np.count_nonzero(~wrong) * np.count_nonzero(wrong)))


def main() -> None:
    """Measure all and write them down."""
    study, rows = load_study(STUDIES / "degrees-shuffled.yaml"), []
    published = rungwise.read(STUDIES / "data" / "flickr8k").split("train")
    for folder in study.grid["data.path"]:
        data = rungwise.read(STUDIES / folder)
        train = data.split("train")
        wrong = wrong_captions(train, published)
        for arm in study.arms:
            if "data.relevance" in arm.settings:
                source = rungwise.degrees(
                    source_config(arm.settings["data.relevance"]), data, split="train", quiet=True
                )
                auc = area(own_degrees(source, train.image_of_caption), wrong)
                rows.append({"data": folder, "wrong": float(100 * wrong.mean()), "arm": arm.name, "AUC": auc})
                print(f"{folder}, {arm.name}: AUC {auc:.1f} %", flush=True)
    (STUDIES / "told-apart.json").write_text(f"{json.dumps(rows, indent=1)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
