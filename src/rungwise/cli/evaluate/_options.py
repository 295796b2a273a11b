"""Options of ``rungwise evaluate``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from rungwise.cli.frame import ADVANCED, AlteredModel, Cache, Device, JoinRestval, LeastCosine, MemberKey, PrecisionName
from rungwise.core.disk.folders import WRITTEN_FILE, WRITTEN_FOLDER


@dataclass
class Evaluate:
    """How well a model ranks the captions of pictures and the pictures of captions.

    Give MODEL DATA, or DATA and files of scores, or files of scores alone.

    FILE:KEY names one array of several.

    Attributes:
        model: Folder or name of a model. It may be a run, which keeps the result, a hub repository, or a published
            model (hf:, open_clip: or st:, and a folder or a name), or the mean of several (average: and their folders,
            with commas between them); left out where scores come as files.
        data: Folder or caption file. It gives ids, captions, and which caption belongs to which picture.
        old_data: The old spelling of DATA.
        image_embeddings: One vector a picture: npy, npz, safetensors or Parquet (with ids in a column "id").
        text_embeddings: One vector a caption.
        similarity: Scores of every picture (rows) with every caption (columns): npy, npz, or JSON rows.
        ranked_lists: A TREC run, or JSON {query: [candidates]}; one file, or one for each direction.
        captions_per_image: Without data: every picture has so many captions, one picture's after another's.
        image_of_caption: Without data: file with the picture's position of every caption.
        split: The pictures to rank; "all" takes every one.
        captions_only: Do not look for picture files in the data.
        protocol: Gallery and right answers. One of full, coco-5k, coco-1k-5fold, coco-1k, coco-1k-one-caption,
            flickr30k-1k, flickr8k-1k, one-caption-per-image, cxc, eccv, labels.
        positives: What people judged: files that "rungwise grade" wrote, or the grades of an index. What they called
            right counts as right beside the annotation, and the numbers without it are printed beside. For cxc and
            eccv: the two JSON files, image-to-caption first.
        measures: Such as R@1, rsum, Recall@5, MedR, MAP, MAP@50, P@10, AP11. Graded ones (CS@100, nDCG@10,
            NCS@10) need degrees, and so do those of where relevance ends: "CutF1(0.5)", "NoneAUROC(0.5)", ECE. Default:
            the protocol's.
        calibration: What says where relevance ends, a file that "rungwise calibrate" wrote, or the folder that holds
            it. Default: the model's own, else one that learnt nothing.
        relevance: Degrees that "rungwise relevance" wrote. Its folder, or npy or npz; scenes have theirs.
        out: Write the result as JSON here, with one value a query.
        format: What to print: table, markdown, latex, csv or json.
        intervals: Print 95 % bootstrap intervals over pictures, too. The report has them in any case.
        rerank: Order the best candidates anew with this model, a saved one or a run.
        top: How many of them; default 50.
        by_class: Under the protocol labels, print every number class by class, too. The report has it in any case.
        report: Write an HTML page with tables, plots and queries here.
        thresholds: Falling degrees that cut the report's rungs.
        beside: Another model of the same data for the report: a model, a similarity file, or two files of embeddings.
        names: Of this model and the other in the report.
        card: Write the numbers with their intervals into the card of the model, a folder of this machine.
        false_negatives: Write candidates that are called wrong and are relevant as CSV here.
        right_from: With judgements, the mean grade from which a pair is right; default 3 of 1 to 4. Else the degree
            from which a candidate is right; default the query's least relevant annotated one.
        paper: Set published rows beside: vsepp, ladder_loss, sam, convse, cmal2r.
        dataset: Which of the paper's test sets this is, where the protocol does not say it.
        shards: Measure the queries of each direction in so many parts, one after another or with --ray at a time.
            Embeddings and similarities in npy files then stay in their files, which may be larger than memory.
        ray: Measure the parts in processes of Ray: on this machine, or with HOST:PORT on those of a cluster, which see
            the same files.
        precision: Of picture features that are not at hand, and of comparing regions with words; auto takes bfloat16
            where it is faster and close enough.
    """

    model: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="[MODEL]")] = None
    data: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[DATA]")] = None
    old_data: Annotated[Path | None, tyro.conf.arg(name="data")] = field(default=None, metadata=ADVANCED)
    image_embeddings: str | None = field(default=None, metadata=ADVANCED)
    text_embeddings: str | None = field(default=None, metadata=ADVANCED)
    similarity: str | None = field(default=None, metadata=ADVANCED)
    ranked_lists: tuple[Path, ...] = field(default=(), metadata=ADVANCED)
    captions_per_image: int | None = field(default=None, metadata=ADVANCED)
    image_of_caption: Path | None = field(default=None, metadata=ADVANCED)
    split: str = "test"
    captions_only: bool = field(default=False, metadata=ADVANCED)
    key: MemberKey = field(default="dot", metadata=ADVANCED)
    join_restval: JoinRestval = field(default=False, metadata=ADVANCED)
    protocol: str = "full"
    positives: tuple[Path, ...] = field(default=(), metadata=ADVANCED)
    measures: tuple[str, ...] = ()
    calibration: Path | None = None
    relevance: str | None = None
    out: Path | None = field(default=None, metadata=WRITTEN_FILE)
    format: Annotated[Literal["table", "markdown", "latex", "csv", "json"], tyro.conf.arg(metavar="FORMAT")] = "table"
    intervals: bool = False
    rerank: Annotated[str | None, tyro.conf.arg(metavar="MODEL")] = None
    top: int | None = None
    by_class: bool = field(default=False, metadata=ADVANCED)
    report: Path | None = field(default=None, metadata=WRITTEN_FILE)
    thresholds: tuple[float, ...] = field(default=(), metadata=ADVANCED)
    beside: tuple[str, ...] = field(default=(), metadata=ADVANCED)
    names: tuple[str, str] = field(default=("this model", "the other model"), metadata=ADVANCED)
    card: bool = field(default=False, metadata=ADVANCED)
    false_negatives: Path | None = field(default=None, metadata=ADVANCED | WRITTEN_FILE)
    right_from: float | None = field(default=None, metadata=ADVANCED)
    paper: tuple[str, ...] = field(default=(), metadata=ADVANCED)
    dataset: str | None = field(default=None, metadata=ADVANCED)
    shards: int | None = field(default=None, metadata=ADVANCED)
    ray: Annotated[str | None, tyro.conf.arg(metavar="[ADDRESS]")] = field(default=None, metadata=ADVANCED)
    device: Device = field(default=None, metadata=ADVANCED)
    precision: PrecisionName = field(default="float32", metadata=ADVANCED)
    least_cosine: LeastCosine = field(default=0.999, metadata=ADVANCED)
    altered_model: AlteredModel = field(default=False, metadata=ADVANCED)
    cache: Cache = field(default=None, metadata=ADVANCED | WRITTEN_FOLDER)

    @property
    def has_files(self) -> bool:
        """Scores come as files rather than from a model."""
        return any((self.image_embeddings, self.text_embeddings, self.similarity, self.ranked_lists))
