"""sentence-transformers: losses by degrees for its trainers, and an evaluator with the measures of rungwise.

A row of a dataset finds its degrees by positions: those of its picture and of its captions in a collection. They stand
in the column ``label``, the one channel that the library's trainers have besides texts and pictures. The functions
:func:`pairs_of` and :func:`with_positions` write it, so that nobody writes numbers by hand.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from rungwise.core import UserError, read_text, require
from rungwise.core.disk import appending, make_folder
from rungwise.core.output import one_line
from rungwise.data import ImageCaptions
from rungwise.data.pictures import load_picture
from rungwise.evaluation import (
    EvaluationSettings,
    GivenPositives,
    Protocol,
    Provenance,
    Result,
    evaluate,
    protocol_named,
)
from rungwise.losses import Loss, LossValue
from rungwise.metrics import DIRECTIONS, Direction, Measure, Positives, Total, parse, parse_all
from rungwise.relevance import Degrees, as_degrees
from rungwise.similarity import cosine
from rungwise.training.distributed import GlobalNegatives

require("sentence_transformers", __name__, extra="sentence-transformers")

from sentence_transformers import CrossEncoder, SentenceTransformer  # noqa: E402
from sentence_transformers.base.evaluation import BaseEvaluator  # noqa: E402
from sentence_transformers.base.losses.gradcache import CachedLossMixin  # noqa: E402

__all__ = [
    "GradedListLoss",
    "GradedLoss",
    "GradedRetrievalEvaluator",
    "collection_of",
    "pairs_of",
    "with_positions",
]

LABELS = ("label", "labels", "score", "scores")
"""Columns that the library's collator takes for labels, the first that is there."""

_TEXTS = "texts"
_POSITIONS = "with_positions or pairs_of of rungwise.integrations.sentence_transformers"


def pairs_of(data: ImageCaptions) -> Any:
    """Dataset for training on a collection: a row a caption, with its picture and its positions.

    Args:
        data: Collection with pictures, such as ``rungwise.read("photos", split="train")`` gives.

    Returns:
        ``datasets.Dataset`` with the columns ``image``, ``caption`` and ``label``. Files are named, and read when a row
        is asked for.

    Raises:
        UserError: If the collection has no pictures or no captions, or ``datasets`` is not installed.

    >>> from PIL import Image
    >>> import rungwise
    >>> data = rungwise.read([Image.new("L", (2, 2)), Image.new("L", (2, 2), 9)], captions=["black", ["grey", "dark"]])
    >>> pairs_of(data)["caption"][:], pairs_of(data)["label"][:]
    (['black', 'grey', 'dark'], [[0, 0], [1, 1], [1, 2]])
    """
    require("datasets", "pairs_of")
    import datasets

    if not data.paths or not data.captions:
        raise UserError(f"{data.name}: has no {'captions' if data.paths else 'pictures'}; give a collection with both")
    pictures, _ = data.to_lists()
    cells = [{"path": one, "bytes": None} if isinstance(one, str) else {"bytes": one, "path": None} for one in pictures]
    owners = data.image_of_caption.tolist()
    held = {"image": [cells[at] for at in owners], "caption": list(data.captions)}
    made = datasets.Dataset.from_dict(held, datasets.Features({"image": datasets.Image(), "caption": _text(datasets)}))
    return made.add_column("label", [[at, row] for row, at in enumerate(owners)])


def collection_of(dataset: Any) -> ImageCaptions:
    """Collection of a dataset of pairs of texts, for which a source of relevance gives degrees.

    The distinct texts of the first column stand where pictures stand elsewhere; the text of the second column in row r
    is caption r, of the item that the first names.

    Args:
        dataset: ``datasets.Dataset`` whose first two columns are texts, such as anchor and positive.

    Raises:
        UserError: If there are fewer columns, or a cell is no text.

    >>> from datasets import Dataset
    >>> pairs = Dataset.from_dict({"anchor": ["dog", "cat", "dog"], "positive": ["a dog", "a cat", "dogs"]})
    >>> data = collection_of(pairs)
    >>> data.image_ids, data.captions, data.image_of_caption.tolist()
    (('dog', 'cat'), ('a dog', 'a cat', 'dogs'), [0, 1, 0])
    """
    columns = _read_columns(dataset)
    if len(columns) < 2:
        raise UserError(f"dataset: columns {', '.join(columns) or 'none'}; give two columns of texts, such as anchor")
    firsts, seconds = (_texts(name, dataset[name]) for name in columns[:2])
    place: dict[str, int] = {}
    owners = [place.setdefault(text, len(place)) for text in firsts]
    return ImageCaptions(tuple(place), tuple(seconds), np.array(owners, np.int64), name="dataset", layout=_TEXTS)


def with_positions(dataset: Any, data: ImageCaptions, *, image_id: str | None = None) -> Any:
    """A dataset with the positions of each row's picture and captions in a collection, in a new column ``label``.

    A caption is found by its text. The first column is a picture, or a text that stands for one, and is not looked at;
    the second is a caption of it; further columns are captions of other pictures, which are hard negatives.

    Args:
        dataset: ``datasets.Dataset`` with a column for the pictures and one or more columns of captions.
        data: The collection whose degrees a loss is to read; :func:`collection_of` makes one of pairs of texts.
        image_id: Column with the id of each row's picture, needed where a caption stands at several pictures. It is
            taken out of the dataset, for the trainer would read it as a text.

    Returns:
        The dataset with ``label``: positions of the picture, of its caption, and of each hard negative.

    Raises:
        UserError: If there is such a column already, a caption or an id is not in the collection, or a caption stands
            at several pictures and no ids are given.

    >>> from datasets import Dataset
    >>> rows = Dataset.from_dict({"picture": ["a", "b"], "caption": ["a cat", "a dog"], "negative": ["a dog", "a cat"]})
    >>> data = ImageCaptions(("1", "2"), ("a dog", "a cat"), np.array([0, 1]))
    >>> with_positions(rows, data)["label"][:]
    [[1, 1, 0], [0, 0, 1]]
    """
    if taken := [name for name in LABELS if name in dataset.column_names]:
        raise UserError(f"dataset: column {taken[0]!r} is there already; remove or rename it")
    if image_id is not None and image_id not in dataset.column_names:
        raise UserError(f"dataset: has no column {image_id!r}; name one of {', '.join(dataset.column_names)}")
    columns = [name for name in _read_columns(dataset) if name != image_id]
    if len(columns) < 2:
        raise UserError(f"dataset: columns {', '.join(columns) or 'none'}; give a picture and a caption at least")
    if data.layout == _TEXTS and image_id is None:
        ids: list[str] | None = _texts(columns[0], dataset[columns[0]])
    else:
        ids = None if image_id is None else [str(one) for one in dataset[image_id]]
    image_at = {one: at for at, one in enumerate(data.image_ids)}
    found: defaultdict[str, list[int]] = defaultdict(list)
    for at, text in enumerate(data.captions):
        found[text].append(at)
    labels = []
    captions = _texts(columns[1], dataset[columns[1]])
    negatives = [_texts(name, dataset[name]) for name in columns[2:]]
    for row, text in enumerate(captions):
        places = found.get(text, [])
        if ids is not None:
            if ids[row] not in image_at:
                raise UserError(f"dataset, row {row}: {one_line(ids[row], 60)!r} is no picture of {data.name}")
            places = [one for one in places if data.image_of_caption[one] == image_at[ids[row]]]
        if not places:
            raise _unknown(columns[1], row, text, data, "" if ids is None else " at that picture")
        owners = {int(data.image_of_caption[one]) for one in places}
        if len(owners) > 1:
            raise UserError(
                f"dataset, row {row}: {one_line(text, 60)!r} stands at {len(owners)} pictures of {data.name}; name the"
                " column of their ids with image_id="
            )
        owner = owners.pop()
        others = []
        for name, texts in zip(columns[2:], negatives, strict=True):
            strange = [one for one in found.get(texts[row], []) if data.image_of_caption[one] != owner]
            if not strange:
                raise _unknown(name, row, texts[row], data, " at another picture")
            others.append(strange[0])
        labels.append([owner, places[0], *others])
    kept = dataset if image_id is None or image_id == columns[0] else dataset.remove_columns([image_id])
    return kept.add_column("label", labels)


def _unknown(column: str, row: int, text: str, data: ImageCaptions, where: str) -> UserError:
    return UserError(
        f"dataset, row {row}, column {column!r}: {one_line(text, 60)!r} is no caption of {data.name}{where}; give the"
        " collection that the rows are of"
    )


def _read_columns(dataset: Any) -> list[str]:
    """Columns that the trainer gives to the model."""
    return [name for name in dataset.column_names if name not in LABELS]


def _texts(column: str, cells: Iterable[object]) -> list[str]:
    texts = []
    for row, cell in enumerate(cells):
        if not isinstance(cell, str):
            raise UserError(f"dataset, row {row}, column {column!r}: {type(cell).__name__} is no text; give texts")
        texts.append(cell)
    return texts


def _text(datasets: Any) -> Any:
    return datasets.Value("string")


class GradedLoss(CachedLossMixin, nn.Module):
    """A loss of rungwise in ``SentenceTransformerTrainer``, by degrees of relevance.

    The first column of the dataset is the picture, or the text that stands for it; the second is its caption; further
    columns are hard negatives. Other captions of the same picture in a batch are no negatives, unless the loss says
    ``extra_positives="keep"``.

    With several processes and ``gather_across_devices`` every process gets the loss of the whole batch, and its
    gradients are those of one process that has it. A temperature that is learned gets the mean of the processes'
    gradients.

    Args:
        model: Model that gives ``sentence_embedding`` for each column.
        loss: Any loss of :mod:`rungwise.losses`. Take ``reduction="mean"`` where learning rates are to stay usual.
        relevance: Source of degrees, or (images, captions) numbers; None for a loss that reads none.
        data: Collection of the degrees; needed where the source does not know whose each caption is.
        similarity: Function from (n, D) and (m, D) vectors to (n, m).
        gather_across_devices: Take candidates of all processes.
        mini_batch_size: Number of rows that are embedded at a time, with gradients cached in between (GradCache, Gao et
            al. 2021): memory of a small batch, loss of the large one. None embeds a batch at once.
        mini_batch_num_tokens: Cut by this number of tokens in place of rows, as the library's cached losses can.

    Raises:
        UserError: If the loss reads degrees and there are none, or nobody says whose each caption is.

    >>> from rungwise.losses import Ladder
    >>> from sentence_transformers.models import BoW
    >>> model = SentenceTransformer(modules=[BoW(["dog", "cat"])], device="cpu")
    >>> GradedLoss(model, Ladder(), np.eye(2))
    Traceback (most recent call last):
    rungwise.core.UserError: relevance= does not say whose each caption is; give the collection as data=
    """

    def __init__(
        self,
        model: SentenceTransformer,
        loss: Loss,
        relevance: Degrees | ArrayLike | None = None,
        *,
        data: ImageCaptions | None = None,
        similarity: Callable[[Tensor, Tensor], Tensor] = cosine,
        gather_across_devices: bool = False,
        mini_batch_size: int | None = None,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__()
        source: Any = relevance if relevance is None or data is None else as_degrees(relevance, data)
        owners = getattr(source, "image_of_caption", None) if data is None else data.image_of_caption
        if loss.reads.relevance and source is None:
            raise UserError(f"{loss}: reads degrees of relevance, and none are given; give relevance=")
        if source is not None and owners is None:
            raise UserError("relevance= does not say whose each caption is; give the collection as data=")
        self.model = model
        self.negatives = GlobalNegatives(
            loss,
            similarity=similarity,
            relevance=source,
            positives=None if owners is None else _positives_of(owners),
            gather=gather_across_devices,
        )
        self.mini_batch_size = mini_batch_size or (1 if mini_batch_num_tokens else 0)
        self.mini_batch_num_tokens = mini_batch_num_tokens
        self.uses_gradient_cache = bool(self.mini_batch_size)
        self._slopes: list[tuple[nn.Parameter, Tensor]] = []
        for parameter in self._learned:
            parameter.register_hook(_mean_over_processes)  # type: ignore[no-untyped-call]

    @property
    def _learned(self) -> list[nn.Parameter]:
        return [one for one in self.negatives.loss.parameters() if one.requires_grad]

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        """The loss of a batch.

        Args:
            sentence_features: Features of each column.
            labels: (B, 1 + columns of captions) positions, which :func:`with_positions` wrote.

        Raises:
            UserError: If positions are needed and missing, or labels are no positions.
        """
        columns = list(sentence_features)
        if len(columns) < 2:
            raise UserError(f"dataset: {len(columns)} column for the model; give a picture and a caption at least")
        self._check(columns, labels)
        if not self.uses_gradient_cache:
            return self.calculate_loss([[self.model(one)["sentence_embedding"]] for one in columns], labels)
        value: Tensor = self.forward_cached(columns, labels)
        slopes, self._slopes = self._slopes, []
        for parameter, slope in slopes:  # so that they are scaled as the gradients of the vectors are
            product = (parameter * slope).sum()
            value = value + (product - product.detach())
        return value

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
    ) -> Tensor:
        """The loss of vectors; with ``with_backward`` their gradients are left in ``.grad``, and no graph remains.

        Args:
            reps: For each column, the (n, D) vectors of its parts.
            labels: As for :meth:`forward`.
            with_backward: Whether to go backward at once.
        """
        images, *captions = (torch.cat(parts) for parts in reps)
        of_images, of_captions = (None, None) if labels is None else (labels[:, 0], labels[:, 1:].T.flatten())
        value: LossValue = self.negatives(images, torch.cat(captions), of_images, of_captions)
        if isinstance(value, tuple):
            raise UserError(f"{self.negatives.loss}: gives a value a query; set its reduction to 'mean' or 'sum'")
        if not with_backward:
            return value
        parts, learned = [part for column in reps for part in column], self._learned
        slopes = torch.autograd.grad(value, [*parts, *learned], materialize_grads=True)
        for part, slope in zip(parts, slopes, strict=False):
            part.grad = slope
        self._slopes = list(zip(learned, slopes[len(parts) :], strict=True))
        return value.detach()

    def get_config_dict(self) -> dict[str, Any]:
        """Settings for the model's card."""
        return {
            "loss": str(self.negatives.loss),
            "relevance": "" if self.negatives.relevance is None else repr(self.negatives.relevance),
            "similarity": getattr(self.negatives.similarity, "__name__", repr(self.negatives.similarity)),
            "gather_across_devices": self.negatives.gather,
            "mini_batch_size": self.mini_batch_size or None,
        }

    def _check(self, columns: list[dict[str, Tensor]], labels: Tensor | None) -> None:
        """Refuse labels that are no positions of these columns."""
        if labels is None:
            if self.negatives.positives is not None or len(columns) > 2:
                raise UserError(f"dataset: no column of positions; make it with {_POSITIONS}")
        elif labels.ndim != 2 or labels.shape[1] != len(columns) or labels.is_floating_point():
            raise UserError(
                f"dataset: its labels {tuple(labels.shape)} are no positions of {len(columns)} columns; remove the"
                f" column, and make one with {_POSITIONS}"
            )


def _positives_of(owners: NDArray[np.int64]) -> Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]:
    def positives(images: NDArray[np.int64], captions: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(images[:, None] == owners[captions][None, :])

    return positives


def _mean_over_processes(slope: Tensor) -> Tensor:
    """Gradient of a parameter of the loss, which the library's wrapper of the model does not average."""
    if not (dist.is_available() and dist.is_initialized()):
        return slope
    mean = slope.clone()
    dist.all_reduce(mean)
    return mean / dist.get_world_size()


class GradedListLoss(nn.Module):
    """A loss of rungwise in ``CrossEncoderTrainer``: each query with a list of documents and their degrees.

    A list is a block of one query. Its most relevant documents are the pairs, and the others the candidates. What the
    query loses counts; the other direction, of documents that seek a query, does not.

    Args:
        model: Cross-encoder with one output.
        loss: A loss of a block with ``reduction="none"``, such as ``SmoothNDCG(reduction="none")``.
        reduction: ``"mean"`` or ``"sum"`` over the queries.
        activation: Function of the scores before the loss.
        mini_batch_size: Number of pairs that are scored at a time; None takes all.

    Raises:
        UserError: If the model has several outputs, the loss has another reduction or reads similarities within a
            modality, or ``reduction`` is none of both.
    """

    def __init__(
        self,
        model: CrossEncoder,
        loss: Loss,
        *,
        reduction: Literal["mean", "sum"] = "mean",
        activation: nn.Module | None = None,
        mini_batch_size: int | None = None,
    ) -> None:
        super().__init__()
        if loss.reads.within or loss.reduction != "none":
            raise UserError(
                f"{loss}: lists need a loss that reads scores and degrees alone, with a value for each query; give"
                " another, such as rungwise.losses.SmoothNDCG(reduction='none')"
            )
        if reduction not in ("mean", "sum"):
            raise UserError(f"reduction= {reduction!r} is neither 'mean' nor 'sum'; give one of them")
        if model.num_labels != 1:
            raise UserError(f"model: has {model.num_labels} outputs for a pair; give one with num_labels=1")
        self.model = model
        self.loss, self.reduction = loss, reduction
        self.activation = activation or nn.Identity()
        self.mini_batch_size = mini_batch_size

    def forward(
        self,
        inputs: Sequence[Sequence[Any]],
        labels: Sequence[Tensor],
        prompt: str | None = None,
        task: str | None = None,
    ) -> Tensor:
        """The loss of a batch of lists.

        Args:
            inputs: The queries (B,), and the documents of each (B lists).
            labels: (n,) degrees of each query's n documents.
            prompt: Text that the model's preprocessing puts before pairs.
            task: Task of the model's preprocessing.

        Raises:
            UserError: If there are not two columns, or not as many degrees as documents.
        """
        if len(inputs) != 2 or isinstance(labels, Tensor):
            raise UserError("dataset: give three columns: a query, a list of documents, and a list of their degrees")
        lists = inputs[1]
        if (odd := [at for at, own in enumerate(lists) if len(own) != len(labels[at])]) or not lists:
            where = f"row {odd[0]} of a batch: {len(lists[odd[0]])} documents, {len(labels[odd[0]])} degrees"
            raise UserError(f"dataset, {where if odd else 'a batch without rows'}; give one degree for each document")
        pairs = [(query, document) for query, own in zip(*inputs, strict=True) for document in own]
        scores = torch.cat([self._scores(part, prompt, task) for part in self._parts(pairs)])
        losses = []
        for own, degrees in zip(torch.split(scores, [len(own) for own in lists]), labels, strict=True):
            given = degrees.to(own.device, own.dtype)
            of_query, _ = self.loss(own[None], given[None], (given == given.max())[None])
            losses.append(of_query.sum())
        total = torch.stack(losses).sum()
        return total / len(losses) if self.reduction == "mean" else total

    def get_config_dict(self) -> dict[str, Any]:
        """Settings for the model's card."""
        return {
            "loss": str(self.loss),
            "reduction": self.reduction,
            "activation": str(self.activation),
            "mini_batch_size": self.mini_batch_size,
        }

    def _parts(self, pairs: list[tuple[Any, Any]]) -> Iterator[list[tuple[Any, Any]]]:
        size = self.mini_batch_size or len(pairs)
        return (pairs[start : start + size] for start in range(0, len(pairs), size))

    def _scores(self, pairs: list[tuple[Any, Any]], prompt: str | None, task: str | None) -> Tensor:
        features = self.model.preprocess(pairs, prompt=prompt, task=task)
        here = {name: one.to(self.model.device) if hasattr(one, "to") else one for name, one in features.items()}
        scores: Tensor = self.activation(self.model(here)["scores"].view(-1).float())
        return scores


class GradedRetrievalEvaluator(BaseEvaluator):
    """An evaluator of sentence-transformers with the measures of rungwise, in both directions, with intervals.

    Numbers have the names and the scales of rungwise: rates run from 0 to 100. The last :class:`Result
    <rungwise.evaluation.Result>` is kept as ``result``, its intervals as ``intervals``.

    Args:
        data: Collection whose pictures and captions are encoded; of one that :func:`collection_of` made, the texts.
        relevance: Source of degrees, or (images, captions) numbers; needed by graded measures.
        queries: (images,) what the model encodes in place of the pictures, such as texts.
        measures: Measures or their names; default those of first right answers, with nDCG@10 where there are degrees.
        primary: Name of the number that chooses the best model; default ``rsum`` where it is measured, else the first.
        directions: Directions that are reported.
        protocol: Gallery and right answers, or its name.
        name: Name that stands before those of the numbers.
        batch_size: Number of texts or pictures that are encoded at a time.
        level: Level of the intervals.
        draws: Number of draws of the bootstrap; 0 leaves intervals out.
        settings: What counts as right beside the annotation, and where relevance ends.
        write_csv: Append a line to a CSV in the trainer's folder, and write the whole result beside it.
        show_progress_bar: Whether the model shows its progress.

    Raises:
        UserError: If the collection lacks pictures or captions, or the primary number is not measured.
    """

    def __init__(
        self,
        data: ImageCaptions,
        relevance: Degrees | ArrayLike | None = None,
        *,
        queries: Sequence[Any] | None = None,
        measures: Iterable[str | Measure | Total] | None = None,
        primary: str | None = None,
        directions: Sequence[Direction] = DIRECTIONS,
        protocol: str | Protocol = "full",
        name: str = "",
        batch_size: int = 32,
        level: float = 0.95,
        draws: int = 1000,
        settings: EvaluationSettings | None = None,
        write_csv: bool = True,
        show_progress_bar: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        if queries is None and data.layout == _TEXTS:
            queries = data.image_ids
        if not data.captions or not (data.paths or queries):
            raise UserError(f"{data.name}: has no {'pictures' if data.captions else 'captions'} to encode")
        if queries is not None and len(queries) != len(data):
            raise UserError(f"queries= has {len(queries)} entries for {len(data)} pictures; give one for each")
        self.data, self.queries = data, queries
        self.relevance = None if relevance is None else as_degrees(relevance, data)
        graded = ("nDCG@10",) if relevance is not None else ()
        self.measures = parse_all(("R@1", "R@5", "R@10", "rsum", *graded) if measures is None else measures)
        self.name, self.batch_size, self.level, self.draws = name, batch_size, level, draws
        self.settings = settings
        self.write_csv, self.show_progress_bar = write_csv, show_progress_bar
        self.protocol, self.directions = protocol_named(protocol), tuple(directions)
        self.result: Result | None = None
        self.intervals: Mapping[str, Any] = {}
        names = self._names()
        self.primary_metric = primary or ("rsum" if "rsum" in names else names[0])
        if self.primary_metric not in names:
            raise UserError(f"primary= {primary!r} is not measured; name one of {', '.join(names)}")
        self.greater_is_better = parse(self.primary_metric.rpartition("/")[2]).higher_is_better
        self._primary = self.primary_metric

    @classmethod
    def of_judgements(
        cls,
        queries: Mapping[str, str],
        corpus: Mapping[str, str],
        judgements: Mapping[str, Mapping[str, float]],
        *,
        right_from: float | None = None,
        measures: Iterable[str | Measure | Total] = ("R@1", "R@10", "MRR", "nDCG@10"),
        **options: Any,
    ) -> GradedRetrievalEvaluator:
        """An evaluator of queries and documents with graded judgements, such as 0, 1, 2, 3 or 0.37.

        Numbers are named ``i2t/...``: queries stand where pictures stand elsewhere. A pair that is not judged has the
        degree 0.

        Args:
            queries: Texts by id.
            corpus: Texts of documents by id.
            judgements: For the id of a query, degrees by the ids of documents.
            right_from: Degree from which a document counts as right, for measures such as ``R@1``; default: above 0.
            measures: Measures or their names.
            options: Further arguments of the class.

        Raises:
            UserError: If an id is not known.

        >>> evaluator = GradedRetrievalEvaluator.of_judgements(
        ...     {"q": "dog"}, {"a": "a dog", "b": "a cat"}, {"q": {"a": 2, "b": 0.5}})
        >>> evaluator.primary_metric
        'i2t/nDCG@10'
        """
        query_at, document_at = ({one: at for at, one in enumerate(ids)} for ids in (queries, corpus))
        degrees = np.zeros((len(queries), len(corpus)), np.float32)
        for query, own in judgements.items():
            for document, degree in own.items():
                if query not in query_at or document not in document_at:
                    strange = document if query in query_at else query
                    raise UserError(f"judgements, query {query!r}: {strange!r} is not among queries and corpus")
                degrees[query_at[query], document_at[document]] = degree
        right = degrees > 0 if right_from is None else degrees >= right_from
        owners = np.where(right.any(axis=0), right.argmax(axis=0), 0)
        data = ImageCaptions(tuple(queries), tuple(corpus.values()), owners, tuple(corpus), name="texts", layout=_TEXTS)
        settings = EvaluationSettings(
            positives={way: _positives(right if way == "i2t" else right.T) for way in DIRECTIONS}
        )
        asked = parse_all(measures)
        primary = "i2t/nDCG@10" if "nDCG@10" in map(str, asked) else f"i2t/{asked[0]}"
        usual = {"primary": primary, "directions": ("i2t",), "protocol": _Judged("judgements")}
        texts = tuple(queries.values())
        return cls(data, degrees, queries=texts, measures=asked, settings=settings, **{**usual, **options})

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Evaluate a model.

        Args:
            model: ``SentenceTransformer`` that encodes both sides.
            output_path: Folder for the CSV and the result; None writes nothing.
            epoch: Epoch, or -1 outside of training.
            steps: Steps in the epoch, or -1 at its end.

        Returns:
            Numbers by name.
        """
        texts: Sequence[Any] = self.data.captions
        self.result = evaluate(
            image_embeddings=self._vectors(model.encode_query, self.queries or _Pictures(self.data)),
            text_embeddings=self._vectors(model.encode_document, texts),
            image_of_caption=self.data.image_of_caption,
            similarity_function=lambda one, other: model.similarity(one, other).float().numpy(),
            relevance=self.relevance,
            measures=self.measures,
            protocol=self.protocol,
            provenance=Provenance.of(self.data),
            settings=self.settings,
        )
        numbers = {name: self.result[name] for name in self._names()}
        self.intervals = self.result.intervals(list(numbers), self.level, self.draws) if self.draws else {}
        if output_path is not None and self.write_csv:
            self._write(Path(output_path), epoch, steps, numbers)
        self.primary_metric = self._primary
        named: dict[str, float] = self.prefix_name_to_metrics(numbers, self.name)
        self.store_metrics_in_model_card_data(model, named, epoch, steps)
        return named

    def get_config_dict(self) -> dict[str, Any]:
        """Settings for the model's card."""
        degrees = "" if self.relevance is None else self.relevance.title()
        return {"measures": ", ".join(map(str, self.measures)), "relevance": degrees, "protocol": self.protocol.name}

    def _names(self) -> list[str]:
        both = [(one, way) for one in self.measures for way in self.directions]
        return list(dict.fromkeys(str(one) if isinstance(one, Total) else f"{way}/{one}" for one, way in both))

    def _vectors(self, encode: Callable[..., Any], items: Sequence[Any]) -> NDArray[np.float32]:
        """Vectors of all items; pictures are opened a batch at a time."""
        run = self.batch_size * 32
        return np.concatenate(
            [
                encode(items[start : start + run], batch_size=self.batch_size, show_progress_bar=self.show_progress_bar)
                for start in range(0, len(items), run)
            ]
        )

    def _write(self, folder: Path, epoch: int, steps: int, numbers: Mapping[str, float]) -> None:
        """Append a line to the CSV of these columns, and write the result."""
        assert self.result is not None
        make_folder(folder)
        bounds = {
            f"{name}/{side}": getattr(one, side) for name, one in self.intervals.items() for side in ("low", "high")
        }
        row = {"epoch": epoch, "steps": steps, **numbers, **bounds}
        stem = f"graded_retrieval{'_' * bool(self.name)}{self.name}"
        header, line = _csv_lines(row)
        path, number = folder / f"{stem}_results.csv", 1
        while path.exists() and read_text(path, "text_bytes").partition("\n")[0] != header.strip():
            number += 1  # another program's columns, or other measures of an earlier run
            path = folder / f"{stem}_results_{number}.csv"
        text = line if path.exists() else header + line
        with appending(path) as file:
            file.write(text.encode())
        self.result.to_json(folder / f"{stem}_epoch{epoch}_steps{steps}.json")


class _Judged(GivenPositives):
    """Queries and documents with graded judgements."""

    right = "documents that were judged relevant"


class _Pictures(Sequence[Any]):
    """Pictures of a collection, opened when they are asked for."""

    def __init__(self, data: ImageCaptions) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, asked: Any) -> Any:
        from PIL import Image

        if isinstance(asked, slice):
            return [self[at] for at in range(*asked.indices(len(self)))]
        return Image.fromarray(load_picture(self.data.paths[asked]).permute(1, 2, 0).numpy())


def _positives(right: NDArray[np.bool_]) -> Positives:
    counts = right.sum(axis=1)
    return Positives(np.concatenate([[0], np.cumsum(counts)]), np.nonzero(right)[1])


def _csv_lines(row: Mapping[str, object]) -> tuple[str, str]:
    """The header and the line of a row."""
    lines = []
    for cells in (row.keys(), row.values()):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        lines.append(text.getvalue())
    return lines[0], lines[1]
