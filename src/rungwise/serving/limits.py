"""What strangers may hold of the server: connections, seconds, bytes and pixels. Every limit is a setting."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, fields
from functools import lru_cache

from rungwise.core.errors import UserError


@dataclass(frozen=True)
class ServingLimits:
    """Limits of a server. A client is an IPv4 address, or the first half of an IPv6 one (see :func:`client_key`).

    Attributes:
        header_bytes: Largest head of a request, about; then status 431.
        header_seconds: Within which the head of a request must have come.
        body_seconds: Within which the body of a request must have come; then status 408.
        idle_seconds: For which a connection without a request stays open.
        send_seconds: For which an answer may wait for a client that does not read; then its connection is closed.
        graceful_seconds: For which answers in flight may go on after the server was told to stop.
        connections: Open at once, in all.
        connections_per_client: Open at once.
        upload_bytes: Largest picture that may be sent; then status 413.
        upload_pixels: Most pixels of a picture that is sent; then status 413.
        uploads_at_once: Pictures being received and searched with, in all; then status 503.
        uploads_per_client: The same of one client; then status 429.
        upload_bytes_in_all: Of the pictures being received and searched with; then status 503.
        thumbnail_pixels: Most pixels of a picture of the index that is made smaller; then status 422.
        thumbnail_bytes: Kept in memory of pictures that were made smaller; the longest unused are dropped first.
        decoding_threads: Pictures decoded at once.
        decoding_memory: Bytes that decoding may take, as reckoned from the headers of the pictures. Those that need
            more than is left wait for the others; those that need more than all are refused.
        waiting_seconds: For which a request may wait for its turn; then status 503.
        queries_together: Encoded in one call of the model at most; 1 encodes them one at a time.
        characters_together: Of the queries that are encoded in one call, beside the one that has waited longest.
        kept_bytes: Kept on disk of pictures that were sent; the longest unused are dropped first.
        kept_seconds: For which they are kept after they were last used.

    Raises:
        UserError: If a value is not positive.

    >>> ServingLimits(upload_bytes=1 << 20).upload_bytes
    1048576
    >>> ServingLimits(connections=0)
    Traceback (most recent call last):
    rungwise.core.errors.UserError: connections must be above 0, got 0
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
    thumbnail_pixels: int = 64_000_000
    thumbnail_bytes: int = 64 * 1024 * 1024
    decoding_threads: int = 2
    decoding_memory: int = 768 * 1024 * 1024
    waiting_seconds: float = 30.0
    queries_together: int = 64
    characters_together: int = 4096
    kept_bytes: int = 256 * 1024 * 1024
    kept_seconds: float = 30 * 24 * 3600.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (value > 0 and math.isfinite(value)):
                raise UserError(f"{field.name} must be above 0, got {value}")


@lru_cache(maxsize=4096)
def client_key(address: str) -> str:
    """What counts as one client: an IPv4 address, or the /64 network of an IPv6 one, which one house can fill.

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
