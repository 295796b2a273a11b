import json
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from rungwise.core.errors import UserError
from rungwise.index import Index
from rungwise.serving import ServingLimits, background, serve
from rungwise.serving.server import THREAD_NAME
from tests.colour_model import ColourModel, colour_pictures

PATIENCE = 120
"""Seconds after which something hangs, however busy the machine is."""


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.build(colour_pictures(tmp_path / "photos", ["red", "blue"]), ColourModel(), tmp_path / "index")


def answer(address: str) -> dict[str, object]:
    with urllib.request.urlopen(address, timeout=PATIENCE) as reply:
        return json.load(reply)


def serving_threads() -> list[threading.Thread]:
    """Threads of `background` alone: the workers that it lent for requests end by themselves a little later."""
    return [thread for thread in threading.enumerate() if thread.name == THREAD_NAME]


def test_background_answers_and_stops(index: Index) -> None:
    with background(index, ColourModel()) as address:
        assert answer(f"{address}about")["pictures"] == 2
        assert len(serving_threads()) == 1
    assert not serving_threads()
    with pytest.raises(OSError):
        answer(f"{address}about")


def test_background_stops_when_the_block_fails(index: Index) -> None:
    with pytest.raises(ZeroDivisionError), background(index, ColourModel()):
        raise ZeroDivisionError
    assert not serving_threads()


def test_taken_port_is_one_line(index: Index) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError) as error:
            serve(index, ColourModel(), port=port, open_browser=False)
    assert f"port {port} of 127.0.0.1 is taken" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"port": 70000}, "not a port"),
        ({"port": -1}, "not a port"),
        ({"host": "192.0.2.1"}, "cannot listen"),
        ({"host": "no host"}, "no such address"),
    ],
)
def test_impossible_places_are_one_line(index: Index, place: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        serve(index, ColourModel(), open_browser=False, **place)


PROGRAM = """
import sys, time
from pathlib import Path
from tests.colour_model import ColourModel
from rungwise.index import Index
from rungwise.serving import ServingLimits, serve

class SlowModel(ColourModel):
    def encode_text(self, texts):
        if "slow" in texts:
            print("begun", flush=True)
            time.sleep(float(sys.argv[2]))
        return super().encode_text(texts)

def ready(address):
    print(address, flush=True)

limits = ServingLimits(graceful_seconds=float(sys.argv[3]))
serve(Index.open(Path(sys.argv[1])), SlowModel(), port=0, open_browser=False, ready=ready, limits=limits)
print("done", flush=True)
"""

no_signals = pytest.mark.skipif(
    sys.platform == "win32", reason="Ctrl-C is no signal that one process can send another there"
)


@contextmanager
def program(index: Index, slow: float = 0.0, graceful: float = 20.0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its address; ``slow`` is how many seconds the query "slow" takes."""
    command = [sys.executable, "-c", PROGRAM, str(index.folder), str(slow), str(graceful)]
    here = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield server, server.stdout.readline().strip()
        finally:
            server.kill()


def until_it_lets_nobody_in(address: str) -> None:
    place = urlsplit(address)
    # A connection that waits to be let in is reset where the door is shut meanwhile.
    with suppress(ConnectionRefusedError, ConnectionResetError):
        while True:
            socket.create_connection((place.hostname, place.port), timeout=PATIENCE).close()
            time.sleep(0.001)


def begun(address: str, path: str, body: bytes = b"") -> socket.socket:
    """A request that was sent, and not answered yet."""
    place = urlsplit(address)
    connection = socket.create_connection((place.hostname, place.port), timeout=PATIENCE)
    length = f"Content-Length: {len(body) + 1}\r\n" if body else ""
    method = "POST" if body else "GET"
    connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: {place.netloc}\r\n{length}\r\n".encode() + body)
    return connection


@no_signals
def test_ctrl_c_lets_answers_in_flight_be_given_and_ends_it_quietly(index: Index) -> None:
    with program(index, slow=1.0) as (server, address):
        assert answer(f"{address}search?q=red")["hits"][0]["id"] == "0-red"
        # Clients that leave in the middle of everything are no news.
        begun(address, "/pictures", b"half a pict").close()
        begun(address, "/search?q=red").close()
        with begun(address, "/search?q=slow") as asked:
            assert server.stdout.readline() == "begun\n"
            server.send_signal(signal.SIGINT)
            assert asked.recv(100).startswith(b"HTTP/1.1 200")
        out, err = server.communicate(timeout=PATIENCE)
    assert (server.returncode, out, err) == (0, "done\n", "")


@no_signals
def test_answers_in_flight_have_a_limit(index: Index) -> None:
    with (
        program(index, slow=3.0, graceful=0.2) as (server, address),
        begun(address, "/search?q=slow") as asked,
        begun(address, "/pictures", b"half a pict"),
    ):
        assert server.stdout.readline() == "begun\n"
        server.send_signal(signal.SIGTERM)
        assert asked.recv(100) == b""
        out, err = server.communicate(timeout=PATIENCE)
    assert (server.returncode, out) == (0, "done\n")
    assert "Traceback" not in err


@no_signals
@pytest.mark.parametrize("second", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_second_signal_ends_it_at_once(index: Index, second: signal.Signals) -> None:
    with program(index, slow=60.0, graceful=60.0) as (server, address), begun(address, "/search?q=slow"):
        assert server.stdout.readline() == "begun\n"
        server.send_signal(signal.SIGTERM)
        until_it_lets_nobody_in(address)  # the first was heard
        server.send_signal(second)
        out, err = server.communicate(timeout=PATIENCE)
    assert (server.returncode, out, err) == (-second, "", "")


def test_a_full_server_refuses_in_one_line_and_goes_on(index: Index) -> None:
    with background(index, ColourModel(), limits=ServingLimits(connections=1)) as address:
        with begun(address, "/pictures", b"half a pict"), pytest.raises(HTTPError) as refused:
            answer(f"{address}about")
        assert refused.value.code == 503
        assert "try again" in json.load(refused.value)["error"]
        for _ in range(1000):  # until it has seen that the other left
            with suppress(HTTPError):
                assert answer(f"{address}about")["pictures"] == 2
                break
        else:
            pytest.fail("no place became free")


def test_time_is_limited(index: Index) -> None:
    limits = ServingLimits(body_seconds=0.2, idle_seconds=0.2)
    with background(index, ColourModel(), limits=limits) as address:
        with begun(address, "/pictures", b"half a pict") as sending:
            assert sending.recv(100).startswith(b"HTTP/1.1 408")
        with begun(address, "/about") as idle, idle.makefile("rb") as answers:
            assert answers.read().startswith(b"HTTP/1.1 200")  # to its end, which is that of the connection
