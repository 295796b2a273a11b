"""The base of the configurations of all sources."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from rungwise.core import STRICT, UserError
from rungwise.core.compute import Share, in_turn
from rungwise.core.output import short_repr
from rungwise.core.text import refuse_idle
from rungwise.data import ImageCaptions
from rungwise.relevance._base import Degrees, Positions, Reference
from rungwise.relevance.config._cache import Recipe, made_once


def _silent(_: str) -> None:
    pass


def _uncounted(_: str, __: int, ___: int) -> None:
    pass


@dataclass(frozen=True)
class Building:
    """Settings and callbacks for building a source.

    Attributes:
        train: Names of the splits that count as training data.
        whole: The collection that the data are a part of, whose training split can be asked for; None: the data.
        say: Takes a line that the user should read, such as the device in use.
        progress: Takes a line on what is done so far, many times a second; show the latest now and then.
        work: Takes the name of what is counted, how many more are done, and the total.
        cache: Folder where numbers that sources compute of captions are kept and found again; None keeps nothing.
        frequencies: Whose captions count how rare words are, where a source does not say it; None as the source has it.
        option: The name of an option in messages, by its name in the configuration.
        share: Executor of work that can be done for some captions at a time.
    """

    train: Sequence[str] = ("train",)
    whole: ImageCaptions | None = None
    say: Callable[[str], None] = _silent
    progress: Callable[[str], None] = _silent
    work: Callable[[str, int, int], None] = _uncounted
    cache: Path | None = None
    frequencies: Literal["collection", "train"] | None = None
    option: Callable[[str], str] = str
    share: Share = in_turn

    __repr__ = short_repr


@dataclass(frozen=True)
class SourceConfig(ABC):
    """A source of relevance degrees and its options.

    Attributes:
        kind: The name of the source in YAML and on the command line.

    >>> from rungwise.relevance.config._sources import source_config
    >>> config = source_config({"kind": "tfidf", "tokenizer": "unicode"})
    >>> config.build(ImageCaptions(("a", "b"), ("a dog", "a cat"), np.array([0, 1]))).dense()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """

    __pydantic_config__ = STRICT
    NEEDS: ClassVar[Mapping[str, str]] = {}
    """Options without a default, and what to give for each."""
    IN_SHARDS: ClassVar[bool] = False
    """Whether the best candidates can be found shard by shard (:mod:`rungwise.relevance.precomputed._shards`)."""

    kind: str = field(default="", init=False)

    def build(self, data: ImageCaptions, *, building: Building | None = None) -> Degrees:
        """The source built on a collection; built on ``data.split("train")`` it knows the training split alone.

        Args:
            data: Images and captions.
            building: Settings and callbacks; None prints nothing.

        Raises:
            UserError: If there are no captions, an option is missing, changes nothing or does not fit, or what the
                source needs cannot be read.
        """
        if not data.captions:
            raise UserError(f"{data.name}: there are no captions; relevance needs some")
        building = building or Building()
        refuse_idle(self, option=building.option, where=f"{self.kind}: ")
        for name, what in self.missing().items():
            raise UserError(f"relevance: {self.kind} needs {building.option(name)}: {what}")
        if advice := self.advice(data, building):
            building.say(f"{self.kind}: {advice}")
        if building.cache is None:
            return self._made(data, building)
        recipe = self._recipe(data, building)
        return made_once(self.kind, data, recipe, building.cache, lambda: self._made(data, building), building.say)

    def _made(self, data: ImageCaptions, building: Building) -> Degrees:
        made: Any = self.make(data, building)
        if not isinstance(made, Degrees):
            own = type(self)
            raise UserError(
                f"the source {self.kind} ({own.__module__}.{own.__qualname__}): make gives {type(made).__name__};"
                " return degrees, such as rungwise.relevance.as_degrees(array, data)"
            )
        return made

    def advice(self, data: ImageCaptions, building: Building) -> str:
        """What is wrong with these options for these captions, and the remedy; empty where nothing is."""
        return ""

    def missing(self) -> dict[str, str]:
        """Options that must be given and were not, with what to give for each."""
        return {name: what for name, what in self.NEEDS.items() if not getattr(self, name)}

    @property
    def pairs_are_costly(self) -> bool:
        """Whether every pair of captions costs a run of a model."""
        return False

    def _recipe(self, data: ImageCaptions, building: Building) -> Recipe | None:
        """How the source's numbers are kept and restored; None where keeping them would not pay."""
        return None

    @abstractmethod
    def make(self, data: ImageCaptions, building: Building) -> Degrees: ...


@dataclass(frozen=True)
class CaptionsConfig(SourceConfig):
    """What sources of captions have in common.

    Attributes:
        leave_one_out: A caption is no reference for itself.
    """

    leave_one_out: bool = False


@dataclass(frozen=True)
class CaptionPairsConfig(CaptionsConfig):
    """What sources that compare captions with captions have in common.

    Attributes:
        reference: Which captions of a picture count: the most alike (max), all (mean), or its first (paired).
    """

    reference: Reference = "max"

    def of_captions(self, data: ImageCaptions) -> dict[str, Any]:
        """Keyword arguments of a :class:`rungwise.relevance.CaptionPairSource`."""
        return {"reference": self.reference, "leave_one_out": self.leave_one_out, "images": len(data)}


def training_images(data: ImageCaptions, train: Sequence[str] = ("train",)) -> Positions:
    """Positions of the images of the training splits; none where the data have no such split."""
    return np.flatnonzero([split in train for split in data.splits]).astype(np.int64)


class Counter:
    """Turns counts of finished items into a line on the progress so far.

    Args:
        building: Receiver of the line and of the count.
        what: Name of what is counted.
        total: Number of items to come; 0 where that is not known, and then no work is reported.
    """

    def __init__(self, building: Building, what: str, total: int = 0) -> None:
        self._building = building
        self._what = what
        self._total = total
        self._began = time.monotonic()
        self._done = 0

    def __call__(self, more: int) -> None:
        """Count ``more`` and say how many there are."""
        self._done += more
        if self._total:
            self._building.work(self._what, more, self._total)
        rate = self._done / max(1e-9, time.monotonic() - self._began)
        self._building.progress(f"{self._done:,} {self._what}, {rate:.1f}/s")
