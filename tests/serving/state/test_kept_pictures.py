import os
import sys
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from rungwise.index import Index
from rungwise.serving import create_app
from rungwise.serving.state import KeptPictures
from tests.colour_model import COLOURS, ColourModel, picture_bytes

VECTOR = np.array([0.6, 0.8], np.float32)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1.0e9

    def __call__(self) -> float:
        return self.now


def kept(folder: Path, clock: Clock | None = None, *, room: int = 1 << 20, seconds: float = 60.0) -> KeptPictures:
    return KeptPictures(folder / "sent", room=room, seconds=seconds, clock=clock or Clock())


def test_what_was_kept_comes_back_also_to_the_next_server(tmp_path: Path) -> None:
    name = kept(tmp_path).keep(b"a picture", VECTOR, b"a JPEG", "m")
    found = kept(tmp_path).get(name)
    assert found is not None
    np.testing.assert_array_equal(found.vector, VECTOR)
    assert found.thumbnail == b"a JPEG"
    assert kept(tmp_path).keep(b"a picture", VECTOR, b"a JPEG", "m") == name


def test_the_picture_itself_is_not_kept_and_its_name_cannot_be_guessed(tmp_path: Path) -> None:
    content = os.urandom(1000)
    name = kept(tmp_path).keep(content, VECTOR, b"a JPEG", "m")
    assert all(content not in file.read_bytes() for file in (tmp_path / "sent").iterdir())
    assert kept(tmp_path / "other").keep(content, VECTOR, b"a JPEG", "m") != name


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such modes there")
def test_only_its_owner_can_read_the_folder(tmp_path: Path) -> None:
    kept(tmp_path).keep(b"a picture", VECTOR, b"a JPEG", "m")
    assert (tmp_path / "sent").stat().st_mode & 0o077 == 0


def test_a_picture_of_another_model_has_another_name_and_says_whose_its_vector_is(tmp_path: Path) -> None:
    name = kept(tmp_path).keep(b"a picture", VECTOR, b"a JPEG", "m")
    other = kept(tmp_path).keep(b"a picture", -VECTOR, b"a JPEG", "another")
    assert name != other
    assert [kept(tmp_path).get(one).model for one in (name, other)] == ["m", "another"]


def test_a_vector_of_another_model_is_not_searched_with(shared_index: Index, tmp_path: Path) -> None:
    store = KeptPictures(tmp_path / "sent", room=1 << 20, seconds=1e6)
    sent = store.keep(b"a picture", np.ones(3, np.float32), b"a JPEG", "another")
    client = TestClient(create_app(shared_index, ColourModel(), kept=tmp_path / "sent"))
    for address in (f"/search?picture={sent}", f"/captions?picture={sent}"):
        answer = client.get(address)
        assert answer.status_code == 404
        assert "sent to another model" in answer.json()["error"]


def test_what_is_too_old_is_gone_and_what_is_used_stays(tmp_path: Path) -> None:
    clock = Clock()
    store = kept(tmp_path, clock, seconds=1000)
    used, unused = (store.keep(content, VECTOR, b"x", "m") for content in (b"used", b"unused"))
    for _ in range(3):
        clock.now += 900
        assert store.get(used) is not None
    assert store.get(unused) is None
    assert not (tmp_path / "sent" / f"{unused}.npz").exists()


def test_what_is_too_old_goes_when_room_is_made(tmp_path: Path) -> None:
    clock = Clock()
    kept(tmp_path, clock).keep(b"old", VECTOR, b"x", "m")
    clock.now += 61
    kept(tmp_path, clock).keep(b"new", VECTOR, b"x", "m")
    assert len(list((tmp_path / "sent").glob("*.npz"))) == 1


def test_there_is_never_more_than_there_is_room_for(tmp_path: Path) -> None:
    room, clock = 20_000, Clock()
    store = kept(tmp_path, clock, room=room)
    names = []
    for number in range(30):
        names.append(store.keep(bytes([number]), VECTOR, bytes(2000), "m"))
        clock.now += 1
        assert sum(file.stat().st_size for file in (tmp_path / "sent").glob("*.npz")) <= room
    assert store.get(names[-1]) is not None
    assert store.get(names[0]) is None


@pytest.mark.parametrize("name", ["", "../key", "key", "0" * 32, "0" * 31, "G" * 32, "/etc/passwd", "0" * 32 + "\n"])
def test_nothing_else_has_a_name(tmp_path: Path, name: str) -> None:
    store = kept(tmp_path)
    store.keep(b"a picture", VECTOR, b"a JPEG", "m")
    assert store.get(name) is None


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04"])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    store = kept(tmp_path)
    name = store.keep(b"a picture", VECTOR, b"a JPEG", "m")
    (tmp_path / "sent" / f"{name}.npz").write_bytes(content)
    assert store.get(name) is None


def test_an_address_with_a_picture_works_after_the_server_was_started_anew(shared_index: Index, tmp_path: Path) -> None:
    first, second = (TestClient(create_app(shared_index, ColourModel(), kept=tmp_path / "sent")) for _ in range(2))
    sent = first.post("/pictures", content=picture_bytes(COLOURS["blue"])).json()["picture"]
    assert second.get("/search", params={"picture": sent, "k": 1}).json()["hits"][0]["id"] == "2-blue"
    thumbnail = second.get(f"/pictures/{sent}")
    assert thumbnail.headers["content-type"] == "image/jpeg"
    again = second.get(f"/pictures/{sent}", headers={"if-none-match": thumbnail.headers["etag"]})
    assert again.status_code == 304
    os.utime(tmp_path / "sent" / f"{sent}.npz", (0, 0))  # unused since 1970
    for address in (f"/search?picture={sent}", f"/pictures/{sent}", f"/captions?picture={sent}"):
        assert "send it again" in second.get(address).json()["error"]
