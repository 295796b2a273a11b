"""Settings of a server: where it listens, who is let in, and what strangers may hold of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rungwise.core import UserError
from rungwise.serving._limits import ServingLimits
from rungwise.serving.access._request_log import RequestLog
from rungwise.serving.access._tokens import AccessTokens


@dataclass(frozen=True)
class ServerSettings:
    """Settings that a server and its applications share.

    Attributes:
        host: Address to listen on; ``"0.0.0.0"`` lets other machines in, which needs a token or ``open_to_all``.
        port: Port to listen on; 0 takes any free one. Default: 8000, and any free one for a server in the background.
        token: Token that every request needs, in the header ``Authorization: Bearer TOKEN``; the page takes it once
            from ``?token=TOKEN`` and keeps it in a cookie. Only with a token can pictures be added and deleted.
        tokens: Several tokens with names and rights, in place of ``token``.
        open_to_all: Whether everybody who reaches the server may see every picture of the index.
        allowed_hosts: Names under which pages may be requested, without port. A server adds those of this machine. An
            application without a server takes any name by default; otherwise it should list its own, since a web page
            elsewhere can have its name resolved to this machine and read the answers.
        limits: Limits of what clients may hold.
        log: Log of requests; None for no log.
        keep_queries: Days for which queries that people type are kept beside the index, for ``rungwise calibrate``;
            None keeps none.

    >>> ServerSettings(port=0, limits=ServingLimits(connections=8)).host
    '127.0.0.1'
    """

    host: str = "127.0.0.1"
    port: int | None = None
    token: str | None = None
    tokens: AccessTokens | None = None
    open_to_all: bool = False
    allowed_hosts: Sequence[str] | None = None
    limits: ServingLimits = field(default_factory=ServingLimits)
    log: RequestLog | None = None
    keep_queries: int | None = None

    @property
    def known_tokens(self) -> AccessTokens | None:
        """All tokens of the server; None where it has none.

        Raises:
            UserError: If the token is unfit, or both a token and several tokens were given.
        """
        if self.token is None:
            return self.tokens
        if self.tokens is not None:
            raise UserError("one token was given, and also several; choose one of them")
        return AccessTokens.single(self.token)
