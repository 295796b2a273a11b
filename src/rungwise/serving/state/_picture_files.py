"""Files of pictures as answers: sent unchanged, or made smaller."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from stat import S_ISREG
from urllib.parse import quote

from fastapi import HTTPException
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from rungwise.core import UserError, digest_of_parts, opened_file
from rungwise.data.files import PackedPicture, Picture
from rungwise.data.pictures import read_header, thumbnail
from rungwise.serving._limits import ServingLimits
from rungwise.serving.queues import Memory, WorkQueue
from rungwise.serving.state._thumbnails import ThumbnailCache

_LARGEST_SIDE = 2048
_MOST_SHOWN = 64_000_000
"""Pixels of the largest picture that is left to browsers; telephones show no larger ones."""
_PIECE = 1 << 20
# A picture is sent as it is only if its first bytes are of a kind that every browser shows and that holds no script.
_SENT_AS_IS = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png", b"GIF8": "image/gif"}


@dataclass(frozen=True)
class _File:
    """A picture's file at one moment: what distinguishes it from a later one, and how it may be sent."""

    path: Picture
    changed: tuple[int, int, int]
    kind: str | None

    def tag(self, side: int | None) -> str:
        key = f"{self.path}|{self.changed}|{side}"
        return f'"{digest_of_parts([key])[:32]}"'


class PictureFiles:
    """Sends pictures of the index."""

    def __init__(self, queue: WorkQueue, memory: Memory, limits: ServingLimits) -> None:
        self.limits = limits
        self._memory = memory
        self._thumbnails = ThumbnailCache(queue, limits.thumbnail_bytes, limits.waiting_seconds)

    async def answer(self, path: Picture, side: int | None, request: Request, client: str) -> Response:
        """Answer with a picture's file, or with a JPEG of it.

        Args:
            path: Path of the file, or its place in a packed one. No message names it.
            side: Longest side in pixels. None sends the file unchanged where browsers show it, and a JPEG of at most
                2,048 pixels where its format, or more than 64 million pixels, keep them from that.
            request: Request to answer.
            client: Client of the request.

        Raises:
            HTTPException: 404 if there is no readable picture; 422 if it is too large to be made smaller.
            BusyError: If its turn has not come in time.
            ClientDisconnect: If the client has left.
        """
        try:
            file = await run_in_threadpool(_look_at, path)
            headers = {"ETag": file.tag(side)}
            if headers["ETag"] in request.headers.get("if-none-match", ""):
                return Response(status_code=304, headers=headers)
            if side is None and file.kind is not None:
                # Without its length: should the file be cut off meanwhile, the answer only ends earlier.
                return StreamingResponse(_pieces(path), headers=headers, media_type=file.kind)
            side = side or _LARGEST_SIDE
            make = partial(self._make, path, side)
            small = await self._thumbnails.get((file, side), make, request, client)
        # The reasons name the file.
        except (OSError, ValueError, UserError) as error:
            raise HTTPException(404, "the file of this picture is no longer there or can no longer be read") from error
        return Response(small, headers=headers, media_type="image/jpeg")

    async def download(self, path: Picture, name: str, request: Request) -> Response:
        """Answer with a picture's file as it is, to be saved under a name; the arguments are those of :meth:`answer`.

        Raises:
            HTTPException: 404 if there is no readable picture.
        """
        try:
            file = await run_in_threadpool(_look_at, path)
        except (OSError, ValueError, UserError) as error:  # the reasons name the file
            raise HTTPException(404, "the file of this picture is no longer there or can no longer be read") from error
        plain = "".join(sign if sign.isascii() and sign not in '"\\%' else "_" for sign in name)
        named = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='', errors='replace')}"
        headers = {"ETag": file.tag(None), "Content-Disposition": named}
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return StreamingResponse(_pieces(path), headers=headers, media_type=file.kind or "application/octet-stream")

    def _make(self, path: Picture, side: int) -> bytes:
        source = path.read() if isinstance(path, PackedPicture) else path
        header = read_header(source, shorter_side=side)
        needed = header.memory(side) + (len(source) if isinstance(source, bytes) else source.stat().st_size)
        if header.pixels > self.limits.thumbnail_pixels or needed > self.limits.decoding_memory:
            raise HTTPException(
                422, f"this picture has {header.pixels} pixels, which are too many for a small copy of it"
            )
        with self._memory.taken(needed):
            return thumbnail(source, side)


def _look_at(path: Picture) -> _File:
    if isinstance(path, PackedPicture):
        about = path.file.stat()
        data = path.read()
        return _File(path, (about.st_ino, about.st_mtime_ns, about.st_size), _shown_as_is(data[:16], data))
    about = path.stat()
    if not S_ISREG(about.st_mode):
        raise OSError("not a file")
    with opened_file(path, "picture_bytes") as file:
        return _File(path, (about.st_ino, about.st_mtime_ns, about.st_size), _shown_as_is(file.read(16), path))


def _pieces(path: Picture) -> Iterator[bytes]:
    if isinstance(path, PackedPicture):
        yield path.read()
        return
    with opened_file(path, "picture_bytes") as file:
        while piece := file.read(_PIECE):
            yield piece


def _shown_as_is(start: bytes, source: Path | bytes) -> str | None:
    kind = _kind_of(start)
    if kind is not None:
        with suppress(UserError):  # whoever asks for it is told why
            if read_header(source, shorter_side=_LARGEST_SIDE).pixels > _MOST_SHOWN:
                return None
    return kind


def _kind_of(start: bytes) -> str | None:
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _SENT_AS_IS.items() if start.startswith(magic)), None)
