"""How one batch becomes gradients: strategies that a configuration names.

A step asks the model for a batch and for its scores or vectors, and the loss for its value; it knows neither's make-up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from rungwise.core.configuration import STRICT, by_name, on_command_line
from rungwise.core.errors import UserError
from rungwise.losses import Loss
from rungwise.models.pairs import Autocast, Pairs, TrainableEncoder, TrainableScorer
from rungwise.training.batch_degrees import BatchDegrees
from rungwise.training.cached_gradients import cached_backward
from rungwise.training.distributed import GlobalNegatives, average_gradients
from rungwise.training.processes import Processes
from rungwise.training.samplers import ListBatch
from rungwise.training.timing import Stopwatch

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class Work:
    """What every step of a run works on.

    Attributes:
        model: Trained in place.
        pairs: What batches are cut from.
        degrees: Relevance of a batch; None where nothing reads it.
        autocast: Opens the context in which encoders compute.
        processes: Of the run.
        parameters: Everything that is trained, the loss's own included.
        data_time: Stands around whatever waits for data.
    """

    model: TrainableScorer
    pairs: Pairs
    degrees: BatchDegrees | None
    autocast: Autocast
    processes: Processes
    parameters: list[torch.nn.Parameter]
    data_time: Stopwatch = field(default_factory=Stopwatch)

    def batch(self, chosen: Positions) -> Any:
        """What the model computes of some pairs, on its device."""
        with self.data_time:
            return self.model.batch(self.pairs, chosen)

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        return self.model.device


@dataclass(frozen=True)
class Outcome:
    """What a step leaves besides gradients.

    Attributes:
        value: The batch's loss, without a graph.
        vectors: Image and caption vectors of the batch, as far as this process has them; None for models without.
    """

    value: Tensor
    vectors: tuple[Tensor, Tensor] | None


class Step(ABC):
    """Loss and gradients of one batch."""

    kind: str

    def check(self, model: TrainableScorer, loss: Loss, processes: Processes, lists: bool) -> None:
        """Refuse what this step cannot do, before anything is computed.

        Raises:
            UserError: Naming the setting that does not fit.
        """
        if processes.world > 1:
            raise UserError(
                f"{processes.world} processes were started, but step {self.kind} uses one; set step: global_negatives,"
                " or start without torchrun"
            )

    @abstractmethod
    def backward(self, work: Work, loss: Loss, batch: Any, seed: int) -> Outcome:
        """Put the gradients of one batch into ``.grad``.

        Args:
            work: What is trained.
            loss: Of the batch.
            batch: Positions of captions in ``work.pairs``, or lists.
            seed: Of this step's random draws.
        """


@dataclass(frozen=True)
class Plain(Step):
    """The whole batch with one graph, on one process.

    Attributes:
        kind: Names the step in YAML.
    """

    __pydantic_config__ = STRICT

    kind: Literal["plain"] = "plain"

    def check(self, model: TrainableScorer, loss: Loss, processes: Processes, lists: bool) -> None:
        """See :class:`Step`."""
        super().check(model, loss, processes, lists)
        if loss.reads.within and not isinstance(model, TrainableEncoder):
            raise UserError(
                "the loss reads similarities within a modality, which a model without vectors does not give; choose"
                " another loss"
            )
        if lists and not isinstance(model, TrainableEncoder):
            raise UserError("sampler label_lists needs a model that gives vectors; choose another sampler")
        if lists and not loss.reads_lists:
            raise UserError("sampler label_lists goes with a loss of lists, such as adaptive_listwise; choose one")

    def backward(self, work: Work, loss: Loss, batch: Any, seed: int) -> Outcome:
        """See :class:`Step`."""
        torch.manual_seed(seed)
        if isinstance(batch, ListBatch):
            return _of_lists(work, loss, batch)
        reads = loss.reads
        scored = work.model.score(work.batch(batch), work.autocast, within=reads.within)
        value = loss(
            scored.similarity,
            work.degrees.of_batch(work.pairs, batch, work.device) if reads.relevance and work.degrees else None,
            torch.from_numpy(_same_image(work.pairs, batch)).to(work.device),
            image_similarity=scored.image_similarity,
            text_similarity=scored.text_similarity,
        )
        value.backward()
        return Outcome(value.detach(), scored.vectors)


@dataclass(frozen=True)
class CachedGradients(Step):
    """A batch larger than memory, by cached gradients: encoders see it in chunks, the loss sees it whole.

    Attributes:
        kind: Names the step in YAML.
        chunk: Pairs that are encoded together.
    """

    __pydantic_config__ = STRICT

    kind: Literal["cached_gradients"] = "cached_gradients"
    chunk: int = 64

    def check(self, model: TrainableScorer, loss: Loss, processes: Processes, lists: bool) -> None:
        """See :class:`Step`."""
        super().check(model, loss, processes, lists)
        _check_vectors(self, model, lists, self.chunk)

    def backward(self, work: Work, loss: Loss, batch: Any, seed: int) -> Outcome:
        """See :class:`Step`."""
        torch.manual_seed(seed)
        return _through_vectors(work, loss, batch, seed, self.chunk)


@dataclass(frozen=True)
class GlobalNegativesStep(Step):
    """Every process's queries against all processes' candidates; batch_size counts the pairs of all together.

    Attributes:
        kind: Names the step in YAML.
        chunk: Pairs of a process that are encoded together, by cached gradients; None takes them all at once.
    """

    __pydantic_config__ = STRICT

    kind: Literal["global_negatives"] = "global_negatives"
    chunk: int | None = None

    def check(self, model: TrainableScorer, loss: Loss, processes: Processes, lists: bool) -> None:
        """See :class:`Step`."""
        _check_vectors(self, model, lists, self.chunk)

    def backward(self, work: Work, loss: Loss, batch: Any, seed: int) -> Outcome:
        """See :class:`Step`."""
        torch.manual_seed(seed)
        if len(batch) < work.processes.world:  # the end of an epoch: too few to share, so every process takes them all
            return Plain().backward(work, loss, batch, seed)
        outcome = _through_vectors(work, loss, work.processes.own(batch), seed, self.chunk)
        if work.processes.world > 1:
            average_gradients(work.parameters)
        return outcome


AnyStep = Annotated[
    Plain | CachedGradients | GlobalNegativesStep,
    Field(discriminator="kind"),
    by_name,
    on_command_line(Plain | CachedGradients | GlobalNegativesStep),
]
"""A field of a configuration: a step's name (``plain``), or a mapping (``{kind: cached_gradients, chunk: 32}``)."""


def _check_vectors(step: Step, model: TrainableScorer, lists: bool, chunk: int | None) -> None:
    if not isinstance(model, TrainableEncoder):
        raise UserError(f"step {step.kind} needs a model that gives vectors; set step: plain for this one")
    if lists:
        raise UserError(f"sampler label_lists goes with step: plain, not with {step.kind}")
    if chunk is not None and chunk < 1:
        raise UserError(f"step {step.kind}: chunk must be at least 1, got {chunk}")


def _through_vectors(work: Work, loss: Loss, own: Positions, seed: int, chunk: int | None) -> Outcome:
    """Gradients of this process's part of a batch, where the loss sees the vectors of all processes."""
    model, pairs = work.model, work.pairs
    assert isinstance(model, TrainableEncoder)  # as check() saw to
    of_all = GlobalNegatives(
        loss,
        similarity=model.similarity.block,
        relevance=work.degrees if loss.reads.relevance else None,
        positives=lambda images, captions: images[:, None] == pairs.data.image_of_caption[captions][None, :],
    )
    images = torch.from_numpy(pairs.images[pairs.image[own]])
    captions = torch.from_numpy(pairs.captions[own])
    reference = captions if work.degrees is not None and work.degrees.by_caption else None
    seen: list[tuple[Tensor, Tensor]] = []

    def embed(part: Positions) -> tuple[Tensor, Tensor]:
        with work.autocast():
            return model.embed(work.batch(part))

    def value_of(image_vectors: Tensor, text_vectors: Tensor) -> Tensor:
        seen[:] = [(image_vectors.detach(), text_vectors.detach())]
        torch.manual_seed(seed)  # draws of the loss must be the same on all processes, whatever the encoders drew
        value = of_all(image_vectors, text_vectors, images, captions, reference)
        assert isinstance(value, Tensor)
        return value

    if chunk is None:
        value = value_of(*embed(own))
        value.backward()  # type: ignore[no-untyped-call]
    else:
        chunks = [own[start : start + chunk] for start in range(0, len(own), chunk)]
        value = cached_backward(embed, chunks, value_of)
    return Outcome(value.detach(), seen[0])


def _of_lists(work: Work, loss: Loss, lists: ListBatch) -> Outcome:
    """Gradients of lists: every caption and image that is named is encoded once."""
    model, pairs = work.model, work.pairs
    assert isinstance(model, TrainableEncoder)  # as check() saw to
    first_caption = pairs.first_caption
    images = np.concatenate([lists.images, lists.images_of_captions.ravel()])
    named = np.unique(np.concatenate([lists.captions_of_images.ravel(), lists.captions, first_caption[images]]))
    with work.autocast():
        image_vectors, text_vectors = model.embed(work.batch(named))
    similarity = model.similarity.block(image_vectors, text_vectors)

    def place(of_captions: Positions) -> Tensor:
        return torch.from_numpy(np.searchsorted(named, of_captions)).to(similarity.device)

    i2t = similarity[place(first_caption[lists.images])[:, None], place(lists.captions_of_images)]
    t2i = similarity[place(first_caption[lists.images_of_captions]), place(lists.captions)[:, None]]
    value = loss.of_lists(i2t, t2i)
    assert isinstance(value, Tensor)
    value.backward()  # type: ignore[no-untyped-call]
    return Outcome(value.detach(), (image_vectors, text_vectors))


def _same_image(pairs: Pairs, chosen: Positions) -> NDArray[np.bool_]:
    """(n, n): the caption was written for the image, be it of another pair."""
    images = pairs.image[chosen]
    same: NDArray[np.bool_] = images[:, None] == images[None, :]
    return same
