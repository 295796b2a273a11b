"""Global negatives: every process's queries against all processes' candidates, with correct gradients.

A process computes its own rows of the block on either side: its images against all captions, and its captions against
all images. With B pairs over W processes that is B/W x B entries twice, instead of B x B.

**Value.** With ``reduction="sum"`` or ``"mean"``, every process gets the loss of the whole batch, the number that one
process with the whole batch would get.

**Gradients.** They are scaled so that their *average* over the processes is the gradient of the whole batch's loss:
what :class:`torch.nn.parallel.DistributedDataParallel` leaves in ``.grad`` is what one process would have there. For
parameters outside of it, such as a learnable temperature, call :func:`average_gradients`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from rungwise.losses import (
    Batch,
    BlockSide,
    ExtraPositives,
    Loss,
    LossValue,
    Reads,
    WholeBatch,
    Within,
    degrees_of_images,
    itself,
    one_side,
    refuse_queries,
    sharing,
)
from rungwise.relevance import Relevance
from rungwise.similarity import cosine
from rungwise.training.distributed._collectives import gather_rows, total

PositiveBlock = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
"""Function from positions to (len(images), len(captions)) bool, such as ``ImageCaptions.positives``."""


@contextmanager
def process_group(backend: str, **options: Any) -> Iterator[None]:
    """Context in which the processes of a run are joined.

    Processes that still hold communicating objects when they exit may abort. So everything that communicates, a
    ``DistributedDataParallel`` above all, should be local to a function that is called inside: its leftovers are
    collected, then the processes wait for each other and leave. After an exception they leave without waiting.

    Args:
        backend: ``"gloo"`` or ``"nccl"``.
        options: Options of :func:`torch.distributed.init_process_group`; none are needed under ``torchrun``.
    """
    dist.init_process_group(backend, **options)
    try:
        yield
        gc.collect()
        dist.barrier()
    finally:
        dist.destroy_process_group()


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace each gradient by its average over the processes, for parameters that nothing else averages.

    All processes give the same parameters in the same order; those without a gradient are left out.
    """
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    for gradient in gradients:
        dist.all_reduce(gradient)
        gradient /= dist.get_world_size()


class _Gathered(Batch):
    """The whole batch as one process knows it: all vectors, and its own rows of the block on either side.

    Items are named by their places in the whole batch. The batch is square where every process has as many images as
    captions, pair by pair.
    """

    def __init__(
        self,
        context: GlobalNegatives,
        image_vectors: Tensor,
        text_vectors: Tensor,
        positions: _Positions,
        queries: int | None,
    ) -> None:
        self.context, self.home = context, image_vectors.device
        rank, world = dist.get_rank(), dist.get_world_size()
        counts = torch.tensor([[len(image_vectors), len(text_vectors)]], device=self.home)
        sizes = gather_rows(counts, [1] * world)
        self.image_sizes, text_sizes = sizes.T.tolist()
        self.square = self.image_sizes == text_sizes
        if not self.square and sum(self.image_sizes) == sum(text_sizes):
            raise ValueError(f"as many images as captions, but not on every process: {sizes.tolist()}; pair them there")
        refuse_queries(queries, sum(self.image_sizes), sum(text_sizes))
        # Places count through the processes, so that those of the queries are the first of a process, or none of it.
        self.queries = (
            None if queries is None else min(max(queries - sum(self.image_sizes[:rank]), 0), len(image_vectors))
        )
        self.own_images, self.own_captions = (
            sum(many[:rank]) + torch.arange(many[rank], device=self.home) for many in (self.image_sizes, text_sizes)
        )
        self.every_image, self.every_caption = (
            torch.arange(sum(many), device=self.home) for many in (self.image_sizes, text_sizes)
        )
        # One collective for both modalities: two might meet in different orders on the processes' ways back.
        both = gather_rows(torch.cat([image_vectors, text_vectors]), sizes.sum(dim=1).tolist())
        parts = torch.split(both, sizes.flatten().tolist())
        self.image_vectors, self.text_vectors = image_vectors, text_vectors
        self.all_image_vectors, self.all_text_vectors = torch.cat(parts[::2]), torch.cat(parts[1::2])
        images, captions, reference = positions.images, positions.captions, positions.reference
        self.positions = _Positions(
            None if images is None else gather_rows(images.to(self.home), self.image_sizes),
            None if captions is None else gather_rows(captions.to(self.home), text_sizes),
            None if reference is None else gather_rows(reference.to(self.home), self.image_sizes),
        )
        self.i2t_positives = self._described(self.own_images, self.every_caption)
        self.t2i_positives = _transposed(self._described(self.every_image, self.own_captions))

    @property
    def asking(self) -> tuple[int, int] | None:
        """Numbers of this process's own images and captions that are queries; None where all are."""
        return None if self.queries is None else (self.queries, self.queries)

    @cached_property
    def similarities(self) -> tuple[Tensor, Tensor]:
        """(own images, captions) and (own captions, images)."""
        similarity = self.context.similarity
        i2t = similarity(self.image_vectors, self.all_text_vectors)
        return i2t, similarity(self.all_image_vectors, self.text_vectors).T

    @cached_property
    def similarities_within(self) -> tuple[Tensor, Tensor]:
        """(own images, images) and (own captions, captions)."""
        within = self.context.within
        return within(self.image_vectors, self.all_image_vectors), within(self.text_vectors, self.all_text_vectors)

    @cached_property
    def degrees(self) -> tuple[Tensor | None, Tensor | None]:
        """Relevance in the shapes of :attr:`similarities`."""
        i2t = self._degrees(self.own_images, self.every_caption)
        return i2t, _transposed(self._degrees(self.every_image, self.own_captions))

    def across(
        self, reads: Reads, extra_positives: ExtraPositives, mask_above: float | None
    ) -> tuple[BlockSide, BlockSide]:
        """The block as seen from the process's own images and its own captions."""
        blocks = zip(
            self.similarities,
            self.degrees if reads.relevance else (None, None),
            (self.i2t_positives, self.t2i_positives),
            (self.own_images, self.own_captions),
            strict=True,
        )
        i2t, t2i = (
            replace(
                one_side(s, r, p, own if self.square else None, extra_positives, mask_above),
                query_ids=own if reads.draws else None,
            )
            for s, r, p, own in blocks
        )
        return i2t, t2i

    def within(self, extra_positives: ExtraPositives) -> tuple[Within, Within]:
        """The process's own images, and its own captions, against all of their modality."""
        same_images = itself(self.own_images, len(self.every_image))
        same_captions = itself(self.own_captions, len(self.every_caption))
        if self.context.positives is not None and not (self.square and extra_positives == "keep"):
            described = self._all_positives()
            same_images = same_images | sharing(described[self.own_images], described)
            same_captions = same_captions | sharing(described.T[self.own_captions], described.T)
        images, captions = self.similarities_within
        return Within(images, same_images), Within(captions, same_captions)

    def image_degrees(self, i2t: BlockSide, t2i: BlockSide) -> Tensor:
        """Degrees of the images; the image of one of the process's captions may be another process's."""
        if i2t.aligned:
            return i2t.graded()
        own = degrees_of_images(i2t.graded(), self._all_positives())
        return gather_rows(own, self.image_sizes)[t2i.column]

    def pairs(self, i2t: BlockSide) -> int:
        """Number of pairs of all processes."""
        count = torch.tensor(len(i2t.query), device=self.home)
        dist.all_reduce(count)
        return int(count)

    def _all_positives(self) -> Tensor:
        """(images, captions) bool positives of the whole batch, with pairs; only called where there are positives."""
        described = self._described(self.every_image, self.every_caption)
        assert described is not None
        return described | itself(self.every_image, len(self.every_image)) if self.square else described

    def _degrees(self, images: Tensor, captions: Tensor) -> Tensor | None:
        return self.context.degrees(self.positions.at(images, captions), self.home)

    def _described(self, images: Tensor, captions: Tensor) -> Tensor | None:
        return self.context.described(self.positions.at(images, captions), self.home)


@dataclass(frozen=True)
class _Positions:
    """Positions of a batch's items in the collection, as far as the caller gave them.

    Attributes:
        images: (n,) int64.
        captions: (m,) int64.
        reference: (n,) int64 positions by which relevance is asked, instead of ``images``.
    """

    images: Tensor | None
    captions: Tensor | None
    reference: Tensor | None

    def at(self, images: Tensor, captions: Tensor) -> _Positions:
        """Positions of the items at these places of the batch."""
        return _Positions(_at(self.images, images), _at(self.captions, captions), _at(self.reference, images))


def _at(positions: Tensor | None, places: Tensor) -> Tensor | None:
    return None if positions is None else positions[places]


def _transposed(block: Tensor | None) -> Tensor | None:
    return None if block is None else block.T


class GlobalNegatives(nn.Module):
    """A loss over the batch of all processes, called with each process's own vectors.

    Where the loss reads relevance, a process asks the source for two blocks: its own images with all captions, and all
    images with its own captions. Random draws are keyed by place in the whole batch; for one process and many to draw
    the same, generators (or the default generator) must be seeded alike on all. Where a batch is not square, a pair's
    two items may belong to different processes.

    On one process it is the loss itself.

    Args:
        loss: Any loss of :mod:`rungwise.losses`.
        similarity: Function from (n, D) image vectors and (m, D) text vectors to (n, m).
        within: Similarity of vectors of one modality, which some losses read; None takes ``similarity``.
        relevance: Source of degrees for graded losses.
        positives: Function that tells which captions describe which images, by positions in the collection, such as
            ``ImageCaptions.positives``; needed where images and captions are not paired one to one.
        gather: Take the candidates of all processes; False compares the vectors of each process alone.

    >>> from rungwise.losses import MaxOfHinges
    >>> images, texts = torch.eye(2), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> GlobalNegatives(MaxOfHinges())(images, texts)
    tensor(0.2000)
    """

    def __init__(
        self,
        loss: Loss,
        *,
        similarity: Callable[[Tensor, Tensor], Tensor] = cosine,
        within: Callable[[Tensor, Tensor], Tensor] | None = None,
        relevance: Relevance | None = None,
        positives: PositiveBlock | None = None,
        gather: bool = True,
    ) -> None:
        super().__init__()
        self.loss = loss
        self.similarity = similarity
        self.within = similarity if within is None else within
        self.relevance = relevance
        self.positives = positives
        self.gather = gather

    def extra_repr(self) -> str:
        """What it compares with, and where degrees and positives come from; the loss stands below."""
        names = "similarity", "within", "relevance", "positives", "gather"
        said = ((name, getattr(self, name)) for name in names)
        return ", ".join(f"{name}={getattr(one, '__name__', repr(one))}" for name, one in said)

    def forward(
        self,
        image_vectors: Tensor,
        text_vectors: Tensor,
        images: Tensor | None = None,
        captions: Tensor | None = None,
        reference: Tensor | None = None,
        *,
        queries: int | None = None,
    ) -> LossValue:
        """The loss of the whole batch, from this process's own vectors.

        Args:
            image_vectors: (n, D) image vectors of this process; n may differ between processes.
            text_vectors: (m, D) text vectors of the same type; n = m on every process makes a square block.
            images: (n,) int64 positions in the collection, for relevance and positives.
            captions: (m,) int64 positions in the collection.
            reference: (n,) int64 positions by which the relevance source is asked instead of ``images``: the caption
                paired with each image, say, where the source's ``block`` compares captions with captions.
            queries: B, where the whole batch is square: the first B pairs of all processes together, in the order of
                their ranks, are queries, and the others only candidates; None takes all as queries.

        Returns:
            A scalar, the same on every process; with ``reduction="none"`` the per-query values of this process's own
            images (n,) and captions (m,), whose gradients are not scaled.

        Raises:
            ValueError: If the loss refuses the block, or positions are missing.
        """
        positions = _Positions(images, captions, reference)
        joined = self.gather and dist.is_available() and dist.is_initialized()
        if not joined or dist.get_world_size() == 1:
            return self._alone(image_vectors, text_vectors, positions, queries)
        value = self.loss.value(_Gathered(self, image_vectors, text_vectors, positions, queries))
        if isinstance(value, tuple):
            return value
        return total(value)

    def degrees(self, positions: _Positions, home: torch.device) -> Tensor | None:
        """(images, captions) relevance of these positions; None without a source."""
        if self.relevance is None:
            return None
        rows = positions.images if positions.reference is None else positions.reference
        return torch.from_numpy(self.relevance.block(*_asked(rows, positions.captions))).to(home)

    def described(self, positions: _Positions, home: torch.device) -> Tensor | None:
        """(images, captions) positives of these positions; None where images and captions are paired one to one."""
        if self.positives is None:
            return None
        return torch.from_numpy(self.positives(*_asked(positions.images, positions.captions))).to(home)

    def _alone(
        self, image_vectors: Tensor, text_vectors: Tensor, positions: _Positions, queries: int | None
    ) -> LossValue:
        reads, home = self.loss.reads, image_vectors.device
        images = self.within(image_vectors, image_vectors) if reads.within else None
        captions = self.within(text_vectors, text_vectors) if reads.within else None
        degrees = self.degrees(positions, home) if reads.relevance else None
        similarity = self.similarity(image_vectors, text_vectors)
        described = self.described(positions, home)
        return self.loss.value(WholeBatch(similarity, degrees, described, images, captions, queries))


def _asked(images: Tensor | None, captions: Tensor | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if images is None or captions is None:
        raise ValueError("relevance and positives are asked by positions: pass images= and captions=")
    return images.cpu().numpy(), captions.cpu().numpy()
