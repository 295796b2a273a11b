"""Asking a server from Python, with nothing but the standard library."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from rungwise.core.errors import UserError
from rungwise.core.output.printable import printable
from rungwise.core.untrusted_files import read_bytes
from rungwise.serving.ids import as_sent

_LARGEST_ANSWER = 256 << 20
_LONGEST_REASON = 500


class Client:
    """A server of :func:`rungwise.serving.serve` or ``rungwise serve``.

    Answers are the JSON of its interface as dictionaries; ``/docs`` of every server describes them. One client may be
    used by several threads: every request has a connection of its own.

    Args:
        address: Of the server, such as ``"http://127.0.0.1:8000/"``. Where another server stands before it, a path may
            follow. With ``https`` its certificate is checked.
        token: If the server asks for one.
        timeout: Seconds for which the server may be silent.

    Raises:
        UserError: If the address is none of a server. So does every method if the server cannot be reached or refuses;
            the message is one line.

    >>> Client("localhost:8000")
    Traceback (most recent call last):
    rungwise.core.errors.UserError: localhost:8000: no address of a server; write it as http://HOST:PORT/
    """

    def __init__(self, address: str, token: str | None = None, *, timeout: float = 60.0) -> None:
        try:
            place = urlsplit(address)
            host, port = place.hostname, place.port
        except ValueError:
            host = port = None
        if host is None or place.scheme not in ("http", "https"):
            raise UserError(f"{printable(address)}: no address of a server; write it as http://HOST:PORT/")
        self.address = f"{place.scheme}://{place.netloc.rpartition('@')[2]}{place.path.rstrip('/')}/"
        self._secure = place.scheme == "https"
        self._host, self._port, self._path = host, port, place.path.rstrip("/")
        self._headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._timeout = timeout

    def about(self) -> dict[str, Any]:
        """What the server searches, and its limits."""
        return self._json("GET", "about")

    def search(
        self,
        query: str = "",
        k: int = 24,
        *,
        offset: int = 0,
        where: str = "",
        like: Sequence[str] = (),
        unlike: Sequence[str] = (),
        pictures: Sequence[str | Path | bytes] = (),
        fold: bool | None = None,
        diversity: float | None = None,
        words: str | None = None,
        end: bool | None = None,
    ) -> dict[str, Any]:
        """The pictures that fit best; the newest ones if nothing is asked for.

        Args:
            query: As people type it, such as ``"beach" - "people"``.
            k: How many.
            offset: How many of the best to pass over.
            where: A filter, such as ``year >= 2020 and tags has 'beach'``.
            like: Ids of pictures of the index that results are to be like.
            unlike: Ids of those that they are not to be like.
            pictures: Others that they are to be like: files, their bytes, or what :meth:`send` gave.
            fold: Whether near-duplicates are shown as one; as the server does unless given.
            diversity: From 0, the best ones, to 1, those that differ most.
            words: Whether the words of captions and columns are searched too: ``"auto"``, ``"on"`` or ``"off"``.
            end: Whether it is judged where relevance ends; as the server does unless given. The answer says it in
                ``"end"``, and of each hit in ``"degree"``, ``"rung"`` and ``"band"``.
        """
        asked = {
            "q": query,
            "k": k,
            "offset": offset,
            "where": where or None,
            "like": [*map(as_sent, like)],
            "unlike": [*map(as_sent, unlike)],
            "picture": [self._sent(picture) for picture in pictures],
            "fold": fold if fold is None else str(fold).lower(),
            "diversity": diversity,
            "words": words,
            "end": end if end is None else str(end).lower(),
        }
        return self._json("GET", "search", asked)

    def similar(self, item_id: str, k: int = 24, *, offset: int = 0, where: str = "") -> dict[str, Any]:
        """The pictures that are most like one of the index."""
        return self._json("GET", "similar", {"id": as_sent(item_id), "k": k, "offset": offset, "where": where or None})

    def why(self, query: str, item_id: str) -> dict[str, Any]:
        """Which regions of a picture of the index answered which words of a query.

        The server must have a reranker that can say so; :meth:`about` says it in ``"explains"``.
        """
        return self._json("GET", "why", {"q": query, "id": as_sent(item_id)})

    def captions(self, picture: str | Path | bytes | None = None, k: int = 8, *, item_id: str = "") -> dict[str, Any]:
        """The captions of the collection that fit a picture best: a file, its bytes, or one of the index by its id."""
        asked = {"id": as_sent(item_id) or None, "picture": None if picture is None else self._sent(picture), "k": k}
        return self._json("GET", "captions", asked)

    def send(self, picture: Path | bytes) -> str:
        """Send a picture; gives the name under which searches can use it for some time."""
        body = read_bytes(picture, "picture_bytes") if isinstance(picture, Path) else picture
        return str(self._json("POST", "pictures", body=body)["picture"])

    def item(self, item_id: str) -> dict[str, Any]:
        """One picture of the index, with all that is known of it."""
        return self._json("GET", f"items/{_in_path(item_id)}")

    def picture(self, item_id: str, *, side: int | None = None) -> bytes:
        """The file of a picture of the index, or a JPEG of it whose longer side has at most so many pixels."""
        return self._ask("GET", f"images/{_in_path(item_id)}", {"thumb": side})

    def add(
        self,
        item_id: str,
        picture: Path | bytes,
        captions: Sequence[str] = (),
        columns: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Add a picture to the index, or put it in place of the one with this id. The server must have a token."""
        body = read_bytes(picture, "picture_bytes") if isinstance(picture, Path) else picture
        asked = {"id": as_sent(item_id), "caption": captions, "columns": json.dumps(dict(columns)) if columns else None}
        return self._json("POST", "items", asked, body)

    def delete(self, item_id: str) -> dict[str, Any]:
        """Delete a picture from the index. The server must have a token."""
        return self._json("DELETE", f"items/{_in_path(item_id)}")

    def grade(self, query: str, item_id: str, grade: str | None, who: str = "") -> dict[str, Any]:
        """Keep what a person says of a picture that a search found.

        Args:
            query: What was searched for, as it was typed.
            item_id: Of the picture.
            grade: ``"right"``, ``"close"`` or ``"wrong"``; None takes back what was said before.
            who: Says it; nobody in particular unless given.
        """
        body = json.dumps({"query": query, "id": item_id, "grade": grade, "who": who}).encode("ascii")
        return self._json("POST", "grades", body=body, kind="application/json")

    def grades(self, query: str | None = None, k: int = 100, *, offset: int = 0) -> dict[str, Any]:
        """The grades that people gave, newest first: of one query, or of all."""
        return self._json("GET", "grades", {"q": query, "k": k, "offset": offset})

    def calibrate(self) -> dict[str, Any]:
        """Fit the end of relevance to the grades; says what changed."""
        return self._json("POST", "calibration")

    def _sent(self, picture: str | Path | bytes) -> str:
        return picture if isinstance(picture, str) else self.send(picture)

    def _json(
        self,
        method: str,
        target: str,
        asked: Mapping[str, object] | None = None,
        body: bytes | None = None,
        kind: str = "application/octet-stream",
    ) -> dict[str, Any]:
        found = _parsed(self._ask(method, target, asked, body, kind))
        if found is None:
            raise UserError(f"{self.address}: what answers there is no server of rungwise; correct the address")
        return found

    def _ask(
        self,
        method: str,
        target: str,
        asked: Mapping[str, object] | None = None,
        body: bytes | None = None,
        kind: str = "application/octet-stream",
    ) -> bytes:
        given = {name: value for name, value in (asked or {}).items() if value is not None}
        query = urlencode(given, doseq=True, errors="surrogatepass")
        headers = self._headers if body is None else {**self._headers, "Content-Type": kind}
        connection_of = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = connection_of(self._host, self._port, timeout=self._timeout)
        try:
            address = f"{self._path}/{target}{'?' if query else ''}{query}"
            connection.request(method, address, body, headers)
            response = connection.getresponse()
            content = response.read(_LARGEST_ANSWER)
        except TimeoutError as error:
            raise UserError(f"{self.address}: no answer within {self._timeout:g} s; try again later") from error
        except ssl.SSLError as error:
            reason = printable(str(error.reason or error))
            raise UserError(f"{self.address}: no safe connection ({reason}); check the address") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = printable(str(getattr(error, "strerror", None) or error) or type(error).__name__)
            raise UserError(f"{self.address}: cannot be asked ({reason}); is the server running?") from error
        finally:
            connection.close()
        if response.status >= 400:
            reason = str((_parsed(content) or {}).get("error") or f"status {response.status}")
            reason = printable(" ".join(reason.split())[:_LONGEST_REASON])
            of_filter = reason.startswith(("filter:", "filter,"))
            refusal = UserError(reason, parameters={"filter": "where"} if of_filter else {})
            raise UserError(f"{self.address}: {refusal}") from refusal
        return content


def _in_path(item_id: str) -> str:
    return quote(as_sent(item_id), safe="")


def _parsed(content: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
