"""Route of explanations: which regions of a picture answered which words of the query, according to the reranker."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import numpy as np
from fastapi import APIRouter, HTTPException, Query, Request, Response

from rungwise.core import Limits
from rungwise.data.files import Picture
from rungwise.index.query import Term, Words, parse_query
from rungwise.serving._workload import Workload
from rungwise.serving.schemas import Why, WhyText, WhyWord, json_answer, refusals, sendable
from rungwise.serving.searches import item_of
from rungwise.serving.state import Current, Reranker
from rungwise.similarity import Explanation

__all__ = ["routes"]

_MOST_TEXTS = 4
_DIGITS = 4


def routes(current: Current, work: Workload, reranker: Reranker | None) -> APIRouter:
    """Operation that explains why a picture was found, where there is a reranker."""
    router = APIRouter()

    @router.get("/why", response_model=Why, responses=refusals(404, 422), tags=["search"])
    async def why(
        request: Request,
        id: Annotated[str, Query(max_length=8000, description="Of a picture of the index.")],
        q: Annotated[str, Query(max_length=Limits.query_characters, description="The query, as in `/search`.")],
    ) -> Response:
        """Which regions of a picture answered which words of a query; of its first texts where it has many."""
        model = _explaining(reranker)
        terms = _texts_of(q)
        served = current.now()
        item = await work.read(request, partial(item_of, served, id))
        if item.path is None:
            raise HTTPException(404, "this picture has no file: the index was made of rows of features")
        found = await work.explained(request, partial(_explained, model, item.path, terms), item.path, model.model)
        boxes = found[0].boxes
        return json_answer(
            Why(
                index_version=served.version,
                id=sendable(item.id),
                model=model.name,
                boxes=() if boxes is None else tuple(tuple(box) for box in np.round(boxes, _DIGITS).tolist()),
                texts=tuple(map(_text, terms, found)),
            )
        )

    return router


def _explaining(reranker: Reranker | None) -> Reranker:
    if reranker is None:
        raise HTTPException(
            422,
            "this server ranks pictures by their vectors alone, which do not say why; start it with --rerank and a"
            " model of kind scan, sgr or saf",
        )
    if not reranker.model.explains:
        raise HTTPException(
            422,
            f"a reranker of kind {reranker.name!r} cannot say which regions answered which words; start the server with"
            " --rerank and a model of kind scan, sgr or saf",
        )
    return reranker


def _texts_of(q: str) -> list[Term]:
    if not q.strip():
        raise HTTPException(422, "q: the query has no words; write a few about the picture")
    return [term for term in parse_query(q, pictures=False).terms if isinstance(term.what, Words)][:_MOST_TEXTS]


def _explained(reranker: Reranker, picture: Picture, terms: Sequence[Term]) -> list[Explanation]:
    return [reranker.model.explain(picture, term.what.text) for term in terms if isinstance(term.what, Words)]


def _text(term: Term, found: Explanation) -> WhyText:
    assert isinstance(term.what, Words)
    words = tuple(
        WhyWord(
            word=word,
            answer=_rounded(found.answers[place]),
            share=_rounded(found.shares[place]),
            where=found.where(place),
            regions=tuple(np.round(found.weights[place].astype(np.float64), _DIGITS).tolist()),
        )
        for place, word in enumerate(found.words)
        if word
    )
    return WhyText(term.what.text, term.weight, words)


def _rounded(value: np.float32) -> float:
    return round(float(value), _DIGITS)
