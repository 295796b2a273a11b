"""No command and no server sends anything, or writes where nothing is said of it."""

from pathlib import Path

import pytest

from rungwise.cli import COMMANDS
from tests.hostile import sent
from tests.hostile.conftest import run_kit


def test_every_command_is_among_those_that_are_watched() -> None:
    assert {line.arguments[0] for line in sent.lines()} == COMMANDS.keys() - {"push"}


@pytest.mark.parametrize(
    ("kind", "port", "host", "outside"),
    [
        ("TCP", 443, "192.0.2.77", "192.0.2.77:443"),
        ("TCP", 8000, "127.0.0.1", None),
        ("UDP", 80, "192.0.2.77", None),
        ("UDP", 53, "127.0.0.53", "127.0.0.53:53"),
    ],
)
def test_a_connection_beyond_this_machine_is_told_from_others(
    kind: str, port: int, host: str, outside: str | None
) -> None:
    address = f'{{sa_family=AF_INET, sin_port=htons({port}), sin_addr=inet_addr("{host}")}}'
    assert sent._outside(f"connect(3<{kind}:[1]>, {address}, 16) = -1") == outside


def test_what_is_sent_without_a_connection_is_seen() -> None:
    address = '{sa_family=AF_INET6, sin6_port=htons(9), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "2001:db8::1", &a)}'
    assert sent._outside(f'sendto(3<UDPv6:[1]>, "x", 1, 0, {address}, 28) = 1') == "2001:db8::1:9"
    assert sent._outside('sendto(3<UDP:[192.0.2.3:4->192.0.2.77:9]>, "x", 1, 0, NULL, 0) = 1') == "192.0.2.77:9"
    assert sent._outside('connect(3<UNIX-STREAM:[1]>, {sa_family=AF_UNIX, sun_path="/run/a"}, 110) = 0') is None


@pytest.mark.slow
@pytest.mark.skipif(sent.missing() is not None, reason=sent.missing() or "")
def test_nothing_is_sent_or_written_elsewhere(tmp_path: Path) -> None:
    found = run_kit(tmp_path, "sent")
    assert len(found.cases) == len(sent.lines())
    assert not found.bad(), found.faults()
