"""The model that reads pictures and words together, where a server has one: it ranks first hits anew, and says why."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rungwise.core.errors import UserError
from rungwise.index.answers import SearchOptions, check_reranks
from rungwise.index.query.query import Query
from rungwise.models.contracts import PairScorer


@dataclass(frozen=True)
class Reranker:
    """A model that ranks the first hits of searches with words anew.

    Attributes:
        model: Which one.
        top: How many of the first hits it looks at.

    Raises:
        UserError: If it is to look at none, or reads no pictures or no words.
    """

    model: PairScorer
    top: int = 50

    def __post_init__(self) -> None:
        if self.top < 1:
            raise UserError(f"a reranker looks at {self.top} hits; give at least 1")
        check_reranks(self.model)

    @property
    def name(self) -> str:
        """What kind of model it is."""
        return self.model.kind or type(self.model).__name__

    def options_of(self, query: Query, options: SearchOptions) -> SearchOptions:
        """The options of a search by this query: pictures alone say nothing to such a model."""
        return replace(options, rerank=self.model, rerank_top=self.top) if query.has_words else options
