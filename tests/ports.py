"""Ports for servers that tests start."""

import socket
from random import SystemRandom

CHOSEN_FROM = range(20_000, 32_000)
"""Below those that the system gives to connections, which could take a port before its server does; above Ray's."""


def held(port: int) -> socket.socket | None:
    """A socket that listens there, also where a server has just ended; None where somebody else listens."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        one.bind(("127.0.0.1", port))
        one.listen()
    except OSError:
        one.close()
        return None
    return one


def free_ports(count: int) -> list[int]:
    """Different ports at which nobody listens, drawn by chance: tests that run at once hardly draw the same."""
    free: list[int] = []
    drawn = iter(SystemRandom().sample(CHOSEN_FROM, len(CHOSEN_FROM)))
    while len(free) < count:
        port = next(drawn)
        if (one := held(port)) is not None:
            one.close()
            free.append(port)
    return free


def free_port() -> int:
    """A port at which nobody listens."""
    return free_ports(1)[0]
