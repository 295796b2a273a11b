"""The reranker of a server: a model that reads pictures and words together, reranks first hits and may explain them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rungwise.core import UserError
from rungwise.index import SearchOptions, check_reranks
from rungwise.index.query import Query
from rungwise.models import PairScorer


@dataclass(frozen=True)
class Reranker:
    """A model that reranks the first ``top`` hits of searches with words.

    Raises:
        UserError: If ``top`` is less than 1, or the model reads no pictures or no words.
    """

    model: PairScorer
    top: int = 50

    def __post_init__(self) -> None:
        if self.top < 1:
            raise UserError(f"a reranker looks at {self.top} hits; give at least 1")
        check_reranks(self.model)

    @property
    def name(self) -> str:
        """Kind of the model."""
        return self.model.kind or type(self.model).__name__

    def options_of(self, query: Query, options: SearchOptions) -> SearchOptions:
        """Options of a search by this query: a query of pictures alone is not reranked."""
        return replace(options, rerank=self.model, rerank_top=self.top) if query.has_words else options
