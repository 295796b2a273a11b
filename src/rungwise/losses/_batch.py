"""Batches as losses read them.

A loss declares what it reads (:class:`Reads`); a :class:`Batch` provides that and nothing more. :class:`WholeBatch`
holds the blocks of one process; training on many processes has an implementation of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rungwise.core.output import short_repr
from rungwise.losses._pairs import BlockSide, ExtraPositives, two_sides


@dataclass(frozen=True)
class Reads:
    """What a loss reads besides the similarities and the positives.

    Attributes:
        relevance: Relevance degrees of the block (:attr:`BlockSide.relevance
            <rungwise.losses.BlockSide.relevance>`).
        within: Similarities within each modality (``Side.within`` and ``Side.same``).
        candidate_captions: How well each candidate's own captions describe the image of a pair
            (``Side.image_degrees``); needs relevance.
        draws: Places of the items in the whole batch, which key random draws (``Side.query_ids``).
    """

    relevance: bool = False
    within: bool = False
    candidate_captions: bool = False
    draws: bool = False

    def __or__(self, other: Reads) -> Reads:
        """Combine what two losses read."""
        return Reads(
            relevance=self.relevance or other.relevance,
            within=self.within or other.within,
            candidate_captions=self.candidate_captions or other.candidate_captions,
            draws=self.draws or other.draws,
        )


@dataclass(frozen=True)
class Within:
    """One modality's items against each other, for the Q queries of a side.

    Attributes:
        similarity: (Q, K) similarities of the queries to all K items of their own modality.
        same: (Q, K) bool, items that are no negatives of the query: itself, and those it shares a positive with.
    """

    similarity: Tensor
    same: Tensor

    __repr__ = short_repr


class Batch(ABC):
    """A batch as a loss sees it."""

    @property
    def asking(self) -> tuple[int, int] | None:
        """Numbers of first images and first captions that are queries; None where all are.

        The others are only candidates, such as a negative set that is larger than the mini-batch.
        """
        return None

    def sides(
        self, reads: Reads, extra_positives: ExtraPositives = "mask", mask_above: float | None = None
    ) -> tuple[BlockSide, BlockSide]:
        """The block as seen from the images and from the captions, with everything that is read.

        The arguments are the loss's declaration, and options of :func:`rungwise.losses._pairs.two_sides`.
        """
        i2t, t2i = self.across(reads, extra_positives, mask_above)
        if reads.within:
            images, captions = self.within(extra_positives)
            i2t = replace(i2t, within=images.similarity, same=images.same)
            t2i = replace(t2i, within=captions.similarity, same=captions.same)
        if reads.candidate_captions:
            t2i = replace(t2i, image_degrees=self.image_degrees(i2t, t2i))
        if self.asking is None:
            return i2t, t2i
        return i2t.first(self.asking[0]), t2i.first(self.asking[1])

    @abstractmethod
    def across(
        self, reads: Reads, extra_positives: ExtraPositives, mask_above: float | None
    ) -> tuple[BlockSide, BlockSide]:
        """The two sides of the block of images and captions, with relevance and places where they are read."""

    @abstractmethod
    def within(self, extra_positives: ExtraPositives) -> tuple[Within, Within]:
        """The images, and the captions, against all items of their own modality."""

    @abstractmethod
    def image_degrees(self, i2t: BlockSide, t2i: BlockSide) -> Tensor:
        """(P, images) degrees: how well the captions of each image describe the image of each pair of ``t2i``."""

    @abstractmethod
    def pairs(self, i2t: BlockSide) -> int:
        """Number of pairs in the whole batch whose queries count."""


@dataclass(frozen=True)
class WholeBatch(Batch):
    """A batch that one process holds, as blocks.

    Attributes:
        similarity: (images, captions), any float type.
        relevance: (images, captions) degrees, or None.
        positives: (images, captions) bool, or None.
        image_similarity: (images, images), or None.
        text_similarity: (captions, captions), or None.
        queries: B, for a square block: its first B pairs are queries, and the others only candidates; None takes all as
            queries.

    Raises:
        ValueError: If the block is not square, or has fewer than ``queries`` pairs.

    >>> WholeBatch(torch.zeros(3, 3), queries=2).sides(Reads())[0].similarity.shape
    torch.Size([2, 3])
    """

    similarity: Tensor
    relevance: Tensor | None = None
    positives: Tensor | None = None
    image_similarity: Tensor | None = None
    text_similarity: Tensor | None = None
    queries: int | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        refuse_queries(self.queries, *self.similarity.shape)

    @property
    def asking(self) -> tuple[int, int] | None:
        """Numbers of images and captions that are queries; None where all are."""
        return None if self.queries is None else (self.queries, self.queries)

    def across(
        self, reads: Reads, extra_positives: ExtraPositives, mask_above: float | None
    ) -> tuple[BlockSide, BlockSide]:
        """The two sides of the block; given relevance is included in any case, and places count from 0."""
        return two_sides(self.similarity, self.relevance, self.positives, extra_positives, mask_above)

    def within(self, extra_positives: ExtraPositives) -> tuple[Within, Within]:
        """The images, and the captions, against their own modality.

        Raises:
            ValueError: If similarities within a modality are missing or of another shape.
        """
        images, captions = (torch.arange(n, device=self.similarity.device) for n in self.similarity.shape)
        same_images, same_captions = itself(images, len(images)), itself(captions, len(captions))
        square = len(images) == len(captions)
        if self.positives is not None and not (square and extra_positives == "keep"):
            described = self.positives.bool() | same_images if square else self.positives.bool()
            same_images = same_images | sharing(described, described)
            same_captions = same_captions | sharing(described.T, described.T)
        return (
            Within(_square("image", self.image_similarity, same_images), same_images),
            Within(_square("text", self.text_similarity, same_captions), same_captions),
        )

    def image_degrees(self, i2t: BlockSide, t2i: BlockSide) -> Tensor:
        """(P, images) degrees of the images' captions for the image of each pair."""
        degrees = i2t.graded()
        return degrees if i2t.aligned else degrees_of_images(degrees, i2t.paired)[i2t.query]

    def pairs(self, i2t: BlockSide) -> int:
        """Number of pairs."""
        return len(i2t.query)


def refuse_queries(queries: int | None, *shape: int) -> None:
    """Raise ValueError unless the block of this shape is square and has that many pairs; None is always accepted."""
    if queries is None:
        return
    if len(set(shape)) != 1:
        raise ValueError(f"queries are the first pairs of a square block; got one of {tuple(shape)}")
    if not 1 <= queries <= shape[0]:
        raise ValueError(f"queries must lie in 1..{shape[0]}, the pairs of the block; got {queries}")


def itself(own: Tensor, items: int) -> Tensor:
    """(Q, items) bool: whether an item is the query itself; ``own`` (Q,) are the queries' places among the items."""
    return own.unsqueeze(1) == torch.arange(items, device=own.device)


def sharing(described: Tensor, every: Tensor) -> Tensor:
    """(Q, K) bool: whether a query, with (Q, C) positives, shares one with an item, with (K, C) positives."""
    rows = described.float()
    if rows.is_cpu:
        # Few entries a row are True. On a GPU the dense product is quick, and listing them would wait for the host.
        rows = rows.to_sparse()
    return rows @ every.float().T > 0


def degrees_of_images(degrees: Tensor, paired: Tensor) -> Tensor:
    """(Q, images) mean degree of each image's captions for other images, in float32 at least.

    ``degrees`` are (Q, captions), ``paired`` is (images, captions) bool. The column of an image without captions is
    -inf.

    >>> degrees_of_images(torch.tensor([[9.0, 7.0, 1.0]]), torch.tensor([[True, True, False], [False, False, True]]))
    tensor([[8., 1.]])
    """
    exact = degrees.to(torch.promote_types(degrees.dtype, torch.float32))
    share = paired.to(exact.dtype)
    count = share.sum(dim=1)
    with torch.autocast(exact.device.type, enabled=False):
        total = exact @ share.T
    return (total / count).masked_fill(count == 0, -torch.inf)


def _square(modality: str, within: Tensor | None, same: Tensor) -> Tensor:
    """Similarities within a modality, after a check that they are there and have the shape of ``same``."""
    if within is None or within.shape != same.shape:
        got = "nothing" if within is None else tuple(within.shape)
        raise ValueError(f"{modality}_similarity must be {tuple(same.shape)}, got {got}")
    return within
