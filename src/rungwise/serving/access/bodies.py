"""Bodies of requests that hold a little JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from typing import Any

from fastapi import HTTPException
from starlette.requests import Request

from rungwise.serving.access.parameters import object_of, require_known

LARGEST = 16 * 1024
"""Bytes of such a body."""


async def json_body(
    request: Request, seconds: float, what: str, names: Collection[str], optional: Collection[str] = ()
) -> dict[str, Any]:
    """The body of a request that is a JSON object and holds little.

    Only a page of ours can send JSON from a browser: from elsewhere a browser asks beforehand, and is refused.

    Args:
        request: Whose body it is.
        seconds: Within which it must have come.
        what: It holds, with its article, for messages.
        names: That must be in it.
        optional: Names that may be in it besides.

    Raises:
        HTTPException: 422 if it is not sent as JSON, is no JSON object, lacks a name, or has one that is not known or
            one twice; 413 if it is too large, 408 if it does not come in time.

    >>> import inspect
    >>> list(inspect.signature(json_body).parameters)
    ['request', 'seconds', 'what', 'names', 'optional']
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(422, f"{what} is sent as JSON; send the header 'Content-Type: application/json'")
    content = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                content += part
                if len(content) > LARGEST:
                    raise HTTPException(413, f"{what} is larger than {LARGEST} bytes", {"Connection": "close"})
    except TimeoutError:
        message = f"{what} has not come within {seconds:g} s; send it again"
        raise HTTPException(408, message, {"Connection": "close"}) from None
    try:
        found = json.loads(content, object_pairs_hook=object_of)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise HTTPException(422, f"{what} is a JSON object with each name once: {', '.join((*names, *optional))}")
    require_known("name", found, (*names, *optional))
    if missing := next((name for name in names if name not in found), None):
        raise HTTPException(422, f"{what} lacks {missing}; give a JSON object with {', '.join(names)}")
    return found
