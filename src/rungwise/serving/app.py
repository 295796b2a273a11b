"""The application behind the search page: JSON in, JSON out, pictures by number.

Pictures are named by their position in the index and never by a path, so that no request can reach any other file.
What costs much waits for its turn: pictures are decoded by a few threads within a bound of memory, and one thread
encodes and searches, texts before pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from numpy.typing import NDArray
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect

from rungwise.core.errors import UserError
from rungwise.data.picture_files import read_header
from rungwise.index import CaptionHit, Hit, Index, Searcher
from rungwise.models.contracts import DualEncoder
from rungwise.serving import answers
from rungwise.serving.answers import json_answer, refusals
from rungwise.serving.current import Current, Served
from rungwise.serving.entrance import HEADERS, Entrance
from rungwise.serving.files import PictureFiles
from rungwise.serving.lanes import Lane, Memory
from rungwise.serving.limits import ServingLimits, client_key
from rungwise.serving.tokens import Token
from rungwise.serving.uploads import Uploads
from rungwise.serving.waiting import BusyError, outcome

MAX_RESULTS = 500
"""The largest k of a request."""

_STATIC = Path(__file__).parent / "static"
_CAPTIONS_NEAR = 8
_PICTURE_PATIENCE = 1.0

K = Annotated[int, Query(ge=1, le=MAX_RESULTS, description="How many results; more than there are means all.")]
Position = Annotated[int, InPath(ge=0, lt=2**32, description="A picture's position in the index.")]
Version = Annotated[
    str | None,
    Query(alias="v", max_length=64, description="The index_version of the position; refused if another is served."),
]
T = TypeVar("T")


def create_app(
    index: Index,
    model: DualEncoder,
    *,
    allowed_hosts: Sequence[str] | None = None,
    token: str | None = None,
    limits: ServingLimits | None = None,
) -> FastAPI:
    """The page and its interface for one index.

    Answers are JSON; every refusal is ``{"error": "one line"}``. When another index takes the place of this one, it is
    served as soon as it is read, provided that the same model built it.

    Args:
        index: What is searched.
        model: The model that built it.
        allowed_hosts: Names under which the application may be asked for, without port; any name unless given. A server
            should list its own names, or else a web page elsewhere can have its name resolved to this machine and read
            the answers.
        token: Without which nothing is answered, in the header ``Authorization: Bearer TOKEN``; the page takes it once
            from ``?token=TOKEN`` and keeps it in a cookie.
        limits: What strangers may hold.

    Raises:
        UserError: If another model built the index, or the token is too short.

    >>> import inspect
    >>> list(inspect.signature(create_app).parameters)
    ['index', 'model', 'allowed_hosts', 'token', 'limits']
    """
    limits = limits or ServingLimits()
    current = Current(Searcher(index, model))
    work = _Work(limits)
    app = FastAPI(title="rungwise", version=version("rungwise"), docs_url=None, redoc_url=None)
    _answer_errors_in_one_line(app)
    app.add_middleware(Entrance, names=allowed_hosts, token=None if token is None else Token(token))

    def versioned(asked: str | None) -> Served:
        served = current.now()
        if asked not in (None, served.version):
            raise HTTPException(409, "another version of the index is served now; search again")
        return served

    def item_position(served: Served, number: int) -> int:
        if number >= len(served.index):
            raise HTTPException(404, f"no picture {number}; the index holds {len(served.index)}, counted from 0")
        return number

    @app.get("/api/status", response_model=answers.Status, responses=refusals())
    async def status() -> JSONResponse:
        """What is being searched."""
        served = current.now()
        about = served.index.manifest
        return json_answer(
            answers.Status(
                name=about.name,
                pictures=len(served.index),
                captions=served.captions,
                skipped=about.skipped,
                dimension=about.dimension,
                similarity=served.index.similarity.kind,
                model=about.model_fingerprint[:12],
                index_version=served.version,
                problem=current.problem,
                max_results=MAX_RESULTS,
                max_upload_bytes=limits.upload_bytes,
                max_upload_pixels=limits.upload_pixels,
                version=app.version,
                examples=served.examples,
            )
        )

    @app.get("/api/search", response_model=answers.FoundByText, responses=refusals(422))
    async def search(request: Request, q: Annotated[str, Query(max_length=2000)] = "", k: K = 24) -> JSONResponse:
        """The pictures nearest to a text."""
        served = current.now()
        hits = await work.encoded(request, partial(served.searcher.search_text, q, k))
        scale = _scale(hits, served.index.similarity.kind)
        return json_answer(answers.FoundByText(served.version, _results(served, hits), scale, q))

    @app.get("/api/similar/{number}", response_model=answers.FoundSimilar, responses=refusals(404, 409, 422))
    async def similar(request: Request, number: Position, k: K = 24, v: Version = None) -> JSONResponse:
        """The pictures nearest to one of the index."""
        served = versioned(v)
        position = item_position(served, number)
        hits = await work.encoded(request, partial(served.index.similar, served.ids[position], k))
        of = answers.Picture(**_picture(served, position))
        found = _results(served, hits)
        return json_answer(answers.FoundSimilar(served.version, found, _scale(hits, "cosine"), of))

    @app.post(
        "/api/search-by-picture",
        response_model=answers.FoundByPicture,
        responses=refusals(408, 413, 422, 429),
        openapi_extra={"requestBody": _A_FILE},
    )
    async def search_by_picture(request: Request, k: K = 24) -> JSONResponse:
        """The pictures and the captions nearest to a picture, whose file is the body of the request."""
        served = current.now()
        hits, captions = await work.search_by_picture(request, served, k)
        return json_answer(
            answers.FoundByPicture(
                index_version=served.version,
                results=_results(served, hits),
                scale=_scale(hits, "cosine"),
                captions=tuple(
                    answers.Caption(one.text, one.score, tuple(served.position[i] for i in one.ids)) for one in captions
                ),
                caption_scale=_scale(captions, served.index.similarity.kind),
                has_captions=served.captions > 0,
            )
        )

    @app.get(
        "/pictures/{number}",
        response_class=Response,
        responses=refusals(404, 409, 422) | _PICTURES,
    )
    async def picture(
        request: Request,
        number: Position,
        thumb: Annotated[int | None, Query(ge=16, le=1024, description="Longest side of a JPEG of it.")] = None,
        v: Version = None,
    ) -> Response:
        """A picture, or with ``thumb`` a JPEG of it whose longer side has at most that many pixels."""
        served = versioned(v)
        path = served.index.item(served.ids[item_position(served, number)]).path
        if path is None:
            raise HTTPException(404, f"picture {number} has no file: the index was made of rows of features")
        return await work.files.answer(number, path, thumb, request, _client(request))

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(_STATIC / "index.html")

    app.mount("/static", StaticFiles(directory=_STATIC))
    return app


_A_FILE = {
    "required": True,
    "description": "The bytes of a picture file.",
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
}
_PICTURES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The picture.",
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}}
            for kind in ("image/jpeg", "image/png", "image/gif", "image/webp")
        },
    },
    304: {"description": "The picture has not changed since it had the ETag of If-None-Match."},
}


class _Work:
    """What costs much, and where it waits."""

    def __init__(self, limits: ServingLimits) -> None:
        self._limits = limits
        # Encoding uses every core already; requests at the same time would only contend for them.
        self._encoding = Lane(threads=1)
        self._decoding = Lane(limits.decoding_threads, yielding=True)
        self._memory = Memory(limits.decoding_memory)
        self._uploads = Uploads(limits)
        self.files = PictureFiles(self._decoding, self._memory, limits)

    async def encoded(self, request: Request, search: Callable[[], T], patience: float = 0.0) -> T:
        """Have something encoded and searched for."""
        work = self._encoding.submit(search, client=_client(request), patience=patience)
        return await outcome(work, request, self._limits.waiting_seconds)

    async def search_by_picture(self, request: Request, served: Served, k: int) -> tuple[list[Hit], list[CaptionHit]]:
        """Receive a picture, decode it in one lane, and encode it in the other."""
        client = _client(request)
        async with self._uploads.received(request, client) as body:
            if not body:
                raise HTTPException(422, "no picture in the request; send the bytes of a picture file as its body")
            prepare = partial(self._prepare, served.searcher, body)
            decoded = self._decoding.submit(prepare, client=client, patience=_PICTURE_PATIENCE)
            encode = await outcome(decoded, request, self._limits.waiting_seconds)

            def search() -> tuple[list[Hit], list[CaptionHit]]:
                vector = encode()
                return served.index.search(vector, k)[0], served.searcher.captions_near(vector, _CAPTIONS_NEAR)

            return await self.encoded(request, search, _PICTURE_PATIENCE)

    def _prepare(self, searcher: Searcher, body: bytes) -> Callable[[], NDArray[np.float32]]:
        header = read_header(body)
        if header.pixels > self._limits.upload_pixels:
            raise HTTPException(
                413, f"the picture has {header.pixels} pixels; send one of at most {self._limits.upload_pixels}"
            )
        needed = header.memory(searcher.model.decoded_side) + 2 * len(
            body
        )  # the file is there twice while it is decoded
        if needed > self._limits.decoding_memory:
            raise HTTPException(
                413,
                f"the picture would take {needed >> 20} MiB to decode, more than {self._limits.decoding_memory >> 20};"
                " send a smaller one, or a JPEG",
            )
        with self._memory.taken(needed):
            return searcher.prepare_picture(body)


def _client(request: Request) -> str:
    return client_key(request.client.host) if request.client else ""


def _picture(served: Served, position: int) -> dict[str, Any]:
    item = served.index.item(served.ids[position])
    return {"position": position, "id": item.id, "captions": item.captions, "has_file": item.path is not None}


def _results(served: Served, hits: Sequence[Hit]) -> tuple[answers.Result, ...]:
    return tuple(answers.Result(**_picture(served, served.position[hit.id]), score=hit.score) for hit in hits)


def _scale(hits: Sequence[Hit] | Sequence[CaptionHit], similarity: str) -> tuple[float, float]:
    """Scores that a bar shows as empty and as full: fixed for cosines, the range of the results for the others."""
    if similarity in ("cosine", "shifted_cosine") or not hits:
        return 0.0, 1.0
    return hits[-1].score, hits[0].score


def _answer_errors_in_one_line(app: FastAPI) -> None:
    def error(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
        return json_answer(answers.Refusal(" ".join(message.split())), status, headers)

    @app.exception_handler(UserError)
    async def bad_input(_: Request, problem: UserError) -> JSONResponse:
        return error(422, str(problem))

    @app.exception_handler(RequestValidationError)
    async def bad_request(_: Request, problem: RequestValidationError) -> JSONResponse:
        first = problem.errors()[0]
        return error(422, f"{first['loc'][-1]}: {first['msg']}")

    @app.exception_handler(StarletteHTTPException)
    async def refused(_: Request, problem: StarletteHTTPException) -> JSONResponse:
        headers = dict(problem.headers or {})
        if problem.status_code == 405:  # files that stand still do not say what they allow
            allowed = headers.get("Allow", "GET")
            headers["Allow"] = f"{allowed}, HEAD" if allowed == "GET" else allowed
        return error(problem.status_code, str(problem.detail), headers)

    @app.exception_handler(BusyError)
    async def busy(_: Request, problem: BusyError) -> JSONResponse:
        return error(503, "there is too much to do; try again in a moment", {"Retry-After": "5"})

    @app.exception_handler(MemoryError)
    async def out_of_memory(_: Request, problem: MemoryError) -> JSONResponse:
        return error(503, "there is not enough memory for this now; try again in a moment", {"Retry-After": "5"})

    @app.exception_handler(ClientDisconnect)
    async def left(_: Request, problem: ClientDisconnect) -> Response:
        return Response(status_code=400)  # nobody reads it

    @app.exception_handler(Exception)
    async def broken(_: Request, problem: Exception) -> JSONResponse:
        return error(500, "something is wrong in the server; its log says more", HEADERS)
