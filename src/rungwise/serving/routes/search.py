"""Routes that read: search by text and by picture, captions, a sample, one picture with its metadata."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from pydantic import BaseModel
from starlette.convertors import Convertor, register_url_convertor

from rungwise.core import Limits
from rungwise.data.files import PackedPicture
from rungwise.index import Answer, CaptionHit, End, Hit, Item, Searcher, SearchOptions, Where
from rungwise.index.filters import parse_where
from rungwise.index.query import LESS, GivenVector, Like, Term, Words, parse_query
from rungwise.index.query import Query as Asked
from rungwise.serving._ids import possible, sendable
from rungwise.serving._workload import PendingSearch, Workload, client_of
from rungwise.serving.routes.favourites import favourite_items, only_favourites
from rungwise.serving.routes.renewal import renewed_routes
from rungwise.serving.schemas import FOR_EVER, IMAGES, json_answer, refusals, responses, small_picture
from rungwise.serving.state import THUMBNAIL, Current, KeptPictures, Overviews, Reranker, ServedIndex

__all__ = [
    "MAX_OFFSET",
    "MAX_RESULTS",
    "Ends",
    "Filter",
    "Id",
    "Ids",
    "K",
    "Offset",
    "Weights",
    "download_name",
    "item_of",
    "picture_of",
    "routes",
    "scale_of",
]

MAX_RESULTS = 500
"""Largest k of a request."""

MAX_OFFSET = 10_000
"""Largest offset of a request; whoever wants more must narrow the search."""

_MOST_PICTURES = 16
_CAPTIONS_NEAR = 8
_LONGEST_FILE_NAME = 120
_NOT_JUDGED: dict[str, Any] = {"degree": None, "rung": None, "band": ""}


class _AnyText(Convertor[str]):
    """Convertor for the rest of an address with any characters; the usual one stops at the end of a line."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("any", _AnyText())

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
Id = Annotated[str, InPath(max_length=8000, description="A picture's id, percent-encoded as a whole, slashes too.")]


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

    def picture_terms(self, served: ServedIndex, kept: KeptPictures) -> list[Term]:
        """Terms of the query that are pictures of the index, or were sent."""
        terms = [Term(Like(item_of(served, sent).id), weight) for sent, weight in _weighed(self.like, self.like_weight)]
        terms += [Term(Like(item_of(served, sent).id), -LESS) for sent in self.unlike]
        for sent, weight in _weighed(self.picture, self.picture_weight):
            terms.append(Term(_SentVector(_kept(served, kept, sent), "you sent", sent), weight))
        return terms


def routes(
    current: Current,
    work: Workload,
    overviews: Overviews,
    reranker: Reranker | None = None,
    *,
    only_here: bool = False,
    note: Callable[[str], None] | None = None,
) -> APIRouter:
    """Operations that read; where only this machine reaches the server, they say where files lie.

    ``note`` is told the words of every search that a person typed and that was answered.
    """
    router = APIRouter(route_class=renewed_routes(current, work.longest))

    @router.get("/search", response_model=responses.FoundPictures, responses=refusals(404, 422), tags=["search"])
    async def search(
        request: Request,
        asked: Annotated[SearchParameters, Query()],
    ) -> Response:
        """The pictures that fit best; without anything to search for the newest ones, by `taken`, else `modified`."""
        served = current.now()
        if not (asked.q.strip() or asked.has_pictures):
            browsed = partial(_browsed, served, asked)
            return json_answer(await work.read(request, browsed))
        typed = parse_query(asked.q, pictures=False) if asked.q.strip() else None
        terms = list(typed.terms) if typed else []
        if asked.has_pictures:
            terms += await work.read(request, partial(asked.picture_terms, served, work.kept))
        query = Asked(tuple(terms), typed.notes if typed else ())
        options = SearchOptions(fold_duplicates=asked.fold, diversity=asked.diversity, words=asked.words, end=asked.end)
        options = options if reranker is None else reranker.options_of(query, options)
        where = _filter(asked.where)
        if asked.favourites:
            where = await work.read(request, partial(only_favourites, served, where))
        search = PendingSearch(served, query, asked.k, asked.offset, where, options)
        found = await _found(request, work, search, asked.q)
        if note is not None and asked.is_new_text:
            note(asked.q)
        return json_answer(responses.FoundPictures(**found))

    @router.get("/similar", response_model=responses.FoundSimilar, responses=refusals(404, 422), tags=["search"])
    async def similar(
        request: Request,
        id: Annotated[str, Query(description="Of a picture of the index.")],
        k: K = 24,
        offset: Offset = 0,
        where: Filter = "",
        fold: Annotated[bool, Query(description="Whether near-duplicates are shown as one.")] = True,
        end: Ends = True,
    ) -> Response:
        """The pictures that are most like one of the index."""
        served = current.now()
        of = await work.read(request, partial(item_of, served, id))
        query, options = Asked((Term(Like(of.id)),)), SearchOptions(fold_duplicates=fold, words="off", end=end)
        asked = PendingSearch(served, query, k, offset, _filter(where), options)
        found = await _found(request, work, asked, "")
        return json_answer(responses.FoundSimilar(**found, of=responses.Picture(**picture_of(of))))

    @router.get("/captions", response_model=responses.Captions, responses=refusals(404, 422), tags=["search"])
    async def captions(
        request: Request,
        id: Annotated[str | None, Query(description="Of a picture of the index.")] = None,
        picture: Annotated[str | None, Query(description="One that was sent to `/pictures`.")] = None,
        k: K = _CAPTIONS_NEAR,
    ) -> Response:
        """The captions of the collection that fit a picture best."""
        served = current.now()
        if (id is None) == (picture is None):
            raise HTTPException(422, "id, picture: give one of them")
        near = await work.read(request, partial(_captions_near, served, work.kept, id, picture, k))
        scale = scale_of(near, served.index.similarity.kind)
        found = tuple(responses.Caption(one.text, one.score, tuple(map(sendable, one.ids))) for one in near)
        return json_answer(responses.Captions(served.version, scale, served.captions > 0, found))

    @router.get("/sample", response_model=responses.PictureSample, responses=refusals(422), tags=["search"])
    async def sample(
        request: Request,
        by: Annotated[responses.By, Query(description="How the pictures are chosen.")] = "clusters",
        k: Annotated[int, Query(ge=1, le=50, description="How many groups.")] = 12,
        of: Annotated[int, Query(ge=1, le=100, description="How many pictures of each.")] = 4,
    ) -> Response:
        """Pictures to start with: groups of like ones, the newest, or some by lot."""
        return json_answer(await work.read(request, partial(_sampled, current.now(), overviews, by, k, of)))

    @router.get(
        "/items/{id:any}", response_model=responses.SinglePicture, responses=refusals(404, 422), tags=["pictures"]
    )
    async def item(request: Request, id: Id) -> Response:
        """One picture with all that is known of it."""
        served = current.now()
        found = await work.read(request, partial(item_of, served, id))
        name = found.path.name if isinstance(found.path, Path) else ""
        path = _path_of(found, absolute=only_here)
        return json_answer(
            responses.SinglePicture(
                **picture_of(found), index_version=served.version, file_name=sendable(name), path=sendable(path)
            )
        )

    @router.get("/images/{id:any}", response_class=Response, responses=refusals(404, 422) | IMAGES, tags=["pictures"])
    async def image(
        request: Request,
        id: Id,
        thumb: Annotated[int | None, Query(ge=16, le=1024, description="Longest side of a JPEG of it.")] = None,
        content: Annotated[
            str | None,
            Query(
                pattern="^[0-9a-f]{16,64}$",
                description="Beginning of the column `hash`; a browser may then keep a small copy for ever.",
            ),
        ] = None,
        download: Annotated[bool, Query(description="Whether the file itself is sent, to be saved.")] = False,
    ) -> Response:
        """A picture, or with ``thumb`` a JPEG of it whose longer side has at most that many pixels."""
        served = current.now()
        found = await work.read(request, partial(item_of, served, id))
        if download:
            if found.path is None:
                raise HTTPException(404, "this picture has no file: the index was made of rows of features")
            return await work.files.download(found.path, download_name(found), request)
        answer = await _picture(request, work, served, found, thumb)
        if thumb and content and await work.read(request, partial(_is_content, found, content)):
            answer.headers["Cache-Control"] = FOR_EVER
        return answer

    return router


async def _picture(request: Request, work: Workload, served: ServedIndex, found: Item, thumb: int | None) -> Response:
    if thumb == THUMBNAIL:
        small = await work.read(request, partial(served.index.thumbnail, found.id))
        if small is not None:
            return small_picture(small, request)
    if found.path is None:
        raise HTTPException(404, "this picture has no file: the index was made of rows of features")
    return await work.files.answer(found.path, thumb, request, client_of(request))


async def _found(request: Request, work: Workload, asked: PendingSearch, q: str) -> dict[str, Any]:
    found = await work.search(request, asked)
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


def _shown_end(end: End) -> responses.ShownEnd:
    return responses.ShownEnd(end.shown, end.nothing, end.belief, end.source, end.advice, end.names, end.remark)


def _judged(answer: Answer) -> Iterable[dict[str, Any]]:
    if answer.end is None:
        return [_NOT_JUDGED] * len(answer.hits)
    names = dict(enumerate(answer.end.names, 1))
    return [
        {"degree": degree, "rung": rung, "band": names.get(rung, "")}
        for degree, rung in zip(answer.end.degrees, answer.end.rungs, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _SentVector(GivenVector):
    """The vector of a picture that was sent, with the name under which it is kept."""

    sent: str


def _weighed(ids: Sequence[str], weights: Sequence[float]) -> Iterable[tuple[str, float]]:
    if len(weights) > len(ids):
        raise HTTPException(422, f"{len(weights)} weights for {len(ids)} pictures; give one for each")
    return zip(ids, (*weights, *[1.0] * (len(ids) - len(weights))), strict=True)


def _term(term: Term) -> responses.QueryTerm:
    match term.what:
        case Words(text):
            return responses.QueryTerm("words", text, "", "", term.weight)
        case Like(item_id):
            return responses.QueryTerm("like", "", sendable(item_id), "", term.weight)
        case _SentVector(sent=sent):
            return responses.QueryTerm("picture", "", "", sent, term.weight)
    raise TypeError(f"no such part of a query can be asked for over HTTP: {term.what}")


def _kept(served: ServedIndex, kept: KeptPictures, sent: str) -> Any:
    found = kept.get(sent)
    if found is None:
        raise HTTPException(404, "the picture that was sent is no longer here; send it again")
    if found.model != served.index.manifest.model_fingerprint:
        raise HTTPException(404, "the picture was sent to another model than the one that searches now; send it again")
    return found.vector


def _captions_near(
    served: ServedIndex, kept: KeptPictures, sent_id: str | None, picture: str | None, k: int
) -> list[CaptionHit]:
    searcher: Searcher = served.searcher
    if picture is not None:
        return searcher.captions_near(_kept(served, kept, picture), k)
    item = item_of(served, sent_id or "")
    return searcher.captions_near(served.index.picture_store.get([item.id])[item.id].vector, k)


def _browsed(served: ServedIndex, asked: SearchParameters) -> responses.FoundPictures:
    where, k, offset = served.index.understood(_filter(asked.where) or Where()), asked.k, asked.offset
    if asked.favourites:
        every = favourite_items(served, where)
        found, more, reading = every[offset : offset + k], len(every) > offset + k, "favourites, newest first"
    else:
        ids = served.index.newest(k + 1, offset, where)
        found, more, reading = list(served.found(ids[:k]).values()), len(ids) > k, "the newest pictures"
    if asked.where.strip():
        reading += " that the filter lets through"
    hits = tuple(responses.FoundPicture(**picture_of(item), score=None, folded=(), **_NOT_JUDGED) for item in found)
    return responses.FoundPictures(served.version, asked.q, (), reading, (), where.notes, more, (0.0, 1.0), hits, None)


def _sampled(served: ServedIndex, overviews: Overviews, by: responses.By, k: int, of: int) -> responses.PictureSample:
    overview = overviews.of(served)
    groups: list[tuple[str, str, int, bool, Sequence[str]]] = []
    if by == "clusters" and overview is not None and overview.clusters:
        groups = [(one.label, one.label, one.size, one.about, one.ids[:of]) for one in overview.clusters[:k]]
    elif by == "newest" or overview is None:
        groups = [("the newest", "", served.pictures, False, served.index.newest(k * of))]
    else:
        groups = [("by lot", "", served.pictures, False, overview.sample[: k * of])]
    items = served.found([one for *_, ids in groups for one in ids])
    made = tuple(
        responses.PictureGroup(
            label, query, size, about, tuple(responses.Picture(**picture_of(items[one])) for one in ids if one in items)
        )
        for label, query, size, about, ids in groups
    )
    ready = by == "newest" or overview is not None
    return responses.PictureSample(served.version, by, ready, tuple(group for group in made if group.items))


def item_of(served: ServedIndex, sent: str) -> Item:
    """The picture that a request names; HTTPException 404 if there is none."""
    found = served.found(possible(sent))
    for item in found.values():
        return item
    raise HTTPException(404, "there is no picture with this id; it may have been removed")


def picture_of(item: Item) -> dict[str, Any]:
    """Fields of an answer that describe a picture."""
    return {
        "id": sendable(item.id),
        "captions": item.captions,
        "columns": item.columns,
        "has_file": item.path is not None,
    }


def download_name(item: Item) -> str:
    """Name under which a picture's file is saved: that of the file, or the end of the id, without odd characters.

    >>> download_name(Item("a/b:c.jpg", None)), download_name(Item("..", None))
    ('b_c.jpg', 'picture')
    """
    name = str(item.columns.get("file") or "") or (item.path.name if isinstance(item.path, Path) else item.id)
    name = re.split(r"[/\\]", name)[-1]
    name = "".join(sign if sign.isprintable() and sign not in '"*:<>?|' else "_" for sign in name)[-_LONGEST_FILE_NAME:]
    return name.strip(" .") or "picture"


def _path_of(item: Item, *, absolute: bool) -> str:
    """Path of a picture's file: on this machine's disk, or no more than its folder in the collection."""
    file, folder = str(item.columns.get("file", "")), str(item.columns.get("folder", ""))
    if item.path is None:
        return ""
    if not absolute:
        return f"{folder}/{file}" if folder and file else file
    return f"{item.path.file}: {file}" if isinstance(item.path, PackedPicture) else str(item.path)


def _is_content(item: Item, content: str) -> bool:
    """Whether a picture has the content that was asked for: in the index, and its file has not changed since."""
    if not str(item.columns.get("hash", "")).startswith(content):
        return False
    if not isinstance(item.path, Path):
        return True
    about = item.path.stat()
    changed = datetime.fromtimestamp(about.st_mtime, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return (about.st_size, changed) == (item.columns.get("bytes"), item.columns.get("modified"))


def scale_of(hits: Iterable[Hit] | Iterable[CaptionHit], similarity: str) -> tuple[float, float]:
    """Scores of an empty and of a full bar: fixed for cosines, the range of the results for other similarities.

    >>> scale_of([Hit("a", -1.0), Hit("b", -3.0)], "order")
    (-3.0, -1.0)
    """
    scores = [hit.score for hit in hits]
    if similarity in ("cosine", "shifted_cosine") or not scores:
        return 0.0, 1.0
    return min(scores), max(scores)


def _filter(where: str) -> Where | None:
    return parse_where(where) if where.strip() else None
