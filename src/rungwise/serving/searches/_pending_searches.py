"""Searches that wait to be encoded together, and their results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UnavailableError, UserError
from rungwise.core.network import answered_within
from rungwise.core.output import short_repr
from rungwise.index import Answer, Item, Searcher, SearchOptions, Where
from rungwise.index.query import Query
from rungwise.serving.state import SearchedIndex


@dataclass(frozen=True)
class PendingSearch:
    """A search that waits to be encoded together with others."""

    served: SearchedIndex
    query: Query
    k: int
    offset: int
    where: Where | None
    options: SearchOptions


@dataclass(frozen=True)
class SearchOutcome:
    """Result of a search: the hits with remarks, and their pictures by id."""

    answer: Answer
    items: dict[str, Item]

    __repr__ = short_repr

    @property
    def nothing(self) -> bool:
        """Whether no picture fits."""
        return not self.answer.hits or (self.answer.end is not None and self.answer.end.nothing)


def searched(searches: Sequence[PendingSearch], *, seconds: float = math.inf) -> Iterator[SearchOutcome | Exception]:
    """Encode the texts of several searches in one call of their model, then run each; one may fail by itself.

    Each result is given as soon as it is there.

    Args:
        searches: The searches. While another model takes the place of the one before, they may be of both.
        seconds: Time for which stores on other machines may be waited for, in all.
    """
    vectors = _encoded(searches) if len(searches) > 1 else {}
    ends = monotonic() + seconds
    away: dict[str, UnavailableError] = {}
    for one in searches:
        outcome: SearchOutcome | Exception
        try:
            if one.served.version in away:  # whoever waits is told at once, and not after a wait of its own
                raise away[one.served.version]
            with answered_within(ends - monotonic()):
                outcome = _outcome(one, vectors.get(one.served.version, {}))
        except UnavailableError as error:
            outcome = away[one.served.version] = error
        except Exception as error:  # the others are to have their answers
            outcome = error
        yield outcome


def warmed(searcher: Searcher) -> Searcher:
    """The searcher after a first search: what that loads would take many times as long beside visitors."""
    with suppress(UserError):  # of a model that reads no texts
        searcher.search("a", 1)
    return searcher


def _outcome(search: PendingSearch, vectors: Mapping[str, NDArray[np.float32]]) -> SearchOutcome:
    answer = search.served.searcher.search(
        search.query, search.k, offset=search.offset, where=search.where, options=search.options, vectors=vectors
    )
    return SearchOutcome(answer, search.served.found([hit.id for hit in answer.hits]))


def _encoded(searches: Sequence[PendingSearch]) -> dict[str, dict[str, NDArray[np.float32]]]:
    """Vectors of the texts of searches, by version of the index; versions of one model have their texts in one call."""
    by_model: dict[int, dict[str, SearchedIndex]] = {}
    for one in searches:
        by_model.setdefault(id(one.served.searcher.model), {})[one.served.version] = one.served
    vectors: dict[str, dict[str, NDArray[np.float32]]] = {}
    for versions in by_model.values():
        texts = dict.fromkeys(
            text
            for one in searches
            if one.served.version in versions
            for text in one.served.searcher.texts_of(one.query)
        )
        some = next(iter(versions.values()))
        vectors |= dict.fromkeys(versions, some.searcher.encode_texts(tuple(texts)))
    return vectors
