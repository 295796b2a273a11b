"""Access guard, which stands before the application for every request.

A browser carries requests of strangers: a web page elsewhere can make it send a request here, or have its own name
resolved to this machine. So the requested name must be one of ours (``Host``), requests on behalf of other pages are
refused (``Origin``, ``Sec-Fetch-Site``), and where there are tokens nobody without one is answered at all, and nobody
beyond the right of that token.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rungwise.serving.access._hosts import host_of, plain_name
from rungwise.serving.access._rights import NeededRight, Visitor
from rungwise.serving.access._tokens import AccessTokens, cookie_of

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob:; object-src 'none'; base-uri 'none';"
    " form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer."""

_SAFE = ("GET", "HEAD")
_COOKIE_SECONDS = 400 * 24 * 3600
_LOCKED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>rungwise</title></head><body>
<h1>This page needs its token</h1>
<p>{reason} Open the address that <code>rungwise serve</code> printed, or give the token here.
If you have been here before, <a href="{address}">open the page again</a>.</p>
<form method="get" action="./"><label>Token <input name="token" type="password" autocomplete="off" autofocus></label>
<button>Open</button></form>
</body></html>
"""


class AccessGuard:
    """Middleware that refuses requests without access, and adds the headers of every answer.

    Args:
        app: Application behind the guard.
        names: Names under which the application may be requested; None for any. The address at which a connection
            arrived is always one.
        tokens: Tokens, one of which every request needs; None for no tokens.
        needed: Function that gives the right that a request needs; None for all of them.
    """

    def __init__(
        self, app: ASGIApp, names: Sequence[str] | None, tokens: AccessTokens | None, needed: NeededRight | None = None
    ) -> None:
        self.app = app
        self.names = None if names is None else frozenset(plain_name(name) for name in names)
        self.tokens = tokens
        self.needed = needed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        head = scope["method"] == "HEAD"

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                # The file behind an id may change, so a browser must ask again. With ETags that is cheap.
                headers.setdefault("Cache-Control", "private, no-cache")
            elif head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, answer)
        else:
            # What answers GET answers HEAD; nothing behind needs to know of it.
            inner = {**scope, "method": "GET"} if head else scope
            try:
                await self.app(inner, receive, answer)
            finally:
                scope["route"] = inner.get("route")

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        asked = headers.getlist("host")
        name = host_of(asked[0]) if len(asked) == 1 else ""
        if self.names is not None and not (name and (name in self.names or name == _arrived_at(scope))):
            return _refused(
                421, "this server does not answer under that name; whoever runs it can allow it with --allowed-host"
            )
        if _from_elsewhere(scope, headers, name):
            return _refused(403, "a page of another site asked for this; only this server's own page may")
        if self.tokens is None:
            return None
        found = self._visitor(scope, headers, self.tokens)
        if not isinstance(found, Visitor):
            return found
        scope["visitor"] = found
        return self._beyond_right(scope, found)

    def _beyond_right(self, scope: Scope, visitor: Visitor) -> Response | None:
        needed = "write" if self.needed is None else self.needed(scope["method"], scope["path"])
        if visitor.may(needed or "write"):
            return None
        if needed is None:
            return _refused(404, "there is nothing at this address")
        return _refused(
            403,
            f"this needs the right {needed}, and the token {visitor.name} has {visitor.right}; ask whoever runs this"
            " server",
        )

    def _visitor(self, scope: Scope, headers: Headers, tokens: AccessTokens) -> Visitor | Response:
        """Bearer of the token that came with a request, or the answer to a request without one."""
        page = scope["path"] in ("/", "/docs") and scope["method"] in _SAFE
        given = _token_cut_out(scope) if page else None
        cookie = f"rungwise-{_port(scope, headers)}"
        query = scope["query_string"].decode("latin-1")
        address = f"./?{query}" if query else "./"
        if given is not None:
            if tokens.bearer_of(given) is None:
                return _locked("That is not the token.", address)
            response = RedirectResponse(address, 303)
            response.set_cookie(
                cookie,
                cookie_of(given),
                max_age=_COOKIE_SECONDS,
                httponly=True,
                samesite="strict",
                secure=_encrypted(scope, headers),
            )
            return response
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        visitor = tokens.bearer_of(bearer.strip()) if kind.lower() == "bearer" else None
        visitor = visitor or tokens.owner_of(_cookie(headers, cookie))
        if visitor is not None:
            return visitor
        if page:
            return _locked("", address)
        return _refused(401, "the token is missing or wrong; send it as 'Authorization: Bearer TOKEN'", _CHALLENGE)


_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="rungwise"'}


def _from_elsewhere(scope: Scope, headers: Headers, name: str) -> bool:
    """Whether a browser says that it sends the request on behalf of another page."""
    path = scope["path"]
    if scope["method"] in _SAFE and (
        path in ("/", "/docs") or path.startswith(("/static/", "/common/", "/reference/"))
    ):
        return False  # a page elsewhere may lead here
    # Other ports and names of the same site are not this page either.
    if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    if origin is None:
        return False
    scheme, _, place = origin.partition("://")
    # Before this server there may be one that speaks https.
    return (
        scheme not in ("http", "https")
        or host_of(place) != name
        or _port_of(place) != _port_of(headers.get("host", ""))
    )


def _token_cut_out(scope: Scope) -> str | None:
    """The token in the address, which is removed there at once so that no log contains it."""
    pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    given = [value for key, value in pairs if key == "token"]
    if given:
        scope["query_string"] = urlencode([pair for pair in pairs if pair[0] != "token"]).encode("latin-1")
    return given[0] if given else None


def _cookie(headers: Headers, name: str) -> str:
    """The unparsed value of a cookie, which needs no unescaping because ours contains no escaped character.

    The parsers of the libraries would undo escapes, some of them in quadratic time.
    """
    for line in headers.getlist("cookie"):
        pairs = (pair.partition("=") for pair in line.split(";"))
        if found := {key.strip(): value.strip() for key, _, value in pairs}.get(name):
            return found
    return ""


def _encrypted(scope: Scope, headers: Headers) -> bool:
    """Whether the browser came by https, as a proxy before this server says.

    Whoever sends that header without being a proxy only gets a cookie back that a browser keeps from plain HTTP.
    """
    return scope.get("scheme") == "https" or headers.get("x-forwarded-proto", "").strip().lower() == "https"


def _arrived_at(scope: Scope) -> str:
    server = scope.get("server")
    return plain_name(server[0]) if server else ""


def _port(scope: Scope, headers: Headers) -> str:
    """Port of this server as the browser knows it: cookies do not distinguish ports, so their names have to."""
    return _port_of(headers.get("host", "")) or str((scope.get("server") or ("", 80))[1])


def _port_of(place: str) -> str:
    port = place.rpartition(":")[2]
    return port if port.isdecimal() and not place.endswith("]") else ""


def _locked(reason: str, address: str) -> Response:
    return HTMLResponse(_LOCKED.format(reason=escape(reason), address=escape(address)), 401, _CHALLENGE)


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps({"error": message}), status, headers, media_type="application/json")
