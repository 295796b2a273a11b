"""Whether a new calibration may take the place of what judges now, by queries that it did not see."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration._judgement import Values
from rungwise.calibration._logistic import fields_of, numbers_of
from rungwise.core import UserError
from rungwise.core.output import short_repr

_HARM, _HARM_OF_NOTHING = 1.0, 5.0
"""Losses of CutF1, in percentage points, from which on a change does harm: of unrelated texts one in twenty, since such
a text is answered or not, and of other queries."""
NOTHING = "unrelated"
"""Kind of the queries that nothing is fitted to: texts to which no candidate is relevant."""
_DRAWS = 2000
_LONGEST, _MOST_QUERIES = 40, 1 << 53


@dataclass(frozen=True)
class KindComparison:
    """Two calibrations compared on the held-out queries of one kind.

    Attributes:
        kind: Name of the kind.
        queries: Number of queries.
        before: Mean CutF1 of what judged before, in percent.
        after: Mean CutF1 of the new calibration.
        low: Lower end of the 95 % interval of the difference, paired by query.
        high: Upper end of it.
        exactly: Share of the hits in the first rung of the new calibration that are relevant; NaN if there are none.
        close: The same for the second rung.
    """

    kind: str
    queries: int
    before: float
    after: float
    low: float
    high: float
    exactly: float
    close: float

    @property
    def harmless(self) -> bool:
        """Whether the interval excludes harm."""
        return self.low >= -(_HARM_OF_NOTHING if self.kind == NOTHING else _HARM)

    @classmethod
    def of(cls, kind: str, before: Values, after: Values, groups: NDArray[np.int64], *names: float) -> KindComparison:
        """Compare (queries,) CutF1 of both; ``names`` are the shares of right hits in the first and second rung."""
        low, high = interval(after - before, groups)
        exactly, close = names
        return cls(kind, len(before), float(before.mean()), float(after.mean()), low, high, exactly, close)

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON; a share that is not known is None."""
        return {name: None if value != value else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, value: object) -> KindComparison:
        """Read values of :meth:`to_json`; UserError, without the file's name, for others."""
        parts = fields_of(value, tuple(one.name for one in fields(cls)), "'kinds'")
        kind, queries, *numbers = parts.values()
        if not isinstance(kind, str) or not kind.isprintable() or len(kind) > _LONGEST or type(queries) is not int:
            raise UserError("'kinds' have no name or no number of queries")
        known = numbers_of([0.0 if number is None else number for number in numbers], "'kinds'").tolist()
        before, after, low, high, exactly, close = known
        f1, shares = (before, after), (exactly, close)
        if not (
            0 < queries <= _MOST_QUERIES
            and all(0 <= one <= 100 for one in f1)
            and low <= high
            and all(0 <= one <= 1 for one in shares)
            and None not in numbers[:4]
        ):
            raise UserError("'kinds' are out of range")
        right = (math.nan if one is None else each for one, each in zip(numbers[4:], shares, strict=True))
        return cls(kind, queries, *f1, low, high, *right)


@dataclass(frozen=True)
class ShownFor:
    """What is shown for a query.

    Attributes:
        text: The query.
        before: Number of hits shown by what judges now.
        after: Number of hits shown by the new calibration.
        right: Number of relevant ones among these.
        relevant: Number of relevant candidates.
    """

    text: str
    before: int
    after: int
    right: int
    relevant: int


@dataclass(frozen=True)
class CalibrationComparison:
    """A new calibration compared with what judges now.

    Attributes:
        kinds: The comparison for each kind of query.
        reason: Why nothing could be compared; empty where it was.
        named_before: Shares of the shown hits in the rungs 1, 2, 3, as it is now.
        named_after: The same with the new calibration.
        examples: What is shown for each of the queries.
    """

    kinds: tuple[KindComparison, ...] = ()
    reason: str = ""
    named_before: tuple[float, float, float] = (0.0, 0.0, 0.0)
    named_after: tuple[float, float, float] = (0.0, 0.0, 0.0)
    examples: tuple[ShownFor, ...] = ()

    __repr__ = short_repr

    @property
    def harmless(self) -> bool:
        """Whether no kind of query can be said to lose."""
        return bool(self.kinds) and all(kind.harmless for kind in self.kinds)


def interval(differences: Values, groups: NDArray[np.int64]) -> tuple[float, float]:
    """95 % interval of the mean of (queries,) differences, bootstrapped over groups.

    >>> interval(np.ones(30), np.arange(30))
    (1.0, 1.0)
    """
    _, group = np.unique(groups, return_inverse=True)
    count = int(group.max()) + 1
    sums, sizes = np.bincount(group, differences), np.bincount(group)
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), _DRAWS)
    low, high = np.quantile((drawn @ sums) / (drawn @ sizes), [0.025, 0.975])
    return float(low), float(high)
