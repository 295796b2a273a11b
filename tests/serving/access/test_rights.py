"""Who may what: every operation of the search page by every right, without a token, and with a wrong one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from starlette.routing import BaseRoute, Mount, Route

from rungwise.index import Index
from rungwise.serving import ServerSettings, create_app
from rungwise.serving.access import NEEDED_RIGHTS, RIGHTS, Right, Visitor, needed_right, parse_tokens
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes
from tests.serving.conftest import PATIENT

TOKENS = {
    "watch": "token-of-the-monitor",
    "read": "token-of-a-reader",
    "grade": "token-of-a-grader",
    "write": "token-of-a-writer",
}
WHO = {"watch": "monitor", "read": "rita", "grade": "greta", "write": "wanda"}
LINES = "\n".join(f"{WHO[right]} {right} {token}" for right, token in TOKENS.items())

ROUTES: list[tuple[str, str, Right]] = [
    ("GET", "/health", "watch"), ("GET", "/ready", "watch"), ("GET", "/metrics", "watch"), ("HEAD", "/ready", "watch"),
    ("GET", "/", "read"), ("GET", "/static/app.js", "read"), ("GET", "/common/looks.css", "read"),
    ("GET", "/docs", "read"), ("GET", "/reference/index.html", "read"), ("GET", "/openapi.json", "read"),
    ("GET", "/about", "read"), ("GET", "/search?q=red", "read"), ("HEAD", "/search?q=red", "read"),
    ("GET", "/similar?id=0-red", "read"), ("GET", "/captions?id=0-red", "read"), ("GET", "/sample", "read"),
    ("GET", "/values?column=folder", "read"),
    ("GET", "/why?id=0-red&q=red", "read"), ("GET", "/items/0-red", "read"), ("GET", "/images/0-red", "read"),
    ("POST", "/pictures", "read"), ("GET", "/pictures/none", "read"), ("GET", "/favourites", "read"),
    ("GET", "/searches", "read"), ("GET", "/grades", "grade"), ("POST", "/grades", "grade"),
    ("PUT", "/favourites/0-red", "grade"), ("DELETE", "/favourites/0-red", "grade"),
    ("PUT", "/searches/reds", "grade"), ("DELETE", "/searches/reds", "grade"), ("POST", "/calibration", "write"),
    ("DELETE", "/queries", "write"), ("POST", "/items?id=new", "write"), ("DELETE", "/items/new", "write"),
]  # fmt: skip
"""A request to every operation, with the right that the documentation promises it needs."""

BODIES = {
    ("POST", "/grades"): {"json": {"query": "red", "id": "0-red", "grade": "right"}},
    ("PUT", "/searches/reds"): {"json": {"q": "red", "where": ""}},
    ("POST", "/pictures"): {"content": picture_bytes(COLOURS["red"])},
    ("POST", "/items?id=new"): {"content": picture_bytes(COLOURS["blue"])},
}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    folder: Path = tmp_path_factory.mktemp("team")
    index = Index.build(colour_pictures(folder / "photos", ["red", "blue"]), ColourModel(), folder / "index")
    settings = ServerSettings(tokens=parse_tokens(LINES, "here"), limits=PATIENT)
    return create_app(index, ColourModel(), settings=settings, kept=folder / "kept")


@pytest.fixture(scope="module")
def team(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as client:
        yield client


def asked(client: TestClient, method: str, address: str, token: str | None) -> tuple[int, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    answer = client.request(method, address, headers=headers, **BODIES.get((method, address), {}))
    return answer.status_code, answer.text


def first_part(path: str) -> str:
    return path.removeprefix("/").partition("/")[0].partition("?")[0]


def each_route(routes: list[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Method and path of every route, those of routers within included."""
    for route in routes:
        if (router := getattr(route, "original_router", None)) is not None:
            yield from each_route(router.routes)
        elif isinstance(route, Mount):
            yield "GET", route.path
        else:
            assert isinstance(route, Route | APIRoute), route
            yield from ((method, route.path) for method in route.methods or () if method != "HEAD")


def test_every_route_has_its_row_and_every_row_a_route(app: FastAPI) -> None:
    routed = {(method, first_part(path)) for method, path in each_route(app.routes)}
    without = routed - NEEDED_RIGHTS.keys()
    assert not without, f"routes that no row of _rights.py names: {without}"
    assert not NEEDED_RIGHTS.keys() - routed
    written = {("GET" if method == "HEAD" else method, first_part(address)) for method, address, _ in ROUTES}
    assert written == NEEDED_RIGHTS.keys()


@pytest.mark.parametrize(("method", "address", "needed"), ROUTES)
def test_who_may_what(team: TestClient, method: str, address: str, needed: Right) -> None:
    """Refusals come from the least right up, so that none of them finds done what a greater right did before."""
    assert asked(team, method, address, None)[0] == asked(team, method, address, "wrong-horse")[0] == 401
    for right in RIGHTS:
        status, text = asked(team, method, address, TOKENS[right])
        if RIGHTS.index(right) >= RIGHTS.index(needed):
            assert status not in (401, 403, 405), text
            continue
        assert status == 403
        if method != "HEAD":
            said = f"this needs the right {needed}, and the token {WHO[right]} has {right}"
            assert said in text
            assert "\n" not in text
        assert not [token for token in TOKENS.values() if token in text]


def test_at_least_thirty_refusals_are_asked_for() -> None:
    assert sum(RIGHTS.index(needed) for _, _, needed in ROUTES) >= 30


def test_what_nobody_entered_is_closed_to_all_but_those_who_may_everything(team: TestClient) -> None:
    for method, address in (("GET", "/nowhere"), ("PATCH", "/about"), ("POST", "//items"), ("GET", "/ITEMS/0-red")):
        for right in ("watch", "read", "grade"):
            status, text = asked(team, method, address, TOKENS[right])
            assert (status, "there is nothing at this address" in text) == (404, True), address
    assert asked(team, "PATCH", "/about", TOKENS["write"])[0] == 405
    assert needed_right("GET", "/nowhere") is None


def test_about_says_what_the_token_may(team: TestClient) -> None:
    for right, flags in (("read", (False, False, False)), ("grade", (False, True, False)), ("write", (True,) * 3)):
        about = team.get("/about", headers={"Authorization": f"Bearer {TOKENS[right]}"}).json()
        assert (about["writable"], about["gradable"], about["calibratable"]) == flags
        assert (about["who"], about["not_kept"]) == (WHO[right], "")


def test_a_grade_is_kept_under_the_name_of_the_token_and_no_other(team: TestClient) -> None:
    headers = {"Authorization": f"Bearer {TOKENS['grade']}"}
    grade = {"query": "blue", "id": "0-red", "grade": "wrong"}
    for sent in (grade, {**grade, "who": "greta"}):
        answer = team.post("/grades", json=sent, headers=headers)
        assert [one["who"] for one in answer.json()["grades"]] == ["greta"]
    refused = team.post("/grades", json={**grade, "who": "wanda"}, headers=headers)
    assert (refused.status_code, "kept as those of greta; leave out who" in refused.text) == (403, True)


def test_rights_include_those_before_them() -> None:
    for place, right in enumerate(RIGHTS):
        assert [Visitor("ada", right).may(one) for one in RIGHTS] == [at <= place for at in range(len(RIGHTS))]
