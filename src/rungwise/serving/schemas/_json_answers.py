"""Answers as JSON, and refusals in the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import is_dataclass
from hashlib import sha256
from typing import Any

from fastapi.responses import Response
from starlette.requests import Request

from rungwise.serving.schemas.responses import Refusal

_REASONS = {
    400: "The request makes no sense.",
    401: "The token is missing or wrong.",
    403: "A page of another site asked, or the token lacks the right that this needs.",
    404: "There is no such picture, or its file is gone.",
    408: "The body of the request did not come in time.",
    409: "What is meant has changed meanwhile.",
    413: "The picture has too many bytes or pixels.",
    421: "The server does not answer under that name.",
    422: "Something in the request is not as it should be.",
    429: "Too many pictures of this client are under way.",
    503: "The server has too much to do, or the store does not answer; try again after the seconds of Retry-After.",
}
IMAGES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The picture.",
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}}
            for kind in ("image/jpeg", "image/png", "image/gif", "image/webp", "application/octet-stream")
        },
    },
    304: {"description": "The picture has not changed since it had the ETag of If-None-Match."},
}
"""Responses of an operation that returns a picture, for the OpenAPI document."""

A_FILE = {
    "required": True,
    "description": "The bytes of a picture file.",
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
}
"""Body of an operation that takes a picture, for the OpenAPI document."""

FOR_EVER = "private, max-age=31536000, immutable"
"""``Cache-Control`` of an answer whose address changes with its content."""

_EVERYWHERE = (400, 401, 403, 421, 503)


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Refusals of an operation for the OpenAPI document: these, and those that any request may get.

    >>> sorted(refusals(404))
    [400, 401, 403, 404, 421, 503]
    """
    return {status: {"model": Refusal, "description": _REASONS[status]} for status in {*_EVERYWHERE, *statuses}}


def json_answer(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Answer as JSON, or with bytes that are JSON already."""
    content = content if isinstance(content, bytes) else json_bytes(content)
    return Response(content, status, headers, media_type="application/json")


def json_bytes(content: object) -> bytes:
    r"""JSON in UTF-8, in which lone surrogates (undecodable bytes of file names) are replaced.

    >>> json_bytes(Refusal("no \udcff here"))
    b'{"error":"no ? here"}'
    """
    text = json.dumps(content, default=_plain, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def small_picture(content: bytes, request: Request) -> Response:
    """Answer with a JPEG, or with status 304 if the browser already has it."""
    headers = {"ETag": f'"{sha256(content).hexdigest()[:32]}"'}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type="image/jpeg")


def _plain(value: object) -> object:
    """Plain form of a value of :mod:`rungwise.serving.schemas.responses`, without a deep copy."""
    if is_dataclass(value) and not isinstance(value, type):
        return vars(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON")
