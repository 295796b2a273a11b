"""What an evaluation takes beside scores and degrees: names for its result, and settings that few need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions, dataset_of
from rungwise.evaluation._sharding import Shards
from rungwise.evaluation.judgements import HumanPositives, RightAnswers
from rungwise.metrics import Ends


@dataclass(frozen=True)
class Provenance:
    """Where data, model and degrees of an evaluation come from, as its result names them.

    Attributes:
        data_name: Name of the data.
        data_hash: Hash of the data.
        dataset: Name of the published dataset, such as ``"coco"``.
        split: Split of the data.
        model_hash: Hash of the model. Degrees that came from this model are refused.
        seed: The model's training seed.
        relevance_name: Name of the degrees. Default: what their source says of itself.
        image_ids: (images,) ids of the images, for the result's lists of queries. Default: their positions.
        caption_ids: (captions,) ids of the captions. Default: their positions.

    >>> from rungwise.evaluation import evaluate
    >>> known = Provenance(data_name="two pictures", seed=3, image_ids=["a", "b"])
    >>> result = evaluate(similarity=[[0.9, 0.1], [0.2, 0.3]], image_of_caption=[0, 1], provenance=known)
    >>> result.data_name, result.seed, result.query_ids("i2t")
    ('two pictures', 3, ('a', 'b'))
    """

    data_name: str = ""
    data_hash: str = ""
    dataset: str = ""
    split: str = ""
    model_hash: str = ""
    seed: int | None = None
    relevance_name: str = ""
    image_ids: Sequence[str] | None = None
    caption_ids: Sequence[str] | None = None

    __repr__ = short_repr

    @classmethod
    def of(
        cls,
        data: ImageCaptions,
        *,
        split: str = "",
        model_hash: str = "",
        seed: int | None = None,
        relevance_name: str = "",
    ) -> Provenance:
        """Provenance of an evaluation on a collection, with the collection's name, hash, dataset and ids."""
        return cls(
            data_name=data.name,
            data_hash=data.content_hash(),
            dataset=dataset_of(data),
            split=split,
            model_hash=model_hash,
            seed=seed,
            relevance_name=relevance_name,
            image_ids=data.image_ids,
            caption_ids=data.caption_ids,
        )


@dataclass(frozen=True)
class EvaluationSettings:
    """What counts as right beside the annotation, where relevance ends, and how the work is divided.

    Attributes:
        positives: Right candidates per direction, for the protocols ``cxc``, ``eccv`` and ``labels``; made by
            :func:`~rungwise.evaluation.positives_from_json` and :func:`~rungwise.evaluation.positives_from_labels`.
        human_positives: Pairs that people called right, which count beside what the protocol calls right.
        ends: Method that says where relevance ends, for measures such as ``CutF1(0.5)``: a
            :class:`~rungwise.calibration.Calibration`, a baseline such as
            :class:`~rungwise.calibration.FlatThreshold`, or any object with their ``judge``. Default:
            ``Calibration.unsupervised()``.
        chunk: Number of queries measured at a time; no number depends on it.
        shards: Shards in which the queries are measured, here or by workers of Ray; no number depends on them. Scores
            must be embeddings or a matrix. Those mapped from a ``.npy`` file stay there, and may be larger than memory.

    Raises:
        UserError: If ``chunk`` is not positive.

    >>> from rungwise.evaluation import evaluate, positives_from_labels
    >>> settings = EvaluationSettings(positives=positives_from_labels(["art", "art"], [0, 1]))
    >>> result = evaluate(similarity=[[0, 1], [1, 0]], image_of_caption=[0, 1], protocol="labels", settings=settings)
    >>> result["i2t/MAP"]
    100.0
    """

    positives: RightAnswers | None = None
    human_positives: HumanPositives | None = None
    ends: Ends | None = None
    chunk: int | None = None
    shards: Shards | None = None

    def __post_init__(self) -> None:
        if self.chunk is not None and self.chunk < 1:
            raise UserError(f"chunk must be at least 1, got {self.chunk}")
