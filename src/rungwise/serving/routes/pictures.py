"""Routes that change something: pictures are sent to search with; with the token, they are added and deleted."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi import Path as InPath

from rungwise.core import UserError, digest_of_parts
from rungwise.core.disk import replacing
from rungwise.data import ImageCaptions
from rungwise.data.pictures import PictureHeader
from rungwise.index import Index, Item
from rungwise.serving._workload import Workload
from rungwise.serving.access import object_of
from rungwise.serving.routes.search import Id
from rungwise.serving.schemas import A_FILE, IMAGES, json_answer, possible, refusals, responses, sendable, small_picture
from rungwise.serving.searches import item_of
from rungwise.serving.state import Current

__all__ = ["Name", "NewId", "routes"]

_MOST_CAPTIONS = 100
_LONGEST_CAPTION = 2000
_LONGEST_ID = 8000
_LONGEST_COLUMNS = 10_000
_MOST_COLUMNS = 100
_SUFFIXES = {"JPEG": ".jpg", "MPO": ".jpg"}

_log = logging.getLogger(__name__)

Name = Annotated[str, InPath(max_length=100, description="As the answer of `POST /pictures` gave it.")]
NewId = Annotated[str, Query(min_length=1, max_length=_LONGEST_ID, description="The picture's id: any text.")]


def routes(current: Current, work: Workload, *, writable: bool) -> APIRouter:
    """Operations that take pictures; adding and deleting them needs ``writable``, which needs a token."""
    router = APIRouter()

    @router.post(
        "/pictures",
        response_model=responses.KeptUpload,
        responses=refusals(408, 413, 422, 429),
        openapi_extra={"requestBody": A_FILE},
        tags=["search"],
    )
    async def send(request: Request) -> Response:
        """Send a picture to search with: its file is the body. What a search needs of it is kept for some time."""
        name, header = await work.keep_picture(request, current.now().searcher)
        return json_answer(responses.KeptUpload(name, header.width, header.height, work.kept.seconds))

    @router.get("/pictures/{name}", response_class=Response, responses=refusals(404, 422) | IMAGES, tags=["search"])
    async def sent(request: Request, name: Name) -> Response:
        """A small copy of a picture that was sent."""
        kept = await work.read(request, partial(work.kept.get, name))
        if kept is None:
            raise HTTPException(404, "the picture that was sent is no longer here; send it again")
        return small_picture(kept.thumbnail, request)

    @router.post(
        "/items",
        status_code=201,
        response_model=responses.Changed,
        responses=refusals(408, 413, 422, 429),
        openapi_extra={"requestBody": A_FILE},
        tags=["pictures"],
    )
    async def add(
        request: Request,
        id: NewId,
        caption: Annotated[list[str], Query(max_length=_MOST_CAPTIONS, description="A caption; any number.")] = [],  # noqa: B006
        columns: Annotated[
            str, Query(max_length=_LONGEST_COLUMNS, description="A JSON object: values of columns by name.")
        ] = "",
    ) -> Response:
        """Add a picture, whose file is the body, or put it in place of the one with this id."""
        _require(writable, current)
        if any(not text.strip() or len(text) > _LONGEST_CAPTION for text in caption):
            raise HTTPException(422, f"caption: give texts of 1 to {_LONGEST_CAPTION} characters")
        searcher = current.now().searcher
        new = _New(possible(id)[0], tuple(caption), _columns(columns))
        change = partial(_add, current, new)
        return json_answer(await work.with_picture(request, searcher, change), 201)

    @router.delete("/items/{id:any}", response_model=responses.Changed, responses=refusals(404, 422), tags=["pictures"])
    async def delete(request: Request, id: Id) -> Response:
        """Delete a picture from the index. Its file stays, unless it was sent here."""
        _require(writable, current)
        item = await work.read(request, partial(item_of, current.now(), id))
        return json_answer(await work.changed(request, partial(_delete, current, item)))

    return router


def _require(writable: bool, current: Current) -> None:
    if not writable:
        raise HTTPException(
            403, "pictures can be added and deleted only where the server has a token; start it with one"
        )
    if current.now().index.folder is None:
        raise HTTPException(403, "this index is in no folder of the server, so nothing can be added or deleted")


class _New:
    """Id, captions and columns of a picture to add."""

    def __init__(self, item_id: str, captions: tuple[str, ...], columns: Mapping[str, Any]) -> None:
        self.id = item_id
        self.captions = captions
        self.columns = columns

    def data(self, path: Path) -> ImageCaptions:
        of_image = np.zeros(len(self.captions), np.int64)
        columns = {name: (value,) for name, value in self.columns.items()}
        return ImageCaptions((self.id,), self.captions, of_image, paths=(path,), columns=columns)


def _columns(text: str) -> dict[str, Any]:
    """Values of columns from a JSON object."""
    if not text.strip():
        return {}
    wrong = HTTPException(
        422, "columns: give a JSON object whose values are texts, numbers, truth values or lists of texts"
    )
    try:
        found = json.loads(text, parse_constant=_refuse, object_pairs_hook=object_of)
    except (ValueError, RecursionError) as error:
        raise wrong from error
    if not isinstance(found, dict) or len(found) > _MOST_COLUMNS:
        raise wrong
    for name, value in found.items():
        of_texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
        if not name or not (of_texts or isinstance(value, str | bool | int | float)):
            raise wrong
        if isinstance(value, int) and not -(2**53) < value < 2**53:
            raise wrong
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _add(current: Current, new: _New, body: bytes, header: PictureHeader) -> responses.Changed:
    def change(index: Index) -> bool:
        before = index.found([new.id]).get(new.id)
        path = _place(index, new.id, body, header)
        with replacing(path) as draft:
            draft.write_bytes(body)
        try:
            issues = index.upsert(new.data(path), current.now().searcher.model)  # no other is served meanwhile
            if issues:
                raise UserError("the picture cannot be read; send another")
        except BaseException:
            if before is None or before.path != path:
                path.unlink(missing_ok=True)
            raise
        if before is not None:
            _remove_file(index, before, but=path)
        return before is not None

    replaced, served = current.change(change)
    return responses.Changed(served.version, sendable(new.id), "replaced" if replaced else "added")


def _delete(current: Current, item: Item) -> responses.Changed:
    def change(index: Index) -> None:
        if not index.remove([item.id]):
            raise HTTPException(404, "there is no picture with this id; it may have been removed")
        _remove_file(index, item)

    _, served = current.change(change)
    return responses.Changed(served.version, sendable(item.id), "removed")


def _place(index: Index, item_id: str, body: bytes, header: PictureHeader) -> Path:
    """Path of an added picture's file: beside the index, under a name that reveals nothing of a stranger's."""
    name = digest_of_parts([item_id, b"\0", body])[:32]
    suffix = _SUFFIXES.get(header.form, f".{header.form.lower()}")
    return _folder(index) / f"{name}{suffix}"


def _folder(index: Index) -> Path:
    assert index.added is not None  # it was asked for
    return index.added


def _remove_file(index: Index, item: Item, but: Path | None = None) -> None:
    """Remove the file of a picture that was sent here; files of the collection are never touched."""
    if not isinstance(item.path, Path) or item.path == but or item.path.parent != _folder(index):
        return
    try:
        item.path.unlink(missing_ok=True)
    except OSError:  # it is in nobody's way
        _log.warning("the file of a deleted picture could not be removed")
