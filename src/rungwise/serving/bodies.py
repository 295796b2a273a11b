"""Bodies of requests that hold a little JSON."""

from __future__ import annotations

import asyncio

from fastapi import HTTPException
from starlette.requests import Request

LARGEST = 16 * 1024
"""Bytes of such a body."""


async def json_body(request: Request, seconds: float, what: str) -> bytes:
    """The body of a request that holds little.

    Only a page of ours can send JSON from a browser: from elsewhere a browser asks beforehand, and is refused.

    Args:
        request: Whose body it is.
        seconds: Within which it must have come.
        what: It holds, with its article, for messages.

    Raises:
        HTTPException: 422 if it is not sent as JSON, 413 if it is too large, 408 if it does not come in time.

    >>> import inspect
    >>> list(inspect.signature(json_body).parameters)
    ['request', 'seconds', 'what']
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
    return bytes(content)
