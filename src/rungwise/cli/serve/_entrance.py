"""Who is let in to a server: options that every command of a server has, and what is printed of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from rungwise.core import UserError
from rungwise.core.text import idle_where
from rungwise.jobs import say
from rungwise.serving import TOKEN
from rungwise.serving.access import (
    SHORTEST,
    AccessTokens,
    TokenFile,
    addresses,
    bound_address,
    checked_token,
    is_loopback,
    new_token,
    parse_tokens,
)

if TYPE_CHECKING:
    from rungwise.serving import RequestLog, ServerSettings, ServingLimits

TOKENS = "RUNGWISE_TOKENS"
"""Environment variable of several tokens, with the lines of a file of tokens; a semicolon may stand for a new line."""


class Entrance(Protocol):
    """Options of a command that say who is let in, and where.

    Attributes:
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        token: The one token.
        tokens: File of several tokens.
        open: Whether others are let in without a token.
        allowed_host: Further names of the server.
    """

    host: str
    port: int
    token: str | None
    tokens: Path | None
    open: bool
    allowed_host: tuple[str, ...]

    @property
    def limits(self) -> ServingLimits:
        """Limits of the server."""
        ...


def tokens_of(asked: Entrance) -> AccessTokens | None:
    """Several tokens, if there are such."""
    in_environment = os.environ.get(TOKENS)
    if in_environment is not None and not in_environment.strip():
        raise UserError(f"{TOKENS} is set and holds no token; write tokens into it, or take it away")
    if asked.tokens is not None and in_environment is not None:
        raise UserError(f"--tokens names a file of tokens, and {TOKENS} holds some too; give one of them")
    if asked.tokens is not None:
        return TokenFile(asked.tokens)
    return None if in_environment is None else parse_tokens(in_environment, TOKENS)


def token_of(asked: Entrance, tokens: AccessTokens | None) -> tuple[str | None, bool]:
    """The one token, and whether other machines can reach the server."""
    beyond = not is_loopback(bound_address(asked.host))
    given = asked.token or os.environ.get(TOKEN) or None
    name = "--token" if asked.token else TOKEN
    if tokens is not None and given is not None:
        several = TOKENS if asked.tokens is None else "--tokens"
        raise UserError(f"{name} gives one token and {several} several; leave out one of the two")
    if asked.open:
        if given is not None or tokens is not None:
            raise UserError(
                f"--open serves without a token, and one was given; leave out --open, or --token, --tokens, {TOKEN} and"
                f" {TOKENS}"
            )
        return None, beyond
    if given is None:
        return (new_token() if beyond and tokens is None else None), beyond
    try:
        return checked_token(given), beyond
    except UserError:
        raise UserError(
            f"{name}: a token has at least {SHORTEST} characters, all printable ASCII without spaces"
        ) from None


def settings_of(
    asked: Entrance,
    token: str | None,
    tokens: AccessTokens | None,
    *,
    log: RequestLog | None = None,
    keep_queries: int | None = None,
) -> ServerSettings:
    """Settings of a server with these options, with the one token or several.

    Args:
        asked: The options.
        token: The one token; None where there are several, or none is asked for.
        tokens: Several tokens.
        log: Where requests are told.
        keep_queries: Days for which queries are kept.
    """
    from rungwise.serving import ServerSettings

    return ServerSettings(
        host=asked.host,
        port=asked.port,
        token=token,
        tokens=tokens,
        open_to_all=asked.open,
        allowed_hosts=asked.allowed_host,
        limits=asked.limits,
        log=log,
        keep_queries=keep_queries,
    )


def say_how_to_ask(host: str, address: str, token: str | None, path: str = "") -> None:
    """Print the addresses for other machines, and the token, for programs that send it in a header."""
    for other in elsewhere(host, address):
        say(f"from other machines: {other.rstrip('/')}{path}" if path else f"from other machines: {other}")
    if token is not None:
        say(f"the token, sent as 'Authorization: Bearer TOKEN': {token}")


def elsewhere(host: str, address: str) -> tuple[str, ...]:
    """Addresses for other machines, where they differ from the one for this machine."""
    return addresses(host, bound_address(host), urlsplit(address).port or 80)[1:]


def listed(tokens: AccessTokens) -> str:
    """The names of several tokens with their rights, in a line."""
    return f"tokens: {', '.join(f'{one.name} ({one.right})' for one in tokens.visitors)}"


def exposure(what: str, *, guarded: bool) -> str:
    """Warning about what others will be able to do.

    >>> exposure("2 pictures can be seen", guarded=True)
    'warning: 2 pictures can be seen by everybody who has a token, and what is sent is not encrypted'
    """
    who = "everybody who has a token" if guarded else "everybody who can reach this machine"
    return f"warning: {what} by {who}, and what is sent is not encrypted"


def _needs_no_token(asked: Entrance) -> bool:
    has_token = any((asked.token, asked.tokens, os.environ.get(TOKEN), os.environ.get(TOKENS)))
    return not has_token and is_loopback(bound_address(asked.host))


IDLE_OPEN = idle_where(
    "open",
    _needs_no_token,
    "at an address that no other machine reaches, and needs no token",
    "leave it out, or name another: {host} 0.0.0.0",
)
"""The case that ``--open`` changes nothing."""
