"""Answers of searches, as they are sent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rungwise.index import Answer, CaptionHit, End, Hit, Item
from rungwise.index.query import Like, Term, Words
from rungwise.serving.schemas import responses, sendable
from rungwise.serving.searches._pending_searches import PendingSearch, SearchOutcome
from rungwise.serving.searches._terms import SentVector

NOT_JUDGED: dict[str, Any] = {"degree": None, "rung": None, "band": ""}
"""Fields of a picture that was not judged."""


def fields_of(asked: PendingSearch, found: SearchOutcome, q: str) -> dict[str, Any]:
    """Fields of an answer that every search has; ``q`` is the text as it was typed."""
    answer, end = found.answer, found.answer.end
    similarity = asked.served.index.similarity.kind if asked.query.has_words else "cosine"
    return {
        "index_version": asked.served.version,
        "query": q,
        "terms": tuple(map(_term, asked.query.terms)),
        "reading": answer.reading,
        "unknown": tuple(
            responses.Unknown(one.word, one.near, one.found, one.misspelt, str(one)) for one in answer.unknown
        ),
        "notes": (*asked.query.notes, *(note for note in answer.notes if note not in asked.query.notes)),
        "more": answer.more,
        "scale": scale_of(answer.hits, similarity),
        "hits": tuple(
            responses.FoundPicture(
                **picture_of(found.items[hit.id]),
                score=hit.score,
                folded=tuple(map(sendable, answer.folded.get(hit.id, ()))),
                **judged,
            )
            for hit, judged in zip(answer.hits, _judged(answer), strict=True)
            if hit.id in found.items
        ),
        "end": None if end is None else _shown_end(end),
    }


def picture_of(item: Item) -> dict[str, Any]:
    """Fields of an answer that describe a picture."""
    return {
        "id": sendable(item.id),
        "captions": item.captions,
        "columns": item.columns,
        "has_file": item.path is not None,
    }


def scale_of(hits: Iterable[Hit] | Iterable[CaptionHit], similarity: str) -> tuple[float, float]:
    """Scores of an empty and of a full bar: fixed for cosines, the range of the results for other similarities.

    >>> scale_of([Hit("a", -1.0), Hit("b", -3.0)], "order")
    (-3.0, -1.0)
    """
    scores = [hit.score for hit in hits]
    if similarity in ("cosine", "shifted_cosine") or not scores:
        return 0.0, 1.0
    return min(scores), max(scores)


def _shown_end(end: End) -> responses.ShownEnd:
    return responses.ShownEnd(end.shown, end.nothing, end.belief, end.source, end.advice, end.names, end.remark)


def _judged(answer: Answer) -> Iterable[dict[str, Any]]:
    if answer.end is None:
        return [NOT_JUDGED] * len(answer.hits)
    names = dict(enumerate(answer.end.names, 1))
    return [
        {"degree": degree, "rung": rung, "band": names.get(rung, "")}
        for degree, rung in zip(answer.end.degrees, answer.end.rungs, strict=True)
    ]


def _term(term: Term) -> responses.QueryTerm:
    match term.what:
        case Words(text):
            return responses.QueryTerm("words", text, "", "", term.weight)
        case Like(item_id):
            return responses.QueryTerm("like", "", sendable(item_id), "", term.weight)
        case SentVector(sent=sent):
            return responses.QueryTerm("picture", "", "", sent, term.weight)
    raise TypeError(f"no such part of a query can be asked for over HTTP: {term.what}")
