"""Strategies, named by a configuration, of turning one batch into gradients.

A step asks the model for a batch and for its scores or vectors, and the loss for its value; it knows neither's make-up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from rungwise.core import STRICT, AtLeastOne, Bounded, UserError, by_name, on_command_line
from rungwise.core.output import short_repr
from rungwise.losses import Loss
from rungwise.models import Autocast, Pairs, TrainableEncoder, TrainableScorer
from rungwise.training.batches import BatchDegrees, ListBatch, TrainingPositives, further_pairs
from rungwise.training.distributed import GlobalNegatives, Processes, average_gradients, gather_rows
from rungwise.training.steps._cached_gradients import cached_backward
from rungwise.training.steps._stopwatch import Stopwatch

Positions = NDArray[np.int64]


def _as_it_is(loss: Tensor) -> Tensor:
    return loss


@dataclass(frozen=True)
class StepContext:
    """Everything that the steps of a run work on.

    Attributes:
        model: The model, trained in place.
        pairs: Pairs that batches are cut from.
        degrees: Relevance of a batch; None where nothing reads it.
        autocast: Opens the context in which encoders compute.
        processes: Processes of the run.
        parameters: All trained parameters, the loss's own included.
        called_right: Human positives, which people called right; None where there are no judgements.
        data_time: Stopwatch of the time spent waiting for data.
        scaled: Function from a loss to the value that gradients are taken of, such as a multiple for float16.
    """

    model: TrainableScorer
    pairs: Pairs
    degrees: BatchDegrees | None
    autocast: Autocast
    processes: Processes
    parameters: list[torch.nn.Parameter]
    scaled: Callable[[Tensor], Tensor] = _as_it_is
    called_right: TrainingPositives | None = None
    data_time: Stopwatch = field(default_factory=Stopwatch)

    __repr__ = short_repr

    def batch(self, chosen: Positions) -> Any:
        """The model's batch of the chosen pairs, on its device."""
        with self.data_time:
            return self.model.batch(self.pairs, chosen)

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return self.model.device

    def positives(self, images: Positions, captions: Positions) -> NDArray[np.bool_]:
        """(len(images), len(captions)) bool: the caption was written for the image, or people called it right.

        ``images`` and ``captions`` are positions in the collection.
        """
        written = self.pairs.data.positives(images, captions)
        return written if self.called_right is None else written | self.called_right.block(images, captions)

    def encoded(self, loss: Loss, batch: Any, seed: int) -> Positions:
        """(n,) positions in ``pairs`` of the captions that a step encodes, each with its image.

        Of lists, these are all captions that they name, ascending; else the batch, followed by the further candidates
        that the loss wants (:meth:`Loss.pairs_to_encode <rungwise.losses.Loss.pairs_to_encode>`), as far as there are
        any.

        Args:
            loss: Loss of the batch.
            batch: (B,) positions of captions in ``pairs``, or lists.
            seed: Seed for drawing further pairs.
        """
        if isinstance(batch, ListBatch):
            images = np.concatenate([batch.images, batch.images_of_captions.ravel()])
            captions = [batch.captions_of_images.ravel(), batch.captions, self.pairs.first_caption[images]]
            named: Positions = np.unique(np.concatenate(captions))
            return named
        wanted = min(loss.pairs_to_encode(len(batch)), len(self.pairs))
        if wanted <= len(batch):
            own: Positions = batch
            return own
        further = further_pairs(batch, wanted - len(batch), len(self.pairs), seed)
        chosen: Positions = np.concatenate([batch, further])
        return chosen


@dataclass(frozen=True)
class Outcome:
    """The result of a step besides gradients.

    Attributes:
        value: The batch's loss, without a graph.
        vectors: Image and caption vectors of the batch that this process has; None for models without.
    """

    value: Tensor
    vectors: tuple[Tensor, Tensor] | None


class Step(Bounded, ABC):
    """The computation of loss and gradients of one batch."""

    kind: str

    @property
    def encodes_twice(self) -> bool:
        """Whether encoders see a pair without a graph and again with one, and must draw the same numbers both times."""
        return False

    def check(self, model: TrainableScorer, loss: Loss, processes: Processes, lists: bool) -> None:
        """Refuse combinations that this step cannot train, before anything is computed."""
        if lists and not isinstance(model, TrainableEncoder):
            raise UserError("sampler label_lists needs a model that gives vectors; choose another sampler")
        if lists and not loss.reads_lists:
            raise UserError("sampler label_lists goes with a loss of lists, such as adaptive_listwise; choose one")
        if lists and model.adds_losses:
            raise UserError(
                f"sampler label_lists takes the loss of vectors alone, and a model of kind {model.kind!r} adds losses"
                " of its own; choose another sampler"
            )

    @abstractmethod
    def backward(self, work: StepContext, loss: Loss, batch: Any, seed: int) -> Outcome:
        """Compute the gradients of one batch into ``.grad``.

        Args:
            work: Model, pairs and settings of the run.
            loss: Loss of the batch.
            batch: Positions of captions in ``work.pairs``, or lists.
            seed: Seed of this step's random draws.
        """


@dataclass(frozen=True)
class Plain(Step):
    """The whole batch with one graph, on one process.

    Attributes:
        kind: Name of the step in YAML.
    """

    __pydantic_config__ = STRICT

    kind: Literal["plain"] = "plain"

    def check(self, model: TrainableScorer, loss: Loss, processes: Processes, lists: bool) -> None:
        """Refuse several processes, and losses within a modality for a model without vectors."""
        super().check(model, loss, processes, lists)
        _check_alone(self, processes)
        if loss.reads.within and not isinstance(model, TrainableEncoder):
            raise UserError(
                "the loss reads similarities within a modality, which a model without vectors does not give; choose"
                " another loss"
            )

    def backward(self, work: StepContext, loss: Loss, batch: Any, seed: int) -> Outcome:
        """Compute the gradients of the whole batch at once."""
        torch.manual_seed(seed)
        if isinstance(batch, ListBatch):
            return _of_lists(work, loss, batch, seed, None)
        chosen, reads = work.encoded(loss, batch, seed), loss.reads
        scored = work.model.score(work.batch(chosen), work.autocast, within=reads.within)
        degrees = work.degrees.of_batch(work.pairs, chosen, work.device) if reads.relevance and work.degrees else None
        images, captions = work.pairs.images[work.pairs.image[chosen]], work.pairs.captions[chosen]
        positives = torch.from_numpy(work.positives(images, captions)).to(work.device)

        def of_block(similarity: Tensor) -> Tensor:
            value = loss(
                similarity,
                degrees,
                positives,
                image_similarity=scored.image_similarity,
                text_similarity=scored.text_similarity,
                queries=_queries(batch, chosen),
            )
            assert isinstance(value, Tensor)
            return value

        value = scored.loss(of_block)
        work.scaled(value).backward()  # type: ignore[no-untyped-call]
        return Outcome(value.detach(), scored.vectors)


@dataclass(frozen=True)
class CachedGradients(Step):
    """A batch larger than memory, by cached gradients: encoders see it in chunks, the loss sees it whole.

    Attributes:
        kind: Name of the step in YAML.
        chunk: Number of pairs that are encoded together.
    """

    __pydantic_config__ = STRICT

    kind: Literal["cached_gradients"] = "cached_gradients"
    chunk: AtLeastOne = 64

    @property
    def encodes_twice(self) -> bool:
        """True."""
        return True

    def check(self, model: TrainableScorer, loss: Loss, processes: Processes, lists: bool) -> None:
        """Refuse several processes, and models without vectors or with losses of their own."""
        super().check(model, loss, processes, lists)
        _check_alone(self, processes)
        _check_vectors(self, model)

    def backward(self, work: StepContext, loss: Loss, batch: Any, seed: int) -> Outcome:
        """Compute the gradients by encoding chunks twice."""
        torch.manual_seed(seed)
        return _of_vectors(work, loss, batch, seed, self.chunk)


@dataclass(frozen=True)
class GlobalNegativesStep(Step):
    """Every process's queries against all processes' candidates; batch_size counts the pairs of all together.

    Attributes:
        kind: Name of the step in YAML.
        chunk: Number of pairs of a process that are encoded together, by cached gradients; None encodes all at once.
    """

    __pydantic_config__ = STRICT

    kind: Literal["global_negatives"] = "global_negatives"
    chunk: AtLeastOne | None = None

    @property
    def encodes_twice(self) -> bool:
        """Whether pairs are encoded in chunks."""
        return self.chunk is not None

    def check(self, model: TrainableScorer, loss: Loss, processes: Processes, lists: bool) -> None:
        """Refuse models without vectors or with losses of their own."""
        super().check(model, loss, processes, lists)
        _check_vectors(self, model)

    def backward(self, work: StepContext, loss: Loss, batch: Any, seed: int) -> Outcome:
        """Compute this process's share of the gradients, and average them over the processes."""
        torch.manual_seed(seed)
        if len(work.encoded(loss, batch, seed)) < work.processes.world:
            # The end of an epoch: too few to share, so every process takes them all.
            return Plain().backward(replace(work, processes=Processes()), loss, batch, seed)
        outcome = _of_vectors(work, loss, batch, seed, self.chunk)
        if work.processes.world > 1:
            average_gradients(work.parameters)
        return outcome


AnyStep = Annotated[
    Plain | CachedGradients | GlobalNegativesStep,
    Field(discriminator="kind"),
    by_name,
    on_command_line(Plain | CachedGradients | GlobalNegativesStep),
]
"""Type of a field that holds a step: its name (``plain``), or a mapping (``{kind: cached_gradients, chunk: 32}``)."""


def _check_alone(step: Step, processes: Processes) -> None:
    if processes.world > 1:
        raise UserError(
            f"{processes.world} processes were started, but step {step.kind} uses one; set step: global_negatives,"
            " or start without torchrun"
        )


def _check_vectors(step: Step, model: TrainableScorer) -> None:
    if not isinstance(model, TrainableEncoder):
        raise UserError(f"step {step.kind} needs a model that gives vectors; set step: plain for this one")
    if model.adds_losses:
        raise UserError(
            f"step {step.kind} computes the loss of vectors alone, and a model of kind {model.kind!r} adds losses of"
            " its own; set step: plain"
        )


def _of_vectors(work: StepContext, loss: Loss, batch: Any, seed: int, chunk: int | None) -> Outcome:
    """Gradients of this process's part of a batch or of lists; the loss sees the vectors of all processes."""
    if isinstance(batch, ListBatch):
        return _of_lists(work, loss, batch, seed, chunk)
    return _of_blocks(work, loss, batch, seed, chunk)


def _of_blocks(work: StepContext, loss: Loss, batch: Positions, seed: int, chunk: int | None) -> Outcome:
    """Gradients of every process's queries against all candidates."""
    model, pairs = work.model, work.pairs
    assert isinstance(model, TrainableEncoder)  # as check() saw to
    of_all = GlobalNegatives(
        loss,
        similarity=model.similarity.block,
        relevance=work.degrees if loss.reads.relevance else None,
        positives=work.positives,
    )
    chosen = work.encoded(loss, batch, seed)
    own = work.processes.own(chosen)
    images = torch.from_numpy(pairs.images[pairs.image[own]])
    captions = torch.from_numpy(pairs.captions[own])
    reference = captions if work.degrees is not None and work.degrees.by_caption else None

    def value_of(image_vectors: Tensor, text_vectors: Tensor) -> Tensor:
        value = of_all(image_vectors, text_vectors, images, captions, reference, queries=_queries(batch, chosen))
        assert isinstance(value, Tensor)
        return value

    return _embedded(work, own, value_of, seed, chunk)


def _of_lists(work: StepContext, loss: Loss, lists: ListBatch, seed: int, chunk: int | None) -> Outcome:
    """Gradients of lists: every caption and image in them is encoded once, by one process.

    Every process computes the loss of all lists, which costs little beside the encoders. Its gradient for a process's
    vectors reaches that process once from each, and the average over the processes turns these into one.
    """
    model, pairs, processes = work.model, work.pairs, work.processes
    assert isinstance(model, TrainableEncoder)  # as check() saw to
    first_caption, similarity = pairs.first_caption, model.similarity
    named = work.encoded(loss, lists, seed)

    def place(of_captions: Positions) -> Tensor:
        return torch.from_numpy(np.searchsorted(named, of_captions)).to(work.device)

    def value_of(image_vectors: Tensor, text_vectors: Tensor) -> Tensor:
        if processes.world > 1:
            # One collective for both modalities: two might meet in different orders on the processes' ways back.
            both = gather_rows(torch.cat([image_vectors, text_vectors], dim=1), processes.shares(len(named)))
            image_vectors, text_vectors = both.tensor_split([image_vectors.shape[1]], dim=1)
        block = similarity.block(image_vectors, text_vectors)
        i2t = block[place(first_caption[lists.images])[:, None], place(lists.captions_of_images)]
        t2i = block[place(first_caption[lists.images_of_captions]), place(lists.captions)[:, None]]
        value = loss.of_lists(i2t, t2i)
        assert isinstance(value, Tensor)
        return value

    return _embedded(work, processes.own(named), value_of, seed, chunk)


def _embedded(
    work: StepContext, own: Positions, value_of: Callable[[Tensor, Tensor], Tensor], seed: int, chunk: int | None
) -> Outcome:
    """Gradients of a loss of vectors, with the pairs encoded together or in chunks."""
    model = work.model
    assert isinstance(model, TrainableEncoder)  # as check() saw to
    outcomes: list[Outcome] = []

    def embed(part: Positions) -> tuple[Tensor, Tensor]:
        with work.autocast():
            return model.embed(work.batch(part))

    def scaled(image_vectors: Tensor, text_vectors: Tensor) -> Tensor:
        torch.manual_seed(seed)  # draws of the loss must be the same on all processes, whatever the encoders drew
        value = value_of(image_vectors, text_vectors)
        outcomes.append(Outcome(value.detach(), (image_vectors.detach(), text_vectors.detach())))
        return work.scaled(value)

    if chunk is None:
        scaled(*embed(own)).backward()  # type: ignore[no-untyped-call]
    else:
        cached_backward(embed, [own[start : start + chunk] for start in range(0, len(own), chunk)], scaled)
    return outcomes[0]


def _queries(batch: Positions, encoded: Positions) -> int | None:
    """Number of encoded pairs that count as queries; None where all do."""
    return None if len(batch) == len(encoded) else len(batch)
