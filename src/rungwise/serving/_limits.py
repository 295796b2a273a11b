"""What strangers may hold of the server: connections, seconds, bytes and pixels. Every limit is a setting."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import ClassVar

from rungwise.core import UserError
from rungwise.core.text import IdleCase, idle_where


def _above(own: str, whole: str) -> IdleCase:
    """The case that what one client may hold is more than all may hold together."""
    return idle_where(
        own,
        lambda limits: getattr(limits, own) > getattr(limits, whole),
        f"above {{{whole}}}, which holds for all clients together",
        f"give less, or raise {{{whole}}}",
    )


@dataclass(frozen=True)
class ServingLimits:
    """Limits of a server. A client is an IPv4 address, or the first half of an IPv6 one (see :func:`client_key`).

    Attributes:
        header_bytes: Largest head of a request, about; a larger one gets status 431.
        header_seconds: Time within which the head of a request must have arrived.
        body_seconds: Time within which the body of a request must have arrived; status 408 follows.
        idle_seconds: Time for which a connection without a request stays open.
        send_seconds: Time for which an answer may wait for a client that does not read; then its connection is closed.
        graceful_seconds: Time for which answers may go on after the server was told to stop.
        connections: Number of connections open at once.
        connections_per_client: Number of connections of one client open at once.
        upload_bytes: Largest picture that may be sent; a larger one gets status 413.
        upload_pixels: Most pixels of a picture that is sent; more get status 413.
        uploads_at_once: Pictures being received and searched with, in all; more get status 503.
        uploads_per_client: Pictures of one client being received and searched with; more get status 429.
        upload_bytes_in_all: Bytes of the pictures being received and searched with; more get status 503.
        thumbnail_pixels: Most pixels of a picture of the index that is made smaller; more get status 422.
        thumbnail_bytes: Bytes of thumbnails kept in memory; those unused for longest are dropped first.
        decoding_threads: Pictures decoded at once.
        decoding_memory: Bytes that decoding may take, estimated from the headers of pictures. Pictures that need more
            than is left wait; those that need more than all of it are refused.
        waiting_seconds: Time for which a request may wait for its turn; status 503 follows.
        store_seconds: Time after which a request that needs the store of the index is answered with status 503 if the
            store has not answered; the wait for its turn counts.
        ready_seconds: Time for which ``/ready`` waits for the store of the index; status 503 follows.
        queries_together: Most queries encoded in one call of the model; 1 encodes them one at a time.
        characters_together: Characters of the queries encoded in one call, besides the one that has waited longest.
        kept_bytes: Bytes kept on disk of pictures that were sent; those unused for longest are dropped first.
        kept_seconds: Time for which they are kept after their last use.
        kept_queries: Number of queries kept by a server that is asked to; those asked longest ago are dropped first.

    Raises:
        UserError: If a value is not positive.

    >>> ServingLimits(connections=0)
    Traceback (most recent call last):
    rungwise.core.UserError: connections must be above 0, got 0
    """

    header_bytes: int = 16 * 1024
    header_seconds: float = 20.0
    body_seconds: float = 60.0
    idle_seconds: float = 15.0
    send_seconds: float = 20.0
    graceful_seconds: float = 5.0
    connections: int = 1024
    connections_per_client: int = 256
    upload_bytes: int = 20 * 1024 * 1024
    upload_pixels: int = 64_000_000
    uploads_at_once: int = 16
    uploads_per_client: int = 4
    upload_bytes_in_all: int = 128 * 1024 * 1024
    thumbnail_pixels: int = 1 << 28
    thumbnail_bytes: int = 64 * 1024 * 1024
    decoding_threads: int = 2
    decoding_memory: int = 1536 * 1024 * 1024
    waiting_seconds: float = 30.0
    store_seconds: float = 45.0
    ready_seconds: float = 5.0
    queries_together: int = 64
    characters_together: int = 4096
    kept_bytes: int = 256 * 1024 * 1024
    kept_seconds: float = 30 * 24 * 3600.0
    kept_queries: int = 10_000

    IDLE: ClassVar[tuple[IdleCase, ...]] = (
        _above("connections_per_client", "connections"),
        _above("uploads_per_client", "uploads_at_once"),
    )

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (value > 0 and math.isfinite(value)):
                raise UserError(f"{field.name} must be above 0, got {value}")


@lru_cache(maxsize=4096)
def client_key(address: str) -> str:
    """Key of a client: an IPv4 address, or the /64 network of an IPv6 one, which one household can fill.

    >>> client_key("192.0.2.7"), client_key("2001:db8::1:2"), client_key("::ffff:192.0.2.7"), client_key("testclient")
    ('192.0.2.7', '2001:db8::', '192.0.2.7', 'testclient')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:  # a socket of the file system, or a test
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False).network_address)
