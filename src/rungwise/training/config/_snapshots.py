"""Configuration of the choice of the best epoch, and of early stopping."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from rungwise.core import STRICT, Bounded, Cancelled, Natural, UserError, short_text
from rungwise.evaluation import protocol_named
from rungwise.metrics import DIRECTIONS, PERCENT, RANK, Direction, Measure, Total, parse
from rungwise.relevance.config import source_config


def as_text(value: Any) -> Any:
    """A source with options, a mapping in YAML, as one line of text."""
    return short_text(source_config(value)) if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class Choice(Bounded):
    """The measure on the validation split that chooses a model.

    Attributes:
        measure: Any measure, such as rsum, nDCG@10 or t2i/CS@100; without a direction, the mean of both.
        protocol: How the validation split is cut into galleries, and which answers are right, as in rungwise evaluate,
            such as full, labels or one-caption-per-image.

    >>> Choice(measure="t2i/CS@100").name, Choice(measure="MAP", protocol="labels").name
    ('t2i/CS@100', 'labels/MAP')
    """

    __pydantic_config__ = STRICT

    measure: str = "rsum"
    protocol: str = "full"

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            protocol_named(self.protocol)
        except UserError as error:
            raise UserError(f"snapshot.protocol: {error}") from None
        self.chosen  # noqa: B018, a measure that is not known is refused at once

    @cached_property
    def chosen(self) -> Chosen:
        """The parsed measure."""
        way, _, rest = self.measure.rpartition("/")
        try:
            if way and way not in DIRECTIONS:
                raise UserError(f"{way!r} is no direction; write i2t/{rest}, t2i/{rest}, or {rest} for the mean")
            measure = parse(rest)
            if way and isinstance(measure, Total):
                raise UserError(f"{measure} adds both directions; write {measure} alone")
        except UserError as error:
            raise UserError(f"snapshot.measure: {error}") from None
        return Chosen(measure, next((one for one in DIRECTIONS if one == way), None))

    @property
    def name(self) -> str:
        """Name of the number in the history and on the terminal."""
        prefix = "" if self.protocol == "full" else f"{self.protocol}/"
        return f"{prefix}{self.chosen}"


@dataclass(frozen=True)
class BestEpoch(Choice):
    """The choice of the best epoch by a measure of the validation split.

    Attributes:
        measure: Any measure, such as rsum, nDCG@10 or t2i/CS@100; without a direction, the mean of both.
        protocol: How the validation split is cut into galleries, and which answers are right, as in rungwise evaluate,
            such as full, labels or one-caption-per-image.
        patience: Number of epochs without a better one after which the run ends; 0 never ends it early.
        relevance: Degrees of the validation split for measures that read them: a source or a folder, as in
            data.relevance, which is taken where this is empty.
    """

    __pydantic_config__ = STRICT
    place: ClassVar[str] = "snapshot"

    patience: Natural = 0
    relevance: Annotated[str, BeforeValidator(as_text)] = ""

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """Degrees that the measure does not read."""
        if self.relevance and not self.chosen.measure.graded:
            yield Cancelled(
                f"{place}.relevance {self.relevance} is not read: {place}.measure {self.measure} reads no degrees;"
                f" leave it out, or set {place}.measure to such as nDCG@10"
            )


@dataclass(frozen=True)
class Chosen:
    """A measure of one direction, or of both together.

    Attributes:
        measure: The measure.
        direction: Direction of its queries; None takes the mean of both, or the sum of a total such as rsum.

    >>> chosen = BestEpoch(measure="i2t/MedR").chosen
    >>> str(chosen), chosen.better(3.0, 5.0), chosen.better(5.0, 5.0), chosen.better(9.0, None)
    ('i2t/MedR', True, False, True)
    """

    measure: Measure | Total
    direction: Direction | None

    def __str__(self) -> str:
        return f"{self.direction}/{self.measure}" if self.direction else str(self.measure)

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Directions whose queries are measured."""
        return (self.direction,) if self.direction else DIRECTIONS

    @property
    def takes_gaps(self) -> bool:
        """Whether the measure accepts pairs without a degree."""
        return isinstance(self.measure, Measure) and self.measure.takes_gaps

    def number(self, numbers: Mapping[str, float]) -> float:
        """The value of the measure, among the numbers of an evaluation by canonical name."""
        if isinstance(self.measure, Total):
            return numbers[str(self.measure)]
        return sum(numbers[f"{way}/{self.measure}"] for way in self.directions) / len(self.directions)

    def better(self, value: float, best: float | None) -> bool:
        """Whether a value is better than the best one so far; any value is better than None, and a number than NaN."""
        if best is None or best != best:
            return best is None or value == value
        return value > best if self.measure.higher_is_better else value < best


def shown(measure: str, value: float) -> str:
    """A value of the measure, named as in :attr:`BestEpoch.name`, formatted for people.

    >>> shown("rsum", 412.345), shown("t2i/CS@100", 0.25), shown("labels/MAP", 26.5)
    ('412.3', '0.2500', '26.5')
    """
    unit = parse(measure.rpartition("/")[2]).unit
    return f"{value:.1f}" if unit in (PERCENT, RANK) else f"{value:.4f}"
