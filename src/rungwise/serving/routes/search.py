"""Routes that read: search by text and by picture, captions, a sample, one picture with its metadata."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from starlette.convertors import Convertor, register_url_convertor

from rungwise.data.files import PackedPicture
from rungwise.index import CaptionHit, Item, Searcher, SearchOptions, Where
from rungwise.index.query import Like, Term
from rungwise.index.query import Query as Asked
from rungwise.serving._workload import Workload, client_of
from rungwise.serving.routes.favourites import favourite_items, only_favourites
from rungwise.serving.routes.renewal import renewed_routes
from rungwise.serving.schemas import (
    FOR_EVER,
    IMAGES,
    json_answer,
    refusals,
    responses,
    sendable,
    small_picture,
)
from rungwise.serving.searches import (
    NOT_JUDGED,
    Ends,
    Filter,
    K,
    Offset,
    PendingSearch,
    SearchParameters,
    fields_of,
    filter_of,
    item_of,
    kept_vector,
    picture_of,
    picture_terms,
    query_of,
    scale_of,
)
from rungwise.serving.state import THUMBNAIL, Current, KeptPictures, Overviews, Reranker, ServedIndex

__all__ = ["Id", "download_name", "routes"]

_CAPTIONS_NEAR = 8
_LONGEST_FILE_NAME = 120


class _AnyText(Convertor[str]):
    """Convertor for the rest of an address with any characters; the usual one stops at the end of a line."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("any", _AnyText())

Id = Annotated[str, InPath(max_length=8000, description="A picture's id, percent-encoded as a whole, slashes too.")]


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
        if not asked.asks:
            return json_answer(await work.read(request, partial(_browsed, served, asked)))
        found: object = None
        if reranker is None:
            beside = await work.search_beside(request, served.version, asked)
            found = None if beside is None else beside.content
        if found is None:
            found = responses.FoundPictures(**await _searched(request, work, served, asked, reranker))
        if note is not None and asked.is_new_text:
            note(asked.q)
        return json_answer(found)

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
        asked = PendingSearch(served, query, k, offset, filter_of(where), options)
        found = fields_of(asked, await work.search(request, asked), "")
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


async def _searched(
    request: Request, work: Workload, served: ServedIndex, asked: SearchParameters, reranker: Reranker | None
) -> dict[str, Any]:
    """Search in this process; gives the fields of the answer."""
    pictures = []
    if asked.has_pictures:
        pictures = await work.read(request, partial(picture_terms, asked, served, work.kept.get))
    query, where = query_of(asked, pictures), filter_of(asked.where)
    options = asked.options if reranker is None else reranker.options_of(query, asked.options)
    if asked.favourites:
        where = await work.read(request, partial(only_favourites, served, where))
    search = PendingSearch(served, query, asked.k, asked.offset, where, options)
    return fields_of(search, await work.search(request, search), asked.q)


async def _picture(request: Request, work: Workload, served: ServedIndex, found: Item, thumb: int | None) -> Response:
    if thumb == THUMBNAIL:
        small = await work.read(request, partial(served.index.thumbnail, found.id))
        if small is not None:
            return small_picture(small, request)
    if found.path is None:
        raise HTTPException(404, "this picture has no file: the index was made of rows of features")
    return await work.files.answer(found.path, thumb, request, client_of(request))


def _captions_near(
    served: ServedIndex, kept: KeptPictures, sent_id: str | None, picture: str | None, k: int
) -> list[CaptionHit]:
    searcher: Searcher = served.searcher
    if picture is not None:
        return searcher.captions_near(kept_vector(served, kept.get, picture), k)
    item = item_of(served, sent_id or "")
    return searcher.captions_near(served.index.picture_store.get([item.id])[item.id].vector, k)


def _browsed(served: ServedIndex, asked: SearchParameters) -> responses.FoundPictures:
    where, k, offset = served.index.understood(filter_of(asked.where) or Where()), asked.k, asked.offset
    if asked.favourites:
        every = favourite_items(served, where)
        found, more, reading = every[offset : offset + k], len(every) > offset + k, "favourites, newest first"
    else:
        ids = served.index.newest(k + 1, offset, where)
        found, more, reading = list(served.found(ids[:k]).values()), len(ids) > k, "the newest pictures"
    if asked.where.strip():
        reading += " that the filter lets through"
    hits = tuple(responses.FoundPicture(**picture_of(item), score=None, folded=(), **NOT_JUDGED) for item in found)
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
