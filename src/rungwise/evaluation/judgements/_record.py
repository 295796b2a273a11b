"""The record of human judgements in a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from rungwise.core.formats import IN_FILE, Number
from rungwise.core.output import short_repr


@dataclass(frozen=True)
class JudgementRecord:
    """Human judgements that a result counts.

    Attributes:
        hashes: SHA-256 of each judgement file, by its name.
        graders: Names of those who judged.
        right_from: The mean grade from which a pair counts as right.
        called_right: Number of pairs that people called right.
        added: Per direction, the number of right answers beyond the annotation's, over all galleries.
        before: Numbers by name with the annotation alone; empty where they were not measured.
    """

    __pydantic_config__ = IN_FILE

    hashes: Mapping[str, str]
    graders: tuple[str, ...]
    right_from: float
    called_right: Annotated[int, Field(ge=0)]
    added: Mapping[str, int]
    before: Mapping[str, Number] = field(default_factory=dict)

    __repr__ = short_repr
