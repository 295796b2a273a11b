"""Names and addresses of this machine: those under which the page may be requested, and those that are printed."""

from __future__ import annotations

import ipaddress
import re
import socket
from functools import lru_cache
from typing import Any

from rungwise.core import UserError

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+(?:%[\w.]+)?\]|[^\s:/@\[\]?#\\]+)(?::\d{1,5})?")
# Addresses that are kept for documents (RFC 5737, RFC 3849): nothing is sent to them, but the system says from which of
# its own addresses it would.
_ELSEWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))


def is_loopback(bound: str) -> bool:
    """Whether a socket bound to this address can be reached only from this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("192.0.2.7")
    (True, True, False, False)
    """
    try:
        parsed = ipaddress.ip_address(bound.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).is_loopback


def bound_address(host: str) -> str:
    """The address that a socket for this name is bound to; UserError if there is none."""
    return str(resolved(host, 0)[-1][0])


def resolved(host: str, port: int) -> tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]:
    """Arguments for making and binding a socket; UserError if the host is no address here."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise UserError(f"host {host!r}: no such address here; use 127.0.0.1 or 0.0.0.0") from error


def own_names(host: str, bound: str) -> tuple[str, ...]:
    """Names under which a server may be requested.

    A web page elsewhere can have its own name resolved to this machine and so read the answers in a visitor's browser,
    but it cannot change the name that the browser sends. The address at which a connection arrived is always allowed
    too.

    >>> own_names("localhost", "127.0.0.1")
    ('127.0.0.1', 'localhost', '::1')
    >>> "localhost" in own_names("0.0.0.0", "0.0.0.0"), "0.0.0.0" in own_names("0.0.0.0", "0.0.0.0")
    (True, False)
    """
    names = [*_LOOPBACK]
    names += [plain_name(one) for one in (host, bound) if not _is_any(one)]
    if not is_loopback(bound):
        machine = socket.gethostname().lower()
        names += [machine, f"{machine.partition('.')[0]}.local"]
    return tuple(dict.fromkeys(name for name in names if name))


def addresses(host: str, bound: str, port: int) -> tuple[str, ...]:
    """Addresses of the page: one for this machine, then one for other machines if they reach it under another.

    >>> addresses("localhost", "127.0.0.1", 8000)
    ('http://localhost:8000/',)
    >>> addresses("::1", "::1", 8000)
    ('http://[::1]:8000/',)
    >>> addresses("0.0.0.0", "0.0.0.0", 8000)[0]
    'http://127.0.0.1:8000/'
    """
    if not _is_any(bound):
        return (_address(host, port),)
    here, family = ("::1", socket.AF_INET6) if ":" in bound else ("127.0.0.1", socket.AF_INET)
    found = [here, *(one for one in _outward() if family == socket.AF_INET6 or ":" not in one)]
    return tuple(_address(one, port) for one in found)


@lru_cache(maxsize=1024)
def host_of(header: str) -> str:
    """The name in a ``Host`` header, or in the part of an ``Origin`` behind its scheme; empty if it is malformed.

    >>> host_of("LOCALHOST.:8000"), host_of("[::1]:8000"), host_of("evil@localhost"), host_of("[0:0::1]")
    ('localhost', '::1', '', '::1')
    """
    matched = _HOST.fullmatch(header)
    return plain_name(matched[1].strip("[]")) if matched else ""


@lru_cache(maxsize=1024)
def plain_name(name: str) -> str:
    """The normal form of a name or address.

    >>> plain_name("Pictures.Example."), plain_name("2001:DB8:0::1"), plain_name("::ffff:192.0.2.7")
    ('pictures.example', '2001:db8::1', '192.0.2.7')
    """
    name = name.strip("[]").partition("%")[0]
    try:
        parsed = ipaddress.ip_address(name)
    except ValueError:
        return name.lower().removesuffix(".")
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def _is_any(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_unspecified
    except ValueError:
        return False


def _outward() -> list[str]:
    """Addresses of this machine as other machines see them."""
    found = []
    for family, elsewhere in _ELSEWHERE:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((elsewhere, 9))
                found.append(str(probe.getsockname()[0]))
        except OSError:  # without a network of this family
            continue
    return [one for one in found if not is_loopback(one)]


def _address(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/"
