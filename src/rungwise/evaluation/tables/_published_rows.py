"""Rows that papers print, set beside our results where both are of one protocol, and refused where they are not.

``published.csv`` holds every number of the result tables of the papers in :data:`PAPERS`: paper, table and row, method,
backbone, whether it was fine-tuned, training set, dataset, number of test images, direction, metric with its k, the
value as printed with its unit, and the setting (folds, runs, who re-ran it; ``as_printed_suspect`` marks a number that
contradicts another one of its table). Rows of :data:`TODAY` also say their source, how it was looked up, and when.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.evaluation._protocols import captions_fit
from rungwise.evaluation.result import Result
from rungwise.metrics import DIRECTIONS

PAPERS: Mapping[str, str] = {
    "vsepp": "VSE++: Improving Visual-Semantic Embeddings with Hard Negatives (Faghri et al. 2018)",
    "ladder_loss": "Ladder Loss for Coherent Visual-Semantic Embedding (Zhou et al. 2020)",
    "sam": "Is An Image Worth Five Sentences? A New Look into Semantics for Image-Text Matching (Biten et al. 2022)",
    "convse": "Contrastive Learning of Visual-Semantic Embeddings (Jain and Verma)",
    "cmal2r": "Cross-Modal Learning to Rank with Adaptive Listwise Constraint (Qu et al.)",
    "today": "rows of systems of 2021 to 2025, fine-tuned (1) and zero-shot (2), each from the source that is named",
}
"""Titles of the papers by short name."""

TODAY = "today"
"""Short name of the rows that come from several sources, in place of a paper."""

FEATURES: Mapping[tuple[str, str], str] = {
    ("cmal2r", "wikipedia"): "4,096-d fc7 of a CNN and 100-d word2vec, 2,000 training and 866 test pairs",
    ("cmal2r", "pascal_voc2007"): "512-d GIST and 399-d word frequencies, 5,000 training and 4,919 test pairs",
}
"""Fixed features that the rows of a (paper, dataset) are made from, where a paper trains on such."""

CORRELATION = "pearson"
"""Protocol of the printed correlations with human ratings. They are no rankings, so no result has this protocol."""

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
    "pearson_r": "Pearson",
}
"""Names of measures by metric in the file."""

_FRACTIONS = ("coherent_score", "pearson_r")
"""Metrics that are printed and shown as fractions; others printed as fractions are shares, shown as percent."""

_OF_ONE_CAPTION = ("one-caption-per-image", "coco-1k-one-caption")
"""Protocols of the coherent scores, whose degrees are those of an image's caption with other captions: R(t_q, t_p)."""

_REFERENCES = {
    "max": "the closest caption of an image (max)",
    "mean": "all captions of an image (mean)",
    "paired": "the one caption that comes with an image (paired)",
    "": "captions that they do not name",
}
"""Words for the captions of an image with which degrees compare a caption."""

_MEDIAN_TABLES, _MEDIAN_METHODS = ("Table III", "Table IV"), ("ConVSE", "ConVSE++")
"""Tables of ConVSE's paper that print the median run of five, and the methods of which they do so."""

_CAPTIONS_AN_IMAGE = {**dict.fromkeys(_OF_ONE_CAPTION, 1), "labels": 1}
"""Captions per image of the published test sets by protocol; 5 under any other."""

_DATASET_OF_PROTOCOL = {
    **dict.fromkeys(("coco-5k", "coco-1k-5fold", "coco-1k", "coco-1k-one-caption"), "coco"),
    "flickr30k-1k": "flickr30k",
}

_NO_SETTING = (
    "as_printed", "why=", "5-fold", "1-fold", "full_5K", "test_images", "backbone_by", "average", "stat=", "printed=",
)  # fmt: skip
"""Parts of a setting that mark a number or repeat protocol and columns, and do not describe how a row was made."""


@dataclass(frozen=True)
class PublishedRow:
    """One row of a paper's table under one protocol; a printed line of several protocols makes several rows.

    Attributes:
        paper: Short name of the paper.
        table: Number of the table, such as ``"Table 1"``.
        method: Method with backbone, fine-tuning, training set and setting, as far as the paper says them.
        dataset: Name of the dataset, such as ``"coco"``.
        test_images: Number of images in the gallery; 0 without a gallery.
        protocol: Protocol of rungwise under which the row was made.
        numbers: Values by canonical name, on the scale of our results (rates 0..100, correlations -1..1).
        facts: What the paper says of the row, by name: ``row``, ``method``, ``backbone``, ``finetuned`` (yes or no),
            ``train_set``, and settings such as ``tau`` or ``L``.
        relevance: Source of the degrees of graded measures; empty where the paper has only one.
        reference: Captions of an image with which these degrees compare a caption, as in
            :class:`rungwise.evaluation.Result`; empty for other rows.
        of_median_run: Whether the row is the run of five whose rsum is the median (ConVSE, section IV-B).
        deviations: Standard deviations by canonical name, where the row is the mean of several runs.
        doubts: Statements of what a printed number contradicts, by canonical name.
        source: Paper, table or address of a row of :data:`TODAY`; empty for a row of a paper, which is its own source.
        looked_up: How the source was read, or that it was not.
        date: Day on which it was read, such as ``"2026-11-29"``; empty where it was not.
    """

    paper: str
    table: str
    method: str
    dataset: str
    test_images: int
    protocol: str
    numbers: Mapping[str, float]
    facts: Mapping[str, str] = field(default_factory=dict)
    relevance: str = ""
    reference: str = ""
    of_median_run: bool = False
    deviations: Mapping[str, float] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    looked_up: str = ""
    date: str = ""

    __repr__ = short_repr

    @property
    def origin(self) -> str:
        """The source with how and when it was read, in one line; empty for a row of a paper."""
        return f"{self.source}: {self.looked_up}{self.date and ', '}{self.date}" if self.source else ""

    @property
    def features(self) -> str:
        """Fixed features that the row was made from; empty where pictures were read."""
        return FEATURES.get((self.paper, self.dataset), "")


@cache
def published(paper: str) -> tuple[PublishedRow, ...]:
    """All rows of a paper that are measures of rankings; UserError for an unknown paper.

    >>> row = published("ladder_loss")[2]
    >>> row.method, row.protocol, row.numbers["i2t/CS@100"]
    ('VSE++, VGG19, re-implemented', 'coco-1k-one-caption', 0.235)
    """
    return tuple(row for row in printed(paper) if row.protocol != CORRELATION)


@cache
def printed(paper: str) -> tuple[PublishedRow, ...]:
    """All rows of a paper, including correlations with human ratings; UserError for an unknown paper.

    >>> row = next(row for row in printed("convse") if row.deviations)
    >>> row.method, row.dataset, row.numbers["rsum"], row.deviations["rsum"]
    ('ConVSE, ResNet152, mean of 5 runs', 'coco', 474.4, 0.68)
    """
    if paper not in PAPERS:
        raise UserError(f"paper {paper!r} is not known; there are {', '.join(PAPERS)}")
    rows: dict[tuple[str, str, str, int, str, str], _Gathered] = {}
    text = resources.files("rungwise.evaluation").joinpath("published.csv").read_text(encoding="utf-8")
    for cells in csv.DictReader(text.splitlines()):
        if cells["paper"] != paper:
            continue
        facts, relevance = _facts(cells)
        images = int(cells["test_images"] or 0)
        key = (cells["table"], _method(cells), cells["dataset"], images, _protocol(cells), relevance)
        row = rows.setdefault(key, _Gathered(facts, cells["source"], cells["looked_up"], cells["date"]))
        value = float(cells["value"])
        if cells["unit"] == "fraction" and cells["metric"] not in _FRACTIONS:
            value *= 100
        name = _name(cells)
        if "stat=std" in cells["setting"]:
            row.deviations[name] = value
            continue
        row.numbers[name] = value
        if "as_printed_suspect" in cells["setting"]:
            row.doubts[name] = cells["setting"].partition("why=")[2].partition(";")[0].replace("_", " ")
    return tuple(
        PublishedRow(
            paper,
            table,
            method,
            dataset,
            images,
            protocol,
            row.numbers,
            facts=row.facts,
            relevance=relevance,
            reference="paired" if protocol in _OF_ONE_CAPTION else "",
            of_median_run=paper == "convse" and table in _MEDIAN_TABLES and row.facts["method"] in _MEDIAN_METHODS,
            deviations=row.deviations,
            doubts=row.doubts,
            source=row.source,
            looked_up=row.looked_up,
            date=row.date,
        )
        for (table, method, dataset, images, protocol, relevance), row in rows.items()
    )


def published_beside(result: Result, paper: str, *, dataset: str | None = None, split: str = "") -> list[PublishedRow]:
    """The rows of a paper that may stand beside a result: same test set, gallery size, folds and captions.

    Args:
        result: Our result.
        paper: Short name of the paper.
        dataset: Name such as ``"coco"``, where the result's protocol does not imply it.
        split: Split of the evaluated data, where it is known; published rows are of test splits.

    Raises:
        UserError: If the paper has no row of this protocol; the message says what differs.

    >>> import numpy as np
    >>> from rungwise.evaluation._evaluate import evaluate
    >>> ours = evaluate(similarity=np.eye(3), image_of_caption=[0, 1, 2], protocol="one-caption-per-image")
    >>> published_beside(ours, "ladder_loss", dataset="coco")
    Traceback (most recent call last):
    rungwise.core.UserError: ladder_loss: its coco rows are of 1000 or 5000 images, this result is of 3; ...
    """
    return of_same_protocol(result, published(paper), paper, dataset=dataset, split=split)


def of_same_protocol(
    result: Result, rows: Iterable[PublishedRow], paper: str, *, dataset: str | None = None, split: str = ""
) -> list[PublishedRow]:
    """Those of some rows of a paper that may stand beside a result, with arguments of :func:`published_beside`.

    Raises:
        UserError: If none may; the message says what differs.
    """
    rows = tuple(rows)
    if result.judgements is not None:
        raise UserError(
            f"{paper}: printed rows count the annotation alone, and this result also counts what people called right;"
            " evaluate without judgements"
        )
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
    differing = [_degrees_differ(result, row) for row in found]
    if all(differing):
        raise UserError(f"{paper}: {'; '.join(dict.fromkeys(differing))}")
    found = [row for row, differs in zip(found, differing, strict=True) if not differs]
    captions, images = (sum(result.gallery[way]) for way in DIRECTIONS)
    per_image = _CAPTIONS_AN_IMAGE.get(result.protocol, 5)
    if not captions_fit(captions, images, per_image):
        raise UserError(
            f"{paper}: its {wanted} rows are of {per_image} captions an image, this result is of {captions:,} captions"
            f" for {images:,} images; evaluate all captions of the test set and no others"
        )
    return found


def _degrees_differ(result: Result, row: PublishedRow) -> str:
    """Why a result's degrees are not those of a row, in one clause; empty where they are, or where the row has none.

    A row that names its source is compared by source, one that names its reference by reference.
    """
    if row.relevance and row.relevance.lower() not in result.relevance.lower():
        return f"its degrees are {result.relevance or 'none'}, theirs {row.relevance}"
    if row.reference and result.relevance and row.reference != result.reference:
        return (
            f"its degrees compare captions with {_REFERENCES[result.reference]}, theirs with"
            f" {_REFERENCES[row.reference]}; make degrees with --reference {row.reference}, such as rungwise relevance"
            f" bi-encoder DATA --reference {row.reference}"
        )
    return ""


class _Gathered:
    def __init__(self, facts: Mapping[str, str], source: str, looked_up: str, date: str) -> None:
        self.facts = facts
        self.source, self.looked_up, self.date = source, looked_up, date
        self.numbers: dict[str, float] = {}
        self.deviations: dict[str, float] = {}
        self.doubts: dict[str, str] = {}


def _name(cells: Mapping[str, str]) -> str:
    measure = _METRICS[cells["metric"]].format(k=cells["k"])
    if cells["metric"] == "pearson_r":
        return f"{measure}({cells['setting'].removeprefix('pairs=')})"
    return measure if cells["direction"] == "both" else f"{cells['direction']}/{measure}"


def _protocol(cells: Mapping[str, str]) -> str:
    """Protocol under which a row was made, according to its paper and its authors' program."""
    if cells["metric"] == "pearson_r":
        return CORRELATION
    if cells["metric"] == "map":
        return "labels"
    # The program of the ladder paper keeps every image's first caption for CS. Its ranks are of all five: the mean rank
    # that it prints for random scores, 929.9 from images to captions and 501.0 back, fits no gallery of 1000 captions.
    if cells["metric"] == "coherent_score":
        first_thousand = cells["dataset"] == "coco" and cells["test_images"] == "1000"
        return "coco-1k-one-caption" if first_thousand else "one-caption-per-image"
    if cells["dataset"] == "flickr30k":
        return "flickr30k-1k"
    if cells["test_images"] == "5000":
        return "coco-5k"
    # The first 1,000 images of COCO, one gallery, unless the paper says that it is the mean of five.
    return "coco-1k-5fold" if "5-fold" in cells["setting"] else "coco-1k"


def _settings(cells: Mapping[str, str]) -> list[str]:
    """Parts of the setting that distinguish a row from others."""
    if cells["metric"] == "pearson_r":  # its setting says of which pairs, and is in the number's name
        return []
    return [part for part in cells["setting"].split(";") if part and not part.startswith((*_NO_SETTING, "phi="))]


def _facts(cells: Mapping[str, str]) -> tuple[dict[str, str], str]:
    facts = {name: cells[name] for name in ("row", "method", "backbone", "finetuned", "train_set")}
    for part in _settings(cells):
        name, equals, value = part.partition("=")
        facts[name] = value if equals else "yes"
    if "stat=" in cells["setting"]:
        facts["stat"] = "mean"
    relevance = next((part[4:] for part in cells["setting"].split(";") if part.startswith("phi=")), "")
    return facts, relevance


def _method(cells: Mapping[str, str]) -> str:
    """Description that distinguishes a row from others; marks of single values (suspect, inferred) are left out."""
    tuned = {"yes": "fine-tuned", "no": "", "": ""}[cells["finetuned"]]
    trained = f"trained on {cells['train_set']}" if cells["train_set"] not in ("", "?") else ""
    mean = "mean of 5 runs" if "stat=" in cells["setting"] else ""
    setting = (part.replace("_", " ") for part in _settings(cells))
    return ", ".join(part for part in (cells["method"], cells["backbone"], tuned, trained, *setting, mean) if part)
