import asyncio
from collections.abc import AsyncIterator

import pytest
from fastapi import HTTPException
from starlette.requests import ClientDisconnect, Request

from rungwise.serving import ServingLimits
from rungwise.serving.access import Uploads
from tests.serving.loops import run


def request_of(
    parts: AsyncIterator[bytes | None], length: str | None = None, kind: str = "application/octet-stream"
) -> Request:
    """A request whose body comes in these parts; None is a client that leaves."""

    async def receive() -> dict[str, object]:
        try:
            part = await anext(parts)
        except StopAsyncIteration:
            return {"type": "http.request", "body": b"", "more_body": False}
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": True}

    headers = [(b"content-type", kind.encode())]
    headers += [] if length is None else [(b"content-length", length.encode())]
    return Request({"type": "http", "headers": headers}, receive)


async def parts_of(*parts: bytes | None) -> AsyncIterator[bytes | None]:
    for part in parts:
        yield part


async def never() -> AsyncIterator[bytes]:
    yield b"begun"
    await asyncio.Event().wait()


async def refusal(uploads: Uploads, request: Request, client: str = "a") -> HTTPException:
    with pytest.raises(HTTPException) as refused:
        async with uploads.received(request, client):
            pass
    return refused.value


def test_a_body_counts_until_its_answer() -> None:
    async def ask() -> None:
        uploads = Uploads(ServingLimits())
        async with uploads.received(request_of(parts_of(b"ab", b"c")), "a") as body:
            assert (body, uploads.held) == (b"abc", 3)
        assert uploads.held == 0

    run(ask())


def test_memory_is_given_back_when_the_client_leaves_in_the_middle() -> None:
    async def ask() -> None:
        uploads = Uploads(ServingLimits(uploads_per_client=1))
        for _ in range(3):  # its place, too
            with pytest.raises(ClientDisconnect):
                async with uploads.received(request_of(parts_of(bytes(1000), None)), "a"):
                    pass
            assert uploads.held == 0

    run(ask())


def test_a_slow_body_is_408_and_gives_its_place_back() -> None:
    async def ask() -> None:
        uploads = Uploads(ServingLimits(body_seconds=60, uploads_per_client=1))
        for _ in range(2):
            refused = await refusal(uploads, request_of(never()))
            assert (refused.status_code, refused.headers["Connection"]) == (408, "close")
            assert "within 60 s" in refused.detail
        assert uploads.held == 0

    run(ask())


@pytest.mark.parametrize("length", ["11", "9" * 5000, None])
def test_too_many_bytes_are_413_announced_or_not(length: str | None) -> None:
    async def ask() -> None:
        uploads = Uploads(ServingLimits(upload_bytes=10))
        assert (await refusal(uploads, request_of(parts_of(bytes(6), bytes(6)), length))).status_code == 413
        assert uploads.held == 0

    run(ask())


def test_a_client_has_a_few_places_and_all_together_have_some_more() -> None:
    async def ask() -> None:
        uploads = Uploads(ServingLimits(uploads_per_client=2, uploads_at_once=3))
        async with (
            uploads.received(request_of(parts_of(b"1")), "a"),
            uploads.received(request_of(parts_of(b"2")), "a"),
        ):
            refused = await refusal(uploads, request_of(parts_of(b"3")), "a")
            assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (429, True)
            async with uploads.received(request_of(parts_of(b"3")), "b"):
                refused = await refusal(uploads, request_of(parts_of(b"4")), "c")
                assert (refused.status_code, int(refused.headers["Retry-After"]) > 0) == (503, True)
        async with uploads.received(request_of(parts_of(b"5")), "a") as body:
            assert body == b"5"

    run(ask())


def test_bytes_have_a_limit_in_all() -> None:
    async def ask() -> None:
        uploads = Uploads(ServingLimits(upload_bytes_in_all=10))
        async with uploads.received(request_of(parts_of(bytes(6))), "a"):
            assert (await refusal(uploads, request_of(parts_of(bytes(5))), "b")).status_code == 503
            assert uploads.held == 6
        assert uploads.held == 0

    run(ask())
