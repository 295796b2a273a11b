"""Addresses of Milvus, and patience with a server that does not answer."""

from __future__ import annotations

import math
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rungwise.core import UserError
from rungwise.core.network import answered_within
from rungwise.index import Index
from rungwise.index.stores.milvus import MilvusStore
from rungwise.index.stores.milvus._server import Address, AwayError, MissingError, Server
from tests.colour_model import ColourModel, colour_pictures

PETS = Address("nowhere", 19530, "", "pets")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("milvus://localhost", "no address of Milvus; write milvus://HOST:PORT/NAME"),
        ("milvus://localhost/a/b/c", "no address of Milvus"),
        ("milvus://localhost/my-pets", "'my-pets' is no name for Milvus"),
        ("milvus://localhost/pets?colour=red", "no setting 'colour'; there are partition and shards"),
        ("milvus://localhost/pets?shards=0", "shards is '0'; give a number from 1 to 16"),
        ("pets", "no address of Milvus"),
    ],
)
def test_addresses_that_are_none_are_said(place: str, message: str) -> None:
    with pytest.raises(UserError, match=message.replace("?", r"\?")):
        MilvusStore.open(place, "pictures")


def test_an_address_with_all_its_parts() -> None:
    found = Address.of("milvus://[::1]:19531/zoo/pets@0123abcd?partition=album&shards=2")
    assert found == Address("[::1]", 19531, "zoo", "pets", "0123abcd", "album", 2)
    assert str(found) == "milvus://[::1]:19531/zoo/pets"


class Clock:
    """It moves by what is waited for."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Client:
    """A connection to a server that is there."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings

    def close(self) -> None:
        pass


def away() -> Exception:
    """What pymilvus raises where it has to connect anew, and gives up."""
    found: Exception = pytest.importorskip("pymilvus.exceptions").MilvusException(2, "Fail connecting to server")
    return found


def test_nobody_there_is_one_line_after_a_while(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[float] = []

    def refuse(**_: Any) -> Client:
        tries.append(clock.now)
        raise away()

    monkeypatch.setattr("pymilvus.MilvusClient", refuse)
    monkeypatch.setenv("MILVUS_PATIENCE", "20")
    with pytest.raises(UserError, match=r"milvus://nowhere:19530/pets: the server does not answer \(asked for 20 s\)"):
        Server(PETS, clock=clock, pause=clock.pause)
    assert clock.pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5, 5], "and no longer than there is patience"
    assert len(tries) == 8
    monkeypatch.setenv("MILVUS_PATIENCE", "soon")
    with pytest.raises(UserError, match="MILVUS_PATIENCE is 'soon'"):
        MilvusStore.open("milvus://127.0.0.1/pets", "pictures")


def test_a_file_of_certificates_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILVUS_TLS", "1")
    monkeypatch.setenv("MILVUS_CA_FILE", "nowhere.pem")
    with pytest.raises(UserError, match=r"nowhere\.pem: no such file"):
        MilvusStore.open("milvus://127.0.0.1/pets", "pictures")


def test_a_server_that_is_away_is_asked_again_for_a_while(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pymilvus.MilvusClient", Client)
    monkeypatch.setenv("MILVUS_PATIENCE", "2")
    tries: list[float] = []

    def ask(comes_at: float, client: object, wait: float) -> str:
        tries.append(wait)
        if len(tries) < comes_at:
            raise away()
        return "here"

    with closing(Server(PETS, clock=clock, pause=clock.pause)) as server:
        assert server.call(partial(ask, 3)) == "here"
        assert tries == pytest.approx([2, 1.8, 1.4])
        tries.clear()
        with pytest.raises(AwayError, match="does not answer"):
            server.call(partial(ask, math.inf), patience=100)
        assert tries == pytest.approx([100, 99.8, 99.4, 98.6])


def test_a_deadline_ends_the_asking(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pymilvus.MilvusClient", Client)
    monkeypatch.setenv("MILVUS_PATIENCE", "1000")
    tries: list[float] = []

    def ask(client: object, wait: float) -> str:
        tries.append(wait)
        raise away()

    with closing(Server(PETS, clock=clock, pause=clock.pause)) as server:
        with answered_within(0.1), pytest.raises(AwayError):
            server.call(ask)
        assert len(tries) == 1  # the pause before the next would take longer
        assert tries[0] <= 0.1
        with answered_within(0), pytest.raises(AwayError, match="did not answer in time"):
            server.call(ask)
        assert len(tries) == 1


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("Fail connecting to server on 127.0.0.1:1, illegal connection params or server unavailable", True),
        ("failed to connect to all addresses; last error: Connection refused; unavailable", True),
        ("Deadline Exceeded", False),
    ],
)
def test_a_server_that_takes_no_connections_is_told_from_one_that_hangs(
    said: str, refused: bool, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pymilvus.MilvusClient", Client)
    monkeypatch.setenv("MILVUS_PATIENCE", "0.1")

    def ask(client: object, wait: float) -> None:
        raise type(away())(1, said)

    with closing(Server(PETS, clock=clock, pause=clock.pause)) as server, pytest.raises(AwayError) as error:
        server.call(ask)
    assert error.value.refused == refused


def test_what_a_server_says_is_one_line(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pymilvus.MilvusClient", Client)
    wrong = type(away())
    with closing(Server(PETS, clock=clock, pause=clock.pause)) as server:

        def call(said: str) -> None:
            def ask(client: object, wait: float) -> None:
                raise wrong(1, said)

            server.call(ask)

        with pytest.raises(UserError, match="refused by the server; MILVUS_TOKEN"):
            call("unauthenticated: no such user")
        with pytest.raises(UserError, match=r"may not do this \(Flush\); grant it, as deploy/milvus_user.py does"):
            call("PrivilegeFlush: permission deny to reader")
        with pytest.raises(MissingError, match="no such collection"):
            call("collection not found[collection=pets]")
        with pytest.raises(UserError, match=r"milvus://nowhere:19530/pets: .*strange") as error:
            call("something\nstrange")
        assert "\n" not in str(error.value)
    assert clock.pauses == [], "none of it gets better by waiting"


@pytest.mark.smoke
def test_an_index_in_a_real_server_is_searched(milvus: str, tmp_path: Path) -> None:
    model = ColourModel()
    data = colour_pictures(tmp_path / "photos", ["red", "blue"])
    place = Path(f"{milvus}/smoke")
    Index.create(place, model).update(data, model)
    assert [hit.id for hit in Index.open(place).similar(data.image_ids[0], k=1)] == [data.image_ids[1]]
