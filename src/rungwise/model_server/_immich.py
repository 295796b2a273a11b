"""Requests of Immich's machine-learning service for encoding a picture or a text.

The form is that of Immich 2.7.5 (immich-app/immich): ``machine-learning/immich_ml/main.py`` answers what
``server/src/repositories/machine-learning.repository.ts`` asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import PlainTextResponse

from rungwise.core.output import quoted
from rungwise.model_server._forms import parts_of
from rungwise.model_server._served_model import ServedModel, Vectors
from rungwise.serving import client_of
from rungwise.serving.access import object_in
from rungwise.serving.schemas import json_answer, refusals

_TASK = "clip"
_PARTS = {"visual": "image", "textual": "text"}
"""Part of the form by what is asked for."""
_LARGEST_ENTRIES = 16 * 1024
_BESIDES = 64 * 1024
"""Bytes of a form besides its picture."""
_LONGEST_IN_UTF8 = 4
_SENT = {
    "required": True,
    "description": 'A form: `entries`, such as `{"clip": {"visual": {"modelName": "NAME"}}}`, with the part `image`; or'
    ' `{"clip": {"textual": {"modelName": "NAME"}}}` with the part `text`.',
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {
                    "entries": {"type": "string"},
                    "image": {"type": "string", "format": "binary"},
                    "text": {"type": "string"},
                },
                "required": ["entries"],
            }
        }
    },
}
_ANSWERED: dict[int | str, dict[str, Any]] = {
    200: {"description": "`clip` is the vector as a JSON array in a text; of a picture, its size in pixels too."}
}


@dataclass(frozen=True)
class Prediction:
    """What a request asks for.

    Attributes:
        name: Name of the model that is asked for.
        content: Bytes of a picture, or a text.
    """

    name: str
    content: bytes | str


def routes(served: ServedModel) -> APIRouter:
    """Operations in Immich's form."""
    router = APIRouter(tags=["immich"])

    @router.get("/ping", response_class=PlainTextResponse, responses=refusals())
    async def ping() -> Response:
        """That the server answers."""
        return PlainTextResponse("pong")

    @router.post(
        "/predict", responses=refusals(404, 408, 413, 422, 429) | _ANSWERED, openapi_extra={"requestBody": _SENT}
    )
    async def predict(request: Request) -> Response:
        """The vector of a picture or of a text."""
        limits = served.limits
        most = max(limits.upload_bytes, _LONGEST_IN_UTF8 * limits.text_characters) + _BESIDES
        uploads = served.queues.uploads.received(request, client_of(request), form=True, most=most, what="form")
        async with uploads as body:
            asked = read_prediction(body, request.headers.get("content-type", ""))
            del body
            served.require_name(asked.name)
            if isinstance(asked.content, str):
                vectors = await served.encode_texts(request, [served.require_text(asked.content)])
                return json_answer({_TASK: as_text(vectors[0])})
            vector, header = await served.encode_picture(request, asked.content)
        return json_answer({_TASK: as_text(vector), "imageHeight": header.height, "imageWidth": header.width})

    return router


def read_prediction(body: bytes, kind: str) -> Prediction:
    """What a form asks for.

    Args:
        body: The form.
        kind: Its ``Content-Type``.

    Raises:
        HTTPException: 422 if it is no such form, or asks for anything but one vector of a picture or of a text; 413 if
            its ``entries`` are too large.
    """
    parts = parts_of(body, kind)
    if "entries" not in parts:
        raise HTTPException(422, "the form lacks the part entries; send what is asked for as JSON")
    if len(parts["entries"]) > _LARGEST_ENTRIES:
        raise HTTPException(413, f"the part entries is larger than {_LARGEST_ENTRIES} bytes")
    what, entry = _asked(object_in(_text(parts, "entries"), "the part entries", (), None))
    name = entry.get("modelName")
    if not isinstance(name, str) or not name:
        raise HTTPException(422, f"the part entries lacks modelName, a text, in {_TASK}.{what}")
    if not isinstance(entry.get("options", {}), Mapping):
        raise HTTPException(422, f"options of {_TASK}.{what} is no JSON object")
    part = _PARTS[what]
    if part not in parts:
        raise HTTPException(422, f"the form lacks the part {part}, of which {_TASK}.{what} is the vector")
    return Prediction(name, parts[part] if what == "visual" else _text(parts, part))


def _asked(entries: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Whether a picture or a text is to be encoded, and what is said of it."""
    for task in entries:
        if task != _TASK:
            raise HTTPException(
                422,
                f"this server does not do {quoted(task)}: it encodes pictures and texts for search alone; turn that off"
                " in the settings of whoever asks, or leave it to Immich's own service",
            )
    types = entries.get(_TASK)
    if not isinstance(types, Mapping) or len(types) != 1 or (what := next(iter(types))) not in _PARTS:
        raise HTTPException(422, f"the part entries asks for no vector; ask for {_TASK}.visual or {_TASK}.textual")
    entry = types[what]
    if not isinstance(entry, Mapping):
        raise HTTPException(422, f"{_TASK}.{what} is no JSON object with modelName")
    return what, entry


def _text(parts: Mapping[str, bytes], name: str) -> str:
    try:
        return parts[name].decode("utf-8")
    except UnicodeDecodeError:
        raise HTTPException(422, f"the part {name} is no UTF-8; send it as UTF-8") from None


def as_text(vector: Vectors) -> str:
    """A vector as a JSON array in a text; each number is the shortest that is read as the same float32.

    >>> import numpy as np
    >>> as_text(np.array([0.1, -1e-9], np.float32))
    '[0.1,-1e-09]'
    """
    return f"[{','.join(map(str, vector))}]"
