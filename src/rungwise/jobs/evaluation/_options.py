"""Options of evaluation."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from rungwise.core import is_regular, user_path
from rungwise.core.disk.folders import WRITTEN_FILE, WRITTEN_FOLDER
from rungwise.core.output import short_repr
from rungwise.core.text import idle_where, idle_without
from rungwise.jobs._job import PYTHON, JobOptions, OnlyPython
from rungwise.jobs._options import (
    ADVANCED,
    AlteredModel,
    AnyPath,
    Cache,
    DataOrNone,
    Device,
    Given,
    JoinRestval,
    Layout,
    LeastCosine,
    MemberKey,
    ModelOrNone,
    PathOrNone,
    Paths,
    PrecisionName,
    Reals,
    Several,
    Texts,
    given,
)
from rungwise.jobs._python_values import Form, refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from numpy.typing import ArrayLike

    from rungwise.evaluation import EvaluationSettings, HumanPositives, Protocol, Provenance, RankedLists, Result
    from rungwise.evaluation.judgements import RightAnswers
    from rungwise.metrics import Ends, Measure, SimilaritySource, Total
    from rungwise.models import PairScorer
    from rungwise.relevance import Degrees
    from rungwise.similarity import Similarity

    JudgedOrNone = Given[PairScorer | Result | AnyPath | None, PairScorer | Result | str | None]
    VectorsOrNone = Given[ArrayLike | AnyPath | None, Any]
    ScoresOrNone = Given[ArrayLike | SimilaritySource | RankedLists | Callable[[Any, Any], Any] | AnyPath | None, Any]
    OwnersOrNone = Given[ArrayLike | AnyPath | None, Any]
    RelevanceOrNone = Given[ArrayLike | Degrees | AnyPath | None, Any]
    Positives = Given[
        Several[AnyPath] | HumanPositives | RightAnswers, tuple[Path, ...] | HumanPositives | RightAnswers
    ]
    Measures = Given[Several[str | Measure | Total], tuple[str | Measure | Total, ...]]
    Gallery = str | Protocol
    EndsOrNone = Given[Ends | AnyPath | None, Ends | Path | None]
    Settings = OnlyPython[EvaluationSettings | None]
    Named = OnlyPython[Provenance | None]
    Function = OnlyPython[Similarity | Callable[[Any, Any], Any] | None]
else:  # what a command line can give
    JudgedOrNone = VectorsOrNone = ScoresOrNone = RelevanceOrNone = str | None
    OwnersOrNone = EndsOrNone = Path | None
    Gallery = str
    Positives, Measures = tuple[Path, ...], Annotated[tuple[str, ...], Form.LIST_OF_ANY]
    Settings = Named = Function = OnlyPython[object]


_NO_DATA, _NO_MODEL, _BOTH = "without DATA", "without a model", "give both, or leave {} out"
_VALUES = {"settings": "EvaluationSettings", "provenance": "Provenance"}
_OF_MEASURING = (
    "data image_embeddings text_embeddings similarity ranked_lists captions_per_image image_of_caption split"
    " captions_only layout key join_restval protocol positives calibration relevance rerank top by_class report"
    " thresholds beside card false_negatives right_from shards ray device precision least_cosine altered_model cache"
    " similarity_function provenance settings write_run depth write_qrels levels write_degrees missing_queries"
)
"""Options of what is measured, and how."""
IDLE_CASES = (
    idle_where(
        _OF_MEASURING,
        lambda asked: asked.has_result,
        "for a result, which is kept as it was measured",
        "leave it out, or evaluate the model anew",
    ),
    idle_without("top", "rerank", remedy="leave it out, or name a second model"),
    idle_where(
        "rerank", lambda asked: not asked.has_data, f"{_NO_DATA}, whose pictures and captions the model reads", _BOTH
    ),
    idle_where("by_class", lambda asked: asked.protocol != "labels", "without {protocol} labels", _BOTH),
    idle_where(
        "calibration",
        lambda asked: not asked.reads_ends,
        'without a measure of where relevance ends, such as {measures} "CutF1(0.5)"',
        _BOTH,
    ),
    idle_where(
        "relevance",
        lambda asked: not asked.reads_degrees,
        "without a measure that reads degrees, such as {measures} nDCG@10, and without {report}, {false_negatives},"
        " {write_degrees} or {levels}",
        "leave it out, or ask for one of them",
    ),
    idle_without("depth", "write_run"),
    idle_without("levels", "write_qrels"),
    idle_without("missing_queries", "ranked_lists"),
    idle_without("beside thresholds", "report"),
    idle_where(
        "right_from",
        lambda asked: asked.false_negatives is None and asked.report is None and not asked.judgements,
        "without {false_negatives} or {report}, or {positives} with judgements",
        _BOTH,
    ),
    idle_without("dataset", "paper"),
    idle_where(
        "split captions_only layout key join_restval",
        lambda asked: not asked.has_data,
        _NO_DATA,
        _BOTH,
    ),
    idle_where("card", lambda asked: not asked.has_model, _NO_MODEL, _BOTH),
    idle_where(
        "device altered_model precision least_cosine cache", lambda asked: not asked.runs_a_model, _NO_MODEL, _BOTH
    ),
    idle_where(
        "altered_model precision least_cosine cache",
        lambda asked: asked.runs_mteb_alone,
        "for a model of mteb, which encodes in its own way",
    ),
    idle_where("least_cosine", lambda asked: asked.precision != "auto", "without {precision} auto", _BOTH),
    idle_without("similarity_function", "image_embeddings"),
)
"""What makes options of an evaluation change nothing; the first case that is there is said."""


@dataclass
class Evaluate(JobOptions):
    """How well a model ranks the captions of pictures and the pictures of captions.

    Give MODEL DATA, or DATA and files of scores, or files of scores alone.

    FILE:KEY names one array of several.

    Attributes:
        model: Folder or name of a model. It may be a run, which keeps the result, a hub repository, or a published
            model (hf:, open_clip: or st:, and a folder or a name; mteb: and a name that mteb knows, from this machine),
            or the mean of several (average: and their folders, with commas between them); left out where scores come
            as files.
        data: Folder or caption file. It gives ids, captions, and which caption belongs to which picture.
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
            NCS@10, MeanDegree@10) need degrees, and so do those of where relevance ends: "CutF1(0.5)",
            "NoneAUROC(0.5)", ECE. Default: the protocol's.
        calibration: What says where relevance ends, a file that "rungwise calibrate" wrote, or the folder that holds
            it. Default: the model's own, else one that learnt nothing.
        relevance: Degrees that "rungwise relevance" wrote. Its folder, or npy or npz, or lines of ids and degrees:
            qrels, or a table of image, caption and degree. Scenes have theirs.
        out: Write the result as JSON here, with one value a query.
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
        write_run: Write the rankings as TREC runs here, a file for each direction: run.trec makes run.i2t.trec and
            run.t2i.trec.
        depth: Largest number of candidates of a query in a run; default 1000, as many as trec_eval reads.
        write_qrels: Write what is right as TREC qrels here, a file for each direction.
        levels: Write degrees into the qrels instead, as whole numbers from 1 to this one. Each is the nearest to this
            number x degree / the largest degree.
        write_degrees: Write the degrees of all pairs as a table of ids here, with every digit; relevance reads it.
        missing_queries: What becomes of queries that ranked lists lack: refuse, or zero, which counts them 0 as
            trec_eval -c does.
        paper: Set published rows beside: vsepp, ladder_loss, sam, convse, cmal2r, or today for rows of present systems.
        dataset: Which of the paper's test sets this is, where the protocol does not say it.
        shards: Measure the queries of each direction in so many parts, one after another or with --ray at a time.
            Embeddings and similarities in npy files then stay in their files, which may be larger than memory.
        ray: Measure the parts in processes of Ray: on this machine, or with HOST:PORT on those of a cluster, which see
            the same files.
        precision: Of picture features that are not at hand, and of comparing regions with words; auto takes bfloat16
            where it is faster and close enough.
        similarity_function: Function of two blocks of embeddings, (a, D) and (b, D), that returns (a, b), or a
            :class:`~rungwise.similarity.Similarity`. Default: their inner product.
        provenance: Names and hashes of data and model for the result. It wins over what is known without it.
        settings: The same options as a value. An option that is given by its own name wins over the one in it.
    """

    model: Annotated[tyro.conf.Positional[JudgedOrNone], tyro.conf.arg(metavar="[MODEL]")] = given(None)
    data: Annotated[tyro.conf.Positional[DataOrNone], tyro.conf.arg(metavar="[DATA]")] = given(None)
    image_embeddings: VectorsOrNone = given(None, ADVANCED)
    text_embeddings: VectorsOrNone = given(None, ADVANCED)
    similarity: ScoresOrNone = given(None, ADVANCED)
    ranked_lists: Paths = given((), ADVANCED)
    captions_per_image: int | None = field(default=None, metadata=ADVANCED)
    image_of_caption: OwnersOrNone = given(None, ADVANCED)
    split: str = "test"
    captions_only: bool = field(default=False, metadata=ADVANCED)
    layout: Layout = field(default=None, metadata=ADVANCED)
    key: MemberKey = field(default="dot", metadata=ADVANCED)
    join_restval: JoinRestval = field(default=False, metadata=ADVANCED)
    protocol: Gallery = given("full")
    positives: Positives = given((), ADVANCED)
    measures: Measures = given(())
    calibration: EndsOrNone = given(None)
    relevance: RelevanceOrNone = given(None)
    out: PathOrNone = given(None, WRITTEN_FILE)
    rerank: Annotated[ModelOrNone, tyro.conf.arg(metavar="MODEL")] = given(None)
    top: int | None = None
    by_class: bool = field(default=False, metadata=ADVANCED)
    report: PathOrNone = given(None, WRITTEN_FILE)
    thresholds: Reals = given((), ADVANCED)
    beside: Texts = given((), ADVANCED)
    names: tuple[str, str] = field(default=("this model", "the other model"), metadata=ADVANCED)
    card: bool = field(default=False, metadata=ADVANCED)
    false_negatives: PathOrNone = given(None, ADVANCED | WRITTEN_FILE)
    right_from: float | None = field(default=None, metadata=ADVANCED)
    write_run: PathOrNone = given(None, ADVANCED | WRITTEN_FILE)
    depth: int | None = field(default=None, metadata=ADVANCED)
    write_qrels: PathOrNone = given(None, ADVANCED | WRITTEN_FILE)
    levels: int | None = field(default=None, metadata=ADVANCED)
    write_degrees: PathOrNone = given(None, ADVANCED | WRITTEN_FILE)
    missing_queries: Annotated[Literal["refuse", "zero"], tyro.conf.arg(metavar="WORD")] = field(
        default="refuse", metadata=ADVANCED
    )
    paper: Texts = given((), ADVANCED)
    dataset: str | None = field(default=None, metadata=ADVANCED)
    shards: int | None = field(default=None, metadata=ADVANCED)
    ray: Annotated[str | None, tyro.conf.arg(metavar="[ADDRESS]")] = field(default=None, metadata=ADVANCED)
    device: Device = field(default=None, metadata=ADVANCED)
    precision: PrecisionName = field(default="float32", metadata=ADVANCED)
    least_cosine: LeastCosine = field(default=0.999, metadata=ADVANCED)
    altered_model: AlteredModel = field(default=False, metadata=ADVANCED)
    cache: Cache = field(default=None, metadata=ADVANCED | WRITTEN_FOLDER)
    similarity_function: Function = field(default=None, metadata=PYTHON)
    provenance: Named = field(default=None, metadata=PYTHON)
    settings: Settings = field(default=None, metadata=PYTHON)

    IDLE = (*IDLE_CASES, idle_without("names paper", "report"))  # a command prints published rows and names, too

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Take the numbers of data frames, but where ids matter, and refuse what is none of a parameter's types."""
        super().__post_init__()
        for name in ("image_embeddings", "text_embeddings", "similarity", "image_of_caption", "relevance"):
            value = getattr(self, name)
            has_ids = hasattr(value, "iloc") and name in ("image_embeddings", "text_embeddings", "similarity")
            if hasattr(value, "to_numpy") and not has_ids:
                setattr(self, name, value.to_numpy())
        for name in ("model", "rerank"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str) and not hasattr(value, "fingerprint"):
                from rungwise.evaluation import Result

                if not isinstance(value, Result):
                    raise refused(name, value, "a model, or its folder or name")
        for name, part in (("settings", "human_positives"), ("provenance", "model_hash")):
            if (value := getattr(self, name)) is not None and not hasattr(value, part):
                raise refused(name, value, f"a value of rungwise.evaluation.{_VALUES[name]}")

    @property
    def has_scores(self) -> bool:
        """Scores are given rather than a model that makes them."""
        arrays = (self.image_embeddings, self.text_embeddings, self.similarity)
        return any(one is not None for one in arrays) or bool(self.ranked_lists)

    @property
    def has_data(self) -> bool:
        """Data are given: by name, or in the place of MODEL where scores are given."""
        return self.data is not None or (self.has_scores and self.model is not None)

    @property
    def has_model(self) -> bool:
        """A model is given that makes the scores."""
        return self.model is not None and not (self.has_scores and self.data is None)

    @property
    def has_result(self) -> bool:
        """A result stands in the place of MODEL: itself, or the JSON file that holds it."""
        if not isinstance(self.model, str):
            return self.model is not None and not hasattr(self.model, "fingerprint")
        return self.has_model and Path(self.model).suffix.lower() == ".json" and is_regular(Path(self.model))

    @property
    def runs_a_model(self) -> bool:
        """A model is run: the one that is measured, one that reranks, or one beside it in the report."""
        return self.has_model or self.rerank is not None or len(self.beside) == 1

    @property
    def runs_mteb_alone(self) -> bool:
        """The models that are run are all of mteb."""
        named = (self.model if self.has_model else None, self.rerank, *(self.beside if len(self.beside) == 1 else ()))
        models = [one for one in named if one is not None]
        return bool(models) and all(isinstance(one, str) and one.startswith("mteb:") for one in models)

    @property
    def reads_ends(self) -> bool:
        """A measure reads where relevance ends."""
        return any(one.reads_ends for one in self._parsed_measures())

    @property
    def reads_degrees(self) -> bool:
        """A measure, or a file that is written, reads degrees of relevance."""
        files = (self.report, self.false_negatives, self.write_degrees, self.levels)
        return any(one is not None for one in files) or any(
            one.graded or one.reads_ends for one in self._parsed_measures()
        )

    @property
    def judgements(self) -> tuple[Path, ...]:
        """The files of ``positives`` that hold people's judgements; the reader reports what is no file."""
        from rungwise.relevance.human import is_of_people

        files = self.positives if isinstance(self.positives, tuple) else ()
        return tuple(path for path in map(user_path, files) if is_regular(path) and is_of_people(path))

    def _parsed_measures(self) -> tuple[Measure | Total, ...]:
        from rungwise.evaluation import protocol_named
        from rungwise.metrics import parse_all

        return parse_all(self.measures or protocol_named(self.protocol).measures)
