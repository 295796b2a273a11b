import json
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from rungwise.core.errors import UserError
from rungwise.index import Index
from rungwise.serving import background, serve
from rungwise.serving.server import THREAD_NAME
from tests.colour_model import ColourModel, colour_pictures


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.build(colour_pictures(tmp_path / "photos", ["red", "blue"]), ColourModel(), tmp_path / "index")


def answer(address: str) -> dict[str, object]:
    with urllib.request.urlopen(address, timeout=20) as reply:
        return json.load(reply)


def serving_threads() -> list[threading.Thread]:
    """Threads of `background` alone: the workers that it lent for requests end by themselves a little later."""
    return [thread for thread in threading.enumerate() if thread.name == THREAD_NAME]


def test_background_answers_and_stops(index: Index) -> None:
    with background(index, ColourModel()) as address:
        assert answer(f"{address}api/status")["pictures"] == 2
        assert len(serving_threads()) == 1
    assert not serving_threads()
    with pytest.raises(OSError):
        answer(f"{address}api/status")


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
import sys
from pathlib import Path
from tests.colour_model import ColourModel
from rungwise.index import Index
from rungwise.serving import serve

def ready(address):
    print(address, flush=True)

serve(Index.open(Path(sys.argv[1])), ColourModel(), port=0, open_browser=False, ready=ready)
print("done", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal that one process can send another there")
def test_ctrl_c_ends_it_quietly(index: Index) -> None:
    command = [sys.executable, "-c", PROGRAM, str(index.folder)]
    here = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        address = server.stdout.readline().strip()
        assert answer(f"{address}api/search?q=red")["results"][0]["id"] == "0-red"
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=30)
    assert (server.returncode, out, err) == (0, "done\n", "")
