"""Which epoch's model a run keeps, and when it ends early, as a configuration says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator

from rungwise.core.configuration import STRICT, short_text
from rungwise.core.errors import UserError
from rungwise.relevance.config import source_config


def as_text(value: Any) -> Any:
    """A source with options, which YAML gives as a mapping, in one line."""
    return short_text(source_config(value)) if isinstance(value, Mapping) else value


@dataclass(frozen=True)
class Snapshot:
    """The best epoch, by a measure of the validation split.

    Attributes:
        measure: Any measure, such as rsum, nDCG@10 or t2i/CS@100; without a direction, the mean of both.
        patience: The run ends after this many epochs without a better one; 0 goes on to the end.
        relevance: Degrees of the validation split for measures that read them: a source or a folder, as in
            data.relevance, which is taken where this is empty.
    """

    __pydantic_config__ = STRICT

    measure: str = "rsum"
    patience: int = 0
    relevance: Annotated[str, BeforeValidator(as_text)] = ""

    def __post_init__(self) -> None:
        if self.patience < 0:
            raise UserError(f"snapshot.patience must not be negative, got {self.patience}")
