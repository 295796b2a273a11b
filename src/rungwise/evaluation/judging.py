"""What a result says of people's judgements that were counted as right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Judging:
    """Judgements of people that a result counts.

    Attributes:
        hashes: SHA-256 of each judgement file, by its name.
        graders: Who judged.
        right_from: The mean grade from which a pair counts as right.
        called_right: How many pairs people called right.
        added: Per direction, how many right answers these are more than the annotation has, over all galleries.
        before: Numbers by name with the annotation alone; empty where nobody measured them.

    >>> Judging({}, ("Ada",), 3.0, 2, {"i2t": 1, "t2i": 1}, {"i2t/R@1": math.nan}).plain()["before"]
    {'i2t/R@1': None}
    """

    hashes: Mapping[str, str]
    graders: tuple[str, ...]
    right_from: float
    called_right: int
    added: Mapping[str, int]
    before: Mapping[str, float] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "hashes": dict(self.hashes),
            "graders": list(self.graders),
            "right_from": self.right_from,
            "called_right": self.called_right,
            "added": dict(self.added),
            "before": {name: None if math.isnan(value) else value for name, value in self.before.items()},
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Judging:
        """What :meth:`plain` gave."""
        before = {name: math.nan if value is None else float(value) for name, value in plain["before"].items()}
        return cls(**{**plain, "graders": tuple(plain["graders"]), "before": before})
