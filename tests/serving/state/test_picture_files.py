import io
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from PIL import Image
from pillow_heif import register_heif_opener

from rungwise.core import limited
from rungwise.index import Index
from rungwise.serving import ServerSettings, ServingLimits, create_app
from rungwise.serving.state import _picture_files as picture_files
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes
from tests.serving.conftest import PATIENT


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.build(colour_pictures(tmp_path / "photos", ["red", "blue"]), ColourModel(), tmp_path / "index")


@pytest.fixture
def client(index: Index) -> TestClient:
    return TestClient(create_app(index, ColourModel()), raise_server_exceptions=False)


def test_a_picture_too_large_to_be_made_smaller_gets_a_plain_answer(index: Index) -> None:
    client = TestClient(
        create_app(index, ColourModel(), settings=ServerSettings(limits=ServingLimits(thumbnail_pixels=1000)))
    )
    assert client.get("/images/0-red?thumb=32").status_code == 422
    assert "1200 pixels" in client.get("/images/0-red?thumb=32").json()["error"]
    assert client.get("/images/0-red").status_code == 200
    next(iter(index.items())).path.write_bytes(picture_bytes(COLOURS["red"], "TIFF"))
    assert client.get("/images/0-red").status_code == 422


@pytest.mark.parametrize("form", ["TIFF", "JPEG2000", "HEIF"])
def test_what_browsers_do_not_show_is_sent_as_jpeg(client: TestClient, index: Index, form: str) -> None:
    register_heif_opener()
    next(iter(index.items())).path.write_bytes(picture_bytes(COLOURS["red"], form))
    answer = client.get("/images/0-red")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg")
    assert Image.open(io.BytesIO(answer.content)).format == "JPEG"


def test_a_picture_too_large_for_browsers_is_sent_smaller(
    client: TestClient, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = next(iter(index.items())).path
    monkeypatch.setattr(picture_files, "_MOST_SHOWN", 3_000_000)
    file = io.BytesIO()
    Image.new("RGB", (4000, 1000), "red").save(file, "PNG")
    path.write_bytes(file.getvalue())
    assert Image.open(io.BytesIO(client.get("/images/0-red").content)).size == (2048, 512)
    monkeypatch.setattr(picture_files, "_MOST_SHOWN", 5_000_000)
    assert client.get("/images/0-red").content == file.getvalue()


def test_a_picture_that_takes_more_memory_than_all_gets_a_plain_answer(shared_index: Index) -> None:
    client = TestClient(
        create_app(shared_index, ColourModel(), settings=ServerSettings(limits=ServingLimits(decoding_memory=1 << 20)))
    )
    assert client.get("/images/0-red?thumb=32").status_code == 422
    assert client.get("/images/0-red").status_code == 200


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes and devices in folders there")
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir])
def test_what_is_no_file_is_404_at_once(client: TestClient, index: Index, make: Callable[[Path], None]) -> None:
    next(iter(index.items())).path.unlink()
    make(next(iter(index.items())).path)
    for address in ("/images/0-red", "/images/0-red?thumb=32"):
        assert client.get(address).status_code == 404


def test_an_endless_file_is_404(client: TestClient, index: Index) -> None:
    with limited(picture_bytes=1000):
        next(iter(index.items())).path.write_bytes(picture_bytes(COLOURS["red"], "BMP"))
        for address in ("/images/0-red", "/images/0-red?thumb=32"):
            assert client.get(address).status_code == 404


def test_a_file_that_is_cut_off_while_it_is_sent_ends_the_answer(
    client: TestClient, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture_files, "_PIECE", 100)
    path = next(iter(index.items())).path
    whole = path.read_bytes()
    with client.stream("GET", "/images/0-red") as answer:
        path.write_bytes(whole[:10])
        assert len(answer.read()) <= len(whole)


def test_whoever_asks_at_once_gets_the_same_from_one_decoding(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    made, thumbnail = [], picture_files.thumbnail

    def counted(path: Path, side: int) -> bytes:
        made.append(path)
        return thumbnail(path, side)

    monkeypatch.setattr(picture_files, "thumbnail", counted)
    Image.effect_noise((400, 300), 50).save(next(iter(index.items())).path)
    app = create_app(index, ColourModel(), settings=ServerSettings(limits=PATIENT))
    with TestClient(app) as client, ThreadPoolExecutor(8) as pool:
        got = list(pool.map(lambda _: client.get("/images/0-red?thumb=64").content, range(8)))
    assert len(made) == 1
    assert len(set(got)) == 1
    assert Image.open(io.BytesIO(got[0])).size == (64, 48)


def test_small_copies_that_the_index_keeps_are_sent_as_they_are(tmp_path: Path) -> None:
    photos = colour_pictures(tmp_path / "photos", ["red", "blue"])
    index = Index.create(tmp_path / "index", ColourModel(), name="colours", thumbnails=True)
    index.update(photos, ColourModel())
    client = TestClient(create_app(Index.open(tmp_path / "index"), ColourModel()))
    answer = client.get("/images/0-red?thumb=320")
    assert answer.content == index.thumbnail("0-red")
    again = client.get("/images/0-red?thumb=320", headers={"if-none-match": answer.headers["etag"]})
    assert again.status_code == 304
