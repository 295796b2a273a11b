"""Uploads of pictures, limited in number, in all and per client, in time and in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from threading import Lock

from fastapi import HTTPException
from starlette.requests import Request

from rungwise.serving._limits import ServingLimits

_CLOSE = {"Connection": "close"}
"""Header of an answer that is given before the body has arrived, which would be taken for the next request."""
_RETRY = _CLOSE | {"Retry-After": "2"}


class Uploads:
    """Table of the pictures that are being received and searched with."""

    def __init__(self, limits: ServingLimits) -> None:
        self._limits = limits
        self._lock = Lock()
        self._under_way: Counter[str] = Counter()
        self._held = 0

    @property
    def held(self) -> int:
        """Number of bytes of all uploads."""
        return self._held

    @asynccontextmanager
    async def received(
        self, request: Request, client: str, *, form: bool = False, most: int | None = None, what: str = "picture"
    ) -> AsyncIterator[bytes]:
        """The body of a request; the upload counts until the end of the block.

        Args:
            request: The request; its body must not have been read.
            client: Client of the request.
            form: Whether a picture may come inside a form.
            most: Largest number of bytes; None takes that of a picture.
            what: Name of the content in messages.

        Raises:
            HTTPException: 422 if the picture comes inside a form, 413 if the body is too large, 408 if it does not
                arrive in time, 429 if this client has too many uploads, 503 if there are too many in all.
            ClientDisconnect: If the client leaves before the end.
        """
        most = self._limits.upload_bytes if most is None else most
        _require_announced(request, most, what)
        if not form:
            _require_no_form(request)
        self._enter(client)
        held = _Held(self)
        try:
            yield await self._body(request, held, most, what)
        finally:
            held.give_back()
            self._leave(client)

    async def _body(self, request: Request, held: _Held, most: int, what: str) -> bytes:
        parts = []
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for part in request.stream():
                    held.take(len(part))
                    if held.size > most:
                        raise _too_large(most, what)
                    parts.append(part)
        except TimeoutError:
            message = f"the {what} has not come within {self._limits.body_seconds:g} s; send it again"
            raise HTTPException(408, message, _CLOSE) from None
        return b"".join(parts)

    def _enter(self, client: str) -> None:
        with self._lock:
            if self._under_way[client] >= self._limits.uploads_per_client:
                raise HTTPException(
                    429, f"{self._under_way[client]} pictures from here are under way; wait for their answers", _RETRY
                )
            if self._under_way.total() >= self._limits.uploads_at_once:
                raise HTTPException(503, "too many pictures are under way; try again in a moment", _RETRY)
            self._under_way[client] += 1

    def _leave(self, client: str) -> None:
        with self._lock:
            self._under_way[client] -= 1
            if not self._under_way[client]:
                del self._under_way[client]

    def change_held(self, by: int) -> None:
        """Add bytes to the count, or subtract them; HTTPException 503 if there are too many in all."""
        with self._lock:
            if by > 0 and self._held + by > self._limits.upload_bytes_in_all:
                raise HTTPException(503, "too many bytes of pictures are under way; try again in a moment", _RETRY)
            self._held += by


def _require_announced(request: Request, most: int, what: str) -> None:
    announced = request.headers.get("content-length", "")
    # More digits than these are too many in any case, and Python refuses to read very many.
    if announced.isdecimal() and (len(announced) > 18 or int(announced) > most):
        raise _too_large(most, what)


def _too_large(most: int, what: str) -> HTTPException:
    shown = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most} bytes"
    return HTTPException(413, f"the {what} is larger than {shown}; send a smaller one", _CLOSE)


def _require_no_form(request: Request) -> None:
    """Refuse a picture inside a form, as ``curl -F`` and pages send one; the message is a line that works."""
    if request.headers.get("content-type", "").lower().startswith("multipart/"):
        address = str(request.url).replace("'", "%27")
        message = f"the picture came inside a form; send the file by itself: curl --data-binary @photo.jpg '{address}'"
        raise HTTPException(422, message, _CLOSE)


class _Held:
    """Count of the bytes of one upload."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads
        self.size = 0

    def take(self, more: int) -> None:
        self._uploads.change_held(more)
        self.size += more

    def give_back(self) -> None:
        self._uploads.change_held(-self.size)
        self.size = 0
