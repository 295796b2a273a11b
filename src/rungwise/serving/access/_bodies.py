"""Small JSON bodies of requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from typing import Any

from fastapi import HTTPException
from starlette.requests import Request

from rungwise.serving.access._parameters import object_of, require_known

LARGEST = 16 * 1024
"""Largest number of bytes of such a body."""


async def json_body(
    request: Request, seconds: float, what: str, names: Collection[str], optional: Collection[str] = ()
) -> dict[str, Any]:
    """Read the body of a request, which must be a small JSON object.

    Only our own page can send JSON from a browser: for others a browser asks beforehand, and is refused.

    Args:
        request: The request; its body must not have been read.
        seconds: Time within which the body must have arrived.
        what: Description of the content with its article, for messages.
        names: Names that the object must have.
        optional: Names that the object may have besides.

    Raises:
        HTTPException: 422 if the body is not sent as JSON, is no JSON object, lacks a name, or has an unknown or
            repeated one; 413 if it is too large, 408 if it does not arrive in time.
    """
    require_json(request, what)
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
    return object_in(content, what, names, optional)


def require_json(request: Request, what: str) -> None:
    """Refuse with status 422 what is not announced as JSON, such as what a page elsewhere can send."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(422, f"{what} is sent as JSON; send the header 'Content-Type: application/json'")


def object_in(
    content: bytes | bytearray | str, what: str, names: Collection[str], optional: Collection[str] | None = ()
) -> dict[str, Any]:
    """The JSON object in a text.

    Args:
        content: The text.
        what: Description of the content with its article, for messages.
        names: Names that the object must have.
        optional: Names that the object may have besides; None for any.

    Raises:
        HTTPException: 422 if it is no JSON object, lacks a name, or has an unknown or repeated one, in it or within.

    >>> object_in('{"id": "a", "grade": NaN}', "a grade", ["id"])
    Traceback (most recent call last):
    fastapi.exceptions.HTTPException: 422: a grade is a JSON object with each name once: id
    """
    try:
        found = json.loads(content, object_pairs_hook=object_of, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        listed = f": {', '.join(known)}" if (known := (*names, *(optional or ()))) else ""
        raise HTTPException(422, f"{what} is a JSON object with each name once{listed}")
    if optional is not None:
        require_known("name", found, (*names, *optional))
    if missing := next((name for name in names if name not in found), None):
        raise HTTPException(422, f"{what} lacks {missing}; give a JSON object with {', '.join(names)}")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
