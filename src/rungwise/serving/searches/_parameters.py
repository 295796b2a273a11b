"""Parameters of a search over HTTP."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from pydantic import BaseModel

from rungwise.core import Limits
from rungwise.index import SearchOptions, Where
from rungwise.index.filters import parse_where

MAX_RESULTS = 500
"""Largest k of a request."""

MAX_OFFSET = 10_000
"""Largest offset of a request; whoever wants more must narrow the search."""

_MOST_PICTURES = 16

K = Annotated[int, Query(ge=1, le=MAX_RESULTS, description="How many results; more than there are means all.")]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET, description="How many of the best are passed over.")]
Filter = Annotated[
    str,
    Query(
        max_length=Limits.query_characters,
        description="Which pictures may be found: `taken == '2020-05' and tags has 'beach'`.",
    ),
]
Ids = Annotated[list[str], Query(max_length=_MOST_PICTURES)]
Weights = Annotated[list[float], Query(max_length=_MOST_PICTURES)]
Ends = Annotated[bool, Query(description="Whether it is judged where relevance ends.")]


class SearchParameters(BaseModel):
    """Parameters of a search."""

    q: Annotated[
        str,
        Query(max_length=Limits.query_characters, description='Words, or words and weights: `"beach" - "people"`.'),
    ] = ""
    k: K = 24
    offset: Offset = 0
    where: Filter = ""
    like: Annotated[Ids, Query(description="Ids of pictures that results are to be like.")] = []
    like_weight: Annotated[Weights, Query(description="How much each of `like` counts; 1 unless given.")] = []
    unlike: Annotated[Ids, Query(description="Ids of pictures that they are not to be like.")] = []
    picture: Annotated[Ids, Query(description="Pictures that were sent to `/pictures`.")] = []
    picture_weight: Annotated[Weights, Query(description="The same of `picture`.")] = []
    fold: Annotated[bool, Query(description="Whether near-duplicates are shown as one.")] = True
    diversity: Annotated[float, Query(ge=0, le=1, description="0: the best. 1: those that differ most.")] = 0.0
    words: Annotated[
        Literal["auto", "on", "off"], Query(description="Whether words of captions and columns are searched too.")
    ] = "auto"
    end: Ends = True
    favourites: Annotated[bool, Query(description="Whether favourites alone may be found.")] = False
    typed: Annotated[
        bool, Query(description="Whether a person typed the words; a server that keeps queries keeps no others.")
    ] = True

    @property
    def has_pictures(self) -> bool:
        """Whether results are to be like pictures, or unlike them."""
        return bool(self.like or self.unlike or self.picture)

    @property
    def is_new_text(self) -> bool:
        """Whether a person typed words and nothing else, and asks for the first answer."""
        return self.typed and not self.has_pictures and self.offset == 0

    @property
    def asks(self) -> bool:
        """Whether there is anything to search for."""
        return bool(self.q.strip()) or self.has_pictures

    @property
    def options(self) -> SearchOptions:
        """Options of the search."""
        return SearchOptions(fold_duplicates=self.fold, diversity=self.diversity, words=self.words, end=self.end)


def filter_of(where: str) -> Where | None:
    """The filter that a request names; None without one."""
    return parse_where(where) if where.strip() else None
