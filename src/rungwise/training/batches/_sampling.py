"""Samplers: how an epoch is cut into batches, as typed data that a configuration names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rungwise.core import STRICT, AtLeastOne, Bounded, Cancelled, UserError, by_name, on_command_line
from rungwise.core.output import short_repr
from rungwise.relevance import Relevance
from rungwise.training.batches._epochs import epoch_batches
from rungwise.training.batches._samplers import (
    label_lists,
    one_caption_per_image,
    relevance_aware_batches,
    somewhat_relevant,
)

Positions = NDArray[np.int64]
Epoch = Callable[[int], Sequence[Any]]
"""Function from an epoch's number, from 0, to its batches: positions of captions (each with its image), or lists."""


@dataclass(frozen=True)
class Drawn:
    """The pairs that batches are drawn from.

    Attributes:
        lengths: (pairs,) length of each caption, as the model reads it.
        image: (pairs,) number of each caption's image, from 0.
        labels: (images,) class labels of each image; empty where there are none.
        relevance: Degrees by positions among these images and captions; None where nothing reads them.
        batch_size: Number of pairs in a batch.
        seed: Seed of the run.
    """

    lengths: Positions
    image: Positions
    labels: Sequence[Sequence[str]]
    relevance: Relevance | None
    batch_size: int
    seed: int

    __repr__ = short_repr


class Sampler(Bounded, ABC):
    """Chooses which pairs meet in a batch.

    Attributes:
        needs_relevance: Whether it reads relevance degrees.
        draws_lists: Whether its batches are lists of candidates and not blocks.
    """

    needs_relevance: ClassVar[bool] = False
    draws_lists: ClassVar[bool] = False
    kind: str

    def cancelled_by_degrees(self, place: str, others: NDArray[np.float32]) -> Iterator[Cancelled]:
        """Options that cannot act with (m,) sampled degrees of captions for other pictures; none by default."""
        yield from ()

    @abstractmethod
    def epochs(self, drawn: Drawn) -> Epoch:
        """The batches of every epoch; they depend on the arguments alone, so that a resumed epoch repeats them."""


@dataclass(frozen=True)
class Shuffled(Sampler):
    """At random (VSE++ and the other papers).

    Attributes:
        kind: Name of the sampler in YAML.
    """

    __pydantic_config__ = STRICT

    kind: Literal["shuffled"] = "shuffled"

    def epochs(self, drawn: Drawn) -> Epoch:
        """Random batches."""
        return ByLength(pool=1).epochs(drawn)


@dataclass(frozen=True)
class ByLength(Sampler):
    """Captions of similar length meet, which needs less padding and is quicker on a CPU.

    Attributes:
        kind: Name of the sampler in YAML.
        pool: Number of batches that are sorted by length together; 1 leaves plain random batches.
    """

    __pydantic_config__ = STRICT

    kind: Literal["by_length"] = "by_length"
    pool: AtLeastOne = 20

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """A pool of one batch, in which nothing is sorted."""
        if self.pool == 1:
            yield Cancelled(
                f"{place}.pool 1 sorts nothing by length: {place}.kind by_length is then shuffled; set {place}.pool to"
                " 2 or more, or sampler to shuffled"
            )

    def epochs(self, drawn: Drawn) -> Epoch:
        """Batches of similar length."""
        return lambda epoch: epoch_batches(
            drawn.lengths, drawn.batch_size, seed=drawn.seed, epoch=epoch, pool=self.pool
        )


@dataclass(frozen=True)
class OneCaptionPerImageBatches(Sampler):
    """No two captions of one image meet.

    Attributes:
        kind: Name of the sampler in YAML.
    """

    __pydantic_config__ = STRICT

    kind: Literal["one_caption_per_image"] = "one_caption_per_image"

    def epochs(self, drawn: Drawn) -> Epoch:
        """Batches without two captions of one image."""
        return lambda epoch: one_caption_per_image(drawn.image, drawn.batch_size, seed=drawn.seed, epoch=epoch)


@dataclass(frozen=True)
class RelevanceAware(Sampler):
    """Pairs that describe each other somewhat meet, so that the rungs of a ladder are not empty.

    Attributes:
        kind: Name of the sampler in YAML.
        at_least: Least relevance degree of pairs that are brought together; it depends on the relevance source.
        below: Upper bound (exclusive) of degrees; None sets no bound.
        keep: Number of near pairs that are kept for each pair, drawn at random.
        group: Largest number of pairs that a group starts with.
    """

    __pydantic_config__ = STRICT
    needs_relevance: ClassVar[bool] = True

    kind: Literal["relevance_aware"] = "relevance_aware"
    at_least: float = 0.5
    below: float | None = None
    keep: int = 32
    group: AtLeastOne = 4

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """Options by which no two pairs are brought together."""
        if self.below is not None and self.below <= self.at_least:
            yield Cancelled(
                f"{place}.below {self.below:g} leaves no degree from {place}.at_least {self.at_least:g} on, so that no"
                f" pairs are brought together; set {place}.below above it, or leave it out",
                refused=True,
            )
        elif self.keep < 1:
            yield Cancelled(
                f"{place}.keep {self.keep} keeps no near pair, so that no pairs are brought together; set {place}.keep"
                " to 1 or more",
                refused=True,
            )
        elif self.group == 1:
            yield Cancelled(
                f"{place}.group 1 brings no pairs together: {place}.kind relevance_aware is then shuffled; set"
                f" {place}.group to 2 or more, or sampler to shuffled"
            )

    def cancelled_by_degrees(self, place: str, others: NDArray[np.float32]) -> Iterator[Cancelled]:
        """Bounds between which no degree lies."""
        below = np.inf if self.below is None else self.below
        if not ((others >= self.at_least) & (others < below)).any():
            yield Cancelled(
                f"{place}.at_least {self.at_least:g} brings no pairs together: of {len(others):,} sampled degrees of"
                f" data.relevance, in {others.min():.4g}..{others.max():.4g}, none lies from it on"
                f"{'' if self.below is None else f' and below {self.below:g}'}; lower it"
            )

    def epochs(self, drawn: Drawn) -> Epoch:
        """Batches of groups of near pairs."""
        if drawn.relevance is None:
            raise UserError("sampler relevance_aware reads relevance degrees, and none were given; name data.relevance")
        near = somewhat_relevant(
            drawn.relevance,
            drawn.image,
            np.arange(len(drawn.image)),
            at_least=self.at_least,
            below=np.inf if self.below is None else self.below,
            keep=self.keep,
            seed=drawn.seed,
        )
        size, group, seed = drawn.batch_size, self.group, drawn.seed
        return lambda epoch: relevance_aware_batches(near, size, group=group, seed=seed, epoch=epoch)


@dataclass(frozen=True)
class LabelLists(Sampler):
    """Lists of one relevant and some irrelevant candidates by class labels (CMAL2R); a batch has batch_size queries.

    Attributes:
        kind: Name of the sampler in YAML.
        irrelevant: Number K of candidates of each query that share no label with it.
    """

    __pydantic_config__ = STRICT
    draws_lists: ClassVar[bool] = True

    kind: Literal["label_lists"] = "label_lists"
    irrelevant: AtLeastOne = 5

    def epochs(self, drawn: Drawn) -> Epoch:
        """Batches of lists."""
        return lambda epoch: list(
            label_lists(
                drawn.labels,
                drawn.image,
                queries=drawn.batch_size,
                irrelevant=self.irrelevant,
                seed=drawn.seed,
                epoch=epoch,
            )
        )


AnySampler = Annotated[
    Shuffled | ByLength | OneCaptionPerImageBatches | RelevanceAware | LabelLists,
    Field(discriminator="kind"),
    by_name,
    on_command_line(Shuffled | ByLength | OneCaptionPerImageBatches | RelevanceAware | LabelLists),
]
"""Type of a field that holds a sampler: its name (``shuffled``), or a mapping with its options."""
