"""Schedules: the factor of the phase's learning rate at each place of a run.

Nothing is stored, so a resumed run has the same rates as one that was never interrupted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from rungwise.core import STRICT, BelowOne, Bounded, Cancelled, NotNegative, Share, by_name, on_command_line


class Schedule(Bounded, ABC):
    """A factor of the learning rate for each step."""

    kind: str

    @abstractmethod
    def factor(self, done: float, epochs: int) -> float:
        """The factor where ``done`` of all ``epochs`` are over; fractions count, taken at the middle of a step."""

    @property
    def of_the_whole_run(self) -> bool:
        """Whether the factor depends on the length of the run, so that a longer run has other rates from its start."""
        return True


@dataclass(frozen=True)
class PhaseSchedule(Schedule):
    """The rates of the phases unchanged, as in the papers of the VSE family.

    Attributes:
        kind: Name of the schedule in YAML.
        warm_up: Number of epochs, or part of one, on which the rate rises linearly from 0.

    >>> [PhaseSchedule(warm_up=2).factor(done, 10) for done in (0.0, 0.5, 2.0, 9.0)]
    [0.0, 0.25, 1.0, 1.0]
    """

    __pydantic_config__ = STRICT

    kind: Literal["phases"] = "phases"
    warm_up: NotNegative = 0.0

    def factor(self, done: float, epochs: int) -> float:
        """Rising during the warm-up, then 1."""
        return done / self.warm_up if done < self.warm_up else 1.0

    @property
    def of_the_whole_run(self) -> bool:
        """False."""
        return False


@dataclass(frozen=True)
class OneCycleSchedule(Schedule):
    """Up along a cosine from a small rate, then down along a cosine to 0 (Smith and Topin 2018).

    Attributes:
        kind: Name of the schedule in YAML.
        rise: Share of the steps on which the rate rises.
        start: Factor at the start.

    >>> cycle = OneCycleSchedule()
    >>> [round(cycle.factor(done, 10), 2) for done in (0.0, 1.5, 3.0, 6.5, 10.0)]
    [0.04, 0.52, 1.0, 0.5, 0.0]
    """

    __pydantic_config__ = STRICT

    kind: Literal["one_cycle"] = "one_cycle"
    rise: BelowOne = 0.3
    start: Share = 0.04

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """A start without a rise, and a rise from the top."""
        if not self.rise and self.start != OneCycleSchedule.start:
            yield Cancelled(
                f"{place}.start {self.start:g} changes nothing: {place}.rise 0 begins with the whole rate; set"
                f" {place}.rise above 0"
            )
        elif self.rise and self.start == 1:
            yield Cancelled(
                f"{place}.rise {self.rise:g} raises nothing: {place}.start 1 begins with the whole rate; set"
                f" {place}.start below 1, or {place}.rise to 0"
            )

    def factor(self, done: float, epochs: int) -> float:
        """Rising and falling along cosines."""
        place = done / epochs
        if place < self.rise:
            return self.start + (1 - self.start) * (1 - _fall(place / self.rise))
        return _fall((place - self.rise) / (1 - self.rise))


@dataclass(frozen=True)
class CosineSchedule(Schedule):
    """A linear rise, then down along a cosine (Loshchilov and Hutter 2017, without restarts).

    Attributes:
        kind: Name of the schedule in YAML.
        warm_up: Share of the steps on which the rate rises.
        floor: Factor at the end.

    >>> cosine = CosineSchedule(warm_up=0.2, floor=0.1)
    >>> [round(cosine.factor(done, 10), 2) for done in (0.0, 1.0, 2.0, 6.0, 10.0)]
    [0.0, 0.5, 1.0, 0.55, 0.1]
    """

    __pydantic_config__ = STRICT

    kind: Literal["cosine"] = "cosine"
    warm_up: BelowOne = 0.05
    floor: Share = 0.0

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """A floor at the top, from which nothing falls."""
        if self.floor == 1:
            yield Cancelled(
                f"{place}.floor 1 leaves {place}.kind cosine nothing to lower: the rate stays as it is; set"
                f" {place}.floor below 1, or schedule to phases"
            )

    def factor(self, done: float, epochs: int) -> float:
        """Rising linearly, then falling along a cosine to the floor."""
        place = done / epochs
        if place < self.warm_up:
            return place / self.warm_up
        return self.floor + (1 - self.floor) * _fall((place - self.warm_up) / (1 - self.warm_up))


AnySchedule = Annotated[
    PhaseSchedule | OneCycleSchedule | CosineSchedule,
    Field(discriminator="kind"),
    by_name,
    on_command_line(PhaseSchedule | OneCycleSchedule | CosineSchedule),
]
"""Type of a field that holds a schedule: its name (``one_cycle``) or a mapping (``{kind: cosine, warm_up: 0.1}``)."""


def _fall(share: float) -> float:
    """Half a cosine, from 1 to 0."""
    return 0.5 + 0.5 * math.cos(math.pi * share)
