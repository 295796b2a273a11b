import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from rungwise.core import UserError
from rungwise.index import Index
from rungwise.serving import Client, ServerSettings, ServingLimits, background, serve
from rungwise.serving._server import THREAD_NAME, _unusable
from tests.colour_model import ColourModel


@pytest.fixture
def index(shared_index: Index) -> Index:
    return shared_index


def answer(address: str) -> dict[str, object]:
    with urllib.request.urlopen(address) as reply:
        return json.load(reply)


def serving_threads() -> list[threading.Thread]:
    """Threads of `background` alone: the workers that it lent for requests end by themselves a little later."""
    return [thread for thread in threading.enumerate() if thread.name == THREAD_NAME]


@pytest.mark.smoke
def test_a_search_through_a_socket_until_ctrl_c(index: Index) -> None:
    """In this process; Ctrl-C comes from the one who was answered."""
    found: list[dict[str, object]] = []

    def ready(address: str) -> None:
        try:
            found.append(Client(address).search("red", 1)["hits"][0])
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    serve(index, ColourModel(), open_browser=False, ready=ready, settings=ServerSettings(port=0))
    assert [hit["id"] for hit in found] == ["0-red"]


@pytest.mark.smoke
def test_background_answers_and_stops(index: Index) -> None:
    with background(index, ColourModel()) as address:
        assert answer(f"{address}about")["pictures"] == 5
        assert len(serving_threads()) == 1
    assert not serving_threads()
    with pytest.raises(OSError):
        answer(f"{address}about")


@pytest.mark.slow
def test_background_stops_when_the_block_fails(index: Index) -> None:
    with pytest.raises(ZeroDivisionError), background(index, ColourModel()):
        raise ZeroDivisionError
    assert not serving_threads()


@pytest.mark.slow
def test_taken_port_is_one_line(index: Index) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError) as error:
            serve(index, ColourModel(), open_browser=False, settings=ServerSettings(port=port))
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
        serve(index, ColourModel(), open_browser=False, settings=ServerSettings(**place))


def test_a_port_that_cannot_be_used_is_one_line() -> None:
    for number, message in ((errno.EADDRINUSE, "is taken"), (errno.EACCES, "may not be used"), (errno.EIO, "cannot")):
        said = str(_unusable("127.0.0.1", 80, OSError(number, os.strerror(number))))
        assert message in said
        assert "\n" not in said


PROGRAM = """
import sys
from pathlib import Path
from tests.colour_model import ColourModel
from rungwise.index import Index
from rungwise.serving import ServerSettings, ServingLimits, serve, _server

class SlowModel(ColourModel):
    def encode_text(self, texts):
        if "slow" in texts:
            print("begun", flush=True)
            sys.stdin.readline()
        return super().encode_text(texts)

class Telling(_server._Server):
    async def shutdown(self, sockets=None):
        print("stopping", flush=True)
        await super().shutdown(sockets)

def ready(address):
    print(address, flush=True)

_server._Server = Telling
limits = ServingLimits(graceful_seconds=float(sys.argv[2]), waiting_seconds=1e6)
serve(Index.open(Path(sys.argv[1])), SlowModel(), settings=ServerSettings(port=0, limits=limits), open_browser=False,
    ready=ready)
print("done", flush=True)
"""

no_signals = pytest.mark.skipif(
    sys.platform == "win32", reason="Ctrl-C is no signal that one process can send another there"
)


@contextmanager
def program(index: Index, graceful: float = 1e6) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server in a process of its own, and its address; the query "slow" takes until a line is written to it."""
    command = [sys.executable, "-c", PROGRAM, str(index.folder), str(graceful)]
    here, pipe = Path(__file__).parents[2], subprocess.PIPE
    with subprocess.Popen(command, cwd=here, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as server:
        try:
            yield server, server.stdout.readline().strip()
        finally:
            server.kill()


def begun(address: str, path: str, body: bytes = b"") -> socket.socket:
    """A request that was sent, and not answered yet."""
    place = urlsplit(address)
    connection = socket.create_connection((place.hostname, place.port))
    length = f"Content-Length: {len(body) + 1}\r\n" if body else ""
    method = "POST" if body else "GET"
    connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: {place.netloc}\r\n{length}\r\n".encode() + body)
    return connection


@no_signals
@pytest.mark.slow
def test_ctrl_c_lets_answers_in_flight_be_given_and_ends_it_quietly(index: Index) -> None:
    with program(index) as (server, address):
        assert answer(f"{address}search?q=red")["hits"][0]["id"] == "0-red"
        # Clients that leave in the middle of everything are no news.
        begun(address, "/pictures", b"half a pict").close()
        begun(address, "/search?q=red").close()
        with begun(address, "/search?q=slow") as asked:
            assert server.stdout.readline() == "begun\n"
            server.send_signal(signal.SIGINT)
            assert server.stdout.readline() == "stopping\n"
            server.stdin.write("\n")
            server.stdin.flush()
            assert asked.recv(100).startswith(b"HTTP/1.1 200")
        out, err = server.communicate()
    assert (server.returncode, out, err) == (0, "done\n", "")


@no_signals
@pytest.mark.slow
def test_answers_in_flight_have_a_limit(index: Index) -> None:
    with (
        program(index, graceful=0.2) as (server, address),
        begun(address, "/search?q=slow") as asked,
        begun(address, "/pictures", b"half a pict"),
    ):
        assert server.stdout.readline() == "begun\n"
        server.send_signal(signal.SIGTERM)
        assert asked.recv(100) == b""
        out, err = server.communicate()  # which lets the query go on: a process ends after its threads
    assert (server.returncode, out) == (0, "stopping\ndone\n")
    assert "Traceback" not in err


@no_signals
@pytest.mark.slow
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_it_at_once(index: Index, second: signal.Signals) -> None:
    with program(index) as (server, address), begun(address, "/search?q=slow"):
        assert server.stdout.readline() == "begun\n"
        server.send_signal(signal.SIGTERM)
        assert server.stdout.readline() == "stopping\n"
        server.send_signal(second)
        server.wait()
        out, err = server.stdout.read(), server.stderr.read()
    assert (server.returncode, out, err) == (-second, "", "")


@pytest.mark.slow
def test_a_full_server_refuses_in_one_line_and_goes_on(index: Index) -> None:
    with background(index, ColourModel(), settings=ServerSettings(limits=ServingLimits(connections=1))) as address:
        with begun(address, "/pictures", b"half a pict"), pytest.raises(HTTPError) as refused:
            answer(f"{address}about")
        assert refused.value.code == 503
        assert "try again" in json.load(refused.value)["error"]
        while True:  # until it has seen that the other left
            with suppress(HTTPError):
                assert answer(f"{address}about")["pictures"] == 5
                break


@pytest.mark.slow
def test_time_is_limited(index: Index) -> None:
    limits = ServingLimits(body_seconds=0.2, idle_seconds=0.2)
    with background(index, ColourModel(), settings=ServerSettings(limits=limits)) as address:
        with begun(address, "/pictures", b"half a pict") as sending:
            assert sending.recv(100).startswith(b"HTTP/1.1 408")
        with begun(address, "/about") as idle, idle.makefile("rb") as answers:
            assert answers.read().startswith(b"HTTP/1.1 200")  # to its end, which is that of the connection
