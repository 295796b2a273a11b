"""Base classes of losses; those of a block share two sides, which are added, and a reduction."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from rungwise.core import Cancelled
from rungwise.losses._batch import Batch, Reads, WholeBatch
from rungwise.losses._given_blocks import degrees_like, positives_like
from rungwise.losses._loss_settings import settings_of
from rungwise.losses._pairs import BlockSide, ExtraPositives

Reduction = Literal["sum", "mean", "none"]
LossValue = Tensor | tuple[Tensor, Tensor]


def require(name: str, value: str, allowed: object) -> None:
    """Raise ValueError if an option is not one of a Literal's values."""
    if value not in get_args(allowed):
        raise ValueError(f"{name} must be one of {', '.join(get_args(allowed))}; got {value!r}")


def kind_of(loss: type[object]) -> str:
    """Name of a loss in a configuration: its class in snake case.

    >>> kind_of(type("MultiModalNCE", (), {}))
    'multi_modal_nce'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", loss.__name__).lower()


Degrees = NDArray[np.float32]


class SharedOptions(TypedDict):
    """Keyword arguments that every :class:`BlockLoss` takes."""

    reduction: Reduction
    extra_positives: ExtraPositives
    mask_above: float | None


@dataclass(frozen=True)
class BlockFacts:
    """What is known of a run's batches before it begins, see :meth:`Loss.cancelled`.

    Attributes:
        similarity: Name of the model's similarity.
        lowest: Lowest similarity that there can be.
        highest: Highest similarity that there can be.
        pairs: Number of pairs in a batch.
        lists: Whether batches are lists of candidates and not blocks.
    """

    similarity: str
    lowest: float
    highest: float
    pairs: int
    lists: bool = False

    @property
    def span(self) -> float:
        """Largest difference of two similarities."""
        return self.highest - self.lowest


class Loss(nn.Module, ABC):
    """A loss of image-text pairs.

    It prints as the call that makes it, with all of its settings: each parameter of the constructor has the value that
    the attribute of its name has now, so that a logger that stores the text records the experiment. A temperature that
    is learned shows what it has become.

    Attributes:
        reduction: How the values of the queries are combined.
        paper_similarity: Similarity that its paper uses, under its name in models.
        reads_lists: Whether it can be computed from lists of candidates, see :meth:`of_lists`.
    """

    reduction: Reduction
    paper_similarity: str = "cosine"
    reads_lists: ClassVar[bool] = False

    @property
    def reads(self) -> Reads:
        """What it reads besides the similarities and the positives, with its options; nothing by default."""
        return Reads()

    @abstractmethod
    def value(self, batch: Batch) -> LossValue:
        """The loss of a batch: a scalar, or ``(i2t, t2i)`` with ``reduction="none"``.

        Raises:
            ValueError: If the batch lacks something that the loss reads.
        """

    @property
    def shared(self) -> SharedOptions:
        """The options of a :class:`BlockLoss` that replaces it for some time, such as its warm-up."""
        return {"reduction": self.reduction, "extra_positives": "mask", "mask_above": None}

    @property
    def first_margin(self) -> float:
        """Margin of the sum of hinges that may warm it up, see :func:`rungwise.losses.warm_up`."""
        return 0.2

    @property
    def rests_at(self) -> float | None:
        """Loss of a pair while all vectors are alike, if training is known to rest there; else None."""
        return None

    def cancelled(self, place: str, facts: BlockFacts) -> Iterator[Cancelled]:
        """Settings of the loss that cannot act in a run; none by default.

        Args:
            place: Setting that holds the loss, such as ``loss`` or ``loss.losses[0]``.
            facts: What is known of the batches.
        """
        yield from ()

    def cancelled_by_degrees(self, place: str, own: Degrees, others: Degrees) -> Iterator[Cancelled]:
        """Settings of the loss that cannot act with the degrees of a relevance source; none by default.

        Args:
            place: Setting that holds the loss.
            own: (n,) sampled degrees of training captions for their own pictures.
            others: (m,) sampled degrees of training captions for other pictures, at least one.
        """
        yield from ()

    def of_lists(self, i2t: Tensor, t2i: Tensor | None = None) -> LossValue:
        """The loss of lists that were drawn before, if :attr:`reads_lists`.

        Args:
            i2t: (T, K + 1) similarities of image queries with their captions, the relevant one first.
            t2i: (T, K + 1) similarities of caption queries with their images; None counts as 0.

        Raises:
            ValueError: If it is a loss of blocks only.
        """
        raise ValueError(f"{type(self).__name__} is a loss of blocks, not of lists")

    def pairs_to_encode(self, batch_size: int) -> int:
        """Number n >= B of pairs that a step encodes for a mini-batch of B pairs.

        The n - B further pairs are only candidates, which the loss wants: a step draws them from the training set and
        passes ``queries=B``.
        """
        return batch_size

    def forward(
        self,
        similarity: Tensor,
        relevance: Tensor | ArrayLike | None = None,
        positives: Tensor | ArrayLike | None = None,
        *,
        image_similarity: Tensor | ArrayLike | None = None,
        text_similarity: Tensor | ArrayLike | None = None,
        queries: int | None = None,
    ) -> LossValue:
        """The loss of a block.

        All but ``similarity`` may be numpy arrays or lists too. They are brought to its device, and degrees to the type
        in which it is computed.

        Args:
            similarity: (images, captions), any float type.
            relevance: (images, captions) degrees, if the loss reads them.
            positives: (images, captions) bool, or 0 and 1; needed where the block is not square.
            image_similarity: (images, images), if the loss reads similarities within a modality.
            text_similarity: (captions, captions), if the loss reads similarities within a modality.
            queries: B, for a square block: its first B pairs are queries, and the others only candidates; None takes
                all as queries.

        Returns:
            A scalar, or ``(i2t, t2i)`` of (images,) and (captions,) with ``reduction="none"``; (B,) both with
            ``queries=B``.

        Raises:
            ValueError: If shapes differ, something that is needed was not given, ``similarity`` is no tensor, or an
                array holds what cannot be a degree or a truth value.
        """
        if not isinstance(similarity, Tensor):
            raise ValueError(
                f"similarity ({type(similarity).__name__}) is no tensor, and takes no gradient: pass a tensor, such as"
                " torch.as_tensor(similarity)"
            )
        images, captions = similarity.shape if similarity.ndim == 2 else (0, 0)  # other shapes are refused below
        block = images, captions
        return self.value(
            WholeBatch(
                similarity,
                degrees_like(similarity, "relevance", relevance, block),
                positives_like(similarity, "positives", positives, block),
                degrees_like(similarity, "image_similarity", image_similarity, (images, images)),
                degrees_like(similarity, "text_similarity", text_similarity, (captions, captions)),
                queries,
            )
        )

    def extra_repr(self) -> str:
        """All settings with their present values, as in the call that makes the loss."""
        return settings_of(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"


class BlockLoss(Loss):
    """A loss of a block of similarities: the losses of both sides' queries, added.

    A family implements :meth:`per_query`; one that reads more than similarities extends :attr:`reads`. Blocks in half
    precision are computed in float32; hinges have gradient 0 at their kink; among tied candidates the first takes the
    gradient. Relevance should be finite: a degree that is nan counts as irrelevant where degrees are compared with a
    bound (``mask_above``, :class:`~rungwise.losses.Ladder`, :class:`~rungwise.losses.AdaptiveListwise`) and makes the
    loss nan where they are used in arithmetic.

    The papers (VSE++ section 2.1; ConVSE, Eq. 7) and the authors' programs count other captions of an image in the
    batch as negatives, which is ``extra_positives="keep"``; the default masks them.

    Args:
        reduction: ``"sum"`` over the queries of both sides; ``"mean"``, the same sum divided by the number of pairs;
            ``"none"``, the per-query vectors ``(i2t, t2i)`` of lengths (images,) and (captions,).
        extra_positives: Other captions of an image in a square block: ``"mask"`` leaves them out, ``"keep"`` takes them
            as negatives, as the papers and the authors' programs do, ``"pair"`` as pairs of their own.
        mask_above: Relevance from which negatives are masked; None masks nothing by relevance.

    Attributes:
        needs_negatives: Whether a query without negatives loses nothing.

    >>> import torch
    >>> class Attraction(BlockLoss):
    ...     def per_query(self, side):
    ...         return side.sum_per_query(1 - side.of_pairs(side.similarity))
    >>> Attraction(reduction="none")(torch.tensor([[0.5, 0.0], [0.0, 1.0]]))
    (tensor([0.5000, 0.0000]), tensor([0.5000, 0.0000]))
    """

    needs_negatives: ClassVar[bool] = False

    def __init__(
        self,
        *,
        reduction: Reduction = "sum",
        extra_positives: ExtraPositives = "mask",
        mask_above: float | None = None,
    ) -> None:
        super().__init__()
        require("reduction", reduction, Reduction)
        require("extra_positives", extra_positives, ExtraPositives)
        self.reduction: Reduction = reduction
        self.extra_positives: ExtraPositives = extra_positives
        self.mask_above = mask_above

    @property
    def reads(self) -> Reads:
        """Relevance where ``mask_above`` is set; a family adds its own."""
        return Reads(relevance=self.mask_above is not None)

    @property
    def shared(self) -> SharedOptions:
        """The loss's own options."""
        return {
            "reduction": self.reduction,
            "extra_positives": self.extra_positives,
            "mask_above": self.mask_above,
        }

    def cancelled(self, place: str, facts: BlockFacts) -> Iterator[Cancelled]:
        """A batch without negatives; and of lists, the options of a block."""
        if facts.lists:
            options = {"extra_positives": (self.extra_positives, "mask"), "mask_above": (self.mask_above, None)}
            for name, (value, usual) in options.items():
                if value != usual:
                    yield Cancelled(
                        f"{place}.{name} {value} changes nothing with a sampler of lists, which names each query's"
                        " candidates; leave it out, or choose another sampler"
                    )
        elif self.needs_negatives and self.pairs_to_encode(facts.pairs) < 2:
            yield Cancelled(
                f"batch_size {facts.pairs} leaves {place}.kind {kind_of(type(self))} no negatives, so that it is 0 in"
                " every step; set batch_size to 2 or more",
                refused=True,
            )

    def cancelled_by_degrees(self, place: str, own: Degrees, others: Degrees) -> Iterator[Cancelled]:
        """A bound of relevance that masks all negatives, or none."""
        if self.mask_above is None:
            return
        if not (others >= self.mask_above).any():
            yield Cancelled(
                f"{place}.mask_above {self.mask_above:g} masks nothing: the highest of {len(others):,} sampled degrees"
                f" of data.relevance is {others.max():.4g}; lower it, or leave it out"
            )
        elif (others >= self.mask_above).all():
            yield Cancelled(
                f"{place}.mask_above {self.mask_above:g} masks every negative: the lowest of {len(others):,} sampled"
                f" degrees of data.relevance is {others.min():.4g}; raise it"
            )

    @abstractmethod
    def per_query(self, side: BlockSide) -> Tensor:
        """(Q,) loss of each query of one side."""

    def value(self, batch: Batch) -> LossValue:
        """The reduced sum of both sides' losses."""
        i2t, t2i = batch.sides(self.reads, self.extra_positives, self.mask_above)
        return self.reduce(self.per_query(i2t), self.per_query(t2i), batch.pairs(i2t))

    def reduce(self, i2t: Tensor, t2i: Tensor, pairs: int) -> LossValue:
        """Combine the per-query values of both sides by ``reduction``; ``pairs`` is the number of pairs."""
        if self.reduction == "none":
            return i2t, t2i
        total = i2t.sum() + t2i.sum()
        return total / max(pairs, 1) if self.reduction == "mean" else total
