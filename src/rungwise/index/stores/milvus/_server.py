"""A Milvus server: addresses, connections, and their errors in one line.

An address is ``milvus://HOST[:PORT]/[DATABASE/]NAME``. Secrets stand in the environment:

* ``MILVUS_TOKEN``: ``USER:PASSWORD``, or a key;
* ``MILVUS_TLS``: ``1`` speaks TLS; ``MILVUS_CA_FILE``, ``MILVUS_CERTIFICATE_FILE`` and ``MILVUS_KEY_FILE`` name files
  of certificates, ``MILVUS_SERVER_NAME`` the name that the server's has;
* ``MILVUS_PATIENCE``: seconds for which a server that does not answer is asked again; 10 if not set.
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

from rungwise.core import MissingExtraError, UnavailableError, UserError
from rungwise.core.network import address_of, seconds_left
from rungwise.index.stores._addresses import MILVUS

if TYPE_CHECKING:
    from pymilvus import MilvusClient

_PORT = 19530
_PATIENCE = 10.0
_ADDRESS = re.compile(
    r"milvus://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(:(?P<port>\d{1,5}))?/((?P<database>[^/?@]+)/)?"
    r"(?P<name>[^/?@]+)(@(?P<generation>[0-9a-f]{8}))?(\?(?P<settings>.*))?"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_ONE_LINE = 200
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
"""Seconds between two tries."""
_AWAY = ("unavailable", "deadline", "fail connecting", "connection refused", "not ready", "timeout", "not healthy")
_NOBODY = ("connection refused", "fail connecting", "failed to connect")
_REFUSED = ("unauthenticated", "auth check failure")
_DENIED = re.compile(r"privilege([a-z]+): permission den", re.IGNORECASE)
"""Milvus's word for a right that a user lacks."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class Address:
    """Address of an index or a store in Milvus.

    Attributes:
        host: Host of the server.
        port: Port of the server.
        database: Database of the server; empty for the default one.
        name: Name of an index, or prefix of the name of a store's collection.
        generation: Generation of the index, where one is meant and not the newest; else empty.
        partition: Column whose values part the rows, so that a filter on one value reads no others. Only the process
            that makes the collections names it.
        shards: Number of shards of new collections.

    >>> found = Address.of("milvus://localhost/pets?partition=album")
    >>> found.port, found.name, found.partition, str(found)
    (19530, 'pets', 'album', 'milvus://localhost:19530/pets')
    """

    host: str
    port: int
    database: str
    name: str
    generation: str = ""
    partition: str = ""
    shards: int = 1

    @classmethod
    def of(cls, place: Path | str) -> Address | None:
        """The address that a place is; None for any other place.

        Raises:
            UserError: If it begins as an address of Milvus and is none.

        >>> Address.of("milvus://localhost/my-pets")
        Traceback (most recent call last):
        rungwise.core.UserError: milvus://localhost/my-pets: 'my-pets' is no name for Milvus; take letters of...
        """
        text = address_of(place)
        if text is None or not text.startswith(MILVUS):
            return None
        found = _ADDRESS.fullmatch(text)
        if found is None:
            raise UserError(f"{text}: is no address of Milvus; write milvus://HOST:PORT/NAME")
        for part in ("database", "name"):
            if found[part] and not _NAME.fullmatch(found[part]):
                raise UserError(
                    f"{text}: {found[part]!r} is no name for Milvus; take letters of English, digits and _,"
                    " a letter first"
                )
        settings = dict(parse_qsl(found["settings"] or "", keep_blank_values=True))
        partition, shards = settings.pop("partition", ""), settings.pop("shards", "1")
        if settings:
            raise UserError(f"{text}: no setting {next(iter(settings))!r}; there are partition and shards")
        if not (shards.isdigit() and 1 <= int(shards) <= 16):
            raise UserError(f"{text}: shards is {shards!r}; give a number from 1 to 16")
        port = int(found["port"] or _PORT)
        return cls(found["host"], port, found["database"] or "", found["name"], found["generation"] or "", partition,
                   int(shards))  # fmt: skip

    def __str__(self) -> str:
        """The address as people write it, without settings and generation."""
        database = f"{self.database}/" if self.database else ""
        return f"{MILVUS}{self.host}:{self.port}/{database}{self.name}"


class Server:
    """A connection to Milvus; every call to it is tried again for a while, and fails in one line.

    ``clock`` gives seconds, by which patience is measured; ``pause`` waits the given seconds between two tries.

    Raises:
        UserError: If pymilvus is not installed, nobody answers, or the server refuses the token.
    """

    def __init__(
        self,
        address: Address,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self.address, self.pause, self._clock = address, pause, clock
        self._patience = _patience()
        self._client = self._connected()

    def call(self, ask: Callable[[MilvusClient, float], _T], *, patience: float | None = None) -> _T:
        """Ask the server: ``ask`` gets the client and the seconds for which it may try.

        ``patience`` are seconds for this call, where they are not the usual ones. A UserError says that the server does
        not answer, or refuses.
        """
        return self._patiently(lambda wait: ask(self._client, wait), patience or self._patience)

    def has(self, collection: str) -> bool:
        """Whether there is a collection of this name."""
        return bool(self.call(lambda client, wait: client.has_collection(collection, timeout=wait)))

    def behind(self, alias: str) -> str | None:
        """The collection that an alias leads to; None if there is no such alias."""
        try:
            found = self.call(lambda client, wait: client.describe_alias(alias, timeout=wait))
        except MissingError:
            return None
        return str(found["collection_name"])

    def described(self, collection: str) -> dict[str, Any]:
        """Milvus's description of a collection; a MissingError says that there is none."""
        found: dict[str, Any] = self.call(lambda client, wait: client.describe_collection(collection, timeout=wait))
        return found

    def drop(self, collection: str) -> None:
        """Remove a collection, if there is one."""
        self.call(lambda client, wait: client.drop_collection(collection, timeout=wait))

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def _connected(self) -> MilvusClient:
        try:
            from pymilvus import MilvusClient
        except ImportError as error:
            raise MissingExtraError("pymilvus", f"{self.address}: Milvus") from error
        # It would print whole tracebacks of what is said here in a line.
        logging.getLogger("pymilvus").setLevel(logging.CRITICAL)
        secure = os.environ.get("MILVUS_TLS", "").lower() in ("1", "true", "yes", "on")
        scheme = "https" if secure else "http"
        settings: dict[str, Any] = {"uri": f"{scheme}://{self.address.host}:{self.address.port}"}
        given = {
            "token": "MILVUS_TOKEN",
            "ca_pem_path": "MILVUS_CA_FILE",
            "client_pem_path": "MILVUS_CERTIFICATE_FILE",
            "client_key_path": "MILVUS_KEY_FILE",
            "server_name": "MILVUS_SERVER_NAME",
        }
        settings |= {name: os.environ[one] for name, one in given.items() if os.environ.get(one)}
        if "ca_pem_path" in settings and "client_pem_path" not in settings:
            settings["server_pem_path"] = settings.pop("ca_pem_path")
        for name in ("ca_pem_path", "server_pem_path", "client_pem_path", "client_key_path"):
            if name in settings and not Path(settings[name]).is_file():
                raise UserError(
                    f"{settings[name]}: no such file of a certificate, which the environment names for Milvus"
                )
        if self.address.database:
            settings["db_name"] = self.address.database
        return self._patiently(
            lambda _: MilvusClient(secure=secure, timeout=self._patience, **settings), self._patience
        )

    def _patiently(self, ask: Callable[[float], _T], patience: float) -> _T:
        """Ask again, for the usual time, while the server is away; a server that answers may take ``patience`` seconds.

        Neither goes beyond the deadline of :func:`rungwise.core.network.answered_within`. pymilvus asks again by
        itself, but gives up where it has to connect anew.
        """
        start, pause = self._clock(), _FIRST_PAUSE
        while True:
            took, left = self._clock() - start, seconds_left()
            if not left:
                raise AwayError(f"{self.address}: the server did not answer in time; check that Milvus runs there")
            try:
                with self._speaking():
                    return ask(min(left, max(_FIRST_PAUSE, patience - took)))
            except AwayError:
                if self._clock() - start + pause > self._patience or pause > seconds_left():
                    raise
                self.pause(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        try:
            import grpc
            from pymilvus.exceptions import MilvusException
        except ImportError:  # said when the connection was asked for
            yield
            return
        try:
            yield
        except (MilvusException, grpc.RpcError, grpc.FutureTimeoutError, ValueError, OSError) as error:
            raise self._said(error) from error

    def _said(self, error: BaseException) -> UserError:
        line = " ".join(str(getattr(error, "message", "") or error).split())
        lower = line.lower()
        if any(sign in lower for sign in _REFUSED):
            return UserError(
                f"{self.address}: refused by the server; MILVUS_TOKEN must be USER:PASSWORD or a key of it"
            )
        if "permission den" in lower or "privilege" in lower:
            right = f" ({found[1]})" if (found := _DENIED.search(line)) else ""
            return UserError(
                f"{self.address}: the user of MILVUS_TOKEN may not do this{right}; grant it, as deploy/milvus_user.py"
                " does"
            )
        if any(sign in lower for sign in _AWAY):
            return AwayError(
                f"{self.address}: the server does not answer (asked for {self._patience:g} s); check that Milvus runs"
                " there, MILVUS_TOKEN and MILVUS_TLS",
                refused=any(sign in lower for sign in _NOBODY),
            )
        if "collection not found" in lower or "can't find collection" in lower or "alias not found" in lower:
            return MissingError(f"{self.address}: no such collection; build an index there with `rungwise index`")
        if "disk" in lower and ("full" in lower or "quota" in lower or "exhausted" in lower):
            return UserError(f"{self.address}: the server's disk is full; free some space there, then run again")
        shortened = line if len(line) <= _ONE_LINE else f"{line[:_ONE_LINE]}..."
        return UserError(f"{self.address}: {shortened}; check the address and the server's state")


class AwayError(UnavailableError):
    """The server does not answer."""


class MissingError(UserError):
    """The server has no such collection."""


def _patience() -> float:
    """Seconds for which a server is asked; refuses an environment that gives no number above 0."""
    given = os.environ.get("MILVUS_PATIENCE", "")
    try:
        seconds = float(given or _PATIENCE)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UserError(f"MILVUS_PATIENCE is {given!r}; give a number of seconds above 0")
    return seconds
