"""Tokens, without which a server that others can reach answers nothing."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from urllib.parse import urlencode

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.serving.access._hosts import is_loopback
from rungwise.serving.access._rights import Visitor

SHORTEST = 8
"""Smallest number of characters of a token."""

_RANDOM_BYTES = 24


def new_token() -> str:
    """A random token."""
    return secrets.token_urlsafe(_RANDOM_BYTES)


def checked_token(token: str) -> str:
    """The token, if it can be sent in a header and is long enough; the error does not repeat it.

    >>> checked_token("tea")
    Traceback (most recent call last):
    rungwise.core.UserError: the token must have at least 8 characters, all printable ASCII without spaces
    """
    if len(token) < SHORTEST or not all("!" <= character <= "~" for character in token):
        raise UserError(f"the token must have at least {SHORTEST} characters, all printable ASCII without spaces")
    return token


def check_guarded(bound: str, guarded: bool, open_to_all: bool) -> None:
    """Refuse to serve other machines unless there is a token, or access was explicitly opened to everybody.

    Args:
        bound: Address that the server's socket is bound to.
        guarded: Whether there is a token.
        open_to_all: Whether access was opened to everybody.

    Raises:
        UserError: If so, or if there is a token although access is open to everybody.

    >>> check_guarded("127.0.0.1", guarded=False, open_to_all=False)
    >>> check_guarded("0.0.0.0", guarded=False, open_to_all=False)
    Traceback (most recent call last):
    rungwise.core.UserError: other machines can reach 0.0.0.0; give a token, or say open_to_all=True to let...
    """
    if guarded and open_to_all:
        raise UserError("a token was given, and also that everybody may come in; choose one of them")
    if not guarded and not open_to_all and not is_loopback(bound):
        raise UserError(
            f"other machines can reach {bound}; give a token, or say open_to_all=True to let everybody see the pictures"
        )


def with_token(address: str, token: str | None) -> str:
    """Address of the page that gives a browser access.

    >>> with_token("http://192.0.2.7:8000/", "a+b/c=d8")
    'http://192.0.2.7:8000/?token=a%2Bb%2Fc%3Dd8'
    >>> with_token("http://127.0.0.1:8000/", None)
    'http://127.0.0.1:8000/'
    """
    return address if token is None else f"{address}?{urlencode({'token': token})}"


def cookie_of(token: str) -> str:
    """Value that a browser keeps in place of a token. It opens only the page, and the token cannot be derived from it.

    >>> len(cookie_of("correct-horse"))
    64
    """
    return hmac.digest(token.encode("utf-8", "surrogatepass"), b"rungwise page", "sha256").hex()


def seal_of(token: str) -> str:
    """Text by which a token is recognised, and from which neither the token nor its cookie can be derived.

    It is the SHA-256 of the cookie, so that a file of seals that falls into wrong hands opens nothing.

    >>> len(seal_of("correct-horse"))
    64
    """
    return _digest(cookie_of(token)).hex()


@dataclass(frozen=True)
class NamedToken:
    """A name with its right, and its token, or two of them while one takes the place of the other.

    Attributes:
        visitor: Name and right.
        seals: Seal of each token (:func:`seal_of`).
    """

    visitor: Visitor
    seals: tuple[str, ...]

    __repr__ = short_repr


class AccessTokens:
    """Tokens of a server with their names and rights.

    A given token is compared with all of them, in a time that says nothing of any.

    Args:
        tokens: Tokens with their names.

    >>> tokens = AccessTokens.single("correct-horse")
    >>> tokens.bearer_of("correct-horse"), tokens.bearer_of("wrong")
    (Visitor(name='', right='write'), None)
    >>> tokens.owner_of(cookie_of("correct-horse")) == tokens.bearer_of("correct-horse")
    True
    """

    def __init__(self, tokens: Sequence[NamedToken]) -> None:
        self._tokens: tuple[tuple[bytes, Visitor], ...] = ()
        self._replace(tokens)

    @classmethod
    def single(cls, token: str) -> AccessTokens:
        """One token without a name, which may do everything; UserError if it is unfit."""
        return cls([NamedToken(Visitor("", "write"), (seal_of(checked_token(token)),))])

    @property
    def visitors(self) -> tuple[Visitor, ...]:
        """Names with their rights."""
        return tuple(dict.fromkeys(visitor for _, visitor in self._tokens))

    def bearer_of(self, token: str) -> Visitor | None:
        """Name and right of a token; None if it is none."""
        return self.owner_of(cookie_of(token))

    def owner_of(self, cookie: str) -> Visitor | None:
        """Name and right of the token for which a browser keeps this cookie; None if there is none."""
        given, found = _digest(cookie), None
        for seal, visitor in self._tokens:
            if hmac.compare_digest(seal, given):
                found = visitor
        return found

    def followed(self) -> AbstractAsyncContextManager[None]:
        """Context in which tokens that lie in a file are read anew when it changes; these lie in none."""
        return nullcontext()

    def _replace(self, tokens: Sequence[NamedToken]) -> None:
        self._tokens = tuple((bytes.fromhex(seal), one.visitor) for one in tokens for seal in one.seals)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
