from dataclasses import fields

import pytest

from rungwise.core import UserError
from rungwise.serving import ServingLimits
from rungwise.serving._limits import client_key


@pytest.mark.parametrize("name", [field.name for field in fields(ServingLimits)])
def test_every_limit_is_a_positive_number(name: str) -> None:
    for value in (0, -1, float("nan"), float("inf")):
        with pytest.raises(UserError, match=name):
            ServingLimits(**{name: value})


def test_a_house_with_many_addresses_is_one_client() -> None:
    assert client_key("2001:db8:0:1:aaaa::1") == client_key("2001:db8:0:1:bbbb::2")
    assert client_key("2001:db8:0:1::1") != client_key("2001:db8:0:2::1")
    assert client_key("fe80::1%eth0") == client_key("fe80::2%eth1")
    assert client_key("192.0.2.1") != client_key("192.0.2.2")
    assert client_key("::ffff:192.0.2.1") == client_key("192.0.2.1")
