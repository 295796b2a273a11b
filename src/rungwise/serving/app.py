"""The application behind the search page: JSON in, JSON out, pictures by number.

Pictures are named by their position in the index and never by a path, so that no request can reach any other file.
"""

from __future__ import annotations

import functools
import hashlib
import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from stat import S_ISREG
from threading import Lock
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi import Path as InPath
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException as StarletteHTTPException

from rungwise.core.errors import UserError
from rungwise.data.pictures import thumbnail
from rungwise.index import CaptionHit, Hit, Index, Searcher
from rungwise.models import DualEncoder

MAX_UPLOAD_BYTES = 20 * 1024 * 1024
"""A larger picture is refused with status 413."""

MAX_RESULTS = 500
"""The largest k of a request."""

_STATIC = Path(__file__).parent / "static"
_THUMBNAILS_KEPT = 1024
_CAPTIONS_NEAR = 8
_EXAMPLES = 4
_EXAMPLE_LENGTH = 60
# A picture is sent as it is only if its first bytes are of a kind that every browser shows and that holds no script.
_SENT_AS_IS = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png", b"GIF8": "image/gif"}
_LARGEST_SIDE = 2048
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob:; object-src 'none'; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

K = Annotated[int, Query(ge=1, le=MAX_RESULTS, description="How many results; more than there are means all.")]
Position = Annotated[int, InPath(ge=0, lt=2**32, description="A picture's position in the index.")]


def create_app(index: Index, model: DualEncoder, *, allowed_hosts: Sequence[str] | None = None) -> FastAPI:
    """The page and its interface for one index.

    Answers are JSON; every refusal is ``{"error": "one line"}``.

    Args:
        index: What is searched.
        model: The model that built it.
        allowed_hosts: Names under which the application may be asked for, without port; any name unless given. A server
            for this machine alone should list its own names, or else a web page elsewhere can have its name resolved to
            this machine and read the answers.

    Raises:
        UserError: If another model built the index.

    >>> import inspect
    >>> list(inspect.signature(create_app).parameters)
    ['index', 'model', 'allowed_hosts']
    """
    searcher = Searcher(index, model)
    # Encoding uses every core already; requests at the same time would only contend for them.
    encoding = Lock()
    app = FastAPI(title="rungwise", version=version("rungwise"), docs_url=None, redoc_url=None)
    _answer_errors_in_one_line(app)
    _guard(app, allowed_hosts)

    def item_position(number: int) -> int:
        if number >= len(index):
            raise HTTPException(404, f"no picture {number}; the index holds {len(index)}, counted from 0")
        return number

    @app.get("/api/status")
    def status() -> JSONResponse:
        """What is being searched."""
        about = index.manifest
        short = [text for text in index.captions if len(text) <= _EXAMPLE_LENGTH]
        return _json(
            {
                "name": about.name,
                "pictures": len(index),
                "captions": len(index.captions),
                "skipped": about.skipped,
                "dimension": about.dimension,
                "similarity": index.similarity.kind,
                "model": about.model_fingerprint[:12],
                "max_results": MAX_RESULTS,
                "max_upload_bytes": MAX_UPLOAD_BYTES,
                "version": app.version,
                "examples": short[:: max(1, len(short) // _EXAMPLES)][:_EXAMPLES],
            }
        )

    @app.get("/api/search")
    def search(q: Annotated[str, Query(max_length=2000)] = "", k: K = 24) -> JSONResponse:
        """The pictures nearest to a text."""
        with encoding:
            hits = searcher.search_text(q, k)
        return _json({"query": q, "results": _results(index, hits), "scale": _scale(hits, index.similarity.kind)})

    @app.get("/api/similar/{number}")
    def similar(number: Position, k: K = 24) -> JSONResponse:
        """The pictures nearest to one of the index."""
        item = index.items[item_position(number)]
        hits = index.similar(item.id, k)
        of = {"position": number, "id": item.id, "captions": item.captions, "has_file": item.path is not None}
        return _json({"of": of, "results": _results(index, hits), "scale": _scale(hits, "cosine")})

    @app.post("/api/search-by-picture")
    async def search_by_picture(request: Request, k: K = 24) -> JSONResponse:
        """The pictures and the captions nearest to a picture, whose file is the body of the request."""
        body = await _limited_body(request)
        if not body:
            raise HTTPException(422, "no picture in the request; send the bytes of a picture file as its body")

        def answer() -> tuple[list[Hit], list[CaptionHit]]:
            with encoding:
                vector = searcher.encode_picture(body)
                return index.search(vector, k)[0], searcher.captions_near(vector, _CAPTIONS_NEAR)

        hits, captions = await run_in_threadpool(answer)
        return _json(
            {
                "results": _results(index, hits),
                "scale": _scale(hits, "cosine"),
                "captions": [
                    {"text": caption.text, "score": caption.score, "positions": caption.positions}
                    for caption in captions
                ],
                "caption_scale": _scale(captions, index.similarity.kind),
                "has_captions": len(index.captions) > 0,
            }
        )

    @app.get("/pictures/{number}")
    def picture(
        number: Position, request: Request, thumb: Annotated[int | None, Query(ge=16, le=1024)] = None
    ) -> Response:
        """A picture, or with ``thumb`` a JPEG of it whose longer side has at most that many pixels."""
        path = index.items[item_position(number)].path
        if path is None:
            raise HTTPException(404, f"picture {number} has no file: the index was made of rows of features")
        # The reasons name the file, which only the owner of the pictures should see.
        gone = HTTPException(404, f"the file of picture {number} is no longer there or can no longer be read")
        try:
            about = path.stat()
            if not S_ISREG(about.st_mode):
                raise gone
            key = f"{path}|{about.st_mtime_ns}|{about.st_size}|{thumb}"
            headers = {"ETag": f'"{hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'}
            if headers["ETag"] in request.headers.get("if-none-match", ""):
                return Response(status_code=304, headers=headers)
            if thumb is None and (kind := _shown_as_is(path)):
                return FileResponse(path, media_type=kind, headers=headers)
            small = _thumbnail(path, thumb or _LARGEST_SIDE, about.st_mtime_ns, about.st_size)
        except (OSError, UserError) as error:
            raise gone from error
        return Response(small, media_type="image/jpeg", headers=headers)

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(_STATIC / "index.html")

    app.mount("/static", StaticFiles(directory=_STATIC))
    return app


def _results(index: Index, hits: Sequence[Hit]) -> list[dict[str, Any]]:
    return [
        {
            "position": hit.position,
            "id": hit.id,
            "score": hit.score,
            "captions": index.items[hit.position].captions,
            "has_file": index.items[hit.position].path is not None,
        }
        for hit in hits
    ]


def _scale(hits: Sequence[Hit] | Sequence[CaptionHit], similarity: str) -> tuple[float, float]:
    """Scores that a bar shows as empty and as full: fixed for cosines, the range of the results for the others."""
    if similarity in ("cosine", "shifted_cosine") or not hits:
        return 0.0, 1.0
    return hits[-1].score, hits[0].score


def _json(content: dict[str, Any]) -> JSONResponse:
    return JSONResponse(_printable(content))


def _printable(value: Any) -> Any:
    """Replace the halves of characters that stand for undecodable bytes of file names: JSON may not hold them."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _printable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(inner) for inner in value]
    return value


def _shown_as_is(path: Path) -> str | None:
    with path.open("rb") as file:
        start = file.read(16)
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _SENT_AS_IS.items() if start.startswith(magic)), None)


@functools.lru_cache(maxsize=_THUMBNAILS_KEPT)
def _thumbnail(path: Path, side: int, changed: int, size: int) -> bytes:
    """Time and size are part of the key, so that a picture that changed is read again."""
    return thumbnail(path, side)


async def _limited_body(request: Request) -> bytes:
    too_large = HTTPException(413, f"the picture is larger than {MAX_UPLOAD_BYTES >> 20} MiB; send a smaller one")
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > MAX_UPLOAD_BYTES:
        raise too_large
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_UPLOAD_BYTES:
            raise too_large
    return bytes(body)


def _answer_errors_in_one_line(app: FastAPI) -> None:
    def error(status: int, message: str) -> JSONResponse:
        return JSONResponse({"error": _printable(" ".join(message.split()))}, status)

    @app.exception_handler(UserError)
    def bad_input(_: Request, problem: UserError) -> JSONResponse:
        return error(422, str(problem))

    @app.exception_handler(RequestValidationError)
    def bad_request(_: Request, problem: RequestValidationError) -> JSONResponse:
        first = problem.errors()[0]
        return error(422, f"{first['loc'][-1]}: {first['msg']}")

    @app.exception_handler(StarletteHTTPException)
    def refused(_: Request, problem: StarletteHTTPException) -> JSONResponse:
        return error(problem.status_code, str(problem.detail))


def _guard(app: FastAPI, allowed_hosts: Sequence[str] | None) -> None:
    @app.middleware("http")
    async def guard(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        if allowed_hosts is not None and (request.url.hostname or "") not in allowed_hosts:
            return JSONResponse({"error": "this server does not answer under that name"}, 421, _HEADERS)
        response = await call_next(request)
        response.headers.update(_HEADERS)
        # Numbers belong to one index: after another is served, a browser must ask again. With ETags that is cheap.
        response.headers.setdefault("Cache-Control", "private, no-cache")
        return response


def own_names(host: str) -> tuple[str, ...] | None:
    """The names to allow for a server that listens on ``host``: a few for this machine alone, else any.

    >>> own_names("127.0.0.1")
    ('127.0.0.1', 'localhost', '::1')
    >>> own_names("0.0.0.0") is None
    True
    """
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    return tuple(dict.fromkeys((host, "127.0.0.1", "localhost", "::1"))) if local else None
