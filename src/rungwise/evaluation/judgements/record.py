"""What a result says of people's judgements that were counted as right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from rungwise.evaluation.statistics.json_numbers import IN_FILE, Number


@dataclass(frozen=True)
class JudgementRecord:
    """Judgements of people that a result counts.

    Attributes:
        hashes: SHA-256 of each judgement file, by its name.
        graders: Who judged.
        right_from: The mean grade from which a pair counts as right.
        called_right: How many pairs people called right.
        added: Per direction, how many right answers these are more than the annotation has, over all galleries.
        before: Numbers by name with the annotation alone; empty where nobody measured them.

    >>> JudgementRecord({}, ("Ada",), 3.0, 2, {"i2t": 1, "t2i": 1}).graders
    ('Ada',)
    """

    __pydantic_config__ = IN_FILE

    hashes: Mapping[str, str]
    graders: tuple[str, ...]
    right_from: float
    called_right: Annotated[int, Field(ge=0)]
    added: Mapping[str, int]
    before: Mapping[str, Number] = field(default_factory=dict)
