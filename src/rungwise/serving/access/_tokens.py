"""Tokens, without which a server that others can reach answers nothing."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from urllib.parse import urlencode

from rungwise.core import UserError
from rungwise.serving.access._hosts import is_loopback

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


def check_guarded(bound: str, token: str | None, open_to_all: bool) -> None:
    """Refuse to serve other machines unless there is a token, or access was explicitly opened to everybody.

    Raises:
        UserError: If so, or if there is a token although access is open to everybody.

    >>> check_guarded("127.0.0.1", token=None, open_to_all=False)
    >>> check_guarded("0.0.0.0", token=None, open_to_all=False)
    Traceback (most recent call last):
    rungwise.core.UserError: other machines can reach 0.0.0.0; give a token, or say open_to_all=True to let...
    """
    if token is not None and open_to_all:
        raise UserError("a token was given, and also that everybody may come in; choose one of them")
    if token is None and not open_to_all and not is_loopback(bound):
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


class Token:
    """Comparison of a given token with the right one, in a time that reveals nothing of it.

    Attributes:
        cookie: Value that the browser keeps in place of the token. It opens only this page, and the token cannot be
            derived from it.

    >>> token = Token("correct horse battery".replace(" ", "-"))
    >>> token.is_token("correct-horse-battery"), token.is_token("wrong"), token.is_cookie(token.cookie)
    (True, False, True)
    """

    def __init__(self, token: str) -> None:
        self._digest = _digest(checked_token(token))
        self.cookie = hmac.digest(token.encode(), b"rungwise page", "sha256").hex()

    def is_token(self, given: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(_digest(given), self._digest)

    def is_cookie(self, given: str) -> bool:
        """Whether this is the cookie of a browser that was let in before."""
        return hmac.compare_digest(_digest(given), _digest(self.cookie))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
