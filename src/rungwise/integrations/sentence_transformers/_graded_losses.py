"""sentence-transformers: losses by degrees for its trainers, and an evaluator with the measures of rungwise.

A row of a dataset finds its degrees by positions: those of its picture and of its captions in a collection. They stand
in the column ``label``, the one channel that the library's trainers have besides texts and pictures. The functions
:func:`pairs_of` and :func:`with_positions` write it, so that nobody writes numbers by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import ArrayLike, NDArray
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.losses.gradcache import CachedLossMixin
from torch import Tensor, nn

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.losses import Loss, LossValue
from rungwise.relevance import Degrees, as_degrees
from rungwise.similarity import cosine
from rungwise.training.distributed import GlobalNegatives

_POSITIONS = "with_positions or pairs_of of rungwise.integrations.sentence_transformers"


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
