"""A wire that ends in an application of this process, for clients that speak by ``http.client``."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import unquote

import pytest
from fastapi.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

ADDRESS = "http://127.0.0.1:8000/"
"""At which the application answers."""


class _Response:
    def __init__(self, status: int, content: bytes) -> None:
        self.status = status
        self._content = content

    def read(self, most: int | None = None) -> bytes:
        return self._content[:most]


def _connection_to(application: TestClient) -> type:
    class Connection:
        def __init__(self, host: str, port: int | None, timeout: float) -> None:
            assert (host, port) == ("127.0.0.1", 8000)

        def request(self, method: str, address: str, body: bytes | None, headers: dict[str, str]) -> None:
            answer = application.request(method, address, content=body, headers=headers, follow_redirects=False)
            self._response = _Response(answer.status_code, answer.content)

        def getresponse(self) -> _Response:
            return self._response

        def close(self) -> None:
            return

    return Connection


def _reading_once(app: ASGIApp) -> ASGIApp:
    """As a server reads the path of a request: ``TestClient`` would take ``%252F`` for a slash."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": unquote(scope["raw_path"].decode("ascii"))}
        await app(scope, receive, send)

    return answer


@contextmanager
def reached(app: ASGIApp) -> Iterator[str]:
    """While it lasts, whoever asks at the address that it gives is answered by the application."""
    with ExitStack() as stack:
        application = stack.enter_context(
            TestClient(_reading_once(app), base_url=ADDRESS, raise_server_exceptions=False)
        )
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(http.client, "HTTPConnection", _connection_to(application))
        yield ADDRESS
