"""How an epoch is cut into batches, as typed data that a configuration names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rungwise.core.configuration import STRICT, AtLeastOne, Bounded, by_name, on_command_line
from rungwise.core.errors import UserError
from rungwise.relevance.base import Relevance
from rungwise.training.batches.epochs import epoch_batches
from rungwise.training.batches.samplers import (
    label_lists,
    one_caption_per_image,
    relevance_aware_batches,
    somewhat_relevant,
)

Positions = NDArray[np.int64]
Epoch = Callable[[int], Sequence[Any]]
"""Number of an epoch, from 0, to its batches: positions of captions, each of which comes with its image; or lists."""


@dataclass(frozen=True)
class Drawn:
    """What batches are drawn from.

    Attributes:
        lengths: (pairs,) of each caption, as the model reads it.
        image: (pairs,) which image each caption has, counted from 0.
        labels: (images,) class labels of each image; empty where there are none.
        relevance: Degrees by positions among these images and captions; None where nothing reads them.
        batch_size: Pairs a batch.
        seed: Of the run.
    """

    lengths: Positions
    image: Positions
    labels: Sequence[Sequence[str]]
    relevance: Relevance | None
    batch_size: int
    seed: int


class Sampler(Bounded, ABC):
    """Which pairs meet in a batch.

    Attributes:
        needs_relevance: It reads relevance degrees.
        draws_lists: Its batches are lists of candidates instead of blocks.
    """

    needs_relevance: ClassVar[bool] = False
    draws_lists: ClassVar[bool] = False
    kind: str

    @abstractmethod
    def epochs(self, drawn: Drawn) -> Epoch:
        """The batches of every epoch; they depend on the arguments alone, so that a resumed epoch repeats them.

        Raises:
            UserError: If the pairs or the options do not allow it.
        """


@dataclass(frozen=True)
class Shuffled(Sampler):
    """At random (VSE++ and the other papers).

    Attributes:
        kind: Names the sampler in YAML.
    """

    __pydantic_config__ = STRICT

    kind: Literal["shuffled"] = "shuffled"

    def epochs(self, drawn: Drawn) -> Epoch:
        """See :class:`Sampler`."""
        return ByLength(pool=1).epochs(drawn)


@dataclass(frozen=True)
class ByLength(Sampler):
    """Captions of similar length meet, which needs less padding and is quicker on a CPU.

    Attributes:
        kind: Names the sampler in YAML.
        pool: Batches that are sorted by length together; 1 leaves plain random batches.
    """

    __pydantic_config__ = STRICT

    kind: Literal["by_length"] = "by_length"
    pool: AtLeastOne = 20

    def epochs(self, drawn: Drawn) -> Epoch:
        """See :class:`Sampler`."""
        return lambda epoch: epoch_batches(
            drawn.lengths, drawn.batch_size, seed=drawn.seed, epoch=epoch, pool=self.pool
        )


@dataclass(frozen=True)
class OneCaptionPerImageBatches(Sampler):
    """No two captions of one image meet.

    Attributes:
        kind: Names the sampler in YAML.
    """

    __pydantic_config__ = STRICT

    kind: Literal["one_caption_per_image"] = "one_caption_per_image"

    def epochs(self, drawn: Drawn) -> Epoch:
        """See :class:`Sampler`."""
        return lambda epoch: one_caption_per_image(drawn.image, drawn.batch_size, seed=drawn.seed, epoch=epoch)


@dataclass(frozen=True)
class RelevanceAware(Sampler):
    """Pairs that describe each other somewhat meet, so that the rungs of a ladder are not empty.

    Attributes:
        kind: Names the sampler in YAML.
        at_least: Least relevance degree of pairs that are brought together; it belongs to the relevance source.
        below: Degrees must be lower than this; None sets no bound.
        keep: Near pairs that are remembered for each pair, drawn at random.
        group: Pairs that a group begins with at most.
    """

    __pydantic_config__ = STRICT
    needs_relevance: ClassVar[bool] = True

    kind: Literal["relevance_aware"] = "relevance_aware"
    at_least: float = 0.5
    below: float | None = None
    keep: int = 32
    group: AtLeastOne = 4

    def epochs(self, drawn: Drawn) -> Epoch:
        """See :class:`Sampler`."""
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
        kind: Names the sampler in YAML.
        irrelevant: K, candidates of each query that share no label with it.
    """

    __pydantic_config__ = STRICT
    draws_lists: ClassVar[bool] = True

    kind: Literal["label_lists"] = "label_lists"
    irrelevant: AtLeastOne = 5

    def epochs(self, drawn: Drawn) -> Epoch:
        """See :class:`Sampler`."""
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
"""A field of a configuration: a sampler's name (``shuffled``), or a mapping with its options."""
