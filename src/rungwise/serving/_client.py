"""Client for a server in Python, with nothing but the standard library."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit, urlunsplit

from rungwise.core import UserError, read_bytes
from rungwise.core.output import printable
from rungwise.serving.schemas import as_sent

AFTER_END = 4
"""Rung of a hit after the end of relevance, as answers give it; a client loads nothing that judges."""
TOKEN = "RUNGWISE_TOKEN"
"""Environment variable of the token; unlike a command line, other users cannot read it."""
_LARGEST_ANSWER = 256 << 20
_LONGEST_REASON = 500


@dataclass(frozen=True)
class RankingOptions:
    """How a server makes the list of a search; None is the server's default.

    Attributes:
        fold: Whether near-duplicates are shown as one.
        diversity: 0 for the best pictures, up to 1 for those that differ most.
        words: Whether the words of captions and columns are searched too: ``"auto"``, ``"on"`` or ``"off"``.
        end: Whether to judge where relevance ends. The answer has it in ``"end"``, and for each hit in ``"degree"``,
            ``"rung"`` and ``"band"``.
        favourites: Whether favourites alone may be found.

    >>> RankingOptions(words="off").fold is None
    True
    """

    fold: bool | None = None
    diversity: float | None = None
    words: str | None = None
    end: bool | None = None
    favourites: bool | None = None


class Client:
    """Connection to a server of :func:`rungwise.serving.serve` or ``rungwise serve``.

    Answers are the JSON of its interface as dictionaries, which ``/docs`` of every server describes. Several threads
    may use one client: every request has its own connection.

    Args:
        address: Address of the server, such as ``"http://127.0.0.1:8000/"``. A path may follow where a proxy stands
            before the server. With ``https`` the certificate is checked.
        token: Token of the server, if it asks for one.
        timeout: Seconds for which the server may be silent.

    Raises:
        UserError: If the address is malformed. Every method raises it if the server cannot be reached or refuses.

    >>> Client("localhost:8000")
    Traceback (most recent call last):
    rungwise.core.UserError: localhost:8000: no address of a server; write it as http://HOST:PORT/
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

    @classmethod
    def at(cls, address: str, token: str | None = None) -> Client:
        """Connection to a server by its address as people paste it, with or without the token.

        The token is the one that is given, else the one in the address, else that of the environment variable
        ``RUNGWISE_TOKEN``.

        >>> Client.at("http://127.0.0.1:8000/?token=secret").address
        'http://127.0.0.1:8000/'
        """
        try:
            parts = urlsplit(address)
        except ValueError:
            return cls(address, token)
        inside = parse_qs(parts.query).get("token", [""])[0]
        plain = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
        return cls(plain, token or inside or os.environ.get(TOKEN) or None)

    @contextmanager
    def reading_answers(self) -> Iterator[None]:
        """Context in which an answer is taken apart; one that is not as this version writes it is a UserError."""
        try:
            yield
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._stranger() from error

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
        options: RankingOptions | None = None,
        everything: bool = False,
    ) -> dict[str, Any]:
        """The pictures that fit best, up to the end of relevance; the newest ones if nothing is searched for.

        Where the end is judged, ``"end"`` of the answer has ``"left_out"``, the number of the ``k`` pictures after it,
        and ``"more"`` says whether there are further ones before it.

        Args:
            query: Query as people type it, such as ``"beach" - "people"``.
            k: Number of pictures.
            offset: Number of best pictures to skip.
            where: Filter, such as ``year >= 2020 and tags has 'beach'``.
            like: Ids of pictures of the index that results should be like.
            unlike: Ids of pictures of the index that results should not be like.
            pictures: Other pictures that results should be like: files, their bytes, or names from :meth:`send`.
            options: How the server makes the list; None for its defaults.
            everything: Whether pictures after the end of relevance are given too, and ``"more"`` is about all.
        """
        options = options or RankingOptions()
        asked = {
            "q": query,
            "k": k,
            "offset": offset,
            "where": where or None,
            "like": [*map(as_sent, like)],
            "unlike": [*map(as_sent, unlike)],
            "picture": [self._sent(picture) for picture in pictures],
            "fold": _flag(options.fold),
            "diversity": options.diversity,
            "words": options.words,
            "end": _flag(options.end),
            "favourites": _flag(options.favourites),
        }
        return self._found("search", asked, offset, everything)

    def similar(
        self, item_id: str, k: int = 24, *, offset: int = 0, where: str = "", everything: bool = False
    ) -> dict[str, Any]:
        """The pictures that are most like one of the index; they end as those of :meth:`search` do."""
        asked = {"id": as_sent(item_id), "k": k, "offset": offset, "where": where or None}
        return self._found("similar", asked, offset, everything)

    def why(self, query: str, item_id: str) -> dict[str, Any]:
        """Regions of a picture of the index that answered the words of a query.

        The server needs a reranker that can explain, which :meth:`about` tells in ``"explains"``.
        """
        return self._json("GET", "why", {"q": query, "id": as_sent(item_id)})

    def captions(self, picture: str | Path | bytes | None = None, k: int = 8, *, item_id: str = "") -> dict[str, Any]:
        """The captions of the collection that fit best a picture: a file, its bytes, or one of the index by its id."""
        asked = {"id": as_sent(item_id) or None, "picture": None if picture is None else self._sent(picture), "k": k}
        return self._json("GET", "captions", asked)

    def send(self, picture: Path | bytes) -> str:
        """Send a picture; returns the name under which searches can use it for some time."""
        body = read_bytes(picture, "picture_bytes") if isinstance(picture, Path) else picture
        return str(self._json("POST", "pictures", body=body)["picture"])

    def item(self, item_id: str) -> dict[str, Any]:
        """One picture of the index, with everything known of it."""
        return self._json("GET", f"items/{_in_path(item_id)}")

    def address_of(self, item_id: str) -> str:
        """Address of the file of a picture of the index; asking for it may take the token."""
        return f"{self.address}images/{_in_path(item_id)}"

    def picture(self, item_id: str, *, side: int | None = None) -> bytes:
        """The file of a picture of the index, or a JPEG of it whose longer side has at most ``side`` pixels."""
        return self._ask("GET", f"images/{_in_path(item_id)}", {"thumb": side})

    def add(
        self,
        item_id: str,
        picture: Path | bytes,
        captions: Sequence[str] = (),
        columns: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Add a picture to the index, or replace the one with this id. The server must have a token."""
        body = read_bytes(picture, "picture_bytes") if isinstance(picture, Path) else picture
        asked = {"id": as_sent(item_id), "caption": captions, "columns": json.dumps(dict(columns)) if columns else None}
        return self._json("POST", "items", asked, body)

    def delete(self, item_id: str) -> dict[str, Any]:
        """Delete a picture from the index. The server must have a token."""
        return self._json("DELETE", f"items/{_in_path(item_id)}")

    def grade(self, query: str, item_id: str, grade: str | None, who: str = "") -> dict[str, Any]:
        """Store a person's grade of a picture that a search found.

        Args:
            query: Query of the search, as typed.
            item_id: Id of the picture.
            grade: ``"right"``, ``"close"`` or ``"wrong"``; None takes back an earlier grade.
            who: Name of the person; empty for none.
        """
        body = json.dumps({"query": query, "id": item_id, "grade": grade, "who": who}).encode("ascii")
        return self._json("POST", "grades", body=body, kind="application/json")

    def grades(self, query: str | None = None, k: int = 100, *, offset: int = 0) -> dict[str, Any]:
        """Grades that people gave, newest first: of one query, or of all."""
        return self._json("GET", "grades", {"q": query, "k": k, "offset": offset})

    def favourites(self) -> dict[str, Any]:
        """Ids of the favourites, newest first."""
        return self._json("GET", "favourites")

    def mark(self, item_id: str, *, favourite: bool = True) -> dict[str, Any]:
        """Mark a picture as a favourite, or take the mark away; returns all favourites."""
        return self._json("PUT" if favourite else "DELETE", f"favourites/{_in_path(item_id)}")

    def searches(self) -> dict[str, Any]:
        """The saved searches, by name."""
        return self._json("GET", "searches")

    def save_search(self, name: str, query: str = "", where: str = "") -> dict[str, Any]:
        """Save a search under a name, in place of the one with this name; returns all saved searches."""
        body = json.dumps({"q": query, "where": where}).encode("ascii")
        return self._json("PUT", f"searches/{_in_path(name)}", body=body, kind="application/json")

    def forget_search(self, name: str) -> dict[str, Any]:
        """Remove a saved search; returns the others."""
        return self._json("DELETE", f"searches/{_in_path(name)}")

    def forget_queries(self) -> dict[str, Any]:
        """Remove the queries that were kept beside the index; returns how many."""
        return self._json("DELETE", "queries")

    def calibrate(self) -> dict[str, Any]:
        """Fit the end of relevance to the grades; the answer says what changed."""
        return self._json("POST", "calibration")

    def _found(self, target: str, asked: Mapping[str, object], offset: int, everything: bool) -> dict[str, Any]:
        answer = self._json("GET", target, asked)
        with self.reading_answers():
            return answer if everything else _until_end(answer, offset)

    def _stranger(self) -> UserError:
        return UserError(f"{self.address}: what answers there is no server of this rungwise; correct the address")

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
            raise self._stranger()
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


def _until_end(answer: dict[str, Any], offset: int) -> dict[str, Any]:
    """An answer without the hits after the end of relevance, which a server sends for the pages that fold them away."""
    end = answer.get("end")
    if end is None:
        return answer
    sent = answer["hits"]
    before = [hit for hit in sent if hit["rung"] < AFTER_END]
    more = answer["more"] and end["shown"] > offset + len(sent)
    return {**answer, "hits": before, "more": more, "end": {**end, "left_out": len(sent) - len(before)}}


def _flag(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()


def _in_path(item_id: str) -> str:
    return quote(as_sent(item_id), safe="")


def _parsed(content: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
