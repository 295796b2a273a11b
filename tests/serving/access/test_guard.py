"""Who is let in: tables of Host and Origin, and the ways of a token."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from httpx import Response

from rungwise.index import Index
from rungwise.serving import ServerSettings, create_app
from rungwise.serving.access import with_token
from tests.colour_model import COLOURS, ColourModel, picture_bytes
from tests.serving.conftest import PATIENT, settle

TOKEN = "correct-horse-battery-staple"
READING = ["/about", "/search?q=red", "/similar?id=0-red", "/images/0-red", "/openapi.json"]
EVERYTHING = [*READING, "/", "/static/app.js", "/nowhere", "/static/nowhere"]


@pytest.fixture
def index(shared_index: Index) -> Index:
    return shared_index


@pytest.fixture(scope="module")
def client(shared_index: Index) -> Iterator[TestClient]:
    names = ("localhost", "127.0.0.1", "::1", "Pictures.Example")
    app = create_app(shared_index, ColourModel(), settings=ServerSettings(allowed_hosts=names, limits=PATIENT))
    with TestClient(app, base_url="http://localhost:8000") as client:
        yield client


@pytest.fixture(scope="module")
def guarded_by_token(shared_index: Index) -> Iterator[TestClient]:
    app = create_app(
        shared_index,
        ColourModel(),
        settings=ServerSettings(allowed_hosts=("localhost", "::1"), token=TOKEN, limits=PATIENT),
    )
    with TestClient(app, base_url="http://localhost:8000", follow_redirects=False) as client:
        yield client


@pytest.fixture
def guarded(guarded_by_token: TestClient) -> TestClient:
    """Without the cookies of the test before."""
    guarded_by_token.cookies.clear()
    return guarded_by_token


def post(client: TestClient, headers: dict[str, str]) -> Response:
    return client.post("/pictures", content=picture_bytes(COLOURS["red"]), headers=headers)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200), ("localhost", 200), ("LOCALHOST:1", 200), ("localhost.:8000", 200),
        ("127.0.0.1:8000", 200), ("[::1]:8000", 200), ("[0:0:0:0:0:0:0:1]:8000", 200), ("pictures.example", 200),
        ("testserver", 421), ("evil.example:8000", 421), ("localhost.evil.example", 421), ("evil.localhost", 421),
        ("localhost@evil.example", 421), ("evil.example@localhost", 421), ("127.0.0.2", 421), ("2130706433", 421),
        ("0x7f.1", 421), ("127.1", 421), ("0.0.0.0:8000", 421), ("[::]:8000", 421), ("", 421), (" ", 421),
        ("localhost, evil.example", 421), ("localhost/", 421), ("192.168.0.9:8000", 421),
    ],
)  # fmt: skip
def test_host_table(client: TestClient, host: str, status: int) -> None:
    for address in ("/", "/about", "/static/app.js", "/common/looks.css"):
        assert client.get(address, headers={"host": host}).status_code == status
    assert post(client, {"host": host}).status_code == status


def test_the_address_at_which_a_connection_arrived_is_a_name(index: Index) -> None:
    arrived = TestClient(
        create_app(index, ColourModel(), settings=ServerSettings(allowed_hosts=("localhost",))),
        base_url="http://192.168.0.9:8000",
    )
    assert arrived.get("/about").status_code == 200
    assert arrived.get("/about", headers={"host": "192.168.0.8:8000"}).status_code == 421


def test_two_hosts_are_none(client: TestClient) -> None:
    headers = [("host", "localhost"), ("host", "localhost")]
    assert client.get("/about", headers=headers).status_code == 421


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200), ("http://localhost:8000", 200), ("https://localhost:8000", 200), ("http://LOCALHOST:8000", 200),
        ("http://localhost:8001", 403), ("http://localhost", 403), ("http://127.0.0.1:8000", 403), ("null", 403),
        ("https://evil.example", 403), ("http://localhost.evil.example:8000", 403), ("", 403), ("file://", 403),
        ("http://localhost:8000.evil.example", 403), ("chrome-extension://localhost:8000", 403),
        ("http://evil.example@localhost:8000", 403), ("http://localhost:8000/", 403), ("localhost:8000", 403),
    ],
)  # fmt: skip
def test_origin_table(client: TestClient, origin: str | None, status: int) -> None:
    headers = {} if origin is None else {"origin": origin}
    assert post(client, headers).status_code == status
    for address in READING:
        assert client.get(address, headers=headers).status_code == status
    # A link, a bookmark or a search engine may lead to the page itself.
    assert client.get("/", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("site", "status"), [("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403), ("odd", 403)]
)
def test_sec_fetch_site_table(client: TestClient, site: str, status: int) -> None:
    headers = {"sec-fetch-site": site}
    assert post(client, headers).status_code == status
    for address in READING:
        assert client.get(address, headers=headers).status_code == status
    assert client.get("/", headers=headers).status_code == 200


def test_behind_a_name_on_a_usual_port(client: TestClient) -> None:
    headers = {"host": "pictures.example", "origin": "https://pictures.example", "sec-fetch-site": "same-origin"}
    assert post(client, headers).status_code == 200


# Every address is asked by one method that reads and one that does not; every method is asked of two addresses.
METHODS = ["GET", "HEAD", "GET", "HEAD", "GET", "HEAD", "GET", "HEAD", "GET"]
OTHERS = ["POST", "OPTIONS", "DELETE", "TRACE", "POST", "OPTIONS", "DELETE", "TRACE", "POST"]


@pytest.mark.parametrize(
    ("method", "address"), [*zip(METHODS, EVERYTHING, strict=True), *zip(OTHERS, EVERYTHING, strict=True)]
)
def test_without_the_token_nothing_is_answered(guarded: TestClient, address: str, method: str) -> None:
    for headers in ({}, {"authorization": "Bearer wrong-horse"}, {"authorization": TOKEN}, {"cookie": f"a={TOKEN}"}):
        answer = guarded.request(method, address, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert TOKEN not in answer.text
        assert "content-security-policy" in answer.headers


def test_the_token_in_a_header_opens_everything(guarded: TestClient) -> None:
    for scheme in ("Bearer", "bearer"):
        headers = {"authorization": f"{scheme} {TOKEN}"}
        for address in (*READING, "/", "/static/app.js"):
            assert guarded.get(address, headers=headers).status_code == 200
        assert post(guarded, headers).status_code == 200


def test_a_first_visit_lets_the_browser_in(guarded: TestClient) -> None:
    first = guarded.get(with_token("/", TOKEN) + "&q=red+dog&v=%22")
    assert (first.status_code, first.headers["location"]) == (303, "./?q=red+dog&v=%22")
    cookie = first.headers["set-cookie"]
    assert cookie.startswith("rungwise-8000=")
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert TOKEN not in cookie
    assert first.headers["referrer-policy"] == "no-referrer"
    for address in (*READING, "/", "/static/app.js"):
        assert guarded.get(address).status_code == 200
    assert post(guarded, {}).status_code == 200


def test_behind_a_proxy_that_speaks_https_the_cookie_never_goes_by_plain_http(guarded: TestClient) -> None:
    for sent, secure in (({}, False), ({"x-forwarded-proto": "https"}, True), ({"x-forwarded-proto": "http"}, False)):
        cookie = guarded.get(with_token("/", TOKEN), headers=sent).headers["set-cookie"]
        assert ("Secure" in cookie) is secure
        guarded.cookies.clear()


def test_a_wrong_token_sets_no_cookie(guarded: TestClient) -> None:
    for wrong in ("wrong-horse", "", TOKEN[:-1]):
        answer = guarded.get("/", params={"token": wrong})
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        assert "form" in answer.text
    assert guarded.get("/").status_code == 401


def test_the_token_in_an_address_opens_the_page_alone(guarded: TestClient) -> None:
    for address in ("/about", "/images/0-red", "/static/app.js"):
        assert guarded.get(f"{address}?token={TOKEN}").status_code == 401
    assert guarded.post(f"/?token={TOKEN}").status_code == 401


def test_what_a_stranger_writes_in_the_address_is_no_markup(guarded: TestClient) -> None:
    text = guarded.get('/?q="><script>alert(1)</script>').text
    assert "<script" not in text


def test_servers_of_two_ports_do_not_share_a_cookie(guarded: TestClient) -> None:
    guarded.get(with_token("/", TOKEN))
    assert guarded.get("/about").status_code == 200
    assert guarded.get("/about", headers={"host": "localhost:9000"}).status_code == 401


def test_another_programs_odd_cookie_does_not_lock_out(guarded: TestClient) -> None:
    cookie = guarded.get(with_token("/", TOKEN)).headers["set-cookie"].partition(";")[0]
    for odd in ('a={"json": [1,2]}', "b", "c=;;;", 'd="'):
        assert guarded.get("/about", headers={"cookie": f"{odd}; {cookie}"}).status_code == 200


def test_the_server_behind_never_sees_the_token_in_the_address(index: Index) -> None:
    """What logs requests reads the address from the scope after the answer."""
    scopes = []
    app = create_app(index, ColourModel(), settings=ServerSettings(token=TOKEN))

    async def logging(scope: dict, receive: object, send: object) -> None:
        await app(scope, receive, send)
        scopes.append(scope)

    TestClient(logging, follow_redirects=False).get(with_token("/", TOKEN) + "&q=red")
    assert scopes[-1]["query_string"] == b"q=red"


@pytest.mark.parametrize("address", ["/", "/static/app.js", "/nowhere", *READING, "/images/0-red?thumb=32"])
def test_head_answers_as_get_without_a_body(client: TestClient, address: str) -> None:
    client.get("/about")
    settle()  # so that both tell the same of the columns
    whole, head = client.get(address), client.head(address)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    for name in ("content-type", "etag", "content-length", "content-security-policy"):
        assert head.headers.get(name) == whole.headers.get(name)


@pytest.mark.parametrize(
    ("address", "allowed"),
    [(address, "GET, HEAD") for address in ("/", "/about", "/search", "/images/0-red", "/static/app.js")]
    + [("/pictures", "POST")],
)
def test_other_methods_are_told_what_is_allowed(client: TestClient, address: str, allowed: str) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "FANCY"):
        answer = client.request(method, address)
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed), method
        assert list(answer.json()) == ["error"], method
