"""Routes of favourites and saved searches, which lie beside the index, so that every browser sees them."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi import Path as InPath

from rungwise.core import Limits
from rungwise.index import Condition, Item, Where
from rungwise.index.filters import parse_where
from rungwise.index.layout import (
    LONGEST_SEARCH_NAME,
    SavedSearch,
    forget_search,
    keep_favourite,
    now,
    read_favourites,
    save_search,
    why_not_kept,
)
from rungwise.index.query import parse_query
from rungwise.serving._limits import ServingLimits
from rungwise.serving._workload import Workload
from rungwise.serving.access import json_body
from rungwise.serving.schemas import json_answer, possible, refusals, responses, sendable
from rungwise.serving.state import Current, ServedIndex

__all__ = ["Name", "favourite_items", "only_favourites", "reason_not_kept", "routes"]

_NO_TOKEN = "the server has no token and other machines may reach it"
_MOST_SEARCHED = 2_000
"""Number of newest favourites among which a search can look."""

Name = Annotated[str, InPath(max_length=4 * LONGEST_SEARCH_NAME, description="Name of a search, percent-encoded.")]
Id = Annotated[str, InPath(max_length=8000, description="A picture's id, percent-encoded as a whole, slashes too.")]
_FIELDS = {
    "q": {"type": "string", "maxLength": Limits.query_characters, "description": "Words; empty where `where` is all."},
    "where": {"type": "string", "maxLength": Limits.query_characters, "description": "Filter; empty for none."},
}
_A_SEARCH = {
    "required": True,
    "description": "A JSON object: `q` and `where`, of which one has something in it.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": _FIELDS,
                "required": [*_FIELDS],
                "additionalProperties": False,
            }
        }
    },
}


def routes(current: Current, work: Workload, limits: ServingLimits, *, allowed: bool) -> APIRouter:
    """Operations that keep favourites and searches.

    Changes are ``allowed`` to those who have the token, or where only this machine reaches the server.
    """
    router = APIRouter(tags=["favourites"])

    @router.get("/favourites", response_model=responses.MarkedPictures, responses=refusals())
    async def favourites(request: Request) -> Response:
        """Ids of the favourites, the newest first; `/search?favourites=true` gives their pictures."""
        return json_answer(await work.read(request, partial(_marked, current)))

    @router.put("/favourites/{id:any}", response_model=responses.MarkedPictures, responses=refusals(404, 422))
    async def mark(request: Request, id: Id) -> Response:
        """Mark a picture as a favourite."""
        _require(allowed, current)
        return json_answer(await work.read(request, partial(_mark, current, id, kept=True)))

    @router.delete("/favourites/{id:any}", response_model=responses.MarkedPictures, responses=refusals(404, 422))
    async def unmark(request: Request, id: Id) -> Response:
        """Take the mark of a favourite away; the picture stays."""
        _require(allowed, current)
        return json_answer(await work.read(request, partial(_mark, current, id, kept=False)))

    @router.get("/searches", response_model=responses.SavedSearches, responses=refusals())
    async def searches(request: Request) -> Response:
        """The saved searches, by name."""
        return json_answer(await work.read(request, partial(_saved, current)))

    @router.put(
        "/searches/{name}",
        response_model=responses.SavedSearches,
        responses=refusals(408, 413, 422),
        openapi_extra={"requestBody": _A_SEARCH},
    )
    async def save(request: Request, name: Name) -> Response:
        """Save a search under a name, in place of the one with this name."""
        _require(allowed, current)
        asked = await json_body(request, limits.body_seconds, "a search", [*_FIELDS])
        return json_answer(await work.read(request, partial(_save, current, name, asked)))

    @router.delete("/searches/{name}", response_model=responses.SavedSearches, responses=refusals(404, 422))
    async def forget(request: Request, name: Name) -> Response:
        """Remove a saved search."""
        _require(allowed, current)
        return json_answer(await work.read(request, partial(_forget, current, name)))

    return router


def reason_not_kept(current: Current, *, allowed: bool) -> str:
    """Why favourites and searches are not kept by this server; empty where they are."""
    return why_not_kept(current.now().index.folder) or ("" if allowed else _NO_TOKEN)


def favourite_items(served: ServedIndex, where: Where | None) -> list[Item]:
    """Favourites that are in the index and pass a filter, the newest first."""
    ids = [one.id for one in reversed(read_favourites(served.index.folder).pictures)]
    if where is not None:
        rows = served.index.picture_store.get(ids)
        ids = [one for one in ids if one in rows and where.holds(one, rows[one].record)]
    return list(served.found(ids).values())


def only_favourites(served: ServedIndex, where: Where | None) -> Where:
    """A filter that also lets nothing through but favourites, which it knows by the hash of their content."""
    hashes = [str(item.columns.get("hash", "")) for item in favourite_items(served, None)[:_MOST_SEARCHED]]
    condition = Condition("hash", "in", tuple(hashes) or ("",))
    return Where((condition,)) if where is None else Where((*where.conditions, condition), where.without)


def _require(allowed: bool, current: Current) -> None:
    if reason := reason_not_kept(current, allowed=allowed):
        raise HTTPException(403, f"favourites and saved searches are not kept here: {reason}")


def _mark(current: Current, sent: str, *, kept: bool) -> responses.MarkedPictures:
    served = current.now()
    assert served.index.folder is not None  # it was asked for
    marked = {one.id for one in read_favourites(served.index.folder).pictures}
    # A mark can be taken away when its picture is gone.
    found = next((one for one in possible(sent) if not kept and one in marked), None)
    found = found or next(iter(served.found(possible(sent))), None)
    if found is None:
        raise HTTPException(404, "there is no picture with this id; it may have been removed")
    keep_favourite(served.index.folder, found, kept=kept)
    return _marked(current)


def _marked(current: Current) -> responses.MarkedPictures:
    found = read_favourites(current.now().index.folder)
    return responses.MarkedPictures(
        tuple(responses.MarkedPicture(sendable(one.id), one.when) for one in reversed(found.pictures))
    )


def _save(current: Current, name: str, asked: dict[str, Any]) -> responses.SavedSearches:
    query, where = asked["q"], asked["where"]
    if not isinstance(query, str) or not isinstance(where, str):
        raise HTTPException(422, "q and where of a search are texts; correct them")
    search = SavedSearch(" ".join(name.split()), query.strip(), where.strip(), now())
    if search.query:
        parse_query(search.query, pictures=False)
    if search.where:
        parse_where(search.where)
    folder = current.now().index.folder
    assert folder is not None  # it was asked for
    save_search(folder, search)
    return _saved(current)


def _forget(current: Current, name: str) -> responses.SavedSearches:
    folder = current.now().index.folder
    assert folder is not None  # it was asked for
    if not forget_search(folder, " ".join(name.split())):
        raise HTTPException(404, "there is no saved search of this name; it may have been removed")
    return _saved(current)


def _saved(current: Current) -> responses.SavedSearches:
    found = read_favourites(current.now().index.folder).searches
    ordered = sorted(found, key=lambda one: (one.name.casefold(), one.name))
    return responses.SavedSearches(
        tuple(responses.ListedSearch(one.name, one.query, one.where, one.when) for one in ordered)
    )
