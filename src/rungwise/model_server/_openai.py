"""Requests for embeddings in OpenAI's form, with pictures as an extension."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter, HTTPException, Request, Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rungwise.model_server._served_model import ServedModel, Vectors
from rungwise.serving import client_of
from rungwise.serving.access import object_in, require_json
from rungwise.serving.schemas import json_answer

PREFIX = "/v1"
"""Beginning of the addresses of these operations."""

_INPUT = "input"
_OPTIONAL = ("model", "encoding_format", "dimensions", "user")
_FORMATS = ("float", "base64")
_DATA = re.compile(r"data:[\w.+/;=-]{0,100}?;base64,")
_ONE = {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"image": {"type": "string"}}}]}
_SENT = {
    "required": True,
    "description": 'Texts, and pictures as `{"image": "data:image/jpeg;base64,..."}`, an extension.',
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    _INPUT: {"oneOf": [_ONE, {"type": "array", "items": _ONE}]},
                    "model": {"type": "string"},
                    "encoding_format": {"enum": [*_FORMATS]},
                    "dimensions": {"type": "integer"},
                    "user": {"type": "string"},
                },
                "required": [_INPUT],
                "additionalProperties": False,
            }
        }
    },
}
_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


@dataclass(frozen=True)
class EmbeddingRequest:
    """What a request asks for.

    Attributes:
        inputs: Texts, and bytes of pictures, in their order.
        name: Name of the model that is asked for; None for any.
        in_base64: Whether vectors are sent as little-endian float32 in base64, and not as numbers.
    """

    inputs: tuple[str | bytes, ...]
    name: str | None
    in_base64: bool

    @property
    def words(self) -> int:
        """Number of words of all texts."""
        return sum(len(one.split()) for one in self.inputs if isinstance(one, str))


def routes(served: ServedModel) -> APIRouter:
    """Operations in OpenAI's form."""
    router = APIRouter(prefix=PREFIX, tags=["openai"])
    about = {"id": served.id, "object": "model", "created": 0, "owned_by": "rungwise"}

    @router.get("/models", responses=_refusals())
    async def models() -> Response:
        """The model that is served."""
        return json_answer({"object": "list", "data": [about]})

    @router.get("/models/{name:path}", responses=_refusals(404))
    async def model(name: str) -> Response:
        """What is known of the model."""
        served.require_name(name)
        return json_answer(about)

    @router.post("/embeddings", responses=_refusals(404, 408, 413, 422, 429), openapi_extra={"requestBody": _SENT})
    async def embeddings(request: Request) -> Response:
        """Vectors of texts, and of pictures."""
        require_json(request, "the request")
        most = served.limits.request_bytes
        uploads = served.queues.uploads.received(request, client_of(request), most=most, what="request")
        async with uploads as body:
            asked = await served.queues.decoded(request, partial(read_request, body, served))
            del body
            vectors = await _encoded(served, request, asked)
        return await served.queues.decoded(request, partial(_answer, served.id, asked, vectors))

    return router


def read_request(body: bytes, served: ServedModel) -> EmbeddingRequest:
    """What a request for embeddings asks for.

    Raises:
        HTTPException: 422 if it is malformed or asks for what the model does not give, 413 if it is too large, 404 if
            it names another model.
    """
    sent = object_in(body, "the request", [_INPUT], _OPTIONAL)
    name, form, width = sent.get("model"), sent.get("encoding_format"), sent.get("dimensions")
    if name is not None:
        if not isinstance(name, str):
            raise HTTPException(422, "model is a text")
        served.require_name(name)
    if form not in (None, *_FORMATS):
        raise HTTPException(422, f"encoding_format is one of {', '.join(_FORMATS)}")
    if width is not None and width != served.model.dimension:
        raise HTTPException(422, f"dimensions must be {served.model.dimension}, as the model gives; leave it out")
    given = sent[_INPUT]
    every = given if isinstance(given, list) else [given]
    if not every:
        raise HTTPException(422, "input is empty; send a text, or a list of texts")
    if len(every) > served.limits.inputs:
        raise HTTPException(413, f"input has {len(every)} entries; send at most {served.limits.inputs} at once")
    return EmbeddingRequest(tuple(_input(one, served) for one in every), name, form == "base64")


def _input(given: object, served: ServedModel) -> str | bytes:
    if isinstance(given, str):
        return served.require_text(given)
    if isinstance(given, int | list):
        raise HTTPException(422, "input holds token numbers, which mean nothing to this model; send texts")
    if isinstance(given, Mapping) and len(given) == 1:
        if isinstance(text := given.get("text"), str):
            return served.require_text(text)
        if isinstance(sent := given.get("image"), str):
            return _picture(sent)
    raise HTTPException(422, 'an entry of input is a text, or {"image": "data:image/jpeg;base64,..."}')


def _picture(sent: str) -> bytes:
    """The bytes in a ``data:`` address; no other address is followed."""
    begins = _DATA.match(sent)
    if begins is None:
        raise HTTPException(
            422,
            "image is no data: address, and others are not fetched; send the file itself: data:image/jpeg;base64,...",
        )
    try:
        return base64.b64decode(sent[begins.end() :], validate=True)
    except (binascii.Error, ValueError):
        raise HTTPException(422, "image is no base64; send the bytes of a file: data:image/jpeg;base64,...") from None


async def _encoded(served: ServedModel, request: Request, asked: EmbeddingRequest) -> Vectors:
    """(inputs, D) vectors."""
    vectors = np.zeros((len(asked.inputs), served.model.dimension), np.float32)
    texts = {place: one for place, one in enumerate(asked.inputs) if isinstance(one, str)}
    if texts:
        vectors[[*texts]] = await served.encode_texts(request, [*texts.values()])
    for place, one in enumerate(asked.inputs):
        if isinstance(one, bytes):
            vectors[place], _ = await served.encode_picture(request, one)
    return vectors


def _answer(name: str, asked: EmbeddingRequest, vectors: Vectors) -> Response:
    rows: Sequence[Any] = (
        [base64.b64encode(row.astype("<f4").tobytes()).decode("ascii") for row in vectors]
        if asked.in_base64
        else vectors.tolist()
    )
    return json_answer(
        {
            "object": "list",
            "data": [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)],
            "model": name,
            "usage": {"prompt_tokens": asked.words, "total_tokens": asked.words},
        }
    )


def in_openai_form(body: bytes, status: int) -> bytes:
    """A refusal of ours in OpenAI's form; anything else as it is.

    >>> in_openai_form(b'{"error": "no"}', 422).decode()
    '{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}'
    """
    try:
        message = json.loads(body)["error"]
    except (ValueError, TypeError, KeyError):
        return body
    kind = "server_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")
    error = {"message": message, "type": kind, "param": None, "code": None}
    return json.dumps({"error": error}, separators=(",", ":")).encode()


class OpenAIErrors:
    """Middleware before everything else that puts refusals of OpenAI's operations into OpenAI's form."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and its answer back."""
        if scope["type"] != "http" or not scope["path"].startswith(f"{PREFIX}/"):
            await self.app(scope, receive, send)
            return
        begun: Message | None = None
        body = bytearray()

        async def answer(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start" and message["status"] >= 400:
                begun = message
                return
            if begun is None:
                await send(message)
                return
            body.extend(message.get("body", b""))
            if message.get("more_body"):
                return
            content = in_openai_form(bytes(body), begun["status"])
            if scope["method"] != "HEAD":
                MutableHeaders(scope=begun)["content-length"] = str(len(content))
            await send(begun)
            await send({"type": "http.response.body", "body": content})

        await self.app(scope, receive, answer)


_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"message": {"type": "string"}, "type": {"type": "string"}},
            "required": ["message", "type"],
        }
    },
    "required": ["error"],
}


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Refusals for the OpenAPI document, in OpenAI's form."""
    content = {"application/json": {"schema": _ERROR}}
    return {one: {"description": "A refusal.", "content": content} for one in (401, 403, 421, 503, *statuses)}
