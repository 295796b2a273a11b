import io
import logging
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from fastapi.testclient import TestClient
from httpx import Response
from numpy.typing import NDArray
from PIL import Image, ImageFile
from pillow_heif import register_heif_opener

from rungwise.core import UnavailableError, UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.index import Index, Item
from rungwise.models import EncodedImages
from rungwise.serving import ServerSettings, ServingLimits, create_app
from rungwise.serving import _workload as workload
from rungwise.serving.queues import Batches, WorkQueue
from rungwise.serving.routes.search import download_name
from rungwise.similarity import Order
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes
from tests.serving.conftest import MIXED, PATIENT

SHOWN = [path for room in ("static", "common") for path in (Path(workload.__file__).parent / room).iterdir()]


@pytest.fixture
def index(shared_index: Index) -> Index:
    return shared_index


@pytest.fixture
def client(reader: TestClient) -> TestClient:
    return reader


@pytest.fixture
def own_index(tmp_path: Path) -> Index:
    """Whose files a test may change."""
    return Index.build(colour_pictures(tmp_path / "photos", MIXED), ColourModel(), tmp_path / "index")


@pytest.fixture
def own_client(own_index: Index) -> TestClient:
    return TestClient(create_app(own_index, ColourModel()), raise_server_exceptions=False)


def refused(response: object, status: int) -> str:
    assert response.status_code == status
    message = response.json()["error"]
    assert list(response.json()) == ["error"]
    assert message
    assert "\n" not in message
    return message


def test_index_of_another_model_is_refused_at_the_start(index: Index) -> None:
    with pytest.raises(UserError, match="c0ffeec0ffee"):
        create_app(index, ColourModel(fingerprint="another"))


def test_the_fingerprint_is_computed_once_however_often_is_asked(index: Index) -> None:
    model = ColourModel()
    client = TestClient(create_app(index, model))
    for colour in ("red", "green", "blue"):
        assert client.get("/search", params={"q": colour}).status_code == 200
        sent = client.post("/pictures", content=picture_bytes(COLOURS[colour])).json()["picture"]
        assert client.get("/search", params={"picture": sent}).status_code == 200
        assert client.get("/about").status_code == 200
    assert model.hashed == 1


def test_rows_of_features_are_shown_without_a_picture(tmp_path: Path) -> None:
    rows = FeatureRows(np.array([COLOURS["red"], COLOURS["blue"]], np.float32))
    data = ImageCaptions(("a", "b"), ("a red square",), np.array([0]), features=rows)
    client = TestClient(create_app(Index.build(data, ColourModel(), tmp_path / "index"), ColourModel()))
    answer = client.get("/search?q=red").json()
    assert [(hit["id"], hit["has_file"], hit["captions"]) for hit in answer["hits"]] == [
        ("a", False, ["a red square"]),
        ("b", False, []),
    ]
    assert not client.get("/similar?id=a").json()["of"]["has_file"]
    for address in ("/images/a", "/images/a?thumb=64"):
        assert "no file" in refused(client.get(address), 404)


def test_status_says_what_is_searched(client: TestClient) -> None:
    status = client.get("/about").json()
    assert (status["name"], status["pictures"], status["captions"], status["skipped"]) == ("colours", 5, 4, 0)
    assert status["model"] == "c0ffeec0ffee"
    assert status["examples"] == ["red"]  # which alone two pictures share


def test_search_finds_pictures_and_their_ids_lead_back(client: TestClient) -> None:
    answer = client.get("/search", params={"q": "red", "k": 2, "fold": False}).json()
    assert [hit["id"] for hit in answer["hits"]] == ["0-red", "3-red"]
    assert answer["hits"][0]["captions"] == ["a red square"]
    assert answer["hits"][0]["has_file"]
    assert answer["more"]
    similar = client.get("/similar", params={"id": answer["hits"][0]["id"], "k": 1}).json()
    assert (similar["of"]["id"], similar["hits"][0]["id"]) == ("0-red", "3-red")


@pytest.mark.parametrize("query", ["赤", "rot", "red 🐕 \u202e", "red'; drop table--", "red <script>", "red\x00"])
def test_any_text_is_a_query(client: TestClient, query: str) -> None:
    answer = client.get("/search", params={"q": query, "fold": False})
    assert answer.status_code == 200
    assert answer.json()["query"] == query
    assert len(answer.json()["hits"]) == len(MIXED)


def test_endless_queries_are_refused(client: TestClient) -> None:
    assert "q" in refused(client.get("/search?q=" + "a" * 2001), 422)


def test_undecodable_query_is_answered(client: TestClient) -> None:
    assert client.get("/search?q=%ff%fe").status_code == 200


@pytest.mark.parametrize("k", ["0", "-1", "501", "many", "1e9", ""])
def test_k_has_limits(client: TestClient, k: str) -> None:
    assert "k" in refused(client.get(f"/search?q=red&k={k}"), 422)
    refused(client.get(f"/similar?id=0-red&k={k}"), 422)
    refused(client.get(f"/captions?id=0-red&k={k}"), 422)


def test_k_above_the_index_is_the_index(client: TestClient) -> None:
    assert len(client.get("/search?q=red&k=500&fold=false").json()["hits"]) == len(MIXED)
    assert len(client.get("/similar?id=0-red&k=500&fold=false").json()["hits"]) == len(MIXED) - 1


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
def test_picture_finds_pictures_and_captions(client: TestClient, form: str) -> None:
    sent = client.post("/pictures", content=picture_bytes(COLOURS["blue"], form)).json()
    assert (sent["width"], sent["height"]) == (40, 30)
    found = client.get("/search", params={"picture": sent["picture"], "k": 1}).json()
    assert [hit["id"] for hit in found["hits"]] == ["2-blue"]
    captions = client.get("/captions", params={"picture": sent["picture"], "k": 1}).json()
    assert captions["captions"] == [{"text": "a blue square", "score": pytest.approx(1, abs=1e-3), "ids": ["2-blue"]}]
    assert captions["has_captions"]


def test_collection_without_captions_says_so(tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "photos", MIXED, captions=False)
    index = Index.build(data, ColourModel(), tmp_path / "index")
    answer = TestClient(create_app(index, ColourModel())).get("/captions?id=0-red").json()
    assert (answer["captions"], answer["has_captions"]) == ([], False)


@pytest.mark.parametrize(
    "body", [b"", b"hello", b"<svg xmlns='http://www.w3.org/2000/svg'/>", picture_bytes((1, 2, 3), "JPEG")[:200]]
)
def test_broken_upload_is_one_line(client: TestClient, body: bytes) -> None:
    refused(client.post("/pictures", content=body), 422)


@pytest.mark.parametrize("form", ["JPEG2000", "HEIF"])
def test_formats_of_no_browser_are_no_uploads(client: TestClient, form: str) -> None:
    register_heif_opener()
    said = refused(client.post("/pictures", content=picture_bytes((1, 2, 3), form)), 422)
    assert "not a picture in a known format; send another file, such as a JPEG, PNG, WebP or GIF" in said


def test_gigapixel_upload_is_one_line(client: TestClient) -> None:
    png = bytearray(picture_bytes((0, 0, 0)))
    png[16:24] = (100_000).to_bytes(4, "big") * 2
    refused(client.post("/pictures", content=bytes(png)), 422)


def test_oversize_upload_is_refused_announced_or_not(index: Index) -> None:
    client = TestClient(
        create_app(index, ColourModel(), settings=ServerSettings(limits=ServingLimits(upload_bytes=1 << 20)))
    )
    assert "1 MiB" in refused(client.post("/pictures", content=bytes((1 << 20) + 1)), 413)
    parts = (bytes(1 << 18) for _ in range(5))
    refused(client.post("/pictures", content=parts), 413)
    lie = {"content-length": "99999999999999"}
    refused(client.post("/pictures", content=b"x", headers=lie), 413)


STRANGE_NAMES = (
    "-1", "5", "9" * 400, "abc", "", "%00", "None", "bytes:", "bytes:L2V0Yy9wYXNzd2Q=",
    "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "%252e%252e%252fetc%252fpasswd",
    "..\\..\\etc\\passwd", "/etc/passwd", "%2fetc%2fpasswd", "0-red/../../../etc/passwd",
    "0-red%00.png", "0-red.png",
)  # fmt: skip


@pytest.mark.parametrize("room", ["/images/", "/items/", "/pictures/", "/similar?id=", "/captions?id=", "/static/"])
def test_nothing_but_an_id_is_answered(client: TestClient, room: str) -> None:
    for name in STRANGE_NAMES:
        response = client.get(room + name)
        assert response.status_code in (404, 405, 422), name
        assert "root:" not in response.text, name


def test_stranger_addresses_are_one_line(client: TestClient) -> None:
    refused(client.get("/etc/passwd"), 404)
    refused(client.put("/about"), 405)


def test_picture_is_sent_as_it_is_and_small_on_request(client: TestClient, index: Index) -> None:
    whole = client.get("/images/0-red")
    assert (whole.content, whole.headers["content-type"]) == (next(iter(index.items())).path.read_bytes(), "image/png")
    small = client.get("/images/0-red?thumb=16")
    assert small.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(small.content)).size == (16, 12)


@pytest.mark.parametrize("thumb", ["0", "-5", "15", "1025", "a"])
def test_thumbnail_sizes_have_limits(client: TestClient, thumb: str) -> None:
    refused(client.get(f"/images/0-red?thumb={thumb}"), 422)


def test_unchanged_picture_is_not_sent_again(own_client: TestClient, own_index: Index) -> None:
    first = own_client.get("/images/0-red?thumb=32")
    assert "no-cache" in first.headers["cache-control"]
    again = {"if-none-match": first.headers["etag"]}
    assert own_client.get("/images/0-red?thumb=32", headers=again).status_code == 304
    assert own_client.get("/images/0-red?thumb=33", headers=again).status_code == 200
    assert own_client.get("/images/1-green?thumb=32", headers=again).status_code == 200
    next(iter(own_index.items())).path.write_bytes(picture_bytes(COLOURS["blue"], size=(50, 50)))
    changed = own_client.get("/images/0-red?thumb=32", headers=again)
    assert changed.status_code == 200
    assert Image.open(io.BytesIO(changed.content)).size == (32, 32)


def test_moved_or_damaged_picture_is_404_and_its_path_stays_here(own_client: TestClient, own_index: Index) -> None:
    path = next(iter(own_index.items())).path
    path.write_bytes(path.read_bytes()[:40])
    assert path.name not in refused(own_client.get("/images/0-red?thumb=64"), 404)
    path.unlink()
    assert path.name not in refused(own_client.get("/images/0-red"), 404)
    path.mkdir()
    refused(own_client.get("/images/0-red"), 404)
    assert own_client.get("/search?q=red&k=1").json()["hits"][0]["id"] == "0-red"


def test_file_that_is_no_picture_is_never_sent(own_client: TestClient, own_index: Index) -> None:
    next(iter(own_index.items())).path.write_text("<script>alert(1)</script>")
    refused(own_client.get("/images/0-red"), 404)


def test_format_that_browsers_do_not_show_is_converted(own_client: TestClient, own_index: Index) -> None:
    next(iter(own_index.items())).path.write_bytes(picture_bytes(COLOURS["red"], "TIFF"))
    answer = own_client.get("/images/0-red")
    assert answer.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(answer.content)).format == "JPEG"


def test_undecodable_file_names_are_shown_somehow(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture_bytes(COLOURS["red"]))
    data = ImageCaptions(("\udcff", "日本"), ("x\udcfe",), [0], paths=(tmp_path / "a.png",) * 2)
    client = TestClient(create_app(Index.build(data, ColourModel(), tmp_path / "index"), ColourModel()))
    hits = client.get("/search?q=red&fold=false").json()["hits"]
    assert [(hit["id"][:6], hit["captions"]) for hit in hits] == [("bytes:", ["x?"]), ("日本", [])]
    for hit in hits:  # and what is shown leads back
        assert client.get(f"/images/{quote(hit['id'], safe='')}").status_code == 200
        assert client.get("/similar", params={"id": hit["id"]}).json()["of"] == {
            name: hit[name] for name in ("id", "captions", "columns", "has_file")
        }


def test_page_asks_nothing_of_anybody_else(client: TestClient) -> None:
    page = client.get("/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'self'; img-src 'self' blob:;" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    linked = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
    assert len(linked) >= 4
    for address in linked:
        assert not address.startswith(("/", "http:", "https:", "//"))
        assert client.get("/" + address).status_code == 200


@pytest.mark.parametrize("path", sorted(SHOWN), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_page_holds_no_outside_address_and_no_markup_from_data(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(
        r"https?:|//[a-z]+\.|@import|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text
    )
    assert not re.search(r"<script(?![^>]*src=)|\son[a-z]+=\"|style=\"", text)  # the policy forbids what is inline


def test_headers_stand_on_refusals_too(client: TestClient) -> None:
    for address in ("/nowhere", "/search", "/images/99", "/static/app.js"):
        assert "content-security-policy" in client.get(address).headers


def test_only_own_names_are_answered_when_they_are_given(index: Index) -> None:
    client = TestClient(create_app(index, ColourModel(), settings=ServerSettings(allowed_hosts=("localhost", "::1"))))
    assert client.get("/about", headers={"host": "localhost:8000"}).status_code == 200
    assert client.get("/about", headers={"host": "[::1]:8000"}).status_code == 200
    for name in ("evil.example", "localhost.evil.example:8000", ""):
        refused(client.get("/about", headers={"host": name}), 421)


def test_other_similarities_scale_their_bars_by_the_results(tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "photos", MIXED)
    model = ColourModel(similarity=Order())
    index = Index.build(data, model, tmp_path / "index")
    answer = TestClient(create_app(index, model)).get(f"/search?q={quote('赤')}").json()
    assert answer["scale"] == [answer["hits"][-1]["score"], answer["hits"][0]["score"]]


def black_png(width: int, height: int) -> bytes:
    """A small file of many pixels."""
    file = io.BytesIO()
    Image.new("1", (width, height)).save(file, "PNG", compress_level=1)
    return file.getvalue()


def test_a_picture_of_too_many_pixels_is_refused_from_its_header(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("pixels were decoded")

    monkeypatch.setattr(ImageFile.ImageFile, "load", never)
    client = TestClient(create_app(index, ColourModel()))
    png = bytearray(picture_bytes((0, 0, 0)))
    png[16:24] = (13_370).to_bytes(4, "big") * 2
    png[29:33] = zlib.crc32(png[12:29]).to_bytes(4, "big")
    assert "178756900 pixels" in refused(client.post("/pictures", content=bytes(png)), 413)


def test_the_most_pixels_are_a_setting(index: Index) -> None:
    client = TestClient(
        create_app(index, ColourModel(), settings=ServerSettings(limits=ServingLimits(upload_pixels=999_999)))
    )
    assert client.post("/pictures", content=black_png(999, 1000)).status_code == 200
    refused(client.post("/pictures", content=black_png(1000, 1000)), 413)


def test_a_picture_that_takes_more_memory_than_all_is_refused(index: Index) -> None:
    client = TestClient(
        create_app(index, ColourModel(), settings=ServerSettings(limits=ServingLimits(decoding_memory=80 << 20)))
    )
    assert client.post("/pictures", content=black_png(1000, 1000)).status_code == 200
    message = refused(client.post("/pictures", content=black_png(2000, 2000)), 413)
    assert "would take 94 MiB to decode, more than 80" in message


class Gate(ColourModel):
    """Does not get on with pictures until it is let."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where
        self.go, self.reached = threading.Event(), threading.Semaphore(0)
        self.encoded: list[str] = []

    def prepare_image(self, picture: Path | bytes) -> Callable[[], EncodedImages]:
        encode = super().prepare_image(picture)
        if self.where == "decoding":
            self._wait()
            return encode
        return lambda: (self._wait(), self.encoded.append("picture"), encode())[2]

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.encoded.append("text")
        return super().encode_text(texts)

    def _wait(self) -> None:
        self.reached.release()
        self.go.wait()


@contextmanager
def clients_of(
    index: Index, model: Gate, limits: ServingLimits = PATIENT
) -> Iterator[tuple[TestClient, ThreadPoolExecutor]]:
    """An application, and threads that ask it at once; at the end the model gets on in any case."""
    with (
        TestClient(create_app(index, model, settings=ServerSettings(limits=limits))) as client,
        ThreadPoolExecutor(8) as asking,
    ):
        try:
            yield client, asking
        finally:
            model.go.set()


def send(client: TestClient, colour: str) -> Response:
    return client.post("/pictures", content=picture_bytes(COLOURS[colour]))


def search(client: TestClient, words: str) -> Response:
    return client.get("/search", params={"q": words, "k": 1})


def best(answer: Response) -> str:
    return answer.json()["hits"][0]["id"]


def test_texts_are_answered_while_pictures_are_decoded(index: Index) -> None:
    model = Gate("decoding")
    with clients_of(index, model) as (client, asking):
        pictures = [asking.submit(send, client, colour) for colour in ("red", "green", "blue", "red")]
        model.reached.acquire()
        assert best(search(client, "blue")) == "2-blue"
        model.go.set()
        sent = [picture.result().json()["picture"] for picture in pictures]
    assert sent[0] == sent[3]
    assert len(set(sent)) == 3


def test_texts_are_answered_together_and_before_pictures_that_wait_to_be_encoded(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, pictures_due, texts_due = Gate("encoding"), threading.Semaphore(0), threading.Semaphore(0)
    monkeypatch.setattr(workload, "_PICTURE_PATIENCE", 1e9)  # a picture is never due before a text

    def counted(submit: Callable[..., object], counter: threading.Semaphore) -> Callable[..., object]:
        def submitting(*given: object, **named: object) -> object:
            outcome = submit(*given, **named)
            counter.release()
            return outcome

        return submitting

    monkeypatch.setattr(WorkQueue, "submit", counted(WorkQueue.submit, pictures_due))
    monkeypatch.setattr(Batches, "submit", counted(Batches.submit, texts_due))
    with clients_of(index, model) as (client, asking):
        pictures = [asking.submit(send, client, "red") for _ in range(3)]
        model.reached.acquire()  # the first is at the network
        for _ in range(3 + 3):  # they are decoded, then two of them wait for their turn
            pictures_due.acquire()
        texts = [asking.submit(search, client, words) for words in ("blue", "red", "green")]
        for _ in texts:
            texts_due.acquire()
        model.go.set()
        for one in pictures:
            assert one.result().status_code == 200
        assert [best(one.result()) for one in texts] == ["2-blue", "0-red", "1-green"]
    # The texts together, then once what the end of relevance is judged by.
    assert model.encoded == ["picture", "text", "text", "picture", "picture"]


def test_what_waits_too_long_is_told_to_come_again(index: Index) -> None:
    model = Gate("encoding")
    # No time at all: what finds its queue free begins at once, and nothing else can.
    with clients_of(index, model, ServingLimits(waiting_seconds=1e-9)) as (client, asking):
        first = asking.submit(send, client, "red")
        model.reached.acquire()
        busy = search(client, "red")
        assert (busy.status_code, int(busy.headers["Retry-After"]) > 0) == (503, True)
        model.go.set()
        assert first.result().status_code == 200


def test_a_client_with_too_many_pictures_under_way_is_told_so(index: Index) -> None:
    model = Gate("decoding")
    with clients_of(index, model, replace(PATIENT, uploads_per_client=1)) as (client, asking):
        first = asking.submit(send, client, "red")
        model.reached.acquire()
        refusal = send(client, "red")
        assert (refusal.status_code, int(refusal.headers["Retry-After"]) > 0) == (429, True)
        model.go.set()
        assert first.result().status_code == 200


def test_too_little_memory_is_told_and_not_a_failure(index: Index) -> None:
    class Full(ColourModel):
        def prepare_image(self, picture: Path | bytes) -> Callable[[], EncodedImages]:
            raise MemoryError

    client = TestClient(create_app(index, Full()))
    answer = client.post("/pictures", content=picture_bytes(COLOURS["red"]))
    assert "memory" in refused(answer, 503)


def test_a_store_that_is_away_is_told_without_its_address(index: Index, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)  # whatever level a library has given to all

    class Away(ColourModel):
        def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise UnavailableError("milvus://10.0.0.7:19530/pets: the server does not answer")

    answer = TestClient(create_app(index, Away())).get("/search?q=red")
    assert refused(answer, 503) == "the store of the index does not answer; try again in a moment"
    assert int(answer.headers["retry-after"]) > 0
    assert "10.0.0.7" in caplog.text


def test_a_failure_of_ours_is_one_line_with_all_headers(index: Index) -> None:
    class Broken(ColourModel):
        def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise ZeroDivisionError

    client = TestClient(create_app(index, Broken()), raise_server_exceptions=False)
    answer = client.get("/search?q=red")
    refused(answer, 500)
    assert "content-security-policy" in answer.headers


def test_a_file_is_downloaded_as_it_is_under_a_safe_name(own_client: TestClient, own_index: Index) -> None:
    item = next(own_index.items())
    answer = own_client.get(f"/images/{item.id}?download=true")
    assert answer.content == item.path.read_bytes()
    named = f"attachment; filename=\"{item.path.name}\"; filename*=UTF-8''{item.path.name}"
    assert answer.headers["content-disposition"] == named
    again = own_client.get(f"/images/{item.id}?download=true", headers={"if-none-match": answer.headers["etag"]})
    assert again.status_code == 304
    item.path.unlink()
    assert own_client.get(f"/images/{item.id}?download=true").status_code == 404


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("a.jpg", "a.jpg"),
        ("../../etc/passwd", "passwd"),
        ('a"b\r\nSet-Cookie: x.jpg', "a_b__Set-Cookie_ x.jpg"),
        ("日本.tif", "日本.tif"),
        ("..", "picture"),
        ("x" * 400 + ".jpg", "x" * 116 + ".jpg"),
        ("C:\\photos\\a.jpg", "a.jpg"),
    ],
)
def test_names_of_downloads_are_names_of_files(name: str, saved: str) -> None:
    assert download_name(Item(name, None)) == saved


def test_small_copies_are_kept_by_content_while_the_file_is_the_one_of_the_index(
    own_client: TestClient, own_index: Index
) -> None:
    item = next(own_index.items())
    asked = f"/images/{item.id}?thumb=64&content="
    kept = own_client.get(asked + item.columns["hash"][:16])
    assert kept.headers["cache-control"] == "private, max-age=31536000, immutable"
    for other in (asked + "0" * 16, f"/images/{item.id}?thumb=64", f"/images/{item.id}?content={item.columns['hash']}"):
        assert "no-cache" in own_client.get(other).headers["cache-control"]
    assert own_client.get(asked + "short").status_code == 422
    item.path.write_bytes(item.path.read_bytes() + b"more")
    assert "no-cache" in own_client.get(asked + item.columns["hash"][:16]).headers["cache-control"]


def test_where_a_file_lies_is_told_to_this_machine_alone(own_index: Index) -> None:
    item = next(own_index.items())
    for here, path in ((True, str(item.path)), (False, f"{item.path.parent.name}/{item.path.name}")):
        client = TestClient(create_app(own_index, ColourModel(), only_here=here))
        assert client.get(f"/items/{item.id}").json()["path"] == path
