"""Rows that papers print, to be set beside ours where both are of one protocol, and refused where they are not.

``published.csv`` holds every number of the result tables of the papers in :data:`PAPERS`: paper, table and row, method,
backbone, whether it was fine-tuned, training set, dataset, number of test images, direction, metric with its k, the
value as printed with its unit, and the setting (folds, runs, who re-ran it; ``as_printed_suspect`` marks a number that
contradicts another one of its table).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from rungwise.core.errors import UserError
from rungwise.evaluation.protocols import captions_fit
from rungwise.evaluation.result import Result
from rungwise.metrics.rankings import DIRECTIONS

PAPERS: Mapping[str, str] = {
    "vsepp": "VSE++: Improving Visual-Semantic Embeddings with Hard Negatives (Faghri et al. 2018)",
    "ladder_loss": "Ladder Loss for Coherent Visual-Semantic Embedding (Zhou et al. 2020)",
    "sam": "Is An Image Worth Five Sentences? A New Look into Semantics for Image-Text Matching (Biten et al. 2022)",
    "convse": "Contrastive Learning of Visual-Semantic Embeddings (Jain and Verma)",
    "cmal2r": "Cross-Modal Learning to Rank with Adaptive Listwise Constraint (Qu et al.)",
}
"""Short name to title: the sources of the rows."""

_METRICS = {
    "recall": "R@{k}",
    "coherent_score": "CS@{k}",
    "ncs": "NCS@{k}",
    "median_rank": "MedR",
    "mean_rank": "MeanR",
    "map": "MAP",
    "rsum": "rsum",
    "nsum": "Nsum",
    "ncs_non_gt_sum": "Nsum(non_gt)",
}
"""Names of measures; correlations with people's ratings are no measure of a ranking and stand in no row."""

_CAPTIONS_AN_IMAGE = {"one-caption-per-image": 1, "labels": 1}
"""Of the published test sets under a protocol; 5 under any other."""

_DATASET_OF_PROTOCOL = {"coco-5k": "coco", "coco-1k-5fold": "coco", "flickr30k-1k": "flickr30k"}


@dataclass(frozen=True)
class PublishedRow:
    """One row of a paper's table.

    Attributes:
        paper: Short name.
        table: Such as ``"Table 1"``.
        method: With backbone, fine-tuning, training set and setting as far as the paper says them.
        dataset: Such as ``"coco"``.
        test_images: In the gallery.
        protocol: The protocol here under which the row was made.
        numbers: Canonical name to value, on the scale of results here (rates 0..100, correlations -1..1).
    """

    paper: str
    table: str
    method: str
    dataset: str
    test_images: int
    protocol: str
    numbers: Mapping[str, float]


@cache
def published(paper: str) -> tuple[PublishedRow, ...]:
    """All rows of a paper.

    Raises:
        UserError: If no such paper is known; the message lists those that are.

    >>> row = published("ladder_loss")[2]
    >>> row.method, row.protocol, row.numbers["i2t/CS@100"]
    ('VSE++, VGG19, re-implemented', 'one-caption-per-image', 0.235)
    """
    if paper not in PAPERS:
        raise UserError(f"paper {paper!r} is not known; there are {', '.join(PAPERS)}")
    rows: dict[tuple[str, str, str, int, str], dict[str, float]] = {}
    text = resources.files("rungwise.evaluation").joinpath("published.csv").read_text(encoding="utf-8")
    for cells in csv.DictReader(text.splitlines()):
        if cells["paper"] != paper or cells["metric"] not in _METRICS or "stat=std" in cells["setting"]:
            continue
        key = (cells["table"], _method(cells), cells["dataset"], int(cells["test_images"]), _protocol(cells))
        measure = _METRICS[cells["metric"]].format(k=cells["k"])
        name = measure if cells["direction"] == "both" else f"{cells['direction']}/{measure}"
        of_share = cells["unit"] == "fraction" and cells["metric"] != "coherent_score"
        rows.setdefault(key, {})[name] = float(cells["value"]) * (100 if of_share else 1)
    return tuple(PublishedRow(paper, *key, numbers) for key, numbers in rows.items())


def published_beside(result: Result, paper: str, *, dataset: str | None = None, split: str = "") -> list[PublishedRow]:
    """The rows of a paper that may stand beside a result: same test set, gallery size, folds and captions.

    Args:
        result: Ours.
        paper: Short name.
        dataset: Such as ``"coco"``, where the result's protocol does not say it.
        split: Of the data that were evaluated, where it is known; published rows are of test splits.

    Raises:
        UserError: If the paper has no row of this protocol; the message says what differs.

    >>> import numpy as np
    >>> from rungwise.evaluation import evaluate
    >>> ours = evaluate(similarity=np.eye(3), image_of_caption=[0, 1, 2], protocol="one-caption-per-image")
    >>> published_beside(ours, "ladder_loss", dataset="coco")
    Traceback (most recent call last):
    rungwise.core.errors.UserError: ladder_loss: its coco rows are of 1000 or 5000 images, this result is of 3; ...
    """
    rows = published(paper)
    if split not in ("", "all", "test"):
        raise UserError(
            f"{paper}: published rows are of test splits, this result is of split {split!r}; evaluate 'test'"
        )
    said = _DATASET_OF_PROTOCOL.get(result.protocol)
    if said and dataset not in (None, said):
        raise UserError(f"{paper}: protocol {result.protocol} is {said}'s, not {dataset}'s; leave the dataset out")
    wanted = said or dataset
    known = sorted({row.dataset for row in rows})
    if wanted is None:
        raise UserError(
            f"{paper}: protocol {result.protocol} does not say which test set this is; name it, one of"
            f" {', '.join(known)}, or use its own protocol"
        )
    same_data = [row for row in rows if row.dataset == wanted]
    if not same_data:
        raise UserError(f"{paper}: has no rows of {wanted}; it has {', '.join(known)}")
    images = result.gallery["t2i"][0]
    same_size = [row for row in same_data if row.test_images == images]
    if not same_size:
        sizes = " or ".join(str(size) for size in sorted({row.test_images for row in same_data}))
        raise UserError(
            f"{paper}: its {wanted} rows are of {sizes} images, this result is of {images}; galleries of different size"
            " cannot be compared"
        )
    found = [row for row in same_size if row.protocol == result.protocol]
    if not found:
        theirs = " or ".join(sorted({row.protocol for row in same_size}))
        raise UserError(
            f"{paper}: its {wanted} rows of {images} images are made under protocol {theirs}, this result under"
            f" {result.protocol}; evaluate under theirs"
        )
    captions, images = (sum(result.gallery[way]) for way in DIRECTIONS)
    per_image = _CAPTIONS_AN_IMAGE.get(result.protocol, 5)
    if not captions_fit(captions, images, per_image):
        raise UserError(
            f"{paper}: its {wanted} rows are of {per_image} captions an image, this result is of {captions:,} captions"
            f" for {images:,} images; evaluate all captions of the test set and no others"
        )
    return found


def _protocol(cells: Mapping[str, str]) -> str:
    """Under which protocol a row was made, as its paper and its authors' program say."""
    if cells["metric"] == "map":
        return "labels"
    # The program of the ladder paper keeps every image's first caption for CS. Its ranks are of all five: the mean rank
    # that it prints for random scores, 929.9 from images to captions and 501.0 back, fits no gallery of 1000 captions.
    if cells["metric"] == "coherent_score":
        return "one-caption-per-image"
    if cells["dataset"] == "flickr30k":
        return "flickr30k-1k"
    if cells["test_images"] == "5000":
        return "coco-5k"
    # One gallery of 1,000 COCO images unless the paper says that it is the mean of five.
    return "coco-1k-5fold" if "5-fold" in cells["setting"] else "full"


def _method(cells: Mapping[str, str]) -> str:
    """What tells a row from others: its values' marks (suspect, inferred) do not."""
    setting = [
        part
        for part in cells["setting"].split(";")
        if part and not part.startswith(("as_printed", "why=", "5-fold", "1-fold", "test_images", "backbone_by"))
    ]
    tuned = {"yes": "fine-tuned", "no": "", "": ""}[cells["finetuned"]]
    trained = f"trained on {cells['train_set']}" if cells["train_set"] not in ("", "?") else ""
    parts = [cells["method"], cells["backbone"], tuned, trained, *(part.replace("_", " ") for part in setting)]
    return ", ".join(part for part in parts if part)
