"""Queries of a search over HTTP: words, pictures of the index, and pictures that were sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import HTTPException

from rungwise.index import Item
from rungwise.index.query import LESS, GivenVector, Like, Query, Term, parse_query
from rungwise.serving.schemas import possible
from rungwise.serving.searches._parameters import SearchParameters
from rungwise.serving.state import KeptPicture, SearchedIndex

Kept = Callable[[str], KeptPicture | None]
"""Function that gives what is kept of a picture that was sent, by its name; None where nothing is."""


@dataclass(frozen=True, eq=False)
class SentVector(GivenVector):
    """The vector of a picture that was sent, with the name under which it is kept."""

    sent: str


def query_of(asked: SearchParameters, pictures: Sequence[Term]) -> Query:
    """The whole query: what was typed, and pictures."""
    typed = parse_query(asked.q, pictures=False) if asked.q.strip() else None
    return Query(tuple(pictures), ()) if typed is None else Query((*typed.terms, *pictures), typed.notes)


def picture_terms(asked: SearchParameters, served: SearchedIndex, kept: Kept) -> list[Term]:
    """Terms of the query that are pictures of the index, or were sent; HTTPException if one is not there."""
    terms = [Term(Like(item_of(served, sent).id), weight) for sent, weight in _weighed(asked.like, asked.like_weight)]
    terms += [Term(Like(item_of(served, sent).id), -LESS) for sent in asked.unlike]
    for sent, weight in _weighed(asked.picture, asked.picture_weight):
        terms.append(Term(SentVector(kept_vector(served, kept, sent), "you sent", sent), weight))
    return terms


def item_of(served: SearchedIndex, sent: str) -> Item:
    """The picture that a request names; HTTPException 404 if there is none."""
    found = served.found(possible(sent))
    for item in found.values():
        return item
    raise HTTPException(404, "there is no picture with this id; it may have been removed")


def kept_vector(served: SearchedIndex, kept: Kept, sent: str) -> Any:
    """(D,) vector of a picture that was sent; HTTPException 404 if it is no longer kept."""
    found = kept(sent)
    if found is None:
        raise HTTPException(404, "the picture that was sent is no longer here; send it again")
    if found.model != served.index.manifest.model_fingerprint:
        raise HTTPException(404, "the picture was sent to another model than the one that searches now; send it again")
    return found.vector


def _weighed(ids: Sequence[str], weights: Sequence[float]) -> Iterable[tuple[str, float]]:
    if len(weights) > len(ids):
        raise HTTPException(422, f"{len(weights)} weights for {len(ids)} pictures; give one for each")
    return zip(ids, (*weights, *[1.0] * (len(ids) - len(weights))), strict=True)
