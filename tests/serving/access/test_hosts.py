import socket

import pytest

from rungwise.core import UserError
from rungwise.serving.access import addresses, bound_address, is_loopback, own_names
from rungwise.serving.access._hosts import host_of


@pytest.mark.parametrize("bound", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
def test_loopback_is_this_machine_alone(bound: str) -> None:
    assert is_loopback(bound)


@pytest.mark.parametrize("bound", ["0.0.0.0", "::", "192.0.2.1", "fe80::1%eth0", "localhost.evil.example", ""])
def test_all_else_is_not(bound: str) -> None:
    assert not is_loopback(bound)


def test_beyond_loopback_the_machine_has_a_name_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Kiosk.example")
    names = own_names("0.0.0.0", "0.0.0.0")
    assert set(names) == {"127.0.0.1", "localhost", "::1", "kiosk.example", "kiosk.local"}
    assert set(own_names("Pictures.Example", "192.0.2.9")) == {*names, "pictures.example", "192.0.2.9"}
    assert "kiosk.example" not in own_names("localhost", "127.0.0.1")


def test_the_printed_address_is_one_that_is_served() -> None:
    assert addresses("127.0.0.2", "127.0.0.2", 80) == ("http://127.0.0.2:80/",)
    assert addresses("fe80::1", "fe80::1", 80) == ("http://[fe80::1]:80/",)
    here, *others = addresses("::", "::", 80)
    assert here == "http://[::1]:80/"
    assert not {"http://0.0.0.0:80/", "http://[::]:80/"} & {here, *others}
    assert not [one for one in addresses("0.0.0.0", "0.0.0.0", 80) if "[" in one]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost", "localhost"), ("LocalHost:80", "localhost"), ("localhost.:80", "localhost"),
        ("127.0.0.1:8000", "127.0.0.1"), ("[::1]:8000", "::1"), ("[0:0:0:0:0:0:0:1]", "::1"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"), ("", ""), (":80", ""), ("a b", ""), ("localhost:80:80", ""),
        ("evil@localhost", ""), ("localhost/evil", ""), ("localhost?x", ""), ("localhost\\evil", ""),
        ("localhost:8o", ""), ("[::1", ""), ("::1", ""), ("localhost:999999", ""),
    ],
)  # fmt: skip
def test_a_host_header_is_one_name_or_none(header: str, name: str) -> None:
    assert host_of(header) == name


def test_no_address_is_one_line() -> None:
    assert bound_address("127.0.0.1") == "127.0.0.1"
    for host in ("no host", "a" * 300, "..", "\x00"):
        with pytest.raises(UserError, match="no such address"):
            bound_address(host)
